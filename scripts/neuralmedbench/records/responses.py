"""What a model answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

SCHEMA_VERSION = 2


class ResponseState(StrEnum):
    """What became of a request.

    `ok`, `refused` and `truncated` are the model's behaviour; `failed`, `over_budget` and `skipped` are ours and
    count as missing.
    """

    OK = "ok"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    FAILED = "failed"
    OVER_BUDGET = "over_budget"
    SKIPPED = "skipped"


MISSING_STATES = frozenset({ResponseState.FAILED, ResponseState.OVER_BUDGET, ResponseState.SKIPPED})
"""States in which there is no answer because of us, not because of the model."""
MOST_TOKENS = 10**8
"""Tokens that a call can have: ten times the longest context of any model (10 million), for the samples that one call may ask for."""


@dataclass(frozen=True, kw_only=True)
class Response:
    """One answer, keyed by (item_id, arm, strategy, model, revision, repeat).

    Attributes
    ----------
    text : str
        The last answer.
    turns : tuple of str
        All answers of a dialogue in order; the last one equals `text`.
    call_keys : tuple of str
        Keys in the ledger, one a call.
    images_sent : int
        Pictures sent after the model's own picture budget; of a call that failed too, unless it never found a connection.
    characters_sent : int
        Length of the words of the last conversation that was sent, labels of pictures included.
    images_downscaled : int
        Of these the ones that the provider shrinks by its own documentation.
    destination : str
        Host that was asked last: `local`, or a name; empty when nothing was sent, or before it was kept.
    finish_reason, served_model, fingerprint : str
        What the provider said.
    mean_logprob : float or None
        Mean logarithm of the probability of the last answer's tokens; None when it was not asked for.
    prompt_tokens, completion_tokens : int or None
        Sums over the turns; None when one of them is not known.
    latency_s : float or None
        Sum over the turns, retries left out.
    cost_usd : float or None
        From the prices in the model's yaml; None when a price or the tokens are not known.
    attempts : int
        Calls made, retries counted; 0 when skipped.
    error : str
        Class and status code of a failure; never the provider's text.
    called_on : str
        Date of the last call, of one that failed too (UTC, YYYY-MM-DD).
    """

    item_id: str
    case_id: str
    patient_id: str
    benchmark: str
    arm: str
    strategy: str
    model: str
    revision: str
    repeat: int
    request_id: str
    runner: str
    state: ResponseState
    text: str = ""
    turns: tuple[str, ...] = ()
    call_keys: tuple[str, ...] = ()
    images_sent: int = 0
    finish_reason: str = ""
    served_model: str = ""
    fingerprint: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    attempts: int = 0
    error: str = ""
    called_on: str = ""
    images_downscaled: int = 0
    destination: str = ""
    characters_sent: int = 0
    mean_logprob: float | None = None


def token_count(value: object) -> int | None:
    """Read a count of tokens: a whole number from 0 to `MOST_TOKENS`; None when the value is anything else, which nobody can have counted.

    Examples
    --------
    >>> token_count(12), token_count(12.0), token_count(-1), token_count(0.5), token_count("12"), token_count(10**30)
    (12, 12, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def current_rows(rows: Sequence[Response]) -> list[Response]:
    """Keep the responses of the present revision: in the table of a model they stand first, those of the revision before behind them."""
    return [row for row in rows if row.revision == rows[0].revision]
