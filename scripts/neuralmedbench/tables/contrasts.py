"""Paired contrasts: between arms, between models, and between readers and models (topic `arms`, `pairwise.csv`, `readers.csv`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

import numpy as np

from neuralmedbench.config.arms import AT_LESION
from neuralmedbench.estimates.contrasts import Difference, paired_difference, patients_to_show
from neuralmedbench.estimates.intervals import Floats, patients_rate
from neuralmedbench.records.items import Axis, Kind, is_headline
from neuralmedbench.records.results import FEWEST, PASS1_PATIENTS
from neuralmedbench.records.words import all_of, capital, counted, listing
from neuralmedbench.tables.declare import ALL, NUMBER, SCORED, Suppression, Table, arm_labels, grouped_by, of_study
from neuralmedbench.tables.family import Compared, FamilyTest, corrected_family, unread_may_turn, unread_of
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key, Outcomes
from neuralmedbench.tables.rows import Cells, ContrastRow, MeasureRow, ResultRow, Tables, with_ends
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
    share,
    size_of,
    without_head,
)


@dataclass(frozen=True)
class Pair:
    """Two models on the same items: first minus second."""

    first: str
    second: str
    difference: Difference
    p_corrected: float | None
    unread: float = 0.0
    needed: int | None = None

    def differs(self, alpha: float) -> bool:
        """Return True if the corrected test shows a difference."""
        return self.p_corrected is not None and self.p_corrected < alpha

    def may_turn(self, limit: float) -> bool:
        """Return True if the unread answers of the lower model leave open whether there is a difference."""
        return unread_may_turn(self.difference.value, self.difference.low, self.difference.high, self.unread, limit)


def model_pairs(study: Study, family: Mapping[Compared, FamilyTest] | None = None) -> dict[str, list[Pair]]:
    """Compare every two models of each benchmark under the arm full; pairs with a reader are not corrected.

    `family` is `corrected_family` of the study, where it is known already.
    """
    family = corrected_family(study) if family is None else family
    return {name: _pairs(study, benchmark, family) for name, benchmark in study.benchmarks.items()}


def _pairs(study: Study, benchmark: BenchmarkStudy, family: Mapping[Compared, FamilyTest]) -> list[Pair]:
    outcomes = benchmark.outcomes
    values = {model: outcomes.pass1_of_complete_items(Key(model)) for model in study.models}
    pairs = []
    for first, second in combinations(study.models, 2):
        difference = _paired(study, outcomes, first, second, values)
        tested = family.get(Compared(benchmark.name, first, second))
        pairs.append(
            Pair(
                first,
                second,
                difference,
                tested.corrected(difference.p_value) if tested else None,
                unread_of(outcomes, difference.value, Key(first), Key(second)),
                _patients_needed(study, difference),
            )
        )
    return pairs


def _paired(study: Study, outcomes: Outcomes, first: str, second: str, values: Mapping[str, Floats]) -> Difference:
    by = outcomes.by_patient(study.settings, Key(first), Key(second))
    return paired_difference(values[first], values[second], by)


def _patients_needed(study: Study, difference: Difference) -> int | None:
    """Return the patients that a difference of the margin needs; None of fewer than `FEWEST` patients."""
    if difference.patients < FEWEST:
        return None
    return patients_to_show(study.settings.margin, difference.error, difference.patients, 1 - study.settings.confidence)


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
    p_corrected: float | None = None
    only_a: int | None = None
    only_b: int | None = None
    unread: float | None = None
    unread_may_turn: bool | None = None
    needed: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


def pairwise_rows(pairs: dict[str, list[Pair]], limit: float) -> list[PairwiseRow]:
    """Rows of `pairwise.csv`."""
    return [
        PairwiseRow(
            benchmark=benchmark,
            model_a=pair.first,
            model_b=pair.second,
            p_corrected=pair.p_corrected,
            only_a=pair.difference.only_first,
            only_b=pair.difference.only_second,
            unread=None if pair.difference.value is None else pair.unread,
            unread_may_turn=None if pair.difference.value is None else pair.may_turn(limit),
            needed=pair.needed,
            **_ends(pair.difference),
        )
        for benchmark, found in pairs.items()
        for pair in found
    ]


UPPER_BOUND = "oracle slices: an upper bound, which uses the truth"
"""Note on arms whose pictures were cut at the lesion."""


def arm_rows(study: Study) -> list[ContrastRow]:
    """Compare pass@1 of each arm with that of full, strategy direct, on the items that both ask."""
    rows = []
    for benchmark in study.benchmarks.values():
        outcomes, oracle = benchmark.outcomes, oracle_arms(benchmark)
        for key in outcomes.counts:
            if key.arm == FULL or key.strategy != DIRECT:
                continue
            full = Key(key.model)
            row = ModelRows("arms", study, benchmark, key.model).passes_contrast(PASS1_PATIENTS, key, full)
            both = outcomes.complete(key, full)
            shared = shared_note(int(both.sum()), outcomes.request_count(key, both))
            notes = [UPPER_BOUND if key.arm in oracle else "", shared]
            rows.append(replace(row, note="; ".join(filter(None, notes)), **_untested(outcomes, key, both)))
    return rows


def _untested(outcomes: Outcomes, key: Key, items: Mask) -> Cells:
    """Patients who share a request are one: of a single draw nothing can be tested."""
    alone = key in outcomes.requests and len(np.unique(outcomes.clusters(key, Key(key.model))[items])) == 1
    return {"p_value": None} if alone else {}


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
    seeing, blind = ([study.models[name].title for name in sorted(names)] for names in (lookers, asked - lookers))
    if not seeing:
        return f"Pictures: {where}no model was significantly worse without them, so none was shown to have looked."
    text = f"Pictures: {where}{listing(seeing)} did significantly worse without them"
    return f"{text}; of {listing(blind)} this was not shown." if blind else f"{text}."


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


def pairwise_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how many pairs of models differ."""
    rows = tables["pairwise"]
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
    shown = [row for row in tested if row["p_corrected"] < alpha]
    differ = sum(not row.get("unread_may_turn") for row in shown)
    unread = len(shown) - differ
    told = f" Of {counted(unread, 'pair')} it cannot be told (unread answers of the lower model)." if unread else ""
    text = (
        f"{differ} of {counted(len(tested), 'pair')} of models {'differs' if differ == 1 else 'differ'} after correction;"
        f" the others were not shown to be alike.{told}"
    )
    all_differ = f"{capital(all_of(len(tested), 'pair'))} of models {'differs' if len(tested) == 1 else 'differ'}"
    return Takeaway(text if differ < len(tested) else f"{all_differ} after correction.", largest(rows))


