"""What answers name for each reference (`readings.csv`), and the accuracy by target condition: topic `accuracy`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuralmedbench.tables.clinical.readings import (
    INDETERMINATE,
    READ,
    DiagnosticItems,
    Readings,
    TargetCondition,
    diagnostic_items,
    readings_of,
)
from neuralmedbench.tables.declare import (
    MODEL,
    Cells,
    Count,
    CountRow,
    Measure,
    MeasureRow,
    ModelRow,
    ModelRows,
    Suppression,
    Table,
    of_benchmarks,
    topic,
)
from neuralmedbench.tables.study import BenchmarkStudy, Study

SENSITIVITY, SPECIFICITY, BEST_CASE = "sensitivity", "specificity", "best_case"
"""Measures; the last is one of the others if all indeterminate answers were right."""

SIDES = ("with", SENSITIVITY, "tp", "fn"), ("without", SPECIFICITY, "tn", "fp")
"""Measure and counts of the items with a target condition, and of those without it."""


@of_benchmarks
def accuracy_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[MeasureRow | CountRow]:
    """Answers read as a diagnostic test, by target condition (`value_of_slice`).

    `slice` says whether the items are those with the condition or without it.
    """
    asked = diagnostic_items(study, benchmark)
    targets = asked.targets
    for model in study.models if targets else ():
        made = ModelRows("accuracy", study, benchmark, model)
        readings = readings_of(study, benchmark, model, asked)
        for target in targets:
            yield from _rows_of(made, asked, readings, target)


def _rows_of(made: ModelRows, asked: DiagnosticItems, readings: Readings, target: TargetCondition) -> Iterator[MeasureRow | CountRow]:
    having = asked.having(target)
    right = readings.read & (readings.naming(target) == having[readings.places])
    for items, (side, measure, hit, miss) in zip((having, asked.lacking(target)), SIDES, strict=True):
        answered = items[readings.places]
        answers, expected = int(answered.sum()), int(readings.expected[items].sum())
        cells: Cells = {"slice": f"{side} {target.kind}", "value_of_slice": target.name}
        cells |= {"n_items": int(items.sum()), "n_patients": asked.patients_of(items)}
        for name, event in ((measure, right), (BEST_CASE, right | ~readings.read)):
            values = np.full(len(made.outcomes.items), np.nan)
            if readings.complete:
                values[asked.places] = np.where(items, readings.share(event), np.nan)
            yield made.rate(name, values, n_answers=answers, left_out=expected - answers, **cells)
        for name, event in ((hit, right), (miss, readings.read & ~right), ("indeterminate", ~readings.read)):
            yield made.count(name, int((event & answered).sum()), expected, **cells)


MISSING = "missing"
UNNAMED = (*INDETERMINATE, MISSING)
"""In the column `named`: answers that name no family."""


@dataclass(frozen=True, kw_only=True)
class ReadingRow(ModelRow):
    """Number of answers of one model that name one family where the reference is of another, or of the same.

    An answer that names none is `refused`, `truncated`, `unparsable`, `abstained` or `unrecognised` (words that the vocabulary lacks);
    `missing` ones did not come.
    """

    reference: str
    named: str
    answers: Count = None
    n_items: Count = None
    n_patients: Count = None


@of_benchmarks
def reading_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[ReadingRow]:
    """Rows of `readings.csv`: cells of the cross-tabulation with an answer, and its diagonal; items and patients are those of the reference."""
    asked = diagnostic_items(study, benchmark)
    groups = np.array([truth.group for truth in asked.truth])
    for model in study.models:
        readings = readings_of(study, benchmark, model, asked)
        named = [finding.group if finding.state == READ else finding.state for finding in readings.named]
        for reference in sorted(set(groups.tolist())) if named else ():
            own = groups == reference
            counts = Counter({reference: 0})
            counts.update(name for place, name in zip(readings.places, named, strict=True) if own[place])
            if missing := int(readings.expected[own].sum()) - counts.total():
                counts[MISSING] = missing
            for name in sorted(counts, key=lambda name: (name in UNNAMED, name)):
                yield ReadingRow(
                    benchmark=benchmark.name,
                    model=model,
                    reference=reference,
                    named=name,
                    answers=counts[name],
                    n_items=int(own.sum()),
                    n_patients=asked.patients_of(own),
                )


MEASURES = (
    Measure(
        SENSITIVITY,
        "Sensitivity",
        "Answers that name the condition, of all answers to items with it; indeterminate answers count as wrong.",
    ),
    Measure(
        "tp",
        "True positives",
        "Answers that name the condition, about items with it.",
        "number",
    ),
    Measure(
        "fn",
        "False negatives",
        "Answers to items with the condition that name another diagnosis, or normal; indeterminate answers are counted separately.",
        "number",
    ),
    Measure(
        SPECIFICITY,
        "Specificity",
        "Answers that do not name it, of all answers to items without it; indeterminate answers count as wrong.",
    ),
    Measure(
        "tn",
        "True negatives",
        "Answers to items without the condition that name another diagnosis, or normal.",
        "number",
    ),
    Measure(
        "fp",
        "False positives",
        "Answers that name the condition, about items without it.",
        "number",
    ),
    Measure(
        "indeterminate",
        "Indeterminate",
        "Answers that name no diagnosis that can be compared; `readings.csv` has the reasons.",
        "number",
    ),
    Measure(
        BEST_CASE,
        "At best",
        "Sensitivity or specificity if every indeterminate answer were right.",
        main=False,
    ),
)

ACCURACY = topic(
    "accuracy",
    accuracy_rows,
    MEASURES,
    labels=lambda row: [(row["slice"], row["value_of_slice"])],
)

READINGS = Table(
    name="readings",
    row=ReadingRow,
    rows=reading_rows,
    suppression=Suppression(f"{MODEL} reference named", mark="", labels=lambda row: [("confused", row["reference"])]),
)
