"""Requests and tokens per minute of a group of models, over all processes, and the pauses that a provider asks for."""

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
from neuralmedbench.models.retry import LONGEST_RETRY_AFTER_S, TOO_MANY, CallError, interruptible_sleep
from neuralmedbench.runtime.shared_log import Record, SharedLog

PAUSED = "GroupPaused"
CLOCKS_APART_S = 5.0
"""Clocks of machines that share a book may differ by so much."""
WINDOW_S = 60.0
POLL_S = 0.25
"""Longest sleep before the book is looked at again: other processes may have used less than they had asked for."""
OLD_LINES = 20_000
"""A book with so many lines, none of which counts any more, begins anew."""


@dataclass
class Grant:
    """Leave to send one request.

    Attributes
    ----------
    at : float
        When it was given, in seconds since 1970.
    id : str
        Its name in the book; empty for leave that nobody counts.
    tokens : int
        Tokens that it counts for.
    """

    at: float
    id: str
    tokens: int


class RateLimits:
    """The limits of one group; one object for each run of a model, one book for all of them.

    Parameters
    ----------
    group : str or None
        Name of the group. None: no limits; a pause holds for this object alone.
    limit : RateLimit
        What the group may do in any 60 seconds.
    log : Path or None
        The book of the group; None: the limits hold within this object alone.
    stop : asyncio.Event or None
        When it is set nobody waits any more; None: it never is.
    clock : callable
        Seconds since 1970; the wall clock, because processes on several machines may share a book.

    Notes
    -----
    A sliding window: a request may be sent when, counted with it, no more than `requests_per_minute` were sent in the 60 s that end
    now and their tokens are no more than `tokens_per_minute`. A request counts with the most tokens that it can have until its answer
    says how many it had. One that is larger than `tokens_per_minute` waits for an empty window and then goes. Within a process nobody is
    overtaken.
    """

    def __init__(
        self,
        group: str | None,
        limit: RateLimit,
        log: Path | None,
        *,
        stop: asyncio.Event | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._limit, self._stop, self._clock = limit, stop or asyncio.Event(), clock
        self._log = SharedLog(log if group else None)
        self._line = asyncio.Lock()
        self._process, self._count = os.urandom(6).hex(), 0
        self._window: deque[Grant] = deque()
        self._by_id: dict[str, Grant] = {}
        self._tokens = 0
        self._pauses: list[tuple[float, bool]] = []  # its end, and whether calls fail at once until then instead of waiting
        self._counted = bool(group and (limit.requests_per_minute or limit.tokens_per_minute))
        self._shared = bool(group)

    async def wait(self, tokens: int) -> Grant:
        """Wait until one request with at most so many tokens may be sent, or the command was asked to end; CallError while the group is closed."""
        async with self._line:
            while not self._stop.is_set():
                grant, wait_s = self._try(tokens)
                if grant:
                    return grant
                await interruptible_sleep(min(wait_s, POLL_S), self._stop)
        return Grant(self._clock(), "", 0)

    def settle(self, grant: Grant, tokens: int | None) -> None:
        """Say how many tokens a request had; None: not known, it counts as it was asked for."""
        if grant.id and self._limit.tokens_per_minute and tokens is not None and tokens != grant.tokens:
            self._add({"id": grant.id, "tokens": tokens})

    def pause(self, seconds: float) -> None:
        """Let the whole group wait from now on: a provider that is asked in spite of it counts that too.

        Nobody waits for one that asks for more than 300 s: until then calls fail at once, and after 300 s it is asked again, because a
        header must not close a group for years.
        """
        until: Record = {"until": self._clock() + min(seconds, LONGEST_RETRY_AFTER_S)}
        self._add(until | {"refuse": True} if seconds > LONGEST_RETRY_AFTER_S else until)

    def _add(self, record: Record) -> None:
        with suppress(OSError), self._log.transaction() as transaction:  # a full disk: the limits are then kept by what is known here
            for other in transaction.new_records:
                self._apply(other)
            transaction.added.append(record)
        self._apply(record)

    def _try(self, tokens: int) -> tuple[Grant | None, float]:
        now = self._clock()
        if not self._shared:
            left = self._pause_left(now)
            return (None, left) if left else self._granted(now, tokens)
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
                # a clock that was set back must not keep the window full for longer than its length
                grant = Grant(min(float(record["at"]), self._clock()), str(record["id"]), int(record["tokens"]))
                self._window.append(grant)
                self._by_id[grant.id] = grant
                self._tokens += grant.tokens
            elif grant_of := self._by_id.get(str(record["id"])):
                self._tokens += int(record["tokens"]) - grant_of.tokens
                grant_of.tokens = int(record["tokens"])

    def _drop_expired(self, now: float) -> None:
        while self._window and self._window[0].at <= now - WINDOW_S:
            old = self._window.popleft()
            self._by_id.pop(old.id, None)
            self._tokens -= old.tokens

    def _pause_left(self, now: float) -> float:
        # one that lies further ahead was booked before pauses were bounded, or by a clock that was set back since
        self._pauses = [pause for pause in self._pauses if now < pause[0] <= now + LONGEST_RETRY_AFTER_S + CLOCKS_APART_S]
        if refused := [until for until, refuse in self._pauses if refuse]:
            raise CallError(PAUSED, TOO_MANY, max(refused) - now, final=True, sent=False)
        return max((until - now for until, _ in self._pauses), default=0.0)

    def _window_wait(self, now: float, tokens: int) -> float:
        """Seconds until the window has room for one more request, should nobody use less than asked for; 0: it has."""
        waits = [0.0]
        most, of_tokens = self._limit.requests_per_minute, self._limit.tokens_per_minute
        if most and len(self._window) >= most:
            waits.append(self._window[len(self._window) - most].at + WINDOW_S - now)
        if of_tokens:
            too_many = self._tokens + min(tokens, of_tokens) - of_tokens
            for old in self._window:
                if too_many <= 0:
                    break
                too_many -= old.tokens
                waits.append(old.at + WINDOW_S - now)
        return max(waits)
