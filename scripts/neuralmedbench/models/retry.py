"""The retry policy for failed calls: which are retried, how often, and after how long.

| reply | retried | charged | also |
| --- | --- | --- | --- |
| 429 | yes | no | the whole group pauses as long as the provider says, or else as long as this call waits |
| 408, 409, 425 | yes | no | |
| 5xx except 501 and 505 (including 503, and 529 of an overloaded provider) | yes | no | with Retry-After the whole group pauses |
| 501, 505 and every other 4xx (400 bad request, 401 and 403 key, 402 money, 404 model, 413 too large, 422) | no | no | |
| none: deadline of the attempt, broken connection, body that cannot be read | yes | perhaps | reserved again before the next attempt |
| 2xx: an error, or no choices | unless `final` | perhaps | the same |
| no connection at all, a bad certificate (`sent=False`) | unless `final` | no | |

The wait is the longer of the provider's request (`models.provider_waits`) and a backoff that doubles from 0.5 s to 60 s, with jitter. A
provider that asks for more than 300 s has no quota left: the call fails, and nothing is sent to its group for 300 s. A call ends after
`max_attempts` or at its deadline (`deadline_s`, counted from the first attempt, not from the queue before it). Waits of a second or more that
the provider asked for count as no attempt, up to 300 s of them: a limit per minute passes.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")

RETRIED = frozenset({408, 409, 425, 429})
NEVER = frozenset({501, 505})
TOO_MANY = 429
INTERRUPTED = "Interrupted"
"""Reason of a call that was not made or not retried: the command was asked to end."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
CONNECTION_REFUSED, UNKNOWN_HOST = "ConnectionRefused", "UnknownHost"
"""Kinds of calls for which nothing listens at the address."""
LONGEST_RETRY_AFTER_S = 300.0
"""A provider that asks for a longer wait has no quota left today."""
SHORTEST_ASKED_S = 1.0
"""A shorter wait that a provider asks for counts as an attempt: it may ask for it for ever."""


class CallError(Exception):
    """A call that failed without an answer.

    Parameters
    ----------
    kind : str
        Class of the failure, for example `RateLimitError`; never the provider's text, which may repeat the prompt or a key.
    status : int or None
        HTTP status; None if there was no reply at all (no connection, deadline) or none that can be read.
    retry_after_s : float or None
        Wait requested by the provider, in seconds.
    final : bool
        True if the same call cannot succeed later, whatever its status.
    sent : bool
        True if the provider may have received the call, and so may charge it although nothing came back.
    cause : str
        Likely reason, in words of `models.causes`; empty if it is not recognised.
    """

    def __init__(
        self,
        kind: str,
        status: int | None = None,
        retry_after_s: float | None = None,
        *,
        final: bool = False,
        sent: bool = True,
        cause: str = "",
    ) -> None:
        super().__init__(f"{kind} ({'no status' if status is None else status}){f': {cause}' if cause else ''}")
        self.kind, self.status, self.cause = kind, status, cause
        self.retry_after_s = retry_after_s
        self.sent = sent
        self._refused = status is not None and status >= 300
        self.perhaps_paid = sent and not self._refused
        self._final = final

    @property
    def may_pass_later(self) -> bool:
        """True if the same call may succeed later."""
        status = self.status or 0
        return not self._final and (not self._refused or status in RETRIED or (status >= 500 and status not in NEVER))


class GaveUpError(Exception):
    """A call that failed for good after `attempts` attempts, of which the provider may have received `sent`.

    A call without a reply may have been charged all the same (`perhaps_paid`).
    """

    def __init__(self, last: CallError, attempts: int, *, sent: int = 0) -> None:
        super().__init__(str(last))
        self.attempts = attempts
        self.sent = sent
        self.kind, self.status, self.cause = last.kind, last.status, last.cause
        self.perhaps_paid = last.perhaps_paid and attempts > 0


class AttemptPolicy(Protocol):
    """Conditions of an attempt: the rate limits of its group, and its money."""

    async def enter(self) -> None:
        """Wait until the attempt may be sent; CallError if the group is closed."""
        ...

    def leave(self, error: CallError | None, seconds: float) -> None:
        """Note the end of an attempt, its failure (None: it was answered), and how long it took."""
        ...

    def pause(self, seconds: float) -> None:
        """Make the whole group wait."""
        ...

    def may_retry(self, error: CallError) -> bool:
        """Return True if there is money for another attempt after this failure."""
        ...


class OpenGate:
    """A gate without limits or costs."""

    async def enter(self) -> None:
        """Return at once."""

    def leave(self, error: CallError | None, seconds: float) -> None:
        """Do nothing: nothing is counted."""

    def pause(self, seconds: float) -> None:
        """Do nothing: there is no group."""

    def may_retry(self, error: CallError) -> bool:
        """Return True: no attempt costs anything."""
        return True


OPEN = OpenGate()


@dataclass(frozen=True)
class RetriedCall(Generic[T]):
    """An answer, the attempts that it took, those of them that the provider may have received, and the seconds that the last one took."""

    answer: T
    attempts: int
    sent: int
    seconds: float


async def answer_with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    max_attempts: int,
    timeout_s: float | None,
    jitter: random.Random,
    stop: asyncio.Event,
    deadline_s: float | None = None,
    gate: AttemptPolicy = OPEN,
) -> RetriedCall[T]:
    """Call until there is an answer, by the policy above; GaveUpError if there is none."""
    ends, error, sent = math.inf, CallError(INTERRUPTED, final=True, sent=False), 0
    left, asked_s = max_attempts, 0.0
    for attempt in itertools.count(1):
        # 1. wait for the rate limits
        try:
            await gate.enter()
        except CallError as closed:
            raise GaveUpError(closed, attempt - 1, sent=sent) from None
        # 2. call, at most until the deadline, which starts with the first attempt
        start = time.monotonic()
        if attempt == 1 and deadline_s is not None:
            ends = start + deadline_s
        failed: CallError | None = CallError(INTERRUPTED, final=True, sent=False)
        try:
            if stop.is_set() or start >= ends:
                raise GaveUpError(error, attempt - 1, sent=sent)
            answer = await asyncio.wait_for(call(), _shorter(timeout_s, ends - start))
            failed = None
            return RetriedCall(answer, attempt, sent + 1, time.monotonic() - start)
        except TimeoutError:
            error = failed = CallError("Timeout")
        except CallError as failure:
            error = failed = failure
        finally:
            gate.leave(failed, time.monotonic() - start)
        sent += error.sent
        # 3. wait as long as the provider asks, at least the backoff with its jitter of 50 to 100 %
        asked = error.retry_after_s or 0.0
        wait_s = max(asked, min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)) * (0.5 + jitter.random() / 2))
        if asked or error.status == TOO_MANY:
            gate.pause(wait_s)
        asked_s += wait_s
        left -= asked < SHORTEST_ASKED_S or asked_s > LONGEST_RETRY_AFTER_S
        hopeless = not error.may_pass_later or left <= 0 or asked > LONGEST_RETRY_AFTER_S or time.monotonic() + wait_s >= ends
        # 4. give up, or sleep and try again if there is money for it
        if hopeless or stop.is_set() or not gate.may_retry(error):
            raise GaveUpError(error, attempt, sent=sent)
        await interruptible_sleep(wait_s, stop)
    raise AssertionError


def _shorter(timeout_s: float | None, left_s: float) -> float | None:
    shorter = left_s if timeout_s is None else min(timeout_s, left_s)
    return None if math.isinf(shorter) else shorter


async def interruptible_sleep(seconds: float, stop: asyncio.Event) -> None:
    """Sleep, but return as soon as `stop` is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
