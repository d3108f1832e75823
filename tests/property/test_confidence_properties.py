"""Properties of the measures of calibration for arbitrary confidences."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neuralmedbench.estimates.calibration import auroc, auroc_interval, kept_parts, mass_bins, overconfidence
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings

VALUES = st.one_of(st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]), st.floats(0, 1))
ANSWERS = st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=60)


def arrays(rows: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([value for value, _ in rows], dtype=np.float64), np.array([right for _, right in rows], dtype=np.float64)


@given(ANSWERS)
def test_bins_rise_with_the_confidence(rows: list[tuple[float, bool]]) -> None:
    confidence = arrays(rows)[0]
    assert (np.diff(mass_bins(confidence)[np.argsort(confidence, kind="stable")]) >= 0).all()


@given(ANSWERS)
def test_separation_turns_with_the_confidence_and_keeps_under_any_rising_change(rows: list[tuple[float, bool]]) -> None:
    confidence, right = arrays(rows)
    value = auroc(confidence, right)
    if value is not None:
        assert 0 <= value <= 1
        ranks = np.unique(confidence, return_inverse=True)[1].reshape(-1).astype(np.float64)
        assert abs(auroc(-ranks, right) - (1 - value)) < 1e-9
        assert abs(auroc(ranks / 100, right) - value) < 1e-9


@given(ANSWERS, st.floats(0.01, 1))
def test_the_surest_answers_are_kept_first_and_equal_ones_alike(rows: list[tuple[float, bool]], coverage: float) -> None:
    confidence = arrays(rows)[0]
    kept = kept_parts(confidence, coverage)
    assert abs(kept.sum() - coverage * len(rows)) < 1e-9
    assert ((kept >= 0) & (kept <= 1)).all()
    for part, value in zip(kept, confidence, strict=True):
        assert (kept[confidence > value] == 1).all() or part == 0
        assert (kept[confidence == value] == part).all()


@given(ANSWERS, st.integers(1, 8))
def test_intervals_hold_their_value(rows: list[tuple[float, bool]], patients: int) -> None:
    confidence, right = arrays(rows)
    by = ByPatient(np.arange(len(rows)) % patients, IntervalSettings())
    for interval, least in ((overconfidence(confidence, right, by), -1), (auroc_interval(confidence, right, by), 0)):
        if interval.low is not None:
            assert least - 1e-9 <= interval.low <= interval.value + 1e-9
            assert interval.value - 1e-9 <= interval.high <= 1 + 1e-9
