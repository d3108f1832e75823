"""Measures of confidence agree with reference implementations, and with brute force where there is none."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from neuralmedbench.estimates.calibration import auroc, auroc_interval, brier, kept_parts, mass_bins, overconfidence
from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings

TO = 1e-6


def answers(seed: int, number: int = 200, *, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 2, number)
    confidence = np.round(confidence * 20) / 20 if ties else confidence
    return confidence, (rng.random(number) < 0.8 * confidence).astype(np.float64)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_brier_score_and_area_under_the_roc_curve_are_those_of_scikit_learn(seed: int, ties: bool) -> None:
    confidence, right = answers(seed, ties=ties)
    assert brier(confidence, right) == pytest.approx(brier_score_loss(right, confidence), abs=TO)
    assert auroc(confidence, right) == pytest.approx(roc_auc_score(right, confidence), abs=TO)


def test_bins_of_equal_mass_never_part_equal_confidences() -> None:
    assert mass_bins(np.linspace(0, 1, 100)).tolist() == [place // 20 for place in range(100)]
    assert mass_bins(np.array([0.9, 0.9, 0.9, 0.1])).tolist() == [3, 3, 3, 0]
    assert mass_bins(np.full(7, 0.5)).tolist() == [2] * 7
    assert mass_bins(np.zeros(0)).tolist() == []


def test_a_confidence_separates_nothing_when_all_answers_are_right_or_all_wrong() -> None:
    assert auroc(np.array([0.2, 0.8]), np.array([1.0, 1.0])) is None
    assert auroc(np.array([0.2, 0.8]), np.array([0.0, 0.0])) is None


def share_kept(confidence: list[float], right: list[float], coverage: float) -> float:
    kept = kept_parts(np.array(confidence), coverage)
    assert kept.sum() == pytest.approx(coverage * len(right))
    return float((kept * right).sum() / kept.sum())


def shares_of_every_order(groups: list[list[float]]) -> np.ndarray:
    """Mean share right among the first answers, by their number, over all orders of the answers of each group."""
    orders: list[list[float]] = [[]]
    for group in groups:
        orders = [done + list(order) for done in orders for order in permutations(group)]
    return np.mean([np.cumsum(order) / np.arange(1, len(order) + 1) for order in orders], axis=0)


@pytest.mark.parametrize("groups", [[[1, 0, 0]], [[1], [0], [1, 1]], [[1, 0], [1, 1, 0], [0, 1]], [[0, 0], [1]]])
def test_equal_confidences_count_by_expectation(groups: list[list[float]]) -> None:
    confidence = [-place for place, group in enumerate(groups) for _ in group]
    right = [outcome for group in groups for outcome in group]
    shares = [share_kept(confidence, right, number / len(right)) for number in range(1, len(right) + 1)]
    assert shares == pytest.approx(shares_of_every_order(groups), abs=1e-12)


def test_a_coverage_between_two_whole_numbers_of_answers_keeps_the_next_answer_in_part() -> None:
    falling, right = [0.9, 0.8, 0.7, 0.6, 0.5], [1.0, 1.0, 0.0, 1.0, 0.0]
    # 2.5 answers: two right ones and half of the third, which is wrong; 3.5 answers: two right, one wrong, half of a right one
    assert [share_kept(falling, right, coverage) for coverage in (0.5, 0.7)] == pytest.approx([2 / 2.5, 2.5 / 3.5], abs=TO)
    # a tenth of 315 is 31.5: 20 right of the first 31, and half of the next, which is right
    many = [*np.ones(20), *np.zeros(11), 1.0, *np.zeros(283)]
    assert share_kept(list(np.linspace(1, 0, 315)), many, 0.1) == pytest.approx(20.5 / 31.5, abs=TO)


def patients(answers: int, of_one: int) -> ByPatient:
    return ByPatient(np.arange(answers) // of_one, IntervalSettings())


@pytest.mark.parametrize("ties", [False, True])
def test_the_variance_of_the_area_is_that_of_delong_where_every_patient_has_one_answer(ties: bool) -> None:
    confidence, right = answers(3, 60, ties=ties)
    interval, passed = auroc_interval(confidence, right, patients(60, 1)), right > 0.5
    apart = confidence[passed][:, None] - confidence[~passed]
    wins = (apart > 0) + 0.5 * (apart == 0)
    variance = sum(wins.mean(axis=side).var(ddof=1) / wins.shape[1 - side] for side in (0, 1))
    size = interval.value * (1 - interval.value) / variance
    assert interval.value == pytest.approx(wins.mean())
    # the effective sample, corrected by Student's t of 60 patients; DeLong divides each side by its own degrees of freedom
    assert interval.ends == pytest.approx(clopper_pearson(interval.value * size, size, 0.95), abs=0.01)


def test_the_interval_of_the_area_widens_with_answers_of_one_patient_and_where_one_side_is_few() -> None:
    confidence, right = answers(6, 160)
    alone, together = (auroc_interval(confidence, right, patients(160, of_one)) for of_one in (1, 8))
    assert together.low < alone.low < alone.value < alone.high < together.high
    perfect = auroc_interval(np.array([0.9, *np.full(29, 0.1)]), np.array([1.0, *np.zeros(29)]), patients(30, 1))
    # one patient has the right answer: a perfect separation says little
    assert (perfect.value, perfect.high, perfect.method) == (1.0, 1.0, "exact one-sided")
    assert perfect.low == pytest.approx(0.05)
    assert auroc_interval(confidence, np.ones(160), patients(160, 1)).value is None
    assert auroc_interval(np.full(160, 0.8), right, patients(160, 1))[:3] == (0.5, None, None)


def test_overconfidence_lies_in_its_interval_and_has_that_of_the_share_where_none_is_right() -> None:
    confidence, right = answers(6, 160)
    interval = overconfidence(confidence, right, patients(160, 4))
    assert interval.value == pytest.approx((confidence - right).mean())
    assert interval.low < interval.value < interval.high
    wrong = overconfidence(np.full(12, 0.9), np.zeros(12), patients(12, 1))
    assert wrong[:3] == pytest.approx((0.9, 0.9 - (1 - 0.05 ** (1 / 12)), 0.9))
