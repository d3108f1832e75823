"""Accuracy by target condition: `accuracy.csv`, `predictive_values.csv`, and the cross-tabulation of diagnoses in `confusion.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient, Interval, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.words import counted
from neuralmedbench.tables.clinical.readings import (
    ABNORMAL,
    INDETERMINATE,
    NO_DIAGNOSIS,
    UNRECOGNISED,
    DiagnosticItems,
    Readings,
    TargetCondition,
    diagnostic_items,
    readings_of,
)
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.rows import Cells, ModelRow, Tables, with_ends
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


@dataclass(frozen=True, kw_only=True)
class AccuracyRow(ModelRow):
    """Sensitivity, or specificity, of one model for one target condition; `tp` to `missing` count answers."""

    kind: str
    target: str
    measure: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    best_case: float | None = None
    tp: int | None = None
    fn: int | None = None
    fp: int | None = None
    tn: int | None = None
    indeterminate: int | None = None
    refused: int | None = None
    truncated: int | None = None
    unparsable: int | None = None
    abstained: int | None = None
    unrecognised: int | None = None
    missing: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


@dataclass(frozen=True, kw_only=True)
class TargetAnswers:
    """The answers of one model, as a test for one target condition.

    Attributes
    ----------
    having, lacking : ndarray of bool, shape (items,)
        Items with and items without the condition.
    right : ndarray of bool, shape (answers,)
        True positive and true negative answers; an indeterminate one is neither.
    """

    benchmark: str
    model: str
    target: TargetCondition
    asked: DiagnosticItems
    readings: Readings
    having: Mask
    lacking: Mask
    right: Mask

    def expected(self, side: Mask) -> int:
        """Count the answers that are expected to some items."""
        return int(self.readings.expected[side].sum())

    def rate(self, side: Mask, event: Mask, by: ByPatient) -> Interval:
        """Return the rate of answers with a property, shape (answers,), among the answers to some items, shape (items,)."""
        return rate_interval(np.where(side, self.readings.share(event), np.nan), by)


def each_target(study: Study) -> list[TargetAnswers]:
    """Return every model and target condition of every benchmark."""
    found = []
    for benchmark in study.benchmarks.values():
        asked = diagnostic_items(study, benchmark)
        targets = asked.targets
        for model in study.models if targets else ():
            readings = readings_of(study, benchmark, model, asked)
            for target in targets:
                having, lacking = asked.having(target), asked.lacking(target)
                right = readings.read & (readings.naming(target) == having[readings.places])
                found.append(
                    TargetAnswers(
                        benchmark=benchmark.name, model=model, target=target, asked=asked, readings=readings, having=having,
                        lacking=lacking, right=right,
                    )
                )  # fmt: skip
    return found


SENSITIVITY, SPECIFICITY = "sensitivity", "specificity"


def accuracy_rows(study: Study, answers: Sequence[TargetAnswers]) -> list[AccuracyRow]:
    """Rows of `accuracy.csv`: arm full, strategy direct, over the items that ask for a diagnosis."""
    return [_accuracy_row(study, one, measure) for one in answers for measure in (SENSITIVITY, SPECIFICITY)]


def _accuracy_row(study: Study, one: TargetAnswers, measure: str) -> AccuracyRow:
    asked, readings = one.asked, one.readings
    side, (right, wrong) = (one.having, ("tp", "fn")) if measure == SENSITIVITY else (one.lacking, ("tn", "fp"))
    answered = side[readings.places]
    states = [named.state for named, counts in zip(readings.named, answered, strict=True) if counts]
    expected = one.expected(side)
    cells: Cells = {
        right: int((one.right & answered).sum()),
        wrong: int((readings.read & ~one.right & answered).sum()),
        "indeterminate": int((~readings.read & answered).sum()),
        **{state: states.count(state) for state in INDETERMINATE},
        "missing": expected - int(answered.sum()),
    }
    if readings.complete:
        by = asked.by_patient(study.settings)
        main, best = one.rate(side, one.right, by), one.rate(side, one.right | ~readings.read, by)
        cells |= {"value": main.value, "low": main.low, "high": main.high, "best_case": best.value}
    return AccuracyRow(
        benchmark=one.benchmark,
        model=one.model,
        kind=one.target.kind,
        target=one.target.name,
        measure=measure,
        n_items=int(side.sum()),
        n_patients=asked.patients_of(side),
        **cells,
    )


@dataclass(frozen=True, kw_only=True)
class PredictiveValueRow(ModelRow):
    """Predictive values of one model and one target condition, at its prevalence in the set."""

    kind: str
    target: str
    prevalence: float | None = None
    ppv: float | None = None
    ppv_low: float | None = None
    ppv_high: float | None = None
    npv: float | None = None
    npv_low: float | None = None
    npv_high: float | None = None
    n_patients_with: int | None = None
    n_patients_without: int | None = None


def predictive_value_rows(study: Study, answers: Sequence[TargetAnswers]) -> list[PredictiveValueRow]:
    """Rows of `predictive_values.csv`: at the prevalence among the items of the set.

    The intervals are made from those of sensitivity and specificity, each with half of the error.
    """
    halved = replace(study.settings, confidence=(1 + study.settings.confidence) / 2)
    rows = []
    for one in answers:
        if not one.readings.complete:
            continue
        by = one.asked.by_patient(halved)
        sensitivity, specificity = (one.rate(side, one.right, by) for side in (one.having, one.lacking))
        having, lacking = int(one.having.sum()), int(one.lacking.sum())
        prevalence = having / (having + lacking)
        ppv, npv = predictive_values(sensitivity, specificity, prevalence)
        rows.append(
            PredictiveValueRow(
                benchmark=one.benchmark,
                model=one.model,
                kind=one.target.kind,
                target=one.target.name,
                prevalence=prevalence,
                n_patients_with=one.asked.patients_of(one.having),
                n_patients_without=one.asked.patients_of(one.lacking),
                **with_ends({"ppv": ppv, "npv": npv}),
            )
        )
    return rows


@dataclass(frozen=True, kw_only=True)
class ConfusionRow(ModelRow):
    """Number of answers of one model that name one family where the reference is of another, or of the same."""

    reference: str
    named: str
    answers: int | None = None
    share: float | None = None
    low: float | None = None
    high: float | None = None
    n_items: int | None = None
    n_patients: int | None = None


def confusion_rows(study: Study) -> list[ConfusionRow]:
    """Rows of `confusion.csv`: cells of the cross-tabulation with an answer, and its diagonal; shares are of the answers to that reference."""
    rows = []
    for benchmark in study.benchmarks.values():
        asked = diagnostic_items(study, benchmark)
        groups = np.array([truth.group for truth in asked.truth])
        by = asked.by_patient(study.settings)
        for model in study.models:
            readings = readings_of(study, benchmark, model, asked)
            if not readings.complete:
                continue
            named = np.array([one.group for one in readings.named])
            asked_of = groups[readings.places].tolist()
            found = {*zip(asked_of, named.tolist(), strict=True), *((reference, reference) for reference in asked_of)}
            cells = sorted(found, key=lambda cell: (cell[0], _last(cell[1])))
            for reference, group in cells:
                own = groups == reference
                interval = rate_interval(np.where(own, readings.share(named == group), np.nan), by)
                rows.append(
                    ConfusionRow(
                        benchmark=benchmark.name,
                        model=model,
                        reference=reference,
                        named=group,
                        answers=int((own[readings.places] & (named == group)).sum()),
                        share=interval.value,
                        low=interval.low,
                        high=interval.high,
                        n_items=int(own.sum()),
                        n_patients=asked.patients_of(own),
                    )
                )
    return rows


def _last(group: str) -> tuple[bool, str]:
    """Sort key that puts what is no diagnosis after all others."""
    return group in (NO_DIAGNOSIS, UNRECOGNISED), group


def accuracy_takeaway(study: Study, tables: Tables) -> Takeaway:
    """State how often the model of rank 1 tells abnormal from normal."""
    parts, sizes = [], []
    for name, benchmark in study.benchmarks.items():
        own = rows_of_best(tables["accuracy"], tables, name)
        found = {row["measure"]: row for row in own if row["kind"] == ABNORMAL.kind and row["value"] is not None}
        if set(found) != {SENSITIVITY, SPECIFICITY}:
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


def _label(row: Cells, side: str) -> Label:
    return f"{side} {row['kind']}", row["target"]


KEYS = f"{MODEL} kind target"

ACCURACY = Table(
    name="accuracy",
    row=AccuracyRow,
    rows=lambda results: accuracy_rows(results.study, results.once(each_target)),
    suppression=Suppression(f"{KEYS} measure", labels=lambda row: [_label(row, "with" if row["measure"] == SENSITIVITY else "without")]),
    takeaways={"accuracy": accuracy_takeaway},
)

PREDICTIVE_VALUES = Table(
    name="predictive_values",
    row=PredictiveValueRow,
    rows=lambda results: predictive_value_rows(results.study, results.once(each_target)),
    suppression=Suppression(
        KEYS,
        mark="n_patients_with",
        patients="",
        labels=lambda row: [_label(row, side) for side in ("with", "without")],
    ),
)

CONFUSION = Table(
    name="confusion",
    row=ConfusionRow,
    rows=of_study(confusion_rows),
    suppression=Suppression(f"{MODEL} reference named", mark="", labels=lambda row: [("confused", row["reference"])]),
)
