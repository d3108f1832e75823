"""The leaderboard and the tidy table of rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.records.items import DIAGNOSES
from neuralmedbench.stats.contrasts import Pair
from neuralmedbench.stats.intervals import Floats, Interval, rate_interval
from neuralmedbench.stats.item_pairs import PAIR_METRICS
from neuralmedbench.stats.outcomes import DIRECT, FULL, Key, Outcomes
from neuralmedbench.stats.prior import PRIOR
from neuralmedbench.stats.ranks import rank_ranges, tiers
from neuralmedbench.stats.study import BenchmarkStudy, Study

PRIOR_TITLE = "Prior (commonest answers)"
RATES = ("pass1", "pass5", "candidates5", "all_right")
NORMAL = "normal"
"""Key of the vocabulary's entry for a scan without abnormality."""

Row = dict[str, Any]
Mask = npt.NDArray[np.bool_]


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
    ranked = [model for model, row in rows.items() if row["pass1"] is not None and row["missing_fraction"] <= settings.max_missing_fraction]
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
    order = ranked + sorted(model for model in rows if model not in ranked)
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
        "open_weights": config.open_weights,
        "all_right": rates["all_right"].value,
        "interval": rates["pass1"].method,
        "expected": int(counts.samples.sum()),
        "missing": int(counts.missing.sum()),
        "missing_fraction": counts.missing_fraction,
        "best_case": mean_of(outcomes.metric("best_case", key)),
        "worst_case": rates["pass1"].value,
        "brier": counts.brier,
        "note": "; ".join((*_origin(benchmark, model, config), *_notes(outcomes, key, study.settings.max_missing_fraction))),
    }
    for name in ("pass1", "pass5", "candidates5"):
        row |= _bounds(name, rates[name])
    row |= {name: mean_of(counts.grades[name]) for name in ("main_condition", "core_diagnosis", "rubric")}
    return row | counts.tally


def _origin(benchmark: BenchmarkStudy, model: str, config: ModelConfig) -> list[str]:
    """Say of a model where its answers, or the items, come from."""
    imported = ["answers imported"] if config.backend == "imported" else []
    chose = ["of the pool by which the items were chosen: what it solved was taken out"] if model in benchmark.config.reference_pool else []
    return imported + chose


def _notes(outcomes: Outcomes, key: Key, limit: float) -> list[str]:
    counts = outcomes.counts[key]
    notes = []
    if not outcomes.items:
        notes.append("not scored: no item has a reference answer")
    elif counts.missing_fraction > limit:
        notes.append(f"no rank: {counts.missing_fraction:.0%} of the answers are missing")
    if outcomes.repeatable.any() and not counts.sampled:
        notes.append("temperature 0: no pass@5")
    right, same = (mean_of(outcomes.metric(name, key)) for name in PAIR_METRICS)
    if right is not None and same is not None:
        notes.append(f"both of a pair right {right:.0%}, one answer to both {same:.0%}")
    return notes


def _prior_row(study: Study, benchmark: BenchmarkStudy) -> Row:
    rates = {name: rate_interval(values, benchmark.outcomes.patients, study.settings) for name, values in benchmark.prior.items()}
    row = _head(benchmark) | {"model": PRIOR, "title": PRIOR_TITLE, "baseline": True, "interval": rates["pass1"].method}
    for name, interval in rates.items():
        row |= _bounds(name, interval)
    return row | {"note": "computed from the other patients' answers, leave one patient out; not a model"}


def rate_rows(study: Study) -> list[Row]:
    """Rows of `rates.csv`: every arm over all items; arm full, strategy direct also by slice."""
    rows: list[Row] = []
    for benchmark in study.benchmarks.values():
        outcomes = benchmark.outcomes
        parts = list(_slices(study, outcomes))
        for key in outcomes.counts:
            everything = np.ones(len(outcomes.items), dtype=bool)
            rows += [_rate_row(study, outcomes, key, ("all", "all"), mask=everything, name=name) for name in (*RATES, *PAIR_METRICS)]
            if (key.arm, key.strategy) == (FULL, DIRECT):
                for part, value, mask in parts:
                    rows += [_rate_row(study, outcomes, key, (part, value), mask=mask, name=name) for name in (*RATES, *PAIR_METRICS)]
            for part, value, mask in parts:
                if part == "normal_control" and value == "true":
                    rows.append(_rate_row(study, outcomes, key, (part, value), mask=mask, name="false_alarm"))
    return [row for row in rows if row["value"] is not None]


def _rate_row(study: Study, outcomes: Outcomes, key: Key, part: tuple[str, str], *, mask: Mask, name: str) -> Row:
    values = np.where(mask, outcomes.metric(name, key), np.nan)
    interval, known = rate_interval(values, outcomes.patients, study.settings), ~np.isnan(values)
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


def _slices(study: Study, outcomes: Outcomes) -> Iterator[tuple[str, str, Mask]]:
    columns = {
        "family": [str(item.family) for item in outcomes.items],
        "level": [str(item.level) for item in outcomes.items],
        "diagnosis": [gold.answer if item.family in DIAGNOSES else "" for item, gold in zip(outcomes.items, outcomes.gold, strict=True)],
        "sequence": [_only_sequence({image.sequence for image in item.images}) for item in outcomes.items],
        "normal_control": ["true" if _is_normal(study, gold.answer) else "" for gold in outcomes.gold],
        "lesion_shown": ["" if item.lesion_shown is None else str(item.lesion_shown).lower() for item in outcomes.items],
    }
    for part, values in columns.items():
        for value in sorted(set(values) - {""}):
            yield part, value, np.array([entry == value for entry in values], dtype=bool)
    for tag in sorted({tag for item in outcomes.items for tag in item.tags if ":" in tag}):
        part, _, value = tag.partition(":")
        yield part, value, np.array([tag in item.tags for item in outcomes.items], dtype=bool)


def _only_sequence(sequences: set[str]) -> str:
    return next(iter(sequences)) if len(sequences) == 1 else ""


def _is_normal(study: Study, answer: str) -> bool:
    found = study.vocabulary.find(answer)
    return found is not None and found.key == NORMAL
