"""The leaderboard: `leaderboard.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.estimates.intervals import Floats, Interval, patients_rate, rate_interval
from neuralmedbench.estimates.ranks import rank_ranges, tiers
from neuralmedbench.records.items import Strategy
from neuralmedbench.records.results import PASS1_PATIENTS, PRIOR
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION
from neuralmedbench.records.words import are, counted, percent, plural
from neuralmedbench.tables.calibrated import calibrated_rows, corrects_score
from neuralmedbench.tables.contrasts import Pair, model_pairs
from neuralmedbench.tables.declare import (
    Cells,
    Count,
    Flag,
    MeasureRow,
    Number,
    ResultRow,
    Suppression,
    Table,
    Tables,
    Takeaway,
    Text,
    needs,
    with_ends,
)
from neuralmedbench.tables.floors import BRACKET, chance
from neuralmedbench.tables.form_warnings import contradiction_note, form_notes, form_shares, unread_words
from neuralmedbench.tables.missing import bounds_of, is_left_open, not_graded_notes
from neuralmedbench.tables.outcomes import PAIR_RIGHT, PAIR_SAME, PASS1_STRICT, Key
from neuralmedbench.tables.study import BenchmarkStudy, Study, is_sampled
from neuralmedbench.tables.words import begun, by_benchmark, models_of, noun_of, ranked_of, titles_of, whole_size

PRIOR_TITLE = "Best constant answer"
RATES = ("pass1", "pass5", "candidates5", "all_right", "rubric")
OF_DIFFERENTIAL = ("pass5", "candidates5", "all_right")
RATES_OF_ALL = frozenset({*RATES, PASS1_PATIENTS, PASS1_STRICT, MAIN_CONDITION, CORE_DIAGNOSIS})


def mean_of(values: Floats) -> float | None:
    """Return the mean over the items that have a value; None without any."""
    return None if np.isnan(values).all() else float(np.nanmean(values))


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow(ResultRow):
    """One model, reader or reference on one benchmark: arm full, strategy direct; rates 0 to 1 with their intervals."""

    benchmark: str
    axis: Text = None
    model: str
    in_reference_pool: Flag = None
    title: Text = None
    revision: Text = None
    baseline: Flag = None
    reader: Text = None
    open_weights: Flag = None
    rank: Count = None
    rank_low: Count = None
    rank_high: Count = None
    tier: Count = None
    pass1_patients: Number = None
    pass1_patients_low: Number = None
    pass1_patients_high: Number = None
    pass1: Number = None
    pass1_low: Number = None
    pass1_high: Number = None
    interval: Text = None
    pass1_strict: Number = None
    pass1_strict_low: Number = None
    pass1_strict_high: Number = None
    calibrated: Number = None
    calibrated_low: Number = None
    calibrated_high: Number = None
    pass5: Number = None
    pass5_low: Number = None
    pass5_high: Number = None
    candidates5: Number = None
    candidates5_low: Number = None
    candidates5_high: Number = None
    all_right: Number = None
    differential_items: Count = None
    differential_patients: Count = None
    main_condition: Number = None
    core_diagnosis: Number = None
    rubric: Number = None
    rubric_low: Number = None
    rubric_high: Number = None
    n_items: Count = None
    n_patients: Count = None
    expected: Count = None
    missing: Count = None
    missing_fraction: Number = None
    not_graded: Count = None
    not_graded_fraction: Number = None
    best_case: Number = None
    worst_case: Number = None
    refused: Count = None
    truncated: Count = None
    truncated_thinking: Count = None
    unparsable: Count = None
    unread_missing: Count = None
    contradicted: Count = None
    abstained: Count = None
    unread_fraction: Number = None
    truncated_fraction: Number = None
    brier: Number = None
    chance: Number = None
    note: Text = None


def limited_words(limit: int) -> str:
    """Say what a limited run is."""
    return f"limited to {counted(limit, 'answer')} per model, which shows that everything works but is no result"


@needs(model_pairs, calibrated_rows)
def leaderboard_rows(study: Study, pairs: dict[str, list[Pair]], calibrated: Sequence[MeasureRow] = ()) -> list[LeaderboardRow]:
    """Rows of `leaderboard.csv`: arm full, strategy direct, and the reference `prior` last.

    `calibrated` has the rates that clinicians corrected, never those of simulated raters; they are given where enough was rated.
    """
    corrected = {(row.benchmark, row.model): row for row in calibrated if corrects_score(row)}
    rows = []
    for name, benchmark in study.benchmarks.items():
        for row in _benchmark_rows(study, benchmark, pairs[name]):
            rate = corrected.get((name, row["model"]))
            rows.append(LeaderboardRow(**row, **(with_ends({"calibrated": (rate.value, rate.low, rate.high)}) if rate else {})))
    return rows


def _benchmark_rows(study: Study, benchmark: BenchmarkStudy, pairs: list[Pair]) -> list[Cells]:
    outcomes, settings = benchmark.outcomes, study.settings
    rows = {model: _model_row(study, benchmark, model) for model in study.models}
    # readers are people: a standard of comparison, without a rank among models
    models = [model for model in rows if model not in study.readers]
    ranked = [
        model
        for model in models
        if not benchmark.limit
        and rows[model][PASS1_PATIENTS] is not None
        and rows[model]["missing_fraction"] <= settings.max_missing_fraction
    ]
    # equal rates are ordered by name
    ranked.sort(key=lambda model: (-round(rows[model][PASS1_PATIENTS], 9), model))
    ranges = []
    if ranked:
        values = np.stack([outcomes.metric("pass1", Key(model)) for model in ranked], axis=1)
        ranges = rank_ranges(values, outcomes.by_patient(settings, *map(Key, ranked)))
    alpha = 1 - settings.confidence
    different = {frozenset((pair.row.model, pair.row.other)) for pair in pairs if pair.differs(alpha)}
    tier = tiers(ranked, different)
    for model, (low, high) in zip(ranked, ranges, strict=True):
        # equal rates share a rank
        better = sum(rows[other][PASS1_PATIENTS] > rows[model][PASS1_PATIENTS] + 1e-9 for other in ranked)
        rows[model] |= {"rank": 1 + better, "rank_low": low, "rank_high": high, "tier": tier[model]}
    # ranked models first, then models without a rank, readers, and the prior
    order = [*ranked, *sorted(set(models) - set(ranked)), *sorted(study.readers)]
    return [*(rows[model] for model in order), *([_prior_row(study, benchmark)] if outcomes.items else [])]


def _head(benchmark: BenchmarkStudy) -> Cells:
    outcomes = benchmark.outcomes
    patients = len(set(outcomes.patients.tolist()))
    return {"benchmark": benchmark.name, "axis": outcomes.axis, "n_items": len(outcomes.items), "n_patients": patients}


def _model_row(study: Study, benchmark: BenchmarkStudy, model: str) -> Cells:
    outcomes, key, config = benchmark.outcomes, Key(model), study.models[model]
    counts = outcomes.counts[key]
    by, limit = outcomes.by_patient(study.settings, key), study.settings.max_missing_fraction
    of_differential = outcomes.differential_items(key)
    values = {name: outcomes.metric(name, key) for name in (*RATES, PASS1_STRICT)}
    worst_case, best_case = bounds_of(outcomes, key, "pass1", values["pass1"])
    # above the allowed share of missing answers a rate lies between its bounds: no number stands for it
    every = np.ones(len(outcomes.items), dtype=bool)
    items = {name: of_differential if name in OF_DIFFERENTIAL else every for name in RATES_OF_ALL}
    unknown = {name for name, own in items.items() if is_left_open(outcomes, key, name, own, limit)}
    rates = {name: Interval() if name in unknown else rate_interval(own, by) for name, own in values.items()}
    rates[PASS1_PATIENTS] = Interval() if "pass1" in unknown else patients_rate(values["pass1"], by)
    row = _head(benchmark) | {
        "model": model,
        "title": config.title,
        "revision": config.revision,
        "baseline": config.baseline,
        "reader": config.reader,
        "open_weights": config.open_weights,
        "all_right": rates["all_right"].value,
        "differential_items": int(of_differential.sum()) or None,
        "differential_patients": len(set(outcomes.patients[of_differential].tolist())) or None,
        "interval": rates["pass1"].method,
        "expected": int(counts.samples.sum()),
        "missing": int(counts.missing.sum()),
        "missing_fraction": counts.missing_fraction,
        "not_graded": int(counts.not_graded.sum()),
        "not_graded_fraction": counts.not_graded_of(counts.samples > 0),
        "best_case": best_case,
        "worst_case": worst_case,
        "brier": counts.brier if counts.missing_fraction <= limit else None,
    }
    # nothing is known of the form of answers that are not there
    row |= (counts.tally if counts.present else dict.fromkeys(counts.tally)) | form_shares(counts.tally, counts.present)
    notes = [
        *form_notes(row),
        *_origin(benchmark, model, config),
        *_notes(study, benchmark, key, config.reader),
    ]
    row["note"] = "; ".join((*notes, *contradiction_note(counts.tally)))
    row |= with_ends({name: rates[name] for name in (PASS1_PATIENTS, "pass1", PASS1_STRICT, "pass5", "candidates5", "rubric")})
    row |= {name: None if name in unknown else mean_of(counts.grades[name]) for name in (MAIN_CONDITION, CORE_DIAGNOSIS)}
    if config.reader and counts.missing_fraction > limit:
        # a reader answers a sample of the items, so no rate of all is known: the bounds stay, topic readers has the sample
        row |= dict.fromkeys(name for name in row if name.removesuffix("_low").removesuffix("_high") in RATES_OF_ALL)
    return row


def _origin(benchmark: BenchmarkStudy, model: str, config: ModelConfig) -> list[str]:
    """Note where a model's answers come from, how they were sampled, and that the items were chosen by them."""
    origin = ["answers imported"] if config.backend == "imported" else []
    if config.backend == "litellm" and config.temperature is None:
        origin = ["temperature: the provider's own"]
    if model not in benchmark.config.reference_pool:
        return origin
    chose = "of the pool by which the items were chosen: what it solved was taken out"
    return [*origin, chose if is_sampled(config) else f"{chose}; at temperature 0 its new answers may be those that chose"]


