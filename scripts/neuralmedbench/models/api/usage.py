"""What a reply says of its own tokens: it decides about money, so that it is trusted only where it can be true."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from neuralmedbench.records.responses import token_count

USAGE = ("usage", "usageMetadata")
"""Where OpenAI and Anthropic, and where Google put it."""
COUNTS = ("tokens", "TokenCount")
"""How the names of counts end; speeds and prices stand beside them (`total_tokens_per_sec`)."""
LONGEST_NUMBER = 40
"""Digits of a whole number that is read as one; Python refuses to read one of 5,000 digits, and with it the reply."""


def reply_object(body: bytes) -> dict[str, Any]:
    """Decode a reply; empty when it is no JSON object."""
    try:
        value = json.loads(body, parse_int=lambda digits: int(digits) if len(digits) <= LONGEST_NUMBER else float(digits))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def tokens_of(raw: Mapping[str, Any], read: Any, *, wrote: bool) -> tuple[int | None, int | None, int | None]:
    """Give the tokens of the prompt, of the answers, and of both together where the provider counts them together only."""
    usage = next((raw[name] for name in USAGE if raw.get(name)), None)
    if not isinstance(usage, dict) or not _own_counts_hold(usage):
        return None, None, None
    prompt = token_count(getattr(read, "prompt_tokens", None)) or token_count(usage.get("input_tokens")) or None
    completion = token_count(getattr(read, "completion_tokens", None)) or token_count(usage.get("output_tokens")) or (None if wrote else 0)
    total = token_count(usage.get("total_tokens")) or token_count(usage.get("totalTokenCount")) or 0
    if prompt is None and completion is None:
        return None, None, total or None
    if prompt is None:
        prompt = max(0, total - (completion or 0)) or None
    elif completion is None:
        completion = max(0, total - prompt) or None
    return prompt, completion, None


def legible(body: bytes) -> bytes:
    """Give a reply without the statistics that cannot be read: litellm would throw the answer away with them, and it is paid for.

    Parameters
    ----------
    body : bytes
        The reply.

    Returns
    -------
    bytes
        The same bytes, unless its usage or the probabilities of its tokens cannot be read; then those are left out.
    """
    raw = reply_object(body)
    changed: dict[str, Any] = {name: kept for name in USAGE if name in raw and (kept := _legible_usage(raw[name])) != raw[name]}
    rows = raw.get("choices")
    if isinstance(rows, list) and not all(map(_has_legible_logprobs, rows)):
        changed["choices"] = [row if _has_legible_logprobs(row) else {**row, "logprobs": None} for row in rows]
    return json.dumps(raw | changed).encode() if changed else body


def _legible_usage(usage: Any) -> dict[str, Any]:
    if not isinstance(usage, dict) or not _own_counts_hold(usage):
        return {}
    return {name: value for name, value in usage.items() if value is not None and (not isinstance(value, dict | list) or _holds(value))}


def _own_counts_hold(usage: Mapping[str, Any]) -> bool:
    return all(_is_count(name, value) for name, value in usage.items() if not isinstance(value, dict | list) or name.endswith(COUNTS))


def _holds(details: Any) -> bool:
    """Whether all counts in the details of a usage are counts."""
    if isinstance(details, dict):
        return all(_holds(value) if isinstance(value, dict | list) else _is_count(name, value) for name, value in details.items())
    return all(map(_holds, details)) if isinstance(details, list) else True


def _is_count(name: str, value: Any) -> bool:
    return value is None or not name.endswith(COUNTS) or token_count(value) is not None


def _has_legible_logprobs(row: Any) -> bool:
    from litellm.types.utils import ChoiceLogprobs
    from pydantic import ValidationError

    if not isinstance(row, dict) or not isinstance(row.get("logprobs"), dict):
        return True
    try:
        ChoiceLogprobs(**row["logprobs"])
    except (ValidationError, TypeError):
        return False
    return True
