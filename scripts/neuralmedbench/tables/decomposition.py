"""Perception or reasoning: the share of errors that is repaired when the findings are disclosed in words: `decomposition.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import NOTHING, ByPatient, Floats, Interval, rate_interval, share_of_errors
from neuralmedbench.records.words import percent_with_span
from neuralmedbench.tables.contrasts import answered
from neuralmedbench.tables.declare import MODEL, Suppression, Table, arm_labels, of_study
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, largest, without_head


class Decomposition(NamedTuple):
    """pass@1 under `full` (f) and with the findings disclosed (d), and the division of the errors."""

    full: Interval
    disclosed: Interval
    perception: Interval
    reasoning: Interval
    drawn: bool
    note: str
    items: int
    patients: int


def decompose(full: Floats, disclosed: Floats, by: ByPatient) -> Decomposition:
    """Divide the errors under `full` into those that the findings repair and those that they do not; over items with a value under both arms.

    perception = (d - f) / (1 - f), reasoning = (1 - d) / (1 - f); not drawn when d < f or there is no error.
    """
    # only items that were asked under both arms
    both = ~(np.isnan(full) | np.isnan(disclosed))
    if not both.any():
        return Decomposition(NOTHING, NOTHING, NOTHING, NOTHING, False, "no item was asked under both arms", 0, 0)
    by = by.at(both)
    pair = np.stack([full[both], disclosed[both]], axis=1)
    rates = [rate_interval(pair[:, column], by) for column in (0, 1)]
    f, d = float(pair[:, 0].mean()), float(pair[:, 1].mean())
    note = "no error under full" if f >= 1 else "the findings made it worse (d < f)" if d < f else ""
    if note:
        return Decomposition(rates[0], rates[1], NOTHING, NOTHING, False, note, len(pair), by.clusters)
    reasoning = share_of_errors(1 - pair[:, 1], 1 - pair[:, 0], by)
    # perception is the complement of reasoning, so its bounds swap
    low, high = (None if bound is None else 1 - bound for bound in (reasoning.high, reasoning.low))
    perception = Interval((d - f) / (1 - f), low, high, reasoning.method)
    return Decomposition(rates[0], rates[1], perception, reasoning, True, "", len(pair), by.clusters)


DISCLOSED = "findings_disclosed"


@dataclass(frozen=True, kw_only=True)
class DecompositionRow(ResultRow):
    """One model: pass@1 under full (f) and with the findings disclosed (d), and the shares of its errors."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    f: float | None = None
    f_low: float | None = None
    f_high: float | None = None
    d: float | None = None
    d_low: float | None = None
    d_high: float | None = None
    perception: float | None = None
    perception_low: float | None = None
    perception_high: float | None = None
    reasoning: float | None = None
    reasoning_low: float | None = None
    reasoning_high: float | None = None
    drawn: bool | None = None
    note: str | None = None
    n_items: int | None = None
    n_patients: int | None = None


def decomposition_rows(study: Study) -> list[DecompositionRow]:
    """Rows of `decomposition.csv`, for the benchmarks that have the arm findings_disclosed."""
    rows = []
    for benchmark in study.benchmarks.values():
        outcomes = benchmark.outcomes
        for model in study.models:
            key = Key(model, DISCLOSED)
            if key not in outcomes.counts:
                continue
            parts = decompose(answered(outcomes, Key(model)), answered(outcomes, key), outcomes.by_patient(study.settings))
            row: Cells = {"benchmark": benchmark.name, "model": model, "drawn": parts.drawn, "note": parts.note}
            row |= {"n_items": parts.items, "n_patients": parts.patients}
            named = {"f": parts.full, "d": parts.disclosed, "perception": parts.perception, "reasoning": parts.reasoning}
            for name, interval in named.items():
                row |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
            rows.append(DecompositionRow(**row))
    return rows


def decomposition_sentence(study: Study, tables: Tables, benchmark: str) -> str:
    """State the share of the best model's errors that the findings in words repair; empty where it is not known."""
    rows = [row for row in tables["decomposition"] if row["benchmark"] == benchmark and row["drawn"] and row["perception_low"] is not None]
    # only models with a rank, the best first
    ranks = {row["model"]: row.get("rank") for row in tables["leaderboard"] if row["benchmark"] == benchmark}
    rows = [row for row in rows if ranks.get(row["model"])]
    if not rows:
        return ""
    row = min(rows, key=lambda row: (ranks[row["model"]], row["model"]))
    title = study.models[row["model"]].title
    share = percent_with_span(row["perception"], row["perception_low"], row["perception_high"])
    return f"Perception or reasoning: telling {title} the findings in words repairs {share} of its errors; the rest is reasoning."


def perception_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise the share of the errors that the findings in words repair."""
    rows = tables["decomposition"]
    parts = [without_head(one) for name in study.benchmarks if (one := decomposition_sentence(study, tables, name))]
    if not parts and rows:
        parts = ["No model's errors can be divided: telling the findings did not help, or no interval is known."]
    return Takeaway(" ".join(parts) or "No item was asked with its findings disclosed, so errors cannot be divided.", largest(rows))


TABLE = Table(
    name="decomposition",
    row=DecompositionRow,
    rows=of_study(decomposition_rows),
    suppression=Suppression(MODEL, labels=lambda row: arm_labels({"arm": DISCLOSED})),
    takeaways={"perception": perception_takeaway},
)
