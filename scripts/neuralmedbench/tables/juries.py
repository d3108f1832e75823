"""Agreement within juries, and the change of their verdicts without each member: `juries.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.config.model import GraderConfig
from neuralmedbench.estimates.agreement import RaterTerms
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, rate_interval
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, Grade
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.records.words import decimal, percent
from neuralmedbench.scoring.jury import ballots, decide, has_quorum, votes_of
from neuralmedbench.tables.answer_errors import PRESENT
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway

RUBRIC = "rubric"
"""Stands for the criteria of all rubrics, which differ between items."""

Votes = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class JuryRow(ModelRow):
    """One jury on one criterion, whole or without one member."""

    jury: str
    rule: str | None = None
    criterion: str | None = None
    dropped: str | None = None
    members: int | None = None
    voted: float | None = None
    n: int | None = None
    n_patients: int | None = None
    missing: int | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    alpha: float | None = None
    unanimous: float | None = None
    spread: float | None = None
    member_mean: float | None = None
    difference: float | None = None
    changed: float | None = None


def jury_rows(study: Study) -> list[JuryRow]:
    """Rows of `juries.csv`.

    Per benchmark, model, jury and criterion (all criteria of rubrics are one) a row for the whole jury and one without each member
    (`dropped`), over answers under the arm full and the strategy direct. `alpha` is
    Krippendorff's (ordinal, over answers with two votes), `spread` the mean of highest minus lowest vote, `unanimous`
    the share of answers with equal votes, `changed` the share with another verdict without the member, `difference` the gain of the mean
    without it, both over answers with a verdict either way. For an error the mean is the share of answers with it.
    """
    rows = []
    for name, benchmark in study.benchmarks.items():
        patients = {item.item_id: item.patient_id for item in benchmark.items}
        for model in study.models:
            for jury, config in study.graders.items():
                if config.kind == "jury":
                    members = {member: benchmark.grades.get((model, member), []) for member in config.members}
                    rows += [
                        JuryRow(benchmark=name, model=model, jury=jury, rule=config.rule, **row)
                        for row in _rows(members, config, patients, study.settings)
                    ]
    return rows


def _rows(
    members: Mapping[str, Sequence[Grade]], config: GraderConfig, patients: Mapping[str, str], settings: IntervalSettings
) -> list[Cells]:
    votes: dict[str, list[tuple[str, Votes]]] = defaultdict(list)
    for (key, _, criterion), grades in ballots(members).items():
        if (key[1], key[2]) == (FULL, DIRECT):
            votes[_kind(criterion)].append((patients.get(key[0], key[0]), votes_of(grades)))
    return [
        _row(criterion, rows, dropped, config, settings) for criterion, rows in sorted(votes.items()) for dropped in ("", *config.members)
    ]


def _kind(criterion: str) -> str:
    named = criterion in (MAIN_CONDITION, CORE_DIAGNOSIS) or criterion.startswith((ERROR_AXIS, "reasoning."))
    return criterion if named else RUBRIC


def _row(criterion: str, rows: Sequence[tuple[str, Votes]], dropped: str, config: GraderConfig, settings: IntervalSettings) -> Cells:
    # recompute the verdict without the dropped member
    seated = len(config.members) - bool(dropped)
    kept = [{name: value for name, value in votes.items() if name != dropped} for _, votes in rows]
    whole = [_jury_value(criterion, votes, len(config.members), config.rule) for _, votes in rows]
    verdicts = [_jury_value(criterion, votes, seated, config.rule) for votes in kept]
    voted = [votes for votes, verdict in zip(kept, verdicts, strict=True) if verdict is not None]
    known = [(verdict, patient) for verdict, (patient, _) in zip(verdicts, rows, strict=True) if verdict is not None]
    both = [
        (verdict, all_of_them)
        for verdict, all_of_them in zip(verdicts, whole, strict=True)
        if verdict is not None and all_of_them is not None
    ]
    values = np.array([verdict for verdict, _ in known], dtype=np.float64)
    interval = rate_interval(values, ByPatient([patient for _, patient in known], settings)) if known else None
    # the dropped member by itself
    alone = [_as_rate(criterion, votes[dropped]) for _, votes in rows if dropped in votes]
    return {
        "criterion": criterion,
        "dropped": dropped,
        "members": seated,
        "voted": float(np.mean([len(votes) for votes in voted])) if voted else None,
        "n": len(known),
        "n_patients": len({patient for _, patient in known}),
        "missing": len(rows) - len(known),
        "mean": interval.value if interval else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "alpha": _alpha([votes for votes in kept if len(votes) > 1]),
        "unanimous": float(np.mean([len(set(votes.values())) == 1 for votes in voted])) if voted else None,
        "spread": float(np.mean([max(votes.values()) - min(votes.values()) for votes in voted])) if voted else None,
        "member_mean": float(np.mean(alone)) if alone else None,
        "difference": float(np.mean([verdict - other for verdict, other in both])) if dropped and both else None,
        "changed": float(np.mean([abs(verdict - other) > 1e-9 for verdict, other in both])) if dropped and both else None,
    }


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


def juries_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how often a jury is unanimous."""
    rows = [row for row in tables["juries"] if not row.get("dropped") and row.get("unanimous") is not None]
    if not rows:
        return Takeaway("No jury graded this run.", "0 answers")
    low, high = (percent(pick(row["unanimous"] for row in rows)) for pick in (min, max))
    span = low if low == high else f"{low} to {high}"
    alphas = [row["alpha"] for row in rows if row.get("alpha") is not None]
    ends = (decimal(min(alphas)), decimal(max(alphas))) if alphas else ("", "")
    beyond = (
        f"agree with alpha {ends[0] if ends[0] == ends[1] else ' to '.join(ends)}" if alphas else "have no alpha: all votes are the same"
    )
    return Takeaway(
        f"The members of a jury {beyond}, and cast equal votes on {span} of the answers, by criterion and model.",
        f"{max(row['n'] for row in rows):,} answers at most",
    )


TABLE = Table(
    name="juries",
    row=JuryRow,
    rows=of_study(jury_rows),
    suppression=Suppression(f"{MODEL} jury rule criterion"),
    takeaways={"juries": juries_takeaway},
)
