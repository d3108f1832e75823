"""Clinicians' verdicts on drawn answers: single values, one verdict per answer, its probability of being drawn, and `ratings.csv`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from neuralmedbench.records.results import SIMULATED
from neuralmedbench.records.scores import CORE_DIAGNOSIS, Key, Rating, RatingPart, Score, response_key
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.records.words import counted
from neuralmedbench.tables.declare import Cells, Count, Flag, Number, ResultRow, Suppression, Table, Tables, Takeaway, Text
from neuralmedbench.tables.parts import MARK, reference_pools
from neuralmedbench.tables.study import BenchmarkStudy, Study

RatedValue = tuple[Rating, float | None]

RATERS = {False: "clinicians", True: f"{SIMULATED}raters"}
"""Who rated, by whether they are simulated; in the column `value_of_slice`."""


@dataclass(frozen=True, kw_only=True)
class ClinicianVerdict:
    """The verdict of a round on one answer on one axis.

    Attributes
    ----------
    value : float or None
        The adjudicated value, or else the mean over raters; None when the answer was drawn and nobody could judge it.
    raters : int
        Raters of the round with a value, the adjudicator not among them.
    by_rater : mapping of str to float
        Their values.
    probability : float or None
        Probability with which the answer was drawn into the round.
    adjudicated, simulated : bool
        True if a further rater decided; True if a program filled in the form.
    round_id : str
        The round.
    """

    value: float | None
    raters: int
    probability: float | None
    adjudicated: bool
    simulated: bool
    round_id: str
    by_rater: Mapping[str, float] = field(default_factory=dict)

    def without(self, rater: str) -> float | None:
        """Return the value if this rater had not rated; an adjudicated one stays."""
        if self.adjudicated or rater not in self.by_rater:
            return self.value
        others = [value for name, value in self.by_rater.items() if name != rater]
        return sum(others) / len(others) if others else None


def clinician_verdicts(ratings: Sequence[Rating], axis: str) -> dict[Key, ClinicianVerdict]:
    """Return the verdict on every drawn answer, by `records.scores.response_key`.

    Clinicians take precedence over simulated raters, and the two are never mixed. If several rounds drew an answer, the last round by
    name counts, so that its probability is that of one draw.
    """
    groups: dict[tuple[Key, bool, str], list[RatedValue]] = defaultdict(list)
    for row, value in with_unmarked_errors(fresh_sample(ratings), axis):
        # clinicians sort last, and so take precedence
        groups[response_key(row), not row.simulated, row.round_id].append((row, value))
    return {place[0]: _verdict(groups[place]) for place in sorted(groups)}


def fresh_sample(ratings: Iterable[Rating]) -> list[Rating]:
    """Return the ratings of drawn answers whose text is still the one that was rated."""
    return [row for row in ratings if row.part is RatingPart.SAMPLE and not row.stale]


def with_unmarked_errors(ratings: Iterable[Rating], axis: str) -> list[RatedValue]:
    """Return ratings with their values on an axis; for an error also zeros, from raters who judged the answer and did not mark it.

    An adjudicator is not asked for errors and gives no zero.
    """
    if not axis.startswith(ERROR_AXIS):
        return [(row, row.value) for row in ratings if row.axis == axis]
    judged: dict[tuple[object, ...], RatedValue] = {}
    for row in ratings:
        if row.axis == axis:
            judged[_place(row)] = row, row.value
        elif row.value is not None and not row.adjudicated:
            judged.setdefault(_place(row), (row, 0.0))
    return list(judged.values())


def by_axis(ratings: Iterable[Rating]) -> dict[str, list[Rating]]:
    """Split ratings by axis; an error also gets one rating per rater and answer, which shows who judged the answer without marking it."""
    split: dict[str, list[Rating]] = defaultdict(list)
    judged: dict[tuple[object, ...], Rating] = {}
    for row in ratings:
        split[row.axis].append(row)
        if row.value is not None and not row.axis.startswith(ERROR_AXIS):
            judged.setdefault(_place(row), row)
    return {axis: [*rows, *judged.values()] if axis.startswith(ERROR_AXIS) else rows for axis, rows in split.items()}


def _place(row: Rating) -> tuple[object, ...]:
    return row.round_id, row.rater_id, response_key(row), row.part, row.text_sha256


def _verdict(rated: Sequence[RatedValue]) -> ClinicianVerdict:
    # if the adjudicator cannot judge either, the mean of those who could is kept
    last = next((value for row, value in rated if row.adjudicated and value is not None), None)
    by_rater = {row.rater_id: value for row, value in rated if value is not None and not row.adjudicated}
    values, first = list(by_rater.values()), rated[0][0]
    return ClinicianVerdict(
        value=sum(values) / len(values) if last is None and values else last,
        raters=len(values),
        probability=first.probability,
        adjudicated=last is not None,
        simulated=first.simulated,
        round_id=first.round_id,
        by_rater=by_rater,
    )


@dataclass(frozen=True)
class Opinions:
    """Values of single clinicians for an answer on the axis of a pass, before adjudication: 0 to 1, and True where the value passes."""

    values: tuple[float, ...]
    passes: tuple[bool, ...]


def verdicts_of(study: Study, *, simulated: bool) -> dict[Key, ClinicianVerdict]:
    """Return the verdict on each drawn answer on the axis of a pass; empty when the form defines no pass."""
    passes = study.form.passes
    return clinician_verdicts([row for row in study.ratings if row.simulated == simulated], passes.axis) if passes else {}


def opinions_of(study: Study, *, simulated: bool) -> dict[Key, Opinions]:
    """Return the values of single raters for each drawn answer, ordered by pseudonym; a rater's last round counts."""
    passes = study.form.passes
    if passes is None:
        return {}
    axis, found = study.form.axes[passes.axis], defaultdict[Key, dict[str, float]](dict)
    # later rounds overwrite earlier ones
    for row in sorted(fresh_sample(study.ratings), key=lambda row: row.round_id):
        if (row.axis, row.simulated, row.adjudicated) == (passes.axis, simulated, False) and row.value is not None:
            found[response_key(row)][row.rater_id] = row.value
    reach, text = axis.highest - axis.lowest, dict[Key, Opinions]()
    for key, by_rater in found.items():
        values = [value for _, value in sorted(by_rater.items())]
        text[key] = Opinions(tuple((value - axis.lowest) / reach for value in values), tuple(value >= passes.from_ for value in values))
    return text


