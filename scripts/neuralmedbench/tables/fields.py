"""Accuracy, coverage and F1 of every field of the structured answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import codes_of, rate_interval
from neuralmedbench.records.items import Runner
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Score
from neuralmedbench.scoring.structured.form import form_of
from neuralmedbench.scoring.structured_answer import FIELDS, gold_labels
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, best_of, largest, share


class FieldAnswer(NamedTuple):
    """One field of one scored answer: the score, the label that is true, and the labels that it may be, where the item lists them."""

    score: Score
    truth: str
    allowed: frozenset[str | None] | None

    def said(self, field: str) -> str:
        """Label that was given; empty for an abstention, and of a refused or truncated answer, whatever it holds."""
        return (self.score.fields or {}).get(field, "") if self.score.state == ResponseState.OK else ""


@dataclass(frozen=True, kw_only=True)
class FieldRow(ResultRow):
    """One field of the structured answers of one model."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    field: str
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    macro_f1: float | None = None
    coverage: float | None = None
    selective_accuracy: float | None = None
    answered: int | None = None
    out_of_vocabulary: int | None = None
    abstained: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


def field_rows(study: Study) -> list[FieldRow]:
    """Rows of `fields.csv`: every field of the structured answers; arm full, strategy direct.

    `accuracy` is over all answers that are not missing: an abstention is not right. `coverage` is the share of them that names a label, and
    `selective_accuracy` the share of right ones among those (`answered`). `out_of_vocabulary` counts labels that the item does not list.
    """
    rows = []
    for benchmark in study.benchmarks.values():
        reference = {gold.item_id: gold_labels(gold.fields) for gold in benchmark.gold if gold.fields is not None}
        forms = {item.item_id: form_of(item.answer_schema) for item in benchmark.items if item.runner is Runner.STRUCTURED}
        for model, scores in benchmark.scores.items():
            asked = [row for row in headline(scores) if row.item_id in reference and row.fields_right is not None and not row.missing]
            for field in FIELDS:
                known = [row for row in asked if field in (row.fields_right or {}) and field in reference[row.item_id]]
                answers = [FieldAnswer(row, reference[row.item_id][field], forms[row.item_id].labels.get(field)) for row in known]
                if answers:
                    rows.append(FieldRow(benchmark=benchmark.name, model=model, field=field, **_field_row(study, field, answers)))
    return rows


def _field_row(study: Study, field: str, answers: list[FieldAnswer]) -> Cells:
    right = np.array([(row.score.fields_right or {})[field] for row in answers], dtype=np.float64)
    interval = rate_interval(right, codes_of([row.score.patient_id for row in answers]), study.settings)
    said = [row.said(field) for row in answers]
    named = sum(bool(label) for label in said)
    listed = [(label, row.allowed) for label, row in zip(said, answers, strict=True) if label and row.allowed is not None]
    return {
        "accuracy": interval.value,
        "low": interval.low,
        "high": interval.high,
        "macro_f1": macro_f1([row.truth for row in answers], said) if any(said) else None,
        "coverage": named / len(answers),
        "selective_accuracy": float(right.sum()) / named if named else None,
        "answered": named,
        "out_of_vocabulary": sum(label not in allowed for label, allowed in listed) if listed or not named else None,
        "abstained": sum(field in row.score.fields_abstained for row in answers),
        "n_items": len({row.score.item_id for row in answers}),
        "n_patients": len({row.score.patient_id for row in answers}),
    }


def macro_f1(truth: list[str], said: list[str]) -> float | None:
    """Mean F1 over the classes that occur in the reference; an abstention (empty) belongs to none.

    Examples
    --------
    >>> macro_f1(["a", "a", "b"], ["a", "", "b"])
    0.8333333333333333
    """
    if not truth:
        return None
    pairs = [(wanted.casefold(), given.casefold()) for wanted, given in zip(truth, said, strict=True)]
    hits = Counter(wanted for wanted, given in pairs if wanted == given)
    wanted_total, given_total = Counter(wanted for wanted, _ in pairs), Counter(given for _, given in pairs)
    return float(np.mean([2 * hits[name] / (wanted_total[name] + given_total[name]) for name in wanted_total]))


def fields_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say what the model that stands first reads well and what it does not."""
    rows = tables["fields"]
    for name in study.benchmarks:
        best = best_of(tables, name)
        own = [row for row in rows if best and (row["benchmark"], row["model"]) == (name, best["model"]) and row["accuracy"] is not None]
        if best and len(own) > 1:
            top, low = (pick(own, key=lambda row: (row["accuracy"], row["field"])) for pick in (max, min))
            ends = [
                f"{row['field']} in {share({'p': row['accuracy'], 'p_low': row['low'], 'p_high': row['high']}, 'p')}" for row in (top, low)
            ]
            return Takeaway(f"{best['title']} reads {ends[0]} of the items right, and {ends[1]}.", largest(rows))
    return Takeaway("No ranked model of this run gave structured answers.", largest(rows))


TABLE = Table(
    name="fields",
    row=FieldRow,
    rows=of_study(field_rows),
    suppression=Suppression(f"{MODEL} field", labels=lambda row: [(f"field {row['field']}", "")]),
    takeaways={"fields": fields_takeaway},
)
