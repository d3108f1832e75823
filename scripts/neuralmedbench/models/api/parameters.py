"""The parameters of a call, and whether the provider takes them."""

from __future__ import annotations

import re
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.call_keys import strict_schema
from neuralmedbench.models.protocol import Call

NATIVE = frozenset({"openai", "hosted_vllm"})
"""Providers, and servers, that are asked without litellm."""

REWRITTEN = re.compile(r"(?:^|[/:])o\d|^responses/")
"""Names of models whose messages litellm rewrites, or that it asks over another interface."""

CATALOGUED = re.compile(r"(?:^|[/:])o\d|gpt|chat-latest|daybreak|computer-use|^responses/")
"""Names of OpenAI's own models, for which litellm has rules; a test compares them with its catalogue."""

KEYS = {"n": "native_n", "response_format": "structured_output", "max_completion_tokens": "max_tokens"}
"""Parameters that have another name in a model's yaml."""

RESERVED = frozenset(
    {"model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "n", "response_format", "logprobs"}
    | {"stream", "stream_options", "tools", "tool_choice", "functions", "function_call", "modalities", "audio", "web_search_options"}
    | {"timeout", "base_url", "drop_params", "additional_drop_params", "allowed_openai_params", "extra_headers", "extra_body"}
    | {"organization", "deployment_id", "mock_delay", "store", "user"}
)
"""Parameters that this project sets itself, or that would change more than the sampling of an answer."""


def parameters_of(model: ModelConfig, call: Call) -> dict[str, Any]:
    """Return the parameters of one call as litellm takes them."""
    samples = len(call.repeats)
    asked: dict[str, Any] = {
        "temperature": model.temperature,
        "top_p": model.top_p,
        model.max_tokens_parameter: model.max_tokens,
        "seed": call.seed_of(call.repeats[0]),
        "n": samples if samples > 1 else None,
        "logprobs": model.logprobs or None,
        "response_format": _response_format(model, call),
    }
    return {**model.parameters, **{name: value for name, value in asked.items() if value is not None}}


def _response_format(model: ModelConfig, call: Call) -> dict[str, Any] | None:
    if call.schema is None or model.structured_output == "none":
        return None
    if model.structured_output == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": strict_schema(call.schema)}}


def check_parameters(model: ModelConfig) -> bool:
    """Refuse a yaml with a parameter that the provider does not take, before anything is sent.

    Litellm knows what a provider takes. It is not imported (2 s of CPU, 140 MB) for a server of one's own that is asked without it, with no
    `parameters` and a model that it does not know: there it has no rules.

    Returns
    -------
    bool
        True if the model is asked without litellm: the body that litellm would send is the one that OpenAI's protocol has.

    Raises
    ------
    ConfigError
        With the keys of the yaml.
    """
    provider, _, name = model.id.partition("/")
    native = provider in NATIVE and not REWRITTEN.search(name)
    if native and model.api_base and not model.parameters and not CATALOGUED.search(name):
        return True
    from neuralmedbench.models.api import through_litellm

    for parameter in model.parameters:
        if parameter in RESERVED or through_litellm.is_own_parameter(parameter):
            message = f"model {model.name}: `parameters: {parameter}` is not passed on; it has a key of its own in the yaml, or is none of a model"
            raise ConfigError(message)
    if through_litellm.has_only_responses(name, provider):
        message = f"model {model.name}: its provider serves it over the Responses interface alone, which is not spoken here; take a model that chats"
        raise ConfigError(message)
    asked = parameters_of(model, _whole_call(model))
    try:
        sent = through_litellm.sent_parameters(name, provider, asked)
    except Exception as error:  # litellm's errors share no base class
        raise ConfigError(rejection_message(model, error)) from None
    return native and sent == asked


def _whole_call(model: ModelConfig) -> Call:
    """Return a call with every parameter that one of the model can have."""
    return Call((), (0, 1) if model.native_n else (0,), model.seed, {"type": "object", "properties": {}})


def rejection_message(model: ModelConfig, error: Exception) -> str:
    """Say which keys of a yaml litellm rejects; its text is searched for names of parameters, and not repeated."""
    text = str(error)
    sent = [*parameters_of(model, _whole_call(model))]
    blamed = [KEYS.get(parameter, parameter) for parameter in sent if re.search(rf"\b{re.escape(parameter)}\b", text)]
    keys = ", ".join(f"`parameters: {key}`" if key in model.parameters else f"`{key}`" for key in blamed)
    return (
        f"model {model.name}: litellm cannot make a call of {keys or 'its yaml'} ({type(error).__name__}): this provider or model does not take"
        f" it, or not this value; take it out of the yaml, a parameter that is left out silently would be another experiment"
    )