def _notes(study: Study, benchmark: BenchmarkStudy, key: Key, reader: str | None) -> list[str]:
    outcomes, counts, limit = benchmark.outcomes, benchmark.outcomes.counts[key], study.settings.max_missing_fraction
    notes = []
    if not outcomes.items:
        notes.append("not scored: no item has a reference that an answer can meet")
    elif reader:
        strategy = study.models[key.model].reader_strategy
        of_round = outcomes.counts.get(key._replace(strategy=strategy))
        given = int((of_round.samples - of_round.missing).sum()) if of_round else 0
        whose = "a program in the place of a reader" if reader == "simulated" else "a person"
        where = (
            "worked up, see topic workup of measures.csv"
            if strategy == Strategy.WORKUP
            else "answered, compared with models on these alone: topic readers of contrasts.csv"
        )
        notes.append(f"{whose}: no rank; {given} of {len(outcomes.items)} items {where}")
    elif benchmark.limit:
        notes.append(f"no rank: {limited_words(benchmark.limit)}")
    elif counts.missing_fraction > limit:
        between = "" if counts.unanswered else ", so only its worst and best case are known"
        notes.append(f"no rank: {percent(counts.missing_fraction)} of the answers are missing or not graded{between}")
    notes += not_graded_notes(study, benchmark, key.model)
    if outcomes.repeatable.any() and not counts.sampled:
        notes.append("temperature 0: no pass@5")
    right, same = (mean_of(outcomes.metric(name, key)) for name in (PAIR_RIGHT, PAIR_SAME))
    if right is not None and same is not None and counts.missing_fraction <= limit:
        notes.append(f"both of a pair right {percent(right)}, one answer to both {percent(same)}")
    return notes


