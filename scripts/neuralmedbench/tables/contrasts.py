"""Paired contrasts: between arms, between models, between the axes; and where the errors come from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from neuralmedbench.estimates.intervals import Floats, rate_interval
from neuralmedbench.estimates.pairs import Difference, holm, mcnemar_exact, paired_difference, paired_differences
from neuralmedbench.records.items import Axis
from neuralmedbench.tables.axes import breadth_depth_gap
from neuralmedbench.tables.decomposition import decompose
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key, Outcomes
from neuralmedbench.tables.study import BenchmarkStudy, Study

DISCLOSED = "findings_disclosed"

Row = dict[str, Any]


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


def _ends(difference: Difference) -> Row:
    return {
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "p_value": difference.p_value,
        "n_items": difference.items,
        "n_patients": difference.patients,
    }


def pairwise_rows(pairs: dict[str, list[Pair]]) -> list[Row]:
    """Rows of `pairwise.csv`."""
    return [
        {"benchmark": benchmark, "model_a": pair.first, "model_b": pair.second, "p_holm": pair.p_holm, "mcnemar_p": pair.mcnemar_p}
        | _ends(pair.difference)
        for benchmark, found in pairs.items()
        for pair in found
    ]


def arm_rows(study: Study) -> list[Row]:
    """Rows of `arms.csv`: each arm minus full, strategy direct, on the items that both ask."""
    rows = []
    for benchmark in study.benchmarks.values():
        outcomes = benchmark.outcomes
        for key in outcomes.counts:
            if key.arm != FULL and key.strategy == DIRECT:
                difference = paired_difference(
                    answered(outcomes, key), answered(outcomes, Key(key.model)), outcomes.patients, study.settings
                )
                rows.append({"benchmark": benchmark.name, "model": key.model, "arm": key.arm, "reference_arm": FULL} | _ends(difference))
    return rows


def decomposition_rows(study: Study) -> list[Row]:
    """Rows of `decomposition.csv`, for the benchmarks that have the arm findings_disclosed."""
    rows = []
    for benchmark in study.benchmarks.values():
        outcomes = benchmark.outcomes
        for model in study.models:
            key = Key(model, DISCLOSED)
            if key not in outcomes.counts:
                continue
            parts = decompose(answered(outcomes, Key(model)), answered(outcomes, key), outcomes.patients, study.settings)
            row: Row = {"benchmark": benchmark.name, "model": model, "drawn": parts.drawn, "note": parts.note}
            row |= {"n_items": parts.items, "n_patients": parts.patients}
            named = {"f": parts.full, "d": parts.disclosed, "perception": parts.perception, "reasoning": parts.reasoning}
            for name, interval in named.items():
                row |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
            rows.append(row)
    return rows


def axis_rows(study: Study) -> list[Row]:
    """Rows of `axes.csv`: every model on each pair of a breadth and a depth benchmark."""
    scored = [benchmark for benchmark in study.benchmarks.values() if benchmark.outcomes.items]
    models = [model for model in study.models if model not in study.readers]  # of people a sample of the items is known
    sides = {axis: [benchmark for benchmark in scored if benchmark.config.axis is axis] for axis in (Axis.BREADTH, Axis.DEPTH)}
    return [_axis_row(study, model, breadth, depth) for breadth in sides[Axis.BREADTH] for depth in sides[Axis.DEPTH] for model in models]


def _axis_row(study: Study, model: str, breadth: BenchmarkStudy, depth: BenchmarkStudy) -> Row:
    row: Row = {"model": model, "title": study.models[model].title}
    sides = []
    for axis, benchmark in (("breadth", breadth), ("depth", depth)):
        outcomes = benchmark.outcomes
        values = outcomes.metric("pass1", Key(model))
        if outcomes.counts[Key(model)].missing_fraction > study.settings.max_missing_fraction:
            values = np.full(len(values), np.nan)  # answers that are missing because of us would stand there as errors
        interval = rate_interval(values, outcomes.patients, study.settings)
        row |= {f"{axis}_benchmark": benchmark.name, axis: interval.value}
        row |= {f"{axis}_low": interval.low, f"{axis}_high": interval.high, f"{axis}_prior": float(benchmark.prior["pass1"].mean())}
        sides.append((values, benchmark.prior["pass1"], [item.patient_id for item in outcomes.items]))
    gap = breadth_depth_gap(sides[0], sides[1], study.settings)
    return row | {"gap": gap.value, "gap_low": gap.low, "gap_high": gap.high}
