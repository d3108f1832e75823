"""Paired contrasts: between arms, between models, and between readers and models (`arms.csv`, `pairwise.csv`, `readers.csv`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from neuralmedbench.config.arms import AT_LESION
from neuralmedbench.config.model import families
from neuralmedbench.estimates.contrasts import Difference, paired_difference, patients_to_show
from neuralmedbench.estimates.exact import holm_known
from neuralmedbench.estimates.intervals import Floats, codes_of, item_weights, patients_rate
from neuralmedbench.records.items import Arm, Axis, Kind, is_headline
from neuralmedbench.records.results import FEWEST, PASS1_PATIENTS
from neuralmedbench.records.words import all_of, capital, counted, listing, points, points_span
from neuralmedbench.tables.declare import ALL, MODEL, SCORED, Suppression, Table, arm_labels, grouped_by, of_study
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key, Outcomes
from neuralmedbench.tables.rows import Cells, ModelRow, ResultRow, Tables, with_ends
from neuralmedbench.tables.shared_requests import shared_note
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import LAYOUT, PICTURES, Takeaway, claims_of, largest, share, size_of, without_head

MOST_LAYOUTS = 3
"""Most comparisons of layouts in a sentence."""


@dataclass(frozen=True)
class Pair:
    """Two models on the same items: first minus second."""

    first: str
    second: str
    difference: Difference
    p_holm: float | None
    unread: float = 0.0
    needed: int | None = None

    def differs(self, alpha: float) -> bool:
        """Return True if the corrected test shows a difference."""
        return self.p_holm is not None and self.p_holm < alpha

    def may_turn(self, limit: float) -> bool:
        """Return True if the unread answers of the lower model leave open whether there is a difference."""
        return unread_may_turn(self.difference.value, self.difference.low, self.difference.high, self.unread, limit)


def unread_may_turn(difference: float | None, low: float | None, high: float | None, unread: float | None, limit: float) -> bool:
    """Return True if the interval would hold 0 had the unread answers of the lower side passed; up to the limit of missing ones they are wrong."""
    if difference is None or not unread or unread <= limit:
        return False
    nearest = difference if low is None or high is None else min(low, high, key=abs)
    return abs(nearest) <= unread


def unread_share(outcomes: Outcomes, lower: Key, other: Key, family: str = "") -> float:
    """Return the share of unread answers under one key, patients alike, over the items without a missing answer under both."""
    counts, both = outcomes.counts, np.array([family in ("", item.family) for item in outcomes.items], dtype=bool)
    for key in (lower, other):
        both &= (counts[key].samples > 0) & (counts[key].missing == 0)
    if not both.any():
        return 0.0
    unread = counts[lower].mean_of(counts[lower].unread)[both]
    return float((unread * item_weights(codes_of(outcomes.patients[both]))).mean())


def model_pairs(study: Study) -> dict[str, list[Pair]]:
    """Compare every two models of each benchmark under the arm full.

    Holm over the pairs of a benchmark: those with a reader, those of one model at several settings, and the others are corrected apart.
    """
    return {name: _pairs(study, benchmark.outcomes) for name, benchmark in study.benchmarks.items()}


def _pairs(study: Study, outcomes: Outcomes) -> list[Pair]:
    values = {model: outcomes.pass1_of_complete_items(Key(model)) for model in study.models}
    each_two = list(combinations(study.models, 2))
    found = [(first, second, _paired(study, outcomes, first, second, values)) for first, second in each_two]
    # the number of readers, or of settings of one model, must not change the correction between models
    tested: dict[str, dict[tuple[str, str], float | None]] = {}
    shared = families(study.models.values())
    for first, second, difference in found:
        people = not study.readers.keys().isdisjoint((first, second))
        alike = shared.get(first) if shared.get(first) == shared.get(second) else None
        tested.setdefault("readers" if people else f"settings of {alike}", {})[first, second] = difference.p_value
    corrected = {pair: p_value for part in tested.values() for pair, p_value in zip(part, holm_known(list(part.values())), strict=True)}
    return [
        Pair(
            first,
            second,
            difference,
            corrected[first, second],
            unread_share(outcomes, *((Key(second), Key(first)) if (difference.value or 0) > 0 else (Key(first), Key(second)))),
            _patients_needed(study, difference),
        )
        for first, second, difference in found
    ]


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
    p_holm: float | None = None
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
            p_holm=pair.p_holm,
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


@dataclass(frozen=True, kw_only=True)
class ArmRow(ModelRow):
    """One arm against full: pass@1 by item, arm minus full."""

    arm: str
    reference_arm: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    n_requests: int | None = None
    note: str | None = None


UPPER_BOUND = "oracle slices: an upper bound, which uses the truth"
"""Note on arms whose pictures were cut at the lesion."""


def arm_rows(study: Study) -> list[ArmRow]:
    """Rows of `arms.csv`: each arm minus full, strategy direct, on the items that both ask."""
    rows = []
    for benchmark in study.benchmarks.values():
        outcomes, oracle = benchmark.outcomes, oracle_arms(benchmark)
        for key in outcomes.counts:
            if key.arm != FULL and key.strategy == DIRECT:
                cells = _arm_cells(study, outcomes, key)
                if key.arm in oracle:
                    cells["note"] = "; ".join(filter(None, (UPPER_BOUND, cells["note"])))
                rows.append(ArmRow(benchmark=benchmark.name, model=key.model, arm=key.arm, reference_arm=FULL, **cells))
    return rows


def oracle_arms(benchmark: BenchmarkStudy) -> list[str]:
    """Return the arms of a benchmark that show oracle slices."""
    return [name for name, arm in benchmark.arms.items() if arm.config.pictures == AT_LESION]


def _arm_cells(study: Study, outcomes: Outcomes, key: Key) -> Cells:
    full = Key(key.model)
    values = outcomes.pass1_of_complete_items(key), outcomes.pass1_of_complete_items(full)
    both = ~np.isnan(values[0] + values[1])
    # patients who share a request are one: of a single draw nothing can be tested
    difference = paired_difference(*values, outcomes.by_patient(study.settings, key, full))
    if difference.patients == 1 and key in outcomes.requests:
        difference = difference._replace(p_value=None)
    requests = outcomes.request_count(key, both)
    sizes = {"n_patients": len(np.unique(outcomes.patients[both])), "n_requests": requests, "note": shared_note(int(both.sum()), requests)}
    return _ends(difference) | sizes


def picture_benchmarks(study: Study, arms: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the benchmarks whose comparison with and without pictures a sentence may state, by the rows of `arms.csv`.

    Those of depth; where no model answered one of them both ways for at least `FEWEST` patients, the other benchmark with the most. (Our rule.)
    """
    patients: dict[str, int] = {}
    for row in arms:
        if row["arm"] == Arm.NO_IMAGE and row["difference"] is not None and row["model"] not in study.readers:
            patients[row["benchmark"]] = max(patients.get(row["benchmark"], 0), row["n_patients"] or 0)
    asked = [name for name in study.benchmarks if name in patients]
    depth = [name for name in asked if study.benchmarks[name].config.axis is Axis.DEPTH]
    others = [name for name in asked if name not in depth and patients[name] >= FEWEST]
    if not others or any(patients[name] >= FEWEST for name in depth):
        return sorted(depth, key=lambda name: patients[name] < FEWEST)
    return [max(others, key=lambda name: patients[name])]


