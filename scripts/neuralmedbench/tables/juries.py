"""Agreement within juries, and the change of their verdicts without each member: topic `juries`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from neuralmedbench.config.model import GraderConfig
from neuralmedbench.estimates.agreement import RaterTerms
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.scoring.jury import ballots, decide, has_quorum, votes_of
from neuralmedbench.tables.answer_errors import PRESENT
from neuralmedbench.tables.declare import Measure, MeasureRow, ModelRows, no_labels, of_models, topic
from neuralmedbench.tables.outcomes import DIRECT, FULL

RUBRIC = "rubric"
"""Stands for the criteria of all rubrics, which differ between items."""

Votes = dict[str, float]


@of_models("juries")
def jury_rows(made: ModelRows) -> Iterator[MeasureRow]:
    """Votes of juries (`source`) by criterion, whole and without each member.

    All criteria of rubrics are one. `left_out` counts answers without a verdict, `note` has the
    rule and the number of members.
    """
    for jury, config in made.study.graders.items():
        if config.kind == "jury":
            yield from _rows(made, jury, config)


def _rows(made: ModelRows, jury: str, config: GraderConfig) -> Iterator[MeasureRow]:
    members = {member: made.benchmark.grades.get((made.model, member), []) for member in config.members}
    votes: dict[str, list[tuple[int, Votes]]] = defaultdict(list)
    for (key, _, criterion), grades in ballots(members).items():
        if (key[1], key[2]) == (FULL, DIRECT) and key[0] in made.outcomes.places:
            votes[_kind(criterion)].append((made.outcomes.places[key[0]], votes_of(grades)))
    for criterion, answers in sorted(votes.items()):
        for dropped in ("", *config.members):
            yield from _of_criterion(made, config, criterion, answers, jury=jury, dropped=dropped)


def _kind(criterion: str) -> str:
    named = criterion in (MAIN_CONDITION, CORE_DIAGNOSIS) or criterion.startswith((ERROR_AXIS, "reasoning."))
    return criterion if named else RUBRIC


def _of_criterion(
    made: ModelRows, config: GraderConfig, criterion: str, answers: Sequence[tuple[int, Votes]], *, jury: str, dropped: str
) -> Iterator[MeasureRow]:
    # recompute the verdict without the dropped member
    seated = len(config.members) - bool(dropped)
    kept = [{name: value for name, value in votes.items() if name != dropped} for _, votes in answers]
    whole = [_jury_value(criterion, votes, len(config.members), config.rule) for _, votes in answers]
    verdicts = [_jury_value(criterion, votes, seated, config.rule) for votes in kept]
    known = [(place, verdict, 1.0) for verdict, (place, _) in zip(verdicts, answers, strict=True) if verdict is not None]
    voted = [list(votes.values()) for votes, verdict in zip(kept, verdicts, strict=True) if verdict is not None]
    cells = {"source": f"{jury} without {dropped}" if dropped else jury, "slice": "criterion", "value_of_slice": criterion}
    cells["note"] = f"{config.rule} of {seated}"
    mean = made.rate_of_answers("mean", known, n_answers=len(known), left_out=len(answers) - len(known), **cells)
    yield mean
    values = {
        "alpha": _alpha([votes for votes in kept if len(votes) > 1]),
        "unanimous": _mean(len(set(votes)) == 1 for votes in voted),
        "spread": _mean(max(votes) - min(votes) for votes in voted),
        "voted": _mean(len(votes) for votes in voted),
    }
    if dropped:
        both = [pair for pair in zip(verdicts, whole, strict=True) if None not in pair]
        values["changed"] = _mean(abs((after or 0) - (before or 0)) > 1e-9 for after, before in both)
    for measure, value in values.items():
        yield replace(mean, measure=measure, value=value, low=None, high=None, method="")


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return float(np.mean(known)) if known else None


def _alpha(ballots: Sequence[Votes]) -> float | None:
    """Return Krippendorff's ordinal alpha of the members, over answers with two votes at least; None where all votes are the same."""
    members = sorted({name for votes in ballots for name in votes})
    # votes that are shares count in tenths
    values = np.array([[votes.get(name, np.nan) for name in members] for votes in ballots], dtype=np.float64).round(1)
    scale = np.unique(values[~np.isnan(values)])
    if len(ballots) < 2 or len(scale) < 2:
        return None
    made = RaterTerms(values, scale)
    alpha = float(made.coefficients(made.terms.sum(axis=0))["alpha_ordinal"])
    return None if np.isnan(alpha) else alpha


def _jury_value(criterion: str, votes: Votes, seated: int, rule: str) -> float | None:
    return _as_rate(criterion, decide(list(votes.values()), rule)) if has_quorum(len(votes), seated) else None


def _as_rate(criterion: str, value: float) -> float:
    return float(value >= PRESENT) if criterion.startswith(ERROR_AXIS) else value


MEASURES = (
    Measure("mean", "Mean", "Mean verdict; of an error, the answers that have it."),
    Measure("voted", "Voted", "Votes on an answer, on average.", "number"),
    Measure(
        "alpha",
        "Alpha",
        "Krippendorff's ordinal alpha of the members, over answers with two votes or more.",
        "number",
    ),
    Measure("unanimous", "Unanimous", "Answers with equal votes, of those with a verdict."),
    Measure("spread", "Spread", "Highest minus lowest vote on an answer, on average.", "number"),
    Measure(
        "changed",
        "Decided otherwise",
        "Answers with another verdict without the member, of those with a verdict either way.",
    ),
)

TABLE = topic("juries", jury_rows, MEASURES, labels=no_labels)
