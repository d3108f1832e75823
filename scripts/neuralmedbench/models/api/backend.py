"""Models behind an API, with the parameters that each takes: one attempt per call, because retries are decided in one place (`models.retry`).

OpenAI's protocol, which most servers speak, is spoken here; other providers are called through litellm (`models.api.through_litellm`).
"""

from __future__ import annotations

import re
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.chat import NativeCalls
from neuralmedbench.models.api.replies import UNREADABLE, answers_of, refusal_of, reply_without_answer
from neuralmedbench.models.api.wire import BAD_CERTIFICATE, Exchange, OneHost, UnansweredError, warn_about_proxies
from neuralmedbench.models.call_keys import strict_schema
from neuralmedbench.models.destinations import LOCAL, address_of, destination_of
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.provider_waits import failed_call
from neuralmedbench.models.retry import CallError

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


def _parameters_of(model: ModelConfig, call: Call) -> dict[str, Any]:
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

    Litellm knows what a provider takes. It is not imported (2 s of CPU, 140 MB) for a server of one's own that is asked without it, with a
    model that it does not know and no `parameters` but sections: there it has no rules.

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
    own = native and bool(model.api_base) and not CATALOGUED.search(name)
    sections = {key for key, value in model.parameters.items() if own and isinstance(value, dict)}
    if own and sections == set(model.parameters):
        return True
    from neuralmedbench.models.api import through_litellm

    for parameter in model.parameters:
        if parameter in RESERVED or through_litellm.is_own_parameter(parameter):
            message = f"model {model.name}: `parameters: {parameter}` is not passed on; it has a key of its own in the yaml, or is none of a model"
            raise ConfigError(message)
    if through_litellm.has_only_responses(name, provider):
        message = f"model {model.name}: its provider serves it over the Responses interface alone, which is not spoken here; take a model that chats"
        raise ConfigError(message)
    asked = {key: value for key, value in _parameters_of(model, _whole_call(model)).items() if key not in sections}
    try:
        sent = through_litellm.sent_parameters(name, provider, asked)
    except Exception as error:  # litellm's errors share no base class
        raise ConfigError(_rejection_message(model, error)) from None
    return native and sent == asked


def _whole_call(model: ModelConfig) -> Call:
    """Return a call with every parameter that one of the model can have."""
    return Call((), (0, 1) if model.native_n else (0,), model.seed, {"type": "object", "properties": {}})


def _rejection_message(model: ModelConfig, error: Exception) -> str:
    """Say which keys of a yaml litellm rejects; its text is searched for names of parameters, and not repeated."""
    text = str(error)
    sent = [*_parameters_of(model, _whole_call(model))]
    blamed = [KEYS.get(parameter, parameter) for parameter in sent if re.search(rf"\b{re.escape(parameter)}\b", text)]
    keys = ", ".join(f"`parameters: {key}`" if key in model.parameters else f"`{key}`" for key in blamed)
    return (
        f"model {model.name}: litellm cannot make a call of {keys or 'its yaml'} ({type(error).__name__}): this provider or model does not take"
        f" it, or not this value; take it out of the yaml, a parameter that is left out silently would be another experiment"
    )


NO_KEY = "no-key"
"""Sent to a server that needs no key, so that litellm never picks up a key of another provider from the environment."""

UNSENDABLE = (
    "model {}: HTTP does not allow its address or its key as they are, nothing was sent; look for a line end or a blank in api_base and in the"
    " variable that api_key_env names"
)


class ApiBackend:
    """An API model.

    Parameters
    ----------
    model : ModelConfig
        Its yaml; the key is read from the environment variable that it names.

    Raises
    ------
    ConfigError
        If the provider does not take a parameter of the yaml.
    """

    def __init__(self, model: ModelConfig) -> None:
        self._model = model
        self.in_flight = model.concurrency
        self.several = model.native_n
        native = check_parameters(model)
        address = address_of(model)
        if destination_of(model) != LOCAL:
            warn_about_proxies(model.name, address)
        self._key = model.api_key
        self._host = OneHost(address, model.timeout_s)
        self._calls = (NativeCalls if native else _litellm_calls())(model, self._host, self._key or NO_KEY)

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Make one attempt; see `models.protocol.Backend`."""
        return await self._exchange(call, Exchange())

    async def request_of(self, call: Call) -> tuple[bytes, dict[str, str]]:
        """Return the body that a call would send, and its headers (names in lower case); nothing is sent."""
        exchange = Exchange(capture=True)
        try:
            await self._calls.ask(call.messages, _parameters_of(self._model, call), exchange)
        except (CallError, UnansweredError) as error:  # there is no reply
            if not exchange.request and isinstance(error, UnansweredError):
                raise ConfigError(str(self._failure(error, exchange))) from None
        return exchange.request, exchange.request_headers

    async def answers_from(self, body: bytes, call: Call) -> tuple[Answer, ...]:
        """Read a reply that came with a batch as `answer` reads one that comes now."""
        return await self._exchange(call, Exchange(given=body))

    async def _exchange(self, call: Call, exchange: Exchange) -> tuple[Answer, ...]:
        try:
            choices = await self._calls.ask(call.messages, _parameters_of(self._model, call), exchange)
            return answers_of(choices, exchange.body, self._key, self._model.thought_marks or ())[: len(call.repeats)]
        except CallError as unanswered:
            failure: CallError | ConfigError = reply_without_answer(exchange.body, exchange.status or 200) or unanswered
        except UnansweredError as error:
            failure = self._failure(error, exchange)
        if isinstance(failure, CallError) and (refusal := refusal_of(failure, exchange.body)):
            return (refusal,) * len(call.repeats)
        raise failure

    def stop(self) -> None:
        """Nothing waits here: every call that has begun is in flight."""

    async def close(self) -> None:
        """Close the connections."""
        await self._host.close()

    def _failure(self, error: UnansweredError, exchange: Exchange) -> CallError | ConfigError:
        """Say why a request has no answer; a provider's text is never passed on, because it may repeat the prompt or the key."""
        if exchange.elsewhere:
            message = (
                f"model {self._model.name}: its request would have gone to {exchange.elsewhere}, which is not the host that was checked; nothing"
                " was sent: unset the variables of the environment that send litellm elsewhere, or set api_base"
            )
            return ConfigError(message)
        if not exchange.sent and exchange.given is None:
            rejected = None if exchange.unsendable else error.cause
            return ConfigError(_rejection_message(self._model, rejected) if rejected else UNSENDABLE.format(self._model.name))
        if exchange.unreached:
            return CallError(exchange.unreached, final=exchange.unreached == BAD_CERTIFICATE, sent=False)
        if exchange.status is None or exchange.status < 300:
            unread = "TooLong" if exchange.too_long else UNREADABLE
            failure = CallError("NoReply" if exchange.status is None else unread, final=exchange.too_long)
            return reply_without_answer(exchange.body, exchange.status or 200) or failure
        return failed_call(error.kind, exchange.status, exchange.headers, exchange.body)


def _litellm_calls() -> Any:
    from neuralmedbench.models.api.through_litellm import LitellmCalls

    return LitellmCalls
