"""Rates that missing answers leave open: above the allowed share there is no rate, only what it would be if all of them had failed or passed."""

from __future__ import annotations

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Interval
from neuralmedbench.records.words import ONCE, percent_span
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import PAIR_METRICS, PASS1_STRICT, Key, Outcomes
from neuralmedbench.tables.rows import Cells

BOUNDED = frozenset({"pass1", PASS1_STRICT, "pass5", "candidates5", "all_right"})
"""Rates of which missing answers are part of the denominator, with the two rates if all of them had failed or passed."""

FALSE_ALARM = "false_alarm"
OF_OPEN, OF_RUBRICS = frozenset({"main_condition", "core_diagnosis"}), frozenset({"rubric", "rubric_uncapped"})
"""Means over graded answers, in which refused and truncated ones are 0: to open items, and to items with a rubric."""


def is_left_open(outcomes: Outcomes, key: Key, name: str, items: Mask, limit: float) -> bool:
    """Return True if more than the allowed share of the expected answers to some items has no value of a metric.

    `items` are those over which the metric is; of pairs all their members. What words find of a rubric is never left open: many items have
    no such points by design.
    """
    counts = outcomes.counts[key]
    if name in OF_OPEN | OF_RUBRICS and name in counts.graded:  # points are not counted under every arm
        with_rubric = np.array([bool(gold.rubric) for gold in outcomes.gold], dtype=bool)
        asked, given = items & (outcomes.repeatable if name in OF_OPEN else with_rubric), counts.graded[name]
    elif name in BOUNDED or name in PAIR_METRICS or name == FALSE_ALARM:
        asked, given = items, counts.samples - counts.missing
    else:
        return False
    expected = int(counts.samples[asked].sum())
    return expected - int(given[asked].sum()) > limit * expected


def bounds_of(outcomes: Outcomes, key: Key, name: str, values: Floats, *, within_family: bool = False) -> tuple[float | None, float | None]:
    """Return a rate over the items with a value, if all missing answers had failed, and had passed; None of both for a metric without bounds.

    A missing answer that failed is a false alarm, one that passed is none.
    """
    known = ~np.isnan(values)
    if not known.any() or (name not in BOUNDED and name != FALSE_ALARM):
        return None, None
    mean = float(values[known].mean())
    if name == FALSE_ALARM:
        counts = outcomes.counts[key]
        return float((values + counts.mean_of(counts.missing))[known].mean()), mean
    return mean, float(outcomes.metric(name, key, within_family=within_family, best=True)[known].mean())


def closed(interval: Interval, left_open: bool) -> Interval:
    """Return the estimate, or none if it is left open."""
    return Interval() if left_open else interval


def case_words(row: Cells) -> str:
    """Say between which rates a rate lies that is left open; empty if that is not known.

    Examples
    --------
    >>> case_words({"worst_case": 0.088, "best_case": 0.706})
    '9 to 71 %'
    """
    return percent_span(row.get("worst_case"), row.get("best_case"), ONCE)
