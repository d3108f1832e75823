"""Ranks of models and their tiers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient, Floats, expanded_tail


def rank_ranges(values: Floats, by: ByPatient) -> list[tuple[int, int]]:
    """Range of ranks of each model over the resamples.

    Parameters
    ----------
    values : ndarray of float, shape (items, models)
        Item values without NaN.
    by : ByPatient
        Patients of the items; they count alike.

    Returns
    -------
    list of tuple of int
        Best and worst rank of each model; 1 is the best. Equal means share the better rank on the way up and the worse
        one on the way down, so that a tie widens the range.
    """
    from scipy import stats

    models = values.shape[1]
    if models == 0 or by.clusters < 2:
        return [(1, models)] * models
    means = np.round(by.resampled_patient_means(values), 12)
    tail = expanded_tail(by.clusters, by.settings.confidence)
    # ties take the better rank for the lower end, the worse one for the upper end
    best = stats.rankdata(-means, method="min", axis=1)
    worst = stats.rankdata(-means, method="max", axis=1)
    low = np.quantile(best, tail, axis=0, method="lower")
    high = np.quantile(worst, 1 - tail, axis=0, method="higher")
    return [(int(first), int(last)) for first, last in zip(low, high, strict=True)]


def tiers(order: Sequence[str], different: Collection[frozenset[str]]) -> dict[str, int]:
    """Group models into tiers: those that are not significantly different from the best of their tier.

    Parameters
    ----------
    order : sequence of str
        Models, best first.
    different : collection of frozenset
        Pairs of models that are significantly different after correction.

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
        joined = [model for model in rest if frozenset((best, model)) not in different]
        found.update(dict.fromkeys(joined, tier))
        rest = [model for model in rest if model not in joined]
    return found
