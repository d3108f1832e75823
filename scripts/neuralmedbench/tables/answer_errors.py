"""Errors in the answers, per answer and per wrong answer, as labelled by graders and clinicians: `errors.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient, Interval, IntervalSettings, rate_interval
from neuralmedbench.records.items import Gold, Item, is_headline
from neuralmedbench.records.scores import Grade, GradeState, Key, Rating, Score, response_key
from neuralmedbench.records.taxonomy import ERROR_AXIS, ERRORS, TAXONOMY, ErrorGroup, PaperClass, counts_under, error_of
from neuralmedbench.records.words import counted
from neuralmedbench.tables.clinicians.opinions import fresh_sample
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, share

PRESENT, SIGNIFICANT = 1.0, 2.0


@dataclass(frozen=True)
class LabelSource:
    """Source of labels: a grader, or a round of clinicians (simulated raters are a separate source)."""

    name: str
    kind: str
    simulated: bool = False


@dataclass(frozen=True)
class LabelSheet:
    """The labels that one grader or one rater gave to one answer.

    Attributes
    ----------
    score : Score
        The answer.
    assessed : frozenset of str
        Codes that could be assigned: the form or the grader asks for them, the item meets their condition, and the label did not fail.
    marked : mapping of str to bool
        Codes that were marked, with True if marked as significant.
    failed : frozenset of str
        Codes whose label failed (the quoted words are not in the answer).
    weight : float
        Inverse of the probability with which the answer was drawn; 1 for answers that were not drawn.
    """

    score: Score
    assessed: frozenset[str]
    marked: Mapping[str, bool]
    failed: frozenset[str] = frozenset()
    weight: float = 1.0


def error_sheets(study: Study, benchmark: BenchmarkStudy, model: str) -> dict[LabelSource, list[LabelSheet]]:
    """Gather the labels of one model's answers: graders in the order of the run list, then rounds by name.

    Only answers under the arm full and the strategy direct whose text is still the one that was labelled.
    """
    scores = {response_key(row): row for row in benchmark.scores[model] if is_headline(row)}
    codes = _codes_by_item(benchmark.items, benchmark.gold)
    found: dict[LabelSource, list[LabelSheet]] = {}
    for grader in study.graders:
        if sheets := _of_grader(study.used_grades(benchmark.name, model, grader), scores, codes):
            found[LabelSource(grader, "grader")] = sheets
    asked = frozenset(study.form.errors)
    rounds: dict[LabelSource, list[Rating]] = defaultdict(list)
    for row in fresh_sample(study.ratings):
        if response_key(row) in scores and not row.adjudicated:  # an adjudicator is not asked for errors
            rounds[LabelSource(row.round_id, "round", row.simulated)].append(row)
    for source in sorted(rounds, key=lambda one: (one.name, one.simulated)):
        found[source] = _of_round(rounds[source], scores, codes, asked)
    return found


def _codes_by_item(items: Iterable[Item], gold: Iterable[Gold]) -> dict[str, frozenset[str]]:
    """Return the codes whose condition each item meets; an item without a reference has none."""
    complete = {row.item_id: row.findings_complete for row in gold}
    return {
        item.item_id: frozenset(
            error.code
            for error in TAXONOMY
            if counts_under(error, lesion_shown=item.lesion_shown, findings_complete=complete[item.item_id])
        )
        for item in items
        if item.item_id in complete
    }


def _of_grader(grades: Iterable[Grade], scores: Mapping[Key, Score], codes: Mapping[str, frozenset[str]]) -> list[LabelSheet]:
    labels: dict[Key, dict[str, Grade]] = defaultdict(dict)
    for grade in grades:
        error, score = error_of(grade.criterion), scores.get(response_key(grade))
        if error and score and score.text_sha256 == grade.text_sha256 and error.code in codes.get(grade.item_id, ()):
            labels[response_key(grade)][error.code] = grade
    sheets = []
    for key, by_code in labels.items():
        values = {code: grade.value for code, grade in by_code.items() if grade.state is GradeState.OK and grade.value is not None}
        marked = {code: value >= SIGNIFICANT for code, value in values.items() if value >= PRESENT}
        sheets.append(LabelSheet(scores[key], frozenset(values), marked, frozenset(by_code) - frozenset(values)))
    return [sheet for sheet in sheets if sheet.assessed]  # no sheet for an answer without a readable label


def _of_round(
    ratings: Iterable[Rating], scores: Mapping[Key, Score], codes: Mapping[str, frozenset[str]], asked: frozenset[str]
) -> list[LabelSheet]:
    """Return the sheets of the raters who judged an answer; no mark by a rater who could not judge it is no evidence."""
    by_rater: dict[tuple[str, Key], list[Rating]] = defaultdict(list)
    for row in ratings:
        if row.value is not None:
            by_rater[row.rater_id, response_key(row)].append(row)
    sheets = []
    for (_, key), rows in by_rater.items():
        # the form must ask for an error, and the item must meet its condition
        known = codes.get(rows[0].item_id, frozenset()) & asked
        values = {row.axis.removeprefix(ERROR_AXIS): row.value for row in rows if row.axis.startswith(ERROR_AXIS)}
        marked = {code: (value or 0) >= SIGNIFICANT for code, value in values.items() if code in known and code in ERRORS}
        sheets.append(LabelSheet(scores[key], known, marked, weight=1 / (rows[0].probability or 1.0)))
    return [sheet for sheet in sheets if sheet.assessed]


@dataclass(frozen=True)
class ErrorBin:
    """The codes that a row counts: one code, or all codes of a group or of a class of the paper."""

    level: str
    code: str
    group: str
    paper_class: str
    codes: frozenset[str]


def bins() -> Iterator[ErrorBin]:
    """Yield the bins of one source: every code, then groups, then the paper's classes."""
    for error in TAXONOMY:
        yield ErrorBin("code", error.code, str(error.group), str(error.paper_class or ""), frozenset({error.code}))
    for group in ErrorGroup:
        yield ErrorBin("group", "", str(group), "", frozenset(error.code for error in TAXONOMY if error.group is group))
    for paper in PaperClass:
        yield ErrorBin("class", "", "", str(paper), frozenset(error.code for error in TAXONOMY if error.paper_class is paper))


