"""The engine of contrasts: known values, agreement of test and interval, coverage and size where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.contrast_studies import Cell, broken, grid, measure
from neuralmedbench.estimates.contrasts import (
    ALIKE,
    BETTER,
    INCONCLUSIVE,
    WORSE,
    Difference,
    Ratio,
    can_reject,
    flip_test,
    paired_difference,
    paired_parts,
    parts_of,
    patients_to_show,
    ratio_difference,
    ratio_of,
    smallest_difference,
    unpaired_difference,
)
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, patients_rate, rate_interval

SETTINGS = IntervalSettings(resamples=400)


def by(patients: int, items: int = 1) -> ByPatient:
    """Give patients with so many items each."""
    return ByPatient(np.repeat(np.arange(patients), items), SETTINGS)


def test_a_difference_uses_only_items_that_both_sides_have() -> None:
    first, second = np.array([1.0, 1.0, np.nan, 0.0]), np.array([0.0, 1.0, 1.0, np.nan])
    difference = paired_difference(first, second, by(4))
    assert (difference.value, difference.items, difference.patients, difference.differing) == (0.5, 2, 2, 1)
    assert (difference.only_first, difference.only_second) == (1, 0)
    assert paired_difference(first[2:3], second[2:3], by(1))[:4] == (None, None, None, None)


def test_patients_count_alike_whatever_their_number_of_items_also_where_they_are_joined() -> None:
    """Nine items of one patient, one each of three others; the first two share a request."""
    patients = np.repeat(np.arange(4), [9, 1, 1, 1])
    first, second = np.r_[np.ones(9), 0, 1, 1], np.r_[np.zeros(9), 0, 1, 0]
    alone, joined = (paired_difference(first, second, ByPatient(patients, SETTINGS, codes)) for codes in (None, np.maximum(patients, 1)))
    assert (alone.value, alone.patients, alone.differing) == (0.5, 4, 2)
    assert (joined.value, joined.patients, joined.differing) == (0.5, 3, 2)
    # of the joined patients one differs: their number is 1 of 2 patients, half of what a patient alone adds
    assert paired_parts(first, second, ByPatient(patients, SETTINGS, np.maximum(patients, 1))).values == pytest.approx([0.25, 0, 0.25])


def test_a_difference_is_that_of_the_two_rates_of_patients() -> None:
    rng = np.random.default_rng(5)
    patients = np.repeat(np.arange(30), rng.integers(1, 9, 30))
    first, second = rng.random((2, patients.size))
    patient = ByPatient(patients, SETTINGS, patients // 2)
    rates = [patients_rate(values, patient).value or 0.0 for values in (first, second)]
    assert paired_difference(first, second, patient).value == pytest.approx(rates[0] - rates[1])
    means = [np.mean([values[patients == one].mean() for one in range(30)]) for values in (first, second)]
    assert rates == pytest.approx(means)
    halves = unpaired_difference(first, patients < 12, ByPatient(patients, SETTINGS))
    own = [np.mean([first[patients == one].mean() for one in part]) for part in (range(12), range(12, 30))]
    assert halves.value == pytest.approx(own[0] - own[1])


def test_where_all_patients_have_as_many_items_both_rates_are_one() -> None:
    values = np.random.default_rng(2).random(60)
    assert patients_rate(values, by(20, 3)) == rate_interval(values, by(20, 3))


def test_the_p_value_of_few_patients_is_a_share_of_all_patterns() -> None:
    for patients in (4, 6, 12):
        assert paired_difference(np.ones(patients), np.zeros(patients), by(patients)).p_value == pytest.approx(2 / 2**patients)
    assert paired_difference(np.ones(30), np.zeros(30), by(30)).p_value == pytest.approx(2 * np.exp(-15), rel=1e-6), "Hoeffding's bound"


def test_a_clear_difference_passes_a_correction_for_a_thousand_comparisons_and_the_bound_is_never_below_the_exact_p_value() -> None:
    """78 against 24 % of a hundred patients, among 20 models on five benchmarks."""
    first = (np.arange(100) < 78).astype(float)
    second = (np.arange(100) < 24).astype(float)
    assert (paired_difference(first, second, by(100)).p_value or 1) * 1_165 < 1e-6
    rng = np.random.default_rng(3)
    patterns = 1.0 - 2 * ((np.arange(2**16)[:, None] >> np.arange(16)) & 1)
    for _ in range(20):
        gaps = np.clip(rng.normal(rng.uniform(0.2, 0.6), 0.1, 16), -1, 1)
        exact = float((np.abs(patterns @ gaps) >= abs(gaps.sum()) - 1e-9).mean())
        known = paired_difference(gaps, np.zeros(16), by(16)).p_value or 0.0
        assert known >= exact or abs(known - exact) < 4 * np.sqrt(exact * (1 - exact) / 400) + 2 / 401


@pytest.mark.parametrize("patients", [1, 3, 6, 9, 12, 13, 30])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_holds_a_value_exactly_where_the_test_does_not_reject_it(patients: int, confidence: float) -> None:
    rng = np.random.default_rng(patients)
    sizes = rng.integers(1, 9, patients)
    patient = ByPatient(np.repeat(np.arange(patients), sizes), SETTINGS)
    first, second = (rng.random((2, sizes.sum())) < [[0.8], [0.5]]).astype(float)
    parts = parts_of(ratio_of(first), ratio_of(second), patient)
    test = flip_test(parts, patient)
    low, high = test.interval(confidence)
    assert low <= parts.difference <= high
    for at in (*np.linspace(-1, 1, 81).tolist(), low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6):
        if abs(at) <= 1 and not min(abs(at - low), abs(at - high)) < 1e-7:
            assert (test.p_value(at) >= 1 - confidence - 1e-12) == (low <= at <= high), at
    difference = paired_difference(first, second, patient)
    if difference.differing and difference.low is not None and difference.high is not None:
        assert (difference.p_value >= 0.05) == (difference.low <= 0 <= difference.high)  # type: ignore[operator]
        assert difference.alike <= (-0.1 < difference.low <= difference.high < 0.1 or abs(difference.value or 0) < 0.1)


def test_swapping_the_sides_turns_the_interval() -> None:
    first, second = (np.random.default_rng(8).random((2, 40)) < [[0.9], [0.7]]).astype(float)
    there, back = paired_difference(first, second, by(20, 2)), paired_difference(second, first, by(20, 2))
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))  # type: ignore[operator]
    assert (there.p_value, there.alike) == (back.p_value, back.alike)


def test_where_no_patient_differs_one_unseen_patient_is_left_open() -> None:
    same = np.tile([1.0, 0.0], 15)
    equal = paired_difference(same, same, by(30))
    assert (equal.value, equal.p_value) == (0.0, 1.0)
    assert (equal.low, equal.high) == pytest.approx((0.05 ** (1 / 30) - 1, 1 - 0.05 ** (1 / 30)))
    alike = [paired_difference(np.ones(n), np.ones(n), by(n)).alike for n in (28, 29)]
    assert alike == [False, True], "no difference of 10 points: from 29 patients on"


def test_values_that_are_no_rates_have_the_interval_of_the_flips_alone() -> None:
    gaps = np.random.default_rng(1).normal(0, 0.2, 20)
    difference = paired_difference(gaps, np.zeros(20), by(20))
    test = flip_test(parts_of(ratio_of(gaps), ratio_of(np.zeros(20)), by(20)), by(20))
    assert (difference.low, difference.high) == test.interval(0.95)


@pytest.mark.parametrize("patients", [6, 20, 60])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_of_one_answer_an_item_a_ratio_is_the_rate(patients: int, share: float) -> None:
    values = (np.random.default_rng(3).random(patients * 2) < share).astype(float)
    values[::5] = np.nan
    ratio, rate = ratio_of(values).rate(by(patients, 2)), rate_interval(values, by(patients, 2))
    assert ratio.method == rate.method
    assert ratio[:3] == pytest.approx(rate[:3], abs=0.03)


def test_pairs_of_repeats_give_the_chance_of_an_independent_answer() -> None:
    """Of three answers that are right with a chance of 0.25 each: after a wrong one another one is right with that chance."""
    shares = []
    for seed in range(20):
        right = np.random.default_rng(seed).random((1_000, 3)) < 0.25
        wrong, others = (~right).sum(axis=1), right.sum(axis=1)
        shares.append(Ratio((wrong * others).astype(float), (wrong * 2).astype(float)).rate(by(1_000)).value)
    # a mean of the items' own shares would be 0.36
    assert np.mean(shares) == pytest.approx(0.25, abs=4 * np.std(shares) / np.sqrt(20))


def between_items(first: np.ndarray, second: np.ndarray, patients: ByPatient) -> Difference:
    """Give the difference of single answers to different items."""
    return ratio_difference(ratio_of(first), ratio_of(second), patients)


def test_over_the_same_items_a_difference_of_ratios_is_the_paired_one() -> None:
    first, second = np.random.default_rng(1).random((2, 120))
    ratio, paired = between_items(first, second, by(60, 2)), paired_difference(first, second, by(60, 2))
    assert ratio._replace(only_first=None, only_second=None) == paired._replace(only_first=None, only_second=None)


def test_all_on_both_sides_of_other_items_is_no_difference() -> None:
    difference = between_items(np.array([1.0, np.nan] * 20), np.array([np.nan, 1.0] * 20), by(20, 2))
    assert (difference.value, difference.p_value) == (0.0, 1.0)
    assert -0.2 < (difference.low or 0) < 0 < (difference.high or 0) < 0.2


def test_without_items_on_one_side_there_is_no_difference() -> None:
    difference = between_items(np.full(4, np.nan), np.array([1.0, 0.0, np.nan, 1.0]), by(4))
    assert (difference.value, difference.p_value, difference.items) == (None, None, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        Cell("passes", "even", 8, (0.95, 0.85)),
        Cell("passes", "skewed", 8, (0.98, 0.9)),
        Cell("passes", "1 to 15", 12, (0.99, 0.95)),
        Cell("passes", "skewed", 12, (0.5, 0.5)),
        Cell("passes", "1 to 15", 30, (0.95, 0.95)),
        Cell("given", "skewed", 30, (0.1, 0.1)),
        Cell("given", "1 to 15", 12, (0.3, 0.7)),
    ],
    ids=str,
)
def test_a_slice_of_the_studies_holds_the_truth_and_the_level(cell: Cell) -> None:
    assert cell in grid()
    measured = measure(cell, 200, seed=2)
    assert broken(cell, measured) == []
    assert measured["held"] >= 0.91


def test_two_groups_of_patients_have_an_interval_that_holds_zero_where_the_shuffle_does_not_reject() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values, first = (rng.random(48) < np.repeat([0.8, 0.5], 24)).astype(float), np.arange(48) < 24
        difference = unpaired_difference(values, first, by(24, 2))
        assert (difference.p_value >= 0.05) == (difference.low <= 0 <= difference.high)  # type: ignore[operator]
        assert difference.value == pytest.approx(values[first].mean() - values[~first].mean())


def test_no_power_is_promised_where_the_test_cannot_reject() -> None:
    assert [can_reject(patients, 0.05) for patients in (5, 6)] == [False, True]
    assert [smallest_difference(0.05, patients, 0.05 / 15) for patients in (6, 8)] == [None, None]
    assert smallest_difference(0.05, 12, 0.05 / 15) is not None


@pytest.mark.slow
@pytest.mark.parametrize("patients", [12, 20, 30])
def test_what_the_planner_promises_is_shown_in_four_of_five_studies(patients: int) -> None:
    rng, spread = np.random.default_rng(patients), 0.3
    truth = smallest_difference(spread / np.sqrt(patients), patients, 0.05)
    assert truth is not None
    gaps = rng.normal(truth, spread, (400, patients))
    shown = [(paired_difference(gap, np.zeros(patients), by(patients)).p_value or 1) < 0.05 for gap in gaps]
    assert 0.75 <= np.mean(shown) <= 0.85
    assert patients_to_show(truth, spread / np.sqrt(patients), patients, 0.05) in (patients - 1, patients, patients + 1)


def test_a_pair_that_differs_needs_no_more_patients_than_one_that_does_not() -> None:
    rng = np.random.default_rng(3)
    gaps = rng.normal(0, 0.3, 40)
    apart, alike = (paired_difference(gaps + shift, np.zeros(40), by(40)) for shift in (0.5, 0.0))
    assert patients_to_show(0.1, apart.error, 40, 0.05) == patients_to_show(0.1, alike.error, 40, 0.05)
    assert patients_to_show(0.1, 0.0, 40, 0.05) is None


@pytest.mark.parametrize(
    ("low", "high", "p_corrected", "alike", "answer"),
    [
        (0.01, 0.2, None, False, BETTER),
        (-0.2, -0.01, None, False, WORSE),
        # an end at 0 does not exclude it
        (0.0, 0.2, None, False, INCONCLUSIVE),
        (-0.2, 0.0, None, False, INCONCLUSIVE),
        (-0.08, 0.08, None, True, ALIKE),
        # shown, if small: more than alike
        (0.01, 0.05, None, True, BETTER),
        # a corrected p value decides, whatever the interval
        (0.01, 0.2, 0.049, False, BETTER),
        (0.01, 0.2, 0.05, False, INCONCLUSIVE),
        (0.01, 0.05, 1.0, True, ALIKE),
        # of a single cluster there is no interval
        (None, None, None, False, INCONCLUSIVE),
    ],
)
def test_an_answer_is_that_of_the_corrected_test_or_of_the_interval(
    low: float | None, high: float | None, p_corrected: float | None, alike: bool, answer: str
) -> None:
    value = 0.05 if low is None or high is None else (low + high) / 2
    assert Difference(value, low, high, 0.01, alike).answer(0.05, p_corrected) == answer


def test_without_a_difference_there_is_no_answer() -> None:
    assert Difference().answer(0.05) == Difference().answer(0.05, p_corrected=0.01) == ""


@pytest.mark.parametrize(("patients", "answer"), [(28, INCONCLUSIVE), (29, ALIKE)])
def test_models_that_differ_nowhere_are_alike_from_29_patients_on(patients: int, answer: str) -> None:
    ones = np.ones(patients)
    assert paired_difference(ones, ones, by(patients)).answer(0.05) == answer
