"""The tidy table of rates, by arm and by group of items: `rates.csv`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Interval, rate_intervals
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.words import counted
from neuralmedbench.tables.declare import ALL, RANKED, REPEATABLE, SCORED, Suppression, Table, arm_labels
from neuralmedbench.tables.fields import FieldRow, field_rows
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.leaderboard import RATES
from neuralmedbench.tables.outcomes import DIRECT, FULL, PAIR_METRICS, Key, Outcomes
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, whole_size

Part = tuple[str, str]
"""A slice and its value."""

UNIVERSES = {"pass5": REPEATABLE, "all_right": REPEATABLE, "candidates5": RANKED}
"""Items over which a rate is taken; of the others all that have a reference."""

EXACT = frozenset({"pass1", "false_alarm", *UNIVERSES})
"""Rates over all items of such a universe."""


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
    n_items: int | None = None
    n_patients: int | None = None
    expected: int | None = None
    missing: int | None = None


def rate_rows(study: Study) -> list[RateRow]:
    """Rows of `rates.csv`: every arm over all items; arm full, strategy direct also by slice."""
    rows = [row for benchmark in study.benchmarks.values() for row in _rows_of(study, benchmark.outcomes)]
    most = study.settings.max_missing_fraction
    # of a reader who answered a sample of a slice the rate of the slice is not known
    known = (row for row in rows if row["model"] not in study.readers or row["missing"] <= most * row["expected"])
    return [RateRow(**row) for row in known if row["value"] is not None]


def _rows_of(study: Study, outcomes: Outcomes) -> list[Cells]:
    masks: dict[Part, Mask] = {("all", "all"): np.ones(len(outcomes.items), dtype=bool)}
    masks |= {(part, value): mask for part, value, mask in item_groups(study, outcomes)}
    wanted: list[tuple[Key, Part, str]] = []
    for key in outcomes.counts:
        parts = masks if (key.arm, key.strategy) == (FULL, DIRECT) else [("all", "all")]
        wanted += [(key, part, name) for part in parts for name in (*RATES, *PAIR_METRICS)]
        wanted += [(key, part, "false_alarm") for part in masks if part == ("normal_control", "true")]
    together: dict[tuple[Part, str], list[Key]] = {}
    for key, part, name in wanted:
        together.setdefault((part, name), []).append(key)
    rows: dict[tuple[Key, Part, str], Cells] = {}
    for (part, name), keys in together.items():
        values = np.stack([_values_of(outcomes, key, name, masks[part]) for key in keys], axis=1)
        intervals = rate_intervals(values, outcomes.patients, study.settings)
        for column, (key, interval) in enumerate(zip(keys, intervals, strict=True)):
            rows[key, part, name] = _rate_row(outcomes, key, part, name=name, known=~np.isnan(values[:, column]), interval=interval)
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
    }


def field_rate_rows(fields: list[FieldRow], study: Study) -> list[RateRow]:
    """Repeat the accuracies of `fields.csv` as rows of the tidy table."""
    return [
        RateRow(
            benchmark=row.benchmark,
            axis=str(study.benchmarks[row.benchmark].config.axis),
            model=row.model,
            arm=FULL,
            strategy=DIRECT,
            slice="field",
            value_of_slice=row.field,
            metric="field_accuracy",
            value=row.accuracy,
            low=row.low,
            high=row.high,
            n_items=row.n_items,
            n_patients=row.n_patients,
        )
        for row in fields
    ]


def _values_of(outcomes: Outcomes, key: Key, name: str, mask: Mask) -> Floats:
    """Item values of a metric in a group; NaN everywhere if no answer to the group is there."""
    counts, values = outcomes.counts[key], outcomes.metric(name, key)
    known = mask & ~np.isnan(values) if name in counts.grades or (counts.missing < counts.samples)[mask].any() else np.zeros_like(mask)
    return np.where(known, values, np.nan)


def groups_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say how many groups are too small to read a rate from."""
    rows = [row for row in tables["rates"] if row["metric"] == "pass1" and row["slice"] not in ("all", "diagnosis")]
    keys = {(row["benchmark"], row["slice"], row["value_of_slice"]): row["n_patients"] for row in rows}
    known = {key: n for key, n in keys.items() if isinstance(n, int)}
    small = sum(n < 10 for n in known.values())
    told = f"{small} of {counted(len(keys), 'group')} hold fewer than 10 patients; no difference between groups was tested."
    return Takeaway(told if known else "No group of this run has a rate.", whole_size(study, tables))


def _labels(row: Cells) -> list[Label]:
    universe, part, value = UNIVERSES.get(row["metric"], SCORED), row["slice"], row["value_of_slice"]
    labels = [*arm_labels(row), (f"{ALL} {universe}", "")]
    if part == "field":
        return [*labels, (f"field {value}", "")]
    return labels if part == ALL else [*labels, (f"{universe} {part}", value)]


def _group(row: Cells) -> object:
    """Group the rates of a grouping over the answers that were graded, or items that are pairs: of the other metrics the parts decide."""
    exact = row["metric"] in EXACT or row["slice"] in (ALL, "field")
    return None if exact else tuple(row[name] for name in ("benchmark", "model", "arm", "strategy", "slice", "metric"))


TABLE = Table(
    name="rates",
    row=RateRow,
    rows=lambda results: rate_rows(results.study) + field_rate_rows(results.once(field_rows), results.study),
    suppression=Suppression(
        "benchmark axis model in_reference_pool arm strategy slice value_of_slice metric", labels=_labels, group=_group
    ),
    takeaways={"groups": groups_takeaway},
)
