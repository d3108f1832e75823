"""How sure answers are, and whether that follows the truth: topic `confidence`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from neuralmedbench.estimates.calibration import auroc_interval, calibration_error, kept_parts, mass_bins, overconfidence, width_bins
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, Ints, rate_interval
from neuralmedbench.records.arm_changes import CHOICE
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.results import by_measure
from neuralmedbench.records.scores import ParseStatus, Score, response_key
from neuralmedbench.scoring.scores import elect_sample
from neuralmedbench.tables.declare import Cells, ContrastRow, CountRow, Measure, MeasureRow, ModelRows, of_models, topic
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import FULL

Row = MeasureRow | ContrastRow | CountRow

OVERCONFIDENCE, SHARE_RIGHT = "overconfidence", "share_right"
BIN, COVERAGE, SOURCE = "bin", "coverage", "source"
"""Slices: bins of about equally many answers, the surest part of all answers, and the source of a contrast or count."""

UNSTATED = "unstated"
REASONS = ("refused", "truncated", "abstained", "unparsable", UNSTATED)
"""Reasons why an answer has no confidence, the first that applies; the last: it was parsed and states none."""

FIXED = (0.5, 0.8, 1.0)
"""Coverages at which the share right has an interval."""

POINTS = tuple(number / 20 for number in range(1, 21))
"""Coverages of the curve."""


class ConfidenceSource(StrEnum):
    """Where a confidence comes from."""

    STATED = "stated"
    AGREEMENT = "agreement"
    TOKENS = "tokens"


NONE = {ConfidenceSource.STATED: "none stated", ConfidenceSource.AGREEMENT: "no vote", ConfidenceSource.TOKENS: "none kept"}
"""Note where no answer has a confidence."""


@dataclass(frozen=True, kw_only=True)
class Confidences:
    """The answers of one model under one arm that are not missing, strategy direct; every array has shape (answers,).

    `places` are their items, `value` the confidence from 0 to 1 (-1 without one), `right` the outcome (1 right, 0 wrong). `reasons` counts
    the answers without a confidence, `missing` the missing ones; of the source `agreement` an item is one answer.
    """

    arm: str
    source: ConfidenceSource
    places: Ints
    value: Floats
    right: Floats
    reasons: Mapping[str, int]
    missing: int

    def at(self, answers: Mask) -> Confidences:
        """Keep some answers."""
        return replace(self, places=self.places[answers], value=self.value[answers], right=self.right[answers])

    @property
    def known(self) -> Confidences:
        """The answers that have a confidence."""
        return self.at(self.value >= 0)

    def of_items(self, items: Ints) -> Confidences:
        """Return the answers to some items."""
        return self.at(np.isin(self.places, items))


def gather_confidences(made: ModelRows) -> Iterator[Confidences]:
    """Yield the confidences of a model under every arm.

    `stated`: for each arm, empty where nothing is stated. `tokens`: where token probabilities were kept; their geometric mean over the
    whole last answer, which is not the probability that the diagnosis is right. `agreement`: where items have several samples at a
    temperature above 0; one value per item, the share of its samples that agree with the elected sample (`scoring.scores`), right when
    that one is right. Free answers have none: their words are hardly ever equal.
    """
    responses = made.benchmark.responses.get(made.model, [])
    tokens = {response_key(row): row.mean_logprob for row in responses if row.mean_logprob is not None}

    def likelihood(row: Score) -> float | None:
        # an answer that names nothing has token probabilities, too
        mean = tokens.get(response_key(row)) if _reason(row) == UNSTATED else None
        return None if mean is None else min(1.0, math.exp(mean))

    for arm in made.outcomes.answers.arms(made.model):
        if CHOICE.fullmatch(arm):  # of one name among five, which topic `title` is about
            continue
        yield stated_confidences(made, arm)
        if tokens:
            yield _of_answers(made, arm, ConfidenceSource.TOKENS, likelihood)
        if made.outcomes.counts[made.key(arm)].sampled:
            yield from _agreement(made, arm)


def stated_confidences(made: ModelRows, arm: str) -> Confidences:
    """Return the confidences that answers state; one that abstains has none."""
    return _of_answers(made, arm, ConfidenceSource.STATED, lambda row: None if row.abstained else row.confidence)


def _of_answers(made: ModelRows, arm: str, source: ConfidenceSource, confidence: Callable[[Score], float | None]) -> Confidences:
    samples = made.outcomes.answers.of(made.key(arm))
    return _confidences(arm, source, [(place, row, confidence(row)) for place, row in samples.graded.rows()], len(samples.scores))


def _agreement(made: ModelRows, arm: str) -> Iterator[Confidences]:
    """Yield the agreement of the samples of items that have several and are no free answers."""
    samples, items = made.outcomes.answers.of(made.key(arm)), made.outcomes.items
    voting = [place for place in np.flatnonzero(samples.number() > 1).tolist() if not items[place].has_free_answer]
    of_items = samples.by_item()
    votes = [(place, elect_sample(of_items[place], made.study.vocabulary)) for place in voting if of_items[place]]
    if votes:
        there = [(place, vote) for place, vote in votes if not vote.row.missing and vote.row.passed is not None]
        known = [(place, vote.row, vote.votes / vote.samples if vote.votes else None) for place, vote in there]
        yield _confidences(arm, ConfidenceSource.AGREEMENT, known, len(voting))


def _confidences(arm: str, source: ConfidenceSource, rows: list[tuple[int, Score, float | None]], expected: int) -> Confidences:
    return Confidences(
        arm=arm,
        source=source,
        places=np.array([place for place, _, _ in rows], dtype=np.int64),
        value=np.array([-1.0 if value is None else value for _, _, value in rows], dtype=np.float64),
        right=np.array([bool(row.passed) for _, row, _ in rows], dtype=np.float64),
        reasons=Counter(_reason(row) for _, row, value in rows if value is None),
        missing=expected - len(rows),
    )


def _reason(row: Score) -> str:
    """Return the reason why an answer has no confidence."""
    if row.state in (ResponseState.REFUSED, ResponseState.TRUNCATED):
        return row.state
    if row.abstained:
        return "abstained"
    return "unparsable" if row.parse_status == ParseStatus.FAILED else UNSTATED


ESTIMATES: Mapping[str, Callable[[Floats, Floats, ByPatient], Interval]] = {
    "mean_confidence": lambda value, right, by: rate_interval(value, by),
    SHARE_RIGHT: lambda value, right, by: rate_interval(right, by),
    OVERCONFIDENCE: overconfidence,
    "brier": lambda value, right, by: rate_interval((value - right) ** 2, by),
    "auroc": auroc_interval,
}
"""How each measure of answers that have a confidence is estimated."""

OF_BINS, OF_LEVELS = tuple(ESTIMATES)[:2], tuple(ESTIMATES)[:3]
"""Measures of bins, and of degraded pictures."""


@of_models("confidence")
def confidence_rows(made: ModelRows) -> Iterator[Row]:
    """Confidence of answers, by where it comes from (`source`), and whether it follows the truth.

    Of the full request, also bins of about equally many answers (`bin`), and the share right among
    the surest part of all answers (`coverage`), with an interval at `FIXED`. Contrasts of other
    arms are on the items with a confidence under both.
    """
    gathered = list(gather_confidences(made))
    full = {answers.source: answers for answers in gathered if answers.arm == FULL}
    for answers in gathered:
        known, under_full = answers.known, full.get(answers.source)
        left_out = len(answers.value) - len(known.value) + answers.missing
        summary = list(measure_rows(made, known, left_out=left_out)) or [_without(made, answers, left_out)]
        yield from summary
        # of the measures, so that they are hidden with them
        sizes = {"n_items": summary[0].n_items, "n_patients": summary[0].n_patients}
        yield from _calibration_errors(made, answers, **sizes)
        yield from _counts(made, answers, **sizes)
        if answers.arm == FULL and len(known.value):
            yield from _bins(made, known)
            yield from _coverages(made, answers)
        elif answers.arm != FULL and under_full:
            both = np.intersect1d(known.places, under_full.known.places)
            sides = [side.of_items(both) for side in (known, under_full.known)]
            if both.size:
                yield shift_row(made, *sides, slice=SOURCE, value_of_slice=str(answers.source))


def measure_rows(made: ModelRows, known: Confidences, measures: Iterable[str] = ESTIMATES, **cells: Any) -> Iterator[MeasureRow]:
    """Yield measures of answers that have a confidence; none where there is none."""
    by, items = made.by(known.arm).at(known.places), _items(made, known)
    cells = {"arm": known.arm, "source": str(known.source), "n_answers": len(known.value), **cells}
    # one request: nothing says how far another draw would lie
    single = by.clusters == 1 and made.key(known.arm) in made.outcomes.requests
    for name in measures if len(known.value) else ():
        interval = ESTIMATES[name](known.value, known.right, by)
        yield made.interval(name, Interval(interval.value) if single else interval, items, **cells)


def _calibration_errors(made: ModelRows, answers: Confidences, **cells: Any) -> Iterator[MeasureRow]:
    """Yield the expected calibration error, which tables of papers have; and the same with each answer without a confidence as a wrong one of 1."""
    known, number = answers.known, len(answers.value)
    absent = number - len(known.value)
    error = calibration_error(known.value, known.right, width_bins(known.value)) or 0.0
    cells |= {"arm": answers.arm, "source": str(answers.source)}
    if len(known.value):
        yield made.plain("ece", value=error, n_answers=len(known.value), **cells)
    if number:
        yield made.plain("ece_pessimistic", value=(error * len(known.value) + absent) / number, n_answers=number, **cells)


def shift_row(made: ModelRows, first: Confidences, second: Confidences, **cells: Any) -> ContrastRow:
    """Return how much more overconfident the first answers are than the second, which are of the arm full."""
    sides = [made.sums(zip(known.places.tolist(), (known.value - known.right).tolist(), strict=True)) for known in (first, second)]
    return made.contrast(OVERCONFIDENCE, *sides, arm=first.arm, **cells)


def _items(made: ModelRows, answers: Confidences) -> Mask:
    return np.isin(np.arange(len(made.outcomes.items)), answers.places)


def _without(made: ModelRows, answers: Confidences, left_out: int) -> MeasureRow:
    note = NONE[answers.source] if len(answers.value) else "no answer"
    cells: Cells = {"arm": answers.arm, "source": str(answers.source), "note": note, "left_out": left_out}
    return made.plain(OVERCONFIDENCE, n_answers=0, n_items=0, n_patients=0, **cells)


def _counts(made: ModelRows, answers: Confidences, **cells: Any) -> Iterator[CountRow]:
    cells |= {"arm": answers.arm, "slice": SOURCE, "value_of_slice": str(answers.source)}
    number = len(answers.value)
    for reason in REASONS:
        yield made.count(reason, answers.reasons[reason], number, **cells)
    yield made.count("missing", answers.missing, number + answers.missing, **cells)


def _bins(made: ModelRows, known: Confidences) -> Iterator[MeasureRow]:
    """Yield the bins, the least confident first."""
    place = mass_bins(known.value)
    for number, bin_ in enumerate(np.unique(place), start=1):
        yield from measure_rows(made, known.at(place == bin_), OF_BINS, slice=BIN, value_of_slice=str(number))


def _coverages(made: ModelRows, answers: Confidences) -> Iterator[MeasureRow]:
    """Yield the share right among the surest part of all answers; answers without a confidence come last. Every row counts all answers."""
    by, items, number = made.by(answers.arm).at(answers.places), _items(made, answers), len(answers.value)
    for coverage in POINTS:
        if coverage * number < 1:
            continue
        kept = kept_parts(answers.value, coverage)
        interval = rate_interval(answers.right * kept, by, kept)
        if coverage not in FIXED:
            interval = Interval(interval.value, method="")
        cells: Cells = {"slice": COVERAGE, "value_of_slice": f"{coverage:.2f}", "source": str(answers.source), "n_answers": number}
        yield made.interval(SHARE_RIGHT, interval, items, **cells)


def _stated(rows: Iterable[Cells]) -> dict[tuple[Any, ...], dict[str, Cells]]:
    """Return the measures of stated confidences under the arm full, by benchmark and model, where there are any."""
    stated = (row for row in rows if row["arm"] == FULL and row.get("source") == ConfidenceSource.STATED and not row["slice"])
    return {place: of for place, of in by_measure(stated).items() if SHARE_RIGHT in of}


def confidence_statements() -> list[str]:
    """Return the rules of measurement of confidence, for the page."""
    return [
        (
            "Confidence: mean confidence minus share right, Brier score, and area under the ROC curve of confidence as a predictor of a right answer, over the answers "
            "that have a confidence and did not abstain; the others are counted. Agreement: the share of an item's samples that name the elected "
            "diagnosis."
        ),
        (
            "Risk and coverage: answers that are not missing are sorted from most to least confident, those without a confidence "
            "last; coverage is the share taken from the top. Ties are averaged over all their orders. (Our rule.)"
        ),
    ]


def _bin_of(row: Cells) -> object:
    """Return the group of a bin: the bins of a model add up to all its answers."""
    return tuple(row[name] for name in ("benchmark", "model", "source", "measure")) if row["slice"] == BIN else None


MEASURES = (
    Measure("mean_confidence", "Mean confidence", "Mean confidence of the answers that have one."),
    Measure(
        SHARE_RIGHT,
        "Right",
        "Answers that pass, of those with a confidence; at a given coverage, of the most confident part of all answers.",
    ),
    Measure(
        OVERCONFIDENCE,
        "Overconfidence",
        "Mean confidence minus the share right; the difference is its change from the full request.",
        "points",
    ),
    Measure(
        "brier",
        "Brier score",
        "Mean squared distance of the confidence from 1 for a right answer and 0 for a wrong one.",
        "number",
    ),
    Measure(
        "auroc",
        "AUROC",
        "Chance that a right answer has a higher confidence than a wrong one; ties count half.",
        "number",
    ),
    Measure(
        "ece",
        "Calibration error",
        "Mean distance of confidence from share right over 15 bins of equal width, by answers.",
        "number",
        main=False,
    ),
    Measure(
        "ece_pessimistic",
        "Pessimistic calibration error",
        "Calibration error with each answer without a confidence as a wrong one of confidence 1.",
        "number",
        main=False,
    ),
    Measure(
        "refused",
        "Refused",
        "Answers without a confidence because they were refused.",
        "number",
    ),
    Measure(
        "truncated",
        "Truncated",
        "Answers without a confidence because they were cut off.",
        "number",
    ),
    Measure(
        "abstained",
        "Abstained",
        "Answers without a confidence because they say that no diagnosis can be named.",
        "number",
    ),
    Measure(
        "unparsable",
        "Unread",
        "Answers without a confidence because they could not be read.",
        "number",
    ),
    Measure(
        UNSTATED,
        "None stated",
        "Answers that were read and have no confidence.",
        "number",
    ),
    Measure(
        "missing",
        "Missing",
        "Answers that are absent or not graded, of those expected.",
        "number",
    ),
)

TABLE = topic(
    "confidence",
    confidence_rows,
    MEASURES,
    group=_bin_of,
)
