"""The pass rate of every model by its graders, and the same rate corrected by clinicians: topic `calibrated`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, Ints, rate_interval
from neuralmedbench.estimates.prediction_powered import RatedAnswers, calibrated_rate
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Key, Score, response_key
from neuralmedbench.scoring.scores import PASS_VALUE
from neuralmedbench.tables.clinicians.opinions import RATERS, ClinicianVerdict, draw_probabilities, grades_of, verdicts_of
from neuralmedbench.tables.declare import Cells, Measure, MeasureRow, ModelRows, no_labels, topic
from neuralmedbench.tables.outcomes import Key as Arm
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.study import BenchmarkStudy, Study

SCORE = "score"
"""In the column `source`: the verdict that the leaderboard counts, of the first grader of the run list that gave a value."""

FEWEST_ANSWERS, FEWEST_PATIENTS = 60, 8
"""With fewer rated answers, or answers of fewer patients, of a model its corrected rate is not shown on the page. (Our rule.)"""
ANSWERS_OF_ACCURACY = 20
"""Rated answers of all models from which the accuracy of their verdicts is known. (Our rule.)"""

CALIBRATED = "calibrated"
"""The measure that clinicians, or simulated raters, corrected."""


@dataclass(frozen=True)
class _ModelDraws:
    """Drawn answers of a model, over all benchmarks: clinicians' verdicts, probabilities, and the families that a round draws from."""

    verdicts: Mapping[Key, ClinicianVerdict]
    probabilities: Mapping[Key, float]
    families: frozenset[str]
    simulated: bool


def calibrated_rows(study: Study) -> list[MeasureRow]:
    """Pass rates by grader (`source`), and corrected by raters (`value_of_slice`).

    Raters are clinicians or simulated. Of a corrected rate `n_answers` and `n_patients` count the
    rated answers and their patients, `left_out` those that nobody could judge. There are no rows
    for benchmarks without open answers, and none for readers: they answer a sample of the items, so
    their rate is not known.
    """
    rows = list[MeasureRow]()
    # a round may draw from several benchmarks, so probabilities are over all of them
    scores = {response_key(row): row for one in study.benchmarks.values() for table in one.scores.values() for row in headline(table)}
    for simulated in RATERS:
        verdicts = verdicts_of(study, simulated=simulated)
        known = draw_probabilities(verdicts, scores)
        for made in (ModelRows("calibrated", study, *one) for one in product(study.benchmarks.values(), study.models)):
            drawn_keys = {key: verdicts[key] for key in known if scores[key].model == made.model}
            drawn = _ModelDraws(drawn_keys, known, frozenset(scores[key].family for key in drawn_keys), simulated)
            if made.model not in study.readers and made.outcomes.repeatable.any() and (drawn_keys or not simulated):
                rows += _rows_of_model(made, drawn)
    return rows


def corrects_score(row: MeasureRow) -> bool:
    """Return True if a row corrects the score on the leaderboard: by clinicians, not simulated raters, and from enough rated answers."""
    of_score = (row.measure, row.source, row.value_of_slice) == (CALIBRATED, SCORE, RATERS[False])
    return of_score and row.value is not None and not _is_too_few(row.n_answers or 0, row.n_patients or 0)


def _is_too_few(answers: int, patients: int) -> bool:
    return answers < FEWEST_ANSWERS or patients < FEWEST_PATIENTS


def _rows_of_model(made: ModelRows, drawn: _ModelDraws) -> Iterator[MeasureRow]:
    scores = headline(made.benchmark.scores[made.model])
    passed = {response_key(row): float(row.passed) for row in scores if row.passed is not None and not row.missing}
    yield from _rows(made, drawn, SCORE, passed)
    for grader in made.study.graders:
        grades = grades_of(made.benchmark, made.model, grader, scores)
        if grades:  # an answer without a grade fails, as in the score, unless clinicians passed it
            yield from _rows(made, drawn, grader, {key: float(value >= PASS_VALUE) for key, value in grades.items()})


