"""What clinicians said of drawn answers, each clinician's values and one word an answer, and with which probability it was drawn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.scores import Rating, RatingPart, Score
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.records.words import counted
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.graders import CORE
from neuralmedbench.tables.reference_pool import MARK, reference_pools
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway

Said = tuple[Rating, float | None]


@dataclass(frozen=True, kw_only=True)
class ClinicianWord:
    """What a round says of one answer on one axis.

    Attributes
    ----------
    value : float or None
        The adjudicated value, or else the mean over raters; None when the answer was drawn and nobody could judge it.
    raters : int
        Raters of the round with a value, the adjudicator not among them.
    probability : float or None
        With which the answer was drawn into the round.
    adjudicated, simulated : bool
        Whether a further rater had the last word; whether a program filled the form in.
    round_id : str
        The round.
    """

    value: float | None
    raters: int
    probability: float | None
    adjudicated: bool
    simulated: bool
    round_id: str


def clinician_words(ratings: Sequence[Rating], axis: str) -> dict[Key, ClinicianWord]:
    """Give the clinicians' word on every drawn answer.

    By `records.keys.response_key`. Clinicians come before simulated raters, who never enter a word of theirs; of an answer that several
    rounds drew the last round by name counts, so that its probability is that of one draw.
    """
    groups: dict[tuple[Key, bool, str], list[Said]] = defaultdict(list)
    for row, value in with_unmarked_errors(fresh_sample(ratings), axis):
        # real ones sort last, and so win
        groups[response_key(row), not row.simulated, row.round_id].append((row, value))
    return {place[0]: _word(groups[place]) for place in sorted(groups)}


def fresh_sample(ratings: Iterable[Rating]) -> list[Rating]:
    """Ratings of drawn answers whose text stands as it was rated."""
    return [row for row in ratings if row.part is RatingPart.SAMPLE and not row.stale]


def with_unmarked_errors(ratings: Iterable[Rating], axis: str) -> list[Said]:
    """Give what was said on an axis; of an error also the zeros of raters who judged the answer and did not mark it.

    A rating of that rater and answer, and the value on that axis. An adjudicator is not asked for errors and gives no zero.
    """
    if not axis.startswith(ERROR_AXIS):
        return [(row, row.value) for row in ratings if row.axis == axis]
    judged: dict[tuple[object, ...], Said] = {}
    for row in ratings:
        if row.axis == axis:
            judged[_place(row)] = row, row.value
        elif row.value is not None and not row.adjudicated:
            judged.setdefault(_place(row), (row, 0.0))
    return list(judged.values())


def by_axis(ratings: Iterable[Rating]) -> dict[str, list[Rating]]:
    """Split ratings by axis; an error gets one rating of every rater and answer too, by which it is known who judged and did not mark it."""
    split: dict[str, list[Rating]] = defaultdict(list)
    judged: dict[tuple[object, ...], Rating] = {}
    for row in ratings:
        split[row.axis].append(row)
        if row.value is not None and not row.axis.startswith(ERROR_AXIS):
            judged.setdefault(_place(row), row)
    return {axis: [*rows, *judged.values()] if axis.startswith(ERROR_AXIS) else rows for axis, rows in split.items()}


def _place(row: Rating) -> tuple[object, ...]:
    return row.round_id, row.rater_id, response_key(row), row.part, row.text_sha256


def _word(said: Sequence[Said]) -> ClinicianWord:
    # where the further rater cannot judge either, the mean of those who could stands
    last = next((value for row, value in said if row.adjudicated and value is not None), None)
    values = [value for row, value in said if value is not None and not row.adjudicated]
    first = said[0][0]
    return ClinicianWord(
        value=sum(values) / len(values) if last is None and values else last,
        raters=len(values),
        probability=first.probability,
        adjudicated=last is not None,
        simulated=first.simulated,
        round_id=first.round_id,
    )


@dataclass(frozen=True)
class Opinions:
    """What single clinicians gave an answer on the axis of a pass, before anything was adjudicated: 0 to 1, and whether it passes."""

    values: tuple[float, ...]
    passes: tuple[bool, ...]


def words_of(study: Study, *, simulated: bool) -> dict[Key, ClinicianWord]:
    """Give the word on each drawn answer on the axis of a pass; nothing when the form does not say what passes."""
    passes = study.form.passes
    return clinician_words([row for row in study.ratings if row.simulated == simulated], passes.axis) if passes else {}


def opinions_of(study: Study, *, simulated: bool) -> dict[Key, Opinions]:
    """Give what single raters said of each drawn answer, by their pseudonyms; of a rater who saw it in several rounds the last one counts."""
    passes = study.form.passes
    if passes is None:
        return {}
    axis, found = study.form.axes[passes.axis], defaultdict[Key, dict[str, float]](dict)
    for row in sorted(fresh_sample(study.ratings), key=lambda row: row.round_id):
        if (row.axis, row.simulated, row.adjudicated) == (passes.axis, simulated, False) and row.value is not None:
            found[response_key(row)][row.rater_id] = row.value
    reach, told = axis.highest - axis.lowest, dict[Key, Opinions]()
    for key, by_rater in found.items():
        values = [value for _, value in sorted(by_rater.items())]
        told[key] = Opinions(tuple((value - axis.lowest) / reach for value in values), tuple(value >= passes.from_ for value in values))
    return told


def grades_of(benchmark: BenchmarkStudy, model: str, grader: str, scores: Iterable[Score]) -> dict[Key, float]:
    """Give what a grader says of the core diagnosis of each answer, 0 to 1; a grade of another text is stale and left out."""
    texts = {response_key(row): row.text_sha256 for row in scores}
    return {
        response_key(grade): grade.value
        for grade in benchmark.grades.get((model, grader), [])
        if grade.criterion == CORE and grade.value is not None and texts.get(response_key(grade)) == grade.text_sha256
    }


def chances(words: Mapping[Key, ClinicianWord], scores: Mapping[Key, Score]) -> dict[Key, float]:
    """Give the probability with which each answer was drawn into any round.

    1 - the product of (1 - probability) over the rounds that drew from the answer's stratum; answers without a probability are left
    out, as they were not drawn. Where one round drew a half of a stratum, and another a half again, it is 0.75.
    """
    rounds: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    known = {key: word for key, word in words.items() if word.probability is not None and key in scores}
    for key, word in known.items():
        rounds[_stratum(scores[key])][word.round_id] = float(word.probability or 0.0)
    found = {}
    for key in known:
        missed = 1.0
        for probability in rounds[_stratum(scores[key])].values():
            missed *= 1.0 - probability
        found[key] = 1.0 - missed
    return found


def _stratum(score: Score) -> tuple[str, ...]:
    return score.model, score.family, score.level


RatedAxis = tuple[str, str, str, bool]
"""Round, model, axis, and whether the raters are simulated."""


@dataclass(frozen=True, kw_only=True)
class RatingRow(ResultRow):
    """Clinicians' values of one model on one axis of one round."""

    round_id: str
    model: str
    in_reference_pool: bool | None = None
    axis: str | None = None
    n: int | None = None
    responses: int | None = None
    mean: float | None = None
    adjudicated: int | None = None
    stale: int | None = None
    simulated: bool | None = None


