"""Rates by arm and by group of items, those of the best constant answer, and both readings of pass@5: topic `rates`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.arm_changes import CHOICE
from neuralmedbench.records.items import is_headline
from neuralmedbench.records.results import LEFT_OPEN, PRIOR, RANKED_DIFFERENTIAL
from neuralmedbench.records.words import counted
from neuralmedbench.tables.declare import (
    ALL,
    RANKED,
    REPEATABLE,
    SCORED,
    Cells,
    Measure,
    MeasureRow,
    ModelRows,
    arm_labels,
    of_benchmarks,
    topic,
)
from neuralmedbench.tables.floors import Floor
from neuralmedbench.tables.groups import ItemGroup, Mask, item_groups
from neuralmedbench.tables.leaderboard import OF_DIFFERENTIAL, RATES
from neuralmedbench.tables.missing import BOUNDED, FALSE_ALARM, bounds_of, is_left_open
from neuralmedbench.tables.outcomes import PAIR_METRICS, PAIR_PART, PAIR_RIGHT, PAIR_SAME, PAIR_WRONG, Key
from neuralmedbench.tables.shared_requests import shared_note
from neuralmedbench.tables.study import BenchmarkStudy, Study

FAMILY = "family"
"""The slice by task family."""


UNIVERSES = dict.fromkeys(OF_DIFFERENTIAL, RANKED)
"""Set of items of a rate; other rates are over all items with a reference."""

OF_FAMILIES = {"pass5": REPEATABLE, "all_right": REPEATABLE}
"""Set of items of a rate within one family, where it is another."""

EXACT = frozenset({"pass1", FALSE_ALARM, *UNIVERSES})
"""Rates over all items of their set."""

UNKNOWN = dict.fromkeys(("value", "low", "high"))


@of_benchmarks
def rate_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[MeasureRow]:
    """Rates by arm and strategy, and under the full request by group of items (`slice`).

    The slice `ranked_differential` holds the items over which both readings of pass@5 are counted,
    so that its rates are of the same items. The model `prior`, the best constant answer, has rates
    by family and of this slice. `n_answers` are expected, `left_out` are missing. Where too many
    are, the rate has no value: `low` and `high` are what it would be if all of them had failed, and
    had passed (`method` is `left open`).
    """
    groups = list(item_groups(study, benchmark.outcomes))
    for key in benchmark.outcomes.counts:
        # one rotation of a choice says nothing: topic `title` has all of them
        if not CHOICE.fullmatch(key.arm):
            yield from _rows_of(ModelRows("rates", study, benchmark, key.model), key, groups)
    yield from _constant_rows(ModelRows("rates", study, benchmark, PRIOR), groups)


def _rows_of(made: ModelRows, key: Key, groups: list[ItemGroup]) -> Iterator[MeasureRow]:
    """Yield the rates of a model under an arm that are known, or lie between bounds."""
    outcomes, most = made.outcomes, made.study.settings.max_missing_fraction
    asked = [ItemGroup(ALL, ALL, np.ones(len(outcomes.items), dtype=bool)), *groups]
    if is_headline(key):
        asked.append(ItemGroup(RANKED_DIFFERENTIAL, "true", outcomes.differential_items(key)))
    measures = (*RATES, *PAIR_METRICS, FALSE_ALARM)
    of_items = {within: {name: outcomes.metric(name, key, within_family=within) for name in measures} for within in (False, True)}
    for group in asked:
        for name, values in of_items[group.slice == FAMILY].items():
            row = _rate(made, key, group, name, values) if _is_given(key, group, name) else None
            # a reader who answered a sample of a slice has no rate for the slice
            if row and (key.model not in made.study.readers or (row.left_out or 0) <= most * (row.n_answers or 0)):
                yield row


def _is_given(key: Key, group: ItemGroup, name: str) -> bool:
    """Return True if a group has a rate of this name under an arm: false alarms of normal controls, all others by group under the arm full."""
    if name == FALSE_ALARM:
        return group.slice == "normal_control"
    if group.slice == RANKED_DIFFERENTIAL:
        return name == "pass1" or name in OF_DIFFERENTIAL
    return group.slice == ALL or is_headline(key)


def _rate(made: ModelRows, key: Key, group: ItemGroup, name: str, of_items: Floats) -> MeasureRow | None:
    outcomes, counts, mask = made.outcomes, made.outcomes.counts[key], group.mask
    # without any answer to a group it has no rate, but it may have a mean grade
    answered = name in counts.grades or (counts.missing < counts.samples)[mask].any()
    values = np.where(mask & answered, of_items, np.nan)
    known = ~np.isnan(values)
    note = _note(made, key, group, name, known)
    if not known.any() and not note:
        return None
    row = made.rate(
        name,
        values,
        arm=key.arm,
        strategy=key.strategy,
        interval_of=_interval_of,
        slice=group.slice,
        value_of_slice=group.value,
        n_answers=int(counts.samples[known].sum()),
        left_out=int(counts.missing[known].sum()),
        note=note,
    )
    # a rate is over the items with a value, the mean of a grade and pairs over all that the arm asks
    items = known if name in BOUNDED else mask & outcomes.expected(key)
    if is_left_open(outcomes, key, name, items, made.study.settings.max_missing_fraction):
        worst, best = bounds_of(outcomes, key, name, values, within_family=group.slice == FAMILY)
        row = replace(row, value=None, low=worst, high=best, method="" if worst is None else LEFT_OPEN)
    return row if row.value is not None or row.method == LEFT_OPEN or (name in PAIR_METRICS and note) else None


def _interval_of(values: Floats, by: ByPatient) -> Interval:
    """Return the interval of a rate; none where all items share one request: one draw does not say how far another one would lie."""
    interval = rate_interval(values, by)
    one_draw = by.codes is not by.patients and by.at(~np.isnan(values)).clusters == 1
    return Interval(interval.value) if one_draw else interval


def _note(made: ModelRows, key: Key, group: ItemGroup, name: str, known: Mask) -> str:
    """State that items share requests, and pairs of which this decides the result."""
    outcomes = made.outcomes
    pairs = outcomes.pairs_of_one_request(key) if name in PAIR_METRICS and group.slice == ALL else 0
    if pairs:
        return f"the items of {counted(pairs, 'pair')} share one request: one answer to both is right or wrong about them by construction"
    return shared_note(int(known.sum()), outcomes.request_count(key, known))


def _constant_rows(made: ModelRows, groups: list[ItemGroup]) -> Iterator[MeasureRow]:
    """Yield the rates of the best constant answer."""
    families = [group for group in groups if group.slice == FAMILY]
    for group in (*families, ItemGroup(RANKED_DIFFERENTIAL, "true", made.outcomes.ranked)):
        for name in ("pass1", "candidates5"):
            floor = Floor(*(np.where(group.mask, values, np.nan) for values in made.benchmark.floors[name]))
            if not np.isnan(floor.chosen).all():
                yield _constant_row(made, name, group, floor)


def _constant_row(made: ModelRows, name: str, group: ItemGroup, floor: Floor) -> MeasureRow:
    return made.rate(name, floor.chosen, interval_of=lambda _, by: floor.interval(by), slice=group.slice, value_of_slice=group.value)


def _labels(row: Cells) -> list[Label]:
    part, value = row["slice"], row["value_of_slice"]
    sets = UNIVERSES | OF_FAMILIES if part == FAMILY else UNIVERSES
    universe = RANKED if part == RANKED_DIFFERENTIAL else sets.get(row["measure"], SCORED)
    labels = [*arm_labels(row), (f"{ALL} {universe}", "")]
    if row["model"] == PRIOR and part == FAMILY:  # both of its rates are of one constant
        labels.append((f"{RANKED} {part}", value))
    return labels if part in (ALL, RANKED_DIFFERENTIAL) else [*labels, (f"{universe} {part}", value)]


def _group(row: Cells) -> object:
    """Group the rates of a grouping over the answers that were graded, or items that are pairs: of the other measures the parts decide."""
    exact = row["measure"] in EXACT or row["slice"] == ALL
    return None if exact else tuple(row[name] for name in ("benchmark", "model", "arm", "strategy", "slice", "measure"))


MEASURES = (
    Measure("pass1", "pass@1", "Share of all expected answers that pass, averaged over items and not over patients."),
    Measure(
        "pass5",
        "pass@5, samples",
        "Chance that at least one of five samples passes, over items with five or more.",
    ),
    Measure(
        "candidates5",
        "pass@5, candidates",
        "Answers with the reference among five candidates, of items that ask for a ranking.",
    ),
    Measure(
        "all_right",
        "All five right",
        "Items of which every sample passes, of those with at least five.",
    ),
    Measure(
        PAIR_RIGHT,
        "Pairs: all right",
        "Pairs of items with every member right, of all expected pairs of answers.",
    ),
    Measure(
        PAIR_PART,
        "Pairs: some right",
        "Pairs of items with some members right, of all expected pairs of answers.",
    ),
    Measure(
        PAIR_WRONG,
        "Pairs: none right",
        "Pairs of items with no member right, of all expected pairs of answers.",
    ),
    Measure(
        PAIR_SAME,
        "Pairs: one answer",
        "Pairs of items with one readable answer to all members, of all expected pairs of answers.",
    ),
    Measure(
        "rubric",
        "Rubric",
        "Points earned, of those that the rubric offers, as judged by a language model or a jury.",
        main=False,
    ),
    Measure(
        FALSE_ALARM,
        "False alarms",
        "Answers that name a wrong diagnosis, of all expected answers to normal controls.",
        main=False,
    ),
)

TABLE = topic("rates", rate_rows, MEASURES, labels=_labels, group=_group, takeaways={})
