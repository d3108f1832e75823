"""Read a provider's reply: its answers, and why they ended."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from neuralmedbench.models.api.gateway_messages import is_gateway_message
from neuralmedbench.models.api.usage import USAGE, read_usage, valid_usage
from neuralmedbench.models.causes import ERROR_REPLY, FILTERED, NO_CHOICES, cause_of
from neuralmedbench.models.protocol import Answer
from neuralmedbench.models.retry import CallError
from neuralmedbench.records.responses import Usage
from neuralmedbench.records.thoughts import OPENING, answer_of, is_only_thoughts

CUT = frozenset({"length", "max_tokens", "model_length", "model_context_window_exceeded", "max_output_tokens", "compaction"})
"""Finish reasons of an answer cut at the configured limit or at the model's own."""


REFUSED = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "recitation", "language", "blocklist", "prohibited_content", "spii"}
    | {"sensitive", "guardrail_intervened", "error_toxic", "image_safety", "image_prohibited_content"}
)
"""Finish reasons of an answer refused by the model or by its provider's filter."""


BROKEN = frozenset(
    {"error", "network_error", "insufficient_system_resource", "engine_overloaded", "failed", "abort", "aborted", "cancelled"}
    | {"malformed_response"}
)
"""Finish reasons of an answer that broke off because the provider failed; litellm reports it as complete (`stop`)."""


UNREADABLE = "Unreadable"
"""Kind of a reply that is not one of the protocol."""

WRITTEN = ("content", "refusal", "reasoning_content", "reasoning", "tool_calls")
"""Fields of a message that hold what was generated."""

CATEGORY_KEYS = frozenset({"category", "categories", "reasons", "blockReason"})
CATEGORY = re.compile(r"[A-Za-z][\w./-]{1,40}")
"""A name of what a provider refuses, such as `bio`, `violence` or `HARM_CATEGORY_DANGEROUS_CONTENT`."""

LONGEST_NAME = 200

LONGEST_ANSWER = 1_000_000
"""Characters that are kept of an answer; one that is longer counts as cut off. An answer of 100,000 tokens has about half as many."""


@dataclass(frozen=True, kw_only=True)
class ReplyChoice:
    """One answer of a reply, in whatever protocol it came.

    Attributes
    ----------
    content : str
        The answer, perhaps with reasoning between tags at its beginning.
    reasoning : str
        Reasoning that came apart from the answer.
    refusal : str
        The words in which the model refused.
    finish_reason, mapped_reason : str
        Why it ended, in the provider's own word, and in that of litellm if it read the reply.
    token_logprobs : tuple of float
        As in `models.protocol.Answer`.
    broken : bool
        True if the provider reported an error with it.
    wrote : bool
        True if the model generated anything.
    """

    content: str
    reasoning: str = ""
    refusal: str = ""
    finish_reason: str = ""
    mapped_reason: str = ""
    token_logprobs: tuple[float, ...] = ()
    broken: bool = False
    wrote: bool = False


def choices_of(body: bytes) -> list[ReplyChoice]:
    """Read the choices of a reply in OpenAI's protocol, in the order of their numbers; CallError if it has none that can be read."""
    raw = reply_object(body)
    rows = raw.get("choices")
    if not isinstance(rows, list) or raw.get("error"):
        raise CallError(UNREADABLE)
    return [_choice(row) for row in _numbered(rows)]


def _choice(row: Any) -> ReplyChoice:
    message = row.get("message") if isinstance(row, dict) else None
    if not isinstance(message, dict) or (joined := _joined(message.get("content"))) is None:
        raise CallError(UNREADABLE)
    content, apart = joined
    reasoning = message.get("reasoning_content", message.get("reasoning")) or apart
    return ReplyChoice(
        content=content,
        reasoning=reasoning if isinstance(reasoning, str) else "",
        refusal=str(message.get("refusal") or ""),
        finish_reason=str(row.get("finish_reason") or ""),
        token_logprobs=_logprobs(row.get("logprobs")),
        broken=bool(row.get("error")),
        wrote=any(map(message.get, WRITTEN)),
    )


def _joined(content: Any) -> tuple[str, str] | None:
    """Return the content of a message as one text, and the thoughts among its parts; None unless it is a text or a list of these."""
    if not isinstance(content, list):
        return (content or "", "") if content is None or isinstance(content, str) else None
    texts: dict[str, list[str]] = {"text": [], "thinking": []}
    for part in content:
        kind = str(part.get("type")) if isinstance(part, dict) else ""
        words = part.get(kind) if kind in texts else None
        if isinstance(words, list) and kind == "thinking":  # Mistral's thoughts are texts in their turn
            words = (_joined(words) or ("",))[0]
        if not isinstance(words, str):
            return None
        texts[kind].append(words)
    return "".join(texts["text"]), "".join(texts["thinking"])


