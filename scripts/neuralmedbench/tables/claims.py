"""What sentences at a glance may claim: the primary, pictures, and models against the leader (`claims.csv`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from neuralmedbench.config.benchmark import are_shallow_texts
from neuralmedbench.estimates.contrasts import can_reject, smallest_difference
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Arm, Axis, Family
from neuralmedbench.records.results import FAMILY_TITLES, RANKED_DIFFERENTIAL
from neuralmedbench.records.words import all_of, counted, listing, p_equals, percent, points, points_span
from neuralmedbench.tables.axes import better_axis
from neuralmedbench.tables.declare import Results, Suppression, Table, arm_labels
from neuralmedbench.tables.family import (
    Compared,
    Tested,
    corrected_family,
    first_answer_of,
    primary_of,
    unread_may_turn,
    unread_of,
)
from neuralmedbench.tables.form_warnings import open_rate
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import (
    MODELS,
    PICTURES,
    PRIMARY,
    best_of,
    claims_of,
    cluster_of,
    constant_of,
    models_of,
    noun_of,
    share,
    size_of,
    value_share,
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


def _detectable(tested: Tested, patients: int | None, level: float) -> float | None:
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


def power_sentence(study: Study, tables: Tables) -> str:
    """State which differences this run could have shown: in the stated comparison, or where none is, in all others; empty without one."""
    rows = [row for row in tables["claims"] if row["low"] is not None and row["n_patients"]]
    rows = [row for row in rows if row["kind"] == PRIMARY] or rows
    if not rows:
        return ""
    alpha = 1 - study.settings.confidence
    sizes, unknown, never = [], [], []
    for kind in (kind for kind in WORDS if any(row["kind"] == kind for row in rows)):
        own = [row for row in rows if row["kind"] == kind]
        size = median([1.0 if row["detectable"] is None else row["detectable"] for row in own])
        if size < 1:
            sizes.append(f"{points(size, plus='')} points {WORDS[kind]}")
        elif any(can_reject(row["n_patients"], alpha) for row in own):
            unknown.append(WORDS[kind])
        else:
            never.append(WORDS[kind])
    parts = [f"a difference of {listing(sizes, len(sizes))}"] if sizes else []
    parts += [f"no{'ne' if parts else ' difference'}, however large, {listing(never, len(never))}"] if never else []
    fewest, most = (end(row["n_patients"] for row in rows) for end in (min, max))
    patients = counted(most, cluster_of(rows))
    head = f"Power: with {patients if fewest == most else f'{fewest:,} to {patients}'}"
    shown = f"8 of 10 such studies would show {', but '.join(parts)}" if parts else ""
    open_sizes = f"how large a difference must be {listing(unknown, len(unknown))} is not known" if unknown else ""
    number = _corrected_together(tables) if rows[0]["kind"] != PRIMARY else 1
    corrected = f", after correction for {all_of(number, 'comparison')}" if number > 1 else ""
    return f"{head}, {'; '.join(filter(None, (shown, open_sizes)))}{corrected}."


def _corrected_together(tables: Tables) -> int:
    """Count the comparisons that are corrected together: all pairs of models, and the pictures."""
    rows = [*tables["pairwise"], *claims_of(tables, PICTURES, significant=False)]
    return sum(row["p_corrected"] is not None for row in rows)


CLASSIFIES, SOLVES, UNTOLD = "classifies better", "solves hard cases better", "cannot be told"
"""What can be told of a model about the question of the page's title."""


def title_answer(study: Study, tables: Tables) -> Cells:
    """Answer the question of the page's title as far as the comparisons show it.

    Returns
    -------
    dict
        `short`, one line; `asked`, the question that it answers where it is another one; `support`, the two rates of the best model and whether its reasoning was judged; `models`, what can be told of each.
        A model classifies better where breadth is above depth on every pair of tasks; it solves hard cases better where depth is above
        breadth on every pair and it did worse without the pictures of every depth benchmark. (Our rule.)
    """
    names = {row["model"]: row["title"] for name in study.benchmarks for row in models_of(tables, name)}
    if names and are_shallow_texts(one.config for one in study.benchmarks.values()):
        found = [text for name in study.benchmarks if (text := _right_answers(study, tables, name))]
        return {"asked": "How many answers are right?", "short": " ".join(found), "support": "", "models": []}
    better = {axis: {row["model"] for row in rows} for axis, rows in better_axis(tables).items()}
    depth = {name for name, one in study.benchmarks.items() if one.config.axis is Axis.DEPTH}
    pictures = {
        name: [row for row in claims_of(tables, PICTURES, significant=False, model=name) if row["benchmark"] in depth] for name in names
    }
    looked = {name for name, rows in pictures.items() if rows and all(row["significant"] and row["difference"] < 0 for row in rows)}
    told = {name: CLASSIFIES if name in better["breadth"] else SOLVES if name in better["depth"] & looked else UNTOLD for name in names}
    first = {axis: next((name for name in study.benchmarks if study.benchmarks[name].config.axis is axis), "") for axis in Axis}
    rows = {axis: {row["model"]: row for row in models_of(tables, name)} for axis, name in first.items()}
    return {
        "short": _short_answer(study, names, told, list(rows[Axis.DEPTH].values())),
        "support": _support(study, tables, first, rows[Axis.BREADTH]),
        "models": [{"model": name, "told": words} for name, words in told.items()],
    }


