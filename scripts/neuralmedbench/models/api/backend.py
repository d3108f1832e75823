"""Models behind an API, through litellm: one attempt a call, because retries are decided in one place (`models.control.retry`)."""

from __future__ import annotations

import os
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.encoder import PictureEncoder
from neuralmedbench.models.api.quiet_litellm import import_litellm, no_log
from neuralmedbench.models.api.replies import answers_of
from neuralmedbench.models.api.sent_parameters import check_parameters, complaint, parameters_of
from neuralmedbench.models.api.wire import BAD_CERTIFICATE, EXCHANGE, Exchange, OneHost, tell_of_proxies
from neuralmedbench.models.control.retry import CallError, asked_wait_s
from neuralmedbench.models.destinations import LOCAL, address_of, destination_of
from neuralmedbench.models.protocol import Answer, Call, Message

NO_KEY = "no-key"
"""Sent to a server that needs no key, so that litellm never picks up a key of another provider from the environment."""
POLICY_ERROR = "ContentPolicyViolationError"
"""Litellm's class for a status 400 that says that a filter would not let the request through."""


class LitellmBackend:
    """An API model.

    Parameters
    ----------
    name : str
        Name of the model, for messages.
    model : ModelConfig
        Its yaml; the key is read from the environment variable that it names.

    Raises
    ------
    ConfigError
        If the provider does not take a parameter of the yaml.
    """

    def __init__(self, name: str, model: ModelConfig) -> None:
        self._name, self._model = name, model
        self.in_flight = model.concurrency
        self.several = model.native_n
        self._litellm = import_litellm()
        check_parameters(name, model)
        address = address_of(name, model)
        if destination_of(name, model) != LOCAL:
            tell_of_proxies(name, address)
        self._key = (os.environ.get(model.api_key_env) if model.api_key_env else None) or ""
        self._client = _client(address, model.timeout_s)
        self._encoder = PictureEncoder()

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Make one attempt; see `models.protocol.Backend`.

        Raises
        ------
        ConfigError
            If the call cannot be made as the yaml wants it: a parameter that the model does not take, or litellm would have sent it to
            a host that was not checked.
        """
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
                f"model {self._name}: its request would have gone to {exchange.elsewhere}, which is not the host that was checked; nothing"
                " was sent: unset the variables of the environment that send litellm elsewhere, or set api_base"
            )
            return ConfigError(message)
        kind = type(error).__name__
        if not exchange.sent:
            return ConfigError(complaint(self._name, self._model, error))
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