ARMS = Table(
    name="arms",
    row=MeasureRow,
    rows=of_study(arm_rows),
    suppression=Suppression(NUMBER, labels=arm_labels),
    takeaways={"arms": arms_takeaway},
)

PAIRWISE = Table(
    name="pairwise",
    row=PairwiseRow,
    rows=lambda results: pairwise_rows(results.once(model_pairs, corrected_family), results.study.settings.max_missing_fraction),
    suppression=Suppression("benchmark model_a a_in_reference_pool model_b b_in_reference_pool"),
    takeaways={"pairs": pairwise_takeaway},
)


SLICES = ("family", "level")


@dataclass(frozen=True, kw_only=True)
class ReaderRow(ResultRow):
    """One reader beside one model, on the items that both answered."""

    benchmark: str
    reader: str | None = None
    title: str | None = None
    simulated: bool | None = None
    model: str
    in_reference_pool: bool | None = None
    slice: str | None = None
    value_of_slice: str | None = None
    reader_pass1_patients: float | None = None
    reader_pass1_patients_low: float | None = None
    reader_pass1_patients_high: float | None = None
    model_pass1_patients: float | None = None
    model_pass1_patients_low: float | None = None
    model_pass1_patients_high: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    seconds_median: float | None = None
    n_items: int | None = None
    n_patients: int | None = None


