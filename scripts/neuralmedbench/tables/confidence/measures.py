"""Confidences of a model's answers, from three sources, and their measures under one set of resampled patients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from neuralmedbench.estimates.calibration import MASS_BINS, mass_bins, width_bins
from neuralmedbench.estimates.contrasts import Ratio
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, Ints, rate_interval
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import ParseStatus, Score, response_key
from neuralmedbench.scoring.scores import elect_sample
from neuralmedbench.tables.answers import Samples
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.study import BenchmarkStudy, Study

UNSTATED = "unstated"
REASONS = ("refused", "truncated", "abstained", "unparsable", UNSTATED)
"""Reasons why an answer has no confidence, the first that applies; the last: it was parsed and states none."""


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
        Confidence, 0 to 1, and outcome (1 right, 0 wrong) of the answers that have a confidence.
    items, patients : ndarray of int, shape (answers,)
        Their items (places in `Outcomes.items`) and patients.
    rest_right : ndarray of float, shape (rest,)
        Outcome of the answers without a confidence; `rest_patients` are their patients.
    reasons : dict of str to int
        Answers without a confidence by `REASONS`.
    missing : int
        Missing answers; for the source `agreement`, missing items.
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

    def gaps(self, size: int) -> Ratio:
        """Return the sums of confidence minus outcome, and the numbers of answers, by item of a benchmark with `size` items."""
        sums = np.bincount(self.items, weights=self.value - self.right, minlength=size).astype(np.float64)
        return Ratio(sums, np.bincount(self.items, minlength=size).astype(np.float64))

    def of_items(self, items: Ints) -> Confidences:
        """Return the answers with a confidence to some items."""
        kept = np.isin(self.items, items)
        return replace(self, value=self.value[kept], right=self.right[kept], items=self.items[kept], patients=self.patients[kept])


def gather_confidences(study: Study, benchmark: BenchmarkStudy) -> Iterator[Confidences]:
    """Yield the confidences of every model under every arm, strategy direct.

    `stated`: for each model and arm, empty where nothing is stated. `tokens`: where token probabilities were kept; their
    geometric mean over the whole last answer, which is not the probability that the diagnosis is right. `agreement`: where
    items have several samples at a temperature above 0; one value per item, the share of its samples that agree with the elected
    sample (`scoring.scores`), right when that one is right. Free answers have none: their words are hardly ever equal.
    """
    answers = benchmark.outcomes.answers
    for model in study.models:
        tokens = {response_key(row): row.mean_logprob for row in benchmark.responses.get(model, []) if row.mean_logprob is not None}
        for key in (Key(model, arm) for arm in answers.arms(model)):
            samples = answers.of(key)
            yield _answers(benchmark, key, ConfidenceSource.STATED, samples, _stated_confidence)
            if tokens:
                yield _answers(benchmark, key, ConfidenceSource.TOKENS, samples, _Likelihood(tokens))
            if benchmark.outcomes.counts[key].sampled:
                voted = _agreement(study, benchmark, key, samples)
                if voted is not None:
                    yield voted


def _stated_confidence(row: Score) -> float | None:
    return None if row.abstained else row.confidence


@dataclass(frozen=True)
class _Likelihood:
    tokens: Mapping[tuple[str, str, str, str, str, int], float]

    def __call__(self, row: Score) -> float | None:
        mean = self.tokens.get(response_key(row))
        return (
            None if mean is None or _reason(row) != UNSTATED else min(1.0, math.exp(mean))
        )  # an answer that names nothing has token probabilities too


def _reason(row: Score) -> str:
    """Return the reason why an answer has no confidence."""
    if row.state in (ResponseState.REFUSED, ResponseState.TRUNCATED):
        return row.state
    if row.abstained:
        return "abstained"
    return "unparsable" if row.parse_status == ParseStatus.FAILED else UNSTATED


def _answers(
    benchmark: BenchmarkStudy, key: Key, source: ConfidenceSource, samples: Samples, confidence: Callable[[Score], float | None]
) -> Confidences:
    known = [(place, row, confidence(row)) for place, row in samples.graded.rows()]
    return _confidences_of(benchmark, key, source, known, missing=len(samples.scores) - len(known))


def _agreement(study: Study, benchmark: BenchmarkStudy, key: Key, samples: Samples) -> Confidences | None:
    # only items with several samples have a vote; free answers are never equal
    several, items = samples.number() > 1, benchmark.outcomes.items
    groups = [(place, rows) for place, rows in enumerate(samples.by_item()) if rows and several[place] and not items[place].has_free_answer]
    if not groups:
        return None
    voting = sum(number and not item.has_free_answer for item, number in zip(items, several.tolist(), strict=True))
    # the confidence is the share of samples that agree with the elected one
    votes = [(place, elect_sample(rows, study.vocabulary)) for place, rows in groups]
    there = [(place, vote) for place, vote in votes if not vote.row.missing and vote.row.passed is not None]
    known = [(place, vote.row, vote.votes / vote.samples if vote.votes else None) for place, vote in there]
    return _confidences_of(benchmark, key, ConfidenceSource.AGREEMENT, known, missing=voting - len(there))


def _confidences_of(
    benchmark: BenchmarkStudy, key: Key, source: ConfidenceSource, known: Sequence[tuple[int, Score, float | None]], *, missing: int
) -> Confidences:
    patients = benchmark.outcomes.patients
    kept = [(place, row, value) for place, row, value in known if value is not None]
    rest = [(place, row) for place, row, value in known if value is None]
    items = np.array([place for place, _, _ in kept], dtype=np.int64)
    reasons = dict.fromkeys(REASONS, 0)
    for _, row in rest:
        reasons[_reason(row)] += 1
    return Confidences(
        benchmark=benchmark.name,
        model=key.model,
        arm=key.arm,
        source=source,
        value=np.array([value for _, _, value in kept], dtype=np.float64),
        right=np.array([bool(row.passed) for _, row, _ in kept], dtype=np.float64),
        items=items,
        patients=patients[items],
        rest_right=np.array([bool(row.passed) for _, row in rest], dtype=np.float64),
        rest_patients=patients[np.array([place for place, _ in rest], dtype=np.int64)],
        reasons=reasons,
        missing=missing,
    )


GROUPS = 6 * MASS_BINS
"""Number of groups of confidence for the resamples; the shift that grouping causes is corrected in `Draws.around`."""


class Draws:
    """Resampled measures of one `Confidences`; every array has shape (resamples,) unless it says otherwise.

    Parameters
    ----------
    found : Confidences
        At least one answer has a confidence.
    by : ByPatient
        All items of the benchmark: the resamples of all models and arms are the same, so that differences between them are paired.
    joined : ndarray of int, shape (patients,), optional
        Cluster of each patient in `by`, where patients who share a request are one; without it every patient is one.
    """

    def __init__(self, found: Confidences, by: ByPatient, joined: Ints | None = None) -> None:
        self.found, self.by, self._joined = found, by, joined
        self.groups = mass_bins(found.value, GROUPS)
        self.clusters = len(set(self.cluster_of(found.patients).tolist()))

    def cluster_of(self, patients: Ints) -> Ints:
        """Return the cluster of each patient."""
        return patients if self._joined is None else self._joined[patients]

    def _by_patient(self, weights: Floats | None, patients: Ints, groups: Ints, size: int) -> Floats:
        sums = np.bincount(self.cluster_of(patients) * size + groups, weights=weights, minlength=self.by.clusters * size)
        return np.asarray(sums, dtype=np.float64).reshape(self.by.clusters, size)

    @cached_property
    def _sums(self) -> list[Floats]:
        found = self.found
        one, rest = np.zeros_like(found.items), np.zeros_like(found.rest_patients)
        # sums per patient: answers and right answers per group, gaps per bin, squared gaps, answers without a confidence
        gap, bins = found.value - found.right, width_bins(found.value)
        parts = [
            self._by_patient(None, found.patients, self.groups, GROUPS),
            self._by_patient(found.right, found.patients, self.groups, GROUPS),
            self._by_patient(gap, found.patients, bins, int(bins.max()) + 1),
            self._by_patient(gap**2, found.patients, one, 1),
            self._by_patient(None, found.rest_patients, rest, 1),
            self._by_patient(found.rest_right, found.rest_patients, rest, 1),
        ]
        drawn = self.by.weights @ np.concatenate(parts, axis=1)
        return list(np.split(drawn, np.cumsum([part.shape[1] for part in parts])[:-1], axis=1))

    @cached_property
    def _answers(self) -> Floats:
        return np.asarray(self._sums[0].sum(axis=1), dtype=np.float64)

    def _per_answer(self, sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / self._answers, dtype=np.float64)

    @property
    def overconfidence(self) -> Floats:
        """Mean confidence minus share right; computed without `_sums`, as contrasts between arms need only this."""
        found, one = self.found, np.zeros_like(self.found.items)
        sums = [self._by_patient(weights, found.patients, one, 1) for weights in (found.value - found.right, None)]
        drawn = self.by.weights @ np.concatenate(sums, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(drawn[:, 0] / drawn[:, 1], dtype=np.float64)

    @property
    def calibration_error(self) -> Floats:
        """Expected calibration error over bins of equal width."""
        return self._per_answer(np.abs(self._sums[2]).sum(axis=1))

    @property
    def error_by_chance(self) -> Floats:
        """Calibration error of a perfectly calibrated model whose answers scatter as these do: resampled minus observed gaps."""
        gap = np.bincount(width_bins(self.found.value), weights=self.found.value - self.found.right)
        return self._per_answer(np.abs(self._sums[2] - gap * (self._answers / len(self.found.value))[:, None]).sum(axis=1))

    def error_interval(self, error: float) -> tuple[float | None, float | None]:
        """Return the interval of the calibration error.

        Noise adds to this error, and resampling adds noise. The low end is the percentile reflected at `error`, and 0 unless `error`
        exceeds the upper limit under chance alone; the high end is the larger of the percentile and the reflected one. (Our
        rule. `perf/confidence_intervals.py` measures its coverage; plain percentiles of a calibrated model never held the truth.)
        """
        # an error within chance has the lower limit 0
        low, high = self.by.percentiles(self.calibration_error, self.clusters)
        chance = self.by.percentiles(self.error_by_chance, self.clusters)[1]
        if low is None or high is None:
            return None, None
        # reflect the percentiles at the estimate, against the bias of resampling
        turned = max(0.0, 2 * error - high)
        return 0.0 if chance is not None and error <= chance else turned, min(1.0, max(high, 2 * error - low))

    @property
    def brier(self) -> Floats:
        """Brier score."""
        return self._per_answer(self._sums[3][:, 0])

    @property
    def auroc(self) -> Floats:
        """Area under the ROC curve of confidence for right; answers within a group are ties and count by half."""
        counts, rights = self._sums[0], self._sums[1]
        wrongs = counts - rights
        below = np.cumsum(wrongs, axis=1) - wrongs
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((rights * (below + wrongs / 2)).sum(axis=1) / (rights.sum(axis=1) * wrongs.sum(axis=1)), dtype=np.float64)

    def around(self, value: float | None, drawn: Floats, grouped: float | None = None) -> tuple[float | None, float | None]:
        """Return the interval of a measure between 0 and 1; `grouped` is its value over the groups, if the draws are of groups."""
        if value is None:
            return None, None
        low, high = self.by.percentiles(drawn + (0.0 if grouped is None else value - grouped), self.clusters)
        return (None, None) if low is None or high is None else (max(0.0, low), min(1.0, high))

    def share_right(self, right: Floats, patients: Ints) -> Interval:
        """Return the interval of a share of answers."""
        return rate_interval(right, ByPatient(self.cluster_of(patients), self.by.settings))
