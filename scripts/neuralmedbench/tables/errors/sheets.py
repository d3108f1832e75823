"""Who marked which error in which answer: graders that label errors, and clinicians of rating rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.scores import Grade, GradeState, Rating, Score
from neuralmedbench.records.taxonomy import ERROR_AXIS, ERRORS, TAXONOMY, counts_under, error_of
from neuralmedbench.tables.clinicians.opinions import fresh_sample
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.study import BenchmarkStudy, Study

PRESENT, SIGNIFICANT = 1.0, 2.0


@dataclass(frozen=True)
class Source:
    """Who labelled: a grader, or a round of clinicians (simulated ones are a source of their own)."""

    name: str
    kind: str
    simulated: bool = False


@dataclass(frozen=True)
class Sheet:
    """The labels that one grader or one rater gave to one answer.

    Attributes
    ----------
    score : Score
        The answer.
    told : frozenset of str
        Codes that could be told here: the form or the grader asks for them, the item meets their condition, and the label did not fail.
    marked : mapping of str to bool
        Codes that were marked, and whether as significant.
    failed : frozenset of str
        Codes whose label failed (the quoted words are not in the answer).
    weight : float
        Inverse of the probability with which the answer was drawn; 1 where nothing was drawn.
    """

    score: Score
    told: frozenset[str]
    marked: Mapping[str, bool]
    failed: frozenset[str] = frozenset()
    weight: float = 1.0


def error_sheets(study: Study, benchmark: BenchmarkStudy, model: str) -> dict[Source, list[Sheet]]:
    """Gather the labels of one model's answers.

    Parameters
    ----------
    study : Study
        The run.
    benchmark : BenchmarkStudy
        One benchmark of it.
    model : str
        The model.

    Returns
    -------
    dict of Source to list of Sheet
        Graders in the order of the run list, then rounds by name. Of answers under the arm full and the strategy direct, whose text stands
        as it was labelled.
    """
    scores = {response_key(row): row for row in benchmark.scores[model] if (row.arm, row.strategy) == (FULL, DIRECT)}
    told = _told_by_item(benchmark.items, benchmark.gold)
    found: dict[Source, list[Sheet]] = {}
    for grader in study.graders:
        if sheets := _of_grader(benchmark.grades.get((model, grader), []), scores, told):
            found[Source(grader, "grader")] = sheets
    asked = frozenset(study.form.errors)
    rounds: dict[Source, list[Rating]] = defaultdict(list)
    for row in fresh_sample(study.ratings):
        if response_key(row) in scores and not row.adjudicated:  # an adjudicator is not asked for errors
            rounds[Source(row.round_id, "round", row.simulated)].append(row)
    for source in sorted(rounds, key=lambda one: (one.name, one.simulated)):
        found[source] = _of_round(rounds[source], scores, told, asked)
    return found


def _told_by_item(items: Iterable[Item], gold: Iterable[Gold]) -> dict[str, frozenset[str]]:
    """Codes whose condition each item meets; an item without a reference has none."""
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


def _of_grader(grades: Iterable[Grade], scores: Mapping[Key, Score], told: Mapping[str, frozenset[str]]) -> list[Sheet]:
    labels: dict[Key, dict[str, Grade]] = defaultdict(dict)
    for grade in grades:
        error, score = error_of(grade.criterion), scores.get(response_key(grade))
        if error and score and score.text_sha256 == grade.text_sha256 and error.code in told.get(grade.item_id, ()):
            labels[response_key(grade)][error.code] = grade
    sheets = []
    for key, by_code in labels.items():
        values = {code: grade.value for code, grade in by_code.items() if grade.state is GradeState.OK and grade.value is not None}
        marked = {code: value >= SIGNIFICANT for code, value in values.items() if value >= PRESENT}
        sheets.append(Sheet(scores[key], frozenset(values), marked, frozenset(by_code) - frozenset(values)))
    return [sheet for sheet in sheets if sheet.told]  # an answer of which nothing could be read has no sheet


def _of_round(
    ratings: Iterable[Rating], scores: Mapping[Key, Score], told: Mapping[str, frozenset[str]], asked: frozenset[str]
) -> list[Sheet]:
    """Sheets of the raters who judged an answer; a rater who could not judge it marks nothing, and that says nothing."""
    by_rater: dict[tuple[str, Key], list[Rating]] = defaultdict(list)
    for row in ratings:
        if row.value is not None:
            by_rater[row.rater_id, response_key(row)].append(row)
    sheets = []
    for (_, key), rows in by_rater.items():
        known = told.get(rows[0].item_id, frozenset()) & asked
        codes = {row.axis.removeprefix(ERROR_AXIS): row.value for row in rows if row.axis.startswith(ERROR_AXIS)}
        marked = {code: (value or 0) >= SIGNIFICANT for code, value in codes.items() if code in known and code in ERRORS}
        sheets.append(Sheet(scores[key], known, marked, weight=1 / (rows[0].probability or 1.0)))
    return [sheet for sheet in sheets if sheet.told]
