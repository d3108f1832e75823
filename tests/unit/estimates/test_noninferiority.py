"""Exact paired tests of a margin: against published intervals, plain sums over all tables, and other ways to compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar

from neuralmedbench.estimates.noninferiority import (
    Changes,
    Gaps,
    gap_bounds,
    gaps_of,
    margin_test,
    patients_needed,
    power_at,
    score_statistic,
)


def statistic(worse: float, better: float, patients: int, margin: float) -> float:
    return float(score_statistic(np.array(worse), np.array(better), patients, margin))


def test_the_statistic_gives_the_published_interval_of_tango() -> None:
    """Complete response before and after consolidation (Cavo et al. 2012), Fagerland, Lydersen and Laake, Statistical Analysis of Contingency Tables,
    chapter 8: difference -0.062, 95 % from -0.1240 to -0.0054."""
    ends = [optimize.brentq(lambda margin, z=z: statistic(6, 16, 161, margin) - z, -0.9, 0.9) for z in stats.norm.ppf([0.025, 0.975])]
    assert ends == [pytest.approx(-0.1240, abs=5e-5), pytest.approx(-0.0054, abs=5e-5)]


def test_at_no_margin_it_is_mcnemars() -> None:
    found = mcnemar([[30, 12], [5, 40]], exact=False, correction=False)
    assert statistic(12, 5, 87, 0.0) ** 2 == pytest.approx(found.statistic)


def test_its_variance_is_that_of_the_likeliest_shares_under_the_margin() -> None:
    worse, better, patients, margin = 3, 7, 60, 0.1

    def surprise(share: float) -> float:
        return -(worse * np.log(share + margin) + better * np.log(share) + (patients - worse - better) * np.log(1 - 2 * share - margin))

    share = optimize.minimize_scalar(surprise, bounds=(1e-9, 0.45 - 1e-9), method="bounded", options={"xatol": 1e-12}).x
    expected = (patients * margin - worse + better) / np.sqrt(patients * (2 * share + margin - margin**2))
    assert statistic(worse, better, patients, margin) == pytest.approx(expected, rel=1e-6)


def summed(worse: int, better: int, patients: int, margin: float) -> float:
    """Largest chance of a table at least as extreme, summed over all tables and 600 shares."""
    table = np.array([(b, c, patients - b - c) for b in range(patients + 1) for c in range(patients + 1 - b)])
    extreme = table[
        score_statistic(table[:, 0].astype(float), table[:, 1].astype(float), patients, margin)
        >= statistic(worse, better, patients, margin) - 1e-9
    ]
    shares = abs(margin) + (1 - abs(margin)) * np.concatenate([np.geomspace(1e-6, 1, 300), np.linspace(0, 1 - 1e-9, 300)])
    return max(stats.multinomial.pmf(extreme, patients, [(s + margin) / 2, (s - margin) / 2, 1 - s]).sum() for s in shares)


@pytest.mark.parametrize(("worse", "better", "patients", "margin"), [(0, 0, 25, 0.1), (2, 1, 30, 0.2), (3, 3, 24, 0.25)])
def test_p_is_the_largest_sum_over_all_tables(worse: int, better: int, patients: int, margin: float) -> None:
    assert margin_test(Gaps(worse, better, 1.0, patients), margin).p_within == pytest.approx(
        summed(worse, better, patients, margin), rel=0.01
    )


def test_worse_by_more_is_the_mirrored_test() -> None:
    found = margin_test(Gaps(9, 0, 1.0, 30), 0.1)
    assert found.p_within == 1
    assert found.p_beyond == pytest.approx(summed(0, 9, 30, -0.1), rel=0.01)


def test_where_nothing_changes_it_is_the_binomial_test() -> None:
    assert margin_test(Gaps(0, 0, 1.0, 58), 0.05).p_within == pytest.approx(0.95**58, rel=1e-6)
    assert margin_test(Gaps(0, 0, 1.0, 58), 0.05).p_within > 0.05 > margin_test(Gaps(0, 0, 1.0, 59), 0.05).p_within


def test_bounds_are_the_margins_that_are_just_shown() -> None:
    low, high = gap_bounds(Gaps(4, 2, 1.0, 60), 0.05)
    assert low < 2 / 60 < high
    assert margin_test(Gaps(4, 2, 1.0, 60), high + 0.002).p_within <= 0.05 < margin_test(Gaps(4, 2, 1.0, 60), high - 0.002).p_within
    assert margin_test(Gaps(4, 2, 1.0, 60), low - 0.002).p_beyond <= 0.05 < margin_test(Gaps(4, 2, 1.0, 60), low + 0.002).p_beyond


def test_fractions_of_patients_are_worth_more_than_whole_ones_but_never_as_if_none_could_change_wholly() -> None:
    little = gaps_of(np.tile([0.2, -0.2, 0.0], 40))
    assert (little.worse, little.better, little.patients) == (pytest.approx(8), pytest.approx(8), 120)
    assert 0.2 < little.step < 1
    assert margin_test(little, 0.1).p_within < margin_test(little._replace(step=1.0), 0.1).p_within
    assert gaps_of(np.zeros(50)).step == 1
    assert gaps_of(np.array([0.2, *np.zeros(40)])).step > 0.9


def test_power_is_the_share_of_simulated_updates_that_are_shown() -> None:
    rng = np.random.default_rng(5)
    draws = rng.choice([1.0, -1.0, 0.0], p=[0.05, 0.05, 0.9], size=(1500, 150))
    shown = np.mean([margin_test(gaps_of(own), 0.08).p_within <= 0.05 for own in draws])
    assert power_at(150, 0.08, Changes(0.1, 0.1), 0.05) == pytest.approx(shown, abs=0.035)


def test_a_smaller_error_needs_more_patients_and_more_than_anybody_has_are_not_named() -> None:
    assert patients_needed(0.1, Changes(0.1, 0.1), 0.05, 0.8) == pytest.approx(90, abs=20)
    assert patients_needed(0.01, Changes(0.35, 0.35), 0.05, 0.8) is None  # 22,528
    assert patients_needed(0.1, Changes(0.1, 0.1), 0.01, 0.8) > patients_needed(0.1, Changes(0.1, 0.1), 0.05, 0.8)
