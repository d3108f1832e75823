"""What a call costs: its tokens, by the price list in the model's yaml for each kind of token and each service tier."""

from __future__ import annotations

from neuralmedbench.config.model import ModelConfig, PriceList
from neuralmedbench.records.responses import Usage

BATCH = "batch"
"""Tier of answers that were handed in as a batch."""
STANDARD = frozenset({"", "default", "standard", "standard_only", "auto", "on_demand"})
"""Names of the tier that the main price list is for."""
ANSWER_LIMITS = ("max_completion_tokens", "max_output_tokens")
"""Names under which `parameters` may set the longest answer."""


def cost_usd(model: ModelConfig, usage: Usage) -> float | None:
    """Return the price of one call in USD.

    Parameters
    ----------
    model : ModelConfig
        Its prices. Cached tokens without a price of their own cost what other input costs, which is never less.
    usage : Usage
        What the provider counted.

    Returns
    -------
    float or None
        None if the tokens are unknown, or if the yaml has no prices, none for the tier, or none for tokens written to a cache: these
        cost more than other input.
    """
    prices = price_list(model, usage.service_tier)
    if prices is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    cached, written, hour = usage.cached_tokens or 0, usage.cache_write_tokens or 0, usage.cache_write_1h_tokens or 0
    of_cache, of_write = prices.usd_per_million_cached_tokens, prices.usd_per_million_cache_write_tokens
    of_hour = prices.usd_per_million_cache_write_1h_tokens
    if (written and of_write is None) or (hour and of_hour is None):
        return None
    usd = max(0, usage.prompt_tokens - cached - written - hour) * prices.usd_per_million_prompt_tokens
    usd += cached * (prices.usd_per_million_prompt_tokens if of_cache is None else of_cache)
    usd += written * (of_write or 0.0) + hour * (of_hour or 0.0)
    return (usd + usage.completion_tokens * prices.usd_per_million_completion_tokens) / 1e6


def highest_usd(model: ModelConfig, prompt_tokens: int, completion_tokens: int) -> float | None:
    """Return the highest price that a call with so many tokens can have, in USD; None without prices.

    Nothing is cached, all input may be written to a cache, and a call that asks for no tier may be served at any that has prices.
    """
    if model.prices is None:
        return None
    asked = asked_tier(model)
    lists = [model.prices, *model.prices.tiers.values()] if asked in STANDARD else [price_list(model, asked) or model.prices]
    usd = max(prompt_tokens * _dearest_input(prices) + completion_tokens * prices.usd_per_million_completion_tokens for prices in lists)
    return usd / 1e6


def price_list(model: ModelConfig, tier: str) -> PriceList | None:
    """Return the prices of a service tier; None if the yaml has none for it."""
    if model.prices is None:
        return None
    return model.prices.tiers.get(tier, model.prices if tier in STANDARD else None)


def asked_tier(model: ModelConfig) -> str:
    """Return the service tier that every call of a model asks for; empty if it asks for none."""
    if model.batch:
        return BATCH
    return str(model.parameters.get("service_tier", "")).lower()


def _dearest_input(prices: PriceList) -> float:
    writes = (prices.usd_per_million_cache_write_tokens, prices.usd_per_million_cache_write_1h_tokens)
    return max(prices.usd_per_million_prompt_tokens, *(price or 0.0 for price in writes))


def longest_answer(model: ModelConfig) -> int | None:
    """Return the largest number of tokens of one answer; None if nothing limits it."""
    others = [value for name in ANSWER_LIMITS if isinstance(value := model.parameters.get(name), int)]
    return model.max_tokens or (max(others) if others else None)


def answers_of_a_call(model: ModelConfig) -> int:
    """Return how many answers a sample is charged for: `parameters` may ask for more than one (`n`), although only one is kept."""
    asked = model.parameters.get("n", 1)
    return max(1, asked) if isinstance(asked, int) else 1