def _logprobs(value: Any) -> tuple[float, ...]:
    """Return the log-probabilities of the tokens of a choice; empty unless all of them are finite numbers."""
    tokens = value.get("content") if isinstance(value, dict) else None
    found = [token.get("logprob") if isinstance(token, dict) else None for token in tokens] if isinstance(tokens, list) else []
    values = tuple(float(one) for one in found if isinstance(one, int | float) and not isinstance(one, bool))
    return values if len(values) == len(found) and all(map(math.isfinite, values)) else ()


def choices_of_litellm(reply: Any, body: bytes) -> list[ReplyChoice]:
    """Return the choices of a reply that litellm has read (`litellm.ModelResponse`), as in `choices_of`.

    From the raw reply come what litellm renames (a failure becomes `stop`), renumbers or leaves out.
    """
    raw = reply_object(body)
    rows = raw.get("choices") or raw.get("candidates") or [raw]  # OpenAI's form, Gemini's, Anthropic's
    if not isinstance(rows, list) or len(rows) != len(reply.choices) or not all(isinstance(row, dict) for row in rows):
        rows = [{} for _ in reply.choices]
    read = {id(row): choice for row, choice in zip(rows, reply.choices, strict=True)}
    return [_read_choice(read[id(row)], row) for row in _numbered(rows)]


def answers_of(choices: Sequence[ReplyChoice], body: bytes, key: str, marks: Sequence[str] = ()) -> tuple[Answer, ...]:
    """Turn the choices of a reply into answers; CallError if none of them is one.

    Parameters
    ----------
    choices : sequence of ReplyChoice
        The choices, in the order of their numbers.
    body : bytes
        The raw reply.
    key : str
        The API key that was sent, or empty; a server may repeat it, and it must not reach the ledger.
    marks : sequence of str
        `thought_marks` of the model.
    """
    raw = reply_object(body)
    usage, total = read_usage(raw, wrote=any(choice.wrote for choice in choices))
    # what a call counted for all its samples stands with the first one
    of_others = Usage(prompt_tokens=0, completion_tokens=0, service_tier=usage.service_tier)
    head: dict[str, Any] = {
        "served_model": _scrubbed(raw.get("model") or raw.get("modelVersion"), key)[:LONGEST_NAME],
        "fingerprint": _scrubbed(raw.get("system_fingerprint"), key)[:LONGEST_NAME],
    }
    answers: list[Answer] = []
    cause = ""
    for choice in choices:
        reason = choice.finish_reason or choice.mapped_reason
        cut = reason.lower() in CUT or choice.mapped_reason == "length"
        text, thought = answer_of(choice.content, marks, reasoning=choice.reasoning, cut=cut)
        is_message = is_gateway_message(text)
        if reason.lower() in BROKEN or choice.broken or is_message:  # dropped, so the engine asks for this sample again
            cause = ERROR_REPLY.words if is_message else cause
            continue
        if len(text) > LONGEST_ANSWER:
            text, reason = text[:LONGEST_ANSWER], "length"
        state = _state(text, reason.lower(), choice.mapped_reason, refused=bool(choice.refusal))
        if state == "refused":
            reason = _with_categories(reason, raw)
        if state != "ok" and is_only_thoughts(text or OPENING):
            text = choice.refusal
        answers.append(
            Answer(
                text=_scrubbed(text, key),
                state=state,
                thought=thought,
                finish_reason=_scrubbed(reason, key)[:LONGEST_NAME],
                total_tokens=None if answers else total,
                token_logprobs=choice.token_logprobs,
                **head,
                **vars(of_others if answers else usage),
            )
        )
    if not answers:
        raise CallError("BrokeOff" if choices else "EmptyReply", cause=cause)
    return tuple(answers)


def reply_without_answer(body: bytes, status: int) -> CallError | None:
    """Tell why a reply that should be one has no answer: it is an error, or it has no choices; None if it has some, or is not JSON."""
    raw = reply_object(body)
    # an error of its own, of vLLM (`object`) or of Anthropic (`type`)
    error = bool(raw.get("error") or raw.get("errors")) or "error" in (raw.get("object"), raw.get("type"))
    if not error and (any(raw.get(name) and isinstance(raw[name], list) for name in ANSWERS) or not (raw or body.strip() == b"{}")):
        return None
    known = cause_of(status, body)  # then the same call fails again, as it does after a status that says so
    cause = known or (ERROR_REPLY if error else NO_CHOICES).words
    return CallError("ErrorReply" if error else "EmptyReply", status, cause=cause, final=bool(known))


