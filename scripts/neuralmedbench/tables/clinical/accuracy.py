"""What answers name for each reference (`readings.csv`), and the accuracy by target condition: topic `accuracy`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Interval, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.words import counted
from neuralmedbench.tables.clinical.readings import (
    ABNORMAL,
    INDETERMINATE,
    READ,
    DiagnosticItems,
    Readings,
    TargetCondition,
    diagnostic_items,
    readings_of,
)
from neuralmedbench.tables.declare import MODEL, NUMBER, Suppression, Table, of_study
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.rows import Cells, CountRow, MeasureRow, ModelRow, Tables
from neuralmedbench.tables.shapes import ModelRows
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, by_benchmark, largest, rows_of_best, value_share


class Predictive(NamedTuple):
    """A predictive value with its interval."""

    value: float | None
    low: float | None
    high: float | None


def predictive_values(sensitivity: Interval, specificity: Interval, prevalence: float) -> tuple[Predictive, Predictive]:
    """Return the positive and the negative predictive value at a prevalence, by Bayes' formula.

    Parameters
    ----------
    sensitivity, specificity : Interval
        Of different patients. If each interval misses its rate in at most half of the error that is allowed, those returned miss theirs in at
        most all of it (Bonferroni): both values rise with sensitivity and with specificity.
    prevalence : float
        Share of patients with the condition, 0 to 1.

    Returns
    -------
    tuple of Predictive
        Positive and negative predictive value; the value is None where no answer is positive (negative), and the interval where one of
        the rates has none.

    Examples
    --------
    >>> known = Interval(0.9, 0.9, 0.9, "exact"), Interval(0.8, 0.8, 0.8, "exact")
    >>> [round(found.value, 4) for found in predictive_values(*known, 0.1)]
    [0.3333, 0.9863]
    """
    found = []
    for sick, well, share_of_sick in ((sensitivity, specificity, prevalence), (specificity, sensitivity, 1 - prevalence)):
        ends = [_bayes(right, other, share_of_sick) for right, other in zip(sick[:3], well[:3], strict=True)]
        found.append(Predictive(*ends))
    return found[0], found[1]


def _bayes(rate: float | None, other: float | None, prevalence: float) -> float | None:
    """Return the share of right ones among the answers of one kind; None if there is none, or a rate is unknown."""
    if rate is None or other is None:
        return None
    right, wrong = prevalence * rate, (1 - prevalence) * (1 - other)
    return right / (right + wrong) if right + wrong > 0 else None


SENSITIVITY, SPECIFICITY, BEST_CASE = "sensitivity", "specificity", "best_case"
"""Measures; the last is one of the others if all indeterminate answers were right."""

PREVALENCE, PPV, NPV = "prevalence", "ppv", "npv"
"""Measures of all items: the share with the condition, and the predictive values at it."""

SIDES = {"with": (SENSITIVITY, "tp", "fn"), "without": (SPECIFICITY, "tn", "fp")}
"""Measure and counts of the items with a target condition, and of those without it."""


def accuracy_rows(study: Study) -> list[MeasureRow | CountRow]:
    """Measure every target condition, over the items that ask for a diagnosis; arm full, strategy direct.

    `slice` and `value_of_slice` name the condition and the items: those `with` or `without` it, or all for predictive values. These are at
    the prevalence among the items of the set; `n_patients` is the smaller number of patients, with or without the condition.
    """
    rows: list[MeasureRow | CountRow] = []
    for benchmark in study.benchmarks.values():
        asked = diagnostic_items(study, benchmark)
        targets = asked.targets
        for model in study.models if targets else ():
            made = ModelRows("accuracy", study, benchmark, model)
            readings = readings_of(study, benchmark, model, asked)
            for target in targets:
                rows += _rows_of(made, asked, readings, target)
    return rows


def _rows_of(made: ModelRows, asked: DiagnosticItems, readings: Readings, target: TargetCondition) -> Iterator[MeasureRow | CountRow]:
    items = {"with": asked.having(target), "without": asked.lacking(target)}
    right = readings.read & (readings.naming(target) == items["with"][readings.places])
    values = {}
    for side, (measure, hit, miss) in SIDES.items():
        answered = items[side][readings.places]
        expected = int(readings.expected[items[side]].sum())
        cells: Cells = {"slice": f"{side} {target.kind}", "value_of_slice": target.name}
        cells |= {"n_items": int(items[side].sum()), "n_patients": asked.patients_of(items[side])}
        values[side] = _of_items(made, asked, items[side], readings, right)
        answers = int(answered.sum())
        yield made.rate(measure, values[side], n_answers=answers, left_out=expected - answers, **cells)
        if readings.complete:
            best = _of_items(made, asked, items[side], readings, right | ~readings.read)
            yield made.plain(BEST_CASE, value=float(np.nanmean(best)), **cells)
        for name, event in ((hit, right), (miss, readings.read & ~right), ("indeterminate", ~readings.read)):
            yield made.count(name, int((event & answered).sum()), expected, **cells)
    if readings.complete:
        yield from _predictive(made, asked, target, items, values)


def _of_items(made: ModelRows, asked: DiagnosticItems, items: Mask, readings: Readings, event: Mask) -> Floats:
    """Return the share of the answers with a property by item of the benchmark, NaN for all but some items."""
    values = np.full(len(made.outcomes.items), np.nan)
    if readings.complete:
        values[asked.places] = np.where(items, readings.share(event), np.nan)
    return values


def _predictive(
    made: ModelRows, asked: DiagnosticItems, target: TargetCondition, items: Mapping[str, Mask], values: Mapping[str, Floats]
) -> Iterator[MeasureRow]:
    """Yield the predictive values; their intervals are made from those of sensitivity and specificity, each with half of the error."""
    settings = made.study.settings
    by = made.outcomes.by_patient(replace(settings, confidence=(1 + settings.confidence) / 2), made.key())
    having, lacking = (int(items[side].sum()) for side in SIDES)
    prevalence = having / (having + lacking)
    sensitivity, specificity = (rate_interval(values[side], by) for side in SIDES)
    cells: Cells = {"slice": target.kind, "value_of_slice": target.name}
    cells |= {"n_items": having + lacking, "n_patients": min(asked.patients_of(items[side]) for side in SIDES)}
    yield made.plain(PREVALENCE, value=prevalence, **cells)
    for measure, found in zip((PPV, NPV), predictive_values(sensitivity, specificity, prevalence), strict=True):
        yield made.plain(measure, value=found.value, low=found.low, high=found.high, **cells)


@dataclass(frozen=True, kw_only=True)
class ReadingRow(ModelRow):
    """Number of answers of one model that name one family where the reference is of another, or of the same.

    An answer that names none is `refused`, `truncated`, `unparsable`, `abstained` or `unrecognised` (words that the vocabulary lacks);
    `missing` ones did not come.
    """

    reference: str
    named: str
    answers: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


def reading_rows(study: Study) -> list[ReadingRow]:
    """Rows of `readings.csv`: cells of the cross-tabulation with an answer, and its diagonal; items and patients are those of the reference."""
    rows = []
    for benchmark in study.benchmarks.values():
        asked = diagnostic_items(study, benchmark)
        groups = np.array([truth.group for truth in asked.truth])
        for model in study.models:
            readings = readings_of(study, benchmark, model, asked)
            if not readings.scores:
                continue
            counts = Counter[tuple[str, str]]()
            for place, finding in zip(readings.places, readings.named, strict=True):
                counts[groups[place], finding.group if finding.state == READ else finding.state] += 1
            for reference in sorted(set(groups.tolist())):
                own = groups == reference
                cells = {name: number for (group, name), number in counts.items() if group == reference}
                missing = int(readings.expected[own].sum()) - sum(cells.values())
                cells = {reference: 0} | cells | ({MISSING: missing} if missing else {})
                rows += [
                    ReadingRow(
                        benchmark=benchmark.name,
                        model=model,
                        reference=reference,
                        named=name,
                        answers=number,
                        n_items=int(own.sum()),
                        n_patients=asked.patients_of(own),
                    )
                    for name, number in sorted(cells.items(), key=lambda cell: (cell[0] in UNNAMED, cell[0]))
                ]
    return rows


MISSING = "missing"
UNNAMED = (*INDETERMINATE, MISSING)
"""In the column `named`: answers that name no family."""


def accuracy_takeaway(study: Study, tables: Tables) -> Takeaway:
    """State how often the model of rank 1 tells abnormal from normal."""
    parts, sizes = [], []
    for name, benchmark in study.benchmarks.items():
        own = rows_of_best(tables["accuracy"], tables, name)
        rates = [row for row in own if row["measure"] in (SENSITIVITY, SPECIFICITY) and row["value"] is not None]
        found = {row["measure"]: row for row in rates if row["value_of_slice"] == ABNORMAL.name}
        if len(found) < len(SIDES):
            continue
        sick, well = (counted(found[measure]["n_patients"], benchmark.cluster) for measure in (SENSITIVITY, SPECIFICITY))
        sizes.append((name, f"{sick} with and {well} without an abnormality"))
        parts.append(
            f"{benchmark.config.title}: {study.models[own[0]['model']].title} names an abnormality in {value_share(found[SENSITIVITY])} of its "
            f"answers about {sick} with one, and none in {value_share(found[SPECIFICITY])} of those about {well} without."
        )
    if parts:
        return Takeaway(" ".join(parts), by_benchmark(sizes))
    rows = tables["accuracy"]
    text = (
        "Normal against abnormal: no number for a model of rank 1."
        if rows
        else "No target condition has two patients with it and two without it."
    )
    return Takeaway(text, largest(rows))


def _labels(row: Cells) -> list[Label]:
    """Return the items with the condition of a row, those without it, or both."""
    part = row["slice"]
    parts = [part] if part.split()[0] in SIDES else [f"{side} {part}" for side in SIDES]
    return [(name, row["value_of_slice"]) for name in parts]


ACCURACY = Table(
    name="accuracy",
    row=MeasureRow,
    rows=of_study(accuracy_rows),
    suppression=Suppression(NUMBER, labels=_labels),
    takeaways={"accuracy": accuracy_takeaway},
)

READINGS = Table(
    name="readings",
    row=ReadingRow,
    rows=of_study(reading_rows),
    suppression=Suppression(f"{MODEL} reference named", mark="", labels=lambda row: [("confused", row["reference"])]),
)
