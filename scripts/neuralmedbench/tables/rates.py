"""Rates by arm and by group of items, with those of structured fields: `rates.csv`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Interval, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import is_headline
from neuralmedbench.records.words import counted, plural
from neuralmedbench.tables.declare import ALL, RANKED, REPEATABLE, SCORED, Suppression, Table, arm_labels
from neuralmedbench.tables.fields import field_rows
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.leaderboard import RATES
from neuralmedbench.tables.missing import BOUNDED, bounds_of, is_left_open
from neuralmedbench.tables.outcomes import DIRECT, FULL, PAIR_METRICS, Key, Outcomes
from neuralmedbench.tables.rows import Cells, MeasureRow, ResultRow, Tables
from neuralmedbench.tables.shared_requests import shared_note
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, cluster_of, whole_size

Part = tuple[str, str]
"""A slice and its value."""

FAMILY = "family"
"""The slice by task family."""

UNIVERSES = {"pass5": RANKED, "all_right": RANKED, "candidates5": RANKED}
"""Set of items of a rate; other rates are over all items with a reference."""

OF_FAMILIES = {"pass5": REPEATABLE, "all_right": REPEATABLE}
"""Set of items of a rate within one family, where it is another."""

EXACT = frozenset({"pass1", "false_alarm", *UNIVERSES})
"""Rates over all items of their set."""


@dataclass(frozen=True, kw_only=True)
class RateRow(ResultRow):
    """One rate of one model: an arm over all items, or a group of items."""

    benchmark: str
    axis: str | None = None
    model: str
    in_reference_pool: bool | None = None
    arm: str
    strategy: str | None = None
    slice: str | None = None
    value_of_slice: str | None = None
    metric: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    best_case: float | None = None
    worst_case: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    expected: int | None = None
    missing: int | None = None
    not_graded_fraction: float | None = None
    n_requests: int | None = None
    note: str | None = None


def rate_rows(study: Study) -> list[RateRow]:
    """Rows of `rates.csv`: every arm over all items; arm full, strategy direct also by slice."""
    rows = [row for benchmark in study.benchmarks.values() for row in _rows_of(study, benchmark.outcomes)]
    most = study.settings.max_missing_fraction
    # a reader who answered a sample of a slice has no rate for the slice
    known = (row for row in rows if row["model"] not in study.readers or row["missing"] <= most * row["expected"])
    return [
        RateRow(**row)
        for row in known
        if row["value"] is not None or row["worst_case"] is not None or (row["metric"] in PAIR_METRICS and row["note"])
    ]


def _rows_of(study: Study, outcomes: Outcomes) -> list[Cells]:
    masks: dict[Part, Mask] = {("all", "all"): np.ones(len(outcomes.items), dtype=bool)}
    masks |= {(part, value): mask for part, value, mask in item_groups(study, outcomes)}
    wanted: list[tuple[Key, Part, str]] = []
    for key in outcomes.counts:
        # groups only for the main condition
        parts = masks if is_headline(key) else [("all", "all")]
        wanted += [(key, part, name) for part in parts for name in (*RATES, *PAIR_METRICS)]
        wanted += [(key, part, "false_alarm") for part in masks if part == ("normal_control", "true")]
    # columns of the same items are resampled together; rows keep the order of `wanted`
    together: dict[tuple[Part, str, Key | None], list[Key]] = {}
    for key, part, name in wanted:
        # an arm with shared requests has clusters of its own
        together.setdefault((part, name, key if key in outcomes.requests else None), []).append(key)
    rows: dict[tuple[Key, Part, str], Cells] = {}
    for (part, name, shared), keys in together.items():
        values = np.stack([_values_of(outcomes, key, name, part, masks[part]) for key in keys], axis=1)
        by = outcomes.by_patient(study.settings, *([shared] if shared else []))
        intervals = [rate_interval(column, by) for column in values.T]
        if shared and by.at(~np.isnan(values[:, 0])).clusters == 1:  # one draw: nothing says how far another one would lie
            intervals = [Interval(one.value, None, None, "none") for one in intervals]
        for column, (key, interval) in enumerate(zip(keys, intervals, strict=True)):
            known = ~np.isnan(values[:, column])
            # a rate is over the items with a value, the mean of a grade and pairs over all that the arm asks
            items = known if name in BOUNDED else masks[part] & outcomes.expected(key)
            left_open = is_left_open(outcomes, key, name, items, study.settings.max_missing_fraction)
            row = _rate_row(outcomes, key, part, name=name, known=known, interval=Interval() if left_open else interval)
            worst_case, best_case = bounds_of(outcomes, key, name, values[:, column], within_family=part[0] == FAMILY)
            rows[key, part, name] = row | {"best_case": best_case, "worst_case": worst_case}
    return [rows[one] for one in wanted]


def _rate_row(outcomes: Outcomes, key: Key, part: Part, *, name: str, known: Mask, interval: Interval) -> Cells:
    counts = outcomes.counts[key]
    return {
        "benchmark": outcomes.benchmark,
        "axis": outcomes.axis,
        **key._asdict(),
        "slice": part[0],
        "value_of_slice": part[1],
        "metric": name,
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "interval": interval.method,
        "n_items": int(known.sum()),
        "n_patients": len(set(outcomes.patients[known].tolist())),
        "expected": int(counts.samples[known].sum()),
        "missing": int(counts.missing[known].sum()),
        "not_graded_fraction": counts.not_graded_of(known),
        "n_requests": outcomes.request_count(key, known),
        "note": _note(outcomes, key, part, name, known),
    }


def _note(outcomes: Outcomes, key: Key, part: Part, name: str, known: Mask) -> str | None:
    """State that items share requests, and pairs of which this decides the result."""
    pairs = outcomes.pairs_of_one_request(key) if name in PAIR_METRICS and part == ("all", "all") else 0
    if pairs:
        return f"the items of {counted(pairs, 'pair')} share one request: one answer to both is right or wrong about them by construction"
    return shared_note(int(known.sum()), outcomes.request_count(key, known)) or None


def field_rate_rows(fields: list[MeasureRow], study: Study) -> list[RateRow]:
    """Return the accuracies of fields as rows of `rates.csv`."""
    return [
        RateRow(
            benchmark=row.benchmark,
            axis=str(study.benchmarks[row.benchmark].config.axis),
            model=row.model,
            arm=FULL,
            strategy=DIRECT,
            slice="field",
            value_of_slice=row.value_of_slice,
            metric="field_accuracy",
            value=row.value,
            low=row.low,
            high=row.high,
            n_items=row.n_items,
            n_patients=row.n_patients,
        )
        for row in fields
        if row.measure == "accuracy"
    ]


def _values_of(outcomes: Outcomes, key: Key, name: str, part: Part, mask: Mask) -> Floats:
    """Return item values of a metric in a group; NaN everywhere without any answer to the group."""
    counts, values = outcomes.counts[key], outcomes.metric(name, key, within_family=part[0] == FAMILY)
    known = mask & ~np.isnan(values) if name in counts.grades or (counts.missing < counts.samples)[mask].any() else np.zeros_like(mask)
    return np.where(known, values, np.nan)


def groups_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how many groups are too small for a rate."""
    rows = [row for row in tables["rates"] if row["metric"] == "pass1" and row["slice"] not in ("all", "diagnosis")]
    keys = {(row["benchmark"], row["slice"], row["value_of_slice"]): row["n_patients"] for row in rows}
    known = {key: n for key, n in keys.items() if isinstance(n, int)}
    small = sum(n < 10 for n in known.values())
    text = f"{small} of {counted(len(keys), 'group')} hold fewer than 10 {plural(10, cluster_of(rows))}; no difference between groups was tested."
    return Takeaway(text if known else "No group of this run has a rate.", whole_size(study, tables))


def _rate_labels(row: Cells) -> list[Label]:
    part, value = row["slice"], row["value_of_slice"]
    universe = (UNIVERSES | OF_FAMILIES if part == FAMILY else UNIVERSES).get(row["metric"], SCORED)
    labels = [*arm_labels(row), (f"{ALL} {universe}", "")]
    if part == "field":
        return [*labels, (f"field {value}", "")]
    return labels if part == ALL else [*labels, (f"{universe} {part}", value)]


def _group(row: Cells) -> object:
    """Group the rates of a grouping over the answers that were graded, or items that are pairs: of the other metrics the parts decide."""
    exact = row["metric"] in EXACT or row["slice"] in (ALL, "field")
    return None if exact else tuple(row[name] for name in ("benchmark", "model", "arm", "strategy", "slice", "metric"))


RATES_TABLE = Table(
    name="rates",
    row=RateRow,
    rows=lambda results: rate_rows(results.study) + field_rate_rows(results.once(field_rows), results.study),
    suppression=Suppression(
        "benchmark axis model in_reference_pool arm strategy slice value_of_slice metric", labels=_rate_labels, group=_group
    ),
    takeaways={"groups": groups_takeaway},
)
