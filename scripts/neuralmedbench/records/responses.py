"""Responses: the answers of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

SCHEMA_VERSION = 2


class ResponseState(StrEnum):
    """Outcome of a request.

    `ok`, `refused` and `truncated` are the model's behaviour; `failed`, `over_budget` and `skipped` are not, and count as missing.
    """

    OK = "ok"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    FAILED = "failed"
    OVER_BUDGET = "over_budget"
    SKIPPED = "skipped"


MISSING_STATES = frozenset({ResponseState.FAILED, ResponseState.OVER_BUDGET, ResponseState.SKIPPED})
"""States without an answer for reasons other than the model's behaviour."""
MOST_TOKENS = 10**8
"""Largest plausible number of tokens of a call: ten times the longest context of any model (10 million), because one call may request
several samples."""


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
        Keys in the ledger, one per call.
    images_sent : int
        Number of pictures sent under the model's picture budget; also for a failed call, unless no connection was made.
    characters_sent : int
        Length of the text of the last conversation sent, including labels of pictures.
    images_downscaled : int
        Number of sent pictures that the provider downscales according to its documentation.
    destination : str
        Host of the last call: `local`, or a name; empty if nothing was sent, and in records from before this field.
    finish_reason, served_model, fingerprint : str
        As reported by the provider.
    mean_logprob : float or None
        Mean log probability of the last answer's tokens; None if not requested.
    prompt_tokens, completion_tokens : int or None
        Sums over the turns; None if one of them is unknown.
    latency_s : float or None
        Sum over the turns, without retries.
    cost_usd : float or None
        By the prices in the model's YAML file; None if a price or the number of tokens is unknown.
    attempts : int
        Number of calls, including retries; 0 if skipped.
    error : str
        Class and status code of a failure; never the provider's text.
    called_on : str
        Date of the last call, also of a failed one (UTC, YYYY-MM-DD).
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
    """Return a token count if it is a plausible one, an integer from 0 to `MOST_TOKENS`, else None.

    Examples
    --------
    >>> token_count(12), token_count(12.0), token_count(-1), token_count(0.5), token_count("12"), token_count(10**30)
    (12, 12, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def current_rows(rows: Sequence[Response]) -> list[Response]:
    """Return the responses of the current revision: the first rows of a model's table, before those of the previous revision."""
    return [row for row in rows if row.revision == rows[0].revision]
