"""The comparisons behind the sentences at a glance, as one family with one correction: `claims.csv`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from scipy import special

from neuralmedbench.config.benchmark import are_shallow_texts
from neuralmedbench.estimates.contrasts import smallest_difference
from neuralmedbench.estimates.exact import holm
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Arm, Axis, Family, Strategy
from neuralmedbench.records.results import FAMILY_TITLES, RANKED_DIFFERENTIAL
from neuralmedbench.records.words import all_of, counted, listing, percent, points
from neuralmedbench.tables.axes import better_axis
from neuralmedbench.tables.contrasts import picture_benchmarks, unread_may_turn, unread_share
from neuralmedbench.tables.declare import SCORED, Results, Suppression, Table, arm_labels
from neuralmedbench.tables.degradation import severest
from neuralmedbench.tables.form_warnings import open_rate
from neuralmedbench.tables.grounding.measures import CONTRASTS, measure_grounding
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.pressure import COMPARED
from neuralmedbench.tables.revisions import change_tests
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.viewer import DIFFERENCE, ORACLE_DIFFERENCE, oracle_arm
from neuralmedbench.tables.words import (
    ANOTHER,
    CHOSEN,
    COLLEAGUE,
    CONSTANT,
    DEGRADED,
    LAYOUT,
    MIRROR,
    MODELS,
    ORACLE,
    ORDER,
    OVER_ALL,
    OVER_NONE,
    PICTURES,
    REVISION,
    SIDES,
    SUGGESTIONS,
    TOLD,
    VIEWED,
    WORDING,
    WORDLESS,
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
from neuralmedbench.tables.workup import kind_of_gain

WORDS = {
    MODELS: "between two models",
    PICTURES: "with and without pictures",
    TOLD: "between the patient's findings and another's",
    SIDES: "between breadth and depth",
    REVISION: "between two revisions",
    LAYOUT: "between two input layouts",
    ANOTHER: "between following another's pictures and staying",
    WORDLESS: "between changes without the text and between repeats",
    CONSTANT: "between staying and changing without the text",
    MIRROR: "between sides that flip and sides that stay",
    SUGGESTIONS: "between right and wrong suggestions",
    COLLEAGUE: "between an own answer that a colleague suggests and one that is doubted",
    ORDER: "between a place of the options and the others",
    WORDING: "between two wordings",
    DEGRADED: "between degraded pictures and those as they are",
    CHOSEN: "between evidence that is asked for and all at once",
    OVER_NONE: "between facts that are asked for and none",
    OVER_ALL: "between facts that are asked for and all of them",
    VIEWED: "between views that are asked for and the chosen slices",
    ORACLE: "between oracle slices and views that are asked for",
}
"""The kinds of comparisons, in words."""

STRATEGIES = {CHOSEN: Strategy.WORKUP, OVER_NONE: Strategy.ASK, OVER_ALL: Strategy.ASK}
"""Of kinds that compare two arms of a strategy."""


@dataclass(frozen=True, kw_only=True)
class ClaimRow(ResultRow):
    """One comparison that a sentence at a glance may state."""

    kind: str
    benchmark: str
    family: str | None = None
    breadth_benchmark: str | None = None
    breadth_family: str | None = None
    model: str
    in_reference_pool: bool | None = None
    other: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float
    p_holm: float | None = None
    significant: bool | None = None
    detectable: float | None = None
    unread: float | None = None
    n_patients: int | None = None


def claim_rows(results: Results) -> list[ClaimRow]:
    """Rows of `claims.csv`; Holm over all of them together."""
    settings = results.study.settings
    alpha, limit = 1 - settings.confidence, settings.max_missing_fraction
    found = list(_comparisons(results))
    corrected = holm([row.p_value for row in found])
    return [
        replace(
            row,
            p_holm=p_holm,
            significant=p_holm < alpha and not unread_may_turn(row.difference, row.low, row.high, row.unread, limit),
            detectable=_detectable(row, alpha, len(found)),
        )
        for row, p_holm in zip(found, corrected, strict=True)
    ]


def _unread_of(study: Study, row: Mapping[str, Any], first: Key, second: Key) -> Cells:
    """Return the share of unread answers of the side that is lower: of the second where the first is above it."""
    outcomes = study.benchmarks[row["benchmark"]].outcomes
    lower, other = (second, first) if row["difference"] > 0 else (first, second)
    return {"unread": unread_share(outcomes, lower, other)}


def _unread_side(study: Study, row: Mapping[str, Any]) -> float:
    """Return what the unread answers of the lower axis would add to it, on the scale from its best constant answer to a perfect score."""
    axis = "depth" if row["gap"] > 0 else "breadth"
    key, room = Key(row["model"]), 1 - (row[f"{axis}_prior"] or 0)
    share = unread_share(study.benchmarks[row[f"{axis}_benchmark"]].outcomes, key, key, row[f"{axis}_family"])
    return share / room if room else 0.0


def _unread_told(study: Study, row: Mapping[str, Any]) -> float:
    """Return the largest share of unread answers of those that are compared with the true findings, or of those with them if they are lower."""
    outcomes, told = study.benchmarks[row["benchmark"]].outcomes, Key(row["model"], Arm.FINDINGS_DISCLOSED)
    others = [Key(row["model"], arm) for arm in (Arm.FULL, Arm.FINDINGS_OF_ANOTHER, Arm.FINDINGS_ONLY)]
    pairs = [(key, told) if (row["effect"] or 0) > 0 else (told, key) for key in others if key in outcomes.counts]
    return max((unread_share(outcomes, *pair) for pair in pairs), default=0.0)


def _comparisons(results: Results) -> Iterator[ClaimRow]:
    study, tables = results.study, results.tables
    for row in tables["pairwise"]:
        if row["p_value"] is not None and study.readers.keys().isdisjoint((row["model_a"], row["model_b"])):
            yield _claim(MODELS, row, model=row["model_a"], other=row["model_b"])
    pictures = picture_benchmarks(study, tables["arms"])
    tested = [row for row in tables["arms"] if row["p_value"] is not None]
    for row in tested:
        cells = {**row, **_unread_of(study, row, Key(row["model"], row["arm"]), Key(row["model"]))}
        if row["arm"] == Arm.NO_IMAGE and row["benchmark"] in pictures:
            yield _claim(PICTURES, cells)
        if row["arm"] in study.benchmarks[row["benchmark"]].layouts:
            yield _claim(LAYOUT, cells, other=row["arm"])
    for row in tables["decomposition"]:
        # the findings help: better than without, than with another's, and than alone; all three must hold, so the largest p value counts
        tests = [row[name] for name in ("gain_p", "effect_p", "beyond_p")]
        if row["gain_p"] is not None:
            ends = {"difference": row["effect"], "low": row["effect_low"], "high": row["effect_high"]}
            yield _claim(TOLD, {**row, **ends, "p_value": 1.0 if None in tests else max(tests), "unread": _unread_told(study, row)})
    for row in tables["axes"]:
        if row["gap_p"] is not None:
            names = {name: row[name] for name in ("breadth_benchmark", "breadth_family")} | {"family": row["depth_family"]}
            ends = {"difference": row["gap"], "low": row["gap_low"], "high": row["gap_high"], "p_value": row["gap_p"]}
            ends["unread"] = _unread_side(study, row)
            yield _claim(SIDES, {**row, **ends, "benchmark": row["depth_benchmark"]}, **names)
    kinds = {measure: kind for kind, measure in CONTRASTS.items()}
    decisive = [row for row in results.once(measure_grounding) if row.measure in kinds and row.p_value is not None]
    yield from (_claim(kinds[row.measure], {**row, "difference": row.value}, other=row.arm) for row in decisive)
    moved = [
        row for row in tables["pressure"] if row["measure"] in COMPARED and row["p_value"] is not None and row["model"] not in study.readers
    ]
    yield from (_claim(COMPARED[row["measure"]], {**row, "difference": row["value"]}, other=row["arm"]) for row in moved)
    compared = [row for row in severest(tables["degradation"]) if row["model"] not in study.readers]
    for worst in compared:
        keys = Key(worst["model"], worst["arms"].split()[-1]), Key(worst["model"])
        yield _claim(DEGRADED, {**worst, **_unread_of(study, worst, *keys)}, other=worst["arms"])
    yield from _own_search(study, tables)
    for row in tables["revisions"]:
        if tests := change_tests(dict(row)):  # more changed answers than repeats have, or another pass rate: two tests of one comparison
            yield _claim(REVISION, {**row, "p_value": min(holm(tests))}, other=row["metric"])


def _own_search(study: Study, tables: Mapping[str, Sequence[ResultRow]]) -> Iterator[ClaimRow]:
    """Compare what models make of evidence, and of views, that they ask for with what they make of those that they are given."""
    for row in tables["workup"]:
        if row["p_value"] is not None and row["model"] not in study.readers:
            cells, kind = {**row, "difference": row["value"]}, kind_of_gain(row)
            own, other = (Key(row["model"], arm, STRATEGIES[kind]) for arm in row["arm"].split())
            yield _claim(kind, {**cells, **_unread_of(study, cells, own, other)}, other=row["arm"])
    for row in tables["viewer"]:
        if row["measure"] in (DIFFERENCE, ORACLE_DIFFERENCE) and row["p_value"] is not None and row["model"] not in study.readers:
            cells, looks = {**row, "difference": row["value"]}, Key(row["model"], Arm.FULL, Strategy.VIEWER)
            if row["measure"] == DIFFERENCE:
                yield _claim(VIEWED, {**cells, **_unread_of(study, cells, looks, Key(row["model"]))})
            else:
                arm = oracle_arm(study.benchmarks[row["benchmark"]])
                yield _claim(ORACLE, {**cells, **_unread_of(study, cells, Key(row["model"], arm), looks)}, other=arm)


def _claim(kind: str, row: Mapping[str, Any], **names: str | None) -> ClaimRow:
    cells = {
        name: row[name] for name in ("benchmark", "model", "difference", "low", "high", "p_value", "unread", "n_patients") if name in row
    }
    return ClaimRow(kind=kind, **{**cells, **names})


def _detectable(row: ClaimRow, alpha: float, comparisons: int) -> float | None:
    """Return the smallest difference that would be significant in 80 % of such studies, if no other comparison were; from the interval's width."""
    if row.low is None or row.high is None or row.n_patients is None or row.n_patients < 2:
        return None
    half, patients = (row.high - row.low) / 2, row.n_patients
    return smallest_difference(half / special.stdtrit(patients - 1, 1 - alpha / 2), patients, alpha / comparisons)