def _rows(made: ModelRows, drawn: _ModelDraws, grader: str, passed: Mapping[Key, float]) -> Iterator[MeasureRow]:
    outcomes = made.outcomes
    # graders judge open items only; the score covers all
    used = outcomes.repeatable if grader != SCORE else np.ones(len(outcomes.items), dtype=bool)
    answers, places, rows = _answers(made.study, made.benchmark, made.key(), used, drawn, passed=passed)
    # the graders' rate counts every item as the mean of its samples
    values = np.where(used, np.bincount(places, weights=answers.weight * answers.graded, minlength=len(used)), np.nan)
    # above the allowed share without a verdict the graders' rate is unknown; clinicians correct what nobody graded, but not what never came
    allowed = made.study.settings.max_missing_fraction * len(rows)
    absent = sum(row is None or row.missing for row in rows)
    without = absent + sum(row is not None and not row.missing and _is_without_verdict(row, passed) for row in rows)
    if not drawn.simulated:
        raw = values if passed and without <= allowed else np.full(len(used), np.nan)
        yield made.rate("raw", raw, source=grader, n_answers=len(answers.graded), n_patients=answers.by.clusters)
    rated, patients = int(answers.rated.sum()), answers.by.at(answers.rated).clusters
    cells: Cells = {"source": grader, "slice": "raters", "value_of_slice": RATERS[drawn.simulated]}
    cells |= {"n_answers": rated, "left_out": int(answers.unjudged.sum()), "n_patients": patients}
    note = "too many answers are missing: neither rate is known" if absent > allowed else _note(drawn.simulated, **cells)
    corrected = calibrated_rate(answers) if absent <= allowed else Interval()
    method = "" if corrected.value is None else corrected.method
    yield made.plain(CALIBRATED, value=corrected.value, low=corrected.low, high=corrected.high, method=method, note=note, **cells)
    if answers.unjudged.any():
        bounds = answers.bounds_of_unjudged() if absent <= allowed else (None, None)
        for measure, bound in zip(("if_unjudged_failed", "if_unjudged_passed"), bounds, strict=True):
            yield made.plain(measure, value=bound, **cells)
    if rated:
        yield made.plain("raters", value=float(len(answers.without)), **cells)


def _is_without_verdict(row: Score, passed: Mapping[Key, float]) -> bool:
    """Return True if an answer has no verdict; refused and truncated ones are wrong without a grader."""
    return row.state == ResponseState.OK and response_key(row) not in passed


def _note(simulated: bool, *, n_answers: int, left_out: int, n_patients: int, **_: str) -> str:
    if not n_answers:
        who = "simulated rater" if simulated else "clinician"
        return f"no {who} has judged an answer" if simulated or left_out else f"grader only: no {who} has rated an answer"
    too_few = f"too few rated: counts from {FEWEST_ANSWERS} answers of {FEWEST_PATIENTS} patients on"
    return too_few if _is_too_few(n_answers, n_patients) else ""


