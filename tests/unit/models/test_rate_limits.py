"""Requests and tokens per minute, pauses, and the retry policy."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
import multiprocessing
import os
import random
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from fixtures.models import model_config
from neuralmedbench.config.pipeline import RateLimit
from neuralmedbench.errors import ConfigError
from neuralmedbench.models import rate_limits, retry
from neuralmedbench.models.budget import Budget
from neuralmedbench.models.calls import AttemptGate
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.model_run import RunControl, RunLimits
from neuralmedbench.models.protocol import Answer
from neuralmedbench.models.provider_waits import asked_wait_s
from neuralmedbench.models.rate_limits import RateLimits
from neuralmedbench.models.retry import CallError, GaveUpError, answer_with_retries
from neuralmedbench.runtime.append_log import read_log
from neuralmedbench.runtime.options import read_settings

NOON = 1_700_000_000.0


class Clock:
    """A clock that moves only while something sleeps."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now

    async def rest(self, seconds: float, _: asyncio.Event) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(rate_limits, "interruptible_sleep", clock.rest)
    return clock


@pytest.fixture
def limits(clock, tmp_path):
    """Return a function that opens the limits of the group, as another process would."""

    def opening(requests=None, tokens=None, *, group="g", stop=None):
        limit = RateLimit(requests_per_minute=requests, tokens_per_minute=tokens)
        return RateLimits(group, limit, tmp_path / "rates" / "g.jsonl", clock=clock, stop=stop)

    return opening


def granted(limits: RateLimits, *tokens: int) -> list[float]:
    """Return the seconds after noon at which requests with these tokens may be sent, one after the other."""

    async def run() -> list[float]:
        return [(await limits.wait(count)).at - NOON for count in tokens]

    return asyncio.run(run())


def test_no_minute_has_more_requests_than_its_limit_over_two_processes(limits):
    assert granted(limits(3), 1, 1) == [0, 0]
    assert granted(limits(3), 1, 1, 1) == [0, 60, 60]
    assert granted(limits(3), 1, 1) == [60, 120]


def test_no_minute_has_more_tokens_than_its_limit(limits):
    assert granted(limits(tokens=100), 60, 30, 20, 70, 10) == [0, 0, 60, 60, 60]


def test_a_request_that_is_larger_than_the_limit_waits_for_an_empty_minute_and_goes(limits):
    assert granted(limits(tokens=100), 10, 5000, 10) == [0, 60, 120]


def test_tokens_that_were_not_used_are_free_for_other_processes_at_once(limits, clock):
    one, two = limits(tokens=100), limits(tokens=100)

    async def run() -> list[float]:
        grant = await one.wait(90)
        one.settle(grant, 20)
        return [(await two.wait(70)).at - NOON, (await two.wait(20)).at - NOON]

    assert asyncio.run(run()) == [0, 60]


def test_what_a_request_really_used_leaves_the_window_together_with_it(limits, clock):
    """A correction that outlived its request would allow too many tokens in a later minute."""
    one = limits(tokens=100)

    async def run() -> list[float]:
        grant = await one.wait(90)
        clock.now += 50
        one.settle(grant, 10)
        clock.now += 11
        one.settle(grant, 0)
        return [(await one.wait(60)).at - NOON, (await one.wait(60)).at - NOON]

    assert asyncio.run(run()) == [61, 121]


def test_within_a_process_nobody_is_overtaken(limits):
    one = limits(tokens=100)

    async def run() -> list[int]:
        order: list[int] = []

        async def ask(tokens: int) -> None:
            await one.wait(tokens)
            order.append(tokens)

        await asyncio.gather(*(ask(tokens) for tokens in (60, 80, 5, 7)))
        return order

    assert asyncio.run(run()) == [60, 80, 5, 7]


def test_a_pause_holds_for_the_whole_group_and_for_no_other(limits, tmp_path):
    limits(10).pause(7)
    assert granted(limits(10), 1) == [7]
    assert granted(limits(group="other"), 1) == [7]  # the same log: the name of the group does not matter here
    assert granted(RateLimits("h", RateLimit(), tmp_path / "h.jsonl", clock=lambda: NOON), 1) == [0]


def test_a_pause_that_nobody_waits_for_is_said_at_once_and_nothing_is_sent(limits):
    limits(10).pause(3600)
    with pytest.raises(CallError) as closed:
        granted(limits(10), 1)
    assert (closed.value.status, closed.value.may_pass_later, closed.value.perhaps_paid) == (429, False, False)