def refusal_of(error: CallError, body: bytes) -> Answer | None:
    """Return the refusal of a content filter that rejected a call, with its categories; None if the call failed for another reason."""
    if error.cause != FILTERED.words or (error.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    return Answer("", "refused", _with_categories("content_filter", reply_object(body)))


def _with_categories(reason: str, reply: Any) -> str:
    """Return the reason of a refusal with the provider's names of what it refuses; nothing of a sentence."""
    names = [name for name in dict.fromkeys(_categories(reply)) if CATEGORY.fullmatch(name)]
    return f"{reason}: {', '.join(names)}" if names else reason


def _categories(value: Any, depth: int = 8) -> Iterator[str]:
    """Yield what a reply names as `category` or `reasons`, or marks as `filtered` or `blocked`."""
    parts = [("", part) for part in value] if isinstance(value, list) else []
    if isinstance(value, dict) and (value.get("blocked") is True or "probability" not in value):
        parts = list(value.items())
    for name, part in parts if depth else ():
        if isinstance(part, dict) and part.get("filtered") is True:
            yield name
        elif name in CATEGORY_KEYS:
            yield from (str(entry) for entry in (part if isinstance(part, list) else [part]) if entry)
        elif name not in WRITTEN:
            yield from _categories(part, depth - 1)


def _state(text: str, reason: str, mapped: str, *, refused: bool) -> str:
    if reason in CUT or mapped == "length":
        return "truncated"
    return "refused" if refused or reason in REFUSED or mapped == "content_filter" or not text.strip() else "ok"


def _numbered(rows: Sequence[Any]) -> list[Any]:
    """Sort the choices of a reply by the provider's numbers."""
    return sorted(rows, key=_number)


def _number(row: Any) -> int:
    number = row.get("index") if isinstance(row, dict) else None
    return number if isinstance(number, int) else 0


def _read_choice(choice: Any, row: Mapping[str, Any]) -> ReplyChoice:
    """Return a choice as litellm read it, with what the raw one says."""
    message, logprobs = choice.message, getattr(getattr(choice, "logprobs", None), "content", None) or ()
    values = tuple(float(token.logprob) for token in logprobs)
    said = row.get("message")
    return ReplyChoice(
        content=message.content or "",
        reasoning=getattr(message, "reasoning_content", None) or "",
        refusal=str((said.get("refusal") if isinstance(said, dict) else "") or ""),
        finish_reason=_end(row),
        mapped_reason=str(choice.finish_reason or ""),
        token_logprobs=values if all(map(math.isfinite, values)) else (),
        broken=bool(row.get("error")),
        wrote=any(getattr(message, name, None) for name in WRITTEN),
    )


def _end(row: Mapping[str, Any]) -> str:
    return str(row.get("finish_reason") or row.get("finishReason") or row.get("stop_reason") or "")


def _scrubbed(words: Any, key: str) -> str:
    text = str(words or "").encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be kept
    return text.replace(key, "[key]") if key else text


ANSWERS = ("choices", "candidates", "content")
"""Field of the answers: of OpenAI, of Google, of Anthropic."""

LONGEST_NUMBER = 40
"""Integers with more digits are read as floats: Python refuses to parse an integer of 5,000 digits, and with it the reply."""


def reply_object(body: bytes) -> dict[str, Any]:
    """Decode a reply; empty if it is not a JSON object."""
    try:
        value = json.loads(body, parse_int=lambda digits: int(digits) if len(digits) <= LONGEST_NUMBER else float(digits))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def readable_by_litellm(body: bytes) -> bytes:
    """Remove invalid token counts and log-probabilities from a reply and join texts in parts, because litellm would discard the paid answer.

    Parameters
    ----------
    body : bytes
        The reply.

    Returns
    -------
    bytes
        The same bytes, unless usage or log-probabilities are invalid, or the content of a message is a list of texts (`[{type: text, text}]`);
        then the reply without those, and with their joined text.
    """
    raw = reply_object(body)
    changed: dict[str, Any] = {name: valid for name in USAGE if name in raw and (valid := valid_usage(raw[name])) != raw[name]}
    rows = raw.get("choices")
    if isinstance(rows, list):
        readable = [row if _has_valid_logprobs(row) else {**row, "logprobs": None} for row in map(_with_joined_text, rows)]
        changed |= {"choices": readable} if readable != rows else {}
    return json.dumps(raw | changed).encode() if changed else body


def _with_joined_text(row: Any) -> Any:
    """Return a choice whose message is one text; unchanged unless all parts of its content are texts or thoughts."""
    if not isinstance(row, dict) or not isinstance(message := row.get("message"), dict):
        return row
    parts = message.get("content")
    if not isinstance(parts, list) or not parts or (joined := _joined(parts)) is None:
        return row
    content, thoughts = joined
    return {**row, "message": {**message, "content": content} | ({"reasoning_content": thoughts} if thoughts else {})}


def _has_valid_logprobs(row: Any) -> bool:
    from litellm.types.utils import ChoiceLogprobs
    from pydantic import ValidationError

    if not isinstance(row, dict) or not isinstance(row.get("logprobs"), dict):
        return True
    try:
        ChoiceLogprobs(**row["logprobs"])
    except (ValidationError, TypeError):
        return False
    return True
