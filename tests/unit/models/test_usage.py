"""Usage: what a server charges is what the ledger says, whatever its provider counts in what."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest
from aiohttp import web

from fixtures.models import Server, model_config, reply, request, running_server
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.usage import read_usage
from neuralmedbench.models.budget import NANO, account_of, check_paid, read_spend_log
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import LedgerEntry, read_ledger
from neuralmedbench.models.model_run import ModelRun, RunLimits
from neuralmedbench.models.prices import cost_usd, highest_usd
from neuralmedbench.records.responses import Usage, distinct_calls, total_of

STANDARD = {"plain": 3, "cached": "0.3", "written": "3.75", "hour": 6, "output": 15}
PRIORITY = {"plain": 6, "cached": "0.6", "written": "7.5", "hour": 12, "output": 30}
FLEX = {"plain": "1.5", "cached": "0.15", "written": "1.875", "hour": 3, "output": "7.5"}
"""USD for a million tokens, as the servers of these tests charge."""

NAMES = {
    "plain": "usd_per_million_prompt_tokens",
    "cached": "usd_per_million_cached_tokens",
    "written": "usd_per_million_cache_write_tokens",
    "hour": "usd_per_million_cache_write_1h_tokens",
    "output": "usd_per_million_completion_tokens",
}
PRICES = {
    **{NAMES[kind]: float(price) for kind, price in STANDARD.items()},
    "dated": "2026-11-26",
    "tiers": {tier: {NAMES[kind]: float(price) for kind, price in of.items()} for tier, of in (("priority", PRIORITY), ("flex", FLEX))},
}


def openai(said, sold, tier):
    prompt, output = sold["plain"] + sold["cached"], sold["answer"] + sold["thought"]
    details = {
        "prompt_tokens_details": {"cached_tokens": sold["cached"]},
        "completion_tokens_details": {"reasoning_tokens": sold["thought"]},
    }
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **details}
    return {**reply(said), "usage": usage, "service_tier": tier}


def xai(said, sold, tier):
    """Reasoning is no part of the completion, but of the total."""
    prompt = sold["plain"] + sold["cached"]
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": sold["answer"],
        "total_tokens": prompt + sold["answer"] + sold["thought"],
        "prompt_tokens_details": {"text_tokens": prompt - sold["image"], "image_tokens": sold["image"], "cached_tokens": sold["cached"]},
        "completion_tokens_details": {"reasoning_tokens": sold["thought"]},
    }
    return {**reply(said), "usage": usage}


def deepseek(said, sold, tier):
    prompt, output = sold["plain"] + sold["cached"], sold["answer"] + sold["thought"]
    cache = {"prompt_cache_hit_tokens": sold["cached"], "prompt_cache_miss_tokens": sold["plain"]}
    thought = {"completion_tokens_details": {"reasoning_tokens": sold["thought"]}}
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **cache, **thought}
    return {**reply(said), "usage": usage}


def openrouter(said, sold, tier):
    prompt, output = sold["plain"] + sold["cached"] + sold["written"], sold["answer"] + sold["thought"]
    details = {"prompt_tokens_details": {"cached_tokens": sold["cached"], "cache_write_tokens": sold["written"]}}
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, "cost": 0.1, **details}
    return {**reply(said), "usage": usage, "service_tier": tier}


def anthropic(said, sold, tier):
    """What the cache has is no part of the input."""
    usage = {
        "input_tokens": sold["plain"],
        "output_tokens": sold["answer"] + sold["thought"],
        "cache_read_input_tokens": sold["cached"],
        "cache_creation_input_tokens": sold["written"] + sold["hour"],
        "cache_creation": {"ephemeral_5m_input_tokens": sold["written"], "ephemeral_1h_input_tokens": sold["hour"]},
        "service_tier": tier,
    }
    content = [{"type": "text", "text": said}]
    return {"id": "1", "type": "message", "role": "assistant", "model": "c", "content": content, "stop_reason": "end_turn", "usage": usage}


def google(said, sold, tier):
    """Thoughts are no part of the candidates."""
    prompt = sold["plain"] + sold["cached"]
    by_kind = [{"modality": "TEXT", "tokenCount": prompt - sold["image"]}, {"modality": "IMAGE", "tokenCount": sold["image"]}]
    usage = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": sold["answer"],
        "thoughtsTokenCount": sold["thought"],
        "cachedContentTokenCount": sold["cached"],
        "totalTokenCount": prompt + sold["answer"] + sold["thought"],
        "promptTokensDetails": by_kind,
        "trafficType": {"priority": "ON_DEMAND_PRIORITY", "flex": "ON_DEMAND_FLEX"}.get(tier, "ON_DEMAND"),
    }
    parts = {"content": {"role": "model", "parts": [{"text": said}]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [parts], "usageMetadata": usage, "modelVersion": "g"}


SHAPES = {
    "openai": (openai, "openai/m", "flex", {"plain", "cached", "answer", "thought"}, {"cached_tokens", "reasoning_tokens"}),
    "xai": (
        xai,
        "openai/m",
        "default",
        {"plain", "cached", "answer", "thought", "image"},
        {"cached_tokens", "reasoning_tokens", "image_tokens"},
    ),
    "deepseek": (deepseek, "openai/m", "default", {"plain", "cached", "answer", "thought"}, {"cached_tokens", "reasoning_tokens"}),
    "openrouter": (openrouter, "openai/m", "priority", {"plain", "cached", "written", "answer"}, {"cached_tokens", "cache_write_tokens"}),
    "anthropic": (
        anthropic,
        "anthropic/claude-sonnet-4-20250514",
        "standard",
        {"plain", "cached", "written", "hour", "answer", "thought"},
        {"cached_tokens", "cache_write_tokens", "cache_write_1h_tokens"},
    ),
    "google": (
        google,
        "gemini/gemini-2.5-pro",
        "flex",
        {"plain", "cached", "answer", "thought", "image"},
        {"cached_tokens", "reasoning_tokens", "image_tokens"},
    ),
}
"""How each writes its usage, the model's id, the tier, the kinds of tokens that it sells, and the parts that it reports."""


