"""The vector of a text does not depend on the other texts."""

from __future__ import annotations

import numpy as np
import pytest

from neuralmedbench.demo.baselines.text import SentenceEncoder

pytestmark = pytest.mark.slow

TEXTS = ("A 70-year-old woman was found with sudden loss of speech.", "Sex: female.")


def test_a_vector_does_not_depend_on_the_texts_beside_it_and_has_length_one() -> None:
    encoder = SentenceEncoder()
    together = encoder(TEXTS)
    assert np.array_equal(together[1:], SentenceEncoder()(TEXTS[1:]))
    assert np.array_equal(encoder([TEXTS[1], TEXTS[0]]), together[::-1])
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_a_related_sentence_is_nearer_than_another() -> None:
    asked, near, far = SentenceEncoder()(["weakness of one side of the body", "hemiparesis", "the invoice was paid in May"])
    assert asked @ near > asked @ far + 0.2
