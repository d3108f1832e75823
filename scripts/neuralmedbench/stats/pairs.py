"""Differences between two conditions on the same items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from neuralmedbench.stats.intervals import Floats, Ints, Settings, cluster_sums, percentile_interval, resampled_means

EXACT_FLIPS_UP_TO = 12
"""Up to this many patients every pattern of signs is tried; above it patterns are drawn."""


class Difference(NamedTuple):
    """A paired difference; `low` and `high` are None when nothing varies, `spread` is its standard error."""

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    spread: float
    items: int
    patients: int


def paired_difference(first: Floats, second: Floats, patients: Ints, settings: Settings) -> Difference:
    """Mean of `first` minus mean of `second` over the items that both have.

    Parameters
    ----------
    first, second : ndarray of float, shape (items,)
        Item values; NaN where a side has none.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : Settings
        Resamples, seed and confidence.

    Returns
    -------
    Difference
        Interval from the patient-clustered bootstrap, p value from flipping the signs of whole patients.
    """
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return Difference(None, None, None, None, 0.0, 0, 0)
    gaps = (first - second)[both]
    codes = np.unique(patients[both], return_inverse=True)[1].reshape(-1)
    clusters = int(codes.max()) + 1
    resampled = resampled_means(gaps[:, None], codes, settings)[:, 0]
    low, high = percentile_interval(resampled, clusters, settings.confidence)
    sums = cluster_sums(gaps[:, None], codes, clusters)[:, 0]
    return Difference(float(gaps.mean()), low, high, sign_flip_p(sums, settings), float(np.nanstd(resampled)), len(gaps), clusters)


def sign_flip_p(sums: Floats, settings: Settings) -> float:
    """Test for no difference: the share of patterns of flipped patients that lie at least as far from zero.

    Parameters
    ----------
    sums : ndarray of float, shape (patients,)
        Sum of the differences of each patient.
    settings : Settings
        Resamples and seed, used above 12 patients.

    Returns
    -------
    float
        Exact up to 12 patients; (hits + 1) / (draws + 1) above, so that it is never 0.
    """
    count, seen = len(sums), abs(float(sums.sum()))
    if count <= EXACT_FLIPS_UP_TO:
        patterns = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
        return float((np.abs(patterns @ sums) >= seen - 1e-9).mean())
    rng = np.random.default_rng(settings.seed)
    signs = rng.integers(0, 2, size=(settings.resamples, count), dtype=np.int8) * 2 - 1
    hits = int((np.abs(signs @ sums) >= seen - 1e-9).sum())
    return (hits + 1) / (settings.resamples + 1)


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


def smallest_difference(spread: float, confidence: float, power: float = 0.8) -> float:
    """Smallest true difference that would be seen with the given power, from the standard error of a paired difference."""
    return float((stats.norm.ppf(0.5 + confidence / 2) + stats.norm.ppf(power)) * spread)
