"""Responses: the answers of models, what a provider counted for a call, and the model that it served.

What was counted is paid for; a provider may serve another model under the same name from one call to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from neuralmedbench.records.thoughts import is_only_thoughts

SCHEMA_VERSION = 5
MOST_TOKENS = 10**8
"""Largest plausible number of tokens of a call: ten times the longest context of any model (10 million), because one call may request
several samples."""
LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True, order=True)
class ServedModel:
    """A model as named by the provider.

    Attributes
    ----------
    first_called_on, last_called_on : str
        Dates of its first and last answer (YYYY-MM-DD); empty if unknown.
    name, fingerprint : str
        As reported by the provider, with unprintable characters replaced.
    answers : int
        Number of its answers.
    """

    first_called_on: str
    last_called_on: str
    name: str
    fingerprint: str
    answers: int


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one call or of several; None where the provider reports no plausible count.

    Attributes
    ----------
    prompt_tokens : int or None
        All input: text and pictures, cached or not.
    completion_tokens : int or None
        All output, reasoning included.
    cached_tokens : int or None
        Part of the input that was read from the provider's cache.
    cache_write_tokens, cache_write_1h_tokens : int or None
        Parts of the input that were written to its cache, for a few minutes and for an hour; no part is in both.
    reasoning_tokens : int or None
        Part of the output that the model thought and that is no part of the answer.
    image_tokens : int or None
        Part of the input that pictures took.
    service_tier : str
        Tier at which the call was served, as the provider names it (`default`, `flex`, `batch`); empty if it names none.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    reasoning_tokens: int | None = None
    image_tokens: int | None = None
    service_tier: str = ""


COUNTS = tuple(field.name for field in fields(Usage) if field.name != "service_tier")
"""Names of its counts."""
PARTS = COUNTS[2:]
"""Counts that are part of one of the first two."""


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
ANOTHER_MODEL = "answered by another model"
"""Begins why an answer is missing that the provider gave by another model than the one asked (`served_names`)."""


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
        As in `Usage`; None if no answer came.
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
        As reported by the provider; of several calls the model of the last, or of the first by another model than the one asked.
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


def is_cut_in_thought(state: str, text: str) -> bool:
    """Return True if an answer met the limit of tokens before it began: the model was still thinking.

    Examples
    --------
    >>> is_cut_in_thought("truncated", ""), is_cut_in_thought("truncated", "<think>B or"), is_cut_in_thought("truncated", "It is")
    (True, True, False)
    """
    return state == ResponseState.TRUNCATED and (not text.strip() or is_only_thoughts(text))


def is_by_another_model(cause: str) -> bool:
    """Return True for the cause of a missing answer, or grade, that another model gave: asking again would not bring one."""
    return ANOTHER_MODEL in cause


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


def usage_of(record: Usage) -> Usage:
    """Return the usage that a record holds, such as an answer or a line of a ledger."""
    return Usage(**{field.name: getattr(record, field.name) for field in fields(Usage)})


def total_of(usages: Iterable[Usage], name: str) -> int | None:
    """Return the sum of one count; None if it is not known of all, because a partial sum would look like a saving.

    A part that is not reported counts as none where others report theirs: providers leave out a zero.
    """
    counts = [getattr(usage, name) for usage in usages]
    known = [count for count in counts if count is not None]
    return sum(known) if known and (name in PARTS or len(known) == len(counts)) else None


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


def served_by(answers: Iterable[tuple[str, str, str]]) -> list[ServedModel]:
    """Count answers by served model.

    Parameters
    ----------
    answers : iterable of (str, str, str)
        Served model, fingerprint and date of each answer. Answers without a served model (not reported, or no answer) are left out.

    Returns
    -------
    list of ServedModel
        In the order of their first answers.
    """
    days: dict[tuple[str, str], Counter[str]] = {}
    for (name, fingerprint, day), number in Counter(answers).items():
        if name:
            days.setdefault((printable_name(name), printable_name(fingerprint)), Counter())[day] += number
    return sorted(
        ServedModel(
            first_called_on=min(filter(None, by_day), default=""),
            last_called_on=max(by_day),
            name=name,
            fingerprint=fingerprint,
            answers=by_day.total(),
        )
        for (name, fingerprint), by_day in days.items()
    )


def printable_name(name: str) -> str:
    """Return a name from a provider for display in a log or on a page: printable, on one line, at most `LONGEST_NAME` characters."""
    return "".join(char if char.isprintable() else "?" for char in name[:LONGEST_NAME])
