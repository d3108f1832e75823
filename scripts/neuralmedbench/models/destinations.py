"""The host to which a model's requests go, whether the benchmark allows it, and what a job takes while it asks: an API slot or a GPU."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError

LOCAL = "local"
"""In this process, or on this machine."""
WITHOUT_ENCRYPTION = "http://"
"""Before a host in `allowed_destinations`: requests may also go there without encryption. Requests to this machine always may."""
WITH_BATCHES = "batch://"
"""Before a host in `allowed_destinations`: it may also be sent batches, which a provider keeps as files until they are deleted. This machine
always may."""
BATCH_PROVIDERS = ("openai", "hosted_vllm", "anthropic", "gemini")
"""Providers whose batch interface is spoken here; `openai` for any compatible server."""
HOSTS = {
    "openai": "api.openai.com",
    "hosted_vllm": "",
    "anthropic": "api.anthropic.com",
    "gemini": "generativelanguage.googleapis.com",
    "mistral": "api.mistral.ai",
    "openrouter": "openrouter.ai",
    "xai": "api.x.ai",
    "deepseek": "api.deepseek.com",
}
"""Supported providers, and the hosts of those that need no `api_base`.

Only for these do tests show (tests/unit/models/test_wire.py) that a call goes once, to the checked host, and follows no redirect. Whatever
litellm reads from its settings and the environment, `models.api.wire` lets nothing through to another host.
"""
API, GPU = "api_slots", "gpu"
"""Names of the resources; the profiles set how many there are."""


def destination_of(model: ModelConfig) -> str:
    """Return the host to which the requests of a model go.

    Parameters
    ----------
    model : ModelConfig
        Its yaml.

    Returns
    -------
    str
        `local`, or a host name in lower case.

    Raises
    ------
    ConfigError
        If it cannot be determined: an unknown provider, no `api_base` where one is needed, or an environment variable that would
        send the requests elsewhere.
    """
    if model.backend != "litellm":
        return LOCAL
    # the provider decides which protocol litellm speaks, and the default host
    provider = model.id.partition("/")[0]
    if "/" not in model.id or provider not in HOSTS:
        message = (
            f"model {model.name}: write its id as provider/model with a provider of {', '.join(HOSTS)} (openai for any compatible server)"
        )
        raise ConfigError(message)
    if model.api_base is not None:
        host = (urlsplit(model.api_base).hostname or "").lower()
        if host in {"", LOCAL}:  # a host named `local` would be taken for this machine
            message = f"model {model.name}: api_base is not a full address; write it as https://host.domain/v1"
            raise ConfigError(message)
        return LOCAL if _is_loopback(host) else host
    if not HOSTS[provider]:
        message = f"model {model.name}: where it is served is not known; set api_base"
        raise ConfigError(message)
    # litellm reads these variables and would send requests to their host
    for variable in (f"{provider.upper()}_API_BASE", f"{provider.upper()}_BASE_URL"):
        if os.environ.get(variable):
            message = f"model {model.name}: the environment variable {variable} would send its requests elsewhere; unset it or set api_base"
            raise ConfigError(message)
    return HOSTS[provider]


def address_of(model: ModelConfig) -> str:
    """Return the address of a model's server: its scheme, host and port are what `models.api.wire` allows."""
    destination = destination_of(model)
    return model.api_base or f"https://{destination}/"


def check_destination(model: ModelConfig, allowed: Sequence[str]) -> str:
    """Refuse a model whose requests would go where the benchmark does not allow.

    Parameters
    ----------
    model : ModelConfig
        Its yaml.
    allowed : sequence of str
        `allowed_destinations` of the benchmark: `local` or host names, matched whole; `http://host` allows plain http too, `batch://host` batches.

    Returns
    -------
    str
        The destination.

    Raises
    ------
    ConfigError
        If it is not allowed, is plain http to another machine without being allowed as such, or cannot be determined.
    """
    destination = destination_of(model)
    if not is_allowed(model, destination, allowed):
        if _is_plain(model) and destination in _entries(allowed):
            message = (
                f"model {model.name}: its api_base begins with http://, so data and key would go to {destination} without encryption: use https://,"
                f" or if your network may carry them so, write `{WITHOUT_ENCRYPTION}{destination}` in allowed_destinations of the benchmark"
            )
            raise ConfigError(message)
        message = (
            f"model {model.name}: its requests would go to {destination}, allowed are: {', '.join(allowed) or 'none'};"
            " add it to allowed_destinations of the benchmark only if these data may go there"
        )
        raise ConfigError(message)
    if model.batch and (provider := model.id.partition("/")[0]) not in BATCH_PROVIDERS:
        message = (
            f"model {model.name}: `batch` is spoken with {', '.join(f'{name}/' for name in BATCH_PROVIDERS)} and compatible servers, not with"
            f" {provider}/; take `batch` out of its yaml"
        )
        raise ConfigError(message)
    if model.batch and destination != LOCAL and f"{WITH_BATCHES}{destination}" not in _entries(allowed):
        message = (
            f"model {model.name}: `batch` needs a permission of its own, because {destination} keeps what is handed in as files until they are"
            f" deleted after collection: write `{WITH_BATCHES}{destination}` in allowed_destinations of the benchmark, or take `batch` out of its yaml"
        )
        raise ConfigError(message)
    return destination


def is_allowed(model: ModelConfig, destination: str, allowed: Sequence[str]) -> bool:
    """Return True if a benchmark allows the destination of a model, encrypted or not as its `api_base` says."""
    entries, encrypted = _entries(allowed), destination == LOCAL or not _is_plain(model)
    return f"{WITHOUT_ENCRYPTION}{destination}" in entries or (encrypted and destination in entries)


def _entries(allowed: Sequence[str]) -> set[str]:
    return {entry.lower().rstrip("/") for entry in allowed}


def _is_plain(model: ModelConfig) -> bool:
    return (model.api_base or "").lower().startswith(WITHOUT_ENCRYPTION)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def resources_of(*models: ModelConfig | None) -> dict[str, int]:
    """Return the resources that a job takes while it asks a model, or a model and its informant.

    Parameters
    ----------
    *models : ModelConfig or None
        Their yaml; None for a grader that asks no model.

    Returns
    -------
    dict of str to int
        Only resources that are taken, because some cluster plugins read `gpu: 0` as a request. A remote host takes one of `api_slots`;
        weights that the job serves take one `gpu` (on a machine without one it limits the models that compute at once). A server
        that runs already has its own queue and takes nothing.
    """
    found: dict[str, int] = {}
    for model in models:
        found |= _resources_of(model)
    return found


def _resources_of(model: ModelConfig | None) -> dict[str, int]:
    if model is None or model.backend in ("builtin", "imported", "transformers"):
        return {}
    if model.backend == "server":
        return {GPU: 1}
    try:
        return {} if destination_of(model) == LOCAL else {API: 1}
    except ConfigError:
        # the job explains what is wrong with the address; a plan may still be made
        return {API: 1}
