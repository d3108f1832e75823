"""Who made a model, by its id: whether a grader judges the answers of its own family."""

from __future__ import annotations

from collections.abc import Mapping

from neuralmedbench.config.model import GraderConfig, ModelConfig

MAKERS = {
    "anthropic": "anthropic",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "google",
    "google": "google",
    "meta-llama": "meta",
    "meta_llama": "meta",
    "mistral": "mistral",
    "mistralai": "mistral",
    "openai": "openai",
    "qwen": "alibaba",
    "x-ai": "xai",
    "xai": "xai",
}
"""Maker by the first part of an id (`openai/gpt-5`)."""

SELLERS = frozenset({"bedrock", "deepinfra", "fireworks_ai", "groq", "openrouter", "together_ai"})
"""First parts that say who serves a model; who made it may stand behind them (`openrouter/google/...`)."""

UNKNOWN = "not known"


def maker_of(model: ModelConfig) -> str:
    """Give the maker of a model; empty where its id does not tell.

    A server with an address of its own (`api_base`) says nothing about who made what it serves, nor does a folder with weights.
    """
    parts = model.id.casefold().split("/")
    if model.backend != "litellm" or model.api_base is not None or len(parts) == 1:
        return ""
    return MAKERS.get(parts[1] if parts[0] in SELLERS and len(parts) > 2 else parts[0], "")


def same_maker(grader: GraderConfig, model: ModelConfig, graders: Mapping[str, GraderConfig]) -> str:
    """Say whether a grader and a candidate are of one maker.

    Parameters
    ----------
    grader : GraderConfig
        One that asks no model is of nobody's; of a jury the members count.
    model : ModelConfig
        The candidate.
    graders : mapping of str to GraderConfig
        Graders of the run, by name, among which a jury's members are looked for.

    Returns
    -------
    str
        `yes`, `no`, or `not known` where an id does not tell.
    """
    if grader.kind == "rubric":
        return "no"
    if grader.kind == "jury":
        told = [same_maker(graders[name], model, graders) if name in graders else UNKNOWN for name in grader.members]
        return next((word for word in ("yes", UNKNOWN) if word in told), "no")
    makers = ("" if grader.model is None else maker_of(grader.model)), maker_of(model)
    return UNKNOWN if "" in makers else ("yes" if makers[0] == makers[1] else "no")
