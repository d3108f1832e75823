"""Intervals of a mean difference that hold at every look, however often one looks: asking may stop as soon as a comparison is decided."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Floats

STAKES = 2.0 ** (-np.arange(16) / 2)
"""Shares of the capital that are bet on each patient: one bettor a stake, from all of it to 0.55 %. (Our choice, made before the first simulation.)"""

HALVINGS = 40
"""Of the range in which a bound is looked for: its error is below 1e-11."""

Outcome = Literal["first", "second", "alike", ""]
"""Which model is better; `alike` is a difference below the margin either way, and empty is not decided."""


class SequentialInterval(NamedTuple):
    """A mean difference, and its interval at this look; all looks together hold the truth with the stated confidence."""

    value: float | None
    low: float
    high: float
    patients: int

    def outcome(self, margin: float) -> Outcome:
        """Return what is decided: a difference, or that it is smaller than the margin."""
        if self.low > 0 or self.high < 0:
            return "first" if self.low > 0 else "second"
        return "alike" if -margin < self.low and self.high < margin else ""


def log_capital(differences: Floats, mean: float) -> Floats:
    """Return the logarithm of what a bet against `the mean difference is at most this` has made of 1 after each patient.

    Parameters
    ----------
    differences : ndarray of float, shape (patients,)
        Between -1 and 1, in the order in which the patients came.
    mean : float
        Mean difference under the hypothesis, above -1.

    Returns
    -------
    ndarray of float, shape (patients,)
        Mean capital of bettors with fixed stakes. If the hypothesis is true it is a supermartingale: the chance that it ever reaches 1 / alpha
        is at most alpha (Ville's inequality), whatever the distribution, and the last value does not depend on the order of the patients.

    References
    ----------
    Waudby-Smith and Ramdas, Journal of the Royal Statistical Society B 86 (2024) 1: means of bounded variables by betting.
    """
    grows = (1 + differences[:, None]) / (1 + mean)
    with np.errstate(divide="ignore"):  # a bettor who staked all has nothing left
        each = np.cumsum(np.log1p(STAKES * (grows - 1)), axis=0)
    return np.asarray(np.logaddexp.reduce(each, axis=1) - np.log(len(STAKES)))


def lower_bound(differences: Floats, alpha: float) -> float:
    """Return the largest mean difference that a bet against it has refuted at the error `alpha`; -1 without patients."""
    low, high = -1.0, float(differences.mean()) if len(differences) else -1.0
    for _ in range(HALVINGS):  # the capital falls with the mean, and is at most 1 where that is the one seen
        middle = (low + high) / 2
        refuted = middle > -1 and log_capital(differences, middle)[-1] >= -np.log(alpha)
        low, high = (middle, high) if refuted else (low, middle)
    return low


def confidence_sequence(differences: Floats, confidence: float) -> SequentialInterval:
    """Return the interval of the mean difference of patients that holds at every look.

    Parameters
    ----------
    differences : ndarray of float, shape (patients,)
        One value a patient, between -1 and 1: the first model's share of passed answers minus the second's.
    confidence : float
        Chance that the intervals at all looks hold the true mean, if patients are independent and come in an order that has nothing to do
        with their answers.

    Returns
    -------
    SequentialInterval
        Wider than an interval that is looked at once, which is the price of looking often.

    Examples
    --------
    >>> found = confidence_sequence(np.array([1.0, 0.0, 1.0, 1.0] * 10), 0.95)
    >>> round(found.low, 2), round(found.high, 2), found.outcome(0.1)
    (0.44, 0.92, 'first')
    """
    alpha = (1 - confidence) / 2
    value = float(differences.mean()) if len(differences) else None
    return SequentialInterval(value, lower_bound(differences, alpha), -lower_bound(-differences, alpha), len(differences))