class Shop(Server):
    """Answers each request with tokens drawn at random, in the form of one provider, and writes an invoice of what it sold."""

    def __init__(self, shape, tier, kinds):
        super().__init__()
        self.path = "/{path:.*}"
        self.shape, self.tier, self.kinds = shape, tier, kinds
        self.random, self.sold = random.Random(24), []

    async def handle(self, asked):
        self.bodies.append(await asked.json())
        sold = {kind: self.random.randrange(1, 400_000) if kind in self.kinds else 0 for kind in (*NAMES, "answer", "thought", "image")}
        sold["image"] = min(sold["image"], sold["plain"])
        self.sold.append(sold)
        return web.json_response(self.shape("infarct", sold, self.tier))

    def invoice(self):
        prices = {"priority": PRIORITY, "flex": FLEX}.get(self.tier, STANDARD)
        usd = Decimal(0)
        for sold in self.sold:
            of_input = sum(Decimal(prices[kind]) * sold[kind] for kind in ("plain", "cached", "written", "hour"))
            usd += of_input + Decimal(prices["output"]) * (sold["answer"] + sold["thought"])
        return usd / 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_recomputed_cost_is_the_servers_invoice(shape, tmp_path):
    write, model_id, tier, kinds, reported = SHAPES[shape]
    with running_server(Shop(write, tier, kinds)) as server:
        model = model_config(id=model_id, api_base=server.address, prices=PRICES, max_cost_usd=10_000, max_tokens=800_000)
        control = RunLimits(folder=tmp_path / "spending")
        run = ModelRun(
            model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=tmp_path, control=control
        )
        rows = answer_requests([request(f"i{number}") for number in range(12)], run)
    invoice = float(server.invoice())
    assert invoice > 5, "wrong counts would be seen in cents"
    entries = [*read_ledger(tmp_path / "m.jsonl").values()]
    of_log = read_spend_log(tmp_path / "spending" / "money.jsonl").by_account[account_of(model)] / NANO
    for usd in (
        sum(row.cost_usd for row in rows),
        sum(call.cost_usd for call in distinct_calls(rows)),
        sum(cost_usd(model, entry) for entry in entries),
        of_log,
    ):
        assert usd == pytest.approx(invoice, abs=1e-6)
    truth = {
        "cached_tokens": "cached",
        "cache_write_tokens": "written",
        "cache_write_1h_tokens": "hour",
        "reasoning_tokens": "thought",
        "image_tokens": "image",
    }
    for name, kind in truth.items():
        expected = sum(sold[kind] for sold in server.sold) if name in reported else None
        assert total_of(entries, name) == total_of(distinct_calls(rows), name) == expected, name
    named = {"xai": "", "deepseek": ""}.get(shape, tier)
    assert {entry.service_tier for entry in entries} == {named}


