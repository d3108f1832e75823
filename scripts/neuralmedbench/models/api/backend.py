"""Models behind an API: one attempt per call, because retries are decided in one place (`models.retry`).

OpenAI's protocol, which most servers speak, is spoken here; other providers are called through litellm (`models.api.through_litellm`).
"""

from __future__ import annotations

import os
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.chat import POLICY_ERROR, NativeCalls
from neuralmedbench.models.api.parameters import check_parameters, parameters_of, rejection_message
from neuralmedbench.models.api.replies import UNREADABLE, answers_of, reply_without_answer
from neuralmedbench.models.api.wire import BAD_CERTIFICATE, Exchange, OneHost, UnansweredError, warn_about_proxies
from neuralmedbench.models.causes import cause_of
from neuralmedbench.models.destinations import LOCAL, address_of, destination_of
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.retry import CallError, parse_retry_after

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
        self._key = (os.environ.get(model.api_key_env) if model.api_key_env else None) or ""
        self._host = OneHost(address, model.timeout_s)
        self._calls = (NativeCalls if native else _litellm_calls())(model, self._host, self._key or NO_KEY)

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Make one attempt; see `models.protocol.Backend`."""
        return await self._exchange(call, Exchange())

    async def request_of(self, call: Call) -> tuple[bytes, dict[str, str]]:
        """Return the body that a call would send, and its headers (names in lower case); nothing is sent."""
        exchange = Exchange(capture=True)
        try:
            await self._calls.ask(call.messages, parameters_of(self._model, call), exchange)
        except (CallError, UnansweredError) as error:  # there is no reply
            if not exchange.request and isinstance(error, UnansweredError):
                raise ConfigError(str(self._failure(error, exchange))) from None
        return exchange.request, exchange.request_headers

    async def answers_from(self, body: bytes, call: Call) -> tuple[Answer, ...]:
        """Read a reply that came with a batch as `answer` reads one that comes now."""
        return await self._exchange(call, Exchange(given=body))

    async def _exchange(self, call: Call, exchange: Exchange) -> tuple[Answer, ...]:
        try:
            choices = await self._calls.ask(call.messages, parameters_of(self._model, call), exchange)
            return answers_of(choices, exchange.body, self._key)[: len(call.repeats)]
        except CallError as unanswered:
            raise reply_without_answer(exchange.body, exchange.status or 200) or unanswered from None
        except UnansweredError as error:
            failure = self._failure(error, exchange)
        if isinstance(failure, Answer):
            return (failure,) * len(call.repeats)
        raise failure

    def stop(self) -> None:
        """Nothing waits here: every call that has begun is in flight."""

    async def close(self) -> None:
        """Close the connections."""
        await self._host.close()

    def _failure(self, error: UnansweredError, exchange: Exchange) -> Answer | CallError | ConfigError:
        """Say why a request has no answer; a provider's text is never passed on, because it may repeat the prompt or the key."""
        if exchange.elsewhere:
            message = (
                f"model {self._model.name}: its request would have gone to {exchange.elsewhere}, which is not the host that was checked; nothing"
                " was sent: unset the variables of the environment that send litellm elsewhere, or set api_base"
            )
            return ConfigError(message)
        if not exchange.sent and exchange.given is None:
            rejected = None if exchange.unsendable else error.cause
            return ConfigError(rejection_message(self._model, rejected) if rejected else UNSENDABLE.format(self._model.name))
        if error.kind == POLICY_ERROR:
            return Answer("", "refused", "content_filter")
        if exchange.unreached:
            return CallError(exchange.unreached, final=exchange.unreached == BAD_CERTIFICATE, sent=False)
        if exchange.status is None or exchange.status < 300:
            unread = "TooLong" if exchange.too_long else UNREADABLE
            failure = CallError("NoReply" if exchange.status is None else unread, final=exchange.too_long)
            return reply_without_answer(exchange.body, exchange.status or 200) or failure
        cause = cause_of(exchange.status, exchange.body)
        return CallError(error.kind, exchange.status, parse_retry_after(exchange.headers), cause=cause)


def _litellm_calls() -> Any:
    from neuralmedbench.models.api.through_litellm import LitellmCalls

    return LitellmCalls
