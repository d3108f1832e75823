"""Readers beside models: on the questions that a reader answered, and on no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from neuralmedbench.estimates.comparisons import paired_difference
from neuralmedbench.estimates.intervals import rate_interval
from neuralmedbench.records.words import counted
from neuralmedbench.tables.contrasts import answered
from neuralmedbench.tables.declare import ALL, SCORED, Suppression, Table, grouped_by, of_study
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key, Outcomes
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, share

SLICES = ("family", "level")


@dataclass(frozen=True, kw_only=True)
class ReaderRow(ResultRow):
    """One reader beside one model, on the items that both answered."""

    benchmark: str
    reader: str | None = None
    title: str | None = None
    simulated: bool | None = None
    model: str
    in_reference_pool: bool | None = None
    slice: str | None = None
    value_of_slice: str | None = None
    reader_pass1: float | None = None
    reader_pass1_low: float | None = None
    reader_pass1_high: float | None = None
    model_pass1: float | None = None
    model_pass1_low: float | None = None
    model_pass1_high: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    seconds_median: float | None = None
    n_items: int | None = None
    n_patients: int | None = None


def reader_rows(study: Study) -> list[ReaderRow]:
    """Rows of `readers.csv`.

    One a reader, other model (readers too) and slice: pass@1 of both with intervals, and reader minus model, paired by item, over the
    items that both answered without a missing sample. All items, then each family and each level. Strata of a round are drawn with
    different probabilities: a rate here is that of the items that were shown, not of the benchmark.
    """
    return [
        ReaderRow(**row) for benchmark in study.benchmarks.values() for reader in study.readers for row in _rows(study, benchmark, reader)
    ]


def _rows(study: Study, benchmark: BenchmarkStudy, reader: str) -> Iterator[Cells]:
    outcomes = benchmark.outcomes
    own = answered(outcomes, Key(reader))
    for name, value, mask in _slices(study, outcomes):
        for model in study.models:
            other = answered(outcomes, Key(model))
            both = mask & ~np.isnan(own) & ~np.isnan(other)
            if model == reader or not both.any():
                continue
            row: Cells = {
                "benchmark": benchmark.name,
                "reader": reader,
                "title": study.models[reader].title,
                "simulated": "simulated" in (study.readers[reader], study.readers.get(model)),
                "model": model,
                "slice": name,
                "value_of_slice": value,
                "seconds_median": _seconds(benchmark, reader, both),
            }
            shown = {"reader": np.where(both, own, np.nan), "model": np.where(both, other, np.nan)}
            for side, values in shown.items():
                rate = rate_interval(values, outcomes.patients, study.settings)
                row |= {f"{side}_pass1": rate.value, f"{side}_pass1_low": rate.low, f"{side}_pass1_high": rate.high}
            found = paired_difference(shown["reader"], shown["model"], outcomes.patients, study.settings)
            row |= {"difference": found.value, "low": found.low, "high": found.high, "p_value": found.p_value}
            yield row | {"n_items": found.items, "n_patients": found.patients}


def _slices(study: Study, outcomes: Outcomes) -> Iterator[tuple[str, str, Mask]]:
    yield "all", "all", np.ones(len(outcomes.items), dtype=bool)
    yield from ((name, value, mask) for name, value, mask in item_groups(study, outcomes) if name in SLICES)


def _seconds(benchmark: BenchmarkStudy, reader: str, both: Mask) -> float | None:
    """Median time for an answer, all its turns together."""
    shown = {item.item_id for item, there in zip(benchmark.outcomes.items, both, strict=True) if there}
    known = [
        row.latency_s
        for row in benchmark.responses[reader]
        if row.item_id in shown and row.latency_s is not None and (row.arm, row.strategy) == (FULL, DIRECT)
    ]
    return median(known) if known else None


def readers_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say how people do on the questions of models."""
    rows = [row for row in tables["readers"] if row["slice"] == "all" and not row["simulated"]]
    if not rows:
        return Takeaway("No clinician has answered the questions of this run.", "0 readers")
    row = max(rows, key=lambda row: (row["n_items"], row["reader"]))
    told = f"{row['title']} passes {share(row, 'reader_pass1')} of the questions, {study.models[row['model']].title} {share(row, 'model_pass1')} of the same"
    n = f"{counted(len({row['reader'] for row in rows}), 'reader')}, up to {counted(row['n_items'], 'question')}, {counted(row['n_patients'], 'patient')}"
    return Takeaway(f"{told}.", n)


TABLE = Table(
    name="readers",
    row=ReaderRow,
    rows=of_study(reader_rows),
    suppression=Suppression(
        "benchmark reader title simulated model in_reference_pool slice value_of_slice",
        labels=lambda row: [] if row["slice"] == ALL else [(f"{SCORED} {row['slice']}", row["value_of_slice"])],
        group=grouped_by("benchmark reader model slice", "slice", (ALL,)),
    ),
    takeaways={"readers": readers_takeaway},
)
