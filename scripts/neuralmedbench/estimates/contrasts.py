"""The one comparison of two sets of answers: one number a cluster, a flip of clusters, and the interval that inverts it.

A contrast is taken apart into one part a cluster (a patient, or patients who share a request). If the true difference were `d`, what is
left of each part, `part - d * weight`, would be as likely to have either sign. Each pattern of flipped signs lies as far from 0 as the
parts do for the values of `d` between two bounds. The share of patterns whose bounds hold `d` is the p value of `d`, and the quantiles of
the bounds are the interval: test and interval come from the same numbers and cannot disagree. Of two groups of different patients the
labels are shuffled instead, and the same holds.

References
----------
Hartigan, Journal of the American Statistical Association 64 (1969) 1303, and Maritz, Biometrika 66 (1979) 163: flips and their inversion.
Hoeffding, ibid. 58 (1963) 13: the bound of a p value that draws cannot show.
Newcombe, Statistics in Medicine 17 (1998) 873 and 2635, and Zou and Donner, ibid. 27 (2008) 1693: the interval from those of two rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, IntervalSettings, patients_rate, rate_interval

EXACT_FLIPS_UP_TO = 12
"""Up to this many clusters every pattern of signs is tried; above it patterns are drawn."""

POWER = 0.8
"""Chance with which a difference is to be shown."""

NOTHING = 1e-9
"""Differences below it are rounding errors."""

BETTER, WORSE, ALIKE, INCONCLUSIVE = "better", "worse", "alike", "inconclusive"
DIFFERENT = (BETTER, WORSE)
"""Answers of `Difference.answer` that a test has shown to be no chance."""


class Ratio(NamedTuple):
    """One side of a contrast by item, shape (items,): its value is `top / bottom`; an item whose `bottom` is 0 is not on this side."""

    top: Floats
    bottom: Floats

    def at(self, items: npt.NDArray[np.bool_]) -> Ratio:
        """Keep some items."""
        return Ratio(self.top[items], self.bottom[items])

    def rate(self, by: ByPatient) -> Interval:
        """Return the value over all items, with its interval."""
        return rate_interval(self.top, by, self.bottom)


def ratio_of(values: Floats) -> Ratio:
    """Return item values as a side: NaN is an item without a value."""
    known = ~np.isnan(values)
    return Ratio(np.where(known, values, 0.0), known.astype(np.float64))


class Parts(NamedTuple):
    """A difference by cluster: `values` sum to the difference, `weights` to 1; both of shape (clusters,)."""

    values: Floats
    weights: Floats

    @property
    def difference(self) -> float:
        """The first side minus the second."""
        return float(self.values.sum())

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return len(self.values)

    @property
    def differing(self) -> int:
        """Number of clusters whose two sides differ."""
        return int((np.abs(self.values) > NOTHING).sum())

    @property
    def bound(self) -> float:
        """Upper bound of the p value of no difference (Hoeffding 1963, theorem 2), of use where it is smaller than draws can show."""
        return float(2 * np.exp(-(self.difference**2) / (2 * max((self.values**2).sum(), NOTHING**2))))

    @property
    def error(self) -> float:
        """Standard error of the difference; 0 with fewer than two clusters."""
        if self.clusters < 2:
            return 0.0
        residuals = self.values - self.weights * self.difference
        return float(np.sqrt(self.clusters / (self.clusters - 1) * (residuals**2).sum()))


def parts_of(first: Ratio, second: Ratio, by: ByPatient) -> Parts:
    """Take the difference of two ratios apart by cluster.

    Parameters
    ----------
    first, second : Ratio
        Of the same items; an item may count on one side, on both or on none.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    Parts
        What each cluster adds, linearised. Where both sides count the same items it is the sum of their differences over all items.
    """
    totals = first.bottom.sum(), second.bottom.sum()
    rates = first.top.sum() / totals[0], second.top.sum() / totals[1]
    weights = (first.bottom / totals[0] + second.bottom / totals[1]) / 2
    away = (first.top - rates[0] * first.bottom) / totals[0] - (second.top - rates[1] * second.bottom) / totals[1]
    sums = by.sums(np.stack([away + (rates[0] - rates[1]) * weights, weights], axis=1))
    return Parts(sums[:, 0], sums[:, 1])


@dataclass(frozen=True)
class DifferenceTest:
    """The test of a difference against any value.

    Attributes
    ----------
    value : float
        The difference.
    lower, upper : ndarray of float, shape (patterns,)
        Sorted bounds of the values that each pattern does not reject.
    exact : bool
        True if the patterns are all that there are.
    least : callable or None
        Makes, at a confidence level, an interval than which no end is nearer but the one between 0 and the value: of few events flips are
        too sure how large a difference is, and not too sure that there is one.
    varies : bool
        False if all clusters have the same difference: flips tell nothing then, and no end is nearer than that of `least`.
    """

    value: float
    lower: Floats
    upper: Floats
    exact: bool
    least: Callable[[float], tuple[float, float]] | None = None
    varies: bool = True

    def p_value(self, at: float = 0.0) -> float:
        """Return the two-sided p value of the difference `at` by the flips; of 0, where nothing varies, by the rates too."""
        hits = int((self.upper >= at - NOTHING).sum() if at >= self.value else (self.lower <= at + NOTHING).sum())
        p_value = hits / len(self.lower) if self.exact else (hits + 1) / (len(self.lower) + 1)
        return p_value if self.varies or self.least is None else max(p_value, self._p_of_rates(self.least))

    def is_alike(self, margin: float, alpha: float) -> bool:
        """Return True if both one-sided tests show that the difference is smaller than a margin."""
        low, high = self.interval(1 - 2 * alpha)
        return -margin < low and high < margin

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the outermost differences that are not rejected, within -1 and 1."""
        alpha, patterns = 1 - confidence, len(self.lower)
        # as many bounds must be passed before a difference is rejected
        rank = int(np.ceil(alpha * patterns - NOTHING)) if self.exact else int(np.ceil(alpha * (patterns + 1) - NOTHING)) - 1
        low, high = float(self.lower[max(rank, 1) - 1]), float(self.upper[-max(rank, 1)])
        if self.least is not None:
            near = self.least(confidence)
            # the end between 0 and the value is that of the flips alone, so that they decide whether there is a difference
            low, high = (
                min(low, near[0]) if self._is_away(-1.0) or low <= 0 else low,
                max(high, near[1]) if self._is_away(1.0) or high >= 0 else high,
            )
        low, high = (0.0 if abs(end) < NOTHING else end for end in (low, high))
        return max(low, -1.0), min(high, 1.0)

    def _is_away(self, at: float) -> bool:
        """Return True if a difference lies beyond the value, seen from 0; all do where nothing varies."""
        return not self.varies or (at - self.value) * self.value > 0 or abs(self.value) < NOTHING

    def _p_of_rates(self, least: Callable[[float], tuple[float, float]]) -> float:
        """Return 1 minus the highest confidence at which the interval from the two rates excludes 0."""
        excluded, held = 1.0, 0.0  # p values
        for _ in range(24):
            p_value = (excluded + held) / 2
            low, high = least(1 - p_value)
            excluded, held = (excluded, p_value) if low <= 0 <= high else (p_value, held)
        return held


