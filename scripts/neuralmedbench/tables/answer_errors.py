"""Errors in the answers, per answer and per wrong answer, as labelled by graders and clinicians: topic `errors`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuralmedbench.records.items import Gold, Item, is_headline
from neuralmedbench.records.results import SIMULATED
from neuralmedbench.records.scores import Grade, GradeState, Key, Rating, Score, response_key
from neuralmedbench.records.taxonomy import ERROR_AXIS, ERRORS, TAXONOMY, ErrorGroup, PaperClass, counts_under, error_of
from neuralmedbench.records.words import counted
from neuralmedbench.tables.clinicians.opinions import fresh_sample
from neuralmedbench.tables.declare import Measure, MeasureRow, ModelRows, no_labels, of_models, topic
from neuralmedbench.tables.study import BenchmarkStudy, Study

PRESENT, SIGNIFICANT = 1.0, 2.0

ROUND = "round "
"""Begins the source of labels that is a round of clinicians; other sources are graders by name."""


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


def error_sheets(study: Study, benchmark: BenchmarkStudy, model: str) -> dict[str, list[LabelSheet]]:
    """Gather the labels of one model's answers by source: graders in the order of the run list, then rounds by name.

    Only answers under the arm full and the strategy direct whose text is still the one that was labelled.
    """
    places = benchmark.outcomes.places
    scores = {response_key(row): row for row in benchmark.scores[model] if is_headline(row) and row.item_id in places}
    codes = _codes_by_item(benchmark.items, benchmark.gold)
    found: dict[str, list[LabelSheet]] = {}
    for grader in study.graders:
        if sheets := _of_grader(study.used_grades(benchmark.name, model, grader), scores, codes):
            found[grader] = sheets
    asked = frozenset(study.form.errors)
    rounds: dict[tuple[str, bool], list[Rating]] = defaultdict(list)
    for row in fresh_sample(study.ratings):
        if response_key(row) in scores and not row.adjudicated:  # an adjudicator is not asked for errors
            rounds[row.round_id, row.simulated].append(row)
    for name, simulated in sorted(rounds):
        source = f"{SIMULATED if simulated else ''}{ROUND}{name}"
        found[source] = _of_round(rounds[name, simulated], scores, codes, asked)
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
class ErrorKind:
    """Errors that are counted together: those of one code, or of all codes of a group or of a class of the paper."""

    slice: str
    name: str
    codes: frozenset[str]
    group: str = ""


def error_kinds() -> Iterator[ErrorKind]:
    """Yield every code, then groups, then the paper's classes."""
    for error in TAXONOMY:
        yield ErrorKind("code", error.code, frozenset({error.code}), str(error.group))
    for group in ErrorGroup:
        yield ErrorKind("group", str(group), frozenset(error.code for error in TAXONOMY if error.group is group))
    for paper in PaperClass:
        yield ErrorKind("class", str(paper), frozenset(error.code for error in TAXONOMY if error.paper_class is paper))


@of_models("errors")
def error_rows(made: ModelRows) -> Iterator[MeasureRow]:
    """Errors in answers, by who labelled them (`source`) and by kind (`value_of_slice`).

    An answer with several raters counts as the share of them who marked it. Answers of a round are
    weighted by the inverse of the probability of their draw; shares of labels are not, and their
    `note` has the number of labels. `left_out` counts answers whose labels failed, `note` names the
    group of a code. A missed lesion counts only over items that show the lesion, a hallucinated
    finding only where the list of findings is complete.
    """
    for source, sheets in error_sheets(made.study, made.benchmark, made.model).items():
        for kind in error_kinds():
            yield from _rows(made, source, sheets, kind)


def _rows(made: ModelRows, source: str, sheets: Sequence[LabelSheet], kind: ErrorKind) -> Iterator[MeasureRow]:
    assessed = [sheet for sheet in sheets if sheet.assessed & kind.codes]
    if not assessed:
        return
    wrong = [sheet for sheet in assessed if sheet.score.passed is False]
    failed = [sheet for sheet in sheets if sheet.failed & kind.codes and not sheet.assessed & kind.codes]
    significant = [sheet.marked[code] for sheet in assessed for code in sheet.marked if code in kind.codes]
    # shares of labels are over all labels in wrong answers, of any kind
    of_kind = [code in kind.codes for sheet in sheets if sheet.score.passed is False for code in sheet.marked]
    cells = {"source": source, "slice": kind.slice, "value_of_slice": kind.name}
    per_response = _share_of_answers(made, "per_response", assessed, kind.codes, left_out=len(failed), note=kind.group, **cells)
    per_wrong = _share_of_answers(made, "per_wrong", wrong, kind.codes, **cells)
    yield from (per_response, per_wrong)
    for measure, of_answers, labels in (("share_of_labels", per_wrong, of_kind), ("significant", per_response, significant)):
        share, note = (float(np.mean(labels)) if labels else None), counted(len(labels), "label")
        yield replace(of_answers, measure=measure, value=share, low=None, high=None, method="", left_out=None, note=note)


def _share_of_answers(made: ModelRows, measure: str, sheets: Sequence[LabelSheet], codes: frozenset[str], **cells: Any) -> MeasureRow:
    """Return the share of answers with such an error; each answer counts once, however many raters labelled it."""
    by_answer: dict[Key, list[LabelSheet]] = defaultdict(list)
    for sheet in sheets:
        by_answer[response_key(sheet.score)].append(sheet)
    answers = []
    for group in by_answer.values():
        share = float(np.mean([bool(sheet.marked.keys() & codes) for sheet in group]))
        answers.append((made.outcomes.places[group[0].score.item_id], share, group[0].weight))
    return made.rate_of_answers(measure, answers, n_answers=len(answers), **cells)


MEASURES = (
    Measure("per_response", "All answers", "Answers with such an error, of all labelled answers."),
    Measure(
        "per_wrong",
        "Wrong answers",
        "Wrong answers with such an error, of all labelled wrong answers.",
    ),
    Measure(
        "share_of_labels",
        "Of the labels",
        "Labels of this kind, of all labels in wrong answers.",
    ),
    Measure(
        "significant",
        "Significant",
        "Labels of this kind that could change diagnosis or care, of all of this kind.",
    ),
)

TABLE = topic("errors", error_rows, MEASURES, labels=no_labels)
