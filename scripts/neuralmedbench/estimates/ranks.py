"""Ranks that say how sure they are: tiers and rank ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from neuralmedbench.estimates.intervals import Floats, IntervalSettings, Ints, expanded_tail, resampled_means


def rank_ranges(values: Floats, patients: Ints, settings: IntervalSettings) -> list[tuple[int, int]]:
    """Range of ranks of each model over the resamples.

    Parameters
    ----------
    values : ndarray of float, shape (items, models)
        Item values.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : IntervalSettings
        Resamples, seed and confidence.

    Returns
    -------
    list of tuple of int
        Best and worst rank of each model; 1 is the best. Equal means share the better rank on the way up and the worse
        one on the way down, so that a tie widens the range.
    """
    models, clusters = values.shape[1], int(patients.max()) + 1 if len(patients) else 0
    if models == 0 or clusters < 2:
        return [(1, models)] * models
    means = np.round(np.nan_to_num(resampled_means(values, patients, settings)), 12)
    tail = expanded_tail(clusters, settings.confidence)
    best = stats.rankdata(-means, method="min", axis=1)
    worst = stats.rankdata(-means, method="max", axis=1)
    low = np.quantile(best, tail, axis=0, method="lower")
    high = np.quantile(worst, 1 - tail, axis=0, method="higher")
    return [(int(first), int(last)) for first, last in zip(low, high, strict=True)]


def tiers(order: Sequence[str], p_holm: Mapping[frozenset[str], float], alpha: float) -> dict[str, int]:
    """Tiers: models that cannot be told from the best of their tier.

    Parameters
    ----------
    order : sequence of str
        Models, best first.
    p_holm : mapping
        Corrected p value of each pair of models.
    alpha : float
        Level below which a difference counts.

    Returns
    -------
    dict of str to int
        Tier of each model, from 1. The best model opens a tier; every model that is not significantly different from it
        joins; the best of the rest opens the next one.
    """
    found: dict[str, int] = {}
    rest, tier = list(order), 0
    while rest:
        tier += 1
        best = rest[0]
        joined = [model for model in rest if model == best or p_holm[frozenset((best, model))] >= alpha]
        found.update(dict.fromkeys(joined, tier))
        rest = [model for model in rest if model not in joined]
    return found
