"""Sentences at a glance about comparisons: the primary, models against the leader, and what the run could have shown."""

from __future__ import annotations

from statistics import median

from neuralmedbench.estimates.contrasts import DIFFERENT
from neuralmedbench.estimates.step_down import FEWEST_DIFFERING
from neuralmedbench.records.words import all_of, counted, listing, p_equals, percent, points, points_span
from neuralmedbench.tables.declare import Tables
from neuralmedbench.tables.family import PRIMARY, first_answer_of
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import MODELS, PICTURES, TITLE, claims_of, cluster_of

WORDS = {
    PRIMARY: "in the stated comparison",
    TITLE: "between what is recognised and found",
    PICTURES: "with and without pictures",
    MODELS: "between two models",
}
"""The kinds of comparisons, in words."""


def lower_models(tables: Tables, benchmark: str, best: str, alpha: float) -> tuple[set[str], dict[str, float]]:
    """Return the models that score significantly lower than the best one; and the share of unread answers of those that would if these are wrong."""
    lower, unread = set(), {}
    rows = [row for kind in (PRIMARY, MODELS) for row in claims_of(tables, kind, significant=False, benchmark=benchmark)]
    for row in rows:
        for one, other, sign in ((row["model"], row["other"], 1), (row["other"], row["model"], -1)):
            if one == best and (row["difference"] or 0) * sign > 0:
                if row["answer"] in DIFFERENT:
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
        if row["answer"] in DIFFERENT:
            higher = stated.first if sign * row["difference"] > 0 else stated.second
            return f"{head}: {numbers}; {titles[higher]} scores significantly higher."
        unread = f", as {percent(row['unread'])} of the answers of the lower one could not be read" if row["unread"] is not None else ""
        return f"{head}: {numbers}; inconclusive{unread}. No other comparison is tested."
    return ""


def power_sentence(tables: Tables) -> str:
    """State which differences this run could have shown: in the stated comparison, or where none is, in all others; empty without one."""
    of_kinds = {}
    for kind in WORDS:
        rows = [row for row in claims_of(tables, kind, significant=False) if row["low"] is not None and row["n_patients"]]
        if rows and PRIMARY not in of_kinds:
            of_kinds[kind] = rows
    if not of_kinds:
        return ""
    rows = [row for own in of_kinds.values() for row in own]
    sizes, unknown, never = [], [], []
    for kind, own in of_kinds.items():
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
    shown = f"the study has 80 % power to detect {', but '.join(parts)}" if parts else ""
    open_sizes = f"the size of a difference {listing(unknown, len(unknown))} cannot be computed" if unknown else ""
    number = _corrected_together(tables) if PRIMARY not in of_kinds else 1
    corrected = f", after correction for {all_of(number, 'comparison')}" if number > 1 else ""
    return f"{head}, {'; '.join(filter(None, (shown, open_sizes)))}{corrected}."


def _corrected_together(tables: Tables) -> int:
    """Count the comparisons that are corrected together: all pairs of models, the pictures, and the title."""
    return sum(row.get("p_corrected") is not None for topic in ("title", "pairs", "arms") for row in tables[topic])
