"""Paired contrasts: between arms, between models, and between readers and models (topics `arms`, `pairs` and `readers`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from statistics import median
from typing import NamedTuple

import numpy as np

from neuralmedbench.config.arms import AT_LESION
from neuralmedbench.estimates.contrasts import ALIKE, DIFFERENT, Difference, patients_to_show
from neuralmedbench.records.arm_changes import CHOICE
from neuralmedbench.records.items import Arm, Axis, Kind, is_headline
from neuralmedbench.records.results import FEWEST, PASS1_PATIENTS
from neuralmedbench.records.words import apart, points, points_span, unsure_span
from neuralmedbench.tables.declare import (
    SCORED,
    Cells,
    ContrastRow,
    CountRow,
    Measure,
    MeasureRow,
    ModelRows,
    Tables,
    Takeaway,
    grouped_by,
    needs,
    of_benchmarks,
    of_models,
    topic,
)
from neuralmedbench.tables.family import Compared, FamilyTest, corrected_family
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key
from neuralmedbench.tables.shared_requests import shared_note
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import MOST_EXPLORED, PICTURES, claims_of, exploratory, is_closed, largest, titles_of, without_head

Row = MeasureRow | ContrastRow | CountRow


class Pair(NamedTuple):
    """Two models on the same items, as a row: first minus second; and the difference behind it."""

    row: ContrastRow
    difference: Difference

    def differs(self, alpha: float) -> bool:
        """Return True if the corrected test shows a difference."""
        return self.row.p_corrected is not None and self.row.p_corrected < alpha


@needs(corrected_family)
def model_pairs(study: Study, family: Mapping[Compared, FamilyTest] | None = None) -> dict[str, list[Pair]]:
    """Compare every two models of each benchmark under the arm full; pairs with a reader are not corrected.

    `family` is `corrected_family` of the study, where it is known already.
    """
    family = corrected_family(study) if family is None else family
    return {name: list(_pairs(study, benchmark, family)) for name, benchmark in study.benchmarks.items()}


def _pairs(study: Study, benchmark: BenchmarkStudy, family: Mapping[Compared, FamilyTest]) -> Iterator[Pair]:
    for first, second in combinations(study.models, 2):
        made = ModelRows("pairs", study, benchmark, first)
        paired = made.paired(Key(first), Key(second))
        difference, tested = paired.difference, family.get(Compared(benchmark.name, first, second))
        yield Pair(made.passes_difference(PASS1_PATIENTS, paired, tested, n_patients=difference.patients), difference)


@needs(model_pairs)
def pair_rows(study: Study, pairs: Mapping[str, Sequence[Pair]]) -> list[Row]:
    """Models against each other, every two on the same items.

    Counts of the items that one of two passes alone, and of the patients that a difference of the margin needs.
    """
    return [row for name in pairs for pair in pairs[name] for row in _pair_rows(study, study.benchmarks[name], pair)]


def _pair_rows(study: Study, benchmark: BenchmarkStudy, pair: Pair) -> Iterator[Row]:
    row, difference = pair
    yield row
    made = ModelRows("pairs", study, benchmark, row.model)
    cells: Cells = {"other": row.other, "n_items": row.n_items, "n_patients": row.n_patients}
    for measure, count in (("first_alone", difference.only_first), ("second_alone", difference.only_second)):
        yield made.count(measure, count or 0, difference.items, **cells)
    if difference.patients >= FEWEST:
        alpha = 1 - study.settings.confidence
        needed = patients_to_show(study.settings.margin, difference.error, difference.patients, alpha)
        if needed is not None:
            yield made.plain("needed", value=float(needed), **cells)


UPPER_BOUND = "oracle slices: an upper bound, which uses the truth"
"""Note on arms whose pictures were cut at the lesion."""


@needs(corrected_family)
@of_benchmarks
def arm_rows(study: Study, benchmark: BenchmarkStudy, family: Mapping[Compared, FamilyTest]) -> Iterator[ContrastRow]:
    """Arms against the full request: pass@1 without a part of it, or with another one."""
    outcomes, oracle = benchmark.outcomes, oracle_arms(benchmark)
    for key in outcomes.counts:
        if key.arm == FULL or key.strategy != DIRECT or CHOICE.fullmatch(key.arm):
            continue
        made = ModelRows("arms", study, benchmark, key.model)
        paired = made.paired(key, Key(key.model))
        tested = family.get(Compared(benchmark.name, key.model)) if key.arm == Arm.NO_IMAGE else None
        row = made.passes_difference(PASS1_PATIENTS, paired, tested)
        if key in outcomes.requests and paired.difference.patients == 1:
            # patients who share a request are one: of a single draw nothing can be tested
            row = replace(row, p_value=None)
        shared = shared_note(int(paired.items.sum()), outcomes.request_count(key, paired.items))
        notes = [UPPER_BOUND if key.arm in oracle else "", shared]
        yield replace(row, note="; ".join(filter(None, notes)))


def oracle_arms(benchmark: BenchmarkStudy) -> list[str]:
    """Return the arms of a benchmark that show oracle slices."""
    return [name for name, arm in benchmark.arms.items() if arm.config.pictures == AT_LESION]


def picture_sentence(study: Study, tables: Tables) -> str:
    """State which models were shown to use the pictures; empty if none was asked without them."""
    claims = claims_of(tables, PICTURES, significant=False)
    if claims and is_closed(tables):
        return "Pictures: not tested, because the stated comparison is inconclusive."
    asked = {row["model"] for row in claims}
    if not asked:
        return ""
    # of another benchmark than one of depth the sentence says which
    (*_, last) = [study.benchmarks[row["benchmark"]] for row in claims]
    where = "" if last.config.axis is Axis.DEPTH else f"on {last.config.title} "
    # worse without the pictures: the model used them
    lookers = {row["model"] for row in claims_of(tables, PICTURES) if row["difference"] < 0}
    # alike with and without them on every benchmark
    alike = {model for model in asked - lookers if all(row["answer"] == ALIKE for row in claims if row["model"] == model)}
    unsure = asked - lookers - alike
    if len(claims) <= MOST_EXPLORED:
        return f"Pictures: {where}{'; '.join(_without_pictures(study, row) for row in claims)}."
    parts = [f"{titles_of(study, lookers)} significantly lower without them"] if lookers else []
    parts += [f"no for {titles_of(study, alike)}, within {points(study.settings.margin, plus='')} points"] if alike else []
    parts += [f"inconclusive for {titles_of(study, unsure)}"] if unsure else []
    return f"Pictures: {where}{'; '.join(parts)}."


def _without_pictures(study: Study, row: Cells) -> str:
    """State one of the three answers on pass@1 without the pictures, with its interval."""
    title, low, high = study.models[row["model"]].title, row["low"], row["high"]
    if row["answer"] == ALIKE:
        return f"{title} no, within {points(study.settings.margin, plus='')} points ({points_span(low, high)})"
    if row["answer"] not in DIFFERENT:
        return f"{title} inconclusive ({unsure_span(low, high)})"
    return f"{title} {apart(row['difference'], low, high).replace(' (', ' without them (')}"


def layout_sentence(study: Study, tables: Tables) -> str:
    """State what the layouts that makers document change; empty if no model was asked in one."""
    rows = []
    for row in tables["arms"]:
        benchmark = study.benchmarks.get(row["benchmark"])
        if benchmark and row["arm"] in benchmark.layouts:
            rows.append({**row, "of": f"in the layout of {benchmark.layouts[row['arm']].config.title}"})
    return exploratory(study, "Shown as its maker documents, against the common layout", rows)


def arms_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise whether a model was shown to use the pictures, and what its maker's layout changes."""
    sentence, layouts = picture_sentence(study, tables), layout_sentence(study, tables)
    nothing = "No model was asked with and without the pictures of a depth benchmark."
    if study.benchmarks and all(benchmark.config.kind is Kind.TEXT for benchmark in study.benchmarks.values()):
        nothing = "" if tables["arms"] else "No answer under another arm than the full request is here."
    pictures = without_head(sentence, study).replace(" without them", " without the pictures") if sentence else nothing
    return Takeaway(f"{pictures} {layouts}".rstrip(), largest(tables["arms"]))


