"""Rates of the answers that meet a condition, differences between two of them, and the spread of several rates of the same items."""

from __future__ import annotations

import numpy as np

from neuralmedbench.estimates.comparisons import Difference, difference_of_rates, sign_flip_p, square_and_add
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, exact_interval, expanded_tail

SHUFFLES_AT_ONCE = 500
"""Shuffles that are made together."""


def conditional_rate(events: Floats, trials: Floats, by: ByPatient) -> Interval:
    """Share of events among the answers that meet a condition, of which each item has another number.

    Parameters
    ----------
    events, trials : ndarray of float, shape (items,)
        Events and answers that meet the condition, 0 <= events <= trials; an item with no trial does not count.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    Interval
        All answers count alike, whatever item they belong to: the mean of shares of items would be too large or too small where whether an
        answer counts depends on the item's other answers. Intervals by the rules of `rate_interval`, of a ratio.
    """
    counted = np.asarray(trials > 0)
    if not counted.any():
        return Interval()
    own, events, trials = by.at(counted), events[counted], trials[counted]
    exact = exact_interval(events, own, trials)
    return exact or Interval(float(events.sum() / trials.sum()), *own.percentiles(_ratios(events, trials, own)), "bootstrap")


def _ratios(events: Floats, trials: Floats, by: ByPatient) -> Floats:
    """Return the share of events in each resample; NaN in one without a trial."""
    drawn = by.weights @ by.sums(np.stack([events, trials], axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(drawn[:, 0] / drawn[:, 1], dtype=np.float64)


EventsAndTrials = tuple[Floats, Floats]
"""Events and trials of the items."""


def difference_of_conditional_rates(first: EventsAndTrials, second: EventsAndTrials, by: ByPatient) -> Difference:
    """One conditional rate minus another, of the same patients: an item may count on one side, on both, or on none.

    Parameters
    ----------
    first, second : tuple of ndarray of float, each of shape (items,)
        Events and trials of each side, as in `conditional_rate`.
    by : ByPatient
        Patients of the items.

    Returns
    -------
    Difference
        Percentiles of the bootstrap of patients, in which both sides are drawn together; where one of the two rates has an exact interval
        (few patients, few events, none or all), no narrower than the interval made from those of the two (`square_and_add`). p value from
        flipping the signs of whole patients in what they contribute if both rates were one (a score test): 1 where both rates are equal.
        `items` and `patients` are those of either side.
    """
    either = np.asarray((first[1] > 0) | (second[1] > 0))
    own = by.at(either)
    sides = [(events[either], trials[either]) for events, trials in (first, second)]
    rates = [conditional_rate(*side, own) for side in sides]
    if rates[0].value is None or rates[1].value is None:
        return Difference(None, None, None, None, 0.0, int(either.sum()), own.clusters)
    drawn = _ratios(*sides[0], own) - _ratios(*sides[1], own)
    found = [own.percentiles(drawn)]
    if any(rate.method.startswith("exact") for rate in rates) or None in found[0]:
        made = square_and_add(*rates)
        found.append((made.low, made.high))
    low, high = (
        min((end[0] for end in found if end[0] is not None), default=None),
        max((end[1] for end in found if end[1] is not None), default=None),
    )
    # if both rates were one, what a patient adds to the difference would be as likely of either sign
    common = sum(float(events.sum()) for events, _ in sides) / sum(float(trials.sum()) for _, trials in sides)
    parts = [(events - common * trials) / trials.sum() for events, trials in sides]
    (p_value,) = sign_flip_p(own.sums((parts[0] - parts[1])[:, None]), own.settings)
    low, high = (None if low is None else max(low, -1.0)), (None if high is None else min(high, 1.0))
    return Difference(rates[0].value - rates[1].value, low, high, p_value, float(np.nanstd(drawn)), int(either.sum()), own.clusters)


def spread_of_means(values: Floats, by: ByPatient) -> tuple[Interval, float | None]:
    """Largest minus smallest of the means of several columns over the same items.

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
    value = float(_spread(values.mean(axis=0)[None, :])[0])
    drawn = _spread(own.resampled_means(values))
    settings, sums = own.settings, own.sums(values)
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
        means = values.mean(axis=0)
        found = difference_of_rates(values[:, means.argmax()], values[:, means.argmin()], own)
        return Interval(value, (found.low if rejected else 0.0) if found.low is not None else None, found.high, "exact"), p_value
    # the extremes were chosen by their means: the lower tail is divided among the other columns
    tail = expanded_tail(own.clusters, settings.confidence)
    reach = float(np.quantile(drawn, 1 - tail / (values.shape[1] - 1)))
    low = max(2 * value - reach, 0.0) if rejected else 0.0
    return Interval(value, min(low, value), max(float(np.quantile(drawn, 1 - tail)), value), "bootstrap"), p_value


def _spread(means: Floats) -> Floats:
    return np.asarray(means.max(axis=1) - means.min(axis=1), dtype=np.float64)
