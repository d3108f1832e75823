"""The pass rate of every model by its graders, and the same rate corrected by clinicians: `calibrated.csv`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.estimates.intervals import ByPatient, Interval, Ints, rate_interval
from neuralmedbench.estimates.prediction_powered import RatedAnswers, calibrated_rate
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Key, Score, response_key
from neuralmedbench.scoring.scores import PASS_VALUE
from neuralmedbench.tables.clinicians.opinions import ClinicianVerdict, draw_probabilities, grades_of, verdicts_of
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import Key as Arm
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.rows import Cells, ModelRow
from neuralmedbench.tables.study import BenchmarkStudy, Study

SCORE = "score"
"""In the column `grader`: the verdict that the leaderboard counts, of the first grader of the run list that gave a value."""

FEWEST_ANSWERS, FEWEST_PATIENTS = 60, 8
"""With fewer rated answers, or answers of fewer patients, of a model its corrected rate is not shown on the page. (Our rule.)"""
ANSWERS_OF_ACCURACY = 20
"""Rated answers of all models from which the accuracy of their verdicts is known. (Our rule.)"""

CORRECTED = ("calibrated", "calibrated_low", "calibrated_high")


@dataclass(frozen=True)
class _ModelDraws:
    """Drawn answers of a model, over all benchmarks: clinicians' verdicts, probabilities, and the families that a round draws from."""

    verdicts: Mapping[Key, ClinicianVerdict]
    probabilities: Mapping[Key, float]
    families: frozenset[str]
    simulated: bool


@dataclass(frozen=True, kw_only=True)
class CalibratedRow(ModelRow):
    """The pass rate of one model by one grader, raw and corrected by clinicians."""

    grader: str
    raw: float | None = None
    raw_low: float | None = None
    raw_high: float | None = None
    calibrated: float | None = None
    calibrated_low: float | None = None
    calibrated_high: float | None = None
    if_unjudged_failed: float | None = None
    if_unjudged_passed: float | None = None
    n_rated: int | None = None
    n_raters: int | None = None
    n_patients_rated: int | None = None
    n_unjudged: int | None = None
    n_answers: int | None = None
    n_patients: int | None = None
    simulated: bool | None = None
    note: str | None = None


def calibrated_rows(study: Study) -> list[CalibratedRow]:
    """Rows of `calibrated.csv`.

    One row per benchmark, model and grader, `score` first; simulated raters have separate rows. There are none for benchmarks without open
    answers, and none for readers: they answer a sample of the items, so their rate over all items is not known.
    """
    rows = []
    # a round may draw from several benchmarks, so probabilities are over all of them
    scores = {response_key(row): row for one in study.benchmarks.values() for table in one.scores.values() for row in headline(table)}
    for simulated in (False, True):
        verdicts = verdicts_of(study, simulated=simulated)
        known = draw_probabilities(verdicts, scores)
        for model in (name for name in study.models if name not in study.readers):
            own = {key: verdicts[key] for key in known if scores[key].model == model}
            drawn = _ModelDraws(own, known, frozenset(scores[key].family for key in own), simulated)
            for benchmark in study.benchmarks.values():
                if benchmark.outcomes.repeatable.any() and (own or not simulated):
                    rows += list(_rows_of_model(study, benchmark, model, drawn))
    # clinicians first, then simulated raters, benchmarks in the order of the run
    rows.sort(key=lambda row: (row["simulated"], list(study.benchmarks).index(row["benchmark"])))
    return [CalibratedRow(**row) for row in rows]


def corrects_score(row: CalibratedRow) -> bool:
    """Return True if a row corrects the score on the leaderboard: by clinicians, not simulated raters, and from enough rated answers."""
    return row.grader == SCORE and not row.simulated and row.calibrated is not None and not is_too_few(row)


def is_too_few(row: Mapping[str, Any]) -> bool:
    """Return True if a row of `calibrated.csv` has too few rated answers to be shown beside a score."""
    return bool(row["n_rated"] < FEWEST_ANSWERS or row["n_patients_rated"] < FEWEST_PATIENTS)


def _rows_of_model(study: Study, benchmark: BenchmarkStudy, model: str, drawn: _ModelDraws) -> Iterator[Cells]:
    scores = headline(benchmark.scores[model])
    passed = {response_key(row): float(row.passed) for row in scores if row.passed is not None and not row.missing}
    yield _row(study, benchmark, Arm(model), drawn, grader=SCORE, passed=passed)
    for grader in study.graders:
        grades = grades_of(benchmark, model, grader, scores)
        if grades:  # an answer without a grade fails, as in the score, unless clinicians passed it
            yield _row(
                study, benchmark, Arm(model), drawn, grader=grader, passed={key: float(v >= PASS_VALUE) for key, v in grades.items()}
            )


