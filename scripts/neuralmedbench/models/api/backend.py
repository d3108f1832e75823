"""Models behind an API, through litellm: one attempt per call, because retries are decided in one place (`models.retry`)."""

from __future__ import annotations

import base64
import datetime
import logging
import os
import re
from collections import deque
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.replies import answers_of, reply_without_answer
from neuralmedbench.models.api.wire import BAD_CERTIFICATE, EXCHANGE, Exchange, OneHost, warn_about_proxies
from neuralmedbench.models.call_keys import strict_schema
from neuralmedbench.models.causes import cause_of
from neuralmedbench.models.destinations import LOCAL, address_of, destination_of
from neuralmedbench.models.protocol import Answer, Call, Message, MessageImage
from neuralmedbench.models.retry import CallError, parse_retry_after

NO_KEY = "no-key"
"""Sent to a server that needs no key, so that litellm never picks up a key of another provider from the environment."""

UNSENDABLE = (
    "model {}: HTTP does not allow its address or its key as they are, nothing was sent; look for a line end or a blank in api_base and in the"
    " variable that api_key_env names"
)

POLICY_ERROR = "ContentPolicyViolationError"
"""litellm's class for a status 400 by which a content filter rejects the request."""


class LitellmBackend:
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
        self._litellm = import_litellm()
        check_parameters(model)
        address = address_of(model)
        if destination_of(model) != LOCAL:
            warn_about_proxies(model.name, address)
        self._key = (os.environ.get(model.api_key_env) if model.api_key_env else None) or ""
        self._client = _client(address, model.timeout_s)
        self._encoder = PictureEncoder()

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Make one attempt; see `models.protocol.Backend`."""
        exchange = Exchange()
        EXCHANGE.set(exchange)
        model = self._model
        try:
            reply = await self._litellm.acompletion(
                model=model.id,
                messages=[self._message(message) for message in call.messages],
                api_base=model.api_base,
                api_key=self._key or NO_KEY,
                client=self._client,
                litellm_logging_obj=no_log(model.id),
                timeout=model.timeout_s,
                max_retries=0,
                num_retries=0,
                **parameters_of(model, call),
            )
            return answers_of(reply, exchange.body, self._key)[: len(call.repeats)]
        except CallError as unanswered:
            raise reply_without_answer(exchange.body, exchange.status or 200) or unanswered from None
        except Exception as error:  # litellm's errors share no base class
            failure = self._failure(error, exchange)
        if isinstance(failure, Answer):
            return (failure,) * len(call.repeats)
        raise failure

    def stop(self) -> None:
        """Nothing waits here: every call that has begun is in flight."""

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _message(self, message: Message) -> dict[str, Any]:
        if not message.images:
            return {"role": message.role, "content": message.words}
        return {"role": message.role, "content": [self._part(part) for part in message.parts]}

    def _part(self, part: str | MessageImage) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        return {"type": "image_url", "image_url": {"url": self._encoder.url(part)}}

    def _failure(self, error: Exception, exchange: Exchange) -> Answer | CallError | ConfigError:
        """Translate an error of litellm; its text is never passed on, because it may repeat the prompt or the key."""
        if exchange.elsewhere:
            message = (
                f"model {self._model.name}: its request would have gone to {exchange.elsewhere}, which is not the host that was checked; nothing"
                " was sent: unset the variables of the environment that send litellm elsewhere, or set api_base"
            )
            return ConfigError(message)
        kind = type(error).__name__
        if not exchange.sent:
            return ConfigError(UNSENDABLE.format(self._model.name) if exchange.unsendable else rejection_message(self._model, error))
        if kind == POLICY_ERROR:
            return Answer("", "refused", "content_filter")
        if exchange.unreached:
            return CallError(exchange.unreached, final=exchange.unreached == BAD_CERTIFICATE, sent=False)
        if exchange.status is None or exchange.status < 300:
            unread = "TooLong" if exchange.too_long else "Unreadable"
            failure = CallError("NoReply" if exchange.status is None else unread, final=exchange.too_long)
            return reply_without_answer(exchange.body, exchange.status or 200) or failure
        cause = cause_of(exchange.status, exchange.body)
        return CallError(kind, exchange.status, parse_retry_after(exchange.headers), cause=cause)


def _client(address: str, timeout_s: float) -> Any:
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    return AsyncHTTPHandler(timeout=timeout_s, transport=OneHost(address, timeout_s), follow_redirects=False)


RECENT_PICTURES = 32


class _Url(str):
    """A string that can be held by a weak reference; `str` itself cannot."""


class PictureEncoder:
    """Encodes pictures as data URLs: once for all samples and turns that show a picture, and freed when no call holds it.

    The most recent ones are kept in any case, for a dialogue whose next turn shows them again.
    """

    def __init__(self, recent: int = RECENT_PICTURES) -> None:
        self._shared: WeakValueDictionary[str, _Url] = WeakValueDictionary()
        self._recent: deque[_Url] = deque(maxlen=recent)

    def url(self, image: MessageImage) -> str:
        """Return the data URL of a picture."""
        url = self._shared.get(image.sha256)
        if url is None:
            url = self._shared[image.sha256] = _Url(f"data:image/png;base64,{base64.b64encode(image.png).decode('ascii')}")
            self._recent.append(url)
        return url


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


def check_parameters(model: ModelConfig) -> None:
    """Refuse a yaml with a parameter that the provider does not take, before anything is sent; ConfigError."""
    import_litellm()
    from litellm.types.utils import all_litellm_params
    from litellm.utils import get_optional_params

    for parameter in model.parameters:
        if parameter in RESERVED or parameter in all_litellm_params or parameter.startswith("litellm"):
            message = f"model {model.name}: `parameters: {parameter}` is not passed on; it has a key of its own in the yaml, or is none of a model"
            raise ConfigError(message)
    whole = Call((), (0, 1) if model.native_n else (0,), model.seed, {"type": "object", "properties": {}})
    provider, _, rest = model.id.partition("/")
    if _only_responses(rest, provider):
        message = f"model {model.name}: its provider serves it over the Responses interface alone, which is not spoken here; take a model that chats"
        raise ConfigError(message)
    try:
        get_optional_params(model=rest, custom_llm_provider=provider, **parameters_of(model, whole))
    except Exception as error:  # litellm's errors share no base class
        raise ConfigError(rejection_message(model, error)) from None


def _only_responses(model: str, provider: str) -> bool:
    from litellm import get_model_info

    try:
        return get_model_info(model, custom_llm_provider=provider).get("mode") == "responses"
    except Exception:  # litellm raises a plain Exception for a model that it does not know
        return False


def rejection_message(model: ModelConfig, error: Exception) -> str:
    """Say which keys of a yaml litellm rejects; its text is searched for names of parameters, and not repeated."""
    text = str(error)
    sent = [*parameters_of(model, Call((), (0, 1) if model.native_n else (0,), model.seed, {"type": "object", "properties": {}}))]
    blamed = [KEYS.get(parameter, parameter) for parameter in sent if re.search(rf"\b{re.escape(parameter)}\b", text)]
    keys = ", ".join(f"`parameters: {key}`" if key in model.parameters else f"`{key}`" for key in blamed)
    return (
        f"model {model.name}: litellm cannot make a call of {keys or 'its yaml'} ({type(error).__name__}): this provider or model does not take"
        f" it, or not this value; take it out of the yaml, a parameter that is left out silently would be another experiment"
    )


SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "True",
}
"""No download of prices; no `.env` file, which could send requests elsewhere; for `openai/` the handler that litellm uses for all other
providers: it sends the same body as the openai package at two thirds of the CPU time, and through our own client."""

LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpcore", "openai", "aiohttp", "asyncio")


@cache
def import_litellm() -> Any:
    """Import litellm with downloads, printing, caching and retries turned off."""
    os.environ.update(SETTINGS)
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    litellm.cache = None
    litellm.num_retries = None
    vars(litellm.main)["encoding"] = NoTokens()
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


class NoTokens:
    """Replaces the tokenizer that litellm loads with its first call (0.7 s, 40 MB) for providers that report no counts.

    Such counts are not used here: see `models.api.usage`.
    """

    def encode(self, *_: object, **__: object) -> list[int]:
        """Return no tokens."""
        return []


def no_log(model: str) -> Any:
    """Make litellm's logging object of one call, which logs nothing.

    Otherwise litellm prices every answer and passes a record with the whole conversation to callbacks: two fifths of its CPU time, for
    records that are never read here. Errors are not recorded either, because they hold headers and the prompt.
    """
    logging_object = _no_log_class()(
        model=model,
        messages=[],
        stream=False,
        call_type="acompletion",
        start_time=datetime.datetime.now(),  # noqa: DTZ005 litellm subtracts a naive datetime from it
        litellm_call_id="unlogged",  # an id per call would cost half a millisecond, for logs that are not written
        function_id="",
        kwargs={},
    )
    logging_object.update_environment_variables(model=model, user="", optional_params={}, litellm_params={"api_base": ""})
    return logging_object


@cache
def _no_log_class() -> Any:
    from litellm.litellm_core_utils.litellm_logging import Logging

    def nothing(*_: object, **__: object) -> None:
        """Do nothing."""

    async def nothing_later(*_: object, **__: object) -> None:
        """Do nothing."""

    silent = {
        "response_cost_calculator": nothing,
        "claim_async_success_log": nothing,
        "handle_sync_success_callbacks_for_async_calls": nothing,
        "failure_handler": nothing,
        "async_failure_handler": nothing_later,
    }
    missing = [name for name in silent if not hasattr(Logging, name)]
    if missing:
        message = f"litellm has no {missing[0]} any more: install the version of requirements.lock"
        raise ImportError(message)
    return type("NoLog", (Logging,), silent)
