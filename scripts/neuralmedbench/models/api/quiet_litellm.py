"""Litellm without what it does beside a call: no download, no price, no log, no cache."""

from __future__ import annotations

import datetime
import logging
import os
from functools import cache
from typing import Any

SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "True",
}
"""No download of prices; no reading of a `.env`, which could send requests elsewhere; for `openai/` the handler that litellm uses for all
other providers: it sends the same body as the openai package for two thirds of the work, and through a client that is ours."""
LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpcore", "openai", "aiohttp", "asyncio")


class NoTokens:
    """Stands for the tokenizer that litellm loads with its first call (0.7 s, 40 MB) to count what a provider does not count itself.

    Such counts are not used here: see `models.api.replies`.
    """

    def encode(self, *_: object, **__: object) -> list[int]:
        """Give no tokens."""
        return []


@cache
def import_litellm() -> Any:
    """Import litellm so that it neither downloads, prints, keeps nor repeats anything."""
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


def no_log(model: str) -> Any:
    """Make the object by which litellm logs one call, so that it logs nothing.

    Litellm prices every answer, writes a record of it with the whole conversation and offers that to callbacks: two fifths of its work,
    for something that is never read here. Errors are not recorded either; they hold headers and the prompt.
    """
    made = _no_log_class()(
        model=model,
        messages=[],
        stream=False,
        call_type="acompletion",
        start_time=datetime.datetime.now(),  # noqa: DTZ005 litellm subtracts a time without a zone from it
        litellm_call_id="unlogged",  # an own one for each call would cost half a millisecond, for logs that nobody writes
        function_id="",
        kwargs={},
    )
    made.update_environment_variables(model=model, user="", optional_params={}, litellm_params={"api_base": ""})
    return made


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
