"""Comparisons of models: paired differences on the same items, differences between groups of patients, ranks and tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.exact import FEW_PATIENTS, variance_of_mean
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, IntervalSettings, expanded_tail, rate_interval, widened

EXACT_FLIPS_UP_TO = 12
"""Up to this many patients every pattern of signs is tried; above it patterns are drawn."""

PAIRS_AT_ONCE = 64
"""Pairs that are resampled together: more take memory and no less time."""

SHUFFLES_AT_ONCE = 1_000
"""Shuffles that are made together."""


class Difference(NamedTuple):
    """A paired difference; `low` and `high` are None when nothing varies, `spread` is its standard error.

    `only_first`, `only_second`: items of which one side alone has a value above 0.5.
    """

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    spread: float
    items: int
    patients: int
    only_first: int | None = None
    only_second: int | None = None


def paired_difference(first: Floats, second: Floats, by: ByPatient) -> Difference:
    """Mean of `first` minus mean of `second` over the items that both have.

    Parameters
    ----------
    first, second : ndarray of float, shape (items,)
        Item values between 0 and 1; NaN where a side has none.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    Difference
        Interval from the patient-clustered bootstrap, with fewer than 30 patients never narrower than Student's t on the sums per patient:
        percentiles are too narrow where only one or two patients differ. Both are widened by `variance_of_mean` where patients have unequal
        numbers of items. p value from flipping the signs of whole patients.
    """
    return paired_differences([(first, second)], by)[0]


def paired_differences(pairs: Sequence[tuple[Floats, Floats]], by: ByPatient) -> list[Difference]:
    """Return the difference of each of many pairs, as `paired_difference` does; pairs with the same items are resampled together.

    Parameters
    ----------
    pairs : sequence of (ndarray of float, ndarray of float), each of shape (items,)
        Item values between 0 and 1; NaN where a side has none.
    by : ByPatient
        Patients of the items.
    """
    found = [Difference(None, None, None, None, 0.0, 0, 0)] * len(pairs)
    alike: dict[bytes, list[int]] = {}
    for place, (first, second) in enumerate(pairs):
        both = ~(np.isnan(first) | np.isnan(second))
        if both.any():
            # pairs with the same items share their resamples
            alike.setdefault(both.tobytes(), []).append(place)
    for key, places in alike.items():
        both = np.frombuffer(key, dtype=bool)
        own = by.at(both)
        for start in range(0, len(places), PAIRS_AT_ONCE):
            some = places[start : start + PAIRS_AT_ONCE]
            gaps = [(pairs[place][0] - pairs[place][1])[both] for place in some]
            resampled = own.resampled_means(np.stack(gaps, axis=1))
            p_values = sign_flip_p(own.sums(np.stack(gaps, axis=1)), own.settings)
            for column, place in enumerate(some):
                passed, other_passed = (side[both] > 0.5 for side in pairs[place])
                found[place] = _difference(gaps[column], own, resampled[:, column], p_values[column])._replace(
                    only_first=int((passed & ~other_passed).sum()), only_second=int((other_passed & ~passed).sum())
                )
    return found


def _difference(gaps: Floats, by: ByPatient, resampled: Floats, p_value: float) -> Difference:
    value, (low, high) = float(gaps.mean()), by.percentiles(resampled)
    if low is not None and high is not None:
        if by.clusters < FEW_PATIENTS:
            near, far = student_interval(gaps, by)
            low, high = min(low, near), max(high, far)
        low, high = widened(value, (low, high), variance_of_mean(gaps, by.codes).widening, -1.0)
    return Difference(value, low, high, p_value, float(np.nanstd(resampled)), len(gaps), by.clusters)


def patient_gaps(first: Floats, second: Floats, by: ByPatient) -> Floats:
    """Return the mean of `first` minus `second` of each patient, over the items that both have; shape (patients with such an item,).

    Parameters
    ----------
    first, second : ndarray of float, shape (items,)
        Item values between 0 and 1; NaN where a side has none.
    by : ByPatient
        Patients of the items.
    """
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return np.zeros(0)
    sums = by.at(both).sums(np.column_stack([(first - second)[both], np.ones(int(both.sum()))]))
    return np.asarray(sums[:, 0] / sums[:, 1])


def student_interval(values: Floats, by: ByPatient) -> tuple[float, float]:
    """Return the interval of a mean by Student's t, its standard error from the sums per patient; two patients at least, no NaN."""
    from scipy import special

    mean = float(values.mean())
    residuals = by.sums((values - mean)[:, None])[:, 0]
    error = np.sqrt(by.clusters / (by.clusters - 1) * (residuals**2).sum()) / len(values)
    half = float(special.stdtrit(by.clusters - 1, 0.5 + by.settings.confidence / 2) * error)
    return mean - half, mean + half


