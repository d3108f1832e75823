"""One policy for calls that fail on their way: what is tried again, how often, after how long."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from neuralmedbench.models.protocol import Answer

RETRIED = frozenset({408, 409, 425, 429})
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
LONGEST_RETRY_AFTER_S = 300.0
"""A provider that asks for more patience than this has no quota left today."""


class CallError(Exception):
    """A call that failed on its way.

    Parameters
    ----------
    kind : str
        Class of the failure, for example `RateLimitError`; never the provider's text, which may repeat the prompt or a key.
    status : int or None
        HTTP status; None when there was no answer at all (no connection, deadline).
    retry_after_s : float or None
        What the provider asked for.
    """

    def __init__(self, kind: str, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(f"{kind} ({'no status' if status is None else status})")
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed later."""
        return self.status is None or self.status in RETRIED or self.status >= 500


class GaveUpError(Exception):
    """A call that failed for good after so many attempts; when nothing came back it may have been charged all the same."""

    def __init__(self, last: CallError, attempts: int) -> None:
        super().__init__(str(last))
        self.attempts = attempts
        self.perhaps_paid = last.status is None


async def answer_with_retries(
    call: Callable[[], Awaitable[Answer]], *, max_attempts: int, timeout_s: float, jitter: random.Random
) -> tuple[Answer, int, float]:
    """Call until there is an answer.

    Parameters
    ----------
    call : callable
        Makes one attempt.
    max_attempts : int
        Attempts at most.
    timeout_s : float
        Deadline of one attempt.
    jitter : random.Random
        Source of the random part of a wait; it never reaches an answer.

    Returns
    -------
    tuple
        The answer, the number of attempts, and the seconds that the last one took.

    Raises
    ------
    GaveUpError
        If the failure will not pass, or the attempts are used up.

    Notes
    -----
    408, 409, 425, 429, every 5xx, a lost connection and a deadline are tried again; other 4xx never. The wait is the
    longer of what the provider asks for and a doubling wait with jitter.
    """
    for attempt in range(1, max_attempts + 1):
        start = time.monotonic()
        try:
            answer = await asyncio.wait_for(call(), timeout_s)
        except TimeoutError:
            error = CallError("Timeout")
        except CallError as failure:
            error = failure
        else:
            return answer, attempt, time.monotonic() - start
        asked = error.retry_after_s or 0.0
        if not error.passing or attempt == max_attempts or asked > LONGEST_RETRY_AFTER_S:
            raise GaveUpError(error, attempt)
        doubling = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)) * (0.5 + jitter.random() / 2)
        await asyncio.sleep(max(asked, doubling))
    message = "max_attempts must be at least 1"
    raise ValueError(message)
