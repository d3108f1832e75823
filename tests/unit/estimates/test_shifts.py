"""The spread of several means: known values, and coverage where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings
from neuralmedbench.estimates.shifts import spread_of_means

SETTINGS = IntervalSettings(resamples=400)


def by(patients: int, items: int = 1) -> ByPatient:
    """Give patients with so many items each."""
    return ByPatient(np.repeat(np.arange(patients), items), SETTINGS)


def draw_wordings(rng: np.random.Generator, patients: int, fall: float) -> np.ndarray:
    """Draw two items a patient under four wordings, of which the last lowers the chance to pass."""
    chance = np.repeat(rng.beta(2, 2, patients)[:, None], 4, axis=1)
    chance[:, 3] = np.clip(chance[:, 3] - fall, 0, 1)
    return (rng.random((patients, 2, 4)) < chance[:, None, :]).astype(float).reshape(-1, 4)


@pytest.mark.parametrize(
    ("patients", "fall"), [(40, 0.0), (40, 0.2), *(pytest.param(120, fall, marks=pytest.mark.long) for fall in (0.0, 0.05, 0.2))]
)
def test_the_interval_of_a_spread_holds_the_true_spread_and_its_test_the_level(patients: int, fall: float) -> None:
    rng, held, rejected, studies = np.random.default_rng(3), 0, 0, 200
    chance = np.random.default_rng(4).beta(2, 2, 200_000)
    truth = chance.mean() - np.clip(chance - fall, 0, 1).mean()
    for _ in range(studies):
        spread, p_value = spread_of_means(draw_wordings(rng, patients, fall), by(patients, 2))
        assert spread.low is not None
        assert spread.high is not None
        assert p_value is not None
        held += spread.low <= truth + 1e-12 <= spread.high + 1e-12
        rejected += p_value < 0.05
    assert held / studies > stats.binom.ppf(0.001, studies, 0.95) / studies
    if fall == 0:
        assert rejected <= stats.binom.ppf(0.999, studies, 0.05)


def test_a_spread_is_the_largest_minus_the_smallest_mean_over_complete_items() -> None:
    values = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [np.nan, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    spread, _ = spread_of_means(values, by(5))
    assert spread.value == pytest.approx(0.75 - 0.25)


def test_columns_that_never_differ_have_no_spread() -> None:
    values = np.repeat(np.random.default_rng(1).integers(0, 2, 30)[:, None].astype(float), 3, axis=1)
    spread, p_value = spread_of_means(values, by(30))
    assert (spread.value, p_value) == (0.0, 1.0)


def test_all_against_none_is_a_spread_of_one_with_an_interval() -> None:
    values = np.column_stack([np.ones(40), np.zeros(40)])
    spread, p_value = spread_of_means(values, by(40))
    assert spread.value == 1.0
    assert spread.low is not None
    assert 0.8 < spread.low < 1
    assert p_value == pytest.approx(1 / 401)


def test_one_column_or_one_patient_has_no_interval() -> None:
    assert spread_of_means(np.ones((4, 1)), by(4))[0].value is None
    assert spread_of_means(np.array([[1.0, 0.0]]), by(1))[0].low is None
