"""Perception or reasoning: what the findings, told in words, are worth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuralmedbench.stats.intervals import NOTHING, Floats, Interval, Ints, Settings, percentile_interval, rate_interval, resampled_means


class Decomposition(NamedTuple):
    """pass@1 under `full` (f) and with the findings disclosed (d), and how the errors divide."""

    full: Interval
    disclosed: Interval
    perception: Interval
    reasoning: Interval
    drawn: bool
    note: str
    items: int
    patients: int


def decompose(full: Floats, disclosed: Floats, patients: Ints, settings: Settings) -> Decomposition:
    """Divide the errors under `full` into those that the findings repair and those that they do not.

    Parameters
    ----------
    full, disclosed : ndarray of float, shape (items,)
        Item values of pass@1 under both arms; only items that both have are used.
    patients : ndarray of int, shape (items,)
        Patient of each item.
    settings : Settings
        Resamples, seed and confidence.

    Returns
    -------
    Decomposition
        perception = (d - f) / (1 - f), reasoning = (1 - d) / (1 - f); not drawn when d < f or nothing is wrong.
    """
    both = ~(np.isnan(full) | np.isnan(disclosed))
    if not both.any():
        return Decomposition(NOTHING, NOTHING, NOTHING, NOTHING, False, "no item was asked under both arms", 0, 0)
    codes = np.unique(patients[both], return_inverse=True)[1].reshape(-1)
    pair = np.stack([full[both], disclosed[both]], axis=1)
    rates = [rate_interval(pair[:, column], codes, settings) for column in (0, 1)]
    clusters, f, d = int(codes.max()) + 1, float(pair[:, 0].mean()), float(pair[:, 1].mean())
    note = "no error under full" if f >= 1 else "the findings made it worse (d < f)" if d < f else ""
    if note:
        return Decomposition(rates[0], rates[1], NOTHING, NOTHING, False, note, len(pair), clusters)
    resampled = resampled_means(pair, codes, settings)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (resampled[:, 1] - resampled[:, 0]) / (1 - resampled[:, 0])
    low, high = (
        None if bound is None else float(np.clip(bound, 0, 1)) for bound in percentile_interval(share, clusters, settings.confidence)
    )
    value = (d - f) / (1 - f)
    perception = Interval(value, low, high, "bootstrap")
    reasoning = Interval(1 - value, None if high is None else 1 - high, None if low is None else 1 - low, "bootstrap")
    return Decomposition(rates[0], rates[1], perception, reasoning, True, "", len(pair), clusters)
