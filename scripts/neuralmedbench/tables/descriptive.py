"""Tables beside the verdict: similarity, graders, ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from neuralmedbench.estimates.intervals import codes_of
from neuralmedbench.estimates.separation import separation
from neuralmedbench.records.items import Family, Level, Runner
from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import GradeState, Rating, Score, SimilarityRow
from neuralmedbench.tables.clinicians.opinions import ClinicianWord, by_axis, clinician_words, fresh_sample
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.pool import MARK, reference_pools
from neuralmedbench.tables.study import BenchmarkStudy, Study

SAME = frozenset({"exact", "synonym", "child"})
"""Relations to the reference that pass."""

METRICS = ("cosine", "bertscore_f1")
DESCRIPTIVE = "descriptive: similar words are not a right diagnosis"
CORE, MAIN = "core_diagnosis", "main_condition"

Row = dict[str, Any]
Named = tuple[str, str, str, bool]
"""Round, model, axis, and whether the raters are simulated."""
Pair = tuple[Score, SimilarityRow]


def headline(scores: list[Score]) -> list[Score]:
    """Rows of the arm full and the strategy direct."""
    return [row for row in scores if (row.arm, row.strategy) == (FULL, DIRECT)]


def similarity_rows(study: Study) -> list[Row]:
    """Rows of `similarity.csv`: mean similarity, and how well it separates same from other diagnoses by the vocabulary.

    A similarity of another text than the scored one is stale and left out. Answers of which the vocabulary wrote an abbreviation out stand in
    the mean and not in the area: what the vocabulary made equal cannot show that the encoder agrees with it.
    """
    rows = []
    for benchmark in study.benchmarks.values():
        near = {(response_key(row), row.text_sha256): row for row in benchmark.similarity}
        for model, scores in benchmark.scores.items():
            keys = [(row, (response_key(row), row.text_sha256)) for row in headline(scores)]
            pairs = [(row, near[key]) for row, key in keys if key in near]
            for level, part in _by_level(pairs).items():
                rows += [_similarity_row(study, benchmark.name, model, metric, part) | {"level": level} for metric in METRICS]
    return [row for row in rows if row["n"]]


def _by_level(pairs: list[Pair]) -> dict[str, list[Pair]]:
    """All answers, then those of each level, also when there is only one: the papers report similarity by level."""
    levels = sorted({score.level for score, _ in pairs} - {Level.NONE})
    return {"all": pairs, **{level: [pair for pair in pairs if pair[0].level == level] for level in levels}}


def _similarity_row(study: Study, benchmark: str, model: str, metric: str, pairs: list[Pair]) -> Row:
    known = [(score, near) for score, near in pairs if getattr(near, metric) is not None]
    own = [(score, near) for score, near in known if not near.expanded]
    row: Row = {"benchmark": benchmark, "model": model, "metric": metric, "n": len(known), "auc_n": len(own), "note": DESCRIPTIVE}
    if not known:
        return row
    row["mean"] = float(np.mean([getattr(near, metric) for _, near in known]))
    values = np.array([getattr(near, metric) for _, near in own], dtype=np.float64)
    same = np.array([score.relation in SAME for score, _ in own], dtype=bool)
    auc, low, high = separation(values, same, codes_of([score.patient_id for score, _ in own]), study.settings)
    return row | {"auc_vs_vocabulary": auc, "auc_low": low, "auc_high": high}


def grader_rows(study: Study) -> list[Row]:
    """Rows of `graders.csv`: what each grader gave, and how often it says pass when the first one does."""
    rows = []
    for benchmark in study.benchmarks.values():
        for model in study.models:
            first = _verdicts(benchmark, model, next(iter(study.graders), ""))
            rows += [
                _grader_row(benchmark, model, grader, first) | _other_task(study, grader)
                for grader in study.graders
                if benchmark.grades[model, grader]
            ]
    return rows


def _other_task(study: Study, grader: str) -> Row:
    """Say of a grader that judges no diagnosis what it judges; that it left the diagnoses to others is no shortcoming."""
    config = study.graders[grader]
    seats = [study.all_graders[member] for member in config.members] or [config]
    tasks = {seat.task for seat in seats if seat.kind == "llm"} - {"diagnosis"}
    return {"note": f"judges {tasks.pop()}, no diagnosis"} if tasks else {}


def _verdicts(benchmark: BenchmarkStudy, model: str, grader: str) -> dict[Key, bool]:
    grades = benchmark.grades.get((model, grader), [])
    return {response_key(grade): grade.value >= 0.5 for grade in grades if grade.criterion == CORE and grade.value is not None}


def _grader_row(benchmark: BenchmarkStudy, model: str, grader: str, first: dict[Key, bool]) -> Row:
    grades, own = benchmark.grades[model, grader], _verdicts(benchmark, model, grader)
    states = Counter(grade.state for grade in grades)
    shared = own.keys() & first.keys()
    means = {name: [grade.value for grade in grades if grade.criterion == name and grade.value is not None] for name in (CORE, MAIN)}
    return {
        "benchmark": benchmark.name,
        "model": model,
        "grader": grader,
        "ok": states[GradeState.OK],
        "failed": states[GradeState.FAILED],
        "skipped": states[GradeState.SKIPPED],
        "mean_core_diagnosis": float(np.mean(means[CORE])) if means[CORE] else None,
        "mean_main_condition": float(np.mean(means[MAIN])) if means[MAIN] else None,
        "agreement_with_first": sum(own[key] == first[key] for key in shared) / len(shared) if shared else None,
        "note": _left_to_readers(benchmark, model, own) if states[GradeState.OK] else "gave no grade",
    }


def _left_to_readers(benchmark: BenchmarkStudy, model: str, judged: Iterable[Key]) -> str:
    """Say how many free answers a grader left to one that reads: means over the others are no means of the model."""
    free = {item.item_id for item in benchmark.items if item.runner is Runner.OPEN and item.family is Family.QUESTION_ANSWERING}
    free &= {row.item_id for row in benchmark.gold}
    answers = {response_key(row) for row in benchmark.responses[model] if row.item_id in free and row.state is ResponseState.OK}
    answers &= {response_key(row) for row in benchmark.scores[model]}  # of the samples of a vote only the elected one is graded
    left = len(answers - set(judged))
    return f"left {left} free answers to graders that read" if left else ""


def rating_rows(study: Study) -> list[Row]:
    """Rows of `ratings.csv`: means over answers of the clinicians' word; stale ratings are counted and left out."""
    rows, stale, split = [], Counter[Named](), dict[tuple[str, bool], list[Rating]]()
    pools, chose = reference_pools(study), set[tuple[str, str]]()
    for rating in study.sampled_ratings:
        split.setdefault((rating.round_id, rating.simulated), []).append(rating)
        stale[rating.round_id, rating.model, rating.axis, rating.simulated] += rating.stale
        if rating.model in pools.get(rating.item_id.partition("/")[0], ()):  # a round may rate items of several benchmarks
            chose.add((rating.round_id, rating.model))
    words: dict[Named, list[ClinicianWord]] = {place: [] for place in stale}
    for (round_id, simulated), ratings in split.items():
        for axis, of_axis in by_axis(fresh_sample(ratings)).items():
            for key, word in clinician_words(of_axis, axis).items():
                words.setdefault((round_id, key[3], axis, simulated), []).append(word)
    for (round_id, model, axis, simulated), entries in sorted(words.items()):
        means = [word.value for word in entries if word.value is not None]
        row: Row = {MARK: (round_id, model) in chose, "round_id": round_id, "model": model, "axis": axis, "simulated": simulated}
        row |= {"n": sum(word.raters for word in entries), "responses": len(means), "mean": float(np.mean(means)) if means else None}
        rows.append(row | {"adjudicated": sum(word.adjudicated for word in entries), "stale": stale[round_id, model, axis, simulated]})
    return rows
