"""Statistics against closed formulas, brute force and other libraries."""

from __future__ import annotations

import gc
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from neuralmedbench.estimates.exact import clopper_pearson, effective_size, holm
from neuralmedbench.estimates.intervals import (
    ByPatient,
    IntervalSettings,
    expanded_tail,
    fieller,
    percentile_interval,
    rate_interval,
    repaired_share,
    resampling_weights,
)
from neuralmedbench.estimates.ranks import rank_ranges, tiers
from neuralmedbench.estimates.repeats import pass_at_k
from neuralmedbench.tables.fields import macro_f1

FAST = IntervalSettings(resamples=2000)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_pass_at_k_is_the_share_of_draws_that_hold_a_pass(k: int) -> None:
    for samples in range(k, 9):
        for passes in range(samples + 1):
            draws = list(combinations([True] * passes + [False] * (samples - passes), k))
            brute = np.mean([any(draw) for draw in draws])
            found = float(pass_at_k(np.array([samples]), np.array([passes]), k)[0])
            assert found == pytest.approx(brute, abs=1e-12)
            assert found == pytest.approx(1 - comb(samples - passes, k) / comb(samples, k), abs=1e-12)


def test_pass_at_k_refuses_fewer_samples_than_it_draws() -> None:
    with pytest.raises(ValueError, match="at least 5 samples"):
        pass_at_k(np.array([5, 4]), np.array([1, 1]), 5)
    with pytest.raises(ValueError, match="from 0 to its samples"):
        pass_at_k(np.array([5]), np.array([6]), 1)


@pytest.mark.parametrize(("events", "trials"), [(0, 8), (3, 8), (8, 8), (17, 60)])
def test_the_exact_interval_is_that_of_scipy_and_statsmodels(events: int, trials: int) -> None:
    found = clopper_pearson(events, trials, 0.95)
    assert found == pytest.approx(tuple(scipy_stats.binomtest(events, trials).proportion_ci(0.95, method="exact")), abs=1e-9)
    assert found == pytest.approx(proportion_confint(events, trials, 0.05, method="beta"), abs=1e-9)


def test_no_event_in_eight_patients_does_not_mean_a_rate_of_zero() -> None:
    found = rate_interval(np.zeros(24), ByPatient(np.repeat(np.arange(8), 3), FAST))
    assert (found.low, found.method) == (0.0, "exact one-sided")
    assert found.high == pytest.approx(0.312, abs=0.001)
    mirrored = rate_interval(np.ones(24), ByPatient(np.repeat(np.arange(8), 3), FAST))
    assert mirrored.low == pytest.approx(1 - 0.312, abs=0.001)


def test_few_events_leave_no_less_open_than_none() -> None:
    """One picture of one patient with the event in 240 of 30 patients: by its scatter alone, at most 2 %."""
    patients = np.repeat(np.arange(30), 8)
    none = rate_interval(np.zeros(240), ByPatient(patients, FAST))
    one = rate_interval(np.eye(1, 240)[0], ByPatient(patients, FAST))
    all_but_one = rate_interval(1 - np.eye(1, 240)[0], ByPatient(patients, FAST))
    assert one.method == "exact"
    assert one.high == pytest.approx(none.high)
    assert all_but_one.low == pytest.approx(1 - none.high)


def test_items_of_one_patient_count_less_than_items_of_many() -> None:
    values = np.tile([1.0, 1.0, 0.0, 0.0], 5)
    together, apart = np.repeat(np.arange(10), 2), np.arange(20)
    same = np.repeat([1.0, 0.0], 10)
    assert effective_size(same, together, 0.95) < 10 <= effective_size(values, apart, 0.95) + 1e-9
    wide, narrow = rate_interval(same, ByPatient(together, FAST)), rate_interval(values, ByPatient(apart, FAST))
    assert wide.method == narrow.method == "exact"
    assert wide.high - wide.low > narrow.high - narrow.low


def test_exact_intervals_of_clustered_items_cover_the_truth() -> None:
    rng, hits = np.random.default_rng(3), 0
    patients = np.repeat(np.arange(15), 4)
    for _ in range(200):
        own = rng.beta(2, 3, 15)
        found = rate_interval((rng.random(60) < own[patients]).astype(float), ByPatient(patients, FAST))
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.4 <= found.high
    assert hits / 200 >= 0.93


def test_resamples_are_shared_by_all_columns_and_repeat_with_the_seed() -> None:
    values = np.random.default_rng(1).random((40, 1))
    patients = np.arange(40) // 2
    twice = ByPatient(patients, FAST).resampled_means(np.hstack([values, values]))
    assert (twice[:, 0] == twice[:, 1]).all()
    assert (twice == ByPatient(patients, FAST).resampled_means(np.hstack([values, values]))).all()


def test_nothing_that_varies_gives_no_interval() -> None:
    assert percentile_interval(np.full(100, 0.5), 10, 0.95) == (None, None)
    assert percentile_interval(np.random.default_rng(0).random(100), 1, 0.95) == (None, None)
    assert rate_interval(np.full(5, np.nan), ByPatient(np.arange(5), FAST)).value is None


