"""How many calls of a model are in flight, and how fast they start: as many as its provider takes."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

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
