"""The page on one update of a model: verdict, reasons, margins, looks and a place to sign; one offline file."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from neuralmedbench.config.workflow import Run
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.pages.page import render_page
from neuralmedbench.records.words import counted, p_value, percent, points, points_span
from neuralmedbench.report.elements import TEMPLATES
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.gate.looks import LookRecord, UpdateLook, level_after, look_record
from neuralmedbench.tables.gate.verdict import (
    APPROVE,
    CONDITIONAL,
    REJECT,
    REVIEW,
    Alarm,
    MarginVerdict,
    UpdatePair,
    alarms_of,
    outcome_of,
    read_pair,
    verdicts_of,
)
from neuralmedbench.tables.study import Study, read_study

FOLDER = "gate"
BLOCKED = "blocked"
KINDS = {
    "min_accuracy": "Wrong answers",
    "max_hallucinated_findings": "Invented findings",
    "max_missed_lesions": "Missed lesions",
    "max_false_alarms": "False alarms on normal scans",
    "max_wrong_side": "Wrong side",
    "min_coverage": "Unusable answers",
    "max_confident_errors": "Wrong and sure",
}
"""What is counted, by key of `config/readiness.yaml`; more is worse."""
MEANINGS = {
    APPROVE: "every stated margin was shown to hold for patients of these sites",
    CONDITIONAL: "every essential margin was shown to hold for patients of these sites, another one was not",
    REVIEW: "inconclusive: no margin is shown to hold, and none to be exceeded; a person has to look",
    REJECT: "a stated margin was shown to be exceeded for patients of these sites",
    BLOCKED: "the two revisions cannot be compared yet",
}


@dataclass(frozen=True)
class GateResult:
    """Outcome of the gate, whether an alarm was raised, the lines for the terminal, and the page."""

    outcome: str
    alarmed: bool
    lines: list[str]
    page: Path


def write_gate(study: Study, model: str, record: Path, results: Path, today: datetime.date | None = None) -> GateResult:
    """Judge an update, enter the look in its record, and write the page.

    Parameters
    ----------
    study : Study
        A run with the benchmark of `update` and the model.
    model : str
        The model.
    record : Path
        Folder of the records of looks.
    results : Path
        Folder of the results of the run.
    today : date, optional
        Day from which the last days of the two revisions are counted.

    Raises
    ------
    ConfigError
        As in `read_pair`.
    DataError
        If the record of looks was changed or cut.
    """
    pair = read_pair(study, model, today or datetime.datetime.now(datetime.UTC).date())
    pages = results / FOLDER / pair.benchmark / model
    with look_record(record / pair.benchmark / f"{model}.jsonl", pages) as kept:
        blocked = [*pair.blocked, *_moved_reference(pair, kept)]
        if blocked:
            return _blocked(study, pair, [*blocked, *pair.last_days], kept.looks, pages)
        look, paid, alarms = _look(study, pair, kept)
        looks = list(kept.looks)
    path = pages / f"{look.number}.html"
    write_text(path, _page(study, pair, look.outcome, looks, **_look_values(study, pair, look, alarms)))
    write_json(path.with_suffix(".json"), asdict(look) | {"digest": look.digest})
    lines = [f"{model} revision {look.revision} against {look.reference} on {pair.benchmark}: {look.outcome} ({MEANINGS[look.outcome]})"]
    lines += [f"  {reason}" for reason in (*look.reasons, *pair.last_days)]
    lines += [f"  alarm: {_alarm_words(alarm, study)}" for alarm in alarms if alarm.raised]
    lines.append(f"look {look.number}, {'counted' if paid else 'at the same data as before, so not counted again'}; {_left(study, looks)}")
    return GateResult(look.outcome, look.alarmed, lines, path)


def _look(study: Study, pair: UpdatePair, kept: LookRecord) -> tuple[UpdateLook, bool, list[Alarm]]:
    """Return the look at a pair, whether it was paid for now, and its alarms with their cases."""
    config, alarms = study.readiness, alarms_of(pair, study.readiness.update.alarms)
    planned, alpha = config.update.planned_looks, 1 - config.confidence
    decides = {f"{group} {kind}": [found.gaps, found.unpaired, found.eligible] for (group, kind), found in pair.pairs.items()}
    stated = [
        config.update.model_dump(mode="json"),
        config.confidence,
        list(pair.reservations),
        [replace(one, cases=()).__dict__ for one in alarms],
    ]
    data = sha256_of_value([pair.benchmark, pair.model, pair.reference, pair.revision, decides, stated])
    if same := kept.same(data):
        return same, False, alarms
    share, level = level_after(kept.looks, planned, alpha)
    rows = verdicts_of(
        pair, config.update.margins, level=level, reject_level=alpha * share, most_missing=study.settings.max_missing_fraction
    )
    outcome = outcome_of(rows, reserved=bool(pair.reservations) or level <= 0)
    look = kept.add(
        benchmark=pair.benchmark,
        model=pair.model,
        reference=pair.reference,
        revision=pair.revision,
        answered_on=pair.answered_on,
        stated_on=config.stated_on.isoformat() if config.stated_on else "",
        planned=planned,
        share=share,
        level=level,
        data=data,
        outcome=outcome,
        margins=tuple(rows),
        # a record outlives the withdrawal of a patient, so it names no case
        alarms=tuple(replace(one, cases=()) for one in alarms),
        reasons=tuple(_reasons(study, pair, rows, outcome, level)),
    )
    return look, True, alarms


def _moved_reference(pair: UpdatePair, kept: LookRecord) -> Iterator[str]:
    if pair.pairs and kept.looks and kept.looks[0].reference != pair.reference:
        first = kept.looks[0].reference
        yield (
            f"Look 1 compared with revision {first}, this one would compare with {pair.reference}: small losses could add up unseen. Write"
            f' `reference_revision: "{first}"` in config/models/{pair.model}.yaml and run the workflow; its answers are in the ledger.'
        )


def _reasons(study: Study, pair: UpdatePair, rows: Sequence[MarginVerdict], outcome: str, level: float) -> Iterator[str]:
    if level <= 0:
        yield "All planned looks at these patients are used up: only new patients (another benchmark) can show that an update keeps the margins."
    yield from pair.reservations
    for row in rows:
        if row.exceeded or (not row.shown and outcome != REJECT):
            why = "is exceeded" if row.exceeded else f"is inconclusive: {row.note}" if row.note else "is inconclusive"
            yield f"{_what(row, study)}: the {'essential ' if row.essential else ''}margin of {points(row.margin, plus='')} points {why}."


def _what(row: MarginVerdict | Alarm, study: Study) -> str:
    return f"{KINDS[row.kind]} ({study.readiness.groups[row.group].title})"


def _alarm_words(alarm: Alarm, study: Study) -> str:
    return (
        f"{_what(alarm, study)}: {counted(alarm.appeared, 'patient')} with an error that the revision in use did not make, {alarm.limit} allowed;"
        f" {alarm.vanished} the other way round"
    )


def _left(study: Study, looks: Sequence[UpdateLook]) -> str:
    planned, used = study.readiness.update.planned_looks, sum(look.share for look in looks)
    return f"{percent(min(used, 1.0))} of the error for {counted(planned, 'planned look')} is set aside"


def _blocked(study: Study, pair: UpdatePair, blocked: list[str], looks: Sequence[UpdateLook], pages: Path) -> GateResult:
    path = pages / f"{BLOCKED}.html"
    write_text(path, _page(study, pair, BLOCKED, looks, look=None, reasons=blocked))
    head = f"{pair.model} revision {pair.revision} against {pair.reference} on {pair.benchmark}: {BLOCKED} ({MEANINGS[BLOCKED]})"
    return GateResult(BLOCKED, False, [head, *(f"  {line}" for line in blocked)], path)


def _page(study: Study, pair: UpdatePair, outcome: str, looks: Sequence[UpdateLook], **values: Any) -> str:
    """Render the page of a verdict, or of a comparison that is blocked and has no look."""
    benchmark = study.benchmarks[pair.benchmark].config
    shared = {
        "title": f"{study.models[pair.model].title}, revision {pair.revision} against {pair.reference}: {outcome}",
        "phantoms": [benchmark.title] if benchmark.subjects == "phantom" else [],
        "outcome": outcome,
        "meaning": MEANINGS[outcome],
        "looks": [_look_row(study, look) for look in looks],
    }
    return render_page(TEMPLATES / "gate.html.j2", shared | values)


def _look_values(study: Study, pair: UpdatePair, look: UpdateLook, alarms: Sequence[Alarm]) -> dict[str, Any]:
    """Return what the page says of a look: reasons, margins, alarms, and how it was decided."""
    raised = [alarm for alarm in alarms if alarm.raised]
    return {
        "look": look,
        "stated": pair.stated,
        "reasons": [*look.reasons, *pair.last_days],
        "raised": [f"Alarm. {_alarm_words(alarm, study)}. Cases to look at: {', '.join(alarm.cases)}." for alarm in raised],
        "bounds": percent(1 - look.level, 1),
        "margins": [_margin_row(study, row) for row in look.margins],
        "alarms": [_alarm_row(study, alarm) for alarm in alarms],
        "level": percent(look.level, 2),
        "error": percent(1 - study.readiness.confidence, 1),
        "planned": counted(look.planned, "planned look"),
        "counts_unusable": any(row.kind == "min_coverage" for row in look.margins),
    }


def _margin_row(study: Study, row: MarginVerdict) -> tuple[object, ...]:
    difference = f"{points(row.value)} ({points_span(row.low, row.high)})" if row.value is not None else "not measured"
    return (
        f"{KINDS[row.kind]}{', essential' if row.essential else ''}",
        study.readiness.groups[row.group].title,
        f"{points(row.margin, plus='')} points",
        percent(row.old, 1),
        percent(row.new, 1),
        difference,
        row.patients,
        p_value(row.p_within),
        "yes" if row.shown else "no, exceeded" if row.exceeded else f"no: {row.note}" if row.note else "no",
    )


def _alarm_row(study: Study, alarm: Alarm) -> tuple[object, ...]:
    return (
        KINDS[alarm.kind],
        study.readiness.groups[alarm.group].title,
        alarm.appeared,
        alarm.vanished,
        alarm.limit,
        "yes" if alarm.raised else "no",
        ", ".join(alarm.cases),
    )


def _look_row(study: Study, look: UpdateLook) -> tuple[object, ...]:
    essential = [row for row in look.margins if row.essential]
    return (
        look.number,
        look.revision,
        look.reference,
        look.answered_on or "not known",
        look.looked_on,
        percent(look.level, 2),
        look.outcome,
        "yes" if look.alarmed else "no",
        "; ".join(f"{_what(row, study)} {points(row.value)}" for row in essential if row.value is not None),
        look.digest[:16],
    )


def judge_run(run: Run, model: str, record: Path) -> GateResult:
    """Judge the present revision of a model by the study of a run, and write its page among the results; as `write_gate`."""
    study = read_study(
        Path(),
        list(run.benchmarks),
        list(run.models),
        list(run.graders),
        vocabulary=Path(run.config.vocabulary),
        settings=IntervalSettings(**run.config.statistics.model_dump(), margin=run.config.comparison.margin),
        grader_floor=run.config.grader_checks.floor,
        limit=run.config.limit,
        results=Path(run.results),
    )
    return write_gate(study, model, record, Path(run.results))
