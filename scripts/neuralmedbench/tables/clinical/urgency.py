"""Time-critical diagnoses called something else or normal, and statements that must not be made: `urgency.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import Interval, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Score, response_key
from neuralmedbench.records.vocabulary import TimeCritical
from neuralmedbench.records.words import counted
from neuralmedbench.scoring.scores import grades_by_response
from neuralmedbench.tables.clinical.readings import (
    ALL_REFERENCES,
    NO_DIAGNOSIS,
    TIME_CRITICAL,
    DiagnosticItems,
    Finding,
    diagnostic_items,
    forbidding,
    is_right,
    readings_of,
    time_critical_items,
)
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import Key, headline
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, largest, rows_of_best, value_share

NAMED, WIDER, OTHER, CALLED_NORMAL, NONE = ANSWERS = ("named", "wider", "called_other", "called_normal", "no_diagnosis")
"""Every answer to a time-critical reference is one of these: the reference, a wider term of it, something else, a normal scan, or nothing."""

Urgent = Mapping[int, TimeCritical]
"""Time-critical items by their index, with the entry of the list."""

MISSED, MUST_NOT = "missed", "must_not"
"""Measures beside those: something else or normal, and the share of the statements that must not be made."""


@dataclass(frozen=True, kw_only=True)
class UrgencyRow(ModelRow):
    """One measure of one model over the time-critical references, one of them, or (`must_not`) all references."""

    references: str
    measure: str
    within: str | None = None
    source: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    answers: int | None = None
    missing: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


def outcome_of(score: Score, named: Finding) -> str:
    """Return which of `ANSWERS` an answer to an abnormal reference is."""
    if is_right(score):
        return NAMED
    if named.group == NO_DIAGNOSIS:
        return NONE
    if named.normal:
        return CALLED_NORMAL
    return WIDER if score.right_family else OTHER


def urgency_rows(study: Study) -> list[UrgencyRow]:
    """Rows of `urgency.csv`: arm full, strategy direct; a model with too many missing answers has counts and no rates."""
    rows = []
    for benchmark in study.benchmarks.values():
        asked = diagnostic_items(study, benchmark)
        urgent = time_critical_items(study, asked)
        for model in study.models:
            cells = [*_urgent_shares(study, benchmark, model, asked, urgent), *_must_not(study, benchmark, model, asked, urgent)]
            rows += [UrgencyRow(benchmark=benchmark.name, model=model, **row) for row in cells]
    return rows


def _urgent_shares(study: Study, benchmark: BenchmarkStudy, model: str, asked: DiagnosticItems, urgent: Urgent) -> Iterator[Cells]:
    """Yield the shares of a model's answers to time-critical references, together and for each diagnosis."""
    if not urgent:
        return
    readings = readings_of(study, benchmark, model, asked)
    outcomes = np.array([outcome_of(score, named) for score, named in zip(readings.scores, readings.named, strict=True)])
    groups: dict[str, list[int]] = {TIME_CRITICAL: list(urgent)}
    for place in urgent:
        groups.setdefault(_name_of(asked, place), []).append(place)
    for references, places in groups.items():
        own = np.isin(np.arange(readings.n_items), places)
        entry = None if references == TIME_CRITICAL else urgent[places[0]]
        answers = int(own[readings.places].sum())
        missing = int(readings.expected[own].sum()) - answers
        complete = missing <= study.settings.max_missing_fraction * (answers + missing)
        about: Cells = {
            "references": references,
            "within": entry and str(entry.within),
            "source": entry and entry.source,
            "answers": answers,
            "missing": missing,
            "n_items": len(places),
            "n_patients": asked.patients_of(own),
        }
        for measure in (MISSED, *ANSWERS):
            event = np.isin(outcomes, (OTHER, CALLED_NORMAL) if measure == MISSED else (measure,))
            values = np.where(own, readings.share(event), np.nan)
            interval = rate_interval(values, asked.by_patient(study.settings)) if complete else Interval()
            yield about | {"measure": measure, "value": interval.value, "low": interval.low, "high": interval.high}


def _name_of(asked: DiagnosticItems, place: int) -> str:
    entry = asked.entries[place]
    return entry.name if entry is not None else ""