def sign_flip_p(sums: Floats, settings: IntervalSettings) -> list[float]:
    """Test each column for no difference: the share of patterns of flipped patients that lie at least as far from zero.

    Parameters
    ----------
    sums : ndarray of float, shape (patients, columns)
        Sum of the differences of each patient.
    settings : IntervalSettings
        Resamples and seed, used above 12 patients.

    Returns
    -------
    list of float
        Per column. Exact up to 12 patients. Above, (hits + 1) / (draws + 1), so that it is never 0; where no draw lies as far and Hoeffding's
        bound of the exact p value is below 1 / (draws + 1), this bound: else no difference, however clear, could pass a correction for a
        thousand comparisons. The level is kept: above 1 / (draws + 1) the test rejects what the draws reject, and below it less than the
        exact test.

    References
    ----------
    Hoeffding, Journal of the American Statistical Association 58 (1963) 13, theorem 2: P(|sum| >= t) <= 2 exp(-t^2 / (2 sum of squares)).
    """
    count, seen = len(sums), np.array([abs(float(column.sum())) for column in sums.T])
    if count <= EXACT_FLIPS_UP_TO:
        patterns = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)  # one row per binary number: bit set is sign flipped
        return [float(share) for share in (np.abs(patterns @ sums) >= seen - 1e-9).mean(axis=0)]
    hits = (np.abs(_signs(count, settings.resamples, settings.seed) @ sums) >= seen - 1e-9).sum(axis=0)
    smallest = 1 / (settings.resamples + 1)
    squares = np.maximum((sums**2).sum(axis=0), np.finfo(np.float64).tiny)
    bounds = 2 * np.exp(-(seen**2) / (2 * squares))
    return [
        float(bound) if number == 0 and bound < smallest else (int(number) + 1) * smallest
        for number, bound in zip(hits, bounds, strict=True)
    ]


@lru_cache(maxsize=4)
def _signs(patients: int, resamples: int, seed: int) -> Floats:
    """Draw patterns of signs, shape (resamples, patients): every pair of models is tested with the same ones."""
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 2, size=(resamples, patients), dtype=np.int8) * 2 - 1).astype(np.float64)


def shows_difference(p_value: float | None, low: float | None, high: float | None, alpha: float) -> bool:
    """Return True if both a test and an interval show a difference.

    They come from different resamples and can disagree: then nothing is shown. Without an interval (nothing varies) the test decides.

    Parameters
    ----------
    p_value : float or None
        Of the test, corrected if it is one of several.
    low, high : float or None
        Interval of the difference.
    alpha : float
        Level below which the test counts.

    Examples
    --------
    >>> shows_difference(0.03, 0.01, 0.2, 0.05), shows_difference(0.03, -0.01, 0.2, 0.05), shows_difference(0.06, 0.01, 0.2, 0.05)
    (True, False, False)
    """
    return p_value is not None and p_value < alpha and (low is None or high is None or low > 0 or high < 0)


def smallest_difference(spread: float, confidence: float, patients: int, power: float = 0.8) -> float:
    """Smallest true difference that one comparison would detect with the given power.

    Parameters
    ----------
    spread : float
        Standard error of a paired difference, from the bootstrap of patients: it is too small by sqrt((n - 1) / n), which is corrected.
    confidence, power : float
        Confidence level of the test, and the chance to detect the difference.
    patients : int
        Number of patients behind it, at least 2.

    Returns
    -------
    float
        Sum of the two quantiles of Student's t, times the standard error; without Holm's correction for many models.
    """
    from scipy import special

    quantiles = special.stdtrit(patients - 1, 0.5 + confidence / 2) + special.stdtrit(patients - 1, power)
    return float(quantiles * spread * np.sqrt(patients / (patients - 1)))