def _prior_row(study: Study, benchmark: BenchmarkStudy) -> Cells:
    by = benchmark.outcomes.by_patient(study.settings)
    row = _head(benchmark) | {"model": PRIOR, "title": PRIOR_TITLE, "baseline": True, "interval": BRACKET}
    row |= with_ends(
        {name: floor.interval(by, patients_rate if name == PASS1_PATIENTS else rate_interval) for name, floor in benchmark.floors.items()}
    )
    note = f"one and the same answer to every item of a task, chosen on other {plural(2, benchmark.cluster)}; the upper end is the best in hindsight, not a confidence limit"
    guess = chance(benchmark.outcomes)
    return row | {"chance": guess, "note": note if guess is None else f"{note}. One option at random: {percent(guess)}"}


def _asked(rows: list[Cells]) -> str:
    models, benchmarks = ({row[name] for row in rows} for name in ("model", "benchmark"))
    return f"{counted(len(models), noun_of(rows))} on {counted(len(benchmarks), 'benchmark')}"


def glance_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how many of the expected answers are present."""
    rows = [row for name in study.benchmarks for row in models_of(tables, name)]
    expected, missing, ungraded = (sum(row.get(name) or 0 for row in rows) for name in ("expected", "missing", "not_graded"))
    missing -= ungraded
    never = sum(
        (row.get("missing") or 0) - (row.get("not_graded") or 0) for row in rows if study.models[row["model"]].backend == "imported"
    )
    ours = missing - never
    lost = [f"{ours:,} {are(ours)} missing for reasons of the run, not of the models"] if ours else []
    lost += [f"{never:,} imported {'ones were' if never > 1 else 'one was'} not among the answers that were handed in"] if never else []
    lost += [f"{ungraded:,} came and {are(ungraded)} not graded"] if ungraded else []
    absent = ", and ".join(lost) or "none is missing"
    if words := unread_words(rows):
        absent += f"; {words}"
    nothing = "No model has been scored yet, so nothing was found."
    return Takeaway(
        f"{_asked(rows)}: of {counted(expected, 'answer')} to the full request {absent}." if expected else nothing,
        whole_size(study, tables),
    )


def matrix_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Count the models and benchmarks of the run, and the rates that are not known."""
    rows = [row for name in study.benchmarks for row in models_of(tables, name)]
    if not rows:
        return Takeaway("No model has been scored yet.", whole_size(study, tables))
    unknown = sum(row["pass1"] is None for row in rows)
    why = (
        ", because too many answers are missing or not graded"
        if unknown and all(row["missing"] for row in rows if row["pass1"] is None)
        else ""
    )
    return Takeaway(
        f"{_asked(rows)}; {f'{unknown} of {len(rows)} rates' if unknown else 'no rate'} {'are' if unknown > 1 else 'is'} unknown{why}.",
        whole_size(study, tables),
    )


