"""Do models that classify well also reason well? Correlation of breadth and depth scores over models: `axis_correlation.csv`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.over_models import SetScores, corrected_correlation
from neuralmedbench.records.items import Axis
from neuralmedbench.records.words import counted
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study

MODELS_FOR_A_CORRELATION = 8
"""With fewer models a correlation between the axes says too little to be shown. (Our rule.)"""

LEAST_RELIABILITY = 0.5
"""Below this reliability of either score no correlation is shown: its correction would be larger than what was seen. (Our rule.)"""


@dataclass(frozen=True, kw_only=True)
class AxisCorrelationRow(ResultRow):
    """One pair of a breadth and a depth benchmark, over the models with a score on both."""

    breadth_benchmark: str
    depth_benchmark: str
    n_models: int
    breadth_patients: int
    depth_patients: int
    breadth_reliability: float | None = None
    depth_reliability: float | None = None
    correlation: float | None = None
    corrected: float | None = None
    corrected_low: float | None = None
    corrected_high: float | None = None
    note: str | None = None


def axis_correlation_rows(study: Study) -> list[AxisCorrelationRow]:
    """Rows of `axis_correlation.csv`: every pair of a breadth and a depth benchmark; arm full, strategy direct, pass@1."""
    scored = [benchmark for benchmark in study.benchmarks.values() if benchmark.outcomes.items]
    sides = {axis: [benchmark for benchmark in scored if benchmark.config.axis is axis] for axis in (Axis.BREADTH, Axis.DEPTH)}
    return [_row(study, breadth, depth) for breadth in sides[Axis.BREADTH] for depth in sides[Axis.DEPTH]]


def _row(study: Study, breadth: BenchmarkStudy, depth: BenchmarkStudy) -> AxisCorrelationRow:
    real = [name for name, model in study.models.items() if not model.baseline and name not in study.readers]
    models = [name for name in real if all(_is_complete(study, benchmark, name) for benchmark in (breadth, depth))]
    scores = [_scores_of(benchmark, models) for benchmark in (breadth, depth)]
    return AxisCorrelationRow(
        breadth_benchmark=breadth.name,
        depth_benchmark=depth.name,
        n_models=len(models),
        breadth_patients=len({*scores[0].patients}),
        depth_patients=len({*scores[1].patients}),
        **correlation_cells(scores[0], scores[1], study.settings.confidence),
    )


def _is_complete(study: Study, benchmark: BenchmarkStudy, model: str) -> bool:
    counts = benchmark.outcomes.counts[Key(model)]
    return not counts.unanswered and counts.missing_fraction <= study.settings.max_missing_fraction


def _scores_of(benchmark: BenchmarkStudy, models: list[str]) -> SetScores:
    outcomes = benchmark.outcomes
    values = np.array([outcomes.metric("pass1", Key(name)) for name in models]).reshape(len(models), len(outcomes.items))
    return SetScores(values, [item.patient_id for item in outcomes.items])


def correlation_cells(breadth: SetScores, depth: SetScores, confidence: float) -> Cells:
    """Return the cells of `axis_correlation.csv` about scores of real models: a correlation, or the reason why there is none."""
    if len(breadth.values) < MODELS_FOR_A_CORRELATION:
        return {"note": f"fewer than {MODELS_FOR_A_CORRELATION} models"}
    found = corrected_correlation(breadth, depth, confidence)
    first, second = found.reliability
    cells: Cells = {"breadth_reliability": first, "depth_reliability": second}
    if first is None or second is None:
        return cells | {"note": "the models do not differ on one of the sets, or it has one patient"}
    if min(first, second) < LEAST_RELIABILITY:
        return cells | {"note": f"a reliability below {LEAST_RELIABILITY}"}
    if found.low is None:
        return cells | {"note": "too few patients for an interval"}
    return cells | {
        "correlation": found.observed,
        "corrected": found.corrected,
        "corrected_low": found.low,
        "corrected_high": found.high,
    }


def correlation_statement(tables: Tables) -> str:
    """State the corrected correlation of each pair of sets with its interval, or why none is given.

    Two sets are called different only where the whole interval lies below 1.
    """
    rows = tables["axis_correlation"]
    if not rows:
        return "A correlation of breadth and depth needs a benchmark of each kind with enough patients to be shown; this run has none."
    rules = (
        f"It needs at least {MODELS_FOR_A_CORRELATION} real models with a score on both sets, and a split-half reliability of at least "
        f"{LEAST_RELIABILITY} of either score. (Our rules.)"
    )
    parts = "; ".join(_of_pair(row) for row in rows)
    if all(row["corrected"] is None for row in rows):
        return f"No correlation of breadth and depth is given: {parts}. {rules}"
    return (
        "Correlation of breadth and depth over models, corrected for the unreliability of both scores (1: the models differ in the same way "
        f"on both sets): {parts}. The interval is over patients and models, and takes the models as drawn at random, which they are not. "
        f"Values above 1 arise by chance and are shown as measured. {rules}"
    )


def _of_pair(row: Cells) -> str:
    sets = f"{row['breadth_benchmark']} and {row['depth_benchmark']}, {counted(row['n_models'], 'model')}"
    reliability = ""
    if row["breadth_reliability"] is not None and row["depth_reliability"] is not None:
        reliability = f"; reliability {row['breadth_reliability']:.2f} and {row['depth_reliability']:.2f}"
    if row["corrected"] is None:
        return f"{sets}: {row['note']}{reliability}"
    low, high = row["corrected_low"], row["corrected_high"]
    reading = "below 1 with its whole interval" if high < 1 else "the interval is not below 1, so no difference between the sets is shown"
    return f"{sets}: {row['corrected']:.2f} ({low:.2f} to {high:.2f}), {reading} (uncorrected {row['correlation']:.2f}{reliability})"


TABLE = Table(
    name="axis_correlation",
    row=AxisCorrelationRow,
    rows=of_study(axis_correlation_rows),
    suppression=Suppression("breadth_benchmark depth_benchmark", mark="", patients=""),
)