def _test(value: float, sums: Floats, shifts: Floats, *, exact: bool) -> DifferenceTest:
    """Invert a test whose patterns have the sum `sums - d * shifts` where the parts have `value - d`, both of shape (patterns,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.sort(np.stack([(value - sums) / (1 - shifts), (value + sums) / (1 + shifts)]), axis=0)
    whole = np.abs(np.abs(shifts) - 1) < NOTHING  # no sign, or every sign, was flipped
    bounds[:, whole] = [[-np.inf], [np.inf]]
    return DifferenceTest(value, np.sort(bounds[0]), np.sort(bounds[1]), exact)


@lru_cache(maxsize=4)
def signs(clusters: int, draws: int, seed: int) -> Floats:
    """Return patterns of signs, shape (patterns, clusters): all that do not flip the first cluster, or as many as are drawn."""
    if clusters <= EXACT_FLIPS_UP_TO:
        return np.asarray(1.0 - 2.0 * ((np.arange(2 ** max(clusters - 1, 0))[:, None] >> np.arange(clusters)) & 1), dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, 2, size=(draws, clusters), dtype=np.int8)
    return np.asarray(drawn * 2.0 - 1.0, dtype=np.float64)


def flip_test(parts: Parts, by: ByPatient) -> DifferenceTest:
    """Return the test of a difference by flips of clusters."""
    patterns = signs(parts.clusters, by.settings.resamples, by.settings.seed)
    test = _test(parts.difference, patterns @ parts.values, patterns @ parts.weights, exact=parts.clusters <= EXACT_FLIPS_UP_TO)
    return replace(test, varies=bool((np.abs(parts.values - parts.weights * parts.difference) > NOTHING).any()))


class Difference(NamedTuple):
    """The first side minus the second.

    `alike` is True if the difference is shown to be smaller than the margin. `error` is the standard error, `differing` the number of
    clusters whose sides differ, `only_first` and `only_second` the numbers of items of which one side alone has a value above one half.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    alike: bool = False
    error: float = 0.0
    items: int = 0
    patients: int = 0
    differing: int = 0
    only_first: int | None = None
    only_second: int | None = None

    def by_test(self, test: DifferenceTest, settings: IntervalSettings) -> Difference:
        """Return the difference with what its test says."""
        low, high = test.interval(settings.confidence)
        alike = test.is_alike(settings.margin, 1 - settings.confidence)
        return self._replace(low=low, high=high, p_value=test.p_value(), alike=alike)

    def answer(self, alpha: float, p_corrected: float | None = None) -> str:
        """Say whether the first side is better or worse, by the corrected p value if there is one, else by the interval; or alike.

        Parameters
        ----------
        alpha : float
            Level of the test.
        p_corrected : float or None
            The p value after correction for other comparisons.

        Returns
        -------
        str
            `INCONCLUSIVE` where none of the three is shown; empty without a difference.

        Examples
        --------
        >>> found = Difference(0.05, 0.01, 0.09, 0.02, alike=True)
        >>> found.answer(0.05), found.answer(0.05, p_corrected=0.2), found._replace(low=-0.01).answer(0.05)
        ('better', 'alike', 'alike')
        """
        if self.value is None:
            return ""
        by_interval = self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)
        if by_interval if p_corrected is None else p_corrected < alpha:
            return BETTER if self.value > 0 else WORSE
        return ALIKE if self.alike else INCONCLUSIVE


