"""Models behind an API, through litellm: one attempt a call, because retries are decided in one place (`models.retry`)."""

from __future__ import annotations

import base64
import math
import os
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.parameters import check_parameters, complaint, import_litellm, no_log, parameters_of
from neuralmedbench.models.api.usage import reply_object, tokens_of
from neuralmedbench.models.api.wire import BAD_CERTIFICATE, EXCHANGE, Exchange, OneHost, tell_of_proxies
from neuralmedbench.models.destinations import LOCAL, address_of, destination_of
from neuralmedbench.models.protocol import Answer, Call, Message, MessageImage
from neuralmedbench.models.retry import CallError, asked_wait_s

KEPT = 32


class _Url(str):
    """A text that can be forgotten when nobody holds it any more."""


class PictureEncoder:
    """Pictures as data URLs: each is written once for all samples and turns that show it, and kept only as long as a call holds it.

    The last few are kept in any case, for a dialogue whose next turn shows them again.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._shared: WeakValueDictionary[str, _Url] = WeakValueDictionary()
        self._last: deque[_Url] = deque(maxlen=kept)

    def url(self, image: MessageImage) -> str:
        """Give the data URL of a picture."""
        url = self._shared.get(image.sha256)
        if url is None:
            url = self._shared[image.sha256] = _Url(f"data:image/png;base64,{base64.b64encode(image.png).decode('ascii')}")
            self._last.append(url)
        return url


CUT = frozenset({"length", "max_tokens", "model_length", "model_context_window_exceeded", "max_output_tokens", "compaction"})
"""The answer is longer than the limit that was set, or than the model can write."""
REFUSED = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "recitation", "language", "blocklist", "prohibited_content", "spii"}
    | {"sensitive", "guardrail_intervened", "error_toxic", "image_safety", "image_prohibited_content"}
)
"""The model or its provider's filter would not answer."""
BROKEN = frozenset(
    {"error", "network_error", "insufficient_system_resource", "engine_overloaded", "failed", "abort", "aborted", "cancelled"}
    | {"malformed_response"}
)
"""The provider failed in the middle: what came is half an answer, and litellm calls it a whole one (`stop`)."""
THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
"""Reasoning that a server leaves in the answer; cut off in the middle it has no end."""
LONGEST_NAME = 200


def answers_of(reply: Any, body: bytes, key: str) -> tuple[Answer, ...]:
    """Read the answers of a reply, in the order of their numbers.

    Parameters
    ----------
    reply : litellm.ModelResponse
        The reply as litellm understood it.
    body : bytes
        The reply as it came: litellm renames some ends of an answer (a failure in the middle becomes `stop`) and counts tokens as 0 where
        the provider said nothing.
    key : str
        The key that was sent, or empty; a server may repeat it, and it stands in no ledger.
    """
    raw = reply_object(body)
    prompt, completion, total = tokens_of(raw, getattr(reply, "usage", None), wrote=any(map(_wrote, reply.choices)))
    head = {
        "served_model": _scrubbed(raw.get("model") or raw.get("modelVersion"), key)[:LONGEST_NAME],
        "fingerprint": _scrubbed(raw.get("system_fingerprint"), key)[:LONGEST_NAME],
    }
    answers: list[Answer] = []
    for choice, row in _in_order(reply.choices, raw):
        reason = _end(row) or str(choice.finish_reason or "")
        if reason.lower() in BROKEN:
            continue
        text, refusal = _text(choice.message), (row.get("message") or {}).get("refusal") or ""
        answers.append(
            Answer(
                text=_scrubbed(text or refusal, key),
                state=_state(text, reason.lower(), str(choice.finish_reason), refused=bool(refusal)),
                finish_reason=_scrubbed(reason, key)[:LONGEST_NAME],
                prompt_tokens=0 if answers else prompt,
                completion_tokens=0 if answers else completion,
                total_tokens=None if answers else total,
                token_logprobs=_token_logprobs(choice),
                **head,
            )
        )
    if not answers:
        raise CallError("BrokeOff" if reply.choices else "EmptyReply")
    return tuple(answers)


