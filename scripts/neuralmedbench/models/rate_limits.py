"""Rate limits of a group of models over all processes (requests and tokens per minute), and the pauses that a provider asks for."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.pipeline import RateLimit
from neuralmedbench.models.pace import Pace
from neuralmedbench.models.retry import LONGEST_RETRY_AFTER_S, TOO_MANY, CallError, interruptible_sleep
from neuralmedbench.runtime.shared_log import Record, SharedLog

PAUSED = "GroupPaused"
CLOCK_SKEW_S = 5.0
"""Largest difference between the clocks of machines that share a log."""
WINDOW_S = 60.0
POLL_S = 0.25
"""Longest sleep before the log is read again: other processes may have used fewer tokens than they asked for."""
OLD_LINES = 20_000
"""A log with more lines than this, all of them expired, is emptied."""


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
        When its call started, as `models.pace` counts; None: it has none.
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
        """Report that the call of a grant has ended, and how; see `models.pace`."""
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
