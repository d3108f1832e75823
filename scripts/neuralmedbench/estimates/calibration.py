"""Measures of confidence against outcome: calibration error, Brier score, area under the ROC curve, risk and coverage."""

from __future__ import annotations

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints

WIDTH_BINS = 15
"""Bins of equal width for the expected calibration error."""

MASS_BINS = 5
"""Bins with about equally many answers, for diagrams."""


def width_bins(confidence: Floats) -> Ints:
    """Assign confidences to `WIDTH_BINS` bins of equal width.

    Parameters
    ----------
    confidence : ndarray of float, shape (answers,)
        0 to 1.

    Returns
    -------
    ndarray of int, shape (answers,)
        From 0. A bin holds its upper edge, not its lower one; the first holds 0 too.

    References
    ----------
    Guo et al., On Calibration of Modern Neural Networks (ICML 2017).
    """
    edges = np.ceil(confidence * WIDTH_BINS - 1e-9) - 1  # tolerance for rounding: 0.2 is the edge 3/15
    return np.clip(edges, 0, WIDTH_BINS - 1).astype(np.int64)


def mass_bins(confidence: Floats, bins: int = MASS_BINS) -> Ints:
    """Assign confidences to bins with about equally many answers; equal confidences are never separated.

    Parameters
    ----------
    confidence : ndarray of float, shape (answers,)
        Any numbers.
    bins : int
        Maximum number of bins; fewer are used where many confidences are equal.

    Returns
    -------
    ndarray of int, shape (answers,)
        From 0, rising with the confidence; numbers may be skipped. A value is assigned by its mid-rank, so the bins of a
        multiple of `bins` lie within those of `bins`.
    """
    if not confidence.size:
        return np.zeros(0, dtype=np.int64)
    _, place, number = np.unique(confidence, return_inverse=True, return_counts=True)
    twice_middle = 2 * np.cumsum(number) - number  # integers, so that no rounding moves a value across an edge
    return np.asarray((twice_middle * bins // (2 * confidence.size))[place.reshape(-1)], dtype=np.int64)


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
    # mid-ranks, so that ties count by half
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    wins = ranks[right == 1].sum() - positives * (positives + 1) / 2
    return float(wins / (positives * (len(right) - positives)))


def pessimistic(error: float | None, known: int, absent: int) -> float | None:
    """Return an error that counts every answer without a confidence as a wrong one of confidence 1, in a bin of its own.

    Parameters
    ----------
    error : float or None
        Calibration error of the answers that have a confidence; None when there are none.
    known, absent : int
        Number of answers with a confidence, and without.

    Returns
    -------
    float or None
        Never below `error`; rises with `absent`; None when there is no answer at all.

    Examples
    --------
    >>> pessimistic(0.2, 3, 1)
    0.4
    """
    if known + absent == 0:
        return None
    return ((error or 0.0) * known + absent) / (known + absent)


def selective_accuracy(counts: Floats, rights: Floats, coverages: Floats) -> Floats:
    """Return the share right among the most confident part of all answers.

    Parameters
    ----------
    counts, rights : ndarray of float, shape (..., groups)
        Number of answers of one confidence, and of the right ones among them; the highest confidence first, answers without one last.
    coverages : ndarray of float, shape (coverages,)
        Part of the answers that is kept, above 0 and up to 1.

    Returns
    -------
    ndarray of float, shape (..., coverages)
        NaN without an answer. A group that is kept in part counts with its share right, which is the expectation over all orders of ties.

    Notes
    -----
    A coverage need not be a whole number of answers: 10 % of 315 are 31.5. The answer that is reached is then kept in part, with that
    weight in the numerator and in the denominator, so that the value lies between those of the whole numbers around it and no
    rounding decides between them.

    Examples
    --------
    Half of three answers are the first, which is right, and half of the second, which is wrong: 1 of 1.5.

    >>> selective_accuracy(np.ones(3), np.array([1.0, 0.0, 1.0]), np.array([0.5])).round(3).tolist()
    [0.667]
    """
    before = np.cumsum(counts, axis=-1) - counts
    total = counts.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(counts > 0, rights / counts, 0.0)
        found = [
            (np.clip(wanted[..., None] - before, 0.0, counts) * share).sum(axis=-1) / wanted
            for wanted in (coverage * total for coverage in coverages)
        ]
    return np.stack(found, axis=-1)


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