def paired_sides(first: Floats, second: Floats, by: ByPatient) -> tuple[Ratio, Ratio, ByPatient]:
    """Return two sides over the items that both have, each a mean over patients of the mean of each one's items."""
    both = ~(np.isnan(first) | np.isnan(second))
    by = by.at(both)
    weights = by.item_weights
    return Ratio(first[both] * weights, weights), Ratio(second[both] * weights, weights), by


def paired_parts(first: Floats, second: Floats, by: ByPatient) -> Parts:
    """Take the difference of `paired_difference` apart, without its test: how much it varies costs little."""
    sides = paired_sides(first, second, by)
    return parts_of(*sides) if sides[2].clusters else Parts(np.zeros(0), np.zeros(0))


def paired_difference(first: Floats, second: Floats, by: ByPatient) -> Difference:
    """Mean of `first` minus mean of `second` over the items that both have; patients count alike, whatever their number of items.

    Parameters
    ----------
    first, second : ndarray of float, shape (items,)
        Item values between 0 and 1; NaN where a side has none.
    by : ByPatient
        Patients of the items, and their clusters: the number of a cluster is the sum over its patients, divided by the number of all.

    Returns
    -------
    Difference
        See `ratio_difference`. Its value is that of `patients_rate` of the one side minus that of the other.
    """
    found = ratio_difference(*paired_sides(first, second, by))
    both = ~(np.isnan(first) | np.isnan(second))
    passed, other_passed = first > 0.5, second > 0.5
    only_first, only_second = both & passed & ~other_passed, both & other_passed & ~passed
    return found._replace(only_first=int(only_first.sum()), only_second=int(only_second.sum()))


