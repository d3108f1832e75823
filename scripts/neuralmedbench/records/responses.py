"""Responses: the answers of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from neuralmedbench.records.usage import Usage

SCHEMA_VERSION = 5


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
THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.IGNORECASE | re.DOTALL)
"""Thoughts between tags, which are no part of an answer."""


@dataclass(frozen=True, kw_only=True)
class SentCall(Usage):
    """One call of a sample: what was sent to one host in one day, and what its answer cost.

    Requests of the same call that failed earlier, on another day or at another host, are records of their own with the same key.

    Attributes
    ----------
    key : str
        Equal for equal calls, which were made once however many samples share them: other samples, arms that begin a dialogue alike.
    requests : int
        HTTP requests that the host may have received, retries included; 0 if they are counted with another sample of the same call.
    answered : bool
        False if none of these requests was answered.
    pictures, characters : int
        Pictures and length of the text in one of these requests.
    prompt_tokens, ..., service_tier
        As in `records.usage.Usage`; None if no answer came.
    cost_usd : float or None
        By the prices in the model's YAML file; None if unknown.
    destination, called_on : str
        Host (or `local`), and day of the last request (UTC, YYYY-MM-DD).
    """

    key: str
    requests: int
    answered: bool = True
    pictures: int = 0
    characters: int = 0
    cost_usd: float | None = None
    destination: str = ""
    called_on: str = ""


@dataclass(frozen=True, kw_only=True)
class Response:
    """One answer, keyed by (item_id, arm, strategy, model, revision, repeat).

    Attributes
    ----------
    text : str
        The last answer.
    turns : tuple of str
        All answers of a dialogue in order; the last one equals `text`. An earlier answer that the request shows is not among them.
    call_keys : tuple of str
        Keys in the ledger, one per call; also those of the earlier answer that the request shows (`Request.earlier`).
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
    calls : tuple of SentCall
        Its calls with what each of them sent, failed ones included; sums over answers count a call once (`distinct_calls`).
    informed : tuple of str
        Where a language model told the facts (`Inquiry.informant`): its replies in order; empty ones were cut off or refused.
    informant_calls : tuple of SentCall
        The calls to it, as `calls`.
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
    calls: tuple[SentCall, ...] = ()
    informed: tuple[str, ...] = ()
    informant_calls: tuple[SentCall, ...] = ()


def is_only_thoughts(text: str) -> bool:
    """Return True if a text holds thoughts between tags, closed or not, and no answer behind them.

    Examples
    --------
    >>> is_only_thoughts("<think>B or C?"), is_only_thoughts("<think>B or C?</think> C"), is_only_thoughts("")
    (True, False, False)
    """
    return bool(text.strip()) and not THINKING.sub("", text).strip()


def is_cut_in_thought(state: str, text: str) -> bool:
    """Return True if an answer met the limit of tokens before it began: the model was still thinking.

    Examples
    --------
    >>> is_cut_in_thought("truncated", ""), is_cut_in_thought("truncated", "<think>B or"), is_cut_in_thought("truncated", "It is")
    (True, True, False)
    """
    return state == ResponseState.TRUNCATED and (not text.strip() or is_only_thoughts(text))


def current_rows(rows: Sequence[Response]) -> list[Response]:
    """Return the responses of the current revision: the first rows of a model's table, before those of the previous revision."""
    return [row for row in rows if row.revision == rows[0].revision]


def distinct_calls(rows: Iterable[Response]) -> list[SentCall]:
    """Return the calls of one model on one benchmark, each once."""
    return list(dict.fromkeys(call for row in rows for call in row.calls or _as_one_call(row)))


def _as_one_call(row: Response) -> tuple[SentCall, ...]:
    """Return a row of a former version, which has no `calls`, as one call; none if nothing was sent."""
    sent = bool(row.attempts) and (bool(row.destination or row.call_keys) or row.state is not ResponseState.FAILED)
    if not sent and not row.call_keys:
        return ()
    call = SentCall(
        key=" ".join(row.call_keys) or " ".join((row.item_id, row.arm, row.strategy, str(row.repeat))),
        requests=row.attempts if sent else 0,
        answered=row.state not in MISSING_STATES,
        pictures=row.images_sent,
        characters=row.characters_sent,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cost_usd=row.cost_usd,
        destination=row.destination,
        called_on=row.called_on,
    )
    return (call,)
