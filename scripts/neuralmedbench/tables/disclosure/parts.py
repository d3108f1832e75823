"""The parts of a benchmark that tables tell of, each with the items behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuralmedbench.records.items import DIAGNOSES
from neuralmedbench.scoring.structured_answer import gold_labels
from neuralmedbench.tables.disclosure.sets import Label, Mask, mask_of
from neuralmedbench.tables.groups import item_groups
from neuralmedbench.tables.readiness.judges import belongs
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.suppression import ALL, RANKED, REPEATABLE, SCORED


@dataclass(frozen=True)
class Parts:
    """What numbers of one benchmark may be about.

    Attributes
    ----------
    cells : dict of Label to Mask
        Items of every part.
    total : Mask
        Items with a reference: numbers about all of these stay.
    patients : tuple of str
        Patient of each item.
    """

    cells: dict[Label, Mask]
    total: Mask
    patients: tuple[str, ...]


def parts_of(study: Study, benchmark: BenchmarkStudy) -> Parts:
    """Find the parts of a benchmark: groups of `rates.csv`, arms, fields, groups of `readiness.csv`, kinds of `cohort.csv`."""
    items = sorted(benchmark.items, key=lambda item: item.item_id)
    place = {item.item_id: number for number, item in enumerate(items)}
    outcomes = benchmark.outcomes
    of_outcomes = np.array([place[item.item_id] for item in outcomes.items], dtype=np.int64)
    everything = np.ones(len(outcomes.items), dtype=bool)
    universes = {SCORED: everything, REPEATABLE: outcomes.repeatable, RANKED: outcomes.ranked}
    cells: dict[Label, Mask] = {}
    for part, value, mask in item_groups(study, outcomes):
        for name, universe in universes.items():
            cells[f"{name} {part}", value] = mask_of(of_outcomes[mask & universe].tolist())
    cells |= {(f"{ALL} {name}", ""): mask_of(of_outcomes[universe].tolist()) for name, universe in universes.items() if name != SCORED}
    cells[f"{ALL} items", ""] = mask_of(range(len(items)))
    for key in outcomes.counts:
        cells[f"asked {key.arm} {key.strategy}", ""] = mask_of(of_outcomes[outcomes.expected(key)].tolist())
    for name, group in study.readiness.groups.items():
        if group.diagnoses:
            inside = [belongs(gold.answer, group.diagnoses, study.vocabulary) for gold in outcomes.gold]
            cells[f"group {name}", ""] = mask_of(of_outcomes[inside].tolist())
    for label, item_id in _by_item(benchmark):
        if item_id in place:
            cells[label] = cells.get(label, 0) | 1 << place[item_id]
    return Parts(cells, mask_of(of_outcomes.tolist()), tuple(item.patient_id for item in items))


def _by_item(benchmark: BenchmarkStudy) -> Iterator[tuple[Label, str]]:
    """Give the parts to which each item belongs that are not groups of `rates.csv`."""
    answers = {gold.item_id: gold.answer for gold in benchmark.gold}
    ranked = {item.item_id for item, own in zip(benchmark.outcomes.items, benchmark.outcomes.ranked, strict=True) if own}
    for item in benchmark.items:
        family, level = str(item.family), str(item.level)
        yield ("cohort level", level), item.item_id
        yield ("cohort family", family), item.item_id
        yield ("runner", str(item.runner)), item.item_id
        if item.item_id in answers and item.family in DIAGNOSES:
            yield ("cohort diagnosis", answers[item.item_id]), item.item_id
        for sequence in {image.sequence for image in item.images}:
            yield ("cohort sequence", sequence), item.item_id
        if item.item_id in ranked:
            yield (f"differential {ALL}", level), item.item_id
            yield ("differential", family), item.item_id
            yield (f"differential {family}", level), item.item_id
    for gold in benchmark.gold:
        for field in gold_labels(gold.fields) if gold.fields is not None else ():
            yield (f"field {field}", ""), gold.item_id
