"""Columns and pairs that are resampled together have the same intervals as each of them alone."""

from __future__ import annotations

import numpy as np
import pytest

from neuralmedbench.estimates.comparisons import paired_difference, paired_differences
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, rate_interval, rate_intervals

SETTINGS = IntervalSettings(resamples=200)


def columns(patients: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns with and without gaps, one without any value, one in which every item has the event."""
    rng = np.random.default_rng(patients)
    values = rng.integers(0, 6, (2 * patients, 7)) / 5
    values[::3, 1], values[::3, 2], values[-1, 3], values[:, 4], values[:, 5] = np.nan, np.nan, np.nan, np.nan, 1.0
    return values, np.repeat(np.arange(patients), 2)


@pytest.mark.parametrize("patients", [1, 5, 12, 13, 60])
def test_intervals_of_many_columns_are_those_of_each(patients: int) -> None:
    values, codes = columns(patients)
    for together, column in zip(rate_intervals(values, ByPatient(codes, SETTINGS)), values.T, strict=True):
        alone = rate_interval(column, ByPatient(codes, SETTINGS))
        assert together.method == alone.method
        assert together[:3] == pytest.approx(alone[:3], abs=1e-12)


@pytest.mark.parametrize("patients", [2, 5, 12, 13, 60])
def test_differences_of_many_pairs_are_those_of_each(patients: int) -> None:
    values, codes = columns(patients)
    pairs = [(one, other) for one in values.T for other in values.T]
    for together, (one, other) in zip(paired_differences(pairs, ByPatient(codes, SETTINGS)), pairs, strict=True):
        assert together == pytest.approx(paired_difference(one, other, ByPatient(codes, SETTINGS)), abs=1e-12)
