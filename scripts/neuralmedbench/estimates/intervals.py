"""Intervals that respect patients: items of one patient, and samples of one item, are not independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.exact import FEW_EVENTS, FEW_PATIENTS, clopper_pearson, effective_size, one_sided_bounds, variance_of_mean

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEW_ERRORS = 5
"""With fewer errors removed, or fewer left, a bootstrap of their share is too narrow. (Our rule: perf/confidence_intervals.py.)"""


@dataclass(frozen=True)
class IntervalSettings:
    """Settings of all intervals: resamples and seed of the bootstrap, confidence level, limit of missing answers."""

    resamples: int = 10_000
    seed: int = 20_260_925
    confidence: float = 0.95
    max_missing_fraction: float = 0.02


class Interval(NamedTuple):
    """An estimate with its interval; `method` is `bootstrap`, `exact`, `exact one-sided`, `square and add` or `none`.

    Without arguments: no estimate, because there is nothing to estimate it from.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = "none"


def codes_of(labels: Sequence[str] | npt.NDArray[Any]) -> Ints:
    """Return labels as numbers from 0 without gaps, in the order of their names; the shape of `labels`, (items,), is kept."""
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64).reshape(-1)


class ByPatient:
    """The patient of each item and the bootstrap of patients: what every interval needs besides the item values.

    Parameters
    ----------
    patients : sequence of str or ndarray of int, shape (items,)
        Patient of each item.
    settings : IntervalSettings
        Resamples, seed and confidence level.

    Attributes
    ----------
    codes : ndarray of int, shape (items,)
        Patients numbered from 0 without gaps.
    clusters : int
        Number of patients.
    """

    def __init__(self, patients: Sequence[str] | npt.NDArray[Any], settings: IntervalSettings) -> None:
        self.codes, self.settings = codes_of(patients), settings
        self.clusters = int(self.codes.max(initial=-1)) + 1

    def at(self, items: npt.NDArray[Any]) -> ByPatient:
        """Keep some items, by mask or index; only their patients are resampled."""
        return ByPatient(self.codes[items], self.settings)

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


def bootstrap_p_value(resampled: Floats, clusters: int) -> float:
    """Test whether a value is above 0.

    Parameters
    ----------
    resampled : ndarray of float, shape (resamples,)
        Bootstrap distribution of the value; NaN is left out.
    clusters : int
        Number of patients behind it.

    Returns
    -------
    float
        One-sided p value: below (1 - confidence) / 2 exactly where `percentile_interval` lies above 0. 1 with fewer than 2 patients.
    """
    from scipy import special

    finite = resampled[np.isfinite(resampled)]
    if clusters < 2 or finite.size == 0:
        return 1.0
    share = (np.count_nonzero(finite <= 0) + 0.5) / (finite.size + 1)
    return float(special.stdtr(clusters - 1, special.ndtri(share) * np.sqrt((clusters - 1) / clusters)))


@lru_cache(maxsize=1024)
def expanded_tail(clusters: int, confidence: float) -> float:
    """Return the share of the bootstrap distribution that an expanded percentile interval cuts off on each side."""
    from scipy import special

    reach = np.sqrt(clusters / (clusters - 1)) * special.stdtrit(clusters - 1, 0.5 + confidence / 2)
    return float(special.ndtr(-reach))


def rate_interval(values: Floats, by: ByPatient) -> Interval:
    """Mean of item values with its interval.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Between 0 and 1; NaN is left out.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    Interval
        `exact one-sided` when no item or every item has the event: then the patients are the trials and the whole
        error stands on the one side that is open (0 of 8 patients: 0 to 0.31). `exact` on the effective sample size with
        fewer than 30 patients, or fewer than 10 events or items without one on that size; in that case no end is nearer to
        the rate than it would be with no event at all. `bootstrap` otherwise, widened by `variance_of_mean`.
    """
    return rate_intervals(values[:, None], by)[0]


def rate_intervals(values: Floats, by: ByPatient, *, jointly: bool = False) -> list[Interval]:
    """Return the interval of each of many columns, as `rate_interval` does; columns with the same items are resampled together.

    Parameters
    ----------
    values : ndarray of float, shape (items, columns)
        Between 0 and 1; NaN is left out.
    by : ByPatient
        Patients of the items.
    jointly : bool
        Resample all patients once for all columns. Those without a value in a column are drawn too, so a bootstrap differs from that of
        `rate_interval` by chance alone; with many columns of different items it is faster.
    """
    if jointly:
        return _jointly_resampled(values, by)
    found, alike = [Interval()] * values.shape[1], dict[bytes, list[int]]()
    for column, known in enumerate(~np.isnan(values.T)):
        if known.any():
            # columns with the same items share their resamples
            alike.setdefault(known.tobytes(), []).append(column)
    for columns in alike.values():
        known = ~np.isnan(values[:, columns[0]])
        own = by.at(known)
        part = {column: np.ascontiguousarray(values[known, column]) for column in columns}
        exact = {column: exact_interval(part[column], own) for column in columns}
        # only the columns without an exact interval need the bootstrap
        drawn = [column for column in columns if exact[column] is None]
        resampled = own.resampled_means(np.stack([part[column] for column in drawn], axis=1)) if drawn else None
        for column, interval in exact.items():
            if interval is not None:
                found[column] = interval
            elif resampled is not None:
                found[column] = _bootstrap_interval(part[column], own, resampled[:, drawn.index(column)])
    return found


