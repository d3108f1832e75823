"""Differences between rates of different items, and the spread of several means: known values, and coverage where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from neuralmedbench.estimates.comparisons import Difference, paired_difference
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, rate_interval
from neuralmedbench.estimates.shifts import conditional_rate, difference_of_conditional_rates, spread_of_means

SETTINGS = IntervalSettings(resamples=400)


def by(patients: int, items: int = 1) -> ByPatient:
    """Give patients with so many items each."""
    return ByPatient(np.repeat(np.arange(patients), items), SETTINGS)


def counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give item values as events of one trial; none where there is no value."""
    return np.nan_to_num(values), (~np.isnan(values)).astype(float)


def difference_between_items(first: np.ndarray, second: np.ndarray, patients: ByPatient) -> Difference:
    """Give the difference of single answers to different items."""
    return difference_of_conditional_rates(counted(first), counted(second), patients)


@pytest.mark.parametrize("patients", [6, 20, 60])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_of_one_answer_an_item_it_is_the_rate_with_its_interval(patients: int, share: float) -> None:
    values = (np.random.default_rng(3).random(patients * 2) < share).astype(float)
    values[::5] = np.nan
    found, rate = conditional_rate(*counted(values), by(patients, 2)), rate_interval(values, by(patients, 2))
    assert found.value == pytest.approx(rate.value)
    assert found.method == rate.method
    assert found[1:3] == pytest.approx(rate[1:3], abs=0.03)


def test_pairs_of_repeats_give_the_chance_of_an_independent_answer() -> None:
    """Of three answers that are right with a chance of 0.25 each: after a wrong one another one is right with that chance."""
    found = []
    for seed in range(20):
        right = np.random.default_rng(seed).random((1_000, 3)) < 0.25
        wrong, others = (~right).sum(axis=1), right.sum(axis=1)
        found.append(conditional_rate((wrong * others).astype(float), (wrong * 2).astype(float), by(1_000)).value)
    # a mean of the items' own shares would be 0.36
    assert np.mean(found) == pytest.approx(0.25, abs=4 * np.std(found) / np.sqrt(20))


def test_over_the_same_items_it_is_the_paired_difference() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.random((2, 120))
    found, paired = difference_between_items(first, second, by(60, 2)), paired_difference(first, second, by(60, 2))
    assert found.value == pytest.approx(paired.value)
    assert (found.items, found.patients) == (paired.items, paired.patients)
    assert found.low == pytest.approx(paired.low, abs=0.02)
    assert found.high == pytest.approx(paired.high, abs=0.02)
    assert found.p_value == pytest.approx(paired.p_value, abs=0.05)


def test_all_on_both_sides_is_no_difference_and_its_interval_is_that_of_two_exact_rates() -> None:
    first = np.array([1.0, np.nan] * 20)
    second = np.array([np.nan, 1.0] * 20)
    found = difference_between_items(first, second, by(20, 2))
    assert (found.value, found.p_value) == (0.0, 1.0)
    assert found.low is not None
    assert found.high is not None
    assert -0.2 < found.low < 0 < found.high < 0.2


def test_all_against_none_is_certain_only_as_far_as_there_are_patients() -> None:
    for patients in (4, 20):
        found = difference_between_items(np.array([1.0, np.nan] * patients), np.array([np.nan, 0.0] * patients), by(patients, 2))
        assert found.value == 1.0
        # exact up to twelve patients: all signs alike, one way or the other
        assert found.p_value == pytest.approx(2 / 2**patients if patients <= 12 else 2 * np.exp(-patients / 2)), "Hoeffding's bound above"
        assert found.low is not None
        assert found.low > (0.6 if patients == 20 else 0.1)


def test_without_items_on_one_side_there_is_no_difference() -> None:
    found = difference_between_items(np.full(4, np.nan), np.array([1.0, 0.0, np.nan, 1.0]), by(4))
    assert (found.value, found.p_value, found.items) == (None, None, 3)


def draw_sides(rng: np.random.Generator, patients: int, first: float, second: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw three items a patient: right before or not, and whether a suggestion is taken; patients differ in both."""
    right = rng.random((patients, 3)) < rng.beta(2, 2, patients)[:, None]
    taken, shift = rng.random((patients, 3)), rng.normal(0, 0.15, patients)[:, None]
    one = np.where(~right, (taken < np.clip(first + shift, 0, 1)).astype(float), np.nan)
    return one.ravel(), np.where(right, (taken < np.clip(second + shift, 0, 1)).astype(float), np.nan).ravel()


@pytest.mark.parametrize(
    ("patients", "first", "second"), [(12, 0.5, 0.5), pytest.param(40, 0.5, 0.5, marks=pytest.mark.long), (40, 0.3, 0.7), (40, 0.95, 0.95)]
)
def test_the_interval_holds_the_true_difference_and_the_test_its_level(patients: int, first: float, second: float) -> None:
    rng, held, rejected, studies = np.random.default_rng(7), 0, 0, 300
    shift = np.random.default_rng(2).normal(0, 0.15, 100_000)
    truth = np.clip(first + shift, 0, 1).mean() - np.clip(second + shift, 0, 1).mean()
    for _ in range(studies):
        found = difference_between_items(*draw_sides(rng, patients, first, second), by(patients, 3))
        assert found.low is not None
        assert found.high is not None
        assert found.p_value is not None
        held += found.low <= truth <= found.high
        rejected += found.p_value < 0.05
    assert held / studies > stats.binom.ppf(0.001, studies, 0.95) / studies
    if first == second:
        assert rejected <= stats.binom.ppf(0.999, studies, 0.05)
    else:
        assert rejected > 0.9 * studies


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