def grades_of(benchmark: BenchmarkStudy, model: str, grader: str, scores: Iterable[Score]) -> dict[Key, float]:
    """Return a grader's value for the core diagnosis of each answer, 0 to 1; a grade of another text is stale and left out."""
    texts = {response_key(row): row.text_sha256 for row in scores}
    return {
        response_key(grade): grade.value
        for grade in benchmark.grades.get((model, grader), [])
        if grade.criterion == CORE_DIAGNOSIS and grade.value is not None and texts.get(response_key(grade)) == grade.text_sha256
    }


def draw_probabilities(verdicts: Mapping[Key, ClinicianVerdict], scores: Mapping[Key, Score]) -> dict[Key, float]:
    """Return the probability with which each answer was drawn into any round.

    1 - the product of (1 - probability) over the rounds that drew from the answer's stratum; answers without a probability were
    not drawn and are left out. If two rounds each drew half of a stratum, it is 0.75.
    """
    rounds: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    known = {key: verdict for key, verdict in verdicts.items() if verdict.probability is not None and key in scores}
    for key, verdict in known.items():
        rounds[_stratum(scores[key])][verdict.round_id] = float(verdict.probability or 0.0)
    found = {}
    for key in known:
        missed = 1.0
        for probability in rounds[_stratum(scores[key])].values():
            # probability that no round drew the answer
            missed *= 1.0 - probability
        found[key] = 1.0 - missed
    return found


