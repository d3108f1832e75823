"""Intervals that respect patients: items of one patient, and samples of one item, are not independent."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.exact import clopper_pearson, effective_size, one_sided_bounds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HALF = 0.5

FEW_ERRORS = 5
"""With fewer errors removed, or fewer left, a bootstrap of their share is too narrow. (Our rule: perf/confidence_intervals.py.)"""


@dataclass(frozen=True)
class IntervalSettings:
    """Settings of all intervals: draws and their seed, confidence level, limit of missing answers, smallest difference that matters."""

    resamples: int = 10_000
    seed: int = 20_260_925
    confidence: float = 0.95
    max_missing_fraction: float = 0.02
    margin: float = 0.10


class Interval(NamedTuple):
    """An estimate with its interval; `method` is `exact`, `exact one-sided`, `bootstrap`, `square and add` or `none`.

    Without arguments: no estimate, because there is nothing to estimate it from.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = "none"

    @property
    def ends(self) -> tuple[float, float]:
        """Low and high of an interval that has both."""
        if self.low is None or self.high is None:
            message = "an interval without bounds has no ends"
            raise ValueError(message)
        return self.low, self.high


def codes_of(labels: Sequence[str] | npt.NDArray[Any]) -> Ints:
    """Return labels as numbers from 0 without gaps, in the order of their names; the shape of `labels`, (items,), is kept."""
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64).reshape(-1)


def item_weights(patients: Ints) -> Floats:
    """How much each item counts where patients, numbered without gaps, count alike: 1 if all have as many items; the sum is their number."""
    sizes = np.bincount(patients)
    return np.asarray(len(patients) / (len(sizes) * sizes[patients]), dtype=np.float64)


