"""How well answers reason, by graders that label their steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import NOTHING, IntervalSettings, codes_of, rate_interval
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.records.words import counted
from neuralmedbench.scoring.llm.reasoning import COMPLETENESS, EFFICIENCY, FACTUALITY
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, value_share

MEASURES = (EFFICIENCY, FACTUALITY, COMPLETENESS)


@dataclass(frozen=True, kw_only=True)
class ReasoningRow(ResultRow):
    """One measure of the reasoning of one model, by one grader."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    grader: str
    measure: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    n_patients: int | None = None
    failed: int | None = None


def reasoning_rows(study: Study) -> list[ReasoningRow]:
    """Rows of `reasoning.csv`: means over answers under the arm full and the strategy direct, with patient-clustered intervals.

    One row a benchmark, model, grader and measure. `failed` counts answers whose grade is missing; an answer of which the measure
    cannot be told (no step, nothing that the evidence decides) is in neither number.
    """
    return [
        ReasoningRow(benchmark=name, model=model, grader=grader, **row)
        for name, benchmark in study.benchmarks.items()
        for model in study.models
        for grader in study.graders
        for row in _rows(benchmark, model, benchmark.grades.get((model, grader), []), study)
    ]


def _rows(benchmark: BenchmarkStudy, model: str, grades: list[Grade], study: Study) -> list[Cells]:
    patients = {
        (response_key(row), row.text_sha256): row.patient_id for row in benchmark.scores[model] if (row.arm, row.strategy) == (FULL, DIRECT)
    }
    known: dict[str, list[tuple[float, str]]] = defaultdict(list)
    failed: Counter[str] = Counter()
    for grade in grades:
        patient = patients.get((response_key(grade), grade.text_sha256))
        if grade.criterion not in MEASURES or patient is None:
            continue
        if grade.state is GradeState.OK and grade.value is not None:
            known[grade.criterion].append((grade.value, patient))
        else:
            failed[grade.criterion] += 1
    return [_row(measure, known[measure], failed[measure], study.settings) for measure in MEASURES if known[measure] or failed[measure]]


def _row(measure: str, values: list[tuple[float, str]], failed: int, settings: IntervalSettings) -> Cells:
    clusters = codes_of([patient for _, patient in values])
    found = rate_interval(np.array([value for value, _ in values], dtype=np.float64), clusters, settings) if values else NOTHING
    return {
        "measure": measure,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "n": len(values),
        "n_patients": len({patient for _, patient in values}),
        "failed": failed,
    }


def reasoning_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say how much of the reasoning the evidence of the case supports."""
    rows = [row for row in tables["reasoning"] if row["value"] is not None]
    factual = [row for row in rows if row["measure"].endswith("factuality")]
    n = counted(sum(row["n"] for row in factual or rows[:1]), "labelled answer")
    if not factual:
        return Takeaway("No steps of the reasoning were labelled in this run.", n)
    told = [f"{study.models[row['model']].title} {value_share(row)}" for row in factual[:4]]
    return Takeaway(f"Of the steps that the evidence decides, it supports: {', '.join(told)}.", n)


TABLE = Table(
    name="reasoning",
    row=ReasoningRow,
    rows=of_study(reasoning_rows),
    suppression=Suppression(f"{MODEL} grader measure"),
    takeaways={"steps": reasoning_takeaway},
)