ARM_MEASURES = (
    Measure(
        PASS1_PATIENTS,
        "Arm minus full",
        "pass@1 under the arm minus pass@1 under the full request, on the same items.",
        "points",
    ),
)

ARMS = topic("arms", arm_rows, ARM_MEASURES, takeaways={"arms": arms_takeaway})

PAIR_MEASURES = (
    Measure(
        PASS1_PATIENTS,
        "First minus second",
        "pass@1 of `model` minus pass@1 of `other`, on the same items.",
        "points",
    ),
    Measure(
        "first_alone",
        "Only the first",
        "Items that the first model passes in most of its answers and the second does not.",
        "number",
    ),
    Measure(
        "second_alone",
        "Only the second",
        "Items that the second model passes in most of its answers and the first does not.",
        "number",
    ),
    Measure(
        "needed",
        "Patients needed",
        "Patients needed for 80 % power to detect a difference as large as the margin.",
        "count",
        main=False,
    ),
)

PAIRS = topic("pairs", pair_rows, PAIR_MEASURES)


SLICES = ("family", "level")
"""Parts of a benchmark in which readers are compared with models."""

PASS1_DIFFERENCE = "pass1_difference"
"""Measure of a reader minus a model."""


@of_models("readers")
def reader_rows(made: ModelRows) -> Iterator[Row]:
    """Clinicians against models, and against each other, on the items that both answered.

    On all items, then on each family and level. Strata of a round are drawn with different
    probabilities, so a rate here is that of the items shown, not of the benchmark.
    """
    study, benchmark, reader = made.study, made.benchmark, made.model
    if reader not in study.readers:
        return
    everything = np.ones(len(made.outcomes.items), dtype=bool)
    parts = [("", "", everything), *(part for part in item_groups(study, made.outcomes) if part[0] in SLICES)]
    for (name, value, mask), model in product(parts, study.models):
        keys = Key(reader), Key(model)
        if model == reader or not (mask & made.outcomes.complete(*keys)).any():
            continue
        paired = made.paired(*keys, mask)
        difference, both = paired.difference, paired.items
        cells: Cells = {"slice": name, "value_of_slice": value, "n_items": difference.items, "n_patients": difference.patients}
        yield made.passes(keys[0], both, other=model, **cells)
        if model not in study.readers:
            yield ModelRows("readers", study, benchmark, model).passes(keys[1], both, other=reader, **cells)
        yield made.passes_difference(PASS1_DIFFERENCE, paired, **cells)
        yield made.plain("seconds_median", value=_seconds(benchmark, reader, both), other=model, **cells)


def _seconds(benchmark: BenchmarkStudy, reader: str, both: Mask) -> float | None:
    """Return the median time in seconds for an answer, all its turns together."""
    shown = {item.item_id for item, there in zip(benchmark.outcomes.items, both, strict=True) if there}
    known = [
        row.latency_s for row in benchmark.responses[reader] if row.item_id in shown and row.latency_s is not None and is_headline(row)
    ]
    return median(known) if known else None


READER_MEASURES = (
    Measure(
        PASS1_PATIENTS,
        "pass@1",
        "Answers of `model` that pass, on the items that `other` answered too, patients alike.",
    ),
    Measure(
        PASS1_DIFFERENCE,
        "Reader minus other",
        "pass@1 of the reader minus pass@1 of `other`, on the same items.",
        "points",
    ),
    Measure(
        "seconds_median",
        "Seconds, median",
        "Median time of the reader for an answer, all its turns together.",
        "number",
    ),
)

READERS = topic(
    "readers",
    reader_rows,
    READER_MEASURES,
    labels=lambda row: [(f"{SCORED} {row['slice']}", row["value_of_slice"])] if row["slice"] else [],
    group=grouped_by("benchmark model other measure slice", "slice", ("",)),
)
