"""Progress: a bar at a terminal, a few lines in a log, and never a word of prompts or answers."""

from __future__ import annotations

import io
import re

import pytest

from neuralmedbench.models import console as progress
from neuralmedbench.models.console import Progress


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """A log on a full disk."""

    def write(self, _text: str) -> int:
        raise OSError(28, "No space left on device")


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_log_gets_a_line_every_30_seconds_and_one_at_the_end(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress("m", 400, stream) as counted:
        for _ in range(100):
            counted.count("ok", 9.0, from_ledger=True)
        for number in range(100):
            clock.now += 1
            counted.count("failed" if number % 10 == 0 else "ok", 0.001, from_ledger=False)
    assert stream.getvalue().splitlines() == [
        "m: 130 of 400 answers (32%); ok 127, failed 3, 100 from the ledger, 0.0300 USD; 1 a second, about 4 min 30 s left",
        "m: 160 of 400 answers (40%); ok 154, failed 6, 100 from the ledger, 0.0600 USD; 1 a second, about 4 min 0 s left",
        "m: 190 of 400 answers (48%); ok 181, failed 9, 100 from the ledger, 0.0900 USD; 1 a second, about 3 min 30 s left",
        "m: 200 of 400 answers (50%); ok 190, failed 10, 100 from the ledger, 0.1000 USD; 1 min 40 s in all",
    ]


def test_answers_of_the_ledger_say_nothing_about_the_speed(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress("m", 2, stream) as counted:
        clock.now += 31
        counted.count("ok", None, from_ledger=True)
    assert stream.getvalue().splitlines() == [
        "m: 1 of 2 answers (50%); ok 1, 1 from the ledger",
        "m: 1 of 2 answers (50%); ok 1, 1 from the ledger; 31 s in all",
    ]


def test_a_terminal_gets_one_bar_with_states_cost_and_time_left() -> None:
    stream = Terminal()
    with Progress("m", 4, stream) as counted:
        counted.count("ok", None, from_ledger=True)
        for state in ("ok", "refused", "failed"):
            counted.count(state, 0.25, from_ledger=False)
    drawn = stream.getvalue().split("\r")
    assert stream.getvalue().count("\n") == 1
    assert re.fullmatch(
        r"m: 100%\|.*\| 4/4 \[.*<.*, .* answers/s, ok 2, refused 1, failed 1, 1 from the ledger, 0\.7500 USD\]\n", drawn[-1]
    ), drawn[-1]


def interrupted(stream: io.StringIO) -> None:
    with Progress("m", 2, stream) as counted:
        counted.count("ok", None, from_ledger=False)
        raise KeyboardInterrupt


def test_a_job_without_answers_and_one_that_breaks_off_end_with_their_line() -> None:
    stream = io.StringIO()
    with Progress("m", 0, stream):
        pass
    assert stream.getvalue() == "m: 0 of 0 answers; 0 s in all\n"
    with pytest.raises(KeyboardInterrupt):
        interrupted(stream)
    assert stream.getvalue().splitlines()[-1].startswith("m: 1 of 2 answers (50%); ok 1; ")


@pytest.mark.parametrize("stream", [Full(), Terminal()], ids=["full disk", "closed terminal"])
def test_a_stream_that_takes_no_more_stops_no_job(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0)
    with Progress("m", 2, stream) as counted:
        counted.count("ok", None, from_ledger=False)
        stream.close()
        counted.count("ok", None, from_ledger=False)


def test_nothing_but_a_state_is_counted() -> None:
    with Progress("m", 1, io.StringIO()) as counted, pytest.raises(ValueError, match="not a valid ResponseState"):
        counted.count("The patient says", None, from_ledger=False)
