"""Reliability of a score, and the correlation of two scores corrected for it: examples by hand, and the identities behind them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from neuralmedbench.estimates.over_models import SetScores, corrected_correlation

FIRST = np.array([[1.0, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]])
SECOND = np.array([[1.0, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]])


def own(values: np.ndarray, name: str = "p") -> SetScores:
    """Give every item a patient of its own."""
    return SetScores(values, [f"{name}{place}" for place in range(values.shape[1])])


def noisy(rng: np.random.Generator, models: int = 10, patients: int = 8) -> np.ndarray:
    return (rng.normal(size=(models, 1)) + rng.normal(size=(models, patients)) > 0).astype(float)


def test_reliability_and_correction_by_hand() -> None:
    """Covariances of the columns of FIRST: 1/3, 0 and 0; variance of its sums 5/3: alpha = 3/2 (2/3) / (5/3) = 0.6; that of SECOND is 1.

    Sums 3, 2, 1, 0 and 3, 3, 0, 0: correlation 6 / sqrt(5 * 9), over the root of 0.6 more than 1.
    """
    found = corrected_correlation(own(FIRST), own(SECOND, "q"), 0.95)
    assert found.reliability == pytest.approx((0.6, 1.0))
    assert found.observed == pytest.approx(6 / np.sqrt(45))
    assert found.corrected == pytest.approx(6 / np.sqrt(45) / np.sqrt(0.6))
    assert found.corrected > 1, "it is not cut at 1"
    assert (found.low, found.high) == (None, None), "without the first patient nothing of the first score is reliable"


def test_the_reliability_is_the_mean_of_all_split_halves() -> None:
    values = noisy(np.random.default_rng(1))
    halves = [4 * np.cov(part := values[:, list(half)].sum(axis=1), values.sum(axis=1) - part)[0, 1] for half in combinations(range(8), 4)]
    expected = np.mean(halves) / values.sum(axis=1).var(ddof=1)
    assert corrected_correlation(own(values), own(SECOND[[0, 1, 2, 3, 0, 1, 2, 3, 0, 1]], "q"), 0.95).reliability[0] == pytest.approx(
        expected
    )


def test_more_items_with_the_same_answers_are_no_more_reliable() -> None:
    rng = np.random.default_rng(2)
    first, second = noisy(rng), own(noisy(rng), "q")
    twice = SetScores(np.repeat(first, 2, axis=1), [f"p{place}" for place in np.repeat(np.arange(8), 2)])
    found, once = corrected_correlation(twice, second, 0.95), corrected_correlation(own(first), second, 0.95)
    assert found.reliability == pytest.approx(once.reliability)
    assert found[1:] == pytest.approx(once[1:])


def test_where_every_patient_says_the_same_the_interval_is_fishers() -> None:
    rng = np.random.default_rng(3)
    first = rng.random(12)
    second = first + 0.3 * rng.random(12)
    found = corrected_correlation(own(np.repeat(first[:, None], 5, axis=1)), own(np.repeat(second[:, None], 4, axis=1), "q"), 0.95)
    value = np.corrcoef(first, second)[0, 1]
    assert found.reliability == pytest.approx((1, 1))
    assert (found.observed, found.corrected) == pytest.approx((value, value))
    ends = np.tanh(np.arctanh(value) + np.array([-1, 1]) * 1.959964 / 3)
    assert (found.low, found.high) == pytest.approx(tuple(ends))


def test_the_interval_is_widened_by_leaving_out_each_patient() -> None:
    """The jackknife by hand: the value without each patient in turn, one of them in both sets and one with two items."""
    rng = np.random.default_rng(5)
    ability = rng.normal(size=(12, 1))
    first, second = ((ability + 0.7 * rng.normal(size=(12, items)) > 0).astype(float) for items in (7, 9))
    names = list("aabcdef"), list("fghijklmn")

    def without(patient: str) -> float:
        kept = [[name != patient for name in own] for own in names]
        sides = [
            SetScores(values[:, keep], [name for name in own if name != patient])
            for values, keep, own in zip((first, second), kept, names, strict=True)
        ]
        return corrected_correlation(*sides, 0.95).corrected

    found = corrected_correlation(SetScores(first, names[0]), SetScores(second, names[1]), 0.95)
    divisor = np.sqrt(np.prod(found.reliability))
    plain = found.corrected * divisor
    patients = sum((without(name) - found.corrected) ** 2 for name in sorted({*names[0], *names[1]}))
    reach = 1.959964 * np.sqrt(1 / 9 + patients * (divisor / (1 - plain**2)) ** 2)
    assert reach > 1.1 * 1.959964 / 3
    assert (found.low, found.high) == pytest.approx(tuple(np.tanh(np.arctanh(plain) + np.array([-1, 1]) * reach) / divisor), rel=1e-5)


def test_the_answers_to_shared_patients_do_not_make_two_scores_alike() -> None:
    """The same values on both sets: as of other patients the correlation is 1 by construction; as of the same it is corrected from less."""
    values = noisy(np.random.default_rng(4), 30)
    other, same = corrected_correlation(own(values), own(values, "q"), 0.95), corrected_correlation(own(values), own(values), 0.95)
    assert other.observed == same.observed == pytest.approx(1)
    assert other.corrected == pytest.approx(1 / other.reliability[0])
    assert same.corrected == pytest.approx(1)


@pytest.mark.parametrize(
    ("first", "reliability"),
    [
        (own(np.full((4, 3), 0.5)), None),
        (SetScores(FIRST, ["p", "p", "p"]), None),
        (own(np.array([[1.0, 0], [0, 1], [1, 0.5], [0, 1]])), -2.5 / 3),
    ],
)
def test_a_score_that_does_not_tell_models_apart_has_no_correlation(first: SetScores, reliability: float | None) -> None:
    found = corrected_correlation(first, own(SECOND, "q"), 0.95)
    assert found.reliability[1] == pytest.approx(1)
    assert (found.reliability[0] is None) == (reliability is None)
    assert (found.corrected, found.low, found.high) == (None, None, None)
