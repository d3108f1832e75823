"""Rates by task family, both readings of pass@5 on the same items, and what an answer must do to pass: `families.csv`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.intervals import Interval, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.results import FAMILY_TITLES, PRIOR, RANKED_DIFFERENTIAL
from neuralmedbench.records.value_rules import fields_of
from neuralmedbench.tables.declare import ALL, MODEL, RANKED, REPEATABLE, SCORED, Suppression, Table
from neuralmedbench.tables.missing import bounds_of, is_left_open
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Cells, ResultRow, Tables, with_ends
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, by_benchmark, rows_of_best, share, size_of

PASS_RULES = {
    Family.DIFFERENTIAL_DIAGNOSIS: "names the reference diagnosis first",
    Family.LESION_RECOGNITION: "names the place and side of the lesion, or says that there is none",
    Family.RATIONALE_GENERATION: "names the final diagnosis first, whatever its reasons",
    Family.CLASSIFICATION: "names the reference class first",
    Family.QUESTION_ANSWERING: "gives the reference answer",
}
"""What a free answer, or the last one of a dialogue, must do to pass, by family."""

CHOICE_RULE, CLASS_RULE, VALUES_RULE = "chooses the right option", "gives the class of the picture", "gives the reference values"
STAGES_RULE = "gives the reference values of every stage"
"""The same for items with options, and for structured answers of labels, of values and in stages, whatever their family."""

RATES = ("pass1", "pass5", "candidates5", "all_right")


def pass_rule(item: Item) -> str:
    """Return what an answer to an item must do to pass."""
    if item.runner is Runner.CHOICE:
        return CHOICE_RULE
    if item.runner is Runner.STRUCTURED:
        return STAGES_RULE if item.turns else VALUES_RULE if fields_of(item.answer_schema) else CLASS_RULE
    return PASS_RULES[item.family]


def pass_rules(items: Iterable[Item]) -> dict[str, list[Family]]:
    """Return the rules by which any of the items passes, each with its families, in the order of `Family`."""
    pairs = {(pass_rule(item), item.family) for item in items}
    rules: dict[str, list[Family]] = {}
    for family in Family:
        for rule in sorted(rule for rule, own in pairs if own is family):
            rules.setdefault(rule, []).append(family)
    return rules


def pass_definition(items: Sequence[Item]) -> str:
    """State what an answer must do to pass, with the families where rules differ: the definition behind every pass@1 of the page.

    Examples
    --------
    >>> pass_definition([])
    'No item has a reference that an answer can meet.'
    """
    rules = pass_rules(items)
    if not rules:
        return "No item has a reference that an answer can meet."
    parts = [
        f"{rule} ({', '.join(FAMILY_TITLES[family].lower() for family in own)})" if len(rules) > 1 else rule for rule, own in rules.items()
    ]
    last = " The last answer of a dialogue counts." if any(item.runner is Runner.DIALOGUE for item in items) else ""
    return f"An answer passes if it {'; or '.join(parts)}.{last}"


@dataclass(frozen=True, kw_only=True)
class FamilyRow(ResultRow):
    """One model on the items of one task family, or on all that ask for a ranked differential; arm full, strategy direct."""

    benchmark: str
    axis: str | None = None
    model: str
    in_reference_pool: bool | None = None
    title: str | None = None
    family: str
    passes_if: str | None = None
    pass1: float | None = None
    pass1_low: float | None = None
    pass1_high: float | None = None
    pass5: float | None = None
    pass5_low: float | None = None
    pass5_high: float | None = None
    candidates5: float | None = None
    candidates5_low: float | None = None
    candidates5_high: float | None = None
    all_right: float | None = None
    all_right_low: float | None = None
    all_right_high: float | None = None
    best_case: float | None = None
    worst_case: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    expected: int | None = None
    missing: int | None = None
    not_graded_fraction: float | None = None


def family_rows(study: Study, leaderboard: Sequence[Mapping[str, Any]]) -> list[FamilyRow]:
    """Rows of `families.csv`: by family of a benchmark and then over the items of a ranked differential, in the order of the leaderboard."""
    rows = []
    for benchmark in study.benchmarks.values():
        own = [row for row in leaderboard if row["benchmark"] == benchmark.name]
        of_models = {row["model"]: {"model": row["model"], "title": row["title"]} for row in own}
        rows += [FamilyRow(**row) for model, head in of_models.items() for row in _model_rows(study, benchmark, model, head)]
    return rows


def _model_rows(study: Study, benchmark: BenchmarkStudy, model: str, head: Cells) -> Iterator[Cells]:
    outcomes = benchmark.outcomes
    families = np.array([str(item.family) for item in outcomes.items])
    masks = {str(family): families == family for family in Family if (families == family).any()}
    if outcomes.ranked.any():
        masks[RANKED_DIFFERENTIAL] = outcomes.ranked if model == PRIOR else outcomes.differential_items(Key(model))
    for family, mask in masks.items():
        rules = pass_rules(item for item, inside in zip(outcomes.items, mask, strict=True) if inside)
        row = head | {"benchmark": benchmark.name, "axis": outcomes.axis, "family": family, "passes_if": "; or ".join(rules)}
        row |= {"n_items": int(mask.sum()), "n_patients": len(set(outcomes.patients[mask].tolist()))}
        if model == PRIOR:
            by = outcomes.by_patient(study.settings).at(mask)
            found = {name: floor.at(mask).interval(by) for name, floor in benchmark.floors.items() if name in RATES}
            yield row | with_ends(found)
            continue
        counts = outcomes.counts[Key(model)]
        expected, missing = int(counts.samples[mask].sum()), int(counts.missing[mask].sum())
        # without any answer a rate is unknown, and so is that of a reader who answered a sample
        if missing < expected and (model not in study.readers or missing <= study.settings.max_missing_fraction * expected):
            row |= {"expected": expected, "missing": missing, "not_graded_fraction": counts.not_graded_of(mask)}
            yield row | _rates(study, benchmark, Key(model), family, mask)


def _rates(study: Study, benchmark: BenchmarkStudy, key: Key, family: str, mask: npt.NDArray[np.bool_]) -> Cells:
    outcomes, within = benchmark.outcomes, family != RANKED_DIFFERENTIAL
    columns = [np.where(mask, outcomes.metric(name, key, within_family=within), np.nan) for name in RATES]
    by = outcomes.by_patient(study.settings, key)
    intervals = {name: rate_interval(column, by) for name, column in zip(RATES, columns, strict=True)}
    worst_case, best_case = bounds_of(outcomes, key, "pass1", columns[0])
    # above the allowed share of missing answers no number stands for a rate
    limit, known = study.settings.max_missing_fraction, dict(zip(RATES, (~np.isnan(column) for column in columns), strict=True))
    shown = {name: Interval() if is_left_open(outcomes, key, name, known[name], limit) else one for name, one in intervals.items()}
    return with_ends(shown) | {"best_case": best_case, "worst_case": worst_case}


def definitions(study: Study) -> dict[str, str]:
    """State by benchmark what an answer must do to pass: the page shows it wherever it shows pass@1."""
    return {name: pass_definition(benchmark.outcomes.items) for name, benchmark in study.benchmarks.items()}


def repeats_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how often the right diagnosis comes at the first answer, in any and in all of five samples, and among five candidates."""
    parts, sizes = [], []
    for name in study.benchmarks:
        rows = rows_of_best(tables["families"], tables, name)
        row = next((row for row in rows if row["family"] == RANKED_DIFFERENTIAL), None)
        if row is None or row.get("pass5") is None or row.get("all_right") is None:
            continue
        readings = f"{share(row, 'pass5')} in any of five and {share(row, 'candidates5')} among five candidates"
        parts.append(f"{row['title']}: {share(row, 'pass1')} at the first answer, {readings}, {share(row, 'all_right')} in all five")
        asking, *patients = size_of(row, "|").split("|")
        sizes.append((name, ", ".join([f"{asking} that ask for a ranked differential", *patients])))
    nothing = "No ranked model has five samples of a ranked differential at a temperature above 0, so reliability is not known."
    return Takeaway(f"{'; '.join(parts)}." if parts else nothing, by_benchmark(sizes) or "0 items")


def _labels(row: Cells) -> list[Label]:
    if row["family"] == RANKED_DIFFERENTIAL:
        return [(f"{ALL} {RANKED}", "")]
    sets = {SCORED: "pass1", REPEATABLE: "pass5", RANKED: "candidates5"}
    return [(f"{name} family", row["family"]) for name, rate in sets.items() if row[rate] is not None]


TABLE = Table(
    name="families",
    row=FamilyRow,
    rows=lambda results: family_rows(results.study, results.tables["leaderboard"]),
    suppression=Suppression(f"axis {MODEL} title family passes_if", labels=_labels),
    takeaways={"repeats": repeats_takeaway},
)