def reader_rows(study: Study) -> list[ReaderRow]:
    """Rows of `readers.csv`.

    One per reader, other model (readers too) and slice: pass@1 of both, patients alike, and reader minus model, paired by item, over the
    items that both answered without a missing sample. All items, then each family and each level. Strata of a round are drawn with
    different probabilities, so a rate here is that of the items shown, not of the benchmark.
    """
    return [
        ReaderRow(**row)
        for benchmark in study.benchmarks.values()
        for reader in study.readers
        for row in _reader_rows(study, benchmark, reader)
    ]


def _reader_rows(study: Study, benchmark: BenchmarkStudy, reader: str) -> Iterator[Cells]:
    outcomes = benchmark.outcomes
    own = outcomes.pass1_of_complete_items(Key(reader))
    for name, value, mask in _slices(study, outcomes):
        for model in study.models:
            other = outcomes.pass1_of_complete_items(Key(model))
            # only items that both answered without a missing sample
            both = mask & ~np.isnan(own) & ~np.isnan(other)
            if model == reader or not both.any():
                continue
            row: Cells = {
                "benchmark": benchmark.name,
                "reader": reader,
                "title": study.models[reader].title,
                "simulated": "simulated" in (study.readers[reader], study.readers.get(model)),
                "model": model,
                "slice": name,
                "value_of_slice": value,
                "seconds_median": _seconds(benchmark, reader, both),
            }
            shown = {reader: np.where(both, own, np.nan), model: np.where(both, other, np.nan)}
            for side, who in (("reader", reader), ("model", model)):
                by = outcomes.by_patient(study.settings, Key(who))
                row |= with_ends({f"{side}_{PASS1_PATIENTS}": patients_rate(shown[who], by)})
            found = _paired(study, outcomes, reader, model, shown)
            row |= {"difference": found.value, "low": found.low, "high": found.high, "p_value": found.p_value}
            yield row | {"n_items": found.items, "n_patients": found.patients}


def _slices(study: Study, outcomes: Outcomes) -> Iterator[tuple[str, str, Mask]]:
    yield "all", "all", np.ones(len(outcomes.items), dtype=bool)
    yield from ((name, value, mask) for name, value, mask in item_groups(study, outcomes) if name in SLICES)


def _seconds(benchmark: BenchmarkStudy, reader: str, both: Mask) -> float | None:
    """Return the median time in seconds for an answer, all its turns together."""
    shown = {item.item_id for item, there in zip(benchmark.outcomes.items, both, strict=True) if there}
    known = [
        row.latency_s for row in benchmark.responses[reader] if row.item_id in shown and row.latency_s is not None and is_headline(row)
    ]
    return median(known) if known else None


def readers_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Compare a reader with a model on the same questions."""
    rows = [row for row in tables["readers"] if row["slice"] == "all" and not row["simulated"]]
    if not rows:
        return Takeaway("No clinician has answered the questions of this run.", "0 readers")
    row = max(rows, key=lambda row: (row["n_items"], row["reader"]))
    text = f"{row['title']} passes {share(row, 'reader_pass1_patients')} of the questions, {study.models[row['model']].title} {share(row, 'model_pass1_patients')} of the same"
    n = f"{counted(len({row['reader'] for row in rows}), 'reader')}, up to {size_of(row)}"
    return Takeaway(f"{text}.", n)


READERS = Table(
    name="readers",
    row=ReaderRow,
    rows=of_study(reader_rows),
    suppression=Suppression(
        "benchmark reader title simulated model in_reference_pool slice value_of_slice",
        labels=lambda row: [] if row["slice"] == ALL else [(f"{SCORED} {row['slice']}", row["value_of_slice"])],
        group=grouped_by("benchmark reader model slice", "slice", (ALL,)),
    ),
    takeaways={"readers": readers_takeaway},
)
