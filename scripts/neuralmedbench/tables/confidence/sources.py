"""Answers with the confidence that goes with them, from three sources; and what became of the answers that have none."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints
from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.scoring.scores import elect_sample
from neuralmedbench.tables.outcomes import DIRECT, Key
from neuralmedbench.tables.study import BenchmarkStudy, Study

UNSTATED = "unstated"
REASONS = ("refused", "truncated", "abstained", "unparsable", UNSTATED)
"""Why an answer has no confidence; the first that fits counts. The last: it was read, and states none."""


class ConfidenceSource(StrEnum):
    """Where a confidence comes from."""

    STATED = "stated"
    AGREEMENT = "agreement"
    TOKENS = "tokens"


@dataclass(frozen=True, kw_only=True)
class Confidences:
    """The answers of one model to one benchmark under one arm, strategy direct.

    Attributes
    ----------
    value, right : ndarray of float, shape (answers,)
        Confidence, 0 to 1, and whether the answer is right, of the answers that have a confidence.
    items, patients : ndarray of int, shape (answers,)
        Their items (places in `Outcomes.items`) and patients.
    rest_right : ndarray of float, shape (rest,)
        Whether an answer without a confidence is right; `rest_patients` are their patients.
    reasons : dict of str to int
        Answers without a confidence by `REASONS`.
    missing : int
        Answers that are missing because of us; of `agreement` items.
    """

    benchmark: str
    model: str
    arm: str
    source: ConfidenceSource
    value: Floats
    right: Floats
    items: Ints
    patients: Ints
    rest_right: Floats
    rest_patients: Ints
    reasons: dict[str, int]
    missing: int

    def of_items(self, items: Ints) -> Confidences:
        """Keep the answers with a confidence to some items."""
        kept = np.isin(self.items, items)
        return replace(self, value=self.value[kept], right=self.right[kept], items=self.items[kept], patients=self.patients[kept])


def gather_confidences(study: Study, benchmark: BenchmarkStudy) -> Iterator[Confidences]:
    """Give the confidences of every model under every arm, strategy direct.

    `stated`: one for each model and arm, empty where nothing is stated. `tokens`: where probabilities of tokens were kept; the
    geometric mean of those of the whole last answer, which is not the probability that the diagnosis is right. `agreement`: where an
    item has several samples at a temperature above 0; one for each item: the share of its samples that say what the elected sample
    says (`scoring.scores`), right when that one is right. Free answers have none: their words are hardly ever equal.
    """
    places = {item.item_id: place for place, item in enumerate(benchmark.outcomes.items)}
    for model in study.models:
        arms: dict[str, list[Score]] = defaultdict(list)
        for row in benchmark.scores.get(model, []):
            if row.strategy == DIRECT and row.item_id in places:
                arms[row.arm].append(row)
        tokens = {response_key(row): row.mean_logprob for row in benchmark.responses.get(model, []) if row.mean_logprob is not None}
        for key in sorted(key for key in benchmark.outcomes.counts if (key.model, key.strategy) == (model, DIRECT)):
            rows = arms[key.arm]
            yield _answers(benchmark, key, ConfidenceSource.STATED, rows, places=places, confidence=_stated)
            if tokens:
                likely = _Likelihood(tokens)
                yield _answers(benchmark, key, ConfidenceSource.TOKENS, rows, places=places, confidence=likely)
            if benchmark.outcomes.counts[key].sampled:
                voted = _agreement(study, benchmark, key, rows, places=places)
                if voted is not None:
                    yield voted


def _stated(row: Score) -> float | None:
    return None if row.abstained else row.confidence


@dataclass(frozen=True)
class _Likelihood:
    tokens: Mapping[tuple[str, str, str, str, str, int], float]

    def __call__(self, row: Score) -> float | None:
        mean = self.tokens.get(response_key(row))
        return None if mean is None or _reason(row) != UNSTATED else min(1.0, math.exp(mean))  # words that name nothing have tokens too


def _reason(row: Score) -> str:
    """Say why an answer has no confidence, given that it has none."""
    if row.state in (ResponseState.REFUSED, ResponseState.TRUNCATED):
        return row.state
    if row.abstained:
        return "abstained"
    return "unparsable" if row.parse_status == ParseStatus.FAILED else UNSTATED


def _answers(
    benchmark: BenchmarkStudy,
    key: Key,
    source: ConfidenceSource,
    rows: Iterable[Score],
    *,
    places: Mapping[str, int],
    confidence: Callable[[Score], float | None],
) -> Confidences:
    there = [row for row in rows if not row.missing and row.passed is not None]
    expected = int(benchmark.outcomes.counts[key].samples.sum())
    return _gathered(benchmark, key, source, [(row, confidence(row)) for row in there], places=places, missing=expected - len(there))


def _agreement(
    study: Study, benchmark: BenchmarkStudy, key: Key, rows: Iterable[Score], *, places: Mapping[str, int]
) -> Confidences | None:
    samples = benchmark.outcomes.counts[key].samples
    voting = {item.item_id for item, number in zip(benchmark.outcomes.items, samples, strict=True) if number > 1 and not _is_free(item)}
    groups: dict[str, list[Score]] = defaultdict(list)
    for row in rows:
        if row.item_id in voting:
            groups[row.item_id].append(row)
    if not groups:
        return None
    votes = [elect_sample(own, study.vocabulary) for _, own in sorted(groups.items())]
    there = [vote for vote in votes if not vote.row.missing and vote.row.passed is not None]
    known = [(vote.row, vote.votes / vote.samples if vote.votes else None) for vote in there]
    return _gathered(benchmark, key, ConfidenceSource.AGREEMENT, known, places=places, missing=len(voting) - len(there))


def _is_free(item: Item) -> bool:
    return item.runner is Runner.OPEN and item.family is Family.QUESTION_ANSWERING


def _gathered(
    benchmark: BenchmarkStudy,
    key: Key,
    source: ConfidenceSource,
    known: Sequence[tuple[Score, float | None]],
    *,
    places: Mapping[str, int],
    missing: int,
) -> Confidences:
    patients = benchmark.outcomes.patients
    kept = [(value, row) for row, value in known if value is not None]
    rest = [row for row, value in known if value is None]
    items = np.array([places[row.item_id] for _, row in kept], dtype=np.int64)
    reasons = dict.fromkeys(REASONS, 0)
    for row in rest:
        reasons[_reason(row)] += 1
    return Confidences(
        benchmark=benchmark.name,
        model=key.model,
        arm=key.arm,
        source=source,
        value=np.array([value for value, _ in kept], dtype=np.float64),
        right=np.array([bool(row.passed) for _, row in kept], dtype=np.float64),
        items=items,
        patients=patients[items],
        rest_right=np.array([bool(row.passed) for row in rest], dtype=np.float64),
        rest_patients=patients[np.array([places[row.item_id] for row in rest], dtype=np.int64)],
        reasons=reasons,
        missing=missing,
    )