def _right_answers(study: Study, tables: Tables, benchmark: str) -> str:
    """State how many answers of the best model are right, beside what a constant answer and chance earn; empty without a rank."""
    best = best_of(tables, benchmark)
    if best is None or best["pass1"] is None:
        return ""
    constant = constant_of(tables, benchmark)
    floors = [f"the best constant answer earns {share(constant, 'pass1')}"] if constant.get("pass1") is not None else []
    floors += [f"one option at random {percent(constant['chance'])}"] if constant.get("chance") is not None else []
    size = size_of(best, " of ", separator="")
    unread = open_rate(best, tables)
    text = f"{best['title']} answers {share(best, 'pass1')} of {size} rightly{f'; {listing(floors)}' if floors else ''}"
    read = (
        f"{percent(best['unread_fraction'])} could not be read{unread}"
        if unread
        else f"{best.get('unparsable') or 'none'} could not be read"
    )
    head = f"{study.benchmarks[benchmark].config.title}: " if len(study.benchmarks) > 1 else ""
    return f"{head}{text}. Of its answers {read}."


def _short_answer(study: Study, names: Mapping[str, str], told: Mapping[str, str], depth: Sequence[Cells]) -> str:
    if not names:
        return "Nothing can be told: no model has been scored yet."
    if absent := [axis for axis in (Axis.BREADTH, Axis.DEPTH) if all(one.config.axis is not axis for one in study.benchmarks.values())]:
        return f"This cannot be told: no benchmark of {' or '.join(absent)} was run."
    parts = []
    for words, one, many in (
        (CLASSIFIES, "classifies better than it solves hard cases", "classify better than they solve hard cases"),
        (
            SOLVES,
            "solves hard cases better than it classifies, and needs their pictures",
            "solve hard cases better than they classify, and need their pictures",
        ),
    ):
        titles = [names[name] for name, own in told.items() if own == words]
        if titles:
            parts.append(f"{listing(titles)} {one if len(titles) == 1 else many}")
    left = sum(own == UNTOLD for own in told.values())
    patients = max((row["n_patients"] or 0 for row in depth), default=0)
    size = f" with {counted(patients, cluster_of(depth))}" if patients else ""
    if not parts:
        noun = noun_of(depth)
        whom = {1: "", 2: f" of either {noun}"}.get(len(names), f" of any of the {counted(len(names), noun)}")
        return f"This cannot be told{whom}{size}."
    others = "the other one" if left == 1 else f"the other {left}"
    return "; ".join([*parts, *([f"of {others} this cannot be told{size}"] if left else [])]) + "."


def _support(study: Study, tables: Tables, first: Mapping[Axis, str], breadth: Mapping[str, Cells]) -> str:
    best = best_of(tables, first[Axis.DEPTH])
    if best is None or best["pass1"] is None:
        return ""
    of_breadth = breadth.get(best["model"], {})
    families = {row["breadth_family"] for row in tables["axes"] if row["breadth_benchmark"] == first[Axis.BREADTH]}
    kind = FAMILY_TITLES[families.pop()].lower() if len(families) == 1 else "breadth"
    shallow = f"{share(of_breadth, 'pass1')} of the {kind} items and " if of_breadth.get("pass1") is not None else ""
    # the same families as the columns beside it
    own = [row["family"] for row in tables["families"] if (row["benchmark"], row["model"]) == (best["benchmark"], best["model"])]
    found = [FAMILY_TITLES[name].lower() for name in own if name != RANKED_DIFFERENTIAL]
    of_depth = f"{all_of(best['n_items'], 'item')} of depth" + (f" ({listing(found, len(found))})" if found else "")
    return f"{best['title']} passes {shallow}{share(best, 'pass1')} of {of_depth}. {_reasoning(study, tables, best)}"


def _reasoning(study: Study, tables: Tables, row: Cells) -> str:
    """State what is known of the reasoning behind the final answers of a row of the leaderboard."""
    key = (row["benchmark"], row["model"])
    judged = [one for one in tables["reasoning"] if (one["benchmark"], one["model"]) == key and one["value"] is not None]
    rated = [
        one
        for one in tables["ratings"]
        if (one["model"], one["axis"]) == (row["model"], "reasoning") and not one["simulated"] and one["mean"] is not None
    ]
    rationale = any((one["benchmark"], one["family"]) == (row["benchmark"], Family.RATIONALE_GENERATION) for one in tables["families"])
    head = f"These are final answers{', also for the rationale items' if rationale else ''}; "
    steps = [
        f"of the steps that the case decides it supports {value_share(one)} by {study.all_graders[one['grader']].title}"
        for one in judged
        if one["measure"] == "reasoning.factuality"
    ]
    known = ", ".join(steps) or ("its reasoning was judged, see the leaderboard" if judged or rated else "")
    return f"{head}{known or 'reasoning was not measured in this run'}."


def _labels(row: Cells) -> list[Label]:
    return arm_labels({"arm": Arm.NO_IMAGE}) if row["kind"] == PICTURES else []


TABLE = Table(
    name="claims",
    row=ClaimRow,
    rows=claim_rows,
    suppression=Suppression("kind benchmark model in_reference_pool other", labels=_labels),
)
