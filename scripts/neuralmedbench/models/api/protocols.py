"""The protocols in which models behind an API are asked.

OpenAI's (chat completions), which most servers speak: a body and a reply in JSON. For all other providers litellm, which also knows the
parameters that a model takes.
"""

from __future__ import annotations

import base64
import datetime
import json
import logging
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from http import HTTPStatus
from typing import Any
from weakref import WeakValueDictionary

import httpx
from yarl import URL

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.api.replies import ReplyChoice, choices_of, choices_of_litellm, is_policy_refusal, readable_by_litellm
from neuralmedbench.models.api.wire import Exchange, OneHost, UnansweredError
from neuralmedbench.models.protocol import Message, MessageImage

OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that describe the encoding of a body."""
EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")
"""The exchange of the call in flight in this task."""
OPENAI, PATH = "https://api.openai.com/v1", "chat/completions"
POLICY_ERROR = "ContentPolicyViolationError"
"""Kind of a status 400 by which a content filter rejects the request."""
KINDS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    404: "NotFoundError",
    408: "Timeout",
    422: "BadRequestError",
    429: "RateLimitError",
    500: "InternalServerError",
    502: "BadGatewayError",
    503: "ServiceUnavailableError",
    504: "Timeout",
}
"""Names of refusals, as litellm names them."""


class NativeCalls:
    """Calls of one model in OpenAI's protocol."""

    def __init__(self, model: ModelConfig, host: OneHost, key: str) -> None:
        self._host, self._name, self._encoder = host, model.id.partition("/")[2], PictureEncoder()
        base = (model.api_base or OPENAI).rstrip("/")
        self._url = URL(base if PATH in base else f"{base}/{PATH}")
        self._headers = [("Authorization", f"Bearer {key}"), ("Content-Type", "application/json"), ("User-Agent", "neuralmedbench")]
        self._headers.append(("Accept-Encoding", "gzip, deflate"))  # what `wire` decompresses
        self._mark = os.urandom(16).hex()  # stands for a picture, and occurs in no text

    async def ask(self, messages: Sequence[Message], parameters: Mapping[str, Any], exchange: Exchange) -> list[ReplyChoice]:
        """Make one request.

        Parameters
        ----------
        messages : sequence of Message
            The conversation.
        parameters : mapping
            The other keys of the body.
        exchange : Exchange
            Is filled with what was sent and received.

        Returns
        -------
        list of ReplyChoice
            The answers, in the order of their numbers.

        Raises
        ------
        UnansweredError
            If the request failed.
        CallError
            If the reply cannot be read.
        """
        replied = await self._host.send("POST", self._url, self._headers, self.body(messages, parameters), exchange)
        status = exchange.status or 0
        if replied and 200 <= status < 300:
            return choices_of(exchange.body)
        if status == HTTPStatus.BAD_REQUEST and is_policy_refusal(exchange.body):
            raise UnansweredError(POLICY_ERROR)
        raise UnansweredError(KINDS.get(status, "APIError"))

    def body(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> bytes:
        """Return the body of a request; pictures are put in afterwards, because a JSON encoder looks at each of their characters (0.3 ms for 50 kB)."""
        urls: list[bytes] = []

        def mark(image: MessageImage) -> str:
            urls.append(self._encoder.url(image).encode("ascii"))
            return self._mark

        body = {"model": self._name, "messages": chat_messages(messages, mark), **parameters}
        first, *rest = json.dumps(body).encode().split(self._mark.encode())
        return b"".join([first, *(piece for pair in zip(urls, rest, strict=True) for piece in pair)])


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


class LitellmCalls:
    """Calls of one model through litellm; the requests go through `OneHost` all the same."""

    def __init__(self, model: ModelConfig, host: OneHost, key: str) -> None:
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        self._model, self._key, self._encoder = model, key, PictureEncoder()
        self._litellm = import_litellm()
        self._client = AsyncHTTPHandler(timeout=model.timeout_s, transport=_Transport(host), follow_redirects=False)

    async def ask(self, messages: Sequence[Message], parameters: Mapping[str, Any], exchange: Exchange) -> list[ReplyChoice]:
        """Make one request; see `NativeCalls`."""
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


def chat_messages(messages: Sequence[Message], url_of: Callable[[MessageImage], str]) -> list[dict[str, Any]]:
    """Return messages in the form of OpenAI's protocol; `url_of` gives the address of a picture."""

    def part(one: str | MessageImage) -> dict[str, Any]:
        return {"type": "text", "text": one} if isinstance(one, str) else {"type": "image_url", "image_url": {"url": url_of(one)}}

    return [{"role": message.role, "content": list(map(part, message.parts)) if message.images else message.words} for message in messages]