class ByPatient:
    """The patient of each item and the bootstrap of patients: what every interval needs besides the item values.

    Parameters
    ----------
    patients : sequence of str or ndarray of int, shape (items,)
        Patient of each item.
    settings : IntervalSettings
        Resamples, seed and confidence level.
    joined : ndarray of int, shape (items,), optional
        Cluster of each item, where several patients are one cluster because they share a request; the patients if absent.

    Attributes
    ----------
    patients, codes : ndarray of int, shape (items,)
        Patients, and clusters, numbered from 0 without gaps.
    clusters : int
        Number of clusters.
    """

    def __init__(
        self, patients: Sequence[str] | npt.NDArray[Any], settings: IntervalSettings, joined: npt.NDArray[Any] | None = None
    ) -> None:
        self.patients, self.settings = codes_of(patients), settings
        self.codes = self.patients if joined is None else codes_of(joined)
        self.clusters = int(self.codes.max(initial=-1)) + 1

    def at(self, items: npt.NDArray[Any]) -> ByPatient:
        """Keep some items, by mask or index; only their patients are resampled."""
        if items.dtype == bool and items.all():
            return self
        joined = None if self.codes is self.patients else self.codes[items]
        return ByPatient(self.patients[items], self.settings, joined)

    def at_confidence(self, confidence: float) -> ByPatient:
        """Return the same patients at another confidence level."""
        same = copy(self)
        same.settings = replace(self.settings, confidence=confidence)
        return same

    @property
    def item_weights(self) -> Floats:
        """See `item_weights`."""
        return item_weights(self.patients)

    @property
    def weights(self) -> Floats:
        """Number of times that each patient is drawn in each resample: shape (resamples, clusters), every row sums to `clusters`."""
        return resampling_weights(self.clusters, self.settings.resamples, self.settings.seed)

    def sums(self, values: Floats, items: npt.NDArray[Any] | None = None) -> Floats:
        """Sum values, shape (items, columns), per patient: shape (clusters, columns); `items` are the items of the rows if not all."""
        codes = self.codes if items is None else self.codes[items]
        return np.stack([np.bincount(codes, weights=column, minlength=self.clusters) for column in values.T], axis=1)

    def resampled_means(self, values: Floats) -> Floats:
        """Means of many columns under one set of resamples, so that differences between columns are paired.

        Parameters
        ----------
        values : ndarray of float, shape (items, columns)
            NaN where a column has no value for an item: the item does not count for that column.

        Returns
        -------
        ndarray of float, shape (resamples, columns)
            NaN where a resample holds no item of a column.
        """
        known = ~np.isnan(values)
        totals = self.weights @ self.sums(np.where(known, values, 0.0))
        sizes = np.stack([_drawn_items(self.codes[column].tobytes(), self.clusters, self.settings) for column in known.T], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(totals / sizes, dtype=np.float64)

    def resampled_patient_means(self, values: Floats) -> Floats:
        """Means over patients of the mean of each one's items, shape (resamples, columns); values without NaN, shape (items, columns)."""
        weights = self.item_weights[:, None]
        return np.asarray((self.weights @ self.sums(values * weights)) / (self.weights @ self.sums(weights)), dtype=np.float64)

    def percentiles(self, resampled: Floats, clusters: int | None = None) -> tuple[float | None, float | None]:
        """Return the `percentile_interval` of a bootstrap distribution; `clusters` if fewer patients are behind it than are resampled."""
        return percentile_interval(resampled, self.clusters if clusters is None else clusters, self.settings.confidence)


@lru_cache(maxsize=8)
def resampling_weights(clusters: int, resamples: int, seed: int) -> Floats:
    """Draw the weights of `ByPatient.weights`; models and tables share them."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples).astype(np.float64)


@lru_cache(maxsize=256)
def _drawn_items(patients: bytes, clusters: int, settings: IntervalSettings) -> Floats:
    """Count the items in each resample; `patients` holds the patient of each item as 64-bit integers. Many columns and models share them."""
    sizes = np.bincount(np.frombuffer(patients, dtype=np.int64), minlength=clusters).astype(np.float64)
    return np.asarray(resampling_weights(clusters, settings.resamples, settings.seed) @ sizes, dtype=np.float64)


def percentile_interval(resampled: Floats, clusters: int, confidence: float) -> tuple[float | None, float | None]:
    """Return an expanded percentile interval: the percentiles are moved out as far as Student's t exceeds the normal quantile.

    Low and high; None with fewer than 2 patients or when nothing varies. NaN in `resampled`, of shape (resamples,), is left out.

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
    """Return the share of the bootstrap distribution that an expanded percentile interval cuts off on each side."""
    from scipy import special

    reach = np.sqrt(clusters / (clusters - 1)) * special.stdtrit(clusters - 1, 0.5 + confidence / 2)
    return float(special.ndtr(-reach))


def rate_interval(values: Floats, by: ByPatient, weights: Floats | None = None) -> Interval:
    """Return the mean of item values, or the ratio of two sums, with its interval: one closed form, whatever the number of patients.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Between 0 and the item's weight; NaN is left out.
    by : ByPatient
        Patients of the items.
    weights : ndarray of float, shape (items,), optional
        How much each item counts (answers that meet a condition, the inverse of a probability); 1 if absent. Items of weight 0 are left out.

    Returns
    -------
    Interval
        `exact`: Clopper and Pearson's on the effective sample (`effective_size`), whose ends are no nearer to the rate than they would be
        with no event at all, or with every one. `exact one-sided` when no item or every item has the event: then the patients are the
        trials and the whole error stands on the one side that is open (0 of 8 patients: 0 to 0.31).
    """
    known = ~np.isnan(values) if weights is None else (weights > 0) & ~np.isnan(values)
    if not known.any():
        return Interval()
    by, values = by.at(known), values[known]
    if weights is not None:
        weights = weights[known]
        if np.ptp(weights) == 0:
            values, weights = values / weights, None
    rate, confidence = float(values.sum() / (len(values) if weights is None else weights.sum())), by.settings.confidence
    return exact_interval(rate, effective_size(values, by.codes, confidence, weights), by.clusters, confidence)


def exact_interval(rate: float, size: float, patients: int, confidence: float) -> Interval:
    """Return the interval of a rate on an effective sample; `patients` are the trials of an event that never, or always, happened."""
    if rate <= 0 or rate >= 1:
        return Interval(rate, *one_sided_bounds(rate * patients, patients, confidence), "exact one-sided")
    low, high = clopper_pearson(rate * size, size, confidence)
    none = one_sided_bounds(0, patients, confidence)[1]
    return Interval(rate, *((low, max(high, none)) if rate < HALF else (min(low, 1 - none), high)), "exact")


def patients_rate(values: Floats, by: ByPatient) -> Interval:
    """Return the mean over patients of the mean of each one's items, with the interval of `rate_interval`; NaN is left out."""
    known = ~np.isnan(values)
    by = by.at(known)
    weights = by.item_weights
    return rate_interval(values[known] * weights, by, weights)


def repaired_share(repaired: Floats, errors: Floats, by: ByPatient) -> Interval:
    """Return the net share of the errors that an intervention repairs: the sum of one column over the sum of the other.

    Parameters
    ----------
    repaired : ndarray of float, shape (items,)
        Errors of each item without the intervention minus with it, -1 to 1.
    errors : ndarray of float, shape (items,)
        Errors of each item without it, 0 to 1; not all 0.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    Interval
        `fieller`, with Student's t on the sums per patient; it may leave 0 to 1, and without bounds the errors are too few for any.
        Where fewer than 5 errors are repaired or left, no narrower than the exact interval on the effective number of errors;
        `exact one-sided`, with the patients who have errors as trials, where all are repaired.

    References
    ----------
    Fieller, Journal of the Royal Statistical Society B 16 (1954) 175: the interval of a ratio of means. It excludes 0 exactly where the
    interval of the numerator does.
    """
    number, confidence = float(errors.sum()), by.settings.confidence
    share = float(repaired.sum()) / number
    if by.clusters < 2:
        return Interval(share, None, None, "none")
    left = errors - repaired
    if np.all(left <= 0):
        wrong = by.at(errors > 0).clusters
        return Interval(share, *one_sided_bounds(share * wrong, wrong, confidence), "exact one-sided")
    low, high = fieller(by.sums(np.column_stack([repaired, errors])), confidence)
    if low is None or high is None or not 0 < share < 1 or min(share, 1 - share) * number >= FEW_ERRORS:
        return Interval(share, low, high, "fieller")
    size = min(effective_size(left, by.codes, confidence, errors), max(number, 1.0))
    exact = clopper_pearson((1 - share) * size, size, confidence)
    return Interval(share, min(low, 1 - exact[1]), max(high, 1 - exact[0]), "fieller")


def fieller(sums: Floats, confidence: float) -> tuple[float, float] | tuple[None, None]:
    """Return Fieller's interval of the ratio of two means over patients; None where it has no bounds.

    Parameters
    ----------
    sums : ndarray of float, shape (patients, 2)
        Numerator and denominator of each patient.
    confidence : float
        Confidence level.
    """
    from scipy import special

    patients = len(sums)
    top, bottom = sums.mean(axis=0)
    variance = np.cov(sums.T, ddof=1) / patients * special.stdtrit(patients - 1, 0.5 + confidence / 2) ** 2
    # roots of (top - ratio * bottom)^2 = t^2 * variance of that difference
    a, half_b, c = bottom**2 - variance[1, 1], top * bottom - variance[0, 1], top**2 - variance[0, 0]
    if a <= 0:
        return None, None
    reach = np.sqrt(max(half_b**2 - a * c, 0.0))
    return float((half_b - reach) / a), float((half_b + reach) / a)
