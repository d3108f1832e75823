"""The parts of a benchmark that tables are about, and which of them a public run may not show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.suppression import CellSize, Label, Mask, mask_of, suppressed_cells
from neuralmedbench.records.items import DIAGNOSES
from neuralmedbench.records.results import HIDDEN
from neuralmedbench.scoring.structured_answer import gold_labels
from neuralmedbench.tables.declare import ALL, RANKED, REPEATABLE, SCORED, Suppression
from neuralmedbench.tables.groups import item_groups
from neuralmedbench.tables.readiness_conditions import belongs
from neuralmedbench.tables.rows import Cells
from neuralmedbench.tables.study import BenchmarkStudy, Study


@dataclass(frozen=True)
class BenchmarkParts:
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


def parts_of(study: Study, benchmark: BenchmarkStudy) -> BenchmarkParts:
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
    return BenchmarkParts(cells, mask_of(of_outcomes.tolist()), tuple(item.patient_id for item in items))


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


class BenchmarkDisclosure:
    """What may not be shown of one benchmark of patients who are not public."""

    def __init__(self, study: Study, benchmark: BenchmarkStudy, fewest: int) -> None:
        parts = parts_of(study, benchmark)
        crowd = CellSize(parts.patients, fewest)
        self.fewest = fewest
        self.nothing = len({*parts.patients}) < fewest or crowd.few(parts.total)
        """Whether all of it is about few patients."""
        self.small, self.companions = (set[Label](), set[Label]()) if self.nothing else suppressed_cells(parts.cells, parts.total, crowd)
        self._most = _most_of_a_patient(benchmark)
        self.answers_of_a_patient = self._most["question"] * benchmark.config.samples

    def least(self, rule: Suppression, row: Cells) -> int:
        """Give the count from which a row is surely about enough patients."""
        return self.fewest * (self._most[row["unit"]] if "unit" in row else 1)

    def mark(self, rule: Suppression, row: Cells) -> str:
        """Say that a row is hidden, because few patients are behind it or because of other rows; empty when it is not."""
        labels: Sequence[Label] = rule.labels(row)
        few = f"<{self.fewest}" if rule.patients and self.least(rule, row) == self.fewest else f"<{self.fewest} patients"
        if (self.nothing and rule.whole) or not self.small.isdisjoint(labels):
            return few
        if rule.patients and 0 < (row.get(rule.patients) or 0) < self.least(rule, row):
            return few
        return HIDDEN if not self.companions.isdisjoint(labels) else ""


def _most_of_a_patient(benchmark: BenchmarkStudy) -> dict[str, int]:
    """Give the most cases, pictures and questions that one patient has: so many times fewer patients may stand behind a count of them."""
    cases = Counter(str(case["patient_id"]) for case in benchmark.flow)
    cases = cases or Counter(patient for patient, _ in {(item.patient_id, item.case_id) for item in benchmark.items})
    pictures = Counter(patient for patient, _ in {(item.patient_id, image.image_id) for item in benchmark.items for image in item.images})
    questions = Counter(item.patient_id for item in benchmark.items)
    files = cases if benchmark.flow else pictures
    counts = {"case": cases, "picture": pictures, "question": questions, "file": files, "series": files}
    return {unit: max(own.values(), default=1) for unit, own in counts.items()}


class RoundDisclosure:
    """What may not be shown of the rounds in which clinicians rated answers about patients who are not public."""

    def __init__(self, study: Study, benchmarks: frozenset[str], fewest: int) -> None:
        patients = {item.item_id: item.patient_id for benchmark in study.benchmarks.values() for item in benchmark.items}
        self.fewest = fewest
        self.rounds = {row.round_id for row in study.ratings if row.item_id.partition("/")[0] in benchmarks}
        self._rated: dict[tuple[object, ...], set[str]] = defaultdict(set)
        for row in study.sampled_ratings:
            self._rated[row.round_id, row.model, row.axis, row.simulated].add(patients.get(row.item_id, row.item_id))

    def mark(self, rule: Suppression, row: Cells) -> str:
        """Say that a row is hidden; empty when it is not."""
        if row["round_id"] not in self.rounds:
            return ""
        if rule.patients:
            return f"<{self.fewest}" if 0 < (row.get(rule.patients) or 0) < self.fewest else ""
        few = len(self._rated[row["round_id"], row["model"], row["axis"], row["simulated"]]) < self.fewest
        return f"<{self.fewest} patients" if few else ""