def _stratum(score: Score) -> tuple[str, ...]:
    return score.model, score.family, score.level


RatedAxis = tuple[str, str, str, bool]
"""Round, model, axis, and True for simulated raters."""


@dataclass(frozen=True, kw_only=True)
class RatingRow(ResultRow):
    """Clinicians' values of one model on one axis of one round."""

    round_id: str
    model: str
    in_reference_pool: Flag = None
    axis: Text = None
    n: Count = None
    responses: Count = None
    mean: Number = None
    adjudicated: Count = None
    stale: Count = None
    simulated: Flag = None


def rating_rows(study: Study) -> list[RatingRow]:
    """Rows of `ratings.csv`: means over answers of the clinicians' verdicts; stale ratings are counted and left out."""
    rows, stale, split = [], Counter[RatedAxis](), dict[tuple[str, bool], list[Rating]]()
    pools, chose = reference_pools(study), set[tuple[str, str]]()
    for rating in study.sampled_ratings:
        split.setdefault((rating.round_id, rating.simulated), []).append(rating)
        stale[rating.round_id, rating.model, rating.axis, rating.simulated] += rating.stale
        if rating.model in pools.get(rating.item_id.partition("/")[0], ()):  # a round may rate items of several benchmarks
            chose.add((rating.round_id, rating.model))
    verdicts: dict[RatedAxis, list[ClinicianVerdict]] = {place: [] for place in stale}
    for (round_id, simulated), ratings in split.items():
        for axis, of_axis in by_axis(fresh_sample(ratings)).items():
            for key, verdict in clinician_verdicts(of_axis, axis).items():
                verdicts.setdefault((round_id, key[3], axis, simulated), []).append(verdict)
    for (round_id, model, axis, simulated), entries in sorted(verdicts.items()):
        means = [verdict.value for verdict in entries if verdict.value is not None]
        row: Cells = {MARK: (round_id, model) in chose, "round_id": round_id, "model": model, "axis": axis, "simulated": simulated}
        row |= {"n": sum(verdict.raters for verdict in entries), "responses": len(means), "mean": float(np.mean(means)) if means else None}
        row |= {"adjudicated": sum(verdict.adjudicated for verdict in entries), "stale": stale[round_id, model, axis, simulated]}
        rows.append(RatingRow(**row))
    return rows


def ratings_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how far clinicians agree, which is the ceiling for a grader."""
    people = [row for row in tables["ratings"] if not row["simulated"]]
    agreement = [row for row in tables["agreement"] if not row["simulated"]]
    raters = len({(row["round_id"], row["rater_a"]) for row in agreement if row["between"] == "rater"})
    if not people:
        made_up = sum(row["n"] for row in tables["ratings"])
        text = "No clinician has rated an answer: graders scored all open answers on this page."
        return Takeaway(text, f"0 ratings by clinicians, {counted(made_up, 'simulated value')}" if made_up else "0 ratings")
    axis = study.form.passes.axis if study.form.passes else ""
    known = [row for row in agreement if (row["measure"], row["axis"]) == ("alpha_ordinal", axis) and row["value"] is not None]
    n = f"{counted(sum(row['n'] for row in people), 'value')} of {counted(raters, 'clinician')}"
    if not known:
        return Takeaway(f"{counted(raters, 'clinician')} rated answers; too few answers were rated twice to say how far they agree.", n)
    row = known[0]
    span = "" if row.get("low") is None else f" ({row['low']:.2f} to {row['high']:.2f})"
    return Takeaway(f"Clinicians agree with alpha {row['value']:.2f}{span} on {row['axis'].replace('_', ' ')}.", n)


RATINGS = Table(
    name="ratings",
    row=RatingRow,
    rows=rating_rows,
    suppression=Suppression("round_id model in_reference_pool axis simulated", mark="n", patients=""),
    takeaways={"ratings": ratings_takeaway},
)