@pytest.mark.parametrize("asked", [301.0, 3600.0, 1e308, math.inf])
@pytest.mark.parametrize("group", ["g", None])
def test_no_pause_is_longer_than_five_minutes_whatever_the_provider_asks_for(limits, clock, tmp_path, group, asked):
    """A header must not close a group for years: only deleting the log by hand would open it again."""
    one = limits(10, group=group)
    one.pause(asked)
    clock.now += 299
    with pytest.raises(CallError, match="GroupPaused"):
        granted(one, 1)
    clock.now += 2
    assert granted(one, 1) == granted(limits(10), 1) == [301]
    assert [line["until"] for line in read_log(tmp_path / "rates" / "g.jsonl") if "until" in line] == [NOON + 300] * bool(group)


def test_a_pause_that_the_provider_has_asked_for_is_waited_for_in_whole(limits):
    one = limits(10)
    one.pause(300)
    assert granted(one, 1) == granted(limits(10), 1) == [300]


@pytest.mark.parametrize("until", ["253370764800.0", "1e308", "Infinity", "NaN"])
def test_a_booked_pause_that_lies_further_ahead_than_any_may_is_passed_over_and_others_hold(limits, tmp_path, until):
    book = tmp_path / "rates" / "g.jsonl"
    book.parent.mkdir()
    book.write_text(f'{{"until":{until}}}\n')  # a provider's Retry-After: the year 9999
    assert granted(limits(10), 1) == [0]
    limits(10).pause(7)
    assert granted(limits(10), 1) == [7]


def test_a_pause_ends_when_the_clock_is_set_back(limits, clock):
    one = limits(10)
    one.pause(5)
    clock.now -= 3600
    assert granted(one, 1) == granted(limits(10), 1) == [-3600]


def test_without_a_group_there_is_no_file_and_a_pause_holds_for_this_object_alone(limits, tmp_path):
    alone = limits(group=None)
    assert granted(alone, 1, 1) == [0, 0]
    alone.pause(2)
    assert granted(alone, 1) == [2]
    assert granted(limits(group=None), 1) == [2]
    assert list(tmp_path.iterdir()) == []


def test_who_was_asked_to_end_does_not_wait(limits):
    stop = asyncio.Event()
    full = limits(1, stop=stop)
    granted(full, 1)
    stop.set()
    assert granted(full, 1, 1) == [0, 0]


def test_a_clock_that_was_set_back_does_not_keep_the_group_waiting_for_longer_than_a_minute(limits, clock):
    granted(limits(1), 1)
    clock.now -= 5000
    assert granted(limits(1), 1) == [-4940]


def test_a_clock_that_is_set_back_during_a_run_keeps_its_group_waiting_for_a_minute_at_most(limits, clock):
    """The process that runs on holds its grants in memory: they lay an hour ahead until the clock had caught up."""
    one = limits(2)
    granted(one, 1, 1)
    clock.now -= 3600
    assert granted(one, 1, 1, 1) == [-3540, -3540, -3480]


def test_a_book_that_has_grown_long_begins_anew_when_nothing_in_it_counts(limits, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(rate_limits, "OLD_LINES", 5)
    granted(limits(100), *[1] * 8)
    assert granted(limits(100), 1) == [0]
    assert len(read_log(tmp_path / "rates" / "g.jsonl")) == 9
    clock.now += 100
    assert granted(limits(100), 1) == [100]
    assert len(read_log(tmp_path / "rates" / "g.jsonl")) == 1


def ask_within(book: Path, limit: str, dies_at: int, begin: Connection) -> None:
    """Make 30 calls within a limit of 40 in half a second; the process dies in one of them."""
    rate_limits.WINDOW_S, rate_limits.POLL_S = 0.5, 0.05
    limits = RateLimits("g", RateLimit(**{limit: 40}), book)

    async def ask(number: int) -> None:
        grant = await limits.wait(8)
        if number == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        limits.settle(grant, 2)

    async def run() -> None:
        await asyncio.gather(*map(ask, range(30)))

    begin.recv()
    asyncio.run(run())


@pytest.mark.parametrize("limit", ["requests_per_minute", "tokens_per_minute"])
def test_three_processes_together_never_pass_a_limit_and_one_that_is_killed_counts(tmp_path, limit):
    book = tmp_path / "g.jsonl"
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(3)]
    jobs = [
        context.Process(target=ask_within, args=(book, limit, dies_at, there))
        for dies_at, (_, there) in zip((-1, -1, 5), pipes, strict=True)
    ]
    for job in jobs:
        job.start()
    for here, _ in pipes:
        here.send("go")
    for job in jobs:
        job.join(60)
    assert [job.exitcode for job in jobs] == [0, 0, -signal.SIGKILL]
    lines = read_log(book)
    calls = [line for line in lines if "at" in line]
    assert len(calls) == 30 + 30 + 6
    used = {line["id"]: line["tokens"] for line in lines}
    if limit == "tokens_per_minute":
        assert sorted(used.values()) == [2] * 65 + [8]
    for last, call in enumerate(calls):
        window = [other for other in calls[: last + 1] if other["at"] > call["at"] - 0.5]
        assert (len(window) if limit == "requests_per_minute" else sum(used[other["id"]] for other in window)) <= 40


