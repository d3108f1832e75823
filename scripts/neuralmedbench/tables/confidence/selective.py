"""Answering only when sure: how right the surest answers are, and the area under the risk-coverage curve."""

from __future__ import annotations

import numpy as np

from neuralmedbench.estimates.intervals import Floats


def selective_accuracy(counts: Floats, rights: Floats, coverages: Floats) -> Floats:
    """Share right among the surest part of all answers.

    Parameters
    ----------
    counts, rights : ndarray of float, shape (..., groups)
        Answers of one confidence, and how many of them are right; the surest group first. What has no confidence stands last.
    coverages : ndarray of float, shape (coverages,)
        Part of the answers that is kept, above 0 and up to 1.

    Returns
    -------
    ndarray of float, shape (..., coverages)
        NaN where there is no answer. Where a group is kept in part, its share right counts: the expectation over every order of equals.
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


def area_under_risk(counts: Floats, rights: Floats) -> Floats:
    """Area under the risk-coverage curve: the mean, over every number of answers kept, of the share of them that is wrong.

    Parameters
    ----------
    counts, rights : ndarray of float, shape (..., groups)
        As in `selective_accuracy`; whole numbers.

    Returns
    -------
    ndarray of float, shape (...)
        0 to 1; NaN where there is no answer. Equal confidences count by expectation over every order of them: with `b` answers and `e`
        errors before a group of `n` with the share `r` wrong, its terms (e + t r) / (b + t), t = 1..n, sum to
        n r + (e - r b) (H(b + n) - H(b)) with the harmonic numbers H.

    References
    ----------
    Geifman and El-Yaniv, Selective Classification for Deep Neural Networks (NeurIPS 2017); El-Yaniv and Wiener, JMLR 11 (2010) 1605.
    """
    errors, total = counts - rights, counts.sum(axis=-1)
    before, errors_before = np.cumsum(counts, axis=-1) - counts, np.cumsum(errors, axis=-1) - errors
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, int(total.max(initial=0)) + 2))])
    first, last = np.rint(before).astype(np.int64), np.rint(before + counts).astype(np.int64)
    with np.errstate(invalid="ignore", divide="ignore"):
        risk = np.where(counts > 0, errors / counts, 0.0)
        terms = counts * risk + (errors_before - risk * before) * (harmonic[last] - harmonic[first])
        return np.asarray(terms.sum(axis=-1) / total, dtype=np.float64)


def best_area(answers: int, right: int) -> float:
    """Area under the risk-coverage curve of a model whose every right answer is surer than every wrong one."""
    return float(area_under_risk(np.array([right, answers - right], dtype=np.float64), np.array([right, 0.0])))