def picture_sentence(study: Study, tables: Tables) -> str:
    """State which models were shown to use the pictures; empty if none was asked without them."""
    claims = claims_of(tables, PICTURES, significant=False)
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
    rows = claims_of(tables, LAYOUT, significant=False)
    parts = []
    for row in rows[:MOST_LAYOUTS]:
        layout = study.benchmarks[row["benchmark"]].layouts[row["other"]].config.title
        span = points_span(row["low"], row["high"], signed_zero=True)
        found = "a significant difference" if row["significant"] else "not significantly different"
        parts.append(
            f"{study.models[row['model']].title} {points(row['difference'], signed_zero=True)} points{f' ({span})' if span else ''} on"
            f" {study.benchmarks[row['benchmark']].config.title} in the layout of {layout}, {found}"
        )
    more = f"; {len(rows) - MOST_LAYOUTS} more are in the table" if len(rows) > MOST_LAYOUTS else ""
    return f"Shown as its maker documents, against the common layout: {'; '.join(parts)}{more}." if parts else ""


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
    # pairs without a shared item have no test
    tested = [row for row in rows if row["p_holm"] is not None]
    if not tested:
        return Takeaway("No pair of models answered the same items.", largest(rows))
    shown = [row for row in tested if row["p_holm"] < alpha]
    differ = sum(not row.get("unread_may_turn") for row in shown)
    unread = len(shown) - differ
    told = f" Of {counted(unread, 'pair')} it cannot be told (unread answers of the lower model)." if unread else ""
    text = (
        f"{differ} of {counted(len(tested), 'pair')} of models {'differs' if differ == 1 else 'differ'} after Holm's correction;"
        f" the others were not shown to be alike.{told}"
    )
    all_differ = f"{capital(all_of(len(tested), 'pair'))} of models {'differs' if len(tested) == 1 else 'differ'}"
    return Takeaway(text if differ < len(tested) else f"{all_differ} after Holm's correction.", largest(rows))


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
    rows=lambda results: pairwise_rows(results.once(model_pairs), results.study.settings.max_missing_fraction),
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
