"""Models behind an API, through litellm: one attempt a call, because retries are decided in one place (`models.retry`)."""

from __future__ import annotations

import base64
import os
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.protocol import Answer, Call, Message
from neuralmedbench.models.retry import CallError

OPENAI = "https://api.openai.com/v1"
LOOPBACK = "127.0.0.1,localhost,::1"

NO_KEY = "no-key"
"""Sent to a server that needs no key, so that litellm never picks up a key of another provider from the environment."""


class LitellmBackend:
    """An API model.

    Parameters
    ----------
    model : ModelConfig
        Its yaml; the key is read from the environment variable that it names.
    """

    def __init__(self, model: ModelConfig) -> None:
        self._litellm = _import_litellm()
        self._model = model
        self._key = (os.environ.get(model.api_key_env) if model.api_key_env else None) or NO_KEY
        self._client = _client_without_redirects(model, self._key)

    async def answer(self, call: Call) -> Answer:
        """Make one attempt; see `models.protocol.Backend`."""
        model = self._model
        sampling = {"temperature": model.temperature, "top_p": model.top_p, "max_tokens": model.max_tokens, "seed": call.own_seed}
        try:
            reply = await self._litellm.acompletion(
                model=model.id,
                messages=[_message(message) for message in call.messages],
                api_base=model.api_base,
                api_key=self._key,
                client=self._client,
                timeout=model.timeout_s,
                max_retries=0,
                num_retries=0,
                **{name: value for name, value in sampling.items() if value is not None},
            )
        except Exception as error:  # litellm's errors share no base class
            raise _call_error(error) from None
        return _answer(reply)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
        await self._litellm.close_litellm_async_clients()


def _import_litellm() -> Any:
    """Import litellm so that it neither downloads a price list nor prints or sends anything."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import logging

    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _client_without_redirects(model: ModelConfig, key: str) -> Any:
    """Make a client that goes to the address that was checked and nowhere else: neither a redirect nor a proxy for this machine."""
    import httpx
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
    from openai import AsyncOpenAI

    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), LOOPBACK)))
    if model.id.partition("/")[0] != "openai":
        return AsyncHTTPHandler(timeout=model.timeout_s, follow_redirects=False)
    direct = httpx.AsyncClient(transport=AsyncHTTPHandler.create_async_transport(), follow_redirects=False, timeout=model.timeout_s)
    return AsyncOpenAI(api_key=key, base_url=model.api_base or OPENAI, http_client=direct, max_retries=0)


def _message(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.text}
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}]
    for image in message.images:
        url = f"data:image/png;base64,{base64.b64encode(image.png).decode('ascii')}"
        parts += [{"type": "text", "text": image.label}, {"type": "image_url", "image_url": {"url": url}}]
    return {"role": message.role, "content": parts}


def _answer(reply: Any) -> Answer:
    if not reply.choices:
        raise CallError(kind="EmptyReply")
    choice = reply.choices[0]
    text = choice.message.content or ""
    reason = str(choice.finish_reason or "")
    refusal = getattr(choice.message, "refusal", None) or ""
    usage = getattr(reply, "usage", None)
    return Answer(
        text=text or str(refusal),
        state=_state(text, reason, bool(refusal)),
        finish_reason=reason,
        served_model=str(getattr(reply, "model", "") or ""),
        fingerprint=str(getattr(reply, "system_fingerprint", "") or ""),
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        completion_tokens=getattr(usage, "completion_tokens", None),
    )


def _state(text: str, reason: str, refusal: bool) -> str:
    if reason == "length":
        return "truncated"
    return "refused" if refusal or reason == "content_filter" or not text.strip() else "ok"


def _call_error(error: Exception) -> CallError:
    if isinstance(error, CallError):
        return error
    status = str(getattr(error, "status_code", ""))
    headers = getattr(error, "litellm_response_headers", None) or {}
    try:
        retry_after = float(headers["retry-after"])
    except (KeyError, TypeError, ValueError):  # absent, or a date: our own wait is used
        retry_after = None
    return CallError(type(error).__name__, int(status) if status.isdigit() else None, retry_after)