def test_a_group_that_has_no_limits_is_refused_with_the_lines_to_add():
    control = RunLimits(rate_limits={"openai": RateLimit()})
    with pytest.raises(ConfigError, match=r"did you mean 'openai'\?.*rate_limits: \{opnai: \{requests_per_minute: 60\}\}"):
        control.limits(model_config(rate_limit_group="opnai"), Path("data/ledger/b/m.jsonl"), asyncio.Event())


def test_what_bounds_a_run_goes_to_its_commands_as_one_argument(tmp_path):
    limits = {"max_run_cost_usd": 2.5, "rate_limits": {"openai": {"requests_per_minute": 60}}}
    control = RunLimits.of(read_settings(RunControl, "--control", json.dumps(limits)))
    assert (control.max_run_cost_usd, control.rate_limits) == (2.5, {"openai": RateLimit(requests_per_minute=60)})
    assert RunLimits.of(read_settings(RunControl, "--control", "{}")).max_run_cost_usd is None
    with pytest.raises(ConfigError, match="--control"):
        read_settings(RunControl, "--control", '{"max_run_costs": 1}')


# ---- retried calls


class Attempts:
    """A call that raises the given failures, and then answers."""

    def __init__(self, *failures: CallError) -> None:
        self.failures, self.made = list(failures), 0

    async def __call__(self) -> str:
        self.made += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


class Recorder(retry.OpenGate):
    """A gate without limits that records its calls; there is money for `money` attempts that may have been charged."""

    def __init__(self, money: int = 99) -> None:
        self.entered, self.pauses, self.money = 0, [], money

    async def enter(self) -> None:
        self.entered += 1

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def may_retry(self, error: CallError) -> bool:
        self.money -= error.perhaps_paid
        return self.money >= 0


@pytest.fixture
def waits(monkeypatch):
    """Waits that were requested; none is really waited."""
    waits: list[float] = []

    async def pause(seconds: float, _: asyncio.Event) -> None:
        waits.append(seconds)

    monkeypatch.setattr(retry, "interruptible_sleep", pause)
    return waits


def answer(call, gate=retry.OPEN, **changes):
    settings = {"max_attempts": 4, "timeout_s": 20, **changes}

    async def run():
        return await answer_with_retries(call, jitter=random.Random(0), stop=asyncio.Event(), gate=gate, **settings)

    return asyncio.run(run())


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529, None])
def test_a_failure_that_may_pass_is_tried_again(waits, status):
    call = Attempts(CallError("E", status))
    outcome = answer(call)
    assert (outcome.answer, outcome.attempts, outcome.sent) == ("answer", 2, 2)
    assert len(waits) == 1


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 451, 501, 505])
def test_a_failure_that_stays_is_not_tried_again(waits, status):
    call = Attempts(CallError("E", status))
    with pytest.raises(GaveUpError) as failed:
        answer(call)
    assert (call.made, failed.value.attempts, failed.value.perhaps_paid, waits) == (1, 1, False, [])


@pytest.mark.parametrize(
    ("error", "charged"),
    [
        (CallError("Timeout"), True),
        (CallError("CertificateError", final=True, sent=False), False),
        (CallError("NotConnected", sent=False), False),
        (CallError("E", 503), False),
    ],
)
def test_only_what_may_have_reached_the_provider_may_have_been_charged(waits, error, charged):
    with pytest.raises(GaveUpError) as failed:
        answer(Attempts(error), max_attempts=1)
    assert failed.value.perhaps_paid is charged


