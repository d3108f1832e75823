"""Open the batch interface of a model's provider."""

from __future__ import annotations

import asyncio
import os
from urllib.parse import urlsplit

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.batch.anthropic import VERSION, AnthropicBatches
from neuralmedbench.models.batch.client import BatchClient, BatchHttp
from neuralmedbench.models.batch.google import GoogleBatches
from neuralmedbench.models.batch.openai import OpenAIBatches
from neuralmedbench.models.destinations import address_of


def batch_client(model: ModelConfig, stop: asyncio.Event) -> BatchClient:
    """Open the batch interface of a model's provider, one of `destinations.BATCH_PROVIDERS`."""
    key = (os.environ.get(model.api_key_env) if model.api_key_env else None) or "no-key"
    provider, _, name = model.id.partition("/")
    address = address_of(model)
    place = urlsplit(address)
    # a gateway may serve a provider below a path
    root = (
        f"{place.scheme}://{place.netloc}{place.path.rstrip('/').removesuffix('/v1/messages').removesuffix('/v1').removesuffix('/v1beta')}"
    )
    if provider == "anthropic":
        return AnthropicBatches(BatchHttp(model.name, address, key, {"x-api-key": key, "anthropic-version": VERSION}, stop), root)
    if provider == "gemini":
        return GoogleBatches(BatchHttp(model.name, address, key, {"x-goog-api-key": key}, stop), root, name)
    base = model.api_base or f"{root}/v1"
    return OpenAIBatches(BatchHttp(model.name, address, key, {"authorization": f"Bearer {key}"}, stop), base)