def leaderboard_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise which models share the first tier; a leaderboard can claim no finer order."""
    parts = []
    for name, benchmark in study.benchmarks.items():
        ranked = ranked_of(tables, name)
        first = [row["model"] for row in ranked if row["tier"] == 1]
        who, whole = titles_of(study, first), f"the first tier ({counted(len(ranked), 'model')} {are(len(ranked))} ranked)"
        if len(ranked) == 1:
            words = f"{who} is the only model with a rank"
        else:
            words = f"{who} is the only one in {whole}" if len(first) == 1 else f"{who} share {whole}"
        parts.append((benchmark.config.title, words if first else "no model has a rank"))
    return Takeaway(f"{begun(by_benchmark(parts), study)}." if parts else "No model has been scored yet.", whole_size(study, tables))


def methods_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise the unit of independence and the number of resamples."""
    settings = study.settings
    text = f"Patients are the independent units. Intervals are {percent(settings.confidence)} intervals; those from resampling use {settings.resamples:,} resamples. One correction covers the sentences at a glance and the tiers."
    return Takeaway(text, whole_size(study, tables))


TABLE = Table(
    name="leaderboard",
    row=LeaderboardRow,
    rows=leaderboard_rows,
    suppression=Suppression("benchmark axis model in_reference_pool title revision baseline reader open_weights note"),
    takeaways={"glance": glance_takeaway, "matrix": matrix_takeaway, "leaderboard": leaderboard_takeaway, "methods": methods_takeaway},
)
