"""Read a provider's reply: its answers, and why they ended."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from neuralmedbench.models.api.usage import USAGE, read_usage, valid_usage
from neuralmedbench.models.causes import ERROR_REPLY, NO_CHOICES, cause_of
from neuralmedbench.models.protocol import Answer
from neuralmedbench.models.retry import CallError
from neuralmedbench.records.usage import Usage

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


THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
"""Reasoning that a server leaves in the answer; if the answer was cut off within it, the end tag is missing."""


LONGEST_NAME = 200

LONGEST_ANSWER = 1_000_000
"""Characters that are kept of an answer; one that is longer counts as cut off. An answer of 100,000 tokens has about half as many."""

STATUS = rf"[45]\d\d:?\s+(?:{'|'.join(status.phrase for status in HTTPStatus if status >= 400)})"
TRANSPORT = (
    "rate limit|too many requests|quota exceeded|upstream|bad gateway|gateway time-?out|service unavailable|internal server error"
    "|server is overloaded|request timed out|connection (?:reset|refused|error|timed out)"
)
ERROR_TEXT = re.compile(
    rf"\s*(?:(?:HTTP/[\d.]+\s+|error:?\s+)?{STATUS}\.?|error:[^\n]{{0,80}}\b(?:{TRANSPORT})\b[^\n]{{0,200}}"
    rf"|(?:<!doctype html[^>]*>\s*)?<html\b.{{0,2000}}?<title>\s*{STATUS}\s*</title>.*)\s*",
    re.IGNORECASE | re.DOTALL,
)
"""Messages of gateways that come in place of an answer, with status 200: a status line, an error page, or one line `Error: ...` about the
transport. Only whole texts that no model would give as an answer."""


def answers_of(reply: Any, body: bytes, key: str) -> tuple[Answer, ...]:
    """Read the answers of a reply, in the order of their numbers; CallError if it has none.

    Parameters
    ----------
    reply : litellm.ModelResponse
        The reply as parsed by litellm.
    body : bytes
        The raw reply, because litellm renames some finish reasons (a failure becomes `stop`) and reports 0 tokens where the provider
        reported none.
    key : str
        The API key that was sent, or empty; a server may repeat it, and it must not reach the ledger.
    """
    raw = reply_object(body)
    usage, total = read_usage(raw, wrote=any(map(_wrote, reply.choices)), parsed=getattr(reply, "usage", None))
    # what a call counted for all its samples stands with the first one
    of_others = Usage(prompt_tokens=0, completion_tokens=0, service_tier=usage.service_tier)
    head: dict[str, Any] = {
        "served_model": _scrubbed(raw.get("model") or raw.get("modelVersion"), key)[:LONGEST_NAME],
        "fingerprint": _scrubbed(raw.get("system_fingerprint"), key)[:LONGEST_NAME],
    }
    answers: list[Answer] = []
    for choice, row in _in_order(reply.choices, raw):
        reason = _end(row) or str(choice.finish_reason or "")
        (text, thoughts), refusal = _parts(choice.message), (row.get("message") or {}).get("refusal") or ""
        if reason.lower() in BROKEN or row.get("error") or _is_error(text):  # dropped, so the engine asks for this sample again
            continue
        if len(text) > LONGEST_ANSWER:
            text, reason = text[:LONGEST_ANSWER], "length"
        state = _state(text or thoughts, reason.lower(), str(choice.finish_reason), refused=bool(refusal))
        # reasoning alone refuses nothing; it is kept in place of the answer, and nothing is read from it
        text = text or (thoughts[:LONGEST_ANSWER] if state == "ok" else refusal)
        answers.append(
            Answer(
                text=_scrubbed(text, key),
                state=state,
                finish_reason=_scrubbed(reason, key)[:LONGEST_NAME],
                total_tokens=None if answers else total,
                token_logprobs=_token_logprobs(choice),
                **head,
                **vars(of_others if answers else usage),
            )
        )
    if not answers:
        raise CallError("BrokeOff" if reply.choices else "EmptyReply")
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


def _state(text: str, reason: str, mapped: str, *, refused: bool) -> str:
    if reason in CUT or mapped == "length":
        return "truncated"
    return "refused" if refused or reason in REFUSED or mapped == "content_filter" or not text.strip() else "ok"


def _is_error(text: str) -> bool:
    """Return True if a text is the error message of a gateway and not an answer."""
    if ERROR_TEXT.fullmatch(text):
        return True
    value = reply_object(text.encode("utf-8", "replace")) if text.lstrip().startswith('{"error"') else {}
    return set(value) == {"error"} and isinstance(value["error"], dict) and "message" in value["error"]


def _in_order(choices: Sequence[Any], raw: Mapping[str, Any]) -> list[tuple[Any, Mapping[str, Any]]]:
    """Pair litellm's choices with the provider's raw ones, in the provider's numbering (litellm renumbers them)."""
    rows = raw.get("choices") or raw.get("candidates") or [raw]  # OpenAI's form, Gemini's, Anthropic's
    rows = rows if isinstance(rows, list) and len(rows) == len(choices) else [{}] * len(choices)
    ordered = sorted(range(len(choices)), key=lambda place: rows[place].get("index") or 0)
    return [(choices[place], rows[place]) for place in ordered]


def _end(row: Mapping[str, Any]) -> str:
    return str(row.get("finish_reason") or row.get("finishReason") or row.get("stop_reason") or "")


def _parts(message: Any) -> tuple[str, str]:
    """Return the answer without reasoning, whether the server left it in the text or litellm moved it out, and the reasoning between tags."""
    text, moved = message.content or "", getattr(message, "reasoning_content", None) or ""
    if found := THOUGHTS.match(text):
        return text[found.end() :], found[0]
    return (text.lstrip(), f"<think>{moved}</think>") if moved else (text, "")


def _wrote(choice: Any) -> bool:
    message = choice.message
    return any(getattr(message, name, None) for name in ("content", "refusal", "reasoning_content", "tool_calls"))


def _token_logprobs(choice: Any) -> tuple[float, ...]:
    content = getattr(getattr(choice, "logprobs", None), "content", None) or ()
    values = tuple(float(token.logprob) for token in content)
    return values if all(map(math.isfinite, values)) else ()


def _scrubbed(words: Any, key: str) -> str:
    text = str(words or "")
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
    """Return a choice whose message is one text; unchanged unless all parts of its content are texts."""
    if not isinstance(row, dict) or not isinstance(message := row.get("message"), dict):
        return row
    parts = message.get("content")
    if not isinstance(parts, list) or not parts:
        return row
    texts = [
        str(part["text"]) for part in parts if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    return {**row, "message": {**message, "content": "".join(texts)}} if len(texts) == len(parts) else row


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
