"""Whether a new revision is worse than the old one by less than a margin: exact paired tests over patients, and the patients that they need."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints

UNSEEN = 3.0
"""Whole patients that may have changed unseen: none of n seen is compatible with 3 / n at 95 %."""
WIDTH, EXTRA = 5.5, 8.0
"""Numbers of changed patients that are summed: this many standard deviations and patients around the mean; what is left out counts against us."""
SHARES = np.concatenate([[0.0], np.geomspace(1e-4, 0.5, 32), 1 - np.geomspace(0.46, 0.003, 24), [1.0]])
"""Shares of changed patients that are tried, between the fewest and all."""
PEAKS, CLOSER = 3, 9
"""Shares with the highest chances beside which it is looked closer, and at how many more."""
MOST_PATIENTS = 20_000
ACCURACY, COARSE = 1e-3, 0.01
"""Accuracy of bounds and smallest statistics, and the size to which statistics and steps of fractions of patients are rounded."""

HALF, HIGHEST = 0.5, 20.0
"""Steps in which a smallest statistic is looked for, and where the search ends."""


class Gaps(NamedTuple):
    """The gaps of patients, which lie between -1 and 1: sums of those above and below 0, size of a step, and patients.

    `step` is 1 where every patient changes wholly or not at all, and less where patients have several answers of which some change.
    """

    worse: float
    better: float
    step: float
    patients: int

    @property
    def value(self) -> float:
        """Mean gap; above 0 is worse."""
        return (self.worse - self.better) / self.patients


def gaps_of(gaps: Floats) -> Gaps:
    """Sum up the gaps of patients.

    Parameters
    ----------
    gaps : ndarray of float, shape (patients,)
        Share of bad answers of the new revision minus that of the old one, -1 to 1, at least one patient.

    Returns
    -------
    Gaps
        The step is the sum of squares over the sum of sizes, so that changes of this size have the same variance; `UNSEEN` whole patients are
        added to both. (Our rule.)
    """
    sizes = np.abs(gaps)
    step = (float((sizes**2).sum()) + UNSEEN) / (float(sizes.sum()) + UNSEEN)
    return Gaps(float(gaps[gaps > 0].sum()), float(-gaps[gaps < 0].sum()), float(step), len(gaps))


def score_statistic(worse: Floats, better: Floats, patients: int, margin: float) -> Floats:
    """Return the score statistic of a paired difference against a margin: large when the new revision is worse by less.

    Parameters
    ----------
    worse, better : ndarray of float
        Patients who became worse and better.
    patients : int
        All patients.
    margin : float
        The difference of the two shares under the hypothesis, above -1 and below 1.

    References
    ----------
    Tango, Statistics in Medicine 17 (1998) 891; Nam, Biometrics 53 (1997) 1422: the variance is that under the hypothesis.

    Examples
    --------
    >>> round(float(score_statistic(np.array(0.0), np.array(0.0), 52, 0.05)), 3)
    1.654
    """
    half = (2 * patients - worse + better) * margin - worse - better
    # share of patients who became better, most likely under the hypothesis
    share = (np.sqrt(np.maximum(half**2 + 8 * patients * better * margin * (1 - margin), 0)) - half) / (4 * patients)
    variance = patients * (2 * share + margin * (1 - margin))
    return np.asarray((patients * margin - worse + better) / np.sqrt(np.maximum(variance, 1e-12)))


class MarginTest(NamedTuple):
    """A paired test of a margin: small `p_within` shows that the new revision is worse by less, small `p_beyond` that it is worse by more."""

    p_within: float
    p_beyond: float


def margin_test(gaps: Gaps, margin: float) -> MarginTest:
    """Test whether the new revision is worse than the old one by less than a margin, and whether by more.

    Parameters
    ----------
    gaps : Gaps
        The gaps of patients.
    margin : float
        Largest mean gap that is accepted, above -1 and below 1.

    Returns
    -------
    MarginTest
        Each p value is the largest probability, over all shares of patients who change, of a score statistic at least as extreme: the exact
        unconditional test of paired proportions. The asymptotic test approves too often where few patients change: without any change in 52
        patients it shows a margin of 5 %, though 6.9 % of revisions at the margin would show none. Gaps between 0 and 1 enter as fractions
        of patients, in units of the step; then the test is exact no more, and `perf/update_gate.py` simulates how often it errs.

    References
    ----------
    Hsueh, Liu and Chen, Biometrics 57 (2001) 478: exact tests of non-inferiority for paired proportions.

    Examples
    --------
    >>> round(margin_test(Gaps(0, 0, 1, 52), 0.05).p_within, 4), round(0.95**52, 4)
    (0.0694, 0.0694)
    """
    chance = largest_chance(*statistic_of(gaps, margin))
    return MarginTest(1.0, chance) if gaps.value > margin else MarginTest(chance, 1.0)


def statistic_of(gaps: Gaps, margin: float) -> tuple[float, int, float]:
    """Return the statistic of the test of `worse by less`, or `by more` if the mean gap is above the margin; patients; and the margin of that test.

    By more is the same test of the reverse comparison: of the two p values one is above one half. Statistics of fractions of patients are
    rounded down, which makes p no smaller, so that equal ones are computed once.
    """
    step, side = _step(gaps.step, margin), -1 if gaps.value > margin else 1
    seen = side * float(score_statistic(np.array(gaps.worse / step), np.array(gaps.better / step), gaps.patients, margin / step))
    return (round(seen, 9) if step == 1 else float(np.floor(seen / COARSE) * COARSE)), gaps.patients, side * margin / step


def _step(step: float, margin: float) -> float:
    """Return the step of a test, rounded up: a margin of more than half of it would leave the range of a patient."""
    return float(min(np.ceil(max(step, 2 * abs(margin)) / COARSE - 1e-9) * COARSE, 1.0))


def gap_bounds(gaps: Gaps, alpha: float) -> tuple[float, float]:
    """Return the one-sided bounds of the mean gap, each at the error `alpha`: a margin is shown if the upper one lies below it.

    Parameters
    ----------
    gaps : Gaps
        The gaps of patients.
    alpha : float
        Error of each bound.

    Returns
    -------
    tuple of float
        Low and high, to 0.001, by trying margins.
    """

    def edge(shown: Callable[[float], bool], end: float) -> float:
        near, far = gaps.value, end
        while abs(far - near) > ACCURACY:
            middle = (near + far) / 2
            near, far = (near, middle) if shown(middle) else (middle, far)
        return far

    high = edge(lambda margin: margin_test(gaps, margin).p_within <= alpha, 1 - ACCURACY)
    return edge(lambda margin: margin_test(gaps, margin).p_beyond <= alpha, ACCURACY - 1), high


class Changes(NamedTuple):
    """How much patients change without any change of the model: the means of the size of a gap and of its square, equal where patients change wholly."""

    size: float
    square: float


def power_at(patients: int, margin: float, changes: Changes, alpha: float) -> float:
    """Return the chance that the test shows a margin for a new revision that is no worse.

    Parameters
    ----------
    patients : int
        Patients with both answers.
    margin : float
        The margin, above 0.
    changes : Changes
        Expected without any change of the model.
    alpha : float
        Error of the test.
    """
    from scipy import special

    step = _step((changes.square * patients + UNSEEN) / (changes.size * patients + UNSEEN), margin)
    changed, share = np.arange(patients + 1), min(changes.size / step, 1.0)
    chance = np.exp(_log_binomial(changed, patients, np.array(share)))
    most = _most_worse(smallest_shown(patients, margin / step, alpha), patients, margin / step)
    return float((chance * np.where(most < 0, 0.0, special.bdtr(np.maximum(most, 0), changed, 0.5))).sum())


@lru_cache(maxsize=100_000)
def smallest_shown(patients: int, margin: float, alpha: float) -> float:
    """Return the smallest score statistic that shows a margin at the error `alpha`, to 0.001 and no smaller; infinite if none does."""
    from scipy import special

    if alpha <= 0:
        return float("inf")
    low = float(-special.ndtri(alpha)) - HALF
    high = low + 2 * HALF
    while largest_chance(low, patients, margin) <= alpha:
        low, high = low - HALF, low
    while largest_chance(high, patients, margin) > alpha:
        low, high = high, high + HALF
        if high > HIGHEST:
            return float("inf")
    while high - low > ACCURACY:
        middle = (low + high) / 2
        low, high = (low, middle) if largest_chance(middle, patients, margin) <= alpha else (middle, high)
    return high


@lru_cache(maxsize=10_000)
def patients_needed(margin: float, changes: Changes, alpha: float, power: float) -> int | None:
    """Return the fewest patients with which the test shows a margin for a revision that is no worse, with the given chance.

    Parameters
    ----------
    margin, changes, alpha
        As in `power_at`.
    power : float
        Chance to show it.

    Returns
    -------
    int or None
        None if more than `MOST_PATIENTS` are needed.

    Examples
    --------
    >>> patients_needed(0.05, Changes(0, 0), 0.05, 0.8)
    59
    """
    low, high = 1, 16
    while power_at(high, margin, changes, alpha) < power:
        low, high = high, 2 * high
        if low > MOST_PATIENTS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(middle, margin, changes, alpha) >= power else (middle, high)
    # power is a saw: a few patients more may have less of it
    while fails := [more for more in range(high + 1, high + 8) if power_at(more, margin, changes, alpha) < power]:
        high = fails[-1] + 1
    return high if high <= MOST_PATIENTS else None


@lru_cache(maxsize=100_000)
def largest_chance(seen: float, patients: int, margin: float) -> float:
    """Return the largest probability of a score statistic of at least `seen` at the margin, over all shares of patients who change."""
    most = _most_worse(seen, patients, margin)
    found = _chances(SHARES, most, patients, margin)
    # the chance is a saw over the shares: look closer beside the highest of them
    top = np.argsort(found)[-PEAKS:]
    near, far = SHARES[np.maximum(top - 1, 0)], SHARES[np.minimum(top + 1, len(SHARES) - 1)]
    closer = _chances(np.linspace(near, far, CLOSER).ravel(), most, patients, margin)
    return float(min(max(found.max(), closer.max()), 1.0))


def _chances(shares: Floats, most: Ints, patients: int, margin: float) -> Floats:
    """Return the probability of at most `most` worse patients of those who changed, for each share between the fewest (0) and all (1)."""
    from scipy import special

    low = abs(margin)
    shares = np.minimum(low + (1 - low) * shares, 1 - 1e-12)
    centre, spread = patients * shares, np.sqrt(patients * shares * (1 - shares))
    width = min(int(2 * (WIDTH * spread.max() + EXTRA)) + 1, patients + 1)
    start = np.clip(centre - width / 2, 0, patients + 1 - width).astype(int)
    changed = start[:, None] + np.arange(width)[None, :]
    chance = np.exp(_log_binomial(changed, patients, shares[:, None]))
    bound, of_changed = most[changed], (shares + margin) / (2 * shares)
    tails = np.where(bound < 0, 0.0, special.bdtr(np.maximum(bound, 0), changed, of_changed[:, None]))
    return np.asarray((chance * tails).sum(axis=1) + np.maximum(1 - chance.sum(axis=1), 0))


def _most_worse(seen: float, patients: int, margin: float) -> Ints:
    """Return for each number of changed patients how many of them may have become worse, for the statistic to be at least `seen`; -1: none."""
    changed = np.arange(patients + 1)
    low, high = np.full(patients + 1, -1), changed.copy()
    # the statistic falls with every patient who became worse and not better
    while (low < high).any():
        middle = (low + high + 1) // 2
        reached = (middle < 0) | (score_statistic(middle.astype(float), (changed - middle).astype(float), patients, margin) >= seen - 1e-9)
        low, high = np.where(reached, middle, low), np.where(reached, high, middle - 1)
    return low


def _log_binomial(events: Ints, trials: int, share: Floats) -> Floats:
    from scipy import special

    ways = special.gammaln(trials + 1) - special.gammaln(events + 1) - special.gammaln(trials - events + 1)
    return np.asarray(ways + special.xlogy(events, share) + special.xlog1py(trials - events, -share))
