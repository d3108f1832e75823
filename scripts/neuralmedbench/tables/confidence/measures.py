"""How well a confidence fits what is right: calibration error, Brier score, separation; pure functions of arrays."""

from __future__ import annotations

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints
from neuralmedbench.scoring.structured.calibration import separation

WIDTH_BINS = 15
"""Bins of equal width for the expected calibration error."""

MASS_BINS = 5
"""Bins with about equally many answers: for tables and diagrams, and for the second calibration error."""


def width_bins(confidence: Floats, bins: int = WIDTH_BINS) -> Ints:
    """Give the bin of equal width of each confidence.

    Parameters
    ----------
    confidence : ndarray of float, shape (answers,)
        0 to 1.
    bins : int
        Number of bins.

    Returns
    -------
    ndarray of int, shape (answers,)
        From 0. A bin holds its upper edge, not its lower one; the first holds 0 too.

    References
    ----------
    Guo et al., On Calibration of Modern Neural Networks (ICML 2017).
    """
    edges = np.ceil(confidence * bins - 1e-9) - 1  # 0.2 is the edge 3/15, whatever its last bit says
    return np.clip(edges, 0, bins - 1).astype(np.int64)


def mass_bins(confidence: Floats, bins: int = MASS_BINS) -> Ints:
    """Give bins with about equally many answers; equal confidences are never parted.

    Parameters
    ----------
    confidence : ndarray of float, shape (answers,)
        Any numbers.
    bins : int
        Most bins. Fewer are used where many confidences are equal.

    Returns
    -------
    ndarray of int, shape (answers,)
        From 0, rising with the confidence; numbers may be left out. A value goes where the middle of its ranks lies, so the bins of a
        multiple of `bins` lie within those of `bins`.
    """
    if not confidence.size:
        return np.zeros(0, dtype=np.int64)
    _, place, number = np.unique(confidence, return_inverse=True, return_counts=True)
    twice_middle = 2 * np.cumsum(number) - number  # whole numbers, so that no rounding moves a value over an edge
    return np.asarray((twice_middle * bins // (2 * confidence.size))[place.reshape(-1)], dtype=np.int64)


def calibration_error(confidence: Floats, right: Floats, bins: Ints) -> float:
    """Give the expected calibration error: distance of mean confidence and share right in each bin, weighted by its answers.

    Parameters
    ----------
    confidence, right : ndarray of float, shape (answers,)
        0 to 1; at least one answer.
    bins : ndarray of int, shape (answers,)
        Bin of each answer.

    Returns
    -------
    float
        0 to 1.
    """
    return float(np.abs(np.bincount(bins, weights=confidence - right)).sum() / len(confidence))


def brier(confidence: Floats, right: Floats) -> float:
    """Mean squared distance of the confidence from right (1) and wrong (0); at least one answer."""
    return float(np.mean((confidence - right) ** 2))


def auroc(confidence: Floats, right: Floats) -> float | None:
    """Chance that a right answer has the higher confidence than a wrong one, ties by half; None when all or none is right."""
    return separation(right, confidence)


def pessimistic(error: float | None, known: int, absent: int) -> float | None:
    """Give an error with the answers without a confidence counted in: each as a wrong one of confidence 1, in a bin of its own.

    Parameters
    ----------
    error : float or None
        Calibration error or Brier score of the answers that have a confidence; None when there are none.
    known, absent : int
        Answers with a confidence, and without.

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