def rating_rows(study: Study) -> list[RatingRow]:
    """Rows of `ratings.csv`: means over answers of the clinicians' word; stale ratings are counted and left out."""
    rows, stale, split = [], Counter[RatedAxis](), dict[tuple[str, bool], list[Rating]]()
    pools, chose = reference_pools(study), set[tuple[str, str]]()
    for rating in study.sampled_ratings:
        split.setdefault((rating.round_id, rating.simulated), []).append(rating)
        stale[rating.round_id, rating.model, rating.axis, rating.simulated] += rating.stale
        if rating.model in pools.get(rating.item_id.partition("/")[0], ()):  # a round may rate items of several benchmarks
            chose.add((rating.round_id, rating.model))
    words: dict[RatedAxis, list[ClinicianWord]] = {place: [] for place in stale}
    for (round_id, simulated), ratings in split.items():
        for axis, of_axis in by_axis(fresh_sample(ratings)).items():
            for key, word in clinician_words(of_axis, axis).items():
                words.setdefault((round_id, key[3], axis, simulated), []).append(word)
    for (round_id, model, axis, simulated), entries in sorted(words.items()):
        means = [word.value for word in entries if word.value is not None]
        row: Cells = {MARK: (round_id, model) in chose, "round_id": round_id, "model": model, "axis": axis, "simulated": simulated}
        row |= {"n": sum(word.raters for word in entries), "responses": len(means), "mean": float(np.mean(means)) if means else None}
        row |= {"adjudicated": sum(word.adjudicated for word in entries), "stale": stale[round_id, model, axis, simulated]}
        rows.append(RatingRow(**row))
    return rows


def ratings_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say how far clinicians agree: the most that a grader can be asked for."""
    people = [row for row in tables["ratings"] if not row["simulated"]]
    raters = len({(row["round_id"], row["rater_id"]) for row in tables["raters"] if not row["simulated"]})
    if not people:
        made_up = sum(row["n"] for row in tables["ratings"])
        told = "No clinician has rated an answer: every open score on this page is a grader's word."
        return Takeaway(told, f"0 ratings by clinicians, {counted(made_up, 'simulated value')}" if made_up else "0 ratings")
    alphas = [
        row
        for row in tables["agreement"]
        if not row["simulated"] and (row["measure"], row["axis"]) == ("alpha_ordinal", study.form.passes.axis if study.form.passes else "")
    ]
    known = [row for row in alphas if row.get("value") is not None]
    n = f"{counted(sum(row['n'] for row in people), 'value')} of {counted(raters, 'clinician')}"
    if not known:
        return Takeaway(f"{counted(raters, 'clinician')} rated answers; too few answers were rated twice to say how far they agree.", n)
    row = known[0]
    span = "" if row.get("low") is None else f" ({row['low']:.2f} to {row['high']:.2f})"
    return Takeaway(f"Clinicians agree with alpha {row['value']:.2f}{span} on {row['axis'].replace('_', ' ')}.", n)


RATINGS = Table(
    name="ratings",
    row=RatingRow,
    rows=of_study(rating_rows),
    suppression=Suppression("round_id model in_reference_pool axis simulated", mark="n", patients=""),
    takeaways={"ratings": ratings_takeaway},
)
