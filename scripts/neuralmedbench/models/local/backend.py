"""Models with open weights, from a folder on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.errors import ConfigError, ProviderError
from neuralmedbench.models.local.batching import BatchingBackend
from neuralmedbench.models.local.settings import GenerationSettings, sampling_of
from neuralmedbench.models.local.weights import Weights

if TYPE_CHECKING:
    from neuralmedbench.config.model import ModelConfig


class TransformersBackend(BatchingBackend):
    """A vision-language model that transformers can load through its Auto classes.

    Parameters
    ----------
    name : str
        Name of the model, for messages.
    model : ModelConfig
        Its yaml; `id` is the folder with weights, tokenizer and processor.

    Raises
    ------
    ConfigError
        If the yaml names a parameter that local weights do not take, or no longest answer.
    ProviderError
        If the folder or the library is not there, the folder holds something else or not all of it, or the card is too small.

    Notes
    -----
    On a graphics card the weights keep the number type of the checkpoint (bfloat16 as a rule), elsewhere they are float32. One card
    is used, the first that is visible.
    """

    def __init__(self, name: str, model: ModelConfig) -> None:
        if model.max_tokens is None:
            message = f"model {name}: local weights need max_tokens"
            raise ConfigError(message)
        weights, processor = _load(name, Path(model.id))
        try:
            sampling = sampling_of(model.temperature, model.top_p, model.parameters, weights.generation_config)
        except ConfigError as error:
            message = f"model {name}: {error}"
            raise ConfigError(message) from None
        settings = GenerationSettings(max_tokens=model.max_tokens, batch_size=model.batch_size, logprobs=model.logprobs, **sampling)
        ready = Weights(weights, processor, settings)
        drawn = ", ".join(f"{key} {value:g}" for key, value in sampling.items() if value is not None)
        print(f"{name}: {type(weights).__name__}, {ready.fingerprint}; {drawn}", file=sys.stderr)
        super().__init__(name, ready, settings)


def _load(name: str, folder: Path) -> tuple[Any, Any]:
    """Give the weights, on the device where they shall compute, and their processor."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    if not folder.is_dir():
        message = f"model {name}: its id is not a folder here; put the weights there or correct `id`"
        raise ProviderError(message)
    try:
        import torch
        from safetensors import SafetensorError
        from transformers import AutoModelForImageTextToText, AutoProcessor
        from transformers.utils import logging
    except ImportError:
        message = f"model {name}: torch and transformers are not installed; see envs/inference.yaml"
        raise ProviderError(message) from None
    said: Any = logging
    said.disable_progress_bar()
    auto: Any = AutoModelForImageTextToText
    processors: Any = AutoProcessor
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = "auto" if device == "cuda" else torch.float32
    try:
        processor = processors.from_pretrained(folder, local_files_only=True)
        weights, found = auto.from_pretrained(folder, local_files_only=True, dtype=dtype, output_loading_info=True)
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        message = f"model {name}: transformers cannot load what lies in its folder ({type(error).__name__})"
        raise ProviderError(message) from None
    if absent := len(found["missing_keys"]) + len(found["mismatched_keys"]):  # transformers would fill them with random numbers
        message = f"model {name}: {absent} of its tensors are not in its folder, or have another shape there; copy the weights again"
        raise ProviderError(message)
    if not getattr(processor, "chat_template", None):
        message = f"model {name}: its folder has no chat template; weights that were tuned to answer come with one"
        raise ProviderError(message)
    try:
        return weights.to(device), processor
    except torch.OutOfMemoryError:
        message = f"model {name}: its weights do not fit on the graphics card; serve them over several (vLLM, `api_base`)"
        raise ProviderError(message) from None