def _must_not(study: Study, benchmark: BenchmarkStudy, model: str, asked: DiagnosticItems, urgent: Urgent) -> Iterator[Cells]:
    """Yield the share of the statements that must not be made and that a model makes, over all and over time-critical references."""
    outcomes = benchmark.outcomes
    wanted = {item.item_id: found for item, gold in zip(outcomes.items, outcomes.gold, strict=True) if (found := forbidding(gold))}
    made: dict[str, list[float]] = defaultdict(list)
    tables = [grades_by_response(benchmark.grades.get((model, grader), [])) for grader in study.graders]
    for score in headline(benchmark.scores.get(model, [])):
        names = wanted.get(score.item_id, [])
        if not names or score.missing:
            continue
        if score.state != ResponseState.OK:  # as in the rubric: nothing was said
            made[score.item_id].append(0.0)
            continue
        judged = (table.get((response_key(score), score.text_sha256), {}) for table in tables)
        grades = next((one for one in judged if all(name in one for name in names)), None)
        if grades is not None:
            made[score.item_id].append(float(np.mean([grades[name].value or 0.0 for name in names])))
    critical = {asked.items[place].item_id for place in urgent}
    counts = outcomes.counts[Key(model)]
    for references in (ALL_REFERENCES, TIME_CRITICAL):
        places = [
            place
            for place, item in enumerate(outcomes.items)
            if item.item_id in wanted and (references == ALL_REFERENCES or item.item_id in critical)
        ]
        answers = sum(len(made[outcomes.items[place].item_id]) for place in places)
        if not answers:
            continue
        values = np.full(len(outcomes.items), np.nan)
        for place in places:
            if own := made[outcomes.items[place].item_id]:
                values[place] = np.mean(own)
        expected = int(counts.samples[places].sum())
        complete = expected - answers <= study.settings.max_missing_fraction * expected
        interval = rate_interval(values, outcomes.by_patient(study.settings)) if complete else Interval()
        yield {
            "references": references,
            "measure": MUST_NOT,
            "value": interval.value,
            "low": interval.low,
            "high": interval.high,
            "answers": answers,
            "missing": expected - answers,
            "n_items": len(places),
            "n_patients": len(set(outcomes.patients[places].tolist())),
        }


def urgency_takeaway(study: Study, tables: Tables) -> Takeaway:
    """State how often the model of rank 1 misses a time-critical diagnosis, and how often it says what must not be said."""
    parts, used = [], list[Cells]()
    for name, benchmark in study.benchmarks.items():
        rows = rows_of_best(tables["urgency"], tables, name)
        own = {(row["references"], row["measure"]): row for row in rows if row["value"] is not None}
        missed, normal = own.get((TIME_CRITICAL, MISSED)), own.get((TIME_CRITICAL, CALLED_NORMAL))
        if not own:
            continue
        title = study.models[rows[0]["model"]].title
        if missed and normal:
            used.append(missed)
            parts.append(
                f"{benchmark.config.title}: {title} calls a time-critical diagnosis something else or normal in {value_share(missed)} of its "
                f"answers about {counted(missed['n_patients'], benchmark.cluster)}, normal in {value_share(normal)}."
            )
        if row := own.get((ALL_REFERENCES, MUST_NOT)):
            used.append(row)
            parts.append(f"Of the statements that must not be made, it makes {value_share(row)}.")
    if parts:
        chosen = (
            f" Which diagnoses are time-critical: list {study.urgency.version}, {study.urgency.status}." if study.urgency.version else ""
        )
        return Takeaway(" ".join(parts) + chosen, largest(used))
    text = (
        "No ranked model answered about a time-critical diagnosis." if tables["urgency"] else "No reference of this run is time-critical."
    )
    return Takeaway(text, largest(tables["urgency"]))


def _labels(row: Cells) -> list[Label]:
    return [("forbidding" if row["measure"] == MUST_NOT else "urgent", row["references"])]


TABLE = Table(
    name="urgency",
    row=UrgencyRow,
    rows=of_study(urgency_rows),
    suppression=Suppression(f"{MODEL} references measure within source", labels=_labels),
    takeaways={"urgency": urgency_takeaway},
)
