"""Means of clinicians' ratings by model and axis: `ratings.csv`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from neuralmedbench.records.scores import Rating
from neuralmedbench.records.words import counted
from neuralmedbench.tables.clinicians.opinions import ClinicianWord, by_axis, clinician_words, fresh_sample
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.reference_pool import MARK, reference_pools
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway

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


TABLE = Table(
    name="ratings",
    row=RatingRow,
    rows=of_study(rating_rows),
    suppression=Suppression("round_id model in_reference_pool axis simulated", mark="n", patients=""),
    takeaways={"ratings": ratings_takeaway},
)
