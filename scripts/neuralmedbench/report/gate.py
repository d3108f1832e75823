"""The page on one update of a model: verdict, reasons, margins, looks and a place to sign; one offline file."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path

from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.pages import page, table, warning
from neuralmedbench.records.words import counted, p_value, percent, points, points_span
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
from neuralmedbench.tables.study import Study

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
STYLE = (
    ".sign td{border-bottom:1px solid var(--line);height:2.2rem;min-width:14rem;vertical-align:bottom}"
    "@media print{body{font-size:10px;margin:0;max-width:none}h1{font-size:15px;margin:0}h2{font-size:12px;margin-top:.5rem;padding-top:.3rem}"
    "p{margin:.25rem 0}.sign td{height:1.7rem}}"
)
THESE_SITES = (
    "The verdict is about patients of the sites whose cases the benchmark has. The records name no site, so the test takes patients as"
    " drawn one by one: harm that differs between sites is not in its error, and at another site a margin may not hold."
)
NOT_CLEARANCE = (
    "This page says whether margins that a site wrote down were kept by answers to a benchmark. It is a research instrument: no clearance for use"
    " with patients, and no recommendation."
)


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
    write_text(path, _page(study, pair, look, alarms, looks))
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
    body = [*_banner(study, pair), f"<p>{escape(NOT_CLEARANCE)}</p>", warning(f"No verdict: {MEANINGS[BLOCKED]}. No look was counted.")]
    body += [f"<p>{escape(line)}</p>" for line in blocked]
    body += _timeline(study, looks)
    write_text(path, page(_title(study, pair, BLOCKED), body, style=STYLE))
    head = f"{pair.model} revision {pair.revision} against {pair.reference} on {pair.benchmark}: {BLOCKED} ({MEANINGS[BLOCKED]})"
    return GateResult(BLOCKED, False, [head, *(f"  {line}" for line in blocked)], path)


def _title(study: Study, pair: UpdatePair, outcome: str) -> str:
    title = study.models[pair.model].title
    return f"{title}, revision {pair.revision} against {pair.reference}: {outcome}"


def _banner(study: Study, pair: UpdatePair) -> list[str]:
    benchmark = study.benchmarks[pair.benchmark]
    if benchmark.config.subjects == "phantom":
        return [warning(f"{benchmark.config.title}: generated heads and invented histories. No number here is about patients.")]
    return []


def _page(study: Study, pair: UpdatePair, look: UpdateLook, alarms: Sequence[Alarm], looks: Sequence[UpdateLook]) -> str:
    raised = [alarm for alarm in alarms if alarm.raised]
    body = [*_banner(study, pair), f"<p>{escape(NOT_CLEARANCE)}</p>"]
    body.append(f"<p><b>{escape(look.outcome.capitalize())}</b>: {escape(MEANINGS[look.outcome])}.</p>")
    body += [f"<p>{escape(reason)}</p>" for reason in (*look.reasons, *pair.last_days)]
    body += [warning(f"Alarm. {_alarm_words(alarm, study)}. Cases to look at: {', '.join(alarm.cases)}.") for alarm in raised]
    body += _margins(study, look.margins, look.level)
    body += _alarms(study, alarms)
    body += _timeline(study, looks)
    body += _how(study, look, pair)
    body += _sign(look)
    return page(_title(study, pair, look.outcome), body, style=STYLE)


def _margins(study: Study, rows: Sequence[MarginVerdict], level: float) -> Iterator[str]:
    yield "<h2>Margins</h2>"
    head = (
        "Error",
        "Group",
        "Margin",
        "In use",
        "New",
        f"Difference, {percent(1 - level, 1)} bounds",
        "Patients",
        "p",
        "Shown to hold",
    )
    cells = []
    for row in rows:
        span = points_span(row.low, row.high) if row.value is not None else ""
        shown = "yes" if row.shown else "no, exceeded" if row.exceeded else f"no: {row.note}" if row.note else "no"
        cells.append(
            (
                f"{KINDS[row.kind]}{', essential' if row.essential else ''}",
                study.readiness.groups[row.group].title,
                f"{points(row.margin, plus='')} points",
                percent(row.old, 1),
                percent(row.new, 1),
                f"{points(row.value)} ({span})" if row.value is not None else "not measured",
                str(row.patients),
                p_value(row.p_within),
                shown,
            )
        )
    yield table(cells, head)


def _alarms(study: Study, alarms: Sequence[Alarm]) -> Iterator[str]:
    if alarms:
        yield "<h2>New errors</h2>"
        head = ("Error", "Group", "Patients with it only now", "Only before", "Allowed", "Alarm", "Cases")
        rows = [
            (
                KINDS[alarm.kind],
                study.readiness.groups[alarm.group].title,
                str(alarm.appeared),
                str(alarm.vanished),
                str(alarm.limit),
                "yes" if alarm.raised else "no",
                ", ".join(alarm.cases),
            )
            for alarm in alarms
        ]
        yield table(rows, head)


def _timeline(study: Study, looks: Sequence[UpdateLook]) -> Iterator[str]:
    yield "<h2>All looks at these patients</h2>"
    if not looks:
        yield "<p>None so far.</p>"
        return
    head = (
        "Look",
        "Revision",
        "Against",
        "Answers of",
        "Verdict on",
        "Error of the look",
        "Outcome",
        "Alarm",
        "Differences of essential kinds",
        "Digest",
    )
    rows = [
        (
            str(look.number),
            look.revision,
            look.reference,
            look.answered_on or "not known",
            look.looked_on,
            percent(look.level, 2),
            look.outcome,
            "yes" if look.alarmed else "no",
            "; ".join(f"{_what(row, study)} {points(row.value)}" for row in look.margins if row.value is not None and row.essential),
            look.digest[:16],
        )
        for look in looks
    ]
    yield table(rows, head)


def _how(study: Study, look: UpdateLook, pair: UpdatePair) -> Iterator[str]:
    alpha = 1 - study.readiness.confidence
    yield "<h2>How it was decided</h2>"
    yield (
        f"<p>Margins of {escape(look.stated_on)}, written down {escape(pair.stated)} of the new revision. A patient counts with the mean of all"
        " answers to all questions; a difference above 0 is worse. A margin holds if the exact one-sided test of paired patients excludes a loss as"
        f" large as the margin at the error of this look, {escape(percent(look.level, 2))}. An approval needs all of them. A rejection needs one"
        f" that is exceeded, after Holm’s correction. {escape(counted(look.planned, 'planned look'))} share the error of {escape(percent(alpha, 1))}"
        "; the error of an approval goes to the next look. An alarm counts patients and is no test.</p>"
    )
    yield f"<p>{escape(THESE_SITES)}</p>"
    counted_kinds = {row.kind for row in look.margins}
    if "min_coverage" not in counted_kinds:
        yield "<p>No margin on unusable answers is stated: a revision that refuses more makes fewer of some errors.</p>"


def _sign(look: UpdateLook) -> Iterator[str]:
    yield "<h2>Decision of the person responsible</h2>"
    yield '<div class="sign">' + table([(name, "") for name in ("Decision", "Reason", "Name", "Date", "Signature")]) + "</div>"
    before = f", after {look.previous[:16]}" if look.previous else ", the first"
    yield f"<p>Look {look.number}, digest <code>{escape(look.digest[:16])}</code>{escape(before)}. The next page repeats this digest.</p>"
