"""Comparisons of models: paired differences on the same items, differences between groups of patients, ranks and tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from neuralmedbench.estimates.exact import FEW_PATIENTS
from neuralmedbench.estimates.intervals import (
    Floats,
    IntervalSettings,
    Ints,
    cluster_sums,
    expanded_tail,
    percentile_interval,
    resampled_means,
)

EXACT_FLIPS_UP_TO = 12
"""Up to this many patients every pattern of signs is tried; above it patterns are drawn."""

TOGETHER = 64
"""Pairs that are resampled at once: more take memory and no less time."""


class Difference(NamedTuple):
    """A paired difference; `low` and `high` are None when nothing varies, `spread` is its standard error."""

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    spread: float
    items: int
    patients: int


def paired_difference(first: Floats, second: Floats, patients: Ints, settings: IntervalSettings) -> Difference:
    """Mean of `first` minus mean of `second` over the items that both have.

    Parameters
    ----------
    first, second : ndarray of float, shape (items,)
        Item values between 0 and 1; NaN where a side has none.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : IntervalSettings
        Resamples, seed and confidence.

    Returns
    -------
    Difference
        Interval from the patient-clustered bootstrap, with fewer than 30 patients never narrower than Student's t on the sums of patients:
        where only one or two patients differ, percentiles are. p value from flipping the signs of whole patients.
    """
    return paired_differences([(first, second)], patients, settings)[0]


def paired_differences(pairs: Sequence[tuple[Floats, Floats]], patients: Ints, settings: IntervalSettings) -> list[Difference]:
    """Give the difference of each of many pairs; pairs that share the same items are resampled together.

    Parameters
    ----------
    pairs : sequence of (ndarray of float, ndarray of float), each of shape (items,)
        Item values between 0 and 1; NaN where a side has none.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : IntervalSettings
        Resamples, seed and confidence.

    Returns
    -------
    list of Difference
        One a pair, as `paired_difference` gives it.
    """
    found = [Difference(None, None, None, None, 0.0, 0, 0)] * len(pairs)
    alike: dict[bytes, list[int]] = {}
    for place, (first, second) in enumerate(pairs):
        both = ~(np.isnan(first) | np.isnan(second))
        if both.any():
            alike.setdefault(both.tobytes(), []).append(place)
    for key, places in alike.items():
        both = np.frombuffer(key, dtype=bool)
        codes = np.unique(patients[both], return_inverse=True)[1].reshape(-1)
        for start in range(0, len(places), TOGETHER):
            some = places[start : start + TOGETHER]
            gaps = [(pairs[place][0] - pairs[place][1])[both] for place in some]
            resampled = resampled_means(np.stack(gaps, axis=1), codes, settings)
            p_values = sign_flip_p(cluster_sums(np.stack(gaps, axis=1), codes, int(codes.max()) + 1), settings)
            for column, place in enumerate(some):
                found[place] = _difference(gaps[column], codes, resampled[:, column], p_values[column], settings)
    return found


def _difference(gaps: Floats, codes: Ints, resampled: Floats, p_value: float, settings: IntervalSettings) -> Difference:
    clusters = int(codes.max()) + 1
    low, high = percentile_interval(resampled, clusters, settings.confidence)
    if low is not None and high is not None and clusters < FEW_PATIENTS:
        near, far = student_interval(gaps, codes, settings.confidence)
        low, high = max(min(low, near), -1.0), min(max(high, far), 1.0)
    return Difference(float(gaps.mean()), low, high, p_value, float(np.nanstd(resampled)), len(gaps), clusters)


def student_interval(values: Floats, patients: Ints, confidence: float) -> tuple[float, float]:
    """Give the interval of a mean by Student's t, its standard error from the sums of at least two patients.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Item values, none NaN.
    patients : ndarray of int, shape (items,)
        Patient of each item, numbered from 0 without gaps.
    confidence : float
        Confidence level.

    Returns
    -------
    tuple of float
        Low and high.
    """
    clusters, mean = int(patients.max()) + 1, float(values.mean())
    residuals = cluster_sums((values - mean)[:, None], patients, clusters)[:, 0]
    error = np.sqrt(clusters / (clusters - 1) * (residuals**2).sum()) / len(values)
    half = float(stats.t.ppf(0.5 + confidence / 2, clusters - 1) * error)
    return mean - half, mean + half


def sign_flip_p(sums: Floats, settings: IntervalSettings) -> list[float]:
    """Test each column for no difference: the share of patterns of flipped patients that lie at least as far from zero.

    Parameters
    ----------
    sums : ndarray of float, shape (patients, columns)
        Sum of the differences of each patient.
    settings : IntervalSettings
        Resamples and seed, used above 12 patients.

    Returns
    -------
    list of float
        By column. Exact up to 12 patients; (hits + 1) / (draws + 1) above, so that it is never 0.
    """
    count, seen = len(sums), np.array([abs(float(column.sum())) for column in sums.T])
    if count <= EXACT_FLIPS_UP_TO:
        patterns = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
        return [float(share) for share in (np.abs(patterns @ sums) >= seen - 1e-9).mean(axis=0)]
    hits = (np.abs(_signs(count, settings.resamples, settings.seed) @ sums) >= seen - 1e-9).sum(axis=0)
    return [(int(number) + 1) / (settings.resamples + 1) for number in hits]


@lru_cache(maxsize=4)
def _signs(patients: int, resamples: int, seed: int) -> Floats:
    """Drawn patterns of signs, shape (resamples, patients): every pair of models is tested with the same ones."""
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 2, size=(resamples, patients), dtype=np.int8) * 2 - 1).astype(np.float64)


def smallest_difference(spread: float, confidence: float, patients: int, power: float = 0.8) -> float:
    """Smallest true difference that one comparison would see with the given power.

    Parameters
    ----------
    spread : float
        Standard error of a paired difference, from the bootstrap of patients: it is too small by sqrt((n - 1) / n), which is put right.
    confidence, power : float
        Of the test, and the chance to see the difference.
    patients : int
        Number of patients behind it, at least 2.

    Returns
    -------
    float
        Sum of the two quantiles of Student's t, times the standard error. The correction after Holm for many models is not in it.
    """
    quantiles = stats.t.ppf(0.5 + confidence / 2, patients - 1) + stats.t.ppf(power, patients - 1)
    return float(quantiles * spread * np.sqrt(patients / (patients - 1)))


AT_ONCE = 1_000
"""Shuffles that are worked on together."""


class Estimate(NamedTuple):
    """A value with its interval; None where there is none."""

    value: float | None
    low: float | None
    high: float | None


def square_and_add(first: Estimate, second: Estimate) -> Estimate:
    """Give the first minus the second of two independent estimates, with an interval made from theirs.

    Parameters
    ----------
    first, second : Estimate
        Of different patients.

    Returns
    -------
    Estimate
        As honest as the two intervals are: exact ones (few patients, none or all right) stay so. Without an interval where one has none.

    References
    ----------
    Newcombe, Statistics in Medicine 17 (1998) 873, method 10; for any two intervals: Zou and Donner, ibid. 27 (2008) 1693.

    Examples
    --------
    >>> [round(number, 3) for number in square_and_add(Estimate(0.8, 0.7, 0.9), Estimate(0.5, 0.3, 0.6))]
    [0.3, 0.159, 0.524]
    """
    if first.value is None or second.value is None:
        return Estimate(None, None, None)
    value = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(value, None, None)
    down = np.hypot(first.value - first.low, second.high - second.value)
    up = np.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, float(value - down), float(value + up))


def shuffle_p(first: Floats, second: Floats, patients: tuple[Ints, Ints], settings: IntervalSettings) -> float:
    """Test for no difference: the share of random divisions of the patients whose means lie at least as far apart.

    Parameters
    ----------
    first, second : ndarray of float, shape (items of the group,)
        Item values of each group, none NaN.
    patients : tuple of ndarray of int
        Patient of each item of each group; a patient belongs to one group.
    settings : IntervalSettings
        Draws and seed.

    Returns
    -------
    float
        (hits + 1) / (draws + 1), so that it is never 0. Patients keep their items, and the groups their numbers of patients.
    """
    codes = np.unique(np.concatenate(patients), return_inverse=True)[1].reshape(-1)
    count, of_first = int(codes.max()) + 1, len(set(patients[0].tolist()))
    values = np.concatenate([first, second])
    sums = cluster_sums(np.stack([values, np.ones(len(values))], axis=1), codes, count)
    rng, seen, hits = np.random.default_rng(settings.seed), abs(float(first.mean() - second.mean())), 0
    for start in range(0, settings.resamples, AT_ONCE):
        keys = rng.random((min(AT_ONCE, settings.resamples - start), count))
        chosen = (keys <= np.partition(keys, of_first - 1, axis=1)[:, of_first - 1, None]).astype(np.float64) @ sums
        rest = sums.sum(axis=0) - chosen
        apart = np.abs(chosen[:, 0] / chosen[:, 1] - rest[:, 0] / rest[:, 1])
        hits += int((apart >= seen - 1e-9).sum())
    return (hits + 1) / (settings.resamples + 1)


def rank_ranges(values: Floats, patients: Ints, settings: IntervalSettings) -> list[tuple[int, int]]:
    """Range of ranks of each model over the resamples.

    Parameters
    ----------
    values : ndarray of float, shape (items, models)
        Item values.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : IntervalSettings
        Resamples, seed and confidence.

    Returns
    -------
    list of tuple of int
        Best and worst rank of each model; 1 is the best. Equal means share the better rank on the way up and the worse
        one on the way down, so that a tie widens the range.
    """
    models, clusters = values.shape[1], int(patients.max()) + 1 if len(patients) else 0
    if models == 0 or clusters < 2:
        return [(1, models)] * models
    means = np.round(np.nan_to_num(resampled_means(values, patients, settings)), 12)
    tail = expanded_tail(clusters, settings.confidence)
    best = stats.rankdata(-means, method="min", axis=1)
    worst = stats.rankdata(-means, method="max", axis=1)
    low = np.quantile(best, tail, axis=0, method="lower")
    high = np.quantile(worst, 1 - tail, axis=0, method="higher")
    return [(int(first), int(last)) for first, last in zip(low, high, strict=True)]


def tiers(order: Sequence[str], p_holm: Mapping[frozenset[str], float], alpha: float) -> dict[str, int]:
    """Tiers: models that cannot be told from the best of their tier.

    Parameters
    ----------
    order : sequence of str
        Models, best first.
    p_holm : mapping
        Corrected p value of each pair of models.
    alpha : float
        Level below which a difference counts.

    Returns
    -------
    dict of str to int
        Tier of each model, from 1. The best model opens a tier; every model that is not significantly different from it
        joins; the best of the rest opens the next one.
    """
    found: dict[str, int] = {}
    rest, tier = list(order), 0
    while rest:
        tier += 1
        best = rest[0]
        joined = [model for model in rest if model == best or p_holm[frozenset((best, model))] >= alpha]
        found.update(dict.fromkeys(joined, tier))
        rest = [model for model in rest if model not in joined]
    return found
