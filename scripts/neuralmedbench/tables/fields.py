"""Structured answers by field, labels and values: `fields.csv`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient, Floats, rate_interval
from neuralmedbench.records.items import Gold, Runner
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Score
from neuralmedbench.scoring.structured.form import form_of
from neuralmedbench.scoring.structured_answer import FIELDS, gold_labels
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, largest, rows_of_best, share

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


@dataclass(frozen=True, kw_only=True)
class FieldRow(ModelRow):
    """One field of the structured answers of one model."""

    field: str
    rule: str = LABEL
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    macro_f1: float | None = None
    mean_share: float | None = None
    mean_share_low: float | None = None
    mean_share_high: float | None = None
    share_from_0_3: float | None = None
    share_from_0_5: float | None = None
    share_from_0_7: float | None = None
    coverage: float | None = None
    selective_accuracy: float | None = None
    answered: int | None = None
    out_of_vocabulary: int | None = None
    abstained: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


def references_of(gold: Gold) -> dict[str, FieldReference]:
    """Return the reference of each field of a structured item; empty without one."""
    labels = gold_labels(gold.fields) if gold.fields is not None else {}
    values = {value.field: FieldReference(value.value, value.rule) for value in gold.values}
    return {name: FieldReference(label, LABEL) for name, label in labels.items()} | values


def field_rows(study: Study) -> list[FieldRow]:
    """Rows of `fields.csv`: every field of the structured answers; arm full, strategy direct.

    `accuracy` is over all answers that are not missing: an abstention is not right, nor is a value that could not be read; empty for a field
    whose rule only describes. `mean_share` is the mean agreement of fields whose rule has degrees (boxes: intersection over union), and
    `share_from_0_3` to `share_from_0_7` the share of boxes that reach this much. `coverage` is the share of the answers that name a label or
    a readable value, and `selective_accuracy` the share of right ones among those (`answered`). `out_of_vocabulary` counts labels that the
    item does not list.
    """
    return [row for benchmark in study.benchmarks.values() for row in _rows_of(study, benchmark)]


def _rows_of(study: Study, benchmark: BenchmarkStudy) -> list[FieldRow]:
    rows = []
    known_fields = {gold.item_id: fields for gold in benchmark.gold if (fields := references_of(gold))}
    names = dict.fromkeys([*FIELDS, *(name for fields in known_fields.values() for name in fields)])
    forms = {item.item_id: form_of(item.answer_schema) for item in benchmark.items if item.runner is Runner.STRUCTURED}
    for model, scores in benchmark.scores.items():
        # missing answers are left out of field accuracies
        asked = [row for row in headline(scores) if row.item_id in known_fields and row.fields_right is not None and not row.missing]
        for field in names:
            known = [
                row
                for row in asked
                if field in known_fields[row.item_id] and field in {**(row.fields_right or {}), **(row.fields_share or {})}
            ]
            answers = [FieldAnswer(row, known_fields[row.item_id][field], forms[row.item_id].labels.get(field)) for row in known]
            if answers:
                rows.append(FieldRow(benchmark=benchmark.name, model=model, field=field, **_field_row(study, field, answers)))
    return rows


def _field_row(study: Study, field: str, answers: list[FieldAnswer]) -> Cells:
    right = np.array([(row.score.fields_right or {}).get(field, np.nan) for row in answers], dtype=np.float64)
    by = ByPatient([row.score.patient_id for row in answers], study.settings)
    interval = rate_interval(right, by)
    rules = sorted({row.reference.rule for row in answers})
    given = [row.given(field) for row in answers]
    named = sum(bool(label) for label in given)
    listed = [(label, row.allowed) for label, row in zip(given, answers, strict=True) if label and row.allowed is not None]
    labels = rules == [LABEL]
    return {
        "rule": ", ".join(rules),
        "accuracy": interval.value,
        "low": interval.low,
        "high": interval.high,
        "macro_f1": macro_f1([row.reference.truth for row in answers], given) if labels and any(given) else None,
        **_agreement(np.array([(row.score.fields_share or {}).get(field, np.nan) for row in answers], dtype=np.float64), by, rules),
        "coverage": named / len(answers),
        "selective_accuracy": float(np.nansum(right)) / named if named and interval.value is not None else None,
        "answered": named,
        "out_of_vocabulary": sum(label not in allowed for label, allowed in listed) if listed or (labels and not named) else None,
        "abstained": sum(field in row.score.fields_abstained for row in answers),
        "n_items": len({row.score.item_id for row in answers}),
        "n_patients": len({row.score.patient_id for row in answers}),
    }


def _agreement(shares: Floats, by: ByPatient, rules: list[str]) -> Cells:
    """Return the mean agreement of a field whose rule has degrees, and the shares of boxes that overlap enough."""
    if np.isnan(shares).all():
        return {}
    mean = rate_interval(shares, by)
    reached = (
        {f"share_from_{least:.1f}".replace(".", "_"): float(np.mean(shares >= least)) for least in OVERLAPS} if rules == ["box"] else {}
    )
    return {"mean_share": mean.value, "mean_share_low": mean.low, "mean_share_high": mean.high, **reached}


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


def fields_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise the best and the worst field of the model with the best rank."""
    rows = tables["fields"]
    for name in study.benchmarks:
        own = [row for row in rows_of_best(rows, tables, name) if row["accuracy"] is not None]
        if own:
            top, low = (pick(own, key=lambda row: (row["accuracy"], row["field"])) for pick in (max, min))
            ends = [
                f"{row['field']} in {share({'p': row['accuracy'], 'p_low': row['low'], 'p_high': row['high']}, 'p')}" for row in (top, low)
            ]
            second = f", and {ends[1]}" if len(own) > 1 else ""
            return Takeaway(f"{study.models[top['model']].title} reads {ends[0]} of the items right{second}.", largest(rows))
    return Takeaway(f"No {'ranked ' if rows else ''}model of this run gave structured answers.", largest(rows))


FIELD_ACCURACY = Table(
    name="fields",
    row=FieldRow,
    rows=of_study(field_rows),
    suppression=Suppression(f"{MODEL} field", labels=lambda row: [(f"field {row['field']}", "")]),
    takeaways={"fields": fields_takeaway},
)