def largest_difference(pairs: Sequence[tuple[Floats, Floats]], by: ByPatient) -> tuple[int, Difference]:
    """Largest of several differences over the same items, each its first side minus its second; patients count alike.

    Parameters
    ----------
    pairs : sequence of (ndarray of float, ndarray of float), shape (items,)
        The two sides of each difference (`paired_difference`); at least one pair.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    place : int
        Place of the largest difference among the pairs.
    difference : Difference
        Its interval and p value hold although it was chosen among all (Bonferroni): each end is the largest of the differences, and the
        p value the smallest of those above 0.
    """
    together = by.at_confidence(1 - (1 - by.settings.confidence) / len(pairs))
    differences = [paired_difference(first, second, together) for first, second in pairs]
    values = [-1.0 if difference.value is None else difference.value for difference in differences]
    place = int(np.argmax(np.round(values, 9)))
    lows, highs = ([getattr(difference, end) for difference in differences] for end in ("low", "high"))
    if None in lows:
        return place, differences[place]
    p_values = [difference.p_value for difference, value in zip(differences, values, strict=True) if value > NOTHING]
    p_value = min(len(pairs) * min((p for p in p_values if p is not None), default=1.0), 1.0)
    alike = all(difference.alike for difference in differences)
    return place, differences[place]._replace(low=max(lows), high=max(highs), p_value=p_value, alike=alike)


def ratio_difference(first: Ratio, second: Ratio, by: ByPatient) -> Difference:
    """Value of the first side minus that of the second, of the same patients; both count as `bottom` says.

    Parameters
    ----------
    first, second : Ratio
        Of the same items; an item may count on one side, on both or on none.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    Difference
        The p value of the flips and the interval that inverts them. No end but the one between 0 and the value is nearer than that made from
        the intervals of the two rates, correlated as the sums of the clusters are. Where no cluster differs: what no event in n allows.
    """
    either = np.asarray((first.bottom > 0) | (second.bottom > 0))
    by, first, second = by.at(either), first.at(either), second.at(either)
    if not (first.bottom.any() and second.bottom.any()):
        return Difference(items=int(either.sum()), patients=by.clusters)
    parts, settings = parts_of(first, second, by), by.settings
    found = Difference(value=parts.difference, error=parts.error, items=int(either.sum()), patients=by.clusters, differing=parts.differing)
    if by.clusters == 1:
        return found._replace(p_value=1.0)
    if not parts.differing:
        reach = 1 - (1 - settings.confidence) ** (1 / by.clusters)
        return found._replace(low=-reach, high=reach, p_value=1.0, alike=(1 - settings.margin) ** by.clusters < 1 - settings.confidence)
    test = flip_test(parts, by)
    if all(((side.top >= 0) & (side.top <= side.bottom)).all() for side in (first, second)):
        test = replace(test, least=_from_rates(first, second, by))
    found = found.by_test(test, settings)
    if not test.exact and found.p_value is not None and found.p_value <= 1 / (len(test.lower) + 1):
        # no pattern reaches as far: else no difference, however clear, could pass a correction for a thousand comparisons
        return found._replace(p_value=min(found.p_value, parts.bound))
    return found


def _from_rates(first: Ratio, second: Ratio, by: ByPatient) -> Callable[[float], tuple[float, float]]:
    """Return what makes the interval of a difference from those of two rates of the same patients; a negative correlation counts as none."""
    values = [side.top.sum() / side.bottom.sum() for side in (first, second)]
    sums = by.sums(np.stack([side.top - value * side.bottom for side, value in zip((first, second), values, strict=True)], axis=1))
    spread = np.sqrt((sums[:, 0] ** 2).sum() * (sums[:, 1] ** 2).sum())
    correlation = max(float((sums[:, 0] * sums[:, 1]).sum() / spread), 0.0) if spread > 0 else 0.0

    def ends(confidence: float) -> tuple[float, float]:
        level = by.at_confidence(confidence)
        return square_and_add(first.rate(level), second.rate(level), correlation).ends

    return ends


def square_and_add(first: Interval | Difference, second: Interval | Difference, correlation: float = 0.0) -> Interval:
    """Return the first minus the second of two estimates, with an interval made from theirs.

    Parameters
    ----------
    first, second : Interval or Difference
        The estimates.
    correlation : float
        Between them, 0 to 1; 0 if they are of different patients.

    Returns
    -------
    Interval
        As good as the two intervals are: it stays exact where they are (few patients, none or all right). No bounds where one has none.

    Examples
    --------
    >>> found = square_and_add(Interval(0.8, 0.7, 0.9, "exact"), Interval(0.5, 0.3, 0.6, "exact"))
    >>> [round(number, 3) for number in found[:3]]
    [0.3, 0.159, 0.524]
    """
    if first.value is None or second.value is None:
        return Interval()
    value = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Interval(value, None, None, "none")

    def reach(near: float, far: float) -> float:
        return float(np.sqrt(max(near**2 - 2 * correlation * near * far + far**2, 0.0)))

    down = reach(first.value - first.low, second.high - second.value)
    up = reach(first.high - first.value, second.value - second.low)
    return Interval(value, max(value - down, -1.0), min(value + up, 1.0), "square and add")


