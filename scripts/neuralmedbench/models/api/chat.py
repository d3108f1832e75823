"""OpenAI's protocol (chat completions), which most servers speak: a body and a reply in JSON."""

from __future__ import annotations

import base64
import json
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from yarl import URL

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.api.replies import ReplyChoice, choices_of
from neuralmedbench.models.api.wire import Exchange, OneHost, UnansweredError
from neuralmedbench.models.protocol import Message, MessageImage

OPENAI, PATH = "https://api.openai.com/v1", "chat/completions"

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


def chat_messages(messages: Sequence[Message], url_of: Callable[[MessageImage], str]) -> list[dict[str, Any]]:
    """Return messages in the form of OpenAI's protocol; `url_of` gives the address of a picture."""

    def part(one: str | MessageImage) -> dict[str, Any]:
        return {"type": "text", "text": one} if isinstance(one, str) else {"type": "image_url", "image_url": {"url": url_of(one)}}

    return [{"role": message.role, "content": list(map(part, message.parts)) if message.images else message.words} for message in messages]


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