def test_holm_is_that_of_statsmodels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", lambda: 0)  # `multipletests` calls it, which takes long after thousands of tests
    for seed in range(20):
        p_values = list(np.random.default_rng(seed).random(7) ** 3)
        assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))
    assert holm([]) == []


def test_models_join_the_tier_of_the_best_unless_they_differ_from_it() -> None:
    different = {frozenset(pair) for pair in ("ac", "ad", "cd")}
    assert tiers("abcd", different) == {"a": 1, "b": 1, "c": 2, "d": 3}
    assert tiers([], different) == {}


def test_rank_ranges_are_those_of_every_resample_ranked_by_hand() -> None:
    rng = np.random.default_rng(12)
    patients = np.repeat(np.arange(9), 2)
    values = (rng.random((18, 4)) < [0.7, 0.6, 0.5, 0.3]).astype(float)
    best, worst = [], []
    for weights in resampling_weights(9, FAST.resamples, FAST.seed).astype(int):
        means = values[np.repeat(np.arange(18), weights[patients])].mean(axis=0).round(9)
        best.append([1 + int((means > mean).sum()) for mean in means])
        worst.append([int((means >= mean).sum()) for mean in means])
    tail = expanded_tail(9, FAST.confidence)
    low = np.quantile(best, tail, axis=0, method="lower")
    high = np.quantile(worst, 1 - tail, axis=0, method="higher")
    found = rank_ranges(values, ByPatient(patients, FAST))
    assert found == [(int(first), int(last)) for first, last in zip(low, high, strict=True)]
    assert found[0][1] < 4


def test_rank_ranges_of_equal_models_span_all_ranks_and_of_clear_ones_do_not() -> None:
    rng = np.random.default_rng(2)
    same = (rng.random((40, 1)) < 0.5).astype(float)
    assert rank_ranges(np.hstack([same, same]), ByPatient(np.arange(40), FAST)) == [(1, 2), (1, 2)]
    clear = np.hstack([np.ones((40, 1)), np.zeros((40, 1))])
    assert rank_ranges(clear, ByPatient(np.arange(40), FAST)) == [(1, 1), (2, 2)]


def test_the_interval_of_a_ratio_excludes_zero_where_that_of_its_numerator_does() -> None:
    """Fieller's property, and his formula against the delta method where the denominator hardly varies."""
    rng = np.random.default_rng(5)
    for shift in np.linspace(0, 0.6, 25):
        sums = np.column_stack([rng.normal(shift, 1, 14), rng.normal(5, 0.5, 14)])
        low, high = fieller(sums, 0.95)
        reach = scipy_stats.t.ppf(0.975, 13) * sums[:, 0].std(ddof=1) / np.sqrt(14)
        assert low is not None
        assert high is not None
        assert (low > 0 or high < 0) == (abs(sums[:, 0].mean()) > reach)
    sums = np.column_stack([rng.normal(1, 0.2, 4000), rng.normal(5, 0.2, 4000)])
    ratio = sums[:, 0].mean() / sums[:, 1].mean()
    reach = 1.96 * (sums[:, 0] - ratio * sums[:, 1]).std() / sums[:, 1].mean() / np.sqrt(4000)
    assert fieller(sums, 0.95) == pytest.approx((ratio - reach, ratio + reach), abs=1e-4)
    assert fieller(np.column_stack([rng.normal(1, 1, 6), rng.normal(0.1, 3, 6)]), 0.95) == (None, None)


def test_a_share_of_few_errors_is_as_unsure_as_so_few_errors_are() -> None:
    errors, patients = np.ones(8), np.arange(8)
    found = repaired_share(np.array([0.0, *np.ones(7)]), errors, ByPatient(patients, FAST))
    assert found.value == 7 / 8
    assert found.low is not None
    assert found.low <= 1 - clopper_pearson(1 / 8 * 7, 7, 0.95)[1] < 0.62
    everything = repaired_share(np.r_[errors[:5], np.zeros(3)], np.r_[errors[:5], np.zeros(3)], ByPatient(patients, FAST))
    assert (everything.value, everything.high, everything.method) == (1.0, 1.0, "exact one-sided")
    assert everything.low == pytest.approx(0.05 ** (1 / 5))
    worse = repaired_share(np.tile([-0.4, 0.1], 20), np.full(40, 0.5), ByPatient(np.arange(40), FAST))
    assert worse.value == pytest.approx(-0.3)
    assert worse.high is not None
    assert worse.high < 0, "a share below zero is not clipped"


def test_macro_f1_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(4)
    truth, said = list(rng.choice(["a", "b", "c"], 50)), list(rng.choice(["a", "b", "c"], 50))
    assert macro_f1(truth, said) == pytest.approx(f1_score(truth, said, average="macro"))
    assert macro_f1([], []) is None