def _answers(
    study: Study, benchmark: BenchmarkStudy, model: Arm, used: npt.NDArray[np.bool_], drawn: _ModelDraws, *, passed: Mapping[Key, float]
) -> tuple[RatedAnswers, Ints, list[Score | None]]:
    """Return every expected answer to the items that are used, the index of its item, and its score; None where it never came."""
    outcomes, threshold = benchmark.outcomes, study.form.passes.from_ if study.form.passes else 0
    samples = outcomes.answers.of(model)
    # every expected sample has a place, also if its response is missing
    samples = samples.where(used[samples["place"]])
    places, keys = samples["place"], [response_key(row) if row else None for row in samples.scores]
    verdicts = [drawn.verdicts.get(key) if key else None for key in keys]
    # a refused or empty answer cannot be drawn
    there = {response_key(row) for row in benchmark.responses[model.model] if row.state is ResponseState.OK and row.text.strip()}
    families = [item.family in drawn.families for item in outcomes.items]
    raters = sorted({rater for verdict in verdicts if verdict for rater in verdict.by_rater})

    def passing(values: Iterable[float | None]) -> Floats:
        known = np.array(list(values), dtype=np.float64)
        return np.where(np.isnan(known), np.nan, known >= threshold)

    answers = RatedAnswers(
        graded=np.array([passed.get(key, 0.0) if key else 0.0 for key in keys]),
        judged=passing(verdict.value if verdict else None for verdict in verdicts),
        unjudged=np.array([verdict is not None and verdict.value is None for verdict in verdicts], dtype=bool),
        probability=np.array(
            [drawn.probabilities[key] if key and verdict else np.nan for key, verdict in zip(keys, verdicts, strict=True)]
        ),
        weight=1.0 / samples.number()[places],
        drawable=np.array([key in there and families[place] for key, place in zip(keys, places, strict=True)], dtype=bool),
        by=outcomes.by_patient(study.settings, model).at(places),
        without=np.array([passing(verdict.without(rater) if verdict else None for verdict in verdicts) for rater in raters]),
    )
    return answers, places, list(samples.scores)


@dataclass(frozen=True)
class GraderAccuracy:
    """Shares of right answers that the deciding grader passes and of wrong ones that it fails, by `source`."""

    sensitivity: Interval
    specificity: Interval
    source: str


def accuracy_of_score(study: Study) -> GraderAccuracy | None:
    """Return the accuracy of the verdict that the leaderboard counts: by clinicians who rated enough answers, else by the first grader's validation.

    Rated answers of all models count, weighted with the inverse of the probability of being drawn. None if neither is there.
    """
    verdicts = verdicts_of(study, simulated=False)
    scores = {response_key(row): row for one in study.benchmarks.values() for table in one.scores.values() for row in headline(table)}
    probabilities = draw_probabilities(verdicts, scores)
    keys = [key for key in probabilities if verdicts[key].value is not None and scores[key].passed is not None]
    patients = [scores[key].patient_id for key in keys]
    if study.form.passes and len(keys) >= ANSWERS_OF_ACCURACY and len(set(patients)) >= FEWEST_PATIENTS:
        right = np.array([(verdicts[key].value or 0.0) >= study.form.passes.from_ for key in keys])
        passed = np.array([float(bool(scores[key].passed)) for key in keys])
        weights, by = np.array([1 / probabilities[key] for key in keys]), ByPatient(patients, study.settings)
        if right.any() and not right.all():
            passes, fails = (
                rate_interval((weights * values)[part], by.at(part), weights[part])
                for values, part in ((passed, right), (1 - passed, ~right))
            )
            return GraderAccuracy(passes, fails, f"{len(keys)} rated answers")
    first = next(iter(study.graders.values()), None)
    known = first.validation if first else None
    if known is None:
        return None
    passes, fails = (
        Interval(part / whole, *clopper_pearson(part, whole, study.settings.confidence), "exact")
        for part, whole in ((known.right_accepted, known.right), (known.wrong_rejected, known.wrong))
    )
    return GraderAccuracy(passes, fails, known.source)


MEASURES = (
    Measure(
        "raw",
        "By the grader",
        "Answers that pass by the grader (`source`), of all expected answers.",
    ),
    Measure(
        CALIBRATED,
        "Calibrated",
        "The same rate, corrected by raters who judged a sample of the answers.",
    ),
    Measure(
        "if_unjudged_failed",
        "If unjudged failed",
        "The corrected rate if every answer that nobody could judge had failed.",
    ),
    Measure(
        "if_unjudged_passed",
        "If unjudged passed",
        "The corrected rate if every answer that nobody could judge had passed.",
    ),
    Measure("raters", "Raters", "Raters whose judgements correct the rate.", "count"),
)

TABLE = topic("calibrated", calibrated_rows, MEASURES, labels=no_labels)
