"""Differences between two groups of different patients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Floats, IntervalSettings, Ints, cluster_sums

AT_ONCE = 1_000
"""Shuffles that are worked on together."""


class Estimate(NamedTuple):
    """A value with its interval; None where there is none."""

    value: float | None
    low: float | None
    high: float | None


def square_and_add(first: Estimate, second: Estimate) -> Estimate:
    """Give the first minus the second of two independent estimates, with an interval made from theirs.

    Parameters
    ----------
    first, second : Estimate
        Of different patients.

    Returns
    -------
    Estimate
        As honest as the two intervals are: exact ones (few patients, none or all right) stay so. Without an interval where one has none.

    References
    ----------
    Newcombe, Statistics in Medicine 17 (1998) 873, method 10; for any two intervals: Zou and Donner, ibid. 27 (2008) 1693.

    Examples
    --------
    >>> [round(number, 3) for number in square_and_add(Estimate(0.8, 0.7, 0.9), Estimate(0.5, 0.3, 0.6))]
    [0.3, 0.159, 0.524]
    """
    if first.value is None or second.value is None:
        return Estimate(None, None, None)
    value = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(value, None, None)
    down = np.hypot(first.value - first.low, second.high - second.value)
    up = np.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, float(value - down), float(value + up))


def shuffle_p(first: Floats, second: Floats, patients: tuple[Ints, Ints], settings: IntervalSettings) -> float:
    """Test for no difference: the share of random divisions of the patients whose means lie at least as far apart.

    Parameters
    ----------
    first, second : ndarray of float, shape (items of the group,)
        Item values of each group, none NaN.
    patients : tuple of ndarray of int
        Patient of each item of each group; a patient belongs to one group.
    settings : IntervalSettings
        Draws and seed.

    Returns
    -------
    float
        (hits + 1) / (draws + 1), so that it is never 0. Patients keep their items, and the groups their numbers of patients.
    """
    codes = np.unique(np.concatenate(patients), return_inverse=True)[1].reshape(-1)
    count, of_first = int(codes.max()) + 1, len(set(patients[0].tolist()))
    values = np.concatenate([first, second])
    sums = cluster_sums(np.stack([values, np.ones(len(values))], axis=1), codes, count)
    rng, seen, hits = np.random.default_rng(settings.seed), abs(float(first.mean() - second.mean())), 0
    for start in range(0, settings.resamples, AT_ONCE):
        keys = rng.random((min(AT_ONCE, settings.resamples - start), count))
        chosen = (keys <= np.partition(keys, of_first - 1, axis=1)[:, of_first - 1, None]).astype(np.float64) @ sums
        rest = sums.sum(axis=0) - chosen
        apart = np.abs(chosen[:, 0] / chosen[:, 1] - rest[:, 0] / rest[:, 1])
        hits += int((apart >= seen - 1e-9).sum())
    return (hits + 1) / (settings.resamples + 1)