def _state(text: str, reason: str, mapped: str, *, refused: bool) -> str:
    if reason in CUT or mapped == "length":
        return "truncated"
    return "refused" if refused or reason in REFUSED or mapped == "content_filter" or not text.strip() else "ok"


def _in_order(choices: Sequence[Any], raw: Mapping[str, Any]) -> list[tuple[Any, Mapping[str, Any]]]:
    """Give the choices by the number that the provider gave each (litellm counts anew), each with what the provider wrote."""
    rows = raw.get("choices") or raw.get("candidates") or [raw]  # OpenAI's form, Gemini's, Anthropic's
    rows = rows if isinstance(rows, list) and len(rows) == len(choices) else [{}] * len(choices)
    ordered = sorted(range(len(choices)), key=lambda place: rows[place].get("index") or 0)
    return [(choices[place], rows[place]) for place in ordered]


def _end(row: Mapping[str, Any]) -> str:
    return str(row.get("finish_reason") or row.get("finishReason") or row.get("stop_reason") or "")


def _text(message: Any) -> str:
    """Give the answer without the reasoning that a server, or litellm, took out of it or left in it."""
    text = message.content or ""
    if THOUGHTS.match(text):
        text = THOUGHTS.sub("", text, count=1)
    return text.lstrip() if getattr(message, "reasoning_content", None) else text


def _wrote(choice: Any) -> bool:
    message = choice.message
    return any(getattr(message, name, None) for name in ("content", "refusal", "reasoning_content", "tool_calls"))


def _token_logprobs(choice: Any) -> tuple[float, ...]:
    content = getattr(getattr(choice, "logprobs", None), "content", None) or ()
    values = tuple(float(token.logprob) for token in content)
    return values if all(map(math.isfinite, values)) else ()


def _scrubbed(words: Any, key: str) -> str:
    said = str(words or "")
    return said.replace(key, "[key]") if key else said


NO_KEY = "no-key"
"""Sent to a server that needs no key, so that litellm never picks up a key of another provider from the environment."""
POLICY_ERROR = "ContentPolicyViolationError"
"""Litellm's class for a status 400 that says that a filter would not let the request through."""


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
            tell_of_proxies(model.name, address)
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
        except CallError:
            raise
        except Exception as error:  # litellm's errors share no base class
            failure = self._failure(error, exchange)
        if isinstance(failure, Answer):
            return (failure,) * len(call.repeats)
        raise failure

    def stop(self) -> None:
        """Nothing waits here: a call that has begun is under way."""

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _message(self, message: Message) -> dict[str, Any]:
        if not message.images:
            return {"role": message.role, "content": message.text}
        parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}]
        for image in message.images:
            parts += [{"type": "text", "text": image.label}, {"type": "image_url", "image_url": {"url": self._encoder.url(image)}}]
        return {"role": message.role, "content": parts}

    def _failure(self, error: Exception, exchange: Exchange) -> Answer | CallError | ConfigError:
        """Say what an error of litellm means; its words are read, never passed on: they may repeat the prompt or the key."""
        if exchange.elsewhere:
            message = (
                f"model {self._model.name}: its request would have gone to {exchange.elsewhere}, which is not the host that was checked; nothing"
                " was sent: unset the variables of the environment that send litellm elsewhere, or set api_base"
            )
            return ConfigError(message)
        kind = type(error).__name__
        if not exchange.sent:
            return ConfigError(complaint(self._model, error))
        if kind == POLICY_ERROR:
            return Answer("", "refused", "content_filter")
        if exchange.unreached:
            return CallError(exchange.unreached, final=exchange.unreached == BAD_CERTIFICATE, sent=False)
        if exchange.status is None or exchange.status < 300:
            return CallError("NoReply" if exchange.status is None else "Unreadable")
        return CallError(kind, exchange.status, asked_wait_s(exchange.headers))


def _client(address: str, timeout_s: float) -> Any:
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    return AsyncHTTPHandler(timeout=timeout_s, transport=OneHost(address, timeout_s), follow_redirects=False)