def _row(study: Study, benchmark: BenchmarkStudy, model: Arm, drawn: _ModelDraws, *, grader: str, passed: Mapping[Key, float]) -> Cells:
    outcomes = benchmark.outcomes
    # graders judge open items only; the score covers all
    used = outcomes.repeatable if grader != SCORE else np.ones(len(outcomes.items), dtype=bool)
    by = outcomes.by_patient(study.settings, model)
    answers, places, rows = _answers(study, benchmark, model, used, drawn, passed=passed)
    # the graders' rate counts every item as the mean of its samples
    values = np.where(used, np.bincount(places, weights=answers.weight * answers.graded, minlength=len(used)), np.nan)
    # above the allowed share without a verdict the graders' rate is unknown; clinicians correct what nobody graded, but not what never came
    allowed = study.settings.max_missing_fraction * len(rows)
    absent = sum(row is None or row.missing for row in rows)
    without = absent + sum(row is not None and not row.missing and _is_without_verdict(row, passed) for row in rows)
    if not passed or without > allowed:
        values = np.full(len(used), np.nan)
    raw = rate_interval(values, by)
    corrected = calibrated_rate(answers) if absent <= allowed else Interval()
    failed, right = answers.bounds_of_unjudged() if absent <= allowed else (None, None)
    row: Cells = {"benchmark": benchmark.name, "model": model.model, "grader": grader}
    row |= {"raw": raw.value, "raw_low": raw.low, "raw_high": raw.high}
    row |= dict(zip(CORRECTED, corrected[:3], strict=True))
    row |= {
        "if_unjudged_failed": failed,
        "if_unjudged_passed": right,
        "n_rated": int(answers.rated.sum()),
        "n_raters": len(answers.without),
        "n_patients_rated": answers.by.at(answers.rated).clusters,
        "n_unjudged": int(answers.unjudged.sum()),
        "n_answers": len(answers.graded),
        "n_patients": answers.by.clusters,
        "simulated": drawn.simulated,
    }
    return row | {"note": _note(row, absent > allowed)}


def _is_without_verdict(row: Score, passed: Mapping[Key, float]) -> bool:
    """Return True if an answer has no verdict; refused and truncated ones are wrong without a grader."""
    return row.state == ResponseState.OK and response_key(row) not in passed


def _note(row: Cells, too_few_came: bool) -> str:
    if too_few_came:
        return "too many answers are missing: neither rate is known"
    if not row["n_rated"]:
        who = "simulated rater" if row["simulated"] else "clinician"
        return f"no {who} has judged an answer" if row["simulated"] or row["n_unjudged"] else f"grader only: no {who} has rated an answer"
    return f"too few rated: counts from {FEWEST_ANSWERS} answers of {FEWEST_PATIENTS} patients on" if is_too_few(row) else ""


def _answers(
    study: Study, benchmark: BenchmarkStudy, model: Arm, used: npt.NDArray[np.bool_], drawn: _ModelDraws, *, passed: Mapping[Key, float]
) -> tuple[RatedAnswers, Ints, list[Score | None]]:
    """Return every expected answer to the items that are used, the index of its item, and its score; None where it never came."""
    outcomes, threshold = benchmark.outcomes, study.form.passes.from_ if study.form.passes else 0
    samples = np.where(used, outcomes.counts[model].samples, 0)
    # every expected sample has a place, also if its response is missing
    rows = {(row.item_id, row.repeat): row for row in headline(benchmark.scores[model.model])}
    expected = [(place, rows.get((outcomes.items[place].item_id, repeat))) for place, n in enumerate(samples) for repeat in range(n)]
    places = np.array([place for place, _ in expected], dtype=np.int64)
    keys = [response_key(row) if row else None for _, row in expected]
    verdicts = [drawn.verdicts.get(key) if key else None for key in keys]
    # a refused or empty answer cannot be drawn
    there = {response_key(row) for row in benchmark.responses[model.model] if row.state is ResponseState.OK and row.text.strip()}
    families = [item.family in drawn.families for item in outcomes.items]
    raters = sorted({rater for verdict in verdicts if verdict for rater in verdict.by_rater})
    answers = RatedAnswers(
        graded=np.array([passed.get(key, 0.0) if key else 0.0 for key in keys]),
        judged=np.array([_passes(verdict.value if verdict else None, threshold) for verdict in verdicts]),
        unjudged=np.array([verdict is not None and verdict.value is None for verdict in verdicts], dtype=bool),
        probability=np.array(
            [drawn.probabilities[key] if key and verdict else np.nan for key, verdict in zip(keys, verdicts, strict=True)]
        ),
        weight=1.0 / samples[places],
        drawable=np.array([key in there and families[place] for key, place in zip(keys, places, strict=True)], dtype=bool),
        by=outcomes.by_patient(study.settings, model).at(places),
        without=np.array([[_passes(verdict.without(rater) if verdict else None, threshold) for verdict in verdicts] for rater in raters]),
    )
    return answers, places, [row for _, row in expected]


def _passes(value: float | None, threshold: float) -> float:
    return np.nan if value is None else float(value >= threshold)


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


TABLE = Table(
    name="calibrated",
    row=CalibratedRow,
    rows=of_study(calibrated_rows),
    suppression=Suppression(
        f"{MODEL} grader simulated",
        rated="n_patients_rated calibrated calibrated_low calibrated_high if_unjudged_failed if_unjudged_passed n_rated n_unjudged",
    ),
)