@dataclass(frozen=True, kw_only=True)
class ErrorRow(ModelRow):
    """One kind of error in the answers of one model, by one source of labels."""

    source: str
    kind: str | None = None
    simulated: bool | None = None
    level: str | None = None
    code: str | None = None
    group: str | None = None
    paper_class: str | None = None
    labels: int | None = None
    per_response: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    n_patients: int | None = None
    per_wrong: float | None = None
    wrong_low: float | None = None
    wrong_high: float | None = None
    n_wrong: int | None = None
    share_of_labels: float | None = None
    significant: float | None = None
    failed: int | None = None


def error_rows(study: Study) -> list[ErrorRow]:
    """Rows of `errors.csv`.

    One row per benchmark, model, source (a grader, or a round of clinicians) and code, group or class of the paper. `per_response` is the
    share of answers with such an error, `per_wrong` the share of the answers that do not pass, both with patient-clustered intervals; an
    answer with several raters counts as the share of them who marked it. Answers of a round are weighted by the inverse of the
    probability of their draw; `labels` and `share_of_labels` (of all labels in wrong answers) are unweighted. A missed lesion
    counts only over items that show the lesion, a hallucinated finding only where the list of findings is complete.
    """
    rows = []
    for name, benchmark in study.benchmarks.items():
        for model in study.models:
            for source, sheets in error_sheets(study, benchmark, model).items():
                head: Cells = {"benchmark": name, "model": model, "source": source.name, "kind": source.kind, "simulated": source.simulated}
                rows += [head | _row(sheets, one, study.settings) for one in bins()]
    return [ErrorRow(**row) for row in rows if row["n"]]


