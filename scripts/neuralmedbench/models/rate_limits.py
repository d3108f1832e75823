"""How fast calls start, and how many are in flight.

Over all processes a group of models keeps its limits (requests and tokens per minute) and the pauses that a provider asks for. Within a
process, a model has as many calls in flight as its provider takes.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.pipeline import RateLimit
from neuralmedbench.models.retry import LONGEST_RETRY_AFTER_S, TOO_MANY, CallError, interruptible_sleep
from neuralmedbench.runtime.append_log import Record, SharedLog

PAUSED = "GroupPaused"
CLOCK_SKEW_S = 5.0
"""Largest difference between the clocks of machines that share a log."""
WINDOW_S = 60.0
POLL_S = 0.25
"""Longest sleep before the log is read again: other processes may have used fewer tokens than they asked for."""
OLD_LINES = 20_000
"""A log with more lines than this, all of them expired, is emptied."""
FIRST_IN_FLIGHT = 8
"""Calls in flight at the beginning."""
HOLD_S, DIP = 10.0, 0.02
"""Seconds after a refusal until the limit that it showed is reached again, and the share by which the rate stays below it at first."""
LESS, MUCH_LESS = 0.97, 0.9
"""Share of a rate that is kept after a refusal, and after one that follows another within `AT_ONCE_S`."""
AT_ONCE_S, SOON_S = 3.0, 10.0
"""Two refusals within `SOON_S`: fewer calls in flight were no remedy."""
RECENT_S = 1.0
"""Seconds, or twice the time of an answer if that is longer, over which the rate of the accepted calls is counted."""
CATCH_UP_S = 0.1
"""Seconds of starts that are made up for: a busy machine is late by less, and what was not sent in a pause shall not be sent at once."""
RESOLUTION_S = 1e-6
"""Shorter waits are none."""


class Pace:
    """The pace of one model in one run.

    Parameters
    ----------
    most : int
        Most calls in flight (`concurrency` of the yaml).
    clock : callable
        Seconds on a clock that is never set.

    Notes
    -----
    It begins with 8 calls in flight and adds one with every answer, which doubles them in the time of an answer, up to `most`. The first
    refusal (429) shows a limit: as many calls stay in flight as the provider had accepted. If it soon refuses again, it counts calls per
    time: from then on calls start evenly, at the rate that it accepted. The limit is reached again after 10 s and then tried to be exceeded,
    slowly at first and faster the longer all goes well (the cubic growth of TCP's congestion control, RFC 9438), as long as it is used.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._window = float(min(FIRST_IN_FLIGHT, most))
        self._least = 1  # the window does not fall below it in one event
        self._rate = math.inf
        self._in_flight = 0
        self._latency_s = 0.0  # mean of the last answers
        self._starts: deque[float] = deque()  # of recent calls that were not refused
        self._next = self._refused_at = -math.inf  # when the next call may start, and when the last refusal came
        self._unused_s = 0.0  # since then, seconds in which calls could have started and none did

    @property
    def window(self) -> int:
        """Calls that may be in flight."""
        return min(self._most, max(1, math.floor(self._window * max(1.0, self._growth()))))

    @property
    def rate(self) -> float:
        """Calls that may start in a second."""
        if math.isfinite(self._rate):
            return self._rate * self._growth()
        # spread what would otherwise start at once, so that the first refusal comes before everything is sent
        return 2 * self.window / self._latency_s if self._latency_s and self.window < self._most else math.inf

    def _growth(self) -> float:
        since = (self._clock() - self._refused_at - self._unused_s) / HOLD_S - 1
        return 1 + DIP * since**3 if math.isfinite(since) else 1.0

    def wait_s(self) -> float:
        """Return the seconds until another call may start, 0 if now, infinite if one has to end first."""
        if self._in_flight >= self.window:
            return math.inf
        left = self._next - self._clock()
        return left if left > RESOLUTION_S else 0.0

    def start(self) -> float:
        """Note that a call starts; returns when."""
        now = self._clock()
        self._in_flight += 1
        self._starts.append(now)
        while self._starts[0] <= now - self._recent_s:
            self._starts.popleft()
        # a call that starts late does not delay the next one; a rate that is not used shows nothing of the limit
        gap = 1 / self.rate
        late = now - self._next - max(gap, CATCH_UP_S)
        if late >= 0:
            self._unused_s += late if math.isfinite(late) else 0.0
            self._next = now
        self._next += gap
        return now

    def end(self, started: float, *, refused: bool, answered_s: float | None) -> None:
        """Note that a call has ended: refused, or answered after so many seconds, or neither."""
        self._in_flight -= 1
        if refused:
            self._back_off(started)
        elif answered_s is not None:
            self._latency_s += (answered_s - self._latency_s) * (0.1 if self._latency_s else 1)
            if math.isinf(self._refused_at):
                self._window = min(self._most, self._window + 1)

    @property
    def _recent_s(self) -> float:
        return max(RECENT_S, 2 * self._latency_s)

    def _back_off(self, started: float) -> None:
        now = self._clock()
        if started in self._starts:
            self._starts.remove(started)
        since = now - self._refused_at
        if started <= self._refused_at:  # sent before the last refusal came: one event
            if math.isinf(self._rate):
                self._window = float(max(self._least, min(self._window, self._in_flight)))
            return
        if math.isfinite(self._rate):
            self._rate = self.rate * (MUCH_LESS if since < AT_ONCE_S else LESS)
        elif since < SOON_S:
            accepted = sum(start > now - self._recent_s for start in self._starts)
            self._rate, self._window = max(1, accepted) / self._recent_s, float(self._most)
        else:
            self._least = math.ceil(self.window / 2)
            self._window = float(max(self._least, self._in_flight))
        self._refused_at, self._unused_s = now, 0.0


@dataclass
class Grant:
    """Permission to send one request.

    Attributes
    ----------
    at : float
        When it was given, in seconds since 1970.
    id : str
        Its key in the log; empty if the group has no limits.
    tokens : int
        Tokens that it counts for.
    started : float or None
        When its call started, as `Pace` counts; None: it has none.
    """

    at: float
    id: str
    tokens: int
    started: float | None = None


class RateLimits:
    """The rate limits of one group: one object per run of a model, one log for all of them.

    Parameters
    ----------
    group : str or None
        Name of the group. None: no limits; a pause holds for this object only.
    limit : RateLimit
        Requests and tokens that the group may use in any 60 seconds.
    log : Path or None
        The log of the group; None: the limits hold within this object only.
    stop : asyncio.Event or None
        Once it is set, no call waits any longer; None: it is never set.
    clock : callable
        Seconds since 1970; the wall clock, because processes on several machines may share a log.
    pace : Pace or None
        How many calls may be in flight; None: as many as are asked for.

    Notes
    -----
    A sliding window: a request may be sent if, including it, at most `requests_per_minute` were sent in the last 60 s with at most
    `tokens_per_minute` tokens. A request counts with its largest possible number of tokens until its answer reports the real one. A request
    larger than `tokens_per_minute` waits for an empty window. Within a process requests are served in order.
    """

    def __init__(
        self,
        group: str | None,
        limit: RateLimit,
        log: Path | None,
        *,
        stop: asyncio.Event | None = None,
        clock: Callable[[], float] = time.time,
        pace: Pace | None = None,
    ) -> None:
        self._limit, self._stop, self._clock, self._pace = limit, stop or asyncio.Event(), clock, pace
        self._ended = asyncio.Event()
        self._log = SharedLog(log if group else None)
        self._line = asyncio.Lock()
        self._process, self._count = os.urandom(6).hex(), 0
        self._window: deque[Grant] = deque()
        self._by_id: dict[str, Grant] = {}
        self._tokens = 0
        self._latest = 0.0  # the clock when grants were last dropped
        self._pauses: list[tuple[float, bool]] = []  # end of each pause, and True if calls fail until then instead of waiting
        self._counted = bool(group and (limit.requests_per_minute or limit.tokens_per_minute))
        self._shared = bool(group)

    async def wait(self, tokens: int) -> Grant:
        """Wait until a request with at most so many tokens may be sent, or until `stop` is set; CallError while the group is closed."""
        async with self._line:
            while not self._stop.is_set():
                if wait_s := self._pace.wait_s() if self._pace else 0.0:
                    await self._until_ended(wait_s)
                    continue
                grant, wait_s = self._try(tokens)
                if grant:
                    grant.started = self._pace.start() if self._pace else None
                    return grant
                await interruptible_sleep(min(wait_s, POLL_S), self._stop)
        return Grant(self._clock(), "", 0)

    async def _until_ended(self, seconds: float) -> None:
        """Wait so long, but not longer than until a call has ended; or `POLL_S` where neither may come."""
        self._ended.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), min(seconds, POLL_S))

    def end(self, grant: Grant, *, refused: bool = False, answered_s: float | None = None) -> None:
        """Report that the call of a grant has ended, and how; see `Pace`."""
        if self._pace and grant.started is not None:
            self._pace.end(grant.started, refused=refused, answered_s=answered_s)
            grant.started = None
            self._ended.set()

    def settle(self, grant: Grant, tokens: int | None) -> None:
        """Report how many tokens a request used; None: unknown, so its estimate stands."""
        if grant.id and self._limit.tokens_per_minute and tokens is not None and tokens != grant.tokens:
            self._add({"id": grant.id, "tokens": tokens})

    def pause(self, seconds: float) -> None:
        """Make the whole group wait from now on, because providers also count requests that they turn down.

        If the provider asks for more than 300 s, calls fail at once instead of waiting. They are sent again after 300 s, so that no header
        can close a group for years.
        """
        until: Record = {"until": self._clock() + min(seconds, LONGEST_RETRY_AFTER_S)}
        self._add(until | {"refuse": True} if seconds > LONGEST_RETRY_AFTER_S else until)

    def _add(self, record: Record) -> None:
        with suppress(OSError), self._log.transaction() as transaction:  # a full disk: limits then rest on what this process knows
            for other in transaction.new_records:
                self._apply(other)
            transaction.added.append(record)
        self._apply(record)

    def _try(self, tokens: int) -> tuple[Grant | None, float]:
        now = self._clock()
        if not self._shared:  # no group, so nothing to count; only pauses of this object apply
            left = self._pause_left(now)
            return (None, left) if left else self._granted(now, tokens)
        # under the lock of the log: read what other processes were granted, then grant or wait
        with self._log.transaction() as transaction:
            now = self._clock()
            for record in transaction.new_records:
                self._apply(record)
            self._drop_expired(now)
            wait_s = max(self._pause_left(now), self._window_wait(now, tokens))
            if wait_s > 0:
                return None, wait_s
            grant, wait_s = self._granted(now, tokens)
            if self._counted and grant:
                transaction.truncate = len(transaction.new_records) > OLD_LINES and not self._window
                transaction.added.append({"at": grant.at, "id": grant.id, "tokens": grant.tokens})
                self._apply(transaction.added[0])
        return grant, wait_s

    def _granted(self, now: float, tokens: int) -> tuple[Grant, float]:
        self._count += 1
        return Grant(now, f"{self._process}.{self._count}" if self._counted else "", tokens), 0.0

    def _apply(self, record: Record) -> None:
        with suppress(KeyError, TypeError, ValueError):
            if "until" in record:
                self._pauses.append((float(record["until"]), bool(record.get("refuse"))))
            elif "at" in record:
                # after a clock was set back, a grant in the future must not keep the window full for longer than its length
                grant = Grant(min(float(record["at"]), self._clock()), str(record["id"]), int(record["tokens"]))
                self._window.append(grant)
                self._by_id[grant.id] = grant
                self._tokens += grant.tokens
            elif grant_of := self._by_id.get(str(record["id"])):
                self._tokens += int(record["tokens"]) - grant_of.tokens
                grant_of.tokens = int(record["tokens"])

    def _drop_expired(self, now: float) -> None:
        if now < self._latest:  # the clock was set back while this process runs: grants of its future count as given now
            for grant in self._window:
                grant.at = min(grant.at, now)
        self._latest = now
        while self._window and self._window[0].at <= now - WINDOW_S:
            old = self._window.popleft()
            self._by_id.pop(old.id, None)
            self._tokens -= old.tokens

    def _pause_left(self, now: float) -> float:
        # a pause that ends later than this was logged by an earlier version without the bound, or before a clock was set back
        self._pauses = [pause for pause in self._pauses if now < pause[0] <= now + LONGEST_RETRY_AFTER_S + CLOCK_SKEW_S]
        if refused := [until for until, refuse in self._pauses if refuse]:
            raise CallError(PAUSED, TOO_MANY, max(refused) - now, final=True, sent=False)
        return max((until - now for until, _ in self._pauses), default=0.0)

    def _window_wait(self, now: float, tokens: int) -> float:
        """Return the seconds until the window has room for another request if all grants use their estimate; 0 if it has room now."""
        waits = [0.0]
        most, of_tokens = self._limit.requests_per_minute, self._limit.tokens_per_minute
        if most and len(self._window) >= most:
            waits.append(self._window[len(self._window) - most].at + WINDOW_S - now)
        if of_tokens:  # how many of the oldest grants must expire
            too_many = self._tokens + min(tokens, of_tokens) - of_tokens
            for old in self._window:
                if too_many <= 0:
                    break
                too_many -= old.tokens
                waits.append(old.at + WINDOW_S - now)
        return max(waits)
