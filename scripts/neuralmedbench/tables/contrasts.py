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
from neuralmedbench.records.results import FEWEST, PASS1_PATIENTS, by_measure
from neuralmedbench.records.words import all_of, capital, counted, points
from neuralmedbench.tables.declare import SCORED, grouped_by, of_study, topic
from neuralmedbench.tables.family import Compared, FamilyTest, corrected_family
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key
from neuralmedbench.tables.rows import Cells, ContrastRow, CountRow, MeasureRow, Tables
from neuralmedbench.tables.shapes import ModelRows
from neuralmedbench.tables.shared_requests import shared_note
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import (
    PICTURES,
    Takeaway,
    claims_of,
    exploratory,
    is_closed,
    largest,
    size_of,
    titles_of,
    value_share,
    without_head,
)

Row = MeasureRow | ContrastRow | CountRow


class Pair(NamedTuple):
    """Two models on the same items, as a row: first minus second; and the difference behind it."""

    row: ContrastRow
    difference: Difference

    def differs(self, alpha: float) -> bool:
        """Return True if the corrected test shows a difference."""
        return self.row.p_corrected is not None and self.row.p_corrected < alpha


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


def pair_rows(study: Study, pairs: Mapping[str, Sequence[Pair]]) -> list[Row]:
    """Compare models, count the items that one of two passes alone, and the patients that a difference of the margin needs."""
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


def arm_rows(study: Study, family: Mapping[Compared, FamilyTest]) -> list[ContrastRow]:
    """Compare pass@1 of each arm with that of full, strategy direct, on the items that both ask; topic `title` has the arms of a choice."""
    rows = []
    for benchmark in study.benchmarks.values():
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
            rows.append(replace(row, note="; ".join(filter(None, notes))))
    return rows


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
    parts = [f"{titles_of(study, lookers)} did significantly worse without them"] if lookers else []
    parts += [f"{titles_of(study, alike)}: no, within {points(study.settings.margin, plus='')} points"] if alike else []
    parts += [f"inconclusive for {titles_of(study, unsure)}"] if unsure else []
    return f"Pictures: {where}{'; '.join(parts)}."


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
    nothing = "No answer to a depth benchmark without its pictures stands beside one with them, so it is not known whether a model looks."
    if study.benchmarks and all(benchmark.config.kind is Kind.TEXT for benchmark in study.benchmarks.values()):
        nothing = "" if tables["arms"] else "No answer under another arm than the full request is here."
    pictures = without_head(sentence, study).replace(" without them", " without the pictures") if sentence else nothing
    return Takeaway(f"{pictures} {layouts}".rstrip(), largest(tables["arms"]))


def pairs_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how many pairs of models differ."""
    rows = [row for row in tables["pairs"] if row["measure"] == PASS1_PATIENTS]
    if not rows:
        return Takeaway("A comparison needs two models that answered the same items.", "0 pairs")
    alpha = 1 - study.settings.confidence
    if is_closed(tables):
        return Takeaway("Not tested, because the stated comparison is inconclusive.", largest(rows))
    if all(row["p_value"] is None for row in rows):
        return Takeaway("No pair of models answered the same items.", largest(rows))
    # pairs with a reader, or with too few patients that differ, are not corrected
    tested = [row for row in rows if row["p_corrected"] is not None]
    if not tested:
        return Takeaway("No pair of models can be tested: too few patients differ.", largest(rows))
    differ = sum(row["answer"] in DIFFERENT for row in tested)
    unread = sum(row["p_corrected"] < alpha for row in tested) - differ
    told = f" Of {counted(unread, 'pair')} it cannot be told (unread answers of the lower model)." if unread else ""
    text = (
        f"{differ} of {counted(len(tested), 'pair')} of models {'differs' if differ == 1 else 'differ'} after correction;"
        f" the others were not shown to be alike.{told}"
    )
    all_differ = f"{capital(all_of(len(tested), 'pair'))} of models {'differs' if len(tested) == 1 else 'differ'}"
    return Takeaway(text if differ < len(tested) else f"{all_differ} after correction.", largest(rows))


ARMS = topic("arms", of_study(arm_rows, corrected_family), takeaways={"arms": arms_takeaway})

PAIRS = topic(
    "pairs", lambda results: pair_rows(results.study, results.once(model_pairs, corrected_family)), takeaways={"pairs": pairs_takeaway}
)


SLICES = ("family", "level")
"""Parts of a benchmark in which readers are compared with models."""

PASS1_DIFFERENCE = "pass1_difference"
"""Measure of a reader minus a model."""


def reader_rows(study: Study) -> list[Row]:
    """Compare each reader with each other model (readers too), on the items that both answered without a missing sample.

    On all items, then on each family and level: pass@1 of both, patients alike, reader minus model, and the median seconds of the reader for
    an answer. Strata of a round are drawn with different probabilities, so a rate here is that of the items shown, not of the benchmark.
    """
    return [row for made in ModelRows.of_models("readers", study) if made.model in study.readers for row in _reader_rows(made)]


def _reader_rows(made: ModelRows) -> Iterator[Row]:
    study, benchmark, reader = made.study, made.benchmark, made.model
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


def readers_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Compare a clinician with a model on the same questions."""
    whole = by_measure([row for row in tables["readers"] if not row["slice"]], "other")
    simulated = {name for name, kind in study.readers.items() if kind == "simulated"}
    rows = [
        rows[PASS1_DIFFERENCE]
        for (_, model, other), rows in whole.items()
        if PASS1_DIFFERENCE in rows and simulated.isdisjoint((model, other))
    ]
    if not rows:
        return Takeaway("No clinician has answered the questions of this run.", "0 readers")
    row = max(rows, key=lambda row: (row["n_items"], row["model"]))
    reader, model = row["model"], row["other"]
    passed, also = (value_share(whole[row["benchmark"], *sides][PASS1_PATIENTS]) for sides in ((reader, model), (model, reader)))
    text = f"{study.models[reader].title} passes {passed} of the questions, {study.models[model].title} {also} of the same."
    return Takeaway(text, f"{counted(len({row['model'] for row in rows}), 'reader')}, up to {size_of(row)}")


READERS = topic(
    "readers",
    of_study(reader_rows),
    labels=lambda row: [(f"{SCORED} {row['slice']}", row["value_of_slice"])] if row["slice"] else [],
    group=grouped_by("benchmark model other measure slice", "slice", ("",)),
    takeaways={"readers": readers_takeaway},
)
