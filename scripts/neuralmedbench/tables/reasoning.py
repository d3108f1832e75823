"""How well answers reason, by graders that label their steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from neuralmedbench.estimates.intervals import NOTHING, Settings, codes_of, rate_interval
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.scoring.llm.reasoning import COMPLETENESS, EFFICIENCY, FACTUALITY
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.study import BenchmarkStudy, Study

MEASURES = (EFFICIENCY, FACTUALITY, COMPLETENESS)

Row = dict[str, Any]


def reasoning_rows(study: Study) -> list[Row]:
    """Rows of `reasoning.csv`: means over answers under the arm full and the strategy direct, with patient-clustered intervals.

    Parameters
    ----------
    study : Study
        The run.

    Returns
    -------
    list of dict
        One row a benchmark, model, grader and measure. `failed` counts answers whose grade is missing; an answer of which the measure
        cannot be told (no step, nothing that the evidence decides) is in neither number.
    """
    return [
        {"benchmark": name, "model": model, "grader": grader} | row
        for name, benchmark in study.benchmarks.items()
        for model in study.models
        for grader in study.graders
        for row in _rows(benchmark, model, benchmark.grades.get((model, grader), []), study)
    ]


def _rows(benchmark: BenchmarkStudy, model: str, grades: list[Grade], study: Study) -> list[Row]:
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


def _row(measure: str, values: list[tuple[float, str]], failed: int, settings: Settings) -> Row:
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
