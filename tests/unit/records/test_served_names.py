"""The model that answered and the one that was asked: names that providers document, and names of other models."""

from __future__ import annotations

import importlib.util
import re

import pytest

from fixtures.models import model_config
from neuralmedbench.models.life import price_list
from neuralmedbench.records.served_names import names_same_model

SAME = [
    ("openai/gpt-4o", "gpt-4o-2024-08-06"),
    ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
    ("openai/gpt-4-turbo-preview", "gpt-4-0125-preview"),
    ("openai/gpt-4", "gpt-4-0613"),
    ("openai/gpt-4-vision-preview", "gpt-4-1106-vision-preview"),
    ("openai/gpt-3.5-turbo", "gpt-3.5-turbo-0125"),
    ("openai/o1", "o1-2024-12-17"),
    ("openai/gpt-5.4-mini", "gpt-5.4-mini-2026-03-17"),
    ("openai/ft:gpt-4o-2024-08-06:acme::abc", "ft:gpt-4o-2024-08-06:acme::abc"),
    ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
    ("anthropic/claude-sonnet-4-0", "claude-sonnet-4-20250514"),
    ("anthropic/claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219"),
    ("anthropic/claude-opus-4-5", "claude-opus-4-5-20251101"),
    ("anthropic/claude-opus-4-6", "claude-opus-4-6"),
    ("gemini/gemini-2.5-flash", "models/gemini-2.5-flash-001"),
    ("gemini/gemini-2.5-flash", "models/gemini-2.5-flash-preview-05-20"),
    ("gemini/gemini-2.5-flash", "gemini-2.5-flash-preview-09-2025"),
    ("gemini/gemini-2.0-flash", "gemini-2.0-flash-001"),
    ("gemini/gemini-flash-latest", "gemini-3.5-flash"),
    ("gemini/gemini-flash-lite-latest", "models/gemini-2.5-flash-lite-preview-09-2025"),
    ("gemini/gemini-pro-latest", "gemini-3.1-pro-preview"),
    ("gemini/gemini-2.5-pro", "gemini-2.5-pro-exp-03-25"),
    ("mistral/mistral-large-latest", "mistral-large-2411"),
    ("mistral/mistral-large-latest", "mistral-large-4-0"),
    ("mistral/mistral-medium", "mistral-medium-2505"),
    ("mistral/pixtral-large-latest", "pixtral-large-2411"),
    ("mistral/mistral-medium-latest", "mistral-medium-3.5"),
    ("xai/grok-4", "grok-4-0709"),
    ("xai/grok-4-latest", "grok-4-0709"),
    ("xai/grok-4.20-beta-latest", "grok-4.20-beta-0309-reasoning"),
    ("xai/grok-4-fast", "grok-4-fast-reasoning"),
    ("deepseek/deepseek-chat", "deepseek-chat"),
    ("deepseek/deepseek-flash", "deepseek-v4-flash"),
    ("openai/gpt-35-turbo", "gpt-3.5-turbo-0613"),
    ("azure/gpt-4o", "gpt-4o-2024-08-06"),
    ("azure/gpt-4o-prod-eu", "gpt-4o-2024-11-20"),
    ("azure/my-gpt4o", "gpt-4o-2024-11-20"),
    ("azure/radiology", "gpt-4.1-2025-04-14"),
    ("azure/gpt-prod", "gpt-4.1-2025-04-14"),
    ("azure/gpt-35-turbo", "gpt-3.5-turbo-0125"),
    ("openai/us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-20250514"),
    ("openai/anthropic.claude-3-5-sonnet-20240620-v1:0", "anthropic.claude-3-5-sonnet-20240620-v1:0"),
    ("openai/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929"),
    ("openai/global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
    ("openai/us.amazon.nova-pro-v1:0", "amazon.nova-pro-v1:0"),
    ("openai/arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-20250514"),
    ("openai/openai.gpt-oss-120b-1:0", "gpt-oss-120b"),
    ("openai/us.meta.llama3-3-70b-instruct-v1:0", "meta.llama3-3-70b-instruct-v1:0"),
    ("openrouter/openai/gpt-4o", "openai/gpt-4o-2024-08-06"),
    ("openrouter/anthropic/claude-sonnet-4", "anthropic/claude-4-sonnet-20250522"),
    ("openrouter/anthropic/claude-3.7-sonnet", "anthropic/claude-3-7-sonnet-20250219"),
    ("openrouter/anthropic/claude-3.7-sonnet:thinking", "anthropic/claude-3-7-sonnet-20250219"),
    ("openrouter/anthropic/claude-haiku-4.5", "anthropic/claude-4.5-haiku-20251001"),
    ("openrouter/x-ai/grok-4", "x-ai/grok-4-07-09"),
    ("openrouter/google/gemini-2.5-pro", "google/gemini-2.5-pro-preview-06-05"),
    ("openrouter/qwen/qwen2.5-vl-72b-instruct:free", "qwen/qwen2.5-vl-72b-instruct"),
    ("openrouter/meta-llama/llama-4-maverick", "meta-llama/llama-4-maverick-17b-128e-instruct"),
    ("openrouter/mistralai/mistral-small-3.2-24b-instruct", "mistralai/mistral-small-3.2-24b-instruct-2506"),
    ("openrouter/qwen/qwen-2.5-vl-7b-instruct", "qwen/qwen2.5-vl-7b-instruct"),
    ("openai/claude-sonnet-4@20250514", "claude-sonnet-4-20250514"),
    ("openai/gemini-2.5-flash@001", "publishers/google/models/gemini-2.5-flash-001"),
    ("openai/google/gemini-2.5-flash", "google/gemini-2.5-flash"),
    ("openai/accounts/fireworks/models/llama-v3p1-8b-instruct", "accounts/fireworks/models/llama-v3p1-8b-instruct"),
    ("openai/llama-3.1-8b-instruct", "accounts/fireworks/models/llama-v3p1-8b-instruct"),
    (
        "openai/accounts/fireworks/models/qwen2p5-vl-32b-instruct",
        "accounts/fireworks/models/qwen2p5-vl-32b-instruct#accounts/acme/deployments/1",
    ),
    ("openai/meta-llama/Llama-3.3-70B-Instruct-Turbo", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    ("openai/meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct"),
    ("openai/foo", "/models/foo.gguf"),
    ("openai//models/foo.gguf", "foo"),
    ("openai/made-up", "/srv/weights/made-up-Q4_K_M.gguf"),
    ("openai/smollm2", "/data/SmolLM2-135M-Instruct-Q8_0.gguf"),
    ("openai/Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"),
    ("openai/qwen2.5-vl-7b-instruct", "/models/Qwen2.5-VL-7B-Instruct-Q4_K_M.gguf"),
    ("openai/Qwen/Qwen2.5-VL-7B-Instruct", "/root/.cache/huggingface/hub/models--Qwen--Qwen2.5-VL-7B-Instruct/snapshots/0abc12"),
    ("openai/Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl-7b-instruct"),
    ("openai/google/medgemma-4b-it", "medgemma-4b-it"),
    ("openai/llama3.2-vision", "llama3.2-vision:latest"),
    ("openai/medgemma", "C:\\models\\medgemma-4b-it-Q8_0.gguf"),
    ("hosted_vllm/google/medgemma-27b-it", "google/medgemma-27b-it"),
    ("openai/kimi-k2", "kimi-k2-0905"),
    ("openai/command-r", "command-r-08-2024"),
    ("openai/Qwen3-VL-235B-A22B-Instruct", "Qwen/Qwen3-VL-235B-A22B-Instruct-FP8"),
]
"""An alias and its dated name, names with regions, makers and options, and the paths of weights on a server of one's own."""
OTHER = [
    ("openai/made-up", "made-up-3.5-lite"),
    ("openai/made-up", "made-up-mini"),
    ("openai/made-up", "made-up-7b"),
    ("openai/made-up", "made-up-2"),
    ("openai/made-up", "other"),
    ("openai/gpt-4o", "gpt-4o-mini-2024-07-18"),
    ("openai/gpt-4o", "gpt-4-0613"),
    ("openai/gpt-4o", "gpt-4.1-2025-04-14"),
    ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-11-20"),
    ("openai/gpt-5", "gpt-5-mini-2025-08-07"),
    ("openai/gpt-5", "gpt-5.1-2025-11-13"),
    ("openai/gpt-5", "gpt-5-chat-latest"),
    ("openai/gpt-5", "gpt-5-nano"),
    ("openai/o3", "o3-mini"),
    ("openai/o3", "o4"),
    ("openai/gpt-4o", "ft:gpt-4o-2024-08-06:acme::abc"),
    ("anthropic/claude-opus-5-5", "claude-haiku-4-5"),
    ("anthropic/claude-opus-5-5", "claude-haiku-5-5"),
    ("anthropic/claude-opus-5-5", "claude-opus-5"),
    ("anthropic/claude-opus-4-1", "claude-opus-4-20250514"),
    ("anthropic/claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929"),
    ("anthropic/claude-3-5-sonnet-20240620", "claude-3-5-sonnet-20241022"),
    ("gemini/gemini-2.5-flash", "gemini-3.5-flash-lite"),
    ("gemini/gemini-2.5-flash", "gemini-3.5-flash"),
    ("gemini/gemini-2.5-flash", "gemini-2.5-flash-lite"),
    ("gemini/gemini-2.5-flash", "gemini-2.5-pro"),
    ("gemini/gemini-flash-latest", "gemini-3.5-flash-lite"),
    ("gemini/gemini-1.5-pro-001", "gemini-1.5-pro-002"),
    ("gemini/gemini-2.5-flash-preview-05-20", "gemini-2.5-flash-preview-09-2025"),
    ("gemini/gemini-3-pro-preview", "gemini-3.1-pro-preview"),
    ("mistral/mistral-large-latest", "mistral-small-2506"),
    ("mistral/mistral-large-2411", "mistral-large-2512"),
    ("xai/grok-4", "grok-3"),
    ("xai/grok-4", "grok-4-fast-non-reasoning"),
    ("xai/grok-4-fast-reasoning", "grok-4-fast-non-reasoning"),
    ("deepseek/deepseek-chat", "deepseek-reasoner"),
    ("azure/gpt-4o", "gpt-4o-mini-2024-07-18"),
    ("azure/gpt-4o-mini", "gpt-4o-2024-08-06"),
    ("azure/gpt-4.1-prod", "gpt-4o-2024-11-20"),
    ("azure/gpt-4o", "gpt-4.1"),
    ("openai/us.anthropic.claude-opus-4-20250514-v1:0", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
    ("openrouter/anthropic/claude-sonnet-4", "anthropic/claude-4.5-sonnet-20250929"),
    ("openrouter/openai/gpt-4o", "openai/gpt-4o-mini"),
    ("openrouter/auto", "openai/gpt-4o"),
    ("openrouter/qwen/qwen2.5-vl-72b-instruct", "qwen/qwen2.5-vl-7b-instruct"),
    ("openai/foo", "/models/bar.gguf"),
    ("openai/qwen2.5-vl-7b-instruct", "/models/Qwen2.5-VL-3B-Instruct-Q4_K_M.gguf"),
    ("openai/Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-VL-72B-Instruct"),
    ("openai/Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen3-VL-8B-Instruct"),
    ("openai/Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
    ("openai/google/medgemma-4b-it", "google/gemma-3-4b-it"),
    ("openai/google/medgemma-4b-it", "google/medgemma-27b-it"),
    ("openai/google/medgemma-4b-it", "google/medgemma-1.5-4b-it"),
    ("openai/kimi-k2", "kimi-k2-thinking"),
    ("openai/glm-4.5", "glm-4.5v"),
    ("openai/llama3.2-vision:11b", "llama3.2-vision:90b"),
    ("openai/accounts/fireworks/models/llama-v3p1-8b-instruct", "accounts/fireworks/models/llama-v3p1-70b-instruct"),
    ("openai/foo-Q8_0", "/models/foo-Q4_K_M.gguf"),
    ("openai/made-up", "made-up-preview-lite"),
]
"""Of another size, kind, version, date or quantization."""
PROVIDERS = ("openai", "anthropic", "gemini", "mistral", "xai")
DATED = re.compile(r"-(20\d\d-\d\d-\d\d|20\d{6}|2[3-9](0[1-9]|1[0-2]))$")


@pytest.mark.parametrize(("asked", "served"), SAME)
def test_a_documented_name_is_the_model_that_was_asked(asked: str, served: str) -> None:
    assert names_same_model(asked, served)


@pytest.mark.parametrize(("asked", "served"), OTHER)
def test_another_size_kind_version_or_date_is_another_model(asked: str, served: str) -> None:
    assert not names_same_model(asked, served)


def listed_names(provider: str) -> list[str]:
    rows = price_list().items()
    kept = [name for name, row in rows if row.get("litellm_provider") == provider and row.get("mode") in ("chat", "responses")]
    return sorted({name.rpartition("/")[2] for name in kept})


@pytest.mark.skipif(not importlib.util.find_spec("litellm"), reason="litellm is not installed")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_dated_name_of_the_price_list_is_that_of_its_alias_and_of_no_other_one(provider: str) -> None:
    names = listed_names(provider)
    dated = [name for name in names if DATED.search(name)]
    assert dated or provider in ("gemini", "xai")
    for name in dated:
        alias = DATED.sub("", name)
        assert names_same_model(f"{provider}/{alias}", name)
        plain = [other for other in names if other != alias and not DATED.search(other) and not re.search(r"latest|preview|\d{4}", other)]
        # Mistral's dated names have no version, which its aliases may have
        taken = [other for other in plain if names_same_model(f"{provider}/{other}", name)] if provider != "mistral" else []
        assert taken == [], f"{name} would pass for {taken}"


def test_an_alias_of_the_yaml_is_the_same_model_with_its_dates() -> None:
    model = model_config(served_as=["our-deployment"])
    assert [model.is_answered_by(name) for name in ("m", "our-deployment", "our-deployment-2026-01", "", "other")] == [
        True,
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(("deployment", "served", "same"), [("radiology", "gpt-4.1-2025-04-14", True), ("gpt-4o", "gpt-4o-mini", False)])
def test_a_deployment_of_azure_is_named_by_its_owner(deployment: str, served: str, same: bool) -> None:
    model = model_config(id=f"openai/{deployment}", api_base="https://ours.openai.azure.com/openai/v1")
    assert model.is_answered_by(served) is same


def test_models_that_a_job_runs_itself_are_not_compared() -> None:
    assert model_config(backend="transformers", id="data/weights/m").is_answered_by("GemmaForCausalLM")
    assert model_config(backend="imported").is_answered_by("imported")
