"""Intervals that respect patients: items of one patient, and samples of one item, are not independent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEW_PATIENTS = 30
"""With fewer patients a percentile bootstrap of a single rate is too narrow: the exact interval is used."""


@dataclass(frozen=True)
class Settings:
    """How intervals are made: resamples and seed of the bootstrap, confidence level, limit of missing answers."""

    resamples: int = 10_000
    seed: int = 20_260_925
    confidence: float = 0.95
    max_missing_fraction: float = 0.02


class Interval(NamedTuple):
    """A rate and its interval; `method` is `bootstrap`, `exact`, `exact one-sided` or `none`."""

    value: float | None
    low: float | None
    high: float | None
    method: str


NOTHING = Interval(None, None, None, "none")


def codes_of(patients: list[str]) -> Ints:
    """Count the patients from 0, in the order of their ids."""
    return np.unique(np.array(patients, dtype=str), return_inverse=True)[1].astype(np.int64).reshape(-1)


def cluster_sums(values: Floats, patients: Ints, clusters: int) -> Floats:
    """Sum the rows of each patient.

    Parameters
    ----------
    values : ndarray of float, shape (items, columns)
        One row an item.
    patients : ndarray of int, shape (items,)
        Patient of each item, 0 to `clusters` - 1.
    clusters : int
        Number of patients.

    Returns
    -------
    ndarray of float, shape (clusters, columns)
        Sums.
    """
    sums = np.zeros((clusters, values.shape[1]))
    np.add.at(sums, patients, values)
    return sums


@lru_cache(maxsize=8)
def resampling_weights(clusters: int, resamples: int, seed: int) -> Floats:
    """How often each patient is drawn in each resample: shape (resamples, clusters), every row sums to `clusters`."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples).astype(np.float64)


def resampled_means(values: Floats, patients: Ints, settings: Settings) -> Floats:
    """Means of many columns under one set of resamples, so that differences between columns are paired.

    Parameters
    ----------
    values : ndarray of float, shape (items, columns)
        NaN where a column has no value for an item: the item does not count for that column.
    patients : ndarray of int, shape (items,)
        Patient of each item, numbered from 0 without gaps.
    settings : Settings
        Resamples and seed.

    Returns
    -------
    ndarray of float, shape (resamples, columns)
        NaN where a resample holds no item of a column.
    """
    clusters = int(patients.max()) + 1
    weights = resampling_weights(clusters, settings.resamples, settings.seed)
    known = ~np.isnan(values)
    totals = weights @ cluster_sums(np.where(known, values, 0.0), patients, clusters)
    sizes = weights @ cluster_sums(known.astype(np.float64), patients, clusters)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(totals / sizes, dtype=np.float64)


def percentile_interval(resampled: Floats, clusters: int, confidence: float) -> tuple[float | None, float | None]:
    """Give an expanded percentile interval: the percentiles are moved out as far as Student's t exceeds the normal quantile.

    Parameters
    ----------
    resampled : ndarray of float, shape (resamples,)
        Bootstrap distribution; NaN is left out.
    clusters : int
        Number of patients behind it.
    confidence : float
        Confidence level.

    Returns
    -------
    tuple of float or None
        Low and high; None with fewer than 2 patients or when nothing varies.

    References
    ----------
    Hesterberg, The American Statistician 69 (2015) 371: plain percentiles are too narrow by sqrt((n - 1) / n) and z against t.
    """
    finite = resampled[np.isfinite(resampled)]
    if clusters < 2 or finite.size == 0 or np.ptp(finite) < 1e-12:
        return None, None
    tail = expanded_tail(clusters, confidence)
    low, high = np.quantile(finite, [tail, 1 - tail])
    return float(low), float(high)


def expanded_tail(clusters: int, confidence: float) -> float:
    """Give the share of the bootstrap distribution that is cut on each side of an expanded percentile interval."""
    from scipy import stats

    reach = np.sqrt(clusters / (clusters - 1)) * stats.t.ppf(0.5 + confidence / 2, clusters - 1)
    return float(stats.norm.cdf(-reach))


