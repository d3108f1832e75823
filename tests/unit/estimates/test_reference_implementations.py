"""Statistics against independent implementations of the same definition: to 1e-6.

Others stand with their subjects: exact intervals, Holm, F1, ROC (test_stats), alpha, kappa, AC2, ICC (test_agreement), Pearson, Spearman, ICC
(test_concordance), Brier, ROC (test_confidence_measures, test_score_structured), one-sided bounds (test_readiness), Wilson (test_published),
Fisher (test_revision_tables).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from neuralmedbench.estimates.agreement import complete_rows, icc
from neuralmedbench.estimates.contrasts import (
    flip_test,
    paired_difference,
    parts_of,
    ratio_difference,
    ratio_of,
    smallest_difference,
    square_and_add,
    unpaired_difference,
)
from neuralmedbench.estimates.exact import effective_size, one_sided_bounds, variance_of_mean
from neuralmedbench.estimates.intervals import (
    ByPatient,
    Interval,
    IntervalSettings,
    expanded_tail,
    percentile_interval,
    rate_interval,
    resampling_weights,
)

TO = 1e-6
SETTINGS = IntervalSettings(resamples=500)


@pytest.fixture
def clustered() -> tuple[np.ndarray, np.ndarray]:
    """Return item values and their patients."""
    rng = np.random.default_rng(11)
    patients = np.sort(rng.integers(0, 14, 50))
    patients = np.unique(patients, return_inverse=True)[1]
    return (rng.random(50) < np.where(rng.random(14) < 0.5, 0.9, 0.1)[patients]).astype(float), patients


def test_flipping_the_signs_of_few_patients_is_the_permutation_test_of_scipy() -> None:
    gaps = np.random.default_rng(2).normal(0.2, 0.4, 9)
    by = ByPatient(np.arange(9), SETTINGS)
    test = flip_test(parts_of(ratio_of(gaps), ratio_of(np.zeros(9)), by), by)
    for at in (0.0, -0.1, 0.5):
        reference = stats.permutation_test((gaps - at,), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert test.p_value(at) == pytest.approx(reference.pvalue, abs=TO)


def test_percentiles_and_resampled_means_are_those_of_scipy(clustered: tuple[np.ndarray, np.ndarray]) -> None:
    values, patients = clustered
    drawn = ByPatient(patients, SETTINGS).resampled_means(values[:, None])[:, 0]
    rows = [np.repeat(np.arange(50), weights[patients]) for weights in resampling_weights(14, 500, SETTINGS.seed).astype(int)]
    assert drawn == pytest.approx([values[row].mean() for row in rows], abs=TO)
    level = 1 - 2 * expanded_tail(14, 0.95)
    given = stats.bootstrap((values,), np.mean, n_resamples=9, rng=1)
    given.bootstrap_distribution = drawn
    reference = stats.bootstrap((values,), np.mean, n_resamples=0, bootstrap_result=given, confidence_level=level, method="percentile")
    assert percentile_interval(drawn, 14, 0.95) == pytest.approx(tuple(reference.confidence_interval), abs=TO)


def test_the_variance_between_patients_is_the_sandwich_of_statsmodels(clustered: tuple[np.ndarray, np.ndarray]) -> None:
    values, patients = clustered
    by = ByPatient(patients, SETTINGS)
    clusters = {"cov_type": "cluster", "cov_kwds": {"groups": patients}, "use_t": True}
    fit = sm.OLS(values, np.ones(50)).fit(**clusters)
    assert ratio_difference(ratio_of(values), ratio_of(np.zeros(50)), by).error == pytest.approx(fit.bse[0], abs=TO)
    patients_alike = sm.WLS(values, np.ones(50), weights=1 / np.bincount(patients)[patients]).fit(**clusters)
    found = paired_difference(values, np.zeros(50), by)
    assert (found.value, found.error) == pytest.approx((patients_alike.params[0], patients_alike.bse[0]), abs=TO)
    mean = values.mean()
    freedom = (stats.t.ppf(0.975, 49) / stats.t.ppf(0.975, 13)) ** 2
    assert variance_of_mean(values, patients).robust == pytest.approx(fit.bse[0] ** 2, abs=TO)
    assert effective_size(values, patients, 0.95) == pytest.approx(mean * (1 - mean) / fit.bse[0] ** 2 * freedom, abs=TO)


def test_the_variance_of_alike_items_is_kishs_design_effect_with_the_analysis_of_variance_of_statsmodels() -> None:
    rng = np.random.default_rng(4)
    patients = np.repeat(np.arange(11), rng.integers(1, 9, 11))
    values = rng.normal(0, 1, 11)[patients] + rng.normal(0, 1, patients.size)
    table = sm.stats.anova_lm(smf.ols("value ~ C(patient)", pd.DataFrame({"value": values, "patient": patients})).fit())
    between, within = table["mean_sq"]
    sizes = np.bincount(patients)
    typical = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / 10
    rho = (between - within) / (between + (typical - 1) * within)
    share = (sizes * (1 + (sizes - 1) * rho)).sum() / sizes.sum() ** 2
    found = variance_of_mean(values, patients)
    assert found.exchangeable == pytest.approx(values.var() * share / (1 - share), abs=TO)


@pytest.mark.parametrize("alike", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_both_variances_are_equal_where_patients_have_equally_many_items(size: int, alike: float) -> None:
    rng = np.random.default_rng(size)
    patients = np.repeat(np.arange(9), size)
    found = variance_of_mean(alike * rng.normal(0, 1, 9)[patients] + rng.normal(0, 1, patients.size), patients)
    assert found.exchangeable == pytest.approx(found.robust, rel=1e-9)


def test_the_variance_of_a_share_of_errors_is_the_weighted_sandwich_of_statsmodels(clustered: tuple[np.ndarray, np.ndarray]) -> None:
    _, patients = clustered
    rng = np.random.default_rng(3)
    errors = rng.integers(1, 6, 50) / 5
    left = np.minimum(errors, rng.integers(0, 6, 50) / 5) * (rng.random(14)[patients] < 0.6)
    fit = sm.WLS(left / errors, np.ones(50), weights=errors).fit(cov_type="cluster", cov_kwds={"groups": patients})
    share = left.sum() / errors.sum()
    freedom = (stats.t.ppf(0.975, 49) / stats.t.ppf(0.975, 13)) ** 2
    assert fit.params[0] == pytest.approx(share, abs=TO)
    expected = share * (1 - share) / fit.bse[0] ** 2 * freedom
    assert effective_size(left, patients, 0.95, errors) == pytest.approx(expected, abs=TO)


def test_one_item_a_patient_gives_the_exact_interval_of_one_patient_less() -> None:
    """The unbiased variance of n independent items is that of a binomial share of n - 1."""
    values = np.repeat([1.0, 0.0], [7, 14])
    found = rate_interval(values, ByPatient(np.arange(21), SETTINGS))
    assert found[1:3] == pytest.approx(proportion_confint(20 / 3, 20, 0.05, method="beta"), abs=TO)


@pytest.mark.parametrize("patients", [1, 8, 40])
def test_bounds_of_none_and_all_are_the_one_sided_ones_of_scipy(patients: int) -> None:
    none = stats.binomtest(0, patients, alternative="less").proportion_ci(0.95, method="exact")
    everyone = stats.binomtest(patients, patients, alternative="greater").proportion_ci(0.95, method="exact")
    assert one_sided_bounds(0, patients, 0.95) == pytest.approx((0, none.high), abs=TO)
    assert one_sided_bounds(patients, patients, 0.95) == pytest.approx((everyone.low, 1), abs=TO)


@pytest.mark.parametrize(("counts", "sizes"), [((9, 4), (12, 15)), ((0, 5), (10, 20)), ((30, 30), (30, 31))])
def test_two_intervals_squared_and_added_are_newcombes_of_statsmodels(counts: tuple[int, int], sizes: tuple[int, int]) -> None:
    rates = [
        Interval(count / size, *proportion_confint(count, size, 0.05, method="wilson"), "exact")
        for count, size in zip(counts, sizes, strict=True)
    ]
    found = square_and_add(rates[0], rates[1])
    reference = confint_proportions_2indep(counts[0], sizes[0], counts[1], sizes[1], method="newcomb", compare="diff")
    assert (found.low, found.high) == pytest.approx(reference, abs=TO)


def test_shuffled_groups_are_the_permutation_test_of_scipy() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.random(7).round(1), (rng.random(9) + 0.2).round(1)
    by = ByPatient(np.arange(16), IntervalSettings(resamples=20_000))
    found = unpaired_difference(np.r_[first, second], np.arange(16) < 7, by)
    reference = stats.permutation_test(
        (first, second),
        lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis),
        vectorized=True,
        n_resamples=np.inf,  # all of them: a sample without a seed differs from run to run
    )
    exact = np.mean(np.abs(reference.null_distribution) >= abs(reference.statistic) - 1e-12)
    assert found.p_value == pytest.approx(exact, abs=0.005)


def test_the_smallest_visible_difference_of_many_patients_is_that_of_two_normal_quantiles() -> None:
    many = smallest_difference(0.04, 10**9, 0.05)
    assert many == pytest.approx(0.04 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)), abs=TO)
    assert (smallest_difference(0.04, 8, 0.05) or 0.0) > 1.1 * many


def test_the_intraclass_correlations_are_those_of_pingouin() -> None:
    pingouin = pytest.importorskip("pingouin", reason="pingouin stands in requirements-dev.lock and is not installed")
    values = np.random.default_rng(5).integers(1, 6, (20, 3)).astype(float) + np.arange(20)[:, None] / 8
    long = pd.DataFrame(values).reset_index().melt("index", var_name="rater", value_name="value")
    table = pingouin.intraclass_corr(long, targets="index", raters="rater", ratings="value").set_index("Type")["ICC"]
    assert icc(complete_rows(values).sum(axis=0)) == pytest.approx((table["ICC(A,1)"], table["ICC(A,k)"]), abs=TO)
