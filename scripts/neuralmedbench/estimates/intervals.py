"""Intervals that respect patients: items of one patient, and samples of one item, are not independent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.exact import FEW_EVENTS, FEW_PATIENTS, clopper_pearson, effective_size, one_sided_bounds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class IntervalSettings:
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
    return np.stack([np.bincount(patients, weights=column, minlength=clusters) for column in values.T], axis=1)


@lru_cache(maxsize=8)
def resampling_weights(clusters: int, resamples: int, seed: int) -> Floats:
    """How often each patient is drawn in each resample: shape (resamples, clusters), every row sums to `clusters`."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples).astype(np.float64)


def resampled_means(values: Floats, patients: Ints, settings: IntervalSettings) -> Floats:
    """Means of many columns under one set of resamples, so that differences between columns are paired.

    Parameters
    ----------
    values : ndarray of float, shape (items, columns)
        NaN where a column has no value for an item: the item does not count for that column.
    patients : ndarray of int, shape (items,)
        Patient of each item, numbered from 0 without gaps.
    settings : IntervalSettings
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
    sizes = np.stack([_drawn_items(patients[column].tobytes(), clusters, settings) for column in known.T], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(totals / sizes, dtype=np.float64)


@lru_cache(maxsize=256)
def _drawn_items(patients: bytes, clusters: int, settings: IntervalSettings) -> Floats:
    """Items in each resample; `patients` holds the patient of each item as 64-bit numbers. Many columns and models share them."""
    sizes = np.bincount(np.frombuffer(patients, dtype=np.int64), minlength=clusters).astype(np.float64)
    return np.asarray(resampling_weights(clusters, settings.resamples, settings.seed) @ sizes, dtype=np.float64)


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


@lru_cache(maxsize=1024)
def expanded_tail(clusters: int, confidence: float) -> float:
    """Give the share of the bootstrap distribution that is cut on each side of an expanded percentile interval."""
    from scipy import stats

    reach = np.sqrt(clusters / (clusters - 1)) * stats.t.ppf(0.5 + confidence / 2, clusters - 1)
    return float(stats.norm.cdf(-reach))


def rate_interval(values: Floats, patients: Ints, settings: IntervalSettings) -> Interval:
    """Mean of item values with its interval.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Between 0 and 1; NaN is left out.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : IntervalSettings
        Resamples, seed and confidence.

    Returns
    -------
    Interval
        `exact one-sided` when no item or every item has the event: then the patients are the trials and the whole
        error stands on the one side that is open (0 of 8 patients: 0 to 0.31). `exact` on the effective sample size with
        fewer than 30 patients, or fewer than 10 events or items without one on that size. `bootstrap` otherwise.
    """
    return rate_intervals(values[:, None], patients, settings)[0]


def rate_intervals(values: Floats, patients: Ints, settings: IntervalSettings) -> list[Interval]:
    """Give the mean of each of many columns with its interval; columns that have the same items are resampled together.

    Parameters
    ----------
    values : ndarray of float, shape (items, columns)
        Between 0 and 1; NaN is left out.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : IntervalSettings
        Resamples, seed and confidence.

    Returns
    -------
    list of Interval
        One a column, as `rate_interval` gives it.
    """
    found, alike = [NOTHING] * values.shape[1], dict[bytes, list[int]]()
    for column, known in enumerate(~np.isnan(values.T)):
        if known.any():
            alike.setdefault(known.tobytes(), []).append(column)
    for columns in alike.values():
        known = ~np.isnan(values[:, columns[0]])
        codes = np.unique(patients[known], return_inverse=True)[1].reshape(-1)
        part = {column: np.ascontiguousarray(values[known, column]) for column in columns}
        exact = {column: exact_interval(part[column], codes, settings) for column in columns}
        drawn = [column for column in columns if exact[column] is None]
        resampled = resampled_means(np.stack([part[column] for column in drawn], axis=1), codes, settings) if drawn else None
        for column, interval in exact.items():
            if interval is not None:
                found[column] = interval
            elif resampled is not None:
                ends = percentile_interval(resampled[:, drawn.index(column)], int(codes.max()) + 1, settings.confidence)
                found[column] = Interval(float(part[column].mean()), *ends, "bootstrap")
    return found


def exact_interval(values: Floats, patients: Ints, settings: IntervalSettings) -> Interval | None:
    """Interval of a rate where the rules of `rate_interval` ask for an exact one; None where they ask for the bootstrap.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Between 0 and 1, none of them NaN.
    patients : ndarray of int, shape (items,)
        Patient of each item, numbered from 0 without gaps.
    settings : IntervalSettings
        Confidence.
    """
    clusters, mean = int(patients.max()) + 1, float(values.mean())
    if mean <= 0 or mean >= 1:
        return Interval(mean, *one_sided_bounds(mean * clusters, clusters, settings.confidence), "exact one-sided")
    size = effective_size(values, patients, settings.confidence)
    if clusters < FEW_PATIENTS or min(mean, 1 - mean) * size < FEW_EVENTS:
        return Interval(mean, *clopper_pearson(mean * size, size, settings.confidence), "exact")
    return None
