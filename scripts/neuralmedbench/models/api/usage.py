"""Read the usage in a provider's reply: its tokens by kind, and the service tier.

The counts decide about money, so they are used only where they can be true. Providers differ in what contains what:

- input: OpenAI and Google count cached tokens in it, Anthropic and Bedrock beside it;
- output: OpenAI, Anthropic and DeepSeek count reasoning in it, Google and xAI beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from neuralmedbench.records.responses import Usage, token_count

USAGE = ("usage", "usageMetadata")
"""Field of the token counts: of OpenAI and Anthropic, and of Google."""

NAMES = ("tokens", "TokenCount")
"""Endings of the names of counts; other names hold speeds and prices (`total_tokens_per_sec`)."""

APART = ("cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens")
"""Counts that `input_tokens` does not contain: of Anthropic, of Bedrock."""

PLACES = {
    "cached_tokens": (
        "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens cache_read_input_tokens cacheReadInputTokens"
        " cachedContentTokenCount prompt_cache_hit_tokens cached_tokens num_cached_tokens"
    ),
    "cache_write_tokens": (
        "cache_creation.ephemeral_5m_input_tokens cache_creation_input_tokens cacheWriteInputTokens"
        " prompt_tokens_details.cache_write_tokens input_tokens_details.cache_write_tokens cache_write_tokens"
    ),
    "cache_write_1h_tokens": "cache_creation.ephemeral_1h_input_tokens",
    "reasoning_tokens": (
        "completion_tokens_details.reasoning_tokens output_tokens_details.reasoning_tokens output_tokens_details.thinking_tokens"
        " thoughtsTokenCount reasoning_tokens"
    ),
    "image_tokens": "prompt_tokens_details.image_tokens input_tokens_details.image_tokens",
}
"""Where providers report each part; the first place that has a count is read."""

TRAFFIC = {"ON_DEMAND_PRIORITY": "priority", "ON_DEMAND_FLEX": "flex", "FLEX": "flex", "BATCH": "batch"}
"""Service tiers under Google's name for them (`trafficType`)."""


def read_usage(reply: Mapping[str, Any], *, wrote: bool) -> tuple[Usage, int | None]:
    """Read the usage of a reply.

    Parameters
    ----------
    reply : mapping
        The reply as the provider sent it, decoded.
    wrote : bool
        True if an answer has text or reasoning: its tokens cannot be 0.

    Returns
    -------
    usage : Usage
        None for what is absent or cannot be true. Counts of 0 for a prompt, or for an answer with text, are treated as absent.
    total : int or None
        Tokens of prompt and answers, where the provider reports only their sum.
    """
    counts = next((reply[name] for name in USAGE if reply.get(name)), None)
    tier = _tier(reply, counts)
    if not isinstance(counts, dict) or not _counts_are_valid(counts):
        return Usage(service_tier=tier), None
    parts = {name: _count(counts, *places.split()) for name, places in PLACES.items()}
    parts["image_tokens"] = parts["image_tokens"] or _of_images(counts.get("promptTokensDetails"))
    in_cache = sum(parts[name] or 0 for name in ("cached_tokens", "cache_write_tokens", "cache_write_1h_tokens"))
    prompt = _prompt(counts, in_cache) or None
    completion = _completion(counts, parts["reasoning_tokens"]) or (None if wrote else 0)
    total = _count(counts, "total_tokens", "totalTokenCount", "totalTokens") or 0
    if prompt is None and completion is None:
        return Usage(service_tier=tier), total or None
    if prompt is None:
        prompt = max(0, total - (completion or 0)) or None
    elif completion is None:
        completion = max(0, total - prompt) or None
    elif (rest := total - prompt - completion) > 0:  # counted beside both, and paid for: reasoning, seldom a cached part of the prompt
        prompt, completion = (prompt + rest, completion) if in_cache == rest > prompt else (prompt, completion + rest)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, service_tier=tier, **_possible(parts, prompt, completion)), None


def _prompt(counts: Mapping[str, Any], in_cache: int) -> int | None:
    whole = _count(counts, "prompt_tokens", "promptTokenCount")
    if whole is not None:
        return whole + (_count(counts, "toolUsePromptTokenCount") or 0)
    plain = _count(counts, "input_tokens", "inputTokens")
    return plain if plain is None or not any(name in counts for name in APART) else plain + in_cache


def _completion(counts: Mapping[str, Any], thought: int | None) -> int | None:
    if (whole := _count(counts, "completion_tokens", "output_tokens", "outputTokens")) is not None:
        return whole
    written = _count(counts, "candidatesTokenCount")
    return None if written is None and not counts.get("thoughtsTokenCount") else (written or 0) + (thought or 0)


def _possible(parts: Mapping[str, int | None], prompt: int | None, completion: int | None) -> dict[str, int | None]:
    """Return the parts that can be part of their whole; a part that is larger is not known."""
    kept = dict(parts)
    cache = [name for name in parts if name.startswith("cache")]
    if sum(parts[name] or 0 for name in cache) > (prompt or 0):
        kept |= dict.fromkeys(cache)
    for name, whole in (("image_tokens", prompt), ("reasoning_tokens", completion)):
        if (kept[name] or 0) > (whole or 0):
            kept[name] = None
    return kept


def _count(counts: Mapping[str, Any], *places: str) -> int | None:
    """Return the first count that is there; a place in details is named `details.name`."""
    for place in places:
        value: Any = counts
        for name in place.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if (count := token_count(value)) is not None:
            return count
    return None


def _of_images(details: Any) -> int | None:
    """Return the tokens of pictures in Google's list of the prompt by modality; None if it has none."""
    rows = [row for row in details if isinstance(row, dict) and row.get("modality") == "IMAGE"] if isinstance(details, list) else []
    return sum(token_count(row.get("tokenCount")) or 0 for row in rows) if rows else None


def _tier(reply: Mapping[str, Any], counts: Any) -> str:
    counts = counts if isinstance(counts, dict) else {}
    traffic = counts.get("trafficType")
    named = (reply.get("service_tier"), counts.get("service_tier"), counts.get("serviceTier"), reply.get("serviceTier"))
    tier = next((name for name in named if isinstance(name, str)), TRAFFIC.get(traffic, "") if isinstance(traffic, str) else "")
    return tier.lower() if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,30}", tier) else ""


def valid_usage(usage: Any) -> dict[str, Any]:
    """Return a usage without details that cannot be true; empty if one of its counts cannot."""
    if not isinstance(usage, dict) or not _counts_are_valid(usage):
        return {}
    return {name: value for name, value in usage.items() if value is not None and (not isinstance(value, dict | list) or _is_valid(value))}


def _counts_are_valid(usage: Mapping[str, Any]) -> bool:
    """Return True if every count of a usage can be true; its details do not matter."""
    return all(_is_count(name, value) for name, value in usage.items() if not isinstance(value, dict | list) or name.endswith(NAMES))


def _is_valid(details: Any) -> bool:
    """Return True if all counts in the nested details of a usage are valid."""
    if isinstance(details, dict):
        return all(_is_valid(value) if isinstance(value, dict | list) else _is_count(name, value) for name, value in details.items())
    return all(map(_is_valid, details)) if isinstance(details, list) else True


def _is_count(name: str, value: Any) -> bool:
    return value is None or not name.endswith(NAMES) or token_count(value) is not None
