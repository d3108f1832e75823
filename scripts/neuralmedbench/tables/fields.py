"""Structured answers by field, labels and values: topic `fields`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient, rate_interval
from neuralmedbench.records.items import Gold, Runner
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Score
from neuralmedbench.scoring.structured.form import form_of
from neuralmedbench.scoring.structured_answer import FIELDS, gold_labels
from neuralmedbench.tables.declare import Cells, Measure, MeasureRow, ModelRows, ends_of, of_models, topic
from neuralmedbench.tables.outcomes import headline

LABEL = "label"
"""Rule of a field whose answer is a label: only there has macro F1 a meaning."""

OVERLAPS = (0.3, 0.5, 0.7)
"""Overlaps of boxes from which an answer is counted, as in MedSG-Bench."""


class FieldReference(NamedTuple):
    """What is right in one field of one item: the label or value, and its rule."""

    truth: str
    rule: str


class FieldAnswer(NamedTuple):
    """One field of one scored answer: the score, its reference, and the labels that it may be, where the item lists them."""

    score: Score
    reference: FieldReference
    allowed: frozenset[str | None] | None

    def given(self, field: str) -> str:
        """Return the label or value of an answer; empty for an abstention, an unread value, and any refused or truncated answer."""
        return (self.score.fields or {}).get(field, "") if self.score.state == ResponseState.OK else ""


def references_of(gold: Gold) -> dict[str, FieldReference]:
    """Return the reference of each field of a structured item; empty without one."""
    labels = gold_labels(gold.fields) if gold.fields is not None else {}
    values = {value.field: FieldReference(value.value, value.rule) for value in gold.values}
    return {name: FieldReference(label, LABEL) for name, label in labels.items()} | values


@of_models("fields")
def field_rows(made: ModelRows) -> Iterator[MeasureRow]:
    """Structured answers, field by field (`value_of_slice`).

    A value that could not be read is not right; a field whose rule only describes has no
    `accuracy`.
    """
    benchmark = made.benchmark
    references = {gold.item_id: fields for gold in benchmark.gold if (fields := references_of(gold))}
    forms = {item.item_id: form_of(item.answer_schema) for item in benchmark.items if item.runner is Runner.STRUCTURED}
    by_field: dict[str, list[FieldAnswer]] = {name: [] for fields in (FIELDS, *references.values()) for name in fields}
    for row in headline(benchmark.scores[made.model]):
        # missing answers are left out of field accuracies
        if row.item_id not in references or row.fields_right is None or row.missing:
            continue
        for field in {**row.fields_right, **(row.fields_share or {})}:
            if field in references[row.item_id]:
                by_field[field].append(FieldAnswer(row, references[row.item_id][field], forms[row.item_id].labels.get(field)))
    for field, answers in by_field.items():
        if answers:
            yield from _field_rows(made, field, answers)


def _field_rows(made: ModelRows, field: str, answers: Sequence[FieldAnswer]) -> Iterator[MeasureRow]:
    by = ByPatient([row.score.patient_id for row in answers], made.study.settings)
    right = np.array([(row.score.fields_right or {}).get(field, np.nan) for row in answers], dtype=np.float64)
    shares = np.array([(row.score.fields_share or {}).get(field, np.nan) for row in answers], dtype=np.float64)
    rules = {row.reference.rule for row in answers}
    labels, number = [row.given(field) for row in answers], len(answers)
    named = sum(map(bool, labels))
    listed = [label in row.allowed for label, row in zip(labels, answers, strict=True) if label and row.allowed is not None]
    cells: Cells = {"slice": "field", "value_of_slice": field, "n_patients": by.clusters}
    cells["n_items"] = len({row.score.item_id for row in answers})
    for measure, values in (("accuracy", right), ("mean_share", shares)):
        if not np.isnan(values).all():
            yield made.plain(measure, **ends_of(rate_interval(values, by)), n_answers=number, **cells)
    rates: dict[str, tuple[float | None, int]] = {}
    if rules == {LABEL} and named:
        rates["macro_f1"] = macro_f1([row.reference.truth for row in answers], labels), number
    if rules == {"box"} and not np.isnan(shares).all():
        rates |= {f"share_from_{least:.1f}".replace(".", "_"): (float(np.mean(shares >= least)), number) for least in OVERLAPS}
    rates["coverage"] = named / number, number
    if named and not np.isnan(right).all():
        rates["selective_accuracy"] = float(np.nansum(right)) / named, named
    rates["abstained"] = sum(field in row.score.fields_abstained for row in answers) / number, number
    if listed:
        rates["out_of_vocabulary"] = listed.count(False) / len(listed), len(listed)
    for measure, (value, of) in rates.items():
        yield made.plain(measure, value=value, n_answers=of, **cells)


def macro_f1(truth: list[str], given_labels: list[str]) -> float | None:
    """Return the mean F1 over the classes that occur in the reference; an abstention (empty) belongs to none.

    Examples
    --------
    >>> macro_f1(["a", "a", "b"], ["a", "", "b"])
    0.8333333333333333
    """
    if not truth:
        return None
    pairs = [(wanted.casefold(), given.casefold()) for wanted, given in zip(truth, given_labels, strict=True)]
    hits = Counter(wanted for wanted, given in pairs if wanted == given)
    wanted_total, given_total = Counter(wanted for wanted, _ in pairs), Counter(given for _, given in pairs)
    return float(np.mean([2 * hits[name] / (wanted_total[name] + given_total[name]) for name in wanted_total]))


MEASURES = (
    Measure(
        "accuracy",
        "Right",
        "Answers that are right in the field, of all that came; an abstention is not right.",
    ),
    Measure(
        "mean_share",
        "Agreement",
        "Mean agreement with the reference, in fields whose rule has degrees.",
    ),
    Measure(
        "macro_f1",
        "Macro F1",
        "Mean F1 over the labels that occur in the reference.",
        "number",
    ),
    Measure(
        "coverage",
        "Coverage",
        "Answers that name a label or a readable value, of all that came.",
    ),
    Measure(
        "selective_accuracy",
        "Right where answered",
        "Right answers, of those that name a label or a readable value.",
    ),
    Measure("abstained", "Abstained", "Answers that abstain in the field, of all that came."),
    Measure(
        "out_of_vocabulary",
        "Labels not allowed",
        "Named labels that the item does not list, of all named labels.",
    ),
    Measure(
        "share_from_0_3",
        "Overlap of 0.3",
        "Boxes whose intersection over union with the reference is at least 0.3, of all boxes.",
        main=False,
    ),
    Measure(
        "share_from_0_5",
        "Overlap of 0.5",
        "Boxes whose intersection over union with the reference is at least 0.5, of all boxes.",
        main=False,
    ),
    Measure(
        "share_from_0_7",
        "Overlap of 0.7",
        "Boxes whose intersection over union with the reference is at least 0.7, of all boxes.",
        main=False,
    ),
)

FIELD_ACCURACY = topic(
    "fields",
    field_rows,
    MEASURES,
    labels=lambda row: [(f"field {row['value_of_slice']}", "")],
)
