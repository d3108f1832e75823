"""The leaderboard and the tidy table of rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.estimates.intervals import Floats, Interval, rate_interval, rate_intervals
from neuralmedbench.estimates.ranks import rank_ranges, tiers
from neuralmedbench.tables.contrasts import Pair
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.item_pairs import PAIR_METRICS, PAIR_RIGHT, PAIR_SAME
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key, Outcomes
from neuralmedbench.tables.prior import PRIOR
from neuralmedbench.tables.study import BenchmarkStudy, Study, is_sampled

PRIOR_TITLE, CHANCE_TITLE = "Prior (commonest answers)", "Chance (one option)"
RATES = ("pass1", "pass5", "candidates5", "all_right", "rubric")
RATES_OF_ALL = frozenset({*RATES, "main_condition", "core_diagnosis"})
Row = dict[str, Any]
Part = tuple[str, str]
"""A slice and its value."""


def mean_of(values: Floats) -> float | None:
    """Mean over the items that have a value; None when none has."""
    return None if np.isnan(values).all() else float(np.nanmean(values))


def leaderboard_rows(study: Study, pairs: dict[str, list[Pair]]) -> list[Row]:
    """Rows of `leaderboard.csv`: arm full, strategy direct, and the reference `prior` last.

    Parameters
    ----------
    study : Study
        The run.
    pairs : dict of str to list of Pair
        Paired differences between models, by benchmark.
    """
    return [row for benchmark in study.benchmarks.values() for row in _benchmark_rows(study, benchmark, pairs[benchmark.name])]


def _benchmark_rows(study: Study, benchmark: BenchmarkStudy, pairs: list[Pair]) -> list[Row]:
    outcomes, settings = benchmark.outcomes, study.settings
    rows = {model: _model_row(study, benchmark, model) for model in study.models}
    # readers are people: what models are compared with, never one of them
    models = [model for model in rows if model not in study.readers]
    ranked = [
        model for model in models if rows[model]["pass1"] is not None and rows[model]["missing_fraction"] <= settings.max_missing_fraction
    ]
    ranked.sort(key=lambda model: (-round(rows[model]["pass1"], 9), model))
    ranges = []
    if ranked:
        values = np.stack([outcomes.metric("pass1", Key(model)) for model in ranked], axis=1)
        ranges = rank_ranges(values, outcomes.patients, settings)
    p_holm = {frozenset((pair.first, pair.second)): 1.0 if pair.p_holm is None else pair.p_holm for pair in pairs}
    tier = tiers(ranked, p_holm, 1 - settings.confidence)
    for model, (low, high) in zip(ranked, ranges, strict=True):
        better = sum(rows[other]["pass1"] > rows[model]["pass1"] + 1e-9 for other in ranked)
        rows[model] |= {"rank": 1 + better, "rank_low": low, "rank_high": high, "tier": tier[model]}
    order = [*ranked, *sorted(set(models) - set(ranked)), *sorted(study.readers)]
    return [*(rows[model] for model in order), *([_prior_row(study, benchmark)] if outcomes.items else [])]


def _bounds(name: str, interval: Interval) -> Row:
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _head(benchmark: BenchmarkStudy) -> Row:
    outcomes = benchmark.outcomes
    patients = len(set(outcomes.patients.tolist()))
    return {"benchmark": benchmark.name, "axis": outcomes.axis, "n_items": len(outcomes.items), "n_patients": patients}


def _model_row(study: Study, benchmark: BenchmarkStudy, model: str) -> Row:
    outcomes, key, config = benchmark.outcomes, Key(model), study.models[model]
    counts = outcomes.counts[key]
    rates = {name: rate_interval(outcomes.metric(name, key), outcomes.patients, study.settings) for name in RATES}
    row = _head(benchmark) | {
        "model": model,
        "title": config.title,
        "revision": config.revision,
        "baseline": config.baseline,
        "reader": config.reader,
        "open_weights": config.open_weights,
        "all_right": rates["all_right"].value,
        "interval": rates["pass1"].method,
        "expected": int(counts.samples.sum()),
        "missing": int(counts.missing.sum()),
        "missing_fraction": counts.missing_fraction,
        "best_case": mean_of(outcomes.metric("best_case", key)),
        "worst_case": rates["pass1"].value,
        "brier": counts.brier if counts.missing_fraction <= study.settings.max_missing_fraction else None,
        "note": "; ".join((*_origin(benchmark, model, config), *_notes(outcomes, key, study.settings.max_missing_fraction, config.reader))),
    }
    for name in ("pass1", "pass5", "candidates5", "rubric"):
        row |= _bounds(name, rates[name])
    row |= {name: mean_of(counts.grades[name]) for name in ("main_condition", "core_diagnosis")}
    if config.reader and counts.missing_fraction > study.settings.max_missing_fraction:
        # of a sample of the items the rate of all is not known: the bounds stay, what is known of the sample stands in readers.csv
        row |= dict.fromkeys(name for name in row if name.removesuffix("_low").removesuffix("_high") in RATES_OF_ALL)
    return row | counts.tally


def _origin(benchmark: BenchmarkStudy, model: str, config: ModelConfig) -> list[str]:
    """Say of a model where its answers, or the items, come from."""
    imported = ["answers imported"] if config.backend == "imported" else []
    if model not in benchmark.config.reference_pool:
        return imported
    chose = "of the pool by which the items were chosen: what it solved was taken out"
    return [*imported, chose if is_sampled(config) else f"{chose}; at temperature 0 its new answers may be those that chose"]


def _notes(outcomes: Outcomes, key: Key, limit: float, reader: str | None) -> list[str]:
    counts = outcomes.counts[key]
    notes = []
    if not outcomes.items:
        notes.append("not scored: no item has a reference answer")
    elif reader:
        given = int((counts.samples - counts.missing).sum())
        whose = "a program in the place of a reader" if reader == "simulated" else "a person"
        notes.append(
            f"{whose}: no rank; {given} of {len(outcomes.items)} items answered, compared with models on these alone in readers.csv"
        )
    elif counts.missing_fraction > limit:
        notes.append(f"no rank: {counts.missing_fraction:.0%} of the answers are missing or not graded")
    if outcomes.repeatable.any() and not counts.sampled:
        notes.append("temperature 0: no pass@5")
    right, same = (mean_of(outcomes.metric(name, key)) for name in (PAIR_RIGHT, PAIR_SAME))
    if right is not None and same is not None:
        notes.append(f"both of a pair right {right:.0%}, one answer to both {same:.0%}")
    return notes


def _prior_row(study: Study, benchmark: BenchmarkStudy) -> Row:
    rates = {name: rate_interval(values, benchmark.outcomes.patients, study.settings) for name, values in benchmark.prior.items()}
    lettered = [bool(item.options) for item in benchmark.outcomes.items]
    title = CHANCE_TITLE if all(lettered) else PRIOR_TITLE
    row = _head(benchmark) | {"model": PRIOR, "title": title, "baseline": True, "interval": rates["pass1"].method}
    for name, interval in rates.items():
        row |= _bounds(name, interval)
    others = "computed from the other patients' answers, leave one patient out"
    how = "one option at random" if all(lettered) else f"{others}{' (with options: one of them at random)' if any(lettered) else ''}"
    return row | {"note": f"{how}; not a model"}


def rate_rows(study: Study) -> list[Row]:
    """Rows of `rates.csv`: every arm over all items; arm full, strategy direct also by slice."""
    rows = [row for benchmark in study.benchmarks.values() for row in _rows_of(study, benchmark.outcomes)]
    most = study.settings.max_missing_fraction
    # of a reader who answered a sample of a slice the rate of the slice is not known
    known = (row for row in rows if row["model"] not in study.readers or row["missing"] <= most * row["expected"])
    return [row for row in known if row["value"] is not None]


def _rows_of(study: Study, outcomes: Outcomes) -> list[Row]:
    masks: dict[Part, Mask] = {("all", "all"): np.ones(len(outcomes.items), dtype=bool)}
    masks |= {(part, value): mask for part, value, mask in item_groups(study, outcomes)}
    wanted: list[tuple[Key, Part, str]] = []
    for key in outcomes.counts:
        parts = masks if (key.arm, key.strategy) == (FULL, DIRECT) else [("all", "all")]
        wanted += [(key, part, name) for part in parts for name in (*RATES, *PAIR_METRICS)]
        wanted += [(key, part, "false_alarm") for part in masks if part == ("normal_control", "true")]
    together: dict[tuple[Part, str], list[Key]] = {}
    for key, part, name in wanted:
        together.setdefault((part, name), []).append(key)
    rows: dict[tuple[Key, Part, str], Row] = {}
    for (part, name), keys in together.items():
        values = np.stack([_values_of(outcomes, key, name, masks[part]) for key in keys], axis=1)
        intervals = rate_intervals(values, outcomes.patients, study.settings)
        for column, (key, interval) in enumerate(zip(keys, intervals, strict=True)):
            rows[key, part, name] = _rate_row(outcomes, key, part, name=name, known=~np.isnan(values[:, column]), interval=interval)
    return [rows[one] for one in wanted]


def _values_of(outcomes: Outcomes, key: Key, name: str, mask: Mask) -> Floats:
    """Item values of a metric in a group; NaN everywhere if no answer to the group is there."""
    counts, values = outcomes.counts[key], outcomes.metric(name, key)
    known = mask & ~np.isnan(values) if name in counts.grades or (counts.missing < counts.samples)[mask].any() else np.zeros_like(mask)
    return np.where(known, values, np.nan)


def _rate_row(outcomes: Outcomes, key: Key, part: Part, *, name: str, known: Mask, interval: Interval) -> Row:
    counts = outcomes.counts[key]
    return {
        "benchmark": outcomes.benchmark,
        "axis": outcomes.axis,
        **key._asdict(),
        "slice": part[0],
        "value_of_slice": part[1],
        "metric": name,
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "interval": interval.method,
        "n_items": int(known.sum()),
        "n_patients": len(set(outcomes.patients[known].tolist())),
        "expected": int(counts.samples[known].sum()),
        "missing": int(counts.missing[known].sum()),
    }