def _jointly_resampled(values: Floats, by: ByPatient) -> list[Interval]:
    """Return what `rate_intervals` does, with one set of resamples of all patients for all columns."""
    known = ~np.isnan(values)
    found: dict[int, Interval] = {}
    patients: dict[int, ByPatient] = {}
    for column in range(values.shape[1]):
        if not known[:, column].any():
            found[column] = Interval()
            continue
        own = by.at(known[:, column])
        exact = exact_interval(values[known[:, column], column], own)
        if exact is None:
            patients[column] = own
        else:
            found[column] = exact
    if patients:
        columns = list(patients)
        # the number of drawn items is the same for columns with the same items
        masks, place = np.unique(known[:, columns], axis=1, return_inverse=True)
        totals = by.weights @ by.sums(np.where(known, values, 0.0)[:, columns])
        sizes = (by.weights @ by.sums(masks.astype(np.float64)))[:, place.reshape(-1)]
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = totals / sizes
        for number, column in enumerate(columns):
            found[column] = _bootstrap_interval(values[known[:, column], column], patients[column], drawn[:, number])
    return [found[column] for column in range(values.shape[1])]


def resampled_rate(values: Floats, by: ByPatient, resampled: Floats) -> Interval:
    """Return the interval of a rate by the rules of `rate_interval`, from resamples that were drawn before.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Between 0 and 1, no NaN.
    by : ByPatient
        Patients of the items.
    resampled : ndarray of float, shape (resamples,)
        Means of the resamples.
    """
    return exact_interval(values, by) or _bootstrap_interval(values, by, resampled)


def exact_interval(values: Floats, by: ByPatient, trials: Floats | None = None) -> Interval | None:
    """Return the interval of a rate where the rules of `rate_interval` ask for an exact one, else None; no value may be NaN.

    With `trials`, values are numbers of events and the rate is the share of all trials that are events.
    """
    mean, confidence = float(values.mean() if trials is None else values.sum() / trials.sum()), by.settings.confidence
    if mean <= 0 or mean >= 1:
        return Interval(mean, *one_sided_bounds(mean * by.clusters, by.clusters, confidence), "exact one-sided")
    size = effective_size(values, by.codes, confidence, trials)
    few = min(mean, 1 - mean) * size < FEW_EVENTS
    if by.clusters >= FEW_PATIENTS and not few:
        return None
    low, high = clopper_pearson(mean * size, size, confidence)
    if few:
        # with few events the end beyond them is no nearer than with none
        none = one_sided_bounds(0, by.clusters, confidence)[1]
        low, high = (low, max(high, none)) if mean < 0.5 else (min(low, 1 - none), high)
    return Interval(mean, low, high, "exact")


def _bootstrap_interval(values: Floats, by: ByPatient, resampled: Floats) -> Interval:
    """Return the expanded percentiles of a rate; they lie further out where patients with unequal numbers of items make them too near."""
    mean = float(values.mean())
    return Interval(mean, *widened(mean, by.percentiles(resampled), variance_of_mean(values, by.codes).widening, 0.0), "bootstrap")


def widened(value: float, ends: tuple[float | None, float | None], times: float, least: float) -> tuple[float | None, float | None]:
    """Move the ends of an interval away from its value, within `least` to 1."""
    low, high = ends
    if low is None or high is None:
        return ends
    return max(value - (value - low) * times, least), min(value + (high - value) * times, 1.0)


def weighted_rate(values: Floats, weights: Floats, by: ByPatient) -> Interval:
    """Mean of values with inverse-probability weights (Hajek's ratio), and its interval.

    That of `rate_interval` where all weights, or all values, are equal; else a bootstrap of the ratio over patients.

    Parameters
    ----------
    values, weights : ndarray of float, shape (items,)
        Values between 0 and 1, no NaN; weights above 0.
    by : ByPatient
        Patients of the items.
    """
    if np.ptp(weights) < 1e-12 or np.ptp(values) < 1e-12:
        return rate_interval(values, by)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = by.weights @ by.sums(np.column_stack([weights * values, weights]))
        ratios = drawn[:, 0] / drawn[:, 1]
    return Interval(float((weights * values).sum() / weights.sum()), *by.percentiles(ratios), "bootstrap")


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
    size = effective_size(left, by.codes, confidence, errors)
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