def clopper_pearson(events: float, trials: float, confidence: float) -> tuple[float, float]:
    """Give the exact binomial interval; both arguments may be fractions (effective sample sizes).

    Parameters
    ----------
    events, trials : float
        Events and trials, 0 <= events <= trials.
    confidence : float
        Confidence level; each tail holds half of the rest.

    Returns
    -------
    tuple of float
        Low and high.

    Examples
    --------
    >>> [round(bound, 3) for bound in clopper_pearson(0, 8, 0.95)]
    [0.0, 0.369]
    """
    from scipy import stats

    tail = (1 - confidence) / 2
    low = 0.0 if events <= 0 else float(stats.beta.ppf(tail, events, trials - events + 1))
    high = 1.0 if events >= trials else float(stats.beta.ppf(1 - tail, events + 1, trials - events))
    return low, high


def effective_size(values: Floats, patients: Ints, confidence: float) -> float:
    """Find the number of independent items that would give the same variance as these clustered ones.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Item values between 0 and 1, not all 0 and not all 1.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    confidence : float
        Confidence level (for the correction by degrees of freedom).

    Returns
    -------
    float
        Between 1 and the number of items.

    References
    ----------
    Korn and Graubard, Survey Methodology 24 (1998) 193: exact intervals on the effective sample size.
    """
    from scipy import stats

    clusters, mean, items = int(patients.max()) + 1, float(values.mean()), len(values)
    if clusters < 2:
        return 1.0
    residuals = cluster_sums((values - mean)[:, None], patients, clusters)[:, 0]
    variance = clusters / (clusters - 1) * float((residuals**2).sum()) / items**2
    size = items if variance <= 0 else min(float(items), mean * (1 - mean) / variance)
    upper = 0.5 + confidence / 2
    correction = (stats.t.ppf(upper, max(items - 1, 1)) / stats.t.ppf(upper, clusters - 1)) ** 2
    return float(np.clip(size * correction, 1.0, items))


def rate_interval(values: Floats, patients: Ints, settings: Settings) -> Interval:
    """Mean of item values with its interval.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Between 0 and 1; NaN is left out.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : Settings
        Resamples, seed and confidence.

    Returns
    -------
    Interval
        `exact one-sided` when no item or every item has the event: then the patients are the trials and the whole
        error stands on the one side that is open (0 of 8 patients: 0 to 0.31). `exact` on the effective sample size with
        fewer than 30 patients. `bootstrap` otherwise.
    """
    known = ~np.isnan(values)
    if not known.any():
        return NOTHING
    values = values[known]
    patients = np.unique(patients[known], return_inverse=True)[1].reshape(-1)
    exact = exact_interval(values, patients, settings)
    if exact is not None:
        return exact
    resampled = resampled_means(values[:, None], patients, settings)[:, 0]
    return Interval(float(values.mean()), *percentile_interval(resampled, int(patients.max()) + 1, settings.confidence), "bootstrap")


def exact_interval(values: Floats, patients: Ints, settings: Settings) -> Interval | None:
    """Interval of a rate where the rules of `rate_interval` ask for an exact one; None where they ask for the bootstrap.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Between 0 and 1, none of them NaN.
    patients : ndarray of int, shape (items,)
        Patient of each item, numbered from 0 without gaps.
    settings : Settings
        Confidence.
    """
    clusters, mean = int(patients.max()) + 1, float(values.mean())
    if mean <= 0 or mean >= 1:
        bound = (1 - settings.confidence) ** (1 / clusters)
        return Interval(mean, 0.0 if mean <= 0 else bound, 1.0 if mean >= 1 else 1 - bound, "exact one-sided")
    if clusters < FEW_PATIENTS:
        size = effective_size(values, patients, settings.confidence)
        return Interval(mean, *clopper_pearson(mean * size, size, settings.confidence), "exact")
    return None
