"""The parameters of a call: those of a model's yaml, and what is asked for on top of them."""

from __future__ import annotations

import re
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.quiet_litellm import import_litellm
from neuralmedbench.models.api.strict_schema import strict_schema
from neuralmedbench.models.protocol import Call

KEYS = {"n": "native_n", "response_format": "structured_output", "max_completion_tokens": "max_tokens"}
"""Parameters that stand in a model's yaml by another name."""
OWN = frozenset(
    {"model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "n", "response_format", "logprobs"}
    | {"stream", "stream_options", "tools", "tool_choice", "functions", "function_call", "modalities", "audio", "web_search_options"}
    | {"timeout", "base_url", "drop_params", "additional_drop_params", "allowed_openai_params", "extra_headers", "extra_body"}
    | {"organization", "deployment_id", "mock_delay", "store", "user"}
)
"""Parameters that are the project's own, or that would change more than how an answer is drawn."""


def parameters_of(model: ModelConfig, call: Call) -> dict[str, Any]:
    """Give the parameters of one call.

    Parameters
    ----------
    model : ModelConfig
        The model's yaml.
    call : Call
        What is asked.

    Returns
    -------
    dict
        By litellm's names; what the yaml does not set is not there.
    """
    samples = len(call.repeats)
    asked: dict[str, Any] = {
        "temperature": model.temperature,
        "top_p": model.top_p,
        "max_tokens": model.max_tokens,
        "seed": call.seed_of(call.repeats[0]),
        "n": samples if samples > 1 else None,
        "logprobs": model.logprobs or None,
        "response_format": _response_format(model, call),
    }
    return {**model.parameters, **{name: value for name, value in asked.items() if value is not None}}


def check_parameters(name: str, model: ModelConfig) -> None:
    """Refuse a yaml with a parameter that the provider does not take, before anything is asked.

    Parameters
    ----------
    name : str
        Name of the model.
    model : ModelConfig
        Its yaml.

    Raises
    ------
    ConfigError
        With the key of the yaml, as far as litellm knows the provider.
    """
    import_litellm()
    from litellm.types.utils import all_litellm_params
    from litellm.utils import get_optional_params

    for parameter in model.parameters:
        if parameter in OWN or parameter in all_litellm_params or parameter.startswith("litellm"):
            message = (
                f"model {name}: `parameters: {parameter}` is not passed on; it has a key of its own in the yaml, or is none of a model"
            )
            raise ConfigError(message)
    whole = Call((), (0, 1) if model.native_n else (0,), model.seed, {"type": "object", "properties": {}})
    provider, _, rest = model.id.partition("/")
    if _only_responses(rest, provider):
        message = (
            f"model {name}: its provider serves it over the Responses interface alone, which is not spoken here; take a model that chats"
        )
        raise ConfigError(message)
    try:
        get_optional_params(model=rest, custom_llm_provider=provider, **parameters_of(model, whole))
    except Exception as error:  # litellm's errors share no base class
        raise ConfigError(complaint(name, model, error)) from None


def complaint(name: str, model: ModelConfig, error: Exception) -> str:
    """Say which key of a yaml litellm does not like; its own words are searched for the names of parameters, and not repeated."""
    said = str(error)
    asked = [*parameters_of(model, Call((), (0, 1) if model.native_n else (0,), model.seed, {"type": "object", "properties": {}}))]
    blamed = [KEYS.get(parameter, parameter) for parameter in asked if re.search(rf"\b{re.escape(parameter)}\b", said)]
    keys = ", ".join(f"`parameters: {key}`" if key in model.parameters else f"`{key}`" for key in blamed)
    return (
        f"model {name}: litellm cannot make a call of {keys or 'its yaml'} ({type(error).__name__}): this provider or model does not take"
        f" it, or not this value; take it out of the yaml, a parameter that is left out silently would be another experiment"
    )


def _only_responses(model: str, provider: str) -> bool:
    from litellm import get_model_info

    try:
        return get_model_info(model, custom_llm_provider=provider).get("mode") == "responses"
    except Exception:  # litellm does not know the model, and says so with a plain Exception
        return False


def _response_format(model: ModelConfig, call: Call) -> dict[str, Any] | None:
    if call.schema is None or model.structured_output == "none":
        return None
    if model.structured_output == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": strict_schema(call.schema)}}
