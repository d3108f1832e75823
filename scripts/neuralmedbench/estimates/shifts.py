"""The spread of several rates of the same items."""

from __future__ import annotations

import numpy as np

from neuralmedbench.estimates.contrasts import paired_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, expanded_tail

SHUFFLES_AT_ONCE = 500
"""Shuffles that are made together."""


def spread_of_means(values: Floats, by: ByPatient) -> tuple[Interval, float | None]:
    """Largest minus smallest of the means of several columns over the same items; patients count alike.

    Parameters
    ----------
    values : ndarray of float, shape (items, columns)
        Item values between 0 and 1; rows with a NaN are left out.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    interval : Interval
        The spread, from the bootstrap of patients. The spread of a resample is too large, as the observed one is: the lower end is a basic
        one (twice the value minus a percentile), and 0 unless the test rejects equal means; the upper end is a percentile. (Our rule:
        `tests/unit/estimates/test_shifts.py` simulates it.)
    p_value : float or None
        Test of equal means: columns are shuffled within patients, all items of one alike; (hits + 1) / (draws + 1).
    """
    known = np.asarray(~np.isnan(values).any(axis=1))
    if not known.any() or values.shape[1] < 2:
        return Interval(), None
    own, values = by.at(known), values[known]
    weighted = values * own.item_weights[:, None]
    means = weighted.mean(axis=0)
    value = float(_spread(means[None, :])[0])
    drawn = _spread(own.resampled_patient_means(values))
    settings, sums = own.settings, own.sums(weighted)
    rng, hits = np.random.default_rng(settings.seed), 0
    for start in range(0, settings.resamples, SHUFFLES_AT_ONCE):
        draws = min(SHUFFLES_AT_ONCE, settings.resamples - start)
        shuffled = rng.permuted(np.broadcast_to(sums, (draws, *sums.shape)), axis=2).sum(axis=1) / len(values)
        hits += int((_spread(shuffled) >= value - 1e-9).sum())
    p_value = (hits + 1) / (settings.resamples + 1)
    if own.clusters < 2:
        return Interval(value, None, None, "none"), p_value
    rejected = p_value < 1 - settings.confidence
    if np.ptp(drawn) < 1e-12:
        # nothing varies between patients: as certain as the two extreme rates are
        found = paired_difference(values[:, means.argmax()], values[:, means.argmin()], own)
        return Interval(value, (found.low if rejected else 0.0) if found.low is not None else None, found.high, "exact"), p_value
    # the extremes were chosen by their means: the lower tail is divided among the other columns
    tail = expanded_tail(own.clusters, settings.confidence)
    reach = float(np.quantile(drawn, 1 - tail / (values.shape[1] - 1)))
    low = max(2 * value - reach, 0.0) if rejected else 0.0
    return Interval(value, min(low, value), max(float(np.quantile(drawn, 1 - tail)), value), "bootstrap"), p_value


def _spread(means: Floats) -> Floats:
    return np.asarray(means.max(axis=1) - means.min(axis=1), dtype=np.float64)