def lower_models(tables: Tables, benchmark: str, best: str, alpha: float) -> tuple[set[str], dict[str, float]]:
    """Return the models that score significantly lower than the best one; and the share of unread answers of those that would if these are wrong."""
    lower, unread = set(), {}
    for row in claims_of(tables, MODELS, significant=False, benchmark=benchmark):
        for one, other, sign in ((row["model"], row["other"], 1), (row["other"], row["model"], -1)):
            if one == best and (row["difference"] or 0) * sign > 0:
                if row["significant"]:
                    lower.add(other)
                elif row["p_holm"] is not None and row["p_holm"] < alpha:
                    unread[other] = row["unread"]
    return lower, unread


def power_sentence(study: Study, tables: Tables) -> str:
    """State which differences this run could have shown; empty without a comparison.

    Where the test cannot reject with so few patients and so many comparisons, no difference is small enough: the whole range stands for it.
    """
    rows = [row for row in tables["claims"] if row["low"] is not None and row["n_patients"]]
    smallest = [(row["kind"], 1.0 if row["detectable"] is None else row["detectable"]) for row in rows]
    sizes = {kind: median(own) for kind in WORDS if (own := [size for name, size in smallest if name == kind])}
    if not sizes:
        return ""
    parts = [f"{points(size, plus='')} points {WORDS[kind]}" for kind, size in sizes.items() if size < 1]
    never = [WORDS[kind] for kind, size in sizes.items() if size >= 1]
    found = f"a difference of {listing(parts, len(parts))}" if parts else ""
    none = f"no{'ne' if parts else ' difference'}, however large, {listing(never, len(never))}" if never else ""
    fewest, most = (end(row["n_patients"] for row in rows) for end in (min, max))
    size = counted(most, cluster_of(rows))
    patients = size if fewest == most else f"{fewest:,} to {size}"
    number = len(tables["claims"])
    # a single comparison has no correction
    corrected = ("after Holm's correction for " if number > 1 else "") + all_of(number, "comparison")
    return (
        f"Power: with {patients}, 8 of 10 such studies would show {', but '.join(filter(None, (found, none)))}, {corrected} that the sentences "
        "above may state."
    )


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
    if best is None or best["pass1_patients"] is None:
        return ""
    constant = constant_of(tables, benchmark)
    floors = [f"the best constant answer earns {share(constant, 'pass1_patients')}"] if constant.get("pass1_patients") is not None else []
    floors += [f"one option at random {percent(constant['chance'])}"] if constant.get("chance") is not None else []
    size = size_of(best, " of ", separator="")
    unread = open_rate(best, tables)
    text = f"{best['title']} answers {share(best, 'pass1_patients')} of {size} rightly{f'; {listing(floors)}' if floors else ''}"
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
    if best is None or best["pass1_patients"] is None:
        return ""
    of_breadth = breadth.get(best["model"], {})
    families = {row["breadth_family"] for row in tables["axes"] if row["breadth_benchmark"] == first[Axis.BREADTH]}
    kind = FAMILY_TITLES[families.pop()].lower() if len(families) == 1 else "breadth"
    shallow = f"{share(of_breadth, 'pass1_patients')} of the {kind} items and " if of_breadth.get("pass1_patients") is not None else ""
    # the same families as the columns beside it
    own = [row["family"] for row in tables["families"] if (row["benchmark"], row["model"]) == (best["benchmark"], best["model"])]
    found = [FAMILY_TITLES[name].lower() for name in own if name != RANKED_DIFFERENTIAL]
    of_depth = f"{all_of(best['n_items'], 'item')} of depth" + (f" ({listing(found, len(found))})" if found else "")
    return f"{best['title']} passes {shallow}{share(best, 'pass1_patients')} of {of_depth}. {_reasoning(study, tables, best)}"


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
    families = [(f"{SCORED} family", row[name]) for name in ("family", "breadth_family") if row[name]]
    arms: dict[str, str] = {PICTURES: Arm.NO_IMAGE, TOLD: Arm.FINDINGS_DISCLOSED}
    arms |= dict.fromkeys((ANOTHER, WORDLESS, CONSTANT, MIRROR), str(row["other"]))
    if row["kind"] in {*COMPARED.values(), DEGRADED, *STRATEGIES}:
        strategy = STRATEGIES.get(row["kind"], Strategy.DIRECT)
        return families + [label for arm in row["other"].split() for label in arm_labels({"arm": arm, "strategy": strategy})]
    if row["kind"] in (VIEWED, ORACLE):
        oracle = arm_labels({"arm": row["other"]}) if row["kind"] == ORACLE else []
        return families + arm_labels({"arm": Arm.FULL, "strategy": Strategy.VIEWER}) + oracle
    return families + (arm_labels({"arm": arms[row["kind"]]}) if row["kind"] in arms else [])


TABLE = Table(
    name="claims",
    row=ClaimRow,
    rows=claim_rows,
    suppression=Suppression("kind benchmark family breadth_benchmark breadth_family model in_reference_pool other", labels=_labels),
)
