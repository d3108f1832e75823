"""Differences between two conditions on the same items."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from neuralmedbench.estimates.exact import FEW_PATIENTS
from neuralmedbench.estimates.intervals import Floats, IntervalSettings, Ints, cluster_sums, percentile_interval, resampled_means

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


def mcnemar_exact(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> float:
    """Exact McNemar test on paired outcomes; it takes items as independent and stands beside the clustered test."""
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(stats.binomtest(only_first, only_first + only_second, 0.5).pvalue)


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down correction; the order of the list is kept.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, running = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        running = max(running, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = running
    return adjusted


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
