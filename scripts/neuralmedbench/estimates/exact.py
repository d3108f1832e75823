"""Exact intervals and one-sided bounds of shares, the tests that belong to them, and the effective sample size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


NOTHING = 1e-12
"""Variances below it are rounding errors."""


def clopper_pearson(events: float, trials: float, confidence: float) -> tuple[float, float]:
    """Return the exact binomial interval; both arguments may be fractions (effective sample sizes).

    Parameters
    ----------
    events, trials : float
        Events and trials, 0 <= events <= trials.
    confidence : float
        Confidence level; each tail holds half of the rest.

    Returns
    -------
    tuple of float
        Low and high.

    Examples
    --------
    >>> [round(bound, 3) for bound in clopper_pearson(0, 8, 0.95)]
    [0.0, 0.369]
    """
    from scipy import special

    tail = (1 - confidence) / 2
    low = 0.0 if events <= 0 else float(special.betaincinv(events, trials - events + 1, tail))
    high = 1.0 if events >= trials else float(special.betaincinv(events + 1, trials - events, 1 - tail))
    return low, high


def effective_size(values: Floats, patients: Ints, confidence: float, weights: Floats | None = None) -> float:
    """Return the number of independent trials that would have the same variance as these clustered items.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Item values, not all 0 and not all 1; the rate is their sum over the sum of the weights, between 0 and 1.
    patients : ndarray of int, shape (items,)
        Patient of each item, numbered from 0 without gaps.
    confidence : float
        Confidence level (for the correction by degrees of freedom).
    weights : ndarray of float, shape (items,), optional
        How much each item counts, above 0; 1 if absent.

    Returns
    -------
    float
        1 at least. Items whose values vary less than those of coins do (shares, durations) are worth more than one trial each.
        The number of items where nothing varies between patients, so that no variance can be estimated.

    References
    ----------
    Korn and Graubard, Survey Methodology 24 (1998) 193: exact intervals on the effective sample size. The variance is that of a ratio,
    linearised, between patients; without weights no smaller than that of `VarianceOfMean.exchangeable`.
    """
    from scipy import special

    clusters, items = int(patients.max()) + 1, len(values)
    if clusters < 2:
        return 1.0
    if weights is None:
        rate, variance = float(values.mean()), max(variance_of_mean(values, patients))
    else:
        total = float(weights.sum())
        rate = float(values.sum()) / total
        variance = _between_patients(values - rate * weights, patients) / total**2
    size = rate * (1 - rate) / variance if variance > NOTHING else items
    upper = 0.5 + confidence / 2
    correction = special.stdtrit(max(items - 1, size - 1, 1), upper) / special.stdtrit(clusters - 1, upper)
    return max(float(size * correction**2), 1.0)


class VarianceOfMean(NamedTuple):
    """The variance of a mean of items of patients, estimated twice.

    `robust` is that of the sums of patients. Where patients have unequal numbers of items it depends on which of them had the rare events.
    `exchangeable` takes all pairs of items of a patient as equally correlated, so it depends on all numbers of items.
    """

    robust: float
    exchangeable: float


def variance_of_mean(values: Floats, patients: Ints) -> VarianceOfMean:
    """Return the variance of the mean of clustered items.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Item values.
    patients : ndarray of int, shape (items,)
        Patient of each item, numbered from 0 without gaps; two patients at least.

    Returns
    -------
    VarianceOfMean
        The two are equal where all patients have the same number of items.

    References
    ----------
    Kish, Survey Sampling (Wiley 1965), and Gabler, Haeder and Lahiri, Survey Methodology 25 (1999) 105: an item of a patient with m items
    counts 1 + (m - 1) rho times. Donner, International Statistical Review 54 (1986) 67: rho from the analysis of variance.
    """
    items, sizes = len(values), np.bincount(patients)
    away = values - values.mean()
    robust = _between_patients(away, patients) / items**2
    share = float((sizes * (1 + (sizes - 1) * _intraclass_correlation(away, patients, sizes))).sum()) / items**2
    # the scatter of the items around their own mean is smaller than around the true one by that share
    return VarianceOfMean(robust, float((away**2).mean()) * share / (1 - share))


def _between_patients(residuals: Floats, patients: Ints) -> float:
    """Return the variance of a sum from the sums of patients."""
    sums = np.bincount(patients, weights=residuals)
    return len(sums) / (len(sums) - 1) * float((sums**2).sum())


def _intraclass_correlation(away: Floats, patients: Ints, sizes: Ints) -> float:
    """Return the correlation of two items of a patient; `away` are values minus their mean, `sizes` items of each patient."""
    items, clusters = int(sizes.sum()), len(sizes)
    if items == clusters:
        return 0.0
    means = np.bincount(patients, weights=away) / sizes
    within = float(((away - means[patients]) ** 2).sum()) / (items - clusters)
    between = float((sizes * means**2).sum()) / (clusters - 1)
    typical = (items - float((sizes**2).sum()) / items) / (clusters - 1)
    whole = between + (typical - 1) * within
    # items of a patient may be less alike than those of two, but not so much that a sum of them had a negative variance
    return float(np.clip((between - within) / whole, -1 / (sizes.max() - 1), 1.0)) if whole > 0 else 0.0


def one_sided_bounds(events: float, patients: int, confidence: float) -> tuple[float, float]:
    """Return the exact one-sided bounds of a share of patients: each has the whole error to itself.

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
    tuple of float
        Low and high: Clopper and Pearson, Biometrika 26 (1934) 404.

    Examples
    --------
    >>> [round(bound, 3) for bound in one_sided_bounds(0, 8, 0.95)]
    [0.0, 0.312]
    """
    return clopper_pearson(events, patients, 2 * confidence - 1)


class ShareBounds(NamedTuple):
    """A share of patients with its exact one-sided bounds, each at the whole confidence level."""

    value: float
    low: float
    high: float
    patients: int


def share_bounds(events: float, patients: int, confidence: float) -> ShareBounds:
    """Return a share of patients with its exact one-sided bounds.

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
    ShareBounds
        Events may be fractions: a patient's mean varies less than a single answer, so the bounds are conservative.

    Examples
    --------
    >>> round(share_bounds(0, 8, 0.95).high, 3)
    0.312
    """
    return ShareBounds(events / patients, *one_sided_bounds(events, patients, confidence), patients)


class ShareTest(NamedTuple):
    """A share tested against a limit: corrected p values of `met` and of `not met`, and the bound that decides about `met`."""

    p_met: float
    p_not_met: float
    bound: float


def share_tests(shares: Sequence[tuple[float, int, float, bool]], confidence: float) -> list[ShareTest]:
    """Test shares against limits; the tests are corrected together after Holm, those for met and for not met separately.

    Parameters
    ----------
    shares : sequence of tuple
        Events, patients, limit, and whether the limit is a minimum (else a maximum).
    confidence : float
        Of all tests together.

    Returns
    -------
    list of ShareTest
        The bound is one-sided, at the error that Holm allows the test: a limit that is met lies on its right side.
    """
    met, failed = (
        [(p_at_least if minimum is wanted else p_at_most)(events, patients, limit) for events, patients, limit, minimum in shares]
        for wanted in (True, False)
    )
    found = []
    for (events, patients, _, minimum), *tested in zip(shares, holm(met), holm(failed), holm_levels(met, 1 - confidence), strict=True):
        ends = share_bounds(events, patients, 1 - tested[2])
        found.append(ShareTest(tested[0], tested[1], ends.low if minimum else ends.high))
    return found


def p_at_least(events: float, patients: int, share: float) -> float:
    """Return the probability of as many events or more if the true share were `share`: small when the true share is above it."""
    from scipy import special

    return 1.0 if events <= 0 else float(special.betainc(events, patients - events + 1, share))


def p_at_most(events: float, patients: int, share: float) -> float:
    """Return the probability of as many events or fewer if the true share were `share`: small when the true share is below it."""
    from scipy import special

    return 1.0 if events >= patients else float(special.betaincc(events + 1, patients - events, share))


def holm_levels(p_values: Sequence[float], alpha: float) -> list[float]:
    """Return the error that Holm's procedure allows each test: the smallest p value gets its share among all tests, the largest the whole error.

    Parameters
    ----------
    p_values : sequence of float
        Of all tests.
    alpha : float
        Error of all tests together.

    Returns
    -------
    list of float
        Per test. A test that Holm rejects has a bound at this error that excludes its limit.

    References
    ----------
    Holm, Scandinavian Journal of Statistics 6 (1979) 65.

    Examples
    --------
    >>> holm_levels([0.5, 0.001], 0.05)
    [0.05, 0.025]
    """
    # the rank-th smallest p value may use alpha / (number - rank)
    order = np.argsort(np.asarray(p_values), kind="stable")
    levels = [alpha] * len(p_values)
    for rank, place in enumerate(order.tolist()):
        levels[place] = alpha / (len(p_values) - rank)
    return levels


def holm(p_values: list[float]) -> list[float]:
    """Correct p values by Holm's step-down procedure; the order of the list is kept.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, running = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        running = max(running, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = running
    return adjusted


def holm_known(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct the p values that are known by Holm's step-down procedure; the others stay None.

    Examples
    --------
    >>> holm_known([0.01, None, 0.03])
    [0.02, None, 0.03]
    """
    corrected = iter(holm([p_value for p_value in p_values if p_value is not None]))
    return [None if p_value is None else next(corrected) for p_value in p_values]
