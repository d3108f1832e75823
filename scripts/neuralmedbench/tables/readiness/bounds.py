"""Exact one-sided bounds of a share of patients, and the tests that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from neuralmedbench.estimates.exact import one_sided_bounds


class Bounds(NamedTuple):
    """A share of patients with its exact one-sided bounds, each at the whole confidence level."""

    value: float
    low: float
    high: float
    patients: int


def bounds(events: float, patients: int, confidence: float) -> Bounds:
    """Give the exact one-sided bounds of a share.

    Parameters
    ----------
    events : float
        Sum over patients of the share of their answers with the event, 0 to `patients`.
    patients : int
        Independent patients, at least 1.
    confidence : float
        Of each bound alone.

    Returns
    -------
    Bounds
        At fractional events: a patient's mean varies less than a single answer, so the bounds are on the safe side.

    Examples
    --------
    >>> round(bounds(0, 8, 0.95).high, 3)
    0.312
    """
    return Bounds(events / patients, *one_sided_bounds(events, patients, confidence), patients)


def p_at_least(events: float, patients: int, share: float) -> float:
    """Probability of as many events or more if the true share were `share`: small when the truth is surely above it."""
    return 1.0 if events <= 0 else float(stats.beta.cdf(share, events, patients - events + 1))


def p_at_most(events: float, patients: int, share: float) -> float:
    """Probability of as many events or fewer if the true share were `share`: small when the truth is surely below it."""
    return 1.0 if events >= patients else float(stats.beta.sf(share, events + 1, patients - events))


def holm_levels(p_values: Sequence[float], alpha: float) -> list[float]:
    """Give the error that Holm's procedure allows each test: that of the smallest p value is shared by all, that of the largest is the whole.

    Parameters
    ----------
    p_values : sequence of float
        Of all tests together.
    alpha : float
        Of all of them together.

    Returns
    -------
    list of float
        By test. A test that Holm rejects has a bound at this error that excludes its limit.

    References
    ----------
    Holm, Scandinavian Journal of Statistics 6 (1979) 65.

    Examples
    --------
    >>> holm_levels([0.5, 0.001], 0.05)
    [0.05, 0.025]
    """
    order = np.argsort(np.asarray(p_values), kind="stable")
    levels = [alpha] * len(p_values)
    for rank, place in enumerate(order.tolist()):
        levels[place] = alpha / (len(p_values) - rank)
    return levels
