"""Agreement of raters: coefficients against reference implementations."""

from __future__ import annotations

import krippendorff
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.inter_rater import cohens_kappa

from neuralmedbench.estimates.agreement import (
    ac2,
    coincidences,
    complete_rows,
    icc,
    ordinal_alpha,
    pair_terms,
    quadratic_kappa,
    shares_of_pairs,
    weighted_shares,
)
from neuralmedbench.estimates.intervals import Floats

SCALE = np.arange(5.0)
NAN = np.nan
SHROUT = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=np.float64)
"""Six targets and four judges: table 2 of Shrout and Fleiss (1979)."""
GWET = np.array(
    [
        [1, 1, NAN, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
        [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [NAN, 5, 5, 5], [NAN, NAN, 1, 1], [NAN, NAN, 3, NAN],
    ]
)  # fmt: skip
"""Twelve units and four raters with missing values: the example of Krippendorff (2011), and of Gwet's package irrCAC."""


def made(seed: int = 3, answers: int = 40, raters: int = 4, missing: float = 0.25) -> Floats:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, (answers, 1))
    values = np.clip(truth + rng.integers(-1, 2, (answers, raters)), 0, 4).astype(np.float64)
    values[rng.random(values.shape) < missing] = NAN
    return values


def alpha(values: Floats, scale: Floats = SCALE) -> float:
    return float(ordinal_alpha(coincidences(values, scale).sum(axis=0)))


def gwet(values: Floats, scale: Floats = SCALE) -> float:
    return float(ac2(weighted_shares(values, scale).sum(axis=0), scale))


def kappa(one: Floats, other: Floats) -> float:
    return float(quadratic_kappa(pair_terms(one[:, None], other[:, None]).sum(axis=0))[0])


@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_the_krippendorff_package(seed: int) -> None:
    values = made(seed)
    reference = krippendorff.alpha(values.T, level_of_measurement="ordinal", value_domain=list(SCALE))
    assert alpha(values) == pytest.approx(reference, abs=1e-6)


def test_alpha_of_the_published_example() -> None:
    assert alpha(GWET, np.arange(1.0, 6)) == pytest.approx(0.815, abs=5e-4)


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_sklearn_and_statsmodels(seed: int) -> None:
    one, other = made(seed, raters=2, missing=0).T
    assert kappa(one, other) == pytest.approx(cohen_kappa_score(one, other, labels=SCALE, weights="quadratic"), abs=1e-6)
    table = np.zeros((5, 5))
    np.add.at(table, (one.astype(int), other.astype(int)), 1)
    assert kappa(one, other) == pytest.approx(cohens_kappa(table, wt="quadratic", return_results=False), abs=1e-6)
    with_gaps = np.append(one, [NAN, 3.0]), np.append(other, [2.0, NAN])
    assert kappa(*with_gaps) == pytest.approx(kappa(one, other), abs=1e-12)


def test_ac2_is_that_of_gwets_own_package() -> None:
    values = np.array(
        [[0, 0, 0], [0, 1, NAN], [4, 3, NAN], [2, 1, NAN], [2, 2, 3], [2, NAN, 2], [3, 4, 2], [1, 0, NAN], [NAN, 3, 3], [0, NAN, NAN], [1, 1, 1],
         [4, NAN, NAN]]
    )  # fmt: skip
    # CAC(values, weights="quadratic", categories=[0, 1, 2, 3, 4]).gwet() of irrCAC 0.4.4
    assert gwet(values) == pytest.approx(0.83654937570942, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_icc_is_that_of_the_mean_squares_of_statsmodels(seed: int) -> None:
    values = made(seed, raters=3, missing=0)
    answers, raters = values.shape
    long = pd.DataFrame([(i, j, values[i, j]) for i in range(answers) for j in range(raters)], columns=["answer", "rater", "value"])
    table = anova_lm(ols("value ~ C(answer) + C(rater)", long).fit())
    rows, columns, rest = (table["mean_sq"][name] for name in ("C(answer)", "C(rater)", "Residual"))
    one = (rows - rest) / (rows + (raters - 1) * rest + raters * (columns - rest) / answers)
    mean = (rows - rest) / (rows + (columns - rest) / answers)
    assert icc(complete_rows(values).sum(axis=0)) == pytest.approx((one, mean), abs=1e-6)
    with_gaps = np.vstack([values, [NAN, 1, 2]])
    assert icc(complete_rows(with_gaps).sum(axis=0)) == pytest.approx((one, mean), abs=1e-9)


def test_icc_of_the_published_example() -> None:
    assert np.round(icc(complete_rows(SHROUT).sum(axis=0)), 2).tolist() == [0.29, 0.62]


def test_shares_count_equal_values_and_values_within_one() -> None:
    one, other = np.array([0.0, 1, 2, NAN, 4]), np.array([0.0, 2, 4, 1, NAN])
    same, near = shares_of_pairs(pair_terms(one[:, None], other[:, None]).sum(axis=0))
    assert (same[0], near[0]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_coefficients_without_variation_or_without_pairs_have_no_value_and_do_not_crash() -> None:
    equal, nothing = np.full((6, 3), 2.0), np.full((6, 3), NAN)
    for values in (equal, nothing):
        assert np.isnan(alpha(values))
        assert np.isnan(icc(complete_rows(values).sum(axis=0))).all()
        assert np.isnan(kappa(values[:, 0], values[:, 1]))
    assert gwet(equal) == 1
    assert np.isnan(gwet(nothing))