@pytest.mark.parametrize(
    ("usage", "prices", "usd"),
    [
        (  # an issue of Wei-Shaw/sub2api, with the amount that xAI itself reported (232,856,000 ticks)
            {"prompt_tokens": 10120, "completion_tokens": 1499, "total_tokens": 14428, "prompt_tokens_details": {"cached_tokens": 128}}
            | {"completion_tokens_details": {"reasoning_tokens": 2809}},
            (1.25, 0.2, 2.5),
            0.0232856,
        ),
        (  # an issue of QuantumNous/new-api: pictures that were read from the cache are paid for once
            {"promptTokenCount": 24643, "candidatesTokenCount": 3110, "cachedContentTokenCount": 24503, "totalTokenCount": 27753}
            | {"promptTokensDetails": [{"modality": "IMAGE", "tokenCount": 22000}, {"modality": "TEXT", "tokenCount": 2643}]},
            (1.5, 0.15, 9),
            0.03187545,
        ),
        # promptfoo's own test that a total leaves no room for reasoning beside the completion
        ({"prompt_tokens": 500, "completion_tokens": 500, "total_tokens": 1000, "reasoning_tokens": 200}, (1, 1, 1), 0.001),
    ],
)
def test_published_usages_cost_what_was_charged(usage, prices, usd):
    plain, cached, output = prices
    listed = {NAMES["plain"]: plain, NAMES["cached"]: cached, NAMES["output"]: output, "dated": "x"}
    found, _ = read_usage({"usageMetadata" if "promptTokenCount" in usage else "usage": usage}, wrote=True)
    assert cost_usd(model_config(prices=listed), found) == pytest.approx(usd, abs=1e-12)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        # a published call over OpenRouter: 25,612 = 25,600 written + 12
        (
            {"prompt_tokens": 25612, "completion_tokens": 4, "prompt_tokens_details": {"cache_write_tokens": 25600}},
            Usage(prompt_tokens=25612, completion_tokens=4, cache_write_tokens=25600),
        ),
        # litellm's proxy names Anthropic's counts beside a prompt that contains them
        (
            {"prompt_tokens": 100, "completion_tokens": 5, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30},
            Usage(prompt_tokens=100, completion_tokens=5, cached_tokens=60, cache_write_tokens=30),
        ),
        # without the split by time all that was written was written for minutes
        (
            {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30},
            Usage(prompt_tokens=100, completion_tokens=5, cached_tokens=60, cache_write_tokens=30),
        ),
        (
            {"input_tokens": 100, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 60}}
            | {"output_tokens_details": {"reasoning_tokens": 7}},
            Usage(prompt_tokens=100, completion_tokens=9, cached_tokens=60, reasoning_tokens=7),
        ),
        # output beside the completion that nothing explains is paid for, too
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 30}, Usage(prompt_tokens=7, completion_tokens=23)),
        # parts that are larger than their whole are not known
        (
            {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8, "image_tokens": 9}}
            | {"completion_tokens_details": {"reasoning_tokens": 4}},
            Usage(prompt_tokens=7, completion_tokens=3),
        ),
        # cut off while thinking, so that there is no candidate
        (
            {"promptTokenCount": 7, "thoughtsTokenCount": 90, "totalTokenCount": 97},
            Usage(prompt_tokens=7, completion_tokens=90, reasoning_tokens=90),
        ),
    ],
)
def test_what_contains_what_is_known_by_the_names_and_by_the_sum(usage, expected):
    name = "usageMetadata" if "promptTokenCount" in usage else "usage"
    assert read_usage({name: usage}, wrote=True) == (expected, None)


