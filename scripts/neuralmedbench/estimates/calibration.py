"""Measures of confidence against outcome: overconfidence, calibration error, Brier score, area under the ROC curve, risk and coverage."""

from __future__ import annotations

import numpy as np

from neuralmedbench.estimates.exact import effective_size
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, Ints, exact_interval, rate_interval

WIDTH_BINS = 15
"""Bins of equal width for the expected calibration error."""

MASS_BINS = 5
"""Bins with about equally many answers, for diagrams."""


def mass_bins(confidence: Floats) -> Ints:
    """Assign confidences, shape (answers,), to at most `MASS_BINS` bins with about equally many answers.

    Bins are numbered from 0, rising with the confidence. Equal confidences are never separated: numbers may be skipped.
    """
    _, place, number = np.unique(confidence, return_inverse=True, return_counts=True)
    twice_middle = 2 * np.cumsum(number) - number  # integers, so that no rounding moves a value across an edge
    return np.asarray((twice_middle * MASS_BINS // (2 * confidence.size))[place.reshape(-1)], dtype=np.int64)


def width_bins(confidence: Floats) -> Ints:
    """Assign confidences from 0 to 1, shape (answers,), to `WIDTH_BINS` bins of equal width: a bin holds its upper edge, the first one 0 too.

    References
    ----------
    Guo et al., On Calibration of Modern Neural Networks (ICML 2017).
    """
    edges = np.ceil(confidence * WIDTH_BINS - 1e-9) - 1  # tolerance for rounding: 0.2 is the edge 3/15
    return np.clip(edges, 0, WIDTH_BINS - 1).astype(np.int64)


def linspace_bins(confidence: Floats, bins: int) -> Ints:
    """Assign bins of equal width with the edges of `numpy.linspace`, as published code does: open below, closed above, 0 in the first."""
    return np.maximum(np.searchsorted(np.linspace(0.0, 1.0, bins + 1), confidence, side="left") - 1, 0)


def calibration_error(confidence: Floats, right: Floats, bins: Ints, count: int = 0) -> float | None:
    """Return the expected calibration error: distance of mean confidence and share right in each bin, weighted by its answers.

    Parameters
    ----------
    confidence, right : ndarray of float, shape (answers,)
        0 to 1; right is 1, wrong 0.
    bins : ndarray of int, shape (answers,)
        Bin of each answer, by `width_bins` or `linspace_bins`.
    count : int
        Minimum number of bins that are summed; an empty one adds 0, and may change the last bit of the sum.

    Returns
    -------
    float or None
        0 to 1; None without an answer.
    """
    if not len(confidence):
        return None
    return float(np.abs(np.bincount(bins, weights=confidence - right, minlength=count)).sum() / len(confidence))


def brier(confidence: Floats, right: Floats) -> float | None:
    """Return the mean squared distance of the confidence, 0 to 1, from the outcome (1 right, 0 wrong), both of shape (answers,); None without any."""
    return float(np.mean((confidence - right) ** 2)) if len(confidence) else None


def auroc(confidence: Floats, right: Floats) -> float | None:
    """Return the chance that a right answer has a higher confidence than a wrong one, ties by half; None when all or none is right.

    Parameters
    ----------
    confidence, right : ndarray of float, shape (answers,)
        Confidence, on any scale, and outcome (0 or 1).
    """
    positives = int(right.sum())
    if positives in {0, len(right)}:
        return None
    _, place, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    # mid-ranks, so that ties count half
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    wins = ranks[right == 1].sum() - positives * (positives + 1) / 2
    return float(wins / (positives * (len(right) - positives)))


def overconfidence(confidence: Floats, right: Floats, by: ByPatient) -> Interval:
    """Return mean confidence minus share right, -1 to 1, with its interval.

    Parameters
    ----------
    confidence, right : ndarray of float, shape (answers,)
        0 to 1; right is 1, wrong 0. At least one answer.
    by : ByPatient
        Patients of the answers.

    Returns
    -------
    Interval
        That of a rate (`rate_interval`) on the scale from -1 to 1. Where all or no answers are right, the gaps hardly vary and say
        nothing: then that of the share right.
    """
    share = rate_interval(right, by)
    if share.value in (0, 1):
        low, high = share.ends
        mean = float(confidence.mean())
        return Interval(mean - share.value, mean - high, mean - low, share.method)
    scaled = rate_interval((confidence - right + 1) / 2, by)
    low, high = scaled.ends
    return Interval(float((confidence - right).mean()), 2 * low - 1, 2 * high - 1, scaled.method)


def auroc_interval(confidence: Floats, right: Floats, by: ByPatient) -> Interval:
    """Return the area of `auroc` with its interval.

    Parameters
    ----------
    confidence, right : ndarray of float, shape (answers,)
        See `auroc`.
    by : ByPatient
        Patients of the answers.

    Returns
    -------
    Interval
        That of a rate: Clopper and Pearson's on the effective sample. The variance is that of placements (the share of the other side that
        an answer is rightly above or below), summed by patient. Trials of a perfect separation are the patients of the smaller side.
        Without a value if all or no answers are right, without ends if all confidences are equal.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837: placements; Obuchowski, Biometrics 53 (1997) 567: their sums by cluster.
    """
    area, passed = auroc(confidence, right), right > 0.5
    if area is None or np.ptp(confidence) == 0:
        return Interval(area)
    sides = passed, ~passed
    above, below = (_share_below(confidence, confidence[side]) for side in reversed(sides))
    placements = np.where(passed, above, 1 - below)
    weights = len(right) / np.where(passed, passed.sum(), (~passed).sum())
    # an answer moves the area by its placement and by those of the other side: twice as much as it moves their mean
    size = effective_size(placements * weights, by.codes, by.settings.confidence, weights) / 4
    fewer = min(len(np.unique(by.codes[side])) for side in sides)
    return exact_interval(area, max(size, 1.0), fewer, by.settings.confidence)


def _share_below(confidence: Floats, others: Floats) -> Floats:
    """Return the share of `others` that each confidence exceeds, ties by half."""
    ordered = np.sort(others)
    ends = np.searchsorted(ordered, confidence, side="left") + np.searchsorted(ordered, confidence, side="right")
    return np.asarray(ends / (2 * len(others)), dtype=np.float64)


def kept_parts(confidence: Floats, coverage: float) -> Floats:
    """Return how much of each answer is kept, 0 to 1, if only the most confident part of all answers is.

    Parameters
    ----------
    confidence : ndarray of float, shape (answers,)
        On any scale; answers without one have a lower value than all others.
    coverage : float
        Part of the answers that is kept, above 0 and up to 1.

    Returns
    -------
    ndarray of float, shape (answers,)
        The sum is `coverage` times the number of answers. Equal confidences are kept alike, which is the expectation over every order of them.

    Notes
    -----
    A coverage need not be a whole number of answers: 10 % of 315 are 31.5. The answer that is reached is then kept in part, so that no
    rounding decides.

    Examples
    --------
    Half of three answers are the first and half of the second.

    >>> kept_parts(np.array([0.9, 0.5, 0.7]), 0.5).tolist()
    [1.0, 0.0, 0.5]
    """
    _, place, number = np.unique(-confidence, return_inverse=True, return_counts=True)
    before, kept = np.cumsum(number) - number, round(coverage * len(confidence), 9)  # no answer is kept by a rounding error
    return np.asarray((np.clip(kept - before, 0, number) / number)[place.reshape(-1)], dtype=np.float64)


def risk_coverage_area(confidence: Floats, right: Floats) -> float | None:
    """Return the mean risk when the answers with the highest confidence are taken first, one more at a time.

    Parameters
    ----------
    confidence, right : ndarray of float, shape (answers,)
        Confidence, on any scale, and outcome (0 or 1).

    Returns
    -------
    float or None
        0 (never wrong) to 1, the mean over k = 1 to n of the share of wrong answers among the first k. Tied answers
        count with their mean, which is the average over random orders. None without an answer.

    Notes
    -----
    The area under the risk-coverage curve of Geifman and El-Yaniv (2017), as a mean over the answers.

    Examples
    --------
    >>> risk_coverage_area(np.array([0.9, 0.1]), np.array([1.0, 0.0])), risk_coverage_area(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    (0.25, 0.5)
    """
    if not len(right):
        return None
    _, place, counts = np.unique(-confidence, return_inverse=True, return_counts=True)
    # share wrong at each confidence, from the highest
    wrong = np.bincount(place, weights=1 - right) / counts
    risks = np.cumsum(np.repeat(wrong, counts)) / np.arange(1, len(right) + 1)
    return float(risks.mean())
