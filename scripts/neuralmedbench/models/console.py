"""A run and the person at the terminal: progress, warnings, interrupts (Ctrl-C), and the models that the provider served."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self, TextIO

from neuralmedbench.config.load import withhold_outside_paths
from neuralmedbench.records.responses import MISSING_STATES, Response, ResponseState, ServedModel, is_cut_in_thought, served_by
from neuralmedbench.runtime.job_progress import JobProgress, Report, duration, warn_run

EVERY_S = 30.0
"""Seconds between two progress lines where there is no terminal."""
REPORT_S = 1.0
RECENT_S, RECENT_ANSWERS = 60.0, 10
"""The rate that is reported is that of the last minute, or of the last ten answers if these took longer."""
MOST_REASONS = 10
"""Reasons for missing answers that are reported, the commonest first."""


class Progress:
    """Show how many answers of a job have come.

    Parameters
    ----------
    name : str
        Name of the model.
    total : int
        Number of requested answers.
    stream : TextIO, optional
        Where to write; standard error by default.
    place : tuple of str
        Benchmark, model, and grader or empty, for the run that shows this job.
    retries : Counter, optional
        Attempts that were repeated, by cause; counted elsewhere.
    spent : callable, optional
        Returns what counts against the cap, and the cap in USD; None without a cap.

    Notes
    -----
    Only the model's name, states and numbers are written, because a log may be read by people who may not read the cases. If the stream
    fails (a full disk, a closed terminal), progress is no longer shown and the run goes on.
    """

    def __init__(
        self,
        name: str,
        total: int,
        stream: TextIO | None = None,
        *,
        place: tuple[str, str, str] = ("", "", ""),
        retries: Counter[str] | None = None,
        spent: Callable[[], tuple[float, float] | None] = lambda: None,
    ) -> None:
        self._name, self._total, self._place = name, total, place
        self._report, self._spent = Report(), spent
        self._stream = sys.stderr if stream is None else stream
        self._states: Counter[ResponseState] = Counter()
        self._missing: Counter[str] = Counter()
        self._recent: deque[float] = deque()
        self._from_ledger = 0
        self._retries: Counter[str] = Counter() if retries is None else retries
        self._usd: float | None = None
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._start = self._printed = self._recent_since = time.monotonic()
        if self._stream.isatty():
            from tqdm import tqdm

            with suppress(OSError):
                # smoothing 0: the mean rate since the start; that of the last calls jumps with every wait for a rate limit
                self._bar = tqdm(
                    total=self._total, desc=self._name, unit=" answers", file=self._stream, mininterval=0.5, smoothing=0, dynamic_ncols=True
                )
        return self

    def count(self, state: str, usd: float | None, from_ledger: bool, reason: str = "") -> None:
        """Count one answer; `usd` is None without a price, `reason` says why it is missing.

        ValueError for an unknown state, so that no other word reaches a log.
        """
        self._states[ResponseState(state)] += 1
        self._from_ledger += from_ledger
        if state in MISSING_STATES:
            self._missing[f"{state}: {reason}" if reason else state] += 1
        if not from_ledger:
            self._recent.append(time.monotonic())
        if usd is not None and not from_ledger:
            self._usd = (self._usd or 0.0) + usd
        with suppress(OSError, ValueError):  # ValueError: the stream is closed
            if self._bar is not None:
                self._bar.initial += from_ledger
                self._bar.set_postfix_str(self._counts(), refresh=False)
                self._bar.update()
            elif time.monotonic() - self._printed >= EVERY_S:
                self._printed = time.monotonic()
                self._print(self._speed())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._report.write(self._progress(ended=True))
        with suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.close()
            else:
                self._print(f"{duration(time.monotonic() - self._start)} in all")

    async def keep_reported(self) -> None:
        """Report to the run that shows this job, once a second; ends when it is cancelled."""
        while True:
            self._report.write(self._progress())
            await asyncio.sleep(REPORT_S)

    def _progress(self, *, ended: bool = False) -> JobProgress:
        now, done, (spent, cap) = time.monotonic(), self._states.total(), self._spent() or (None, None)
        while len(self._recent) > RECENT_ANSWERS and now - self._recent[0] > RECENT_S:
            self._recent_since = self._recent.popleft()
        benchmark, model, grader = self._place
        return JobProgress(
            benchmark=benchmark,
            model=model,
            grader=grader,
            done=done,
            total=self._total,
            asked=done - self._from_ledger,
            seconds=round(now - self._start, 3),
            spent_usd=spent,
            cap_usd=cap,
            retries=dict(self._retries),
            states={state.value: number for state, number in self._states.items()},
            missing=dict(self._missing.most_common(MOST_REASONS)),
            usd=None if self._usd is None else round(self._usd, 6),
            recent_asked=len(self._recent),
            recent_seconds=round(now - self._recent_since, 3),
            ended=ended,
        )

    def _print(self, last: str) -> None:
        done = self._states.total()
        share = f" ({done / self._total:.0%})" if self._total else ""
        parts = [f"{done} of {self._total} answers{share}", self._counts(), last]
        print(f"{self._name}: {'; '.join(filter(None, parts))}", file=self._stream, flush=True)

    def _counts(self) -> str:
        words = [f"{state.value} {self._states[state]}" for state in ResponseState if self._states[state]]
        words += [f"{self._from_ledger} from the ledger"] if self._from_ledger else []
        words += [f"{self._retries.total()} retried"] if self._retries else []
        words += [f"{self._usd:.4f} USD"] if self._usd is not None else []
        return ", ".join(words)

    def _speed(self) -> str:
        """Return rate and time left, estimated from the answers that were not in the ledger; empty before the first of them."""
        fresh, seconds = self._states.total() - self._from_ledger, time.monotonic() - self._start
        if not fresh or not seconds:
            return ""
        left = (self._total - self._states.total()) * seconds / fresh
        return f"{fresh / seconds:.2g} a second, about {duration(left)} left"


FIRST_UNREAD, UNREAD_SHARE = 20, 0.1
"""A warning is due after this many unread answers, if they are more than this share of those that have come. (Our rule.)"""
TERMINAL = "/dev/tty"


class UnreadWarning:
    """Warn once if the first answers of a run cannot be read or are cut off, before the rest is asked and paid for.

    Parameters
    ----------
    name : str
        Name of the model.
    why_unread : callable or None
        Returns why nothing can be read from an answer, in words without any of its own, empty if it is read; None: no answer is checked.
    """

    def __init__(self, name: str, why_unread: Callable[[Response], str] | None) -> None:
        self._name, self._why = name, why_unread
        self._answers = self._cut = self._thinking = 0
        self._reasons: Counter[str] = Counter()

    def count(self, row: Response, left: int) -> None:
        """Count one answer and print the warning if it is due; `left` answers have not come yet."""
        if self._why is None or row.state in MISSING_STATES:
            return
        self._answers += 1
        reason = self._why(row) if row.state is ResponseState.OK else ""
        cut = row.state is ResponseState.TRUNCATED
        self._cut += cut
        self._thinking += is_cut_in_thought(row.state, row.text)
        self._reasons.update([reason] if reason else [])
        unread = self._reasons.total() + self._cut
        if (cut or reason) and left and unread >= FIRST_UNREAD and unread > UNREAD_SHARE * self._answers:
            self._why = None
            print_to_person(self._line(row, left))

    def _line(self, row: Response, left: int) -> str:
        parts = [f"{self._reasons.total()} cannot be read (most often: {self._reasons.most_common(1)[0][0]})"] if self._reasons else []
        thinking = f", {self._thinking} of them while thinking" if self._thinking else ""
        parts += [f"{self._cut} were cut off at the limit of tokens{thinking}"] if self._cut else []
        return (
            f"{self._name}: WARNING: of the first {self._answers} answers {' and '.join(parts)}; {left} more have not come yet. "
            f"`nmb model explain` shows one, such as that to {row.item_id} under {row.arm}; Ctrl-C ends the run and keeps what has come"
        )


def print_to_person(line: str) -> None:
    """Print a line on standard error, and on the terminal of the run, or of a job in its foreground, if standard error goes to a log."""
    print(line, file=sys.stderr, flush=True)
    if sys.stderr.isatty() or warn_run(line):
        return
    with suppress(OSError), open(TERMINAL, "w", encoding="utf-8") as terminal:
        if os.tcgetpgrp(terminal.fileno()) == os.getpgrp():  # a job in the background could be stopped by writing
            print(f"\n{line}\n", file=terminal, flush=True)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def graceful_interrupt(stop: Callable[[], None], name: str) -> Iterator[None]:
    """Call `stop` at the first Ctrl-C, SIGTERM or closed terminal; the second one ends the process at once.

    Notes
    -----
    Python delivers signals to the main thread only; in another thread this does nothing. Under `nohup` a closed terminal stays ignored.
    """
    loop = asyncio.get_running_loop()
    handled = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]

    def first() -> None:
        for number in handled:
            loop.remove_signal_handler(number)
        print(f"{name}: no more calls are made; waiting for those in flight (interrupt again to end at once)", file=sys.stderr, flush=True)
        stop()

    try:
        for number in handled:
            loop.add_signal_handler(number, first)
    except (ValueError, RuntimeError):  # not the main thread
        yield
        return
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def log_served_models(name: str, responses: Sequence[Response]) -> None:
    """Print `served_models_line` on standard error, if there is one."""
    if line := served_models_line(name, responses):
        print(line, file=sys.stderr)


def served_models_line(name: str, responses: Sequence[Response]) -> str:
    """Warn if a provider served several models, or several builds of one, under the requested name; empty otherwise."""
    served = served_by((row.served_model, row.fingerprint, row.called_on) for row in responses)
    names = {model.name for model in served}
    if len(served) < 2:
        return ""
    models = "; ".join(_words(model) for model in served)
    if len(names) == 1:
        return f"{name}: served with {len(served)} fingerprints, so the provider changed something on its side: {models}"
    return (
        f"{name}: served by {len(names)} models under one name: {models}; these answers are not of one model: write a dated version as `id`,"
        " or bump `revision` to ask for all of them again"
    )


def _words(model: ServedModel) -> str:
    days = " to ".join(sorted({model.first_called_on, model.last_called_on} - {""}))
    build = f", fingerprint {model.fingerprint}" if model.fingerprint else ""
    return f"{withhold_outside_paths(model.name)}{build} ({model.answers} answers{f', {days}' if days else ''})"