def _row(sheets: Sequence[LabelSheet], one: ErrorBin, settings: IntervalSettings) -> Cells:
    assessed = [sheet for sheet in sheets if sheet.assessed & one.codes]
    wrong = [sheet for sheet in assessed if sheet.score.passed is False]
    marks = [sheet.marked[code] for sheet in assessed for code in sheet.marked if code in one.codes]
    # shares of labels are over all labels in wrong answers, of any kind
    in_wrong = [code for sheet in sheets if sheet.score.passed is False for code in sheet.marked]
    every, of_wrong = (_rate(part, one.codes, settings) for part in (assessed, wrong))
    return {
        "level": one.level,
        "code": one.code,
        "group": one.group,
        "paper_class": one.paper_class,
        "labels": len(marks),
        "per_response": every.value,
        "low": every.low,
        "high": every.high,
        "n": len({response_key(sheet.score) for sheet in assessed}),
        "n_patients": len({sheet.score.patient_id for sheet in assessed}),
        "per_wrong": of_wrong.value,
        "wrong_low": of_wrong.low,
        "wrong_high": of_wrong.high,
        "n_wrong": len({response_key(sheet.score) for sheet in wrong}),
        "share_of_labels": sum(code in one.codes for code in in_wrong) / len(in_wrong) if in_wrong else None,
        "significant": sum(marks) / len(marks) if marks else None,
        "failed": sum(len(sheet.failed & one.codes) for sheet in sheets),
    }


def _rate(sheets: Sequence[LabelSheet], codes: frozenset[str], settings: IntervalSettings) -> Interval:
    """Return the share of answers with such an error; each answer counts once, however many raters labelled it."""
    if not sheets:
        return Interval()
    by_answer: dict[Key, list[LabelSheet]] = defaultdict(list)
    for sheet in sheets:
        by_answer[response_key(sheet.score)].append(sheet)
    groups = [by_answer[key] for key in sorted(by_answer)]
    values = np.array([np.mean([bool(sheet.marked.keys() & codes) for sheet in group]) for group in groups], dtype=np.float64)
    weights = np.array([group[0].weight for group in groups], dtype=np.float64)
    return rate_interval(weights * values, ByPatient([group[0].score.patient_id for group in groups], settings), weights)


def errors_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise the errors in wrong answers, by people's labels if there are any; labels of simulated raters are never summarised."""
    rows = [row for row in tables["errors"] if row["level"] == "class"]
    real = [row for row in rows if not row["simulated"]]
    answers = sum(max(row["n"] for row in own) for own in _by_sheet(rows).values())
    n = f"{counted(answers, 'labelled answer')}" + (" (simulated labels)" if rows and not real else "")
    if not rows:
        return Takeaway("Nobody labelled errors in this run.", n)
    labelled = [row for row in real if row["n_wrong"] and row["per_wrong"] is not None]
    if not real:
        return Takeaway("Only simulated raters labelled errors: their labels exercise the form and say nothing about a model.", n)
    if not labelled:
        return Takeaway("No answer that was labelled is wrong.", n)
    # clinicians before graders, then the first benchmark of the run
    first = min(labelled, key=lambda row: (row["kind"] != "round", list(study.benchmarks).index(row["benchmark"])))
    own = [row for row in labelled if all(row[name] == first[name] for name in ("source", "benchmark", "model"))]
    # the commonest class of this source
    top = max(own, key=lambda row: (row["per_wrong"], row["paper_class"]))
    by = "clinicians" if top["kind"] == "round" else study.all_graders[top["source"]].title
    wrong = share({"p": top["per_wrong"], "p_low": top["wrong_low"], "p_high": top["wrong_high"]}, "p")
    title, kind = study.models[top["model"]].title, top["paper_class"].replace("_", " ")
    return Takeaway(f"By {by}, {wrong} of {counted(top['n_wrong'], 'wrong answer')} of {title} hold a {kind}, the commonest class.", n)


def _by_sheet(rows: list[Cells]) -> dict[tuple[str, ...], list[Cells]]:
    found: dict[tuple[str, ...], list[Cells]] = {}
    for row in rows:
        found.setdefault((row["benchmark"], row["model"], row["source"]), []).append(row)
    return found


TABLE = Table(
    name="errors",
    row=ErrorRow,
    rows=of_study(error_rows),
    suppression=Suppression(f"{MODEL} source kind simulated level code group paper_class"),
    takeaways={"errors": errors_takeaway},
)
