"""Calls through litellm, for providers whose protocol is not spoken here; and what litellm knows about the parameters of a model."""

from __future__ import annotations

import datetime
import logging
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

import httpx
from yarl import URL

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.api.chat import PictureEncoder, chat_messages
from neuralmedbench.models.api.replies import ReplyChoice, choices_of_litellm, readable_by_litellm
from neuralmedbench.models.api.wire import Exchange, OneHost, UnansweredError
from neuralmedbench.models.protocol import Message

OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that describe the encoding of a body."""

EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")
"""The exchange of the call in flight in this task."""


class LitellmCalls:
    """Calls of one model through litellm; the requests go through `OneHost` all the same."""

    def __init__(self, model: ModelConfig, host: OneHost, key: str) -> None:
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        self._model, self._key, self._encoder = model, key, PictureEncoder()
        self._litellm = import_litellm()
        self._client = AsyncHTTPHandler(timeout=model.timeout_s, transport=_Transport(host), follow_redirects=False)

    async def ask(self, messages: Sequence[Message], parameters: Mapping[str, Any], exchange: Exchange) -> list[ReplyChoice]:
        """Make one request; see `models.api.chat.NativeCalls`."""
        EXCHANGE.set(exchange)
        model = self._model
        try:
            reply = await self._litellm.acompletion(
                model=model.id,
                messages=chat_messages(messages, self._encoder.url),
                api_base=model.api_base,
                api_key=self._key,
                client=self._client,
                litellm_logging_obj=no_log(model.id),
                timeout=model.timeout_s,
                max_retries=0,
                num_retries=0,
                **parameters,
            )
        except Exception as error:  # litellm's errors share no base class
            raise UnansweredError(type(error).__name__, error) from None
        return choices_of_litellm(reply, exchange.body)


class _Transport(httpx.AsyncBaseTransport):
    """Sends litellm's requests through `OneHost`."""

    def __init__(self, host: OneHost) -> None:
        self._host = host

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read its whole response.

        Every failure becomes httpx.ReadError: after an error of another class litellm would send the request again.
        """
        exchange = EXCHANGE.get(None) or Exchange()
        url = URL(str(request.url), encoded=True)
        if not await self._host.send(request.method, url, request.headers.multi_items(), request.content or None, exchange):
            message = "no reply"
            raise httpx.ReadError(message)
        headers = {name: value for name, value in exchange.headers.items() if name not in OF_THE_BODY}
        # the exchange keeps the reply as it came; litellm gets it without invalid statistics
        return httpx.Response(exchange.status or 0, headers=headers, content=readable_by_litellm(exchange.body), request=request)


def sent_parameters(model: str, provider: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that litellm would send; raises its own errors for those that the provider does not take."""
    import_litellm()
    from litellm.utils import get_optional_params

    sent = get_optional_params(model=model, custom_llm_provider=provider, **asked)
    further = sent.pop("extra_body", None) or {}
    return {name: value for name, value in sent.items() if name != "stream"} | further


def is_own_parameter(name: str) -> bool:
    """Return True for a parameter of litellm itself, which changes more than the body of a request."""
    import_litellm()
    from litellm.types.utils import all_litellm_params

    return name in all_litellm_params or name.startswith("litellm")


def has_only_responses(model: str, provider: str) -> bool:
    """Return True for a model that its provider serves over the Responses interface alone."""
    import_litellm()
    from litellm import get_model_info

    try:
        return get_model_info(model, custom_llm_provider=provider).get("mode") == "responses"
    except Exception:  # litellm raises a plain Exception for a model that it does not know
        return False


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