@pytest.mark.parametrize("tier", ["a b", "x" * 40, 7, None, {"a": 1}, "=1+1"])
def test_a_tier_that_is_no_name_is_none(tier):
    assert read_usage({"service_tier": tier, "usage": {"prompt_tokens": 7, "completion_tokens": 3}}, wrote=True)[0].service_tier == ""


def test_what_has_no_price_in_the_yaml_is_unknown_and_never_too_cheap():
    model = model_config(prices={NAMES["plain"]: 2, NAMES["output"]: 10, "dated": "x"})
    both = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    assert cost_usd(model, Usage(**both)) == 2
    assert cost_usd(model, Usage(**both, cached_tokens=500_000)) == 2, "without a price of its own a cached token costs what others do"
    assert cost_usd(model, Usage(**both, cache_write_tokens=1)) is None
    assert cost_usd(model, Usage(**both, cache_write_1h_tokens=1)) is None
    assert cost_usd(model, Usage(**both, service_tier="priority")) is None
    assert cost_usd(model, Usage(**both, service_tier="default")) == 2


def test_a_reservation_is_never_less_than_the_price():
    rng, model = random.Random(1), model_config(prices=PRICES)
    for _ in range(200):
        cached, written, hour, plain, output = (rng.randrange(100_000) for _ in range(5))
        prompt = cached + written + hour + plain
        parts = {"cached_tokens": cached, "cache_write_tokens": written, "cache_write_1h_tokens": hour}
        for tier in ("default", "priority", "flex"):
            usd = cost_usd(model, Usage(prompt_tokens=prompt, completion_tokens=output, service_tier=tier, **parts))
            assert usd <= highest_usd(model, prompt, output)
    asks = model_config(prices=PRICES, parameters={"service_tier": "flex"})
    assert highest_usd(asks, 10**6, 10**6) == 3 + 7.5, "an hour in the cache is the dearest input of the tier that is asked for"


def test_a_tier_that_is_asked_for_without_prices_is_refused_before_anything_is_sent():
    model = model_config(prices=PRICES, max_cost_usd=1, api_key_env="NMB_TEST_KEY", parameters={"service_tier": "scale"})
    with pytest.raises(ConfigError, match="ask for the service tier `scale`, which has no prices; add to `prices`"):
        check_paid(model)
    check_paid(model_config(prices=PRICES, max_cost_usd=1, api_key_env="NMB_TEST_KEY", parameters={"service_tier": "flex"}))


def test_lines_of_a_ledger_from_before_and_with_parts_are_read(tmp_path):
    old = {"key": "a", "state": "ok", "text": "x", "prompt_tokens": 7, "completion_tokens": 3}
    new = {**old, "key": "b", "cached_tokens": 5, "reasoning_tokens": -1, "service_tier": "flex"}
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (old, new)))
    entries = read_ledger(tmp_path / "m.jsonl")
    assert entries["a"] == LedgerEntry(key="a", state="ok", text="x", prompt_tokens=7, completion_tokens=3)
    assert (entries["b"].cached_tokens, entries["b"].reasoning_tokens, entries["b"].service_tier) == (5, None, "flex")
