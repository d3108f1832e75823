"""Tables beside the verdict: fields, similarity, graders, ratings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.records.items import Family, Runner
from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import GradeState, Score, SimilarityRow
from neuralmedbench.scoring.fields import FIELDS, gold_labels
from neuralmedbench.stats.intervals import (
    Floats,
    Ints,
    Settings,
    cluster_sums,
    codes_of,
    percentile_interval,
    rate_interval,
    resampling_weights,
)
from neuralmedbench.stats.outcomes import DIRECT, FULL
from neuralmedbench.stats.pool import MARK, reference_pools
from neuralmedbench.stats.study import BenchmarkStudy, Study

SAME = frozenset({"exact", "synonym", "child"})
"""Relations to the reference that pass."""

METRICS = ("cosine", "bertscore_f1")
DESCRIPTIVE = "descriptive: similar words are not a right diagnosis"
CORE, MAIN = "core_diagnosis", "main_condition"

Row = dict[str, Any]


def headline(scores: list[Score]) -> list[Score]:
    """Rows of the arm full and the strategy direct."""
    return [row for row in scores if (row.arm, row.strategy) == (FULL, DIRECT)]


def field_rows(study: Study) -> list[Row]:
    """Rows of `fields.csv`: accuracy of every field of the structured answers; an abstention is not right."""
    rows = []
    for benchmark in study.benchmarks.values():
        reference = {gold.item_id: gold_labels(gold.fields) for gold in benchmark.gold if gold.fields is not None}
        for model, scores in benchmark.scores.items():
            asked = [row for row in headline(scores) if row.item_id in reference and row.fields_right is not None and not row.missing]
            rows += [_field_row(study, benchmark.name, model, field, scores=asked, reference=reference) for field in FIELDS]
    return [row for row in rows if row["accuracy"] is not None]


def _field_row(study: Study, benchmark: str, model: str, field: str, *, scores: list[Score], reference: dict[str, dict[str, str]]) -> Row:
    known = [row for row in scores if field in (row.fields_right or {}) and field in reference[row.item_id]]
    right = np.array([(row.fields_right or {})[field] for row in known], dtype=np.float64)
    interval = rate_interval(right, codes_of([row.patient_id for row in known]), study.settings)
    truth = [reference[row.item_id][field] for row in known]
    said = [(row.fields or {}).get(field, "") for row in known]
    return {
        "benchmark": benchmark,
        "model": model,
        "field": field,
        "accuracy": interval.value,
        "low": interval.low,
        "high": interval.high,
        "macro_f1": macro_f1(truth, said) if any(said) else None,
        "abstained": sum(field in row.fields_abstained for row in known),
        "n_items": len({row.item_id for row in known}),
        "n_patients": len({row.patient_id for row in known}),
    }


def macro_f1(truth: list[str], said: list[str]) -> float | None:
    """Mean F1 over the classes that occur in the reference; an abstention (empty) belongs to none.

    Examples
    --------
    >>> macro_f1(["a", "a", "b"], ["a", "", "b"])
    0.8333333333333333
    """
    if not truth:
        return None
    pairs = [(wanted.casefold(), given.casefold()) for wanted, given in zip(truth, said, strict=True)]
    hits = Counter(wanted for wanted, given in pairs if wanted == given)
    wanted_total, given_total = Counter(wanted for wanted, _ in pairs), Counter(given for _, given in pairs)
    return float(np.mean([2 * hits[name] / (wanted_total[name] + given_total[name]) for name in wanted_total]))


def similarity_rows(study: Study) -> list[Row]:
    """Rows of `similarity.csv`: mean similarity, and how well it separates same from other diagnoses by the vocabulary."""
    rows = []
    for benchmark in study.benchmarks.values():
        near = {(response_key(row), row.text_sha256): row for row in benchmark.similarity}
        for model, scores in benchmark.scores.items():
            keys = [(row, (response_key(row), row.text_sha256)) for row in headline(scores)]
            pairs = [(row, near[key]) for row, key in keys if key in near]
            rows += [_similarity_row(study, benchmark.name, model, metric, pairs) for metric in METRICS]
    return [row for row in rows if row["n"]]


def _similarity_row(study: Study, benchmark: str, model: str, metric: str, pairs: list[tuple[Score, SimilarityRow]]) -> Row:
    known = [(score, near) for score, near in pairs if getattr(near, metric) is not None]
    row: Row = {"benchmark": benchmark, "model": model, "metric": metric, "n": len(known), "note": DESCRIPTIVE}
    if not known:
        return row
    values = np.array([getattr(near, metric) for _, near in known], dtype=np.float64)
    same = np.array([score.relation in SAME for score, _ in known], dtype=bool)
    auc, low, high = separation(values, same, codes_of([score.patient_id for score, _ in known]), study.settings)
    return row | {"mean": float(values.mean()), "auc_vs_vocabulary": auc, "auc_low": low, "auc_high": high}


def separation(values: Floats, same: npt.NDArray[np.bool_], patients: Ints, settings: Settings) -> tuple[float | None, ...]:
    """Area under the ROC curve of a value for telling `same` from the rest, with a patient-clustered interval.

    Parameters
    ----------
    values : ndarray of float, shape (responses,)
        The value.
    same : ndarray of bool, shape (responses,)
        What it should tell.
    patients : ndarray of int, shape (responses,)
        Patient of each response, numbered from 0 without gaps.
    settings : Settings
        Resamples, seed and confidence.

    Returns
    -------
    tuple of float or None
        Area, low, high; None when one side is empty.
    """
    if same.all() or not same.any():
        return None, None, None
    clusters = int(patients.max()) + 1
    wins = (values[same][:, None] > values[~same]) + 0.5 * (values[same][:, None] == values[~same])
    between = cluster_sums(cluster_sums(wins, patients[same], clusters).T, patients[~same], clusters).T
    positives, negatives = (np.bincount(patients[side], minlength=clusters).astype(np.float64) for side in (same, ~same))
    weights = resampling_weights(clusters, settings.resamples, settings.seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = ((weights @ between) * weights).sum(axis=1) / ((weights @ positives) * (weights @ negatives))
    low, high = percentile_interval(draws, clusters, settings.confidence)
    return float(wins.mean()), low, high


def grader_rows(study: Study) -> list[Row]:
    """Rows of `graders.csv`: what each grader gave, and how often it says pass when the first one does."""
    rows = []
    for benchmark in study.benchmarks.values():
        for model in study.models:
            first = _verdicts(benchmark, model, next(iter(study.graders), ""))
            rows += [_grader_row(benchmark, model, grader, first) for grader in study.graders if benchmark.grades[model, grader]]
    return rows


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
    """Rows of `ratings.csv`: clinicians' means; stale ratings are counted and left out of the mean."""
    groups: dict[tuple[str, str, str, bool], list[tuple[float | None, bool]]] = defaultdict(list)
    pools, chose = reference_pools(study), set[tuple[str, str]]()
    for rating in study.ratings:
        groups[rating.round_id, rating.model, rating.axis, rating.simulated].append((rating.value, rating.stale))
        if rating.model in pools.get(rating.item_id.partition("/")[0], ()):  # a round may rate items of several benchmarks
            chose.add((rating.round_id, rating.model))
    rows = []
    for (round_id, model, axis, simulated), entries in sorted(groups.items()):
        fresh = [value for value, stale in entries if value is not None and not stale]
        row: Row = {MARK: (round_id, model) in chose}
        row |= {"round_id": round_id, "model": model, "axis": axis, "n": len(fresh), "mean": float(np.mean(fresh)) if fresh else None}
        rows.append(row | {"stale": sum(stale for _, stale in entries), "simulated": simulated})
    return rows
