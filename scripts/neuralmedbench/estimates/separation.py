"""How well a number tells two kinds of answers apart, when answers of one patient are not independent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.intervals import Floats, IntervalSettings, Ints, percentile_interval, resampling_weights


def separation(values: Floats, same: npt.NDArray[np.bool_], patients: Ints, settings: IntervalSettings) -> tuple[float | None, ...]:
    """Area under the ROC curve of a value for telling `same` from the rest, with a patient-clustered interval.

    Parameters
    ----------
    values : ndarray of float, shape (responses,)
        The value, not NaN.
    same : ndarray of bool, shape (responses,)
        What it should tell.
    patients : ndarray of int, shape (responses,)
        Patient of each response, numbered from 0 without gaps.
    settings : IntervalSettings
        Resamples, seed and confidence.

    Returns
    -------
    tuple of float or None
        Area, low, high; None when one side is empty.
    """
    if same.all() or not same.any():
        return None, None, None
    clusters = int(patients.max()) + 1
    between = wins(values, same, patients, clusters)
    positives, negatives = (np.bincount(patients[side], minlength=clusters).astype(np.float64) for side in (same, ~same))
    weights = resampling_weights(clusters, settings.resamples, settings.seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = both_drawn(weights, between) / ((weights @ positives) * (weights @ negatives))
    low, high = percentile_interval(draws, clusters, settings.confidence)
    return float(between.sum() / (same.sum() * (~same).sum())), low, high


def wins(values: Floats, same: npt.NDArray[np.bool_], patients: Ints, clusters: int) -> Floats:
    """Count pairs of answers in the right order, for every two patients.

    Parameters
    ----------
    values, same, patients : ndarray, shape (responses,)
        As in `separation`.
    clusters : int
        Number of patients.

    Returns
    -------
    ndarray of float, shape (clusters, clusters)
        How often an answer of the first patient that is `same` lies above one of the second that is not; equals count by half. Found by
        rank: a table of all pairs of answers has millions of cells.
    """
    order = np.argsort(values[~same], kind="stable")
    others = values[~same][order]
    below = np.zeros((len(others) + 1, clusters))  # row n: how many of the n lowest are of each patient
    below[np.arange(len(others)) + 1, patients[~same][order]] = 1
    below = np.cumsum(below, axis=0)
    left, right = (np.searchsorted(others, values[same], side=side) for side in ("left", "right"))
    of_answers = (below[left] + below[right]) / 2
    by_patient = np.argsort(patients[same], kind="stable")
    there, starts = np.unique(patients[same][by_patient], return_index=True)
    found = np.zeros((clusters, clusters))
    found[there] = np.add.reduceat(of_answers[by_patient], starts, axis=0)
    return found


def both_drawn(weights: Floats, between: Floats) -> Floats:
    """Sum over every two patients, as often as both are drawn.

    Parameters
    ----------
    weights : ndarray of float, shape (resamples, clusters)
        How often each patient is drawn; whole numbers.
    between : ndarray of float, shape (clusters, clusters)
        What is summed; whole numbers and halves, so that single precision is exact up to 2 ** 23. It is used up to there: it is faster.

    Returns
    -------
    ndarray of float, shape (resamples,)
        Sums.
    """
    exact = float(weights.max(initial=0)) * float(between.sum(axis=0).max(initial=0)) < 2**23
    kind = np.float32 if exact else np.float64
    sums = weights.astype(kind) @ between.astype(kind)
    return np.asarray(np.einsum("ij,ij->i", sums, weights, dtype=np.float64), dtype=np.float64)