SHUFFLES_AT_ONCE = 1_000
"""Shuffles that are made together."""


def unpaired_difference(values: Floats, first: npt.NDArray[np.bool_], by: ByPatient) -> Difference:
    """Mean of one group of patients minus that of another; patients count alike, as in `paired_difference`.

    Parameters
    ----------
    values : ndarray of float, shape (items,)
        Item values, no NaN.
    first : ndarray of bool, shape (items,)
        Items of the first group; a patient belongs to one group.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    Difference
        Labels are shuffled between patients, who keep their items, and the groups their numbers of patients; (hits + 1) / (draws + 1).
        The interval inverts the shuffle; its end away from 0 is no nearer than that made from the intervals of the two means.
    """
    settings, size = by.settings, by.at(first).clusters
    weights = by.item_weights
    sums = by.sums(np.stack([values * weights, weights, first * weights], axis=1))
    rng, apart = np.random.default_rng(settings.seed), []
    for start in range(0, settings.resamples, SHUFFLES_AT_ONCE):
        keys = rng.random((min(SHUFFLES_AT_ONCE, settings.resamples - start), by.clusters))
        # the patients with the smallest keys make the first group
        chosen = (keys <= np.partition(keys, size - 1, axis=1)[:, size - 1, None]).astype(np.float64) @ sums
        rest = sums.sum(axis=0) - chosen
        apart.append(chosen[:, [0, 2]] / chosen[:, [1]] - rest[:, [0, 2]] / rest[:, [1]])
    value = (patients_rate(values[first], by.at(first)).value or 0.0) - (patients_rate(values[~first], by.at(~first)).value or 0.0)
    drawn = np.concatenate(apart)
    test = _test(value, drawn[:, 0], drawn[:, 1], exact=False)
    if ((values >= 0) & (values <= 1)).all():

        def ends(confidence: float) -> tuple[float, float]:
            level = by.at_confidence(confidence)
            return square_and_add(patients_rate(values[first], level.at(first)), patients_rate(values[~first], level.at(~first))).ends

        test = replace(test, least=ends)
    return Difference(value=value, items=len(values), patients=by.clusters, differing=by.clusters).by_test(test, settings)


def can_reject(differing: int, alpha: float) -> bool:
    """Return True if flips of so many clusters that differ can have a p value below a level.

    Examples
    --------
    >>> can_reject(5, 0.05), can_reject(6, 0.05), can_reject(8, 0.05 / 15)
    (False, True, False)
    """
    return 2.0 ** (1 - differing) < alpha


def smallest_difference(error: float, patients: int, alpha: float) -> float | None:
    """Return the smallest true difference that a test would show with the chance `POWER`; None where no difference can be shown.

    Parameters
    ----------
    error : float
        Standard error of such a difference (`Difference.error`).
    patients : int
        Patients behind it.
    alpha : float
        Level of the test.
    """
    from scipy import special

    if not can_reject(patients, alpha):
        return None
    return float((special.stdtrit(patients - 1, 1 - alpha / 2) + special.stdtrit(patients - 1, POWER)) * error)


def patients_to_show(difference: float, error: float, patients: int, alpha: float) -> int | None:
    """Return the number of patients with which a test would show a difference with the chance `POWER`.

    Parameters
    ----------
    difference : float
        The true difference, above 0.
    error : float
        Standard error of a difference of `patients` patients; None is returned where it is 0, because nothing varies.
    patients : int
        Patients behind the error.
    alpha : float
        Level of the test.
    """
    if error <= 0:
        return None
    spread = error * np.sqrt(patients)  # standard deviation of a patient's difference
    low, high = 1, 2
    while not _shows(difference, spread, high, alpha):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _shows(difference, spread, middle, alpha) else (middle, high)
    return high


def _shows(difference: float, spread: float, patients: int, alpha: float) -> bool:
    smallest = smallest_difference(spread / float(np.sqrt(patients)), patients, alpha)
    return smallest is not None and smallest <= difference
