"""A run finds out how many calls its provider takes: a server with a hidden limit, in simulated time."""

from __future__ import annotations

import asyncio
import random
from itertools import product
from types import SimpleNamespace

import pytest

from fixtures.hidden_limit import HiddenLimit, latency_of
from fixtures.models import model_config
from neuralmedbench.config.pipeline import RateLimit
from neuralmedbench.models import retry
from neuralmedbench.models.budget import Budget, Reservation
from neuralmedbench.models.calls import AttemptGate
from neuralmedbench.models.rate_limits import FIRST_IN_FLIGHT, Pace, RateLimits
from neuralmedbench.models.retry import TOO_MANY, CallError, answer_with_retries

MOST = 64
TRIP_S = 0.01
"""Time of a request to the server, and of a reply back."""
KIND = "RateLimitError"
SETTLED_S, END_S = 30.0, 90.0


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next thing that is due."""

    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when)
        super()._run_once()


class SimulatedServer:
    """A server with a hidden limit, with or without saying how long to wait."""

    def __init__(self, clock, limit, latency_s, retry_after_s):
        self.limit, (self.latency_s, self.spread) = HiddenLimit(*limit), latency_s
        self.clock, self.retry_after_s = clock, retry_after_s
        self.random = random.Random(1)
        self.answered: list[float] = []
        self.refused: list[float] = []

    async def answer(self):
        await asyncio.sleep(TRIP_S)
        if not self.limit.takes(self.clock()):
            self.refused.append(self.clock())
            await asyncio.sleep(TRIP_S)
            raise CallError(KIND, TOO_MANY, self.retry_after_s)
        await asyncio.sleep(latency_of(self.random, self.latency_s, self.spread))
        self.limit.end()
        self.answered.append(self.clock())
        await asyncio.sleep(TRIP_S)


@pytest.fixture
def simulated(monkeypatch):
    """Return a function that asks a server for 90 simulated seconds, or a number of calls, and returns it with the pace."""

    def asking(kind, limit, latency_s, *, spread=0.0, retry_after_s=1.0, most=MOST, calls=None):
        loop = SimulatedLoop()
        monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=loop.time))
        server = SimulatedServer(loop.time, (kind, limit), (latency_s, spread), retry_after_s)
        pace = Pace(most, clock=loop.time)
        budget, jitter, left = Budget(model_config()), random.Random(0), iter(range(calls or 10**9))

        async def work(limits, stop):
            while loop.time() < END_S and next(left, None) is not None:
                gate = AttemptGate(budget, limits, Reservation("", 0, 1))
                await answer_with_retries(server.answer, max_attempts=10, timeout_s=None, jitter=jitter, stop=stop, gate=gate)

        async def run():
            stop = asyncio.Event()
            limits = RateLimits(None, RateLimit(), None, stop=stop, clock=loop.time, pace=pace)
            await asyncio.gather(*(work(limits, stop) for _ in range(most)))

        try:
            loop.run_until_complete(run())
        finally:
            loop.close()
        return server, pace

    return asking


HIDDEN = [
    ("bucket", 20, 2.0),
    ("sliding", 20, 0.5),
    ("fixed", 50, 0.2),
    ("in flight", 10, 0.2),
    ("in flight", 20, 1.0),
    ("in flight", 30, 2.0),
]
OFTEN = {
    (("bucket", 20, 2.0), 0.5, None),
    (("sliding", 20, 0.5), 0.0, 1.0),
    (("fixed", 50, 0.2), 0.5, None),
    (("in flight", 20, 1.0), 0.5, 1.0),
}
"""One of each kind of limit, where latencies are spread and where they are not, with and without a time to wait."""


@pytest.mark.parametrize(
    ("case", "spread", "retry_after_s"),
    [pytest.param(*one, marks=() if one in OFTEN else pytest.mark.long) for one in product(HIDDEN, [0.0, 0.5], [1.0, None])],
)
def test_a_hidden_limit_is_found_and_almost_nothing_is_refused(simulated, case, spread, retry_after_s):
    kind, limit, latency_s = case
    server, _ = simulated(kind, limit, latency_s, spread=spread, retry_after_s=retry_after_s)
    rate = sum(at >= SETTLED_S for at in server.answered) / (END_S - SETTLED_S)
    best = limit / (latency_s + 2 * TRIP_S) if kind == "in flight" else limit
    assert rate >= 0.9 * best
    assert len(server.refused) <= 0.02 * (len(server.answered) + len(server.refused))


def test_a_fast_server_gets_all_calls_at_once_after_a_second(simulated):
    server, pace = simulated("in flight", 10**6, 0.2, calls=4000)
    assert server.refused == []
    assert (pace.window, pace.rate, server.limit.most_in_flight) == (MOST, float("inf"), MOST)
    full = MOST / (0.2 + 2 * TRIP_S)
    assert sum(1 <= at < 11 for at in server.answered) >= 0.95 * 10 * full


def test_a_run_begins_with_few_calls_and_never_has_more_than_the_yaml_allows(simulated):
    server, _ = simulated("in flight", 10**6, 1.0, calls=FIRST_IN_FLIGHT)
    assert server.limit.most_in_flight == FIRST_IN_FLIGHT
    for most in (1, 3, 20):
        server, _ = simulated("in flight", 10**6, 0.5, most=most, calls=200)
        assert server.limit.most_in_flight == most


def test_calls_that_fail_for_another_reason_neither_slow_the_others_nor_hold_their_place():
    pace = Pace(4, clock=lambda: 0.0)
    for _ in range(10):
        started = [pace.start() for _ in range(4)]
        assert pace.wait_s() == float("inf")
        for one in started:
            pace.end(one, refused=False, answered_s=None)
        assert (pace.wait_s(), pace.window) == (0, 4)


def test_a_provider_that_refuses_everything_leaves_one_call_in_flight_at_last(simulated):
    now = [0.0]
    pace = Pace(MOST, clock=lambda: now[0])
    for _ in range(20):
        now[0] += 20
        pace.end(pace.start(), refused=True, answered_s=None)
    assert pace.window == 1
