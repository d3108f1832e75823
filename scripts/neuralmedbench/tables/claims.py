"""What sentences at a glance may claim: the primary, pictures, and models against the leader (`claims.csv`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from neuralmedbench.estimates.contrasts import smallest_difference
from neuralmedbench.estimates.step_down import FEWEST_DIFFERING
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Arm
from neuralmedbench.records.words import all_of, counted, listing, p_equals, percent, points, points_span
from neuralmedbench.tables.declare import Results, Suppression, Table, arm_labels
from neuralmedbench.tables.family import (
    Compared,
    FamilyTest,
    corrected_family,
    first_answer_of,
    primary_of,
    unread_may_turn,
    unread_of,
)
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import (
    MODELS,
    PICTURES,
    PRIMARY,
    claims_of,
    cluster_of,
)

WORDS = {PRIMARY: "in the stated comparison", PICTURES: "with and without pictures", MODELS: "between two models"}
"""The kinds of comparisons, in words."""


@dataclass(frozen=True, kw_only=True)
class ClaimRow(ResultRow):
    """One comparison that a sentence at a glance may state."""

    kind: str
    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    other: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_corrected: float | None = None
    significant: bool | None = None
    detectable: float | None = None
    unread: float | None = None
    n_patients: int | None = None


def claim_rows(results: Results) -> list[ClaimRow]:
    """Rows of `claims.csv`."""
    family, primary = results.once(corrected_family), primary_of(results.study)
    settings = results.study.settings
    alpha, limit = 1 - settings.confidence, settings.max_missing_fraction
    corrected = sum(one.p_corrected is not None for compared, one in family.items() if compared != primary)
    rows = []
    for kind, row, compared in _comparisons(results):
        tested = family[compared]
        p_corrected = tested.corrected(row["p_value"])
        turns = unread_may_turn(row["difference"], row["low"], row["high"], row["unread"], limit)
        names = ("difference", "low", "high", "p_value", "unread", "n_patients")
        rows.append(
            ClaimRow(
                kind=kind,
                benchmark=compared.benchmark,
                model=compared.model,
                other=compared.other or None,
                p_corrected=p_corrected,
                significant=p_corrected is not None and p_corrected < alpha and not turns,
                detectable=_detectable(tested, row["n_patients"], alpha if kind == PRIMARY else alpha / max(corrected, 1)),
                **{name: row[name] for name in names},
            )
        )
    return rows


def _detectable(tested: FamilyTest, patients: int | None, level: float) -> float | None:
    """Return the smallest difference that 8 of 10 such studies would show; None where none is known."""
    if tested.p_corrected is None or not patients or patients < 2 or tested.error <= 0:
        return None
    return smallest_difference(tested.error, patients, level)


def _comparisons(results: Results) -> Iterator[tuple[str, Cells, Compared]]:
    """Yield kind, cells and key of what may be claimed."""
    study, tables = results.study, results.tables
    family, primary = results.once(corrected_family), primary_of(study)
    leaders: dict[str, str] = {}
    for row in tables["leaderboard"]:
        if row["rank"]:  # models come in the order of their ranks
            leaders.setdefault(row["benchmark"], row["model"])
    for row in tables["pairwise"]:
        compared = Compared(row["benchmark"], row["model_a"], row["model_b"])
        if compared == primary:
            yield PRIMARY, dict(row), compared
        elif row["p_value"] is not None and compared in family and leaders.get(row["benchmark"]) in compared[1:]:
            yield MODELS, dict(row), compared
    for row in tables["arms"]:
        compared = Compared(row["benchmark"], row["model"])
        if row["arm"] == Arm.NO_IMAGE and row["p_value"] is not None and compared in family:
            keys = Key(row["model"], row["arm"]), Key(row["model"])
            unread = unread_of(study.benchmarks[row["benchmark"]].outcomes, row["difference"], *keys)
            yield PICTURES, {**row, "unread": unread}, compared


def lower_models(tables: Tables, benchmark: str, best: str, alpha: float) -> tuple[set[str], dict[str, float]]:
    """Return the models that score significantly lower than the best one; and the share of unread answers of those that would if these are wrong."""
    lower, unread = set(), {}
    rows = [row for kind in (PRIMARY, MODELS) for row in claims_of(tables, kind, significant=False, benchmark=benchmark)]
    for row in rows:
        for one, other, sign in ((row["model"], row["other"], 1), (row["other"], row["model"], -1)):
            if one == best and (row["difference"] or 0) * sign > 0:
                if row["significant"]:
                    lower.add(other)
                elif row["p_corrected"] is not None and row["p_corrected"] < alpha:
                    unread[other] = row["unread"]
    return lower, unread


def primary_sentence(study: Study, tables: Tables) -> str:
    """State what the stated comparison shows; empty if none of this run is stated."""
    stated, first_answer = study.stated, first_answer_of(study)
    if stated is None or not first_answer:
        return ""
    if first_answer < stated.on:
        return f"Stated comparison: it was stated on {stated.on}, after its first answer ({first_answer}), so it counts as any other."
    titles = {name: study.models[name].title for name in (stated.first, stated.second)}
    where = f"on {study.benchmarks[stated.benchmark].config.title}, stated on {stated.on}"
    head = f"Stated comparison: {titles[stated.first]} against {titles[stated.second]} {where}"
    for row in claims_of(tables, PRIMARY, significant=False):
        if row["p_value"] is None:
            return f"{head}, cannot be tested, so no other comparison is."
        # as stated: first minus second
        sign = 1 if row["model"] == stated.first else -1
        ends = sorted((sign * row["low"], sign * row["high"])) if row["low"] is not None and row["high"] is not None else (None, None)
        numbers = f"{points(sign * row['difference'])} points ({points_span(*ends)}; {p_equals(row['p_value'])})"
        if row["significant"]:
            higher = stated.first if sign * row["difference"] > 0 else stated.second
            return f"{head}: {numbers}; {titles[higher]} scores significantly higher."
        unread = (
            f", as {percent(row['unread'])} of the answers of the lower one could not be read"
            if row["p_value"] < row["p_corrected"]
            else ""
        )
        return f"{head}: {numbers}; inconclusive{unread}. No other comparison is tested."
    return ""


def power_sentence(tables: Tables) -> str:
    """State which differences this run could have shown: in the stated comparison, or where none is, in all others; empty without one."""
    rows = [row for row in tables["claims"] if row["low"] is not None and row["n_patients"]]
    rows = [row for row in rows if row["kind"] == PRIMARY] or rows
    if not rows:
        return ""
    sizes, unknown, never = [], [], []
    for kind in (kind for kind in WORDS if any(row["kind"] == kind for row in rows)):
        own = [row for row in rows if row["kind"] == kind]
        size = median([1.0 if row["detectable"] is None else row["detectable"] for row in own])
        if size < 1:
            sizes.append(f"{points(size, plus='')} points {WORDS[kind]}")
        elif any(row["n_patients"] >= FEWEST_DIFFERING for row in own):
            unknown.append(WORDS[kind])
        else:
            never.append(WORDS[kind])
    parts = [f"a difference of {listing(sizes, len(sizes))}"] if sizes else []
    parts += [f"no{'ne' if parts else ' difference'}, however large, {listing(never, len(never))}"] if never else []
    fewest, most = (end(row["n_patients"] for row in rows) for end in (min, max))
    patients = counted(most, cluster_of(rows))
    head = f"Power: with {patients if fewest == most else f'{fewest:,} to {patients}'}"
    shown = f"8 of 10 such studies would show {', but '.join(parts)}" if parts else ""
    open_sizes = f"the size of a difference {listing(unknown, len(unknown))} cannot be computed" if unknown else ""
    number = _corrected_together(tables) if rows[0]["kind"] != PRIMARY else 1
    corrected = f", after correction for {all_of(number, 'comparison')}" if number > 1 else ""
    return f"{head}, {'; '.join(filter(None, (shown, open_sizes)))}{corrected}."


def _corrected_together(tables: Tables) -> int:
    """Count the comparisons that are corrected together: all pairs of models, and the pictures."""
    rows = [*tables["pairwise"], *claims_of(tables, PICTURES, significant=False)]
    return sum(row["p_corrected"] is not None for row in rows)


def _labels(row: Cells) -> list[Label]:
    return arm_labels({"arm": Arm.NO_IMAGE}) if row["kind"] == PICTURES else []


TABLE = Table(
    name="claims",
    row=ClaimRow,
    rows=claim_rows,
    suppression=Suppression("kind benchmark model in_reference_pool other", labels=_labels),
)
