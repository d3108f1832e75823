"""How well a stated confidence tells right from wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BINS = 10

Floats = npt.NDArray[np.float64]


def expected_calibration_error(right: Floats, confidence: Floats, bins: int = BINS) -> float | None:
    """Mean distance between confidence and share of right answers over bins of equal width.

    Parameters
    ----------
    right : ndarray of float, shape (answers,)
        1 for a right answer, else 0.
    confidence : ndarray of float, shape (answers,)
        0 to 1.
    bins : int
        Number of bins. A bin is open below and closed above; 0 belongs to the first. Bounds are those of `numpy.linspace`.

    Returns
    -------
    float or None
        0 to 1, bins weighted by their answers; None without an answer.
    """
    if not len(right):
        return None
    place = np.maximum(np.searchsorted(np.linspace(0.0, 1.0, bins + 1), confidence, side="left") - 1, 0)
    gaps = np.bincount(place, weights=right - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(right))


def brier_score(right: Floats, confidence: Floats) -> float | None:
    """Mean squared distance of the confidence from the outcome (of two outcomes, right or wrong); None without an answer."""
    return float(np.mean((confidence - right) ** 2)) if len(right) else None


def separation(right: Floats, confidence: Floats) -> float | None:
    """Area under the ROC curve of the confidence for telling right from wrong; equal ones count half; None when all are of one kind."""
    positives = int(right.sum())
    if positives in {0, len(right)}:
        return None
    _, place, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    wins = ranks[right == 1].sum() - positives * (positives + 1) / 2
    return float(wins / (positives * (len(right) - positives)))


def risk_coverage_area(right: Floats, confidence: Floats) -> float | None:
    """Mean risk when the answers with the highest confidence are taken first, one more at a time.

    Parameters
    ----------
    right, confidence : ndarray of float, shape (answers,)
        Outcome (0 or 1) and what orders it; any scale.

    Returns
    -------
    float or None
        0 (never wrong) to 1, the mean over k = 1 to n of the share of wrong answers among the first k. Answers of equal confidence have no
        order: each of their places carries their mean, which is what a random order gives on average. None without an answer.

    Notes
    -----
    The area under the risk-coverage curve of Geifman and El-Yaniv (2017), as a mean over the answers.

    Examples
    --------
    >>> risk_coverage_area(np.array([1.0, 0.0]), np.array([0.9, 0.1])), risk_coverage_area(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    (0.25, 0.5)
    """
    if not len(right):
        return None
    _, place, counts = np.unique(-confidence, return_inverse=True, return_counts=True)
    wrong = np.bincount(place, weights=1 - right) / counts
    risks = np.cumsum(np.repeat(wrong, counts)) / np.arange(1, len(right) + 1)
    return float(risks.mean())
