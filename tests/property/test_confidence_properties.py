"""Properties of the measures of calibration for arbitrary confidences."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.confidence import confidences
from neuralmedbench.estimates.calibration import (
    MASS_BINS,
    auroc,
    brier,
    calibration_error,
    mass_bins,
    pessimistic,
    selective_accuracy,
    width_bins,
)
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings
from neuralmedbench.tables.confidence.measures import GROUPS, Draws

VALUES = st.one_of(st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]), st.floats(0, 1))
ANSWERS = st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=60)
GROUPED = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8)


def arrays(rows: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([value for value, _ in rows], dtype=np.float64), np.array([right for _, right in rows], dtype=np.float64)


@given(ANSWERS, st.integers(0, 20))
def test_errors_stay_between_0_and_1_and_silence_never_lowers_them(rows: list[tuple[float, bool]], absent: int) -> None:
    confidence, right = arrays(rows)
    for error in (brier(confidence, right), *(calibration_error(confidence, right, bins(confidence)) for bins in (width_bins, mass_bins))):
        assert 0 <= error <= 1 + 1e-12
        worse = [pessimistic(error, len(rows), number) for number in range(absent, absent + 3)]
        assert error - 1e-12 <= worse[0] <= worse[1] <= worse[2] <= 1 + 1e-12


@given(ANSWERS)
def test_the_calibration_error_is_at_least_the_distance_of_the_means(rows: list[tuple[float, bool]]) -> None:
    confidence, right = arrays(rows)
    gap = abs(float((confidence - right).mean()))
    assert calibration_error(confidence, right, width_bins(confidence)) >= gap - 1e-12


@given(ANSWERS)
def test_bins_rise_with_the_confidence_and_coarse_ones_hold_fine_ones(rows: list[tuple[float, bool]]) -> None:
    confidence = arrays(rows)[0]
    order, fine = np.argsort(confidence, kind="stable"), mass_bins(confidence, GROUPS)
    for bins in (width_bins(confidence), mass_bins(confidence), fine):
        assert (np.diff(bins[order]) >= 0).all()
    assert (mass_bins(confidence) == fine // (GROUPS // MASS_BINS)).all()


@given(ANSWERS)
def test_separation_turns_with_the_confidence_and_keeps_under_any_rising_change(rows: list[tuple[float, bool]]) -> None:
    confidence, right = arrays(rows)
    value = auroc(confidence, right)
    if value is not None:
        assert 0 <= value <= 1
        ranks = np.unique(confidence, return_inverse=True)[1].reshape(-1).astype(np.float64)
        assert abs(auroc(-ranks, right) - (1 - value)) < 1e-9
        assert abs(auroc(ranks / 100, right) - value) < 1e-9


@given(GROUPED)
def test_shares_among_the_surest_lie_between_0_and_1_and_end_at_the_share_of_all(groups: list[tuple[int, int]]) -> None:
    counts = np.array([max(pair) for pair in groups], dtype=np.float64)
    rights = np.array([min(pair) for pair in groups], dtype=np.float64)
    total, right = int(counts.sum()), int(rights.sum())
    if total:
        shares = selective_accuracy(counts, rights, np.array([0.3, 1.0]))
        assert ((shares >= -1e-12) & (shares <= 1 + 1e-12)).all()
        assert abs(shares[1] - right / total) < 1e-9


@given(ANSWERS, st.integers(1, 8))
@settings(max_examples=40)
def test_intervals_hold_their_value_or_are_none(rows: list[tuple[float, bool]], patients: int) -> None:
    confidence, right = arrays(rows)
    codes = [place % patients for place in range(len(rows))]
    draws = Draws(
        confidences(confidence.tolist(), right.tolist(), patients=codes), ByPatient(np.arange(patients), IntervalSettings(resamples=100))
    )
    error = calibration_error(confidence, right, width_bins(confidence))
    low, high = draws.error_interval(error)
    assert (low is None) == (high is None)
    if low is not None and high is not None:
        assert 0 <= low <= error + 1e-9
        assert error - 1e-9 <= high <= 1
