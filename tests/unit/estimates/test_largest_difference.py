"""The largest of several differences: known values, and coverage where the truth is known."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from neuralmedbench.estimates.contrasts import Difference, largest_difference
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings

SETTINGS = IntervalSettings(resamples=400)


def by(patients: int, items: int = 1) -> ByPatient:
    """Give patients with so many items each."""
    return ByPatient(np.repeat(np.arange(patients), items), SETTINGS)


def spread(values: np.ndarray, patients: ByPatient) -> Difference:
    """Return the largest minus the smallest of the means of some columns."""
    columns = sorted(values.T, key=lambda column: -float(column.mean()))
    return largest_difference(list(combinations(columns, 2)), patients)[1]


def draw_wordings(rng: np.random.Generator, patients: int, fall: float) -> np.ndarray:
    """Draw two items a patient under four wordings, of which the last lowers the chance to pass."""
    chance = np.repeat(rng.beta(2, 2, patients)[:, None], 4, axis=1)
    chance[:, 3] = np.clip(chance[:, 3] - fall, 0, 1)
    return (rng.random((patients, 2, 4)) < chance[:, None, :]).astype(float).reshape(-1, 4)


@pytest.mark.parametrize(
    ("patients", "fall"),
    [(12, 0.0), (40, 0.0), (40, 0.2), *(pytest.param(120, fall, marks=pytest.mark.long) for fall in (0.0, 0.05, 0.2))],
)
def test_the_interval_of_a_spread_holds_the_true_spread_and_its_test_the_level(patients: int, fall: float) -> None:
    rng, held, rejected, studies = np.random.default_rng(3), 0, 0, 200
    chance = np.random.default_rng(4).beta(2, 2, 200_000)
    truth = chance.mean() - np.clip(chance - fall, 0, 1).mean()
    for _ in range(studies):
        largest = spread(draw_wordings(rng, patients, fall), by(patients, 2))
        assert largest.low is not None
        assert largest.high is not None
        assert largest.p_value is not None
        held += largest.low <= truth + 1e-12 <= largest.high + 1e-12
        rejected += largest.p_value < 0.05
        assert (largest.low > 0) == (largest.p_value < 0.05)
    assert held / studies > stats.binom.ppf(0.001, studies, 0.95) / studies
    if fall == 0:
        assert rejected <= stats.binom.ppf(0.999, studies, 0.05)


def test_the_largest_difference_is_named_by_its_place() -> None:
    zeros, half = np.zeros(30), np.tile([0.0, 1.0], 15)
    place, largest = largest_difference([(zeros, half), (half, zeros), (zeros, zeros)], by(30))
    assert place == 1
    assert largest.value == 0.5


def test_columns_that_never_differ_have_no_spread() -> None:
    values = np.repeat(np.random.default_rng(1).integers(0, 2, 30)[:, None].astype(float), 3, axis=1)
    largest = spread(values, by(30))
    assert (largest.value, largest.p_value) == (0.0, 1.0)


def test_all_against_none_is_a_spread_of_one_with_an_interval() -> None:
    largest = spread(np.column_stack([np.ones(40), np.zeros(40)]), by(40))
    assert largest.value == 1.0
    assert largest.low is not None
    assert 0.8 < largest.low < 1
    assert largest.p_value == pytest.approx(0, abs=1e-8)


def test_one_patient_has_no_interval() -> None:
    assert spread(np.array([[1.0, 0.0]]), by(1)).low is None
