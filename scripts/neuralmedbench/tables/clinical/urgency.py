"""Time-critical diagnoses called something else or normal, and statements that must not be made: topic `urgency`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from neuralmedbench.estimates.intervals import Interval, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Score, response_key
from neuralmedbench.records.vocabulary import TimeCritical
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
from neuralmedbench.tables.declare import Cells, Measure, MeasureRow, ModelRows, of_benchmarks, topic
from neuralmedbench.tables.study import BenchmarkStudy, Study

NAMED, WIDER, OTHER, CALLED_NORMAL, NONE = ANSWERS = ("named", "wider", "called_other", "called_normal", "no_diagnosis")
"""Every answer to a time-critical reference is one of these: the reference, a wider term of it, something else, a normal scan, or nothing."""

Urgent = Mapping[int, TimeCritical]
"""Time-critical items by their index, with the entry of the list."""

REFERENCES = "references"
"""Slice of the rows: all references, the time-critical ones, or one of these."""

MISSED, MUST_NOT = "missed", "must_not"
"""Measures beside those: something else or normal, and the share of the statements that must not be made."""


def outcome_of(score: Score, named: Finding) -> str:
    """Return which of `ANSWERS` an answer to an abnormal reference is."""
    if is_right(score):
        return NAMED
    if named.group == NO_DIAGNOSIS:
        return NONE
    if named.normal:
        return CALLED_NORMAL
    return WIDER if score.right_family else OTHER


@of_benchmarks
def urgency_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[MeasureRow]:
    """Answers to time-critical references, and statements that must not be made.

    A model with too many missing answers has counts and no rates. `note` says within what time, and
    who says so.
    """
    asked = diagnostic_items(study, benchmark)
    urgent = time_critical_items(study, asked)
    for model in study.models:
        made = ModelRows("urgency", study, benchmark, model)
        yield from _urgent_shares(made, asked, urgent)
        yield from _must_not(made, asked, urgent)


def _urgent_shares(made: ModelRows, asked: DiagnosticItems, urgent: Urgent) -> Iterator[MeasureRow]:
    """Yield the shares of a model's answers to time-critical references, together and for each diagnosis."""
    if not urgent:
        return
    readings = readings_of(made.study, made.benchmark, made.model, asked)
    outcomes = np.array([outcome_of(score, named) for score, named in zip(readings.scores, readings.named, strict=True)])
    groups: dict[str, list[int]] = {TIME_CRITICAL: list(urgent)}
    for place in urgent:
        entry = asked.entries[place]
        groups.setdefault(entry.name if entry else "", []).append(place)
    for references, places in groups.items():
        own = np.isin(np.arange(readings.n_items), places)
        answers = int(own[readings.places].sum())
        missing = int(readings.expected[own].sum()) - answers
        complete = missing <= made.study.settings.max_missing_fraction * (answers + missing)
        cells: Cells = {"slice": REFERENCES, "value_of_slice": references, "n_answers": answers, "left_out": missing}
        cells |= {"n_items": len(places), "n_patients": asked.patients_of(own)}
        if references != TIME_CRITICAL:
            cells["note"] = f"{urgent[places[0]].within}: {urgent[places[0]].source}"
        for measure in (MISSED, *ANSWERS):
            event = np.isin(outcomes, (OTHER, CALLED_NORMAL) if measure == MISSED else (measure,))
            values = np.where(own, readings.share(event), np.nan)
            interval = rate_interval(values, asked.by_patient(made.study.settings)) if complete else Interval()
            yield made.plain(measure, value=interval.value, low=interval.low, high=interval.high, **cells)


def _must_not(made: ModelRows, asked: DiagnosticItems, urgent: Urgent) -> Iterator[MeasureRow]:
    """Yield the share of the statements that must not be made and that a model makes, over all and over time-critical references."""
    study, outcomes = made.study, made.outcomes
    wanted = [forbidding(gold) for gold in outcomes.gold]
    values: list[tuple[int, float]] = []
    tables = [grades_by_response(made.benchmark.grades.get((made.model, grader), [])) for grader in study.graders]
    for place, score in made.answers.there.rows():
        names = wanted[place]
        if not names:
            continue
        if score.state != ResponseState.OK:  # as in the rubric: nothing was said
            values.append((place, 0.0))
            continue
        judged = (table.get((response_key(score), score.text_sha256), {}) for table in tables)
        grades = next((one for one in judged if all(name in one for name in names)), None)
        if grades is not None:
            values.append((place, float(np.mean([grades[name].value or 0.0 for name in names]))))
    samples, every = outcomes.counts[made.key()].samples, np.array([bool(names) for names in wanted], dtype=bool)
    critical = every & np.isin(np.arange(len(every)), asked.places[list(urgent)])
    for references, inside in ((ALL_REFERENCES, every), (TIME_CRITICAL, critical)):
        own = [(place, value) for place, value in values if inside[place]]
        if not own:
            continue
        missing = int(samples[inside].sum()) - len(own)
        cells: Cells = {"slice": REFERENCES, "value_of_slice": references, "left_out": missing} | made.sizes(inside)
        row = made.mean(MUST_NOT, own, **cells)
        complete = missing <= study.settings.max_missing_fraction * (len(own) + missing)
        yield row if complete else replace(row, value=None, low=None, high=None)


def _labels(row: Cells) -> list[Label]:
    return [("forbidding" if row["measure"] == MUST_NOT else "urgent", row["value_of_slice"])]


MEASURES = (
    Measure(
        MISSED,
        "Missed",
        "Answers that name something else or a normal scan, of those about these references.",
    ),
    Measure(
        NAMED,
        "The reference",
        "Answers that name the reference, by a grader or the vocabulary.",
    ),
    Measure(
        WIDER,
        "A wider term",
        "Answers that name only a wider term of the reference; these are not missed.",
    ),
    Measure(OTHER, "Something else", "Answers that name something else, or unknown words."),
    Measure(CALLED_NORMAL, "Normal", "Answers that name a normal scan."),
    Measure(NONE, "No diagnosis", "Answers without a diagnosis that can be read."),
    Measure(
        MUST_NOT,
        "Must not be said",
        "Statements made that must not be made, of those that the rubrics list.",
        main=False,
    ),
)

TABLE = topic("urgency", urgency_rows, MEASURES, labels=_labels)
