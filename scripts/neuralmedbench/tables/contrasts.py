"""Paired contrasts between arms and between models: `arms.csv` and `pairwise.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from neuralmedbench.estimates.comparisons import Difference, paired_difference, paired_differences
from neuralmedbench.estimates.exact import holm, mcnemar_exact
from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.records.items import Axis
from neuralmedbench.records.words import counted, listing
from neuralmedbench.tables.declare import MODEL, Suppression, Table, arm_labels, of_study
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key, Outcomes
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, largest, without_head


@dataclass(frozen=True)
class Pair:
    """Two models on the same items: first minus second."""

    first: str
    second: str
    difference: Difference
    p_holm: float | None
    mcnemar_p: float | None


def answered(outcomes: Outcomes, key: Key) -> Floats:
    """pass@1 by item, NaN where any answer is missing: a contrast must not be a contrast of missing answers."""
    return np.where(outcomes.counts[key].missing > 0, np.nan, outcomes.metric("pass1", key))


def model_pairs(study: Study) -> dict[str, list[Pair]]:
    """Compare each two models of each benchmark under the arm full; Holm over the pairs of a benchmark, apart for those with a reader."""
    return {name: _pairs(study, benchmark.outcomes) for name, benchmark in study.benchmarks.items()}


def _pairs(study: Study, outcomes: Outcomes) -> list[Pair]:
    values = {model: answered(outcomes, Key(model)) for model in study.models}
    each_two = list(combinations(study.models, 2))
    differences = paired_differences([(values[first], values[second]) for first, second in each_two], outcomes.patients, study.settings)
    found = [(first, second, difference) for (first, second), difference in zip(each_two, differences, strict=True)]
    corrected: dict[tuple[str, str], float] = {}
    for people in (False, True):  # how many readers there are changes nothing between models
        tested = {
            (first, second): difference.p_value
            for first, second, difference in found
            if difference.p_value is not None and study.readers.keys().isdisjoint((first, second)) is not people
        }
        corrected |= zip(tested, holm(list(tested.values())), strict=True)
    return [
        Pair(
            first,
            second,
            difference,
            corrected.get((first, second)),
            _mcnemar(values[first], values[second]),
        )
        for first, second, difference in found
    ]


def _mcnemar(first: Floats, second: Floats) -> float | None:
    both = ~(np.isnan(first) | np.isnan(second))
    return mcnemar_exact(first[both] > 0.5, second[both] > 0.5) if both.any() else None


def _ends(difference: Difference) -> Cells:
    return {
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "p_value": difference.p_value,
        "n_items": difference.items,
        "n_patients": difference.patients,
    }


@dataclass(frozen=True, kw_only=True)
class PairwiseRow(ResultRow):
    """Two models on the same items: first minus second."""

    benchmark: str
    model_a: str
    a_in_reference_pool: bool | None = None
    model_b: str
    b_in_reference_pool: bool | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    mcnemar_p: float | None = None
    n_items: int | None = None
    n_patients: int | None = None


def pairwise_rows(pairs: dict[str, list[Pair]]) -> list[PairwiseRow]:
    """Rows of `pairwise.csv`."""
    return [
        PairwiseRow(
            benchmark=benchmark,
            model_a=pair.first,
            model_b=pair.second,
            p_holm=pair.p_holm,
            mcnemar_p=pair.mcnemar_p,
            **_ends(pair.difference),
        )
        for benchmark, found in pairs.items()
        for pair in found
    ]


@dataclass(frozen=True, kw_only=True)
class ArmRow(ResultRow):
    """One arm against full: pass@1 by item, arm minus full."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    arm: str
    reference_arm: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    n_items: int | None = None
    n_patients: int | None = None


def arm_rows(study: Study) -> list[ArmRow]:
    """Rows of `arms.csv`: each arm minus full, strategy direct, on the items that both ask."""
    rows = []
    for benchmark in study.benchmarks.values():
        outcomes = benchmark.outcomes
        for key in outcomes.counts:
            if key.arm != FULL and key.strategy == DIRECT:
                difference = paired_difference(
                    answered(outcomes, key), answered(outcomes, Key(key.model)), outcomes.patients, study.settings
                )
                rows.append(ArmRow(benchmark=benchmark.name, model=key.model, arm=key.arm, reference_arm=FULL, **_ends(difference)))
    return rows


def picture_sentence(study: Study, tables: Tables) -> str:
    """Say which models were shown to look at the pictures of a depth benchmark; empty where none was asked without them."""
    rows = [row for row in tables["arms"] if row["arm"] == "no_image" and row["p_value"] is not None and _is_depth(study, row)]
    if not rows:
        return ""
    alpha = 1 - study.settings.confidence
    corrected = zip(rows, holm([row["p_value"] for row in rows]), strict=True)
    lookers = sorted({row["model"] for row, p_value in corrected if row["difference"] < 0 and p_value < alpha})
    blind = sorted({row["model"] for row in rows} - set(lookers))
    titles = {name: model.title for name, model in study.models.items()}
    if not lookers:
        return "Pictures: no model was significantly worse without them, so none was shown to have looked."
    told = f"Pictures: {listing([titles[name] for name in lookers])} did significantly worse without them"
    return f"{told}." if not blind else f"{told}; of {listing([titles[name] for name in blind])} this was not shown."


def _is_depth(study: Study, row: Cells) -> bool:
    return study.benchmarks[row["benchmark"]].config.axis is Axis.DEPTH


def arms_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say whether a model was shown to look."""
    sentence = picture_sentence(study, tables)
    nothing = "No answer to a depth benchmark without its pictures stands beside one with them, so it is not known whether a model looks."
    return Takeaway(
        without_head(sentence).replace(" without them", " without the pictures") if sentence else nothing, largest(tables["arms"])
    )


def pairwise_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say how many pairs of models differ."""
    rows = tables["pairwise"]
    if not rows:
        return Takeaway("A comparison needs two models that answered the same items.", "0 pairs")
    alpha = 1 - study.settings.confidence
    tested = [row for row in rows if row["p_holm"] is not None]
    if not tested:
        return Takeaway("No pair of models answered the same items.", largest(rows))
    differ = sum(row["p_holm"] < alpha for row in tested)
    told = f"{differ} of {counted(len(tested), 'pair')} of models differ after Holm's correction; the others were not shown to be alike."
    all_differ = f"All {len(tested)} pairs of models differ" if len(tested) != 1 else "The only pair of models differs"
    return Takeaway(told if differ < len(tested) else f"{all_differ} after Holm's correction.", largest(rows))


ARMS = Table(
    name="arms",
    row=ArmRow,
    rows=of_study(arm_rows),
    suppression=Suppression(f"{MODEL} arm reference_arm", labels=arm_labels),
    takeaways={"arms": arms_takeaway},
)

PAIRWISE = Table(
    name="pairwise",
    row=PairwiseRow,
    rows=lambda results: pairwise_rows(results.once(model_pairs)),
    suppression=Suppression("benchmark model_a a_in_reference_pool model_b b_in_reference_pool"),
    takeaways={"pairs": pairwise_takeaway},
)