def square_and_add(first: Interval | Difference, second: Interval | Difference) -> Interval:
    """Return the first minus the second of two independent estimates, with an interval made from theirs.

    Parameters
    ----------
    first, second : Interval or Difference
        Of different patients.

    Returns
    -------
    Interval
        As good as the two intervals are: it stays exact where they are (few patients, none or all right). No bounds where one has none.

    References
    ----------
    Newcombe, Statistics in Medicine 17 (1998) 873, method 10; for any two intervals: Zou and Donner, ibid. 27 (2008) 1693.

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
    down = np.hypot(first.value - first.low, second.high - second.value)
    up = np.hypot(first.high - first.value, second.value - second.low)
    return Interval(value, float(value - down), float(value + up), "square and add")


def difference_of_rates(first: Floats, second: Floats, by: ByPatient) -> Difference:
    """Return `paired_difference`, where events are few no narrower than an interval made from those of the two rates.

    Of twelve patients with 15 % errors, of which the second column has fewer, the former alone holds the true value in 88 to 90 % of studies.

    References
    ----------
    Newcombe, Statistics in Medicine 17 (1998) 2635, method 10, with the correlation of the sums per patient in place of phi; a negative one
    counts as none.
    """
    found = paired_difference(first, second, by)
    if found.value is None:
        return found
    both = ~(np.isnan(first) | np.isnan(second))
    by = by.at(both)
    pair = np.column_stack([first[both], second[both]])
    one, other = (rate_interval(column, by) for column in pair.T)
    if not {one.method, other.method} & {"exact", "exact one-sided"}:
        return found
    sums = by.sums(pair - pair.mean(axis=0))
    spread = np.sqrt((sums[:, 0] ** 2).sum() * (sums[:, 1] ** 2).sum())
    alike = max(float((sums[:, 0] * sums[:, 1]).sum() / spread), 0.0) if spread > 0 else 0.0

    def reach(near: float, far: float) -> float:
        return float(np.sqrt(max(near**2 - 2 * alike * near * far + far**2, 0.0)))

    ends = [one.value, one.low, one.high, other.value, other.low, other.high]
    a, a_low, a_high, b, b_low, b_high = (0.0 if end is None else end for end in ends)  # exact intervals have both ends
    low, high = found.value - reach(a - a_low, b_high - b), found.value + reach(a_high - a, b - b_low)
    low, high = (low, high) if found.low is None or found.high is None else (min(low, found.low), max(high, found.high))
    return found._replace(low=max(low, -1.0), high=min(high, 1.0))


def shuffle_p(values: Floats, first: npt.NDArray[np.bool_], by: ByPatient) -> float:
    """Test two groups of patients for no difference: the share of random divisions whose means lie at least as far apart.

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
    float
        (hits + 1) / (draws + 1), so that it is never 0. Patients keep their items, and the groups their numbers of patients.
    """
    settings, of_first = by.settings, by.at(first).clusters
    sums = by.sums(np.stack([values, np.ones(len(values))], axis=1))
    rng, seen, hits = np.random.default_rng(settings.seed), abs(float(values[first].mean() - values[~first].mean())), 0
    for start in range(0, settings.resamples, SHUFFLES_AT_ONCE):
        keys = rng.random((min(SHUFFLES_AT_ONCE, settings.resamples - start), by.clusters))
        # the patients with the smallest keys make the first group
        chosen = (keys <= np.partition(keys, of_first - 1, axis=1)[:, of_first - 1, None]).astype(np.float64) @ sums
        rest = sums.sum(axis=0) - chosen
        apart = np.abs(chosen[:, 0] / chosen[:, 1] - rest[:, 0] / rest[:, 1])
        hits += int((apart >= seen - 1e-9).sum())
    return (hits + 1) / (settings.resamples + 1)


def rank_ranges(values: Floats, by: ByPatient) -> list[tuple[int, int]]:
    """Range of ranks of each model over the resamples.

    Parameters
    ----------
    values : ndarray of float, shape (items, models)
        Item values.
    by : ByPatient
        Patients of the items.

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
    means = np.round(np.nan_to_num(by.resampled_means(values)), 12)
    tail = expanded_tail(by.clusters, by.settings.confidence)
    # ties take the better rank for the lower end, the worse one for the upper end
    best = stats.rankdata(-means, method="min", axis=1)
    worst = stats.rankdata(-means, method="max", axis=1)
    low = np.quantile(best, tail, axis=0, method="lower")
    high = np.quantile(worst, 1 - tail, axis=0, method="higher")
    return [(int(first), int(last)) for first, last in zip(low, high, strict=True)]


def tiers(order: Sequence[str], p_holm: Mapping[frozenset[str], float], alpha: float) -> dict[str, int]:
    """Group models into tiers: those that are not significantly different from the best of their tier.

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
