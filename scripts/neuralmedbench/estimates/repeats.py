"""Repeated answers to one item: pass@k, and how much two revisions differ beyond what repeats of one of them do.

Two answers of one revision to one item differ by chance. That is the noise floor: a difference between revisions counts only as far
as it exceeds it. An item has a distribution of answers under the old revision, p, and under the new one, q, over the categories k
(passed or not; or the leading diagnosis). Two answers of one revision disagree with probability 1 - sum p_k^2, or 1 - sum q_k^2; an old
and a new one with 1 - sum p_k q_k. So the disagreement between revisions exceeds the mean disagreement within them by

    (1 - sum p_k q_k) - ((1 - sum p_k^2) + (1 - sum q_k^2)) / 2 = sum (p_k - q_k)^2 / 2,

half the squared distance of the two distributions: 0 when nothing changed, whatever the noise. From n answers with counts c the
disagreement within is 1 - sum c (c - 1) / (n (n - 1)), that between is 1 - sum c_old c_new / (n_old n_new); both are unbiased, so the
excess is too, and it may be below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Floats, IntervalSettings, Ints


def pass_at_k(samples: Ints, passes: Ints, k: int) -> Floats:
    """Return the unbiased probability that at least one of k samples passes, drawn without replacement from those that were made.

    Parameters
    ----------
    samples : ndarray of int, shape (items,)
        Samples n of each item, at least `k`.
    passes : ndarray of int, shape (items,)
        Samples c of each item that passed, 0 to n.
    k : int
        Samples drawn, at least 1.

    Returns
    -------
    ndarray of float, shape (items,)
        1 - C(n - c, k) / C(n, k), written as a product so that it cannot overflow.

    Raises
    ------
    ValueError
        If k is below 1 or above n, or c is not within 0 to n.

    Examples
    --------
    >>> pass_at_k(np.array([5, 5, 5]), np.array([0, 1, 5]), 1)
    array([0. , 0.2, 1. ])
    """
    if k < 1 or (samples < k).any():
        message = f"pass@{k} needs at least {max(k, 1)} samples of every item"
        raise ValueError(message)
    if ((passes < 0) | (passes > samples)).any():
        message = "passing samples of an item must number from 0 to its samples"
        raise ValueError(message)
    drawn = np.arange(k)
    failing = np.clip((samples - passes)[:, None] - drawn, 0, None) / (samples[:, None] - drawn)
    return np.asarray(1.0 - failing.prod(axis=1), dtype=np.float64)


class AnswerChange(NamedTuple):
    """Disagreement of the answers of two revisions; floor, excess and p value are None where no item has repeats in both."""

    disagreement: float | None
    floor: float | None
    excess: float | None
    p_value: float | None
    repeated: int


def compare_answers(old: Sequence[Sequence[str]], new: Sequence[Sequence[str]], settings: IntervalSettings) -> AnswerChange:
    """Compare the disagreement between two revisions with the noise floor.

    Parameters
    ----------
    old, new : sequence of sequence of str
        For each item the categories of its answers under each revision, at least one each.
    settings : IntervalSettings
        Draws and seed of the test.

    Returns
    -------
    AnswerChange
        Means over the items that have at least two answers in both revisions; without such an item the disagreement over all
        items alone. The p value is that of no change: then all answers to an item could as well have come from the other
        revision, so their labels are shuffled within the item, and the share of draws with an excess as large is counted,
        (hits + 1) / (draws + 1). Revisions that share the seeds of their samples differ less than that: the test is then conservative.
    """
    counted = [_counts(*pair) for pair in zip(old, new, strict=True)]
    # the noise floor needs repeats under both revisions
    repeated = [pair for pair in counted if min(pair[0].sum(), pair[1].sum()) > 1]
    if not repeated:
        return AnswerChange(float(np.mean([between(*pair) for pair in counted])) if counted else None, None, None, None, 0)
    disagreement = float(np.mean([between(*pair) for pair in repeated]))
    floor = float(np.mean([(within(first) + within(second)) / 2 for first, second in repeated]))
    rng, drawn = np.random.default_rng(settings.seed), np.zeros(settings.resamples)
    for first, second in repeated:
        pooled = first + second
        if np.count_nonzero(pooled) > 1:  # a shuffle of equal answers changes nothing
            # counts of a random half, instead of shuffled labels: the same distribution, without the labels
            shuffled = rng.multivariate_hypergeometric(pooled, int(first.sum()), size=settings.resamples)
            drawn += between(shuffled, pooled - shuffled) - (within(shuffled) + within(pooled - shuffled)) / 2
    # `drawn` sums over items, so the excess is multiplied by their number
    excess = disagreement - floor
    hits = int((drawn >= excess * len(repeated) - 1e-9).sum())
    return AnswerChange(disagreement, floor, excess, (hits + 1) / (settings.resamples + 1), len(repeated))


def within(counts: Ints) -> Floats:
    """Return the chance that two different answers of one revision disagree.

    Parameters
    ----------
    counts : ndarray of int, shape (..., categories)
        Answers by category, at least two in all.

    Returns
    -------
    ndarray of float, shape (...)
        1 - sum c (c - 1) / (n (n - 1)).

    Examples
    --------
    >>> float(within(np.array([2, 2])))
    0.6666666666666667
    """
    size = counts.sum(axis=-1)
    return np.asarray(1 - (counts * (counts - 1)).sum(axis=-1) / (size * (size - 1)), dtype=np.float64)


def between(first: Ints, second: Ints) -> Floats:
    """Return the chance that an answer of one revision and one of the other disagree: 1 - sum c d / (n m); shapes as in `within`.

    Examples
    --------
    >>> float(between(np.array([3, 1]), np.array([1, 1])))
    0.5
    """
    pairs = first.sum(axis=-1) * second.sum(axis=-1)
    return np.asarray(1 - (first * second).sum(axis=-1) / pairs, dtype=np.float64)


def _counts(old: Sequence[str], new: Sequence[str]) -> tuple[Ints, Ints]:
    names, codes = np.unique(np.array([*old, *new], dtype=str), return_inverse=True)
    codes = codes.reshape(-1)
    return np.bincount(codes[: len(old)], minlength=len(names)), np.bincount(codes[len(old) :], minlength=len(names))
