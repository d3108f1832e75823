"""Measures of confidence agree with reference implementations, and with brute force where there is none."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from fixtures.confidence import FAST, confidences
from neuralmedbench.estimates.calibration import (
    WIDTH_BINS,
    auroc,
    brier,
    calibration_error,
    mass_bins,
    pessimistic,
    selective_accuracy,
    width_bins,
)
from neuralmedbench.estimates.concordance import separation
from neuralmedbench.estimates.intervals import ByPatient
from neuralmedbench.tables.confidence.measures import Draws

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


def by_hand(confidence: np.ndarray, right: np.ndarray, bins: int) -> float:
    """Expected calibration error bin by bin, after Guo et al. (2017): a bin holds its upper edge."""
    total = 0.0
    for number in range(bins):
        low, high = number / bins, (number + 1) / bins
        inside = (confidence > low) & (confidence <= high) if number else confidence <= high
        if inside.any():
            total += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return total


@pytest.mark.parametrize("seed", range(3))
def test_calibration_error_is_that_of_the_definition(seed: int) -> None:
    confidence, right = answers(seed)
    assert calibration_error(confidence, right, width_bins(confidence)) == pytest.approx(by_hand(confidence, right, WIDTH_BINS), abs=TO)


def test_an_edge_belongs_to_the_bin_below_it_whatever_its_last_bit() -> None:
    edges = np.arange(WIDTH_BINS + 1) / WIDTH_BINS
    assert width_bins(edges).tolist() == [0, *range(WIDTH_BINS)]
    assert width_bins(np.array([0.1 + 0.2, 0.6, 0.2])).tolist() == [4, 8, 2]


def test_bins_of_equal_mass_never_part_equal_confidences() -> None:
    assert mass_bins(np.linspace(0, 1, 100)).tolist() == [place // 20 for place in range(100)]
    assert mass_bins(np.array([0.9, 0.9, 0.9, 0.1])).tolist() == [3, 3, 3, 0]
    assert mass_bins(np.full(7, 0.5)).tolist() == [2] * 7
    assert mass_bins(np.zeros(0)).tolist() == []


def test_a_confidence_separates_nothing_when_all_answers_are_right_or_all_wrong() -> None:
    assert auroc(np.array([0.2, 0.8]), np.array([1.0, 1.0])) is None
    assert auroc(np.array([0.2, 0.8]), np.array([0.0, 0.0])) is None


def test_silence_is_a_wrong_answer_of_full_confidence_in_the_pessimistic_version() -> None:
    confidence, right = np.array([0.0, 0.0]), np.array([0.0, 0.0])  # the loophole: no confidence in wrong answers looks perfect
    error = calibration_error(confidence, right, width_bins(confidence))
    assert (error, brier(confidence, right)) == (0.0, 0.0)
    assert pessimistic(error, 2, 2) == 0.5
    assert pessimistic(None, 0, 3) == 1.0
    assert pessimistic(None, 0, 0) is None


def shares_of_every_order(groups: list[list[float]]) -> np.ndarray:
    """Mean share right among the first answers, by their number, over all orders of the answers of each group."""
    orders: list[list[float]] = [[]]
    for group in groups:
        orders = [done + list(order) for done in orders for order in permutations(group)]
    return np.mean([np.cumsum(order) / np.arange(1, len(order) + 1) for order in orders], axis=0)


@pytest.mark.parametrize("groups", [[[1, 0, 0]], [[1], [0], [1, 1]], [[1, 0], [1, 1, 0], [0, 1]], [[0, 0], [1]]])
def test_equal_confidences_count_by_expectation(groups: list[list[float]]) -> None:
    counts = np.array([len(group) for group in groups], dtype=np.float64)
    rights = np.array([sum(group) for group in groups], dtype=np.float64)
    kept = np.arange(1, counts.sum() + 1) / counts.sum()
    assert selective_accuracy(counts, rights, kept) == pytest.approx(shares_of_every_order(groups), abs=1e-12)


def test_the_share_right_among_the_surest_is_that_of_the_first_answers() -> None:
    counts, rights = np.array([2.0, 4.0, 2.0]), np.array([2.0, 2.0, 0.0])
    assert selective_accuracy(counts, rights, np.array([0.25, 0.5, 0.75, 1.0])).tolist() == [1.0, 0.75, 4 / 6, 0.5]


def test_a_coverage_between_two_whole_numbers_of_answers_keeps_the_next_answer_in_part() -> None:
    one_by_one, rights = np.ones(5), np.array([1.0, 1.0, 0.0, 1.0, 0.0])
    # 2.5 answers: two right ones and half of the third, which is wrong; 3.5 answers: two right, one wrong, half of a right one
    assert selective_accuracy(one_by_one, rights, np.array([0.5, 0.7])) == pytest.approx([2 / 2.5, 2.5 / 3.5], abs=TO)
    # a tenth of 315 is 31.5: 20 right of the first 31, and half of the next, which is right
    many = np.r_[np.ones(20), np.zeros(11), np.ones(1), np.zeros(283)]
    assert selective_accuracy(np.ones(315), many, np.array([0.1]))[0] == pytest.approx(20.5 / 31.5, abs=TO)


@pytest.mark.parametrize(("ties", "to"), [(True, TO), (False, 0.01)])
def test_resamples_of_the_separation_are_those_of_the_table_of_similarity(ties: bool, to: float) -> None:
    confidence, right = answers(5, 90)
    confidence = np.tile(np.arange(1, 11) / 10, 9) if ties else confidence  # ten confidences never share one of the groups
    patients = np.arange(90) // 2
    found = Draws(confidences(confidence.tolist(), right.tolist(), patients=patients.tolist()), ByPatient(np.arange(45), FAST))
    value, low, high = separation(confidence, right > 0.5, ByPatient(patients, FAST))
    grouped = auroc(found.groups.astype(np.float64), right)
    assert auroc(confidence, right) == pytest.approx(value, abs=TO)
    assert grouped == pytest.approx(value, abs=to)
    assert found.around(value, found.auroc, grouped) == pytest.approx((low, high), abs=to)


def test_every_measure_lies_within_its_interval() -> None:
    confidence, right = answers(6, 160)
    found = confidences(confidence.tolist(), right.tolist(), patients=(np.arange(160) // 4).tolist())
    draws = Draws(found, ByPatient(np.arange(40), FAST))
    error, score = calibration_error(confidence, right, width_bins(confidence)), brier(confidence, right)
    for value, ends in ((error, draws.error_interval(error)), (score, draws.around(score, draws.brier))):
        assert ends[0] <= value <= ends[1]
    assert 0 < float(draws.error_by_chance.mean()) < error + 0.1


def test_one_patient_has_no_interval_and_an_empty_part_no_number() -> None:
    draws = Draws(confidences([0.2, 0.9, 0.4], [0, 1, 0], patients=[0, 0, 0]), ByPatient(np.arange(1), FAST))
    assert draws.around(0.3, draws.brier) == (None, None)
    assert draws.error_interval(0.1) == (None, None)
    assert np.isnan(selective_accuracy(np.zeros(2), np.zeros(2), np.array([0.5]))).all()