def test_waits_double_up_to_a_minute_and_never_fall_short_of_what_the_provider_asks_for(waits):
    call = Attempts(*(CallError("E", 503) for _ in range(9)), CallError("E", 503, 90))
    answer(call, max_attempts=11)
    for number, wait in enumerate(waits[:9]):
        assert min(60, 0.5 * 2**number) / 2 <= wait <= min(60, 0.5 * 2**number)
    assert waits[9] == 90


def test_a_429_and_whatever_says_how_long_to_wait_pauses_the_whole_group(waits):
    gate = Recorder()
    answer(Attempts(CallError("E", 429), CallError("E", 503, 7), CallError("E", 503)), gate)
    assert gate.pauses == [waits[0], 7]
    assert gate.entered == 4  # a retry is a request too


def test_a_wait_that_the_provider_asks_for_is_no_failed_attempt_up_to_five_minutes_of_them(waits):
    outcome = answer(Attempts(*(CallError("E", 429, 21) for _ in range(6)), CallError("E", 500)), max_attempts=2)
    assert (outcome.answer, outcome.attempts) == ("answer", 8)
    assert waits[:6] == [21] * 6
    call = Attempts(*(CallError("E", 429, 50) for _ in range(99)))
    with pytest.raises(GaveUpError):
        answer(call, max_attempts=2)
    assert call.made == 8, "six within 300 s, and two attempts"


@pytest.mark.parametrize("asked", [0.2, None])
def test_a_shorter_wait_counts_as_an_attempt(waits, asked):
    call = Attempts(*(CallError("E", 429, asked) for _ in range(99)))
    with pytest.raises(GaveUpError):
        answer(call, max_attempts=3)
    assert call.made == 3


def test_a_provider_that_asks_for_more_than_five_minutes_is_not_asked_again_and_the_group_hears_of_it(waits):
    gate = Recorder()
    with pytest.raises(GaveUpError):
        answer(Attempts(CallError("E", 429, 3600)), gate)
    assert (gate.pauses, waits) == ([3600], [])


def test_the_deadline_of_a_call_ends_its_attempts_and_is_not_waited_beyond(waits):
    call = Attempts(*(CallError("E", 503, 30) for _ in range(3)))
    with pytest.raises(GaveUpError) as failed:
        answer(call, deadline_s=20)
    assert (call.made, failed.value.attempts, waits) == (1, 1, [])


def test_the_deadline_of_a_call_shortens_that_of_an_attempt():
    async def hang() -> str:
        await asyncio.sleep(30)
        return "late"

    with pytest.raises(GaveUpError, match="Timeout") as failed:
        answer(hang, deadline_s=0.05)
    assert (failed.value.attempts, failed.value.perhaps_paid) == (1, True)


def test_attempts_that_may_have_been_charged_are_made_only_while_there_is_money_for_them(waits):
    call = Attempts(*(CallError("Timeout") for _ in range(3)))
    with pytest.raises(GaveUpError):
        answer(call, Recorder(money=1))
    assert call.made == 2


def test_a_call_whose_group_may_not_ask_is_never_sent(limits):
    group = limits(10)
    group.pause(3600)
    budget = Budget(model_config())
    call = Attempts()
    with pytest.raises(GaveUpError) as failed:
        answer(call, AttemptGate(budget, group, budget.reserve((PromptMessage("user", "?"),))))
    assert (call.made, failed.value.attempts, failed.value.perhaps_paid) == (0, 0, False)


def test_the_tokens_of_an_answer_are_given_back_to_its_group(limits, tmp_path):
    group, budget = limits(tokens=10_000), Budget(model_config(max_tokens=50))
    gate = AttemptGate(budget, group, budget.reserve((PromptMessage("user", "?"),)))
    answer(Attempts(), gate)
    gate.close([Answer("a", prompt_tokens=7, completion_tokens=3), Answer("b", prompt_tokens=0, completion_tokens=4)])
    asked, used = read_log(tmp_path / "rates" / "g.jsonl")
    assert (asked["tokens"] > 50, used["tokens"], used["id"]) == (True, 14, asked["id"])
    gate.close([Answer("a")])
    assert len(read_log(tmp_path / "rates" / "g.jsonl")) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.3"}, 0.3),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Sun, 22 Nov 2026 14:00:30 +0200"}, 30),
        ({"retry-after": "Sun, 22 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_what_a_provider_asks_for_is_read_as_seconds_milliseconds_or_a_date(headers, seconds):
    now = datetime.datetime(2026, 11, 22, 12, 0, 0, tzinfo=datetime.UTC)
    assert asked_wait_s(429, headers, now=now) == seconds
