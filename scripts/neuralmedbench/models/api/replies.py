"""What a provider's reply says: answers, how they ended, and what they cost."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from neuralmedbench.models.api.usage import reply_object, tokens_of
from neuralmedbench.models.control.retry import CallError
from neuralmedbench.models.protocol import Answer

CUT = frozenset({"length", "max_tokens", "model_length", "model_context_window_exceeded", "max_output_tokens", "compaction"})
"""The answer is longer than the limit that was set, or than the model can write."""
REFUSED = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "recitation", "language", "blocklist", "prohibited_content", "spii"}
    | {"sensitive", "guardrail_intervened", "error_toxic", "image_safety", "image_prohibited_content"}
)
"""The model or its provider's filter would not answer."""
BROKEN = frozenset(
    {"error", "network_error", "insufficient_system_resource", "engine_overloaded", "failed", "abort", "aborted", "cancelled"}
    | {"malformed_response"}
)
"""The provider failed in the middle: what came is half an answer, and litellm calls it a whole one (`stop`)."""
THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
"""Reasoning that a server leaves in the answer; cut off in the middle it has no end."""
LONGEST_NAME = 200


def answers_of(reply: Any, body: bytes, key: str) -> tuple[Answer, ...]:
    """Read the answers of a reply, in the order of their numbers.

    Parameters
    ----------
    reply : litellm.ModelResponse
        The reply as litellm understood it.
    body : bytes
        The reply as it came: litellm renames some ends of an answer (a failure in the middle becomes `stop`) and counts tokens as 0 where
        the provider said nothing.
    key : str
        The key that was sent, or empty; a server may repeat it, and it stands in no ledger.

    Returns
    -------
    tuple of Answer
        At least one; an answer that broke off because the provider failed is left out. The first has the tokens of all, the others 0,
        because providers count the samples of a call together.

    Raises
    ------
    CallError
        If there is no answer. The call counts as perhaps paid.
    """
    raw = reply_object(body)
    prompt, completion, total = tokens_of(raw, getattr(reply, "usage", None), wrote=any(map(_wrote, reply.choices)))
    head = {
        "served_model": _scrubbed(raw.get("model") or raw.get("modelVersion"), key)[:LONGEST_NAME],
        "fingerprint": _scrubbed(raw.get("system_fingerprint"), key)[:LONGEST_NAME],
    }
    answers: list[Answer] = []
    for choice, row in _in_order(reply.choices, raw):
        reason = _end(row) or str(choice.finish_reason or "")
        if reason.lower() in BROKEN:
            continue
        text, refusal = _text(choice.message), (row.get("message") or {}).get("refusal") or ""
        answers.append(
            Answer(
                text=_scrubbed(text or refusal, key),
                state=_state(text, reason.lower(), str(choice.finish_reason), refused=bool(refusal)),
                finish_reason=_scrubbed(reason, key)[:LONGEST_NAME],
                prompt_tokens=0 if answers else prompt,
                completion_tokens=0 if answers else completion,
                total_tokens=None if answers else total,
                token_logprobs=_token_logprobs(choice),
                **head,
            )
        )
    if not answers:
        raise CallError("BrokeOff" if reply.choices else "EmptyReply")
    return tuple(answers)


def _state(text: str, reason: str, mapped: str, *, refused: bool) -> str:
    if reason in CUT or mapped == "length":
        return "truncated"
    return "refused" if refused or reason in REFUSED or mapped == "content_filter" or not text.strip() else "ok"


def _in_order(choices: Sequence[Any], raw: Mapping[str, Any]) -> list[tuple[Any, Mapping[str, Any]]]:
    """Give the choices by the number that the provider gave each (litellm counts anew), each with what the provider wrote."""
    rows = raw.get("choices") or raw.get("candidates") or [raw]  # OpenAI's form, Gemini's, Anthropic's
    rows = rows if isinstance(rows, list) and len(rows) == len(choices) else [{}] * len(choices)
    ordered = sorted(range(len(choices)), key=lambda place: rows[place].get("index") or 0)
    return [(choices[place], rows[place]) for place in ordered]


def _end(row: Mapping[str, Any]) -> str:
    return str(row.get("finish_reason") or row.get("finishReason") or row.get("stop_reason") or "")


def _text(message: Any) -> str:
    """Give the answer without the reasoning that a server, or litellm, took out of it or left in it."""
    text = message.content or ""
    if THOUGHTS.match(text):
        text = THOUGHTS.sub("", text, count=1)
    return text.lstrip() if getattr(message, "reasoning_content", None) else text


def _wrote(choice: Any) -> bool:
    message = choice.message
    return any(getattr(message, name, None) for name in ("content", "refusal", "reasoning_content", "tool_calls"))


def _token_logprobs(choice: Any) -> tuple[float, ...]:
    content = getattr(getattr(choice, "logprobs", None), "content", None) or ()
    values = tuple(float(token.logprob) for token in content)
    return values if all(map(math.isfinite, values)) else ()


def _scrubbed(words: Any, key: str) -> str:
    said = str(words or "")
    return said.replace(key, "[key]") if key else said
