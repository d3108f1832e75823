"""The parts of benchmarks and rounds that numbers are about, the patients behind every rate, and reference pools.

A reference pool is the models whose answers were used to choose the items of a benchmark; every table that names them marks them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neuralmedbench.estimates.suppression import Label, Mask, mask_of
from neuralmedbench.records.results import FEWEST, PATIENT, POOL_MARKS
from neuralmedbench.scoring.structured_answer import gold_labels
from neuralmedbench.tables.clinical.readings import clinical_parts
from neuralmedbench.tables.cohort import cohort_values
from neuralmedbench.tables.declare import ALL, RANKED, REPEATABLE, SCORED, Cells, ResultRow, Suppression, Table
from neuralmedbench.tables.evidence import KNOWN, evidence_items
from neuralmedbench.tables.groups import item_groups
from neuralmedbench.tables.item_analysis import level_of
from neuralmedbench.tables.readiness import belongs
from neuralmedbench.tables.study import BenchmarkStudy, Study

MARK = "in_reference_pool"


@dataclass(frozen=True)
class BenchmarkParts:
    """The parts of one benchmark that numbers are about.

    Attributes
    ----------
    cells : dict of Label to Mask
        Items of every part.
    total : Mask
        Items with a reference: numbers about all of these are shown.
    patients : tuple of str
        Patient of each item.
    """

    cells: dict[Label, Mask]
    total: Mask
    patients: tuple[str, ...]


def parts_of(study: Study, benchmark: BenchmarkStudy) -> BenchmarkParts:
    """Return the parts of a benchmark: groups of topic `rates`, arms, fields, groups of `readiness.csv`, values of topic `cohort`."""
    items = sorted(benchmark.items, key=lambda item: item.item_id)
    place = {item.item_id: number for number, item in enumerate(items)}
    outcomes = benchmark.outcomes
    of_outcomes = np.array([place[item.item_id] for item in outcomes.items], dtype=np.int64)
    everything = np.ones(len(outcomes.items), dtype=bool)
    # parts of items with a reference: groups of the topic `rates`, within each set of items
    universes = {SCORED: everything, REPEATABLE: outcomes.repeatable, RANKED: outcomes.ranked}
    cells: dict[Label, Mask] = {}
    for part, value, mask in item_groups(study, outcomes):
        for name, universe in universes.items():
            cells[f"{name} {part}", value] = mask_of(of_outcomes[mask & universe].tolist())
    cells |= {(f"{ALL} {name}", ""): mask_of(of_outcomes[universe].tolist()) for name, universe in universes.items() if name != SCORED}
    cells[f"{ALL} items", ""] = mask_of(range(len(items)))
    for key in outcomes.counts:
        cells[f"asked {key.arm} {key.strategy}", ""] = mask_of(of_outcomes[outcomes.expected(key)].tolist())
    # disease groups of `readiness.csv`
    for name, group in study.readiness.groups.items():
        if group.diagnoses:
            inside = [belongs(gold.answer, group.diagnoses, study.vocabulary) for gold in outcomes.gold]
            cells[f"group {name}", ""] = mask_of(of_outcomes[inside].tolist())
    # other parts, of all items
    for label, item_id in _by_item(study, benchmark):
        if item_id in place:
            cells[label] = cells.get(label, 0) | 1 << place[item_id]
    return BenchmarkParts(cells, mask_of(of_outcomes.tolist()), tuple(item.patient_id for item in items))


def _by_item(study: Study, benchmark: BenchmarkStudy) -> Iterator[tuple[Label, str]]:
    """Yield the parts of each item that are not groups of the topic `rates`."""
    yield from clinical_parts(study, benchmark)
    yield from (((f"cohort {variable}", value), item.item_id) for variable, value, item in cohort_values(benchmark))
    ranked = {item.item_id for item, own in zip(benchmark.outcomes.items, benchmark.outcomes.ranked, strict=True) if own}
    for item in benchmark.items:
        family, level = str(item.family), str(item.level)
        yield ("runner", str(item.runner)), item.item_id
        yield (level_of(family), level), item.item_id
        if item.item_id in ranked:
            yield (f"differential {ALL}", level), item.item_id
    known = evidence_items(benchmark)[1]
    yield from (((KNOWN, ""), item.item_id) for item, own in zip(benchmark.outcomes.items, known, strict=True) if own)
    for gold in benchmark.gold:
        names = gold_labels(gold.fields) if gold.fields is not None else [value.field for value in gold.values]
        for name in names:
            yield (f"field {name}", ""), gold.item_id


ANY_AXIS = ""
"""In place of an axis: the patients rated on any of them."""


class RoundPatients:
    """Patients about whom clinicians rated answers, by round, model, axis and whether the raters are simulated."""

    def __init__(self, study: Study) -> None:
        patients = {item.item_id: item.patient_id for benchmark in study.benchmarks.values() for item in benchmark.items}
        self._rated: dict[tuple[object, ...], set[str]] = defaultdict(set)
        for row in study.sampled_ratings:
            for axis in (row.axis, ANY_AXIS):
                self._rated[row.round_id, row.model, axis, row.simulated].add(patients.get(row.item_id, row.item_id))

    def count(self, row: Cells) -> int:
        """Count the patients behind a row of the ratings."""
        return len(self._rated[row["round_id"], row["model"], row["axis"], row["simulated"]])


class _Benchmark:
    """One benchmark: its parts are made only where a row does not count its patients."""

    def __init__(self, study: Study, benchmark: BenchmarkStudy) -> None:
        self._study, self._benchmark, self.noun = study, benchmark, benchmark.cluster

    @cached_property
    def parts(self) -> BenchmarkParts:
        return parts_of(self._study, self._benchmark)

    def count(self, mask: Mask) -> int:
        """Count the patients of some items."""
        return len({patient for place, patient in enumerate(self.parts.patients) if mask >> place & 1})

    def smallest(self, rule: Suppression, row: Cells) -> int:
        """Count the patients of the smallest part of the benchmark that a row is about."""
        cells = self.parts.cells
        return min((self.count(cells[label]) for label in rule.labels(row) if label in cells), default=self.count(self.parts.total))


class ClusterMarks:
    """The columns `few_patients` and `cluster` of every table of rates."""

    def __init__(self, study: Study) -> None:
        self._benchmarks = {name: _Benchmark(study, benchmark) for name, benchmark in study.benchmarks.items()}
        self._rounds = RoundPatients(study)

    def marked(self, table: Table, rows: Sequence[Cells]) -> list[Cells]:
        """Return the rows of a table with the two columns, if it has them."""
        rule = table.suppression
        if rule is None or not table.has_cluster_marks:
            return list(rows)
        return [row | self._marks(rule, row) for row in rows]

    def _marks(self, rule: Suppression, row: Cells) -> Cells:
        benchmark = self._benchmarks.get(row.get("benchmark", ""))
        named = [benchmark] if benchmark else list(self._benchmarks.values())
        number = self._count(rule, row, named)
        nouns = {one.noun for one in named}
        noun = nouns.pop() if len(nouns) == 1 else PATIENT
        return {"few_patients": number if 0 < number < FEWEST else None, "cluster": noun}

    def _count(self, rule: Suppression, row: Cells, named: Iterable[_Benchmark]) -> int:
        columns = [rule.patients] if rule.patients else [name for name in row if name.startswith("n_patients")]
        counts = [row[name] for name in columns if row.get(name)]
        if columns:
            return int(min(counts, default=0))
        if "round_id" in row:
            return self._rounds.count(row) or self._rounds.count(row | {"axis": ANY_AXIS})  # an error that nobody marked
        return min((one.smallest(rule, row) for one in named), default=0)


def reference_pools(study: Study) -> dict[str, frozenset[str]]:
    """Return the models of each benchmark's reference pool."""
    return {name: frozenset(benchmark.config.reference_pool) for name, benchmark in study.benchmarks.items()}


def with_pool_marks(rows: Sequence[ResultRow], pools: Mapping[str, frozenset[str]]) -> list[Cells]:
    """Return the cells of a table's rows, with the columns of `POOL_MARKS` filled unless the row has them."""
    return [
        _marks(row, pools) | {column: value for column, value in row.items() if value is not None or column not in POOL_MARKS}
        for row in rows
    ]


def _marks(row: ResultRow, pools: Mapping[str, frozenset[str]]) -> Cells:
    return {
        mark: row[model] in pools[row[benchmark]]
        for mark, (benchmark, model) in POOL_MARKS.items()
        if row.get(mark, True) is None and (row[model] or mark == MARK)
    }


def pool_statements(study: Study) -> list[str]:
    """State which models are marked and why; empty when no benchmark of the run has a reference pool."""
    parts = [
        f"{benchmark.config.title} ({', '.join(benchmark.config.reference_pool)})"
        for benchmark in study.benchmarks.values()
        if benchmark.config.reference_pool
    ]
    if not parts:
        return []
    return [
        (
            f"Reference pool: by answers of some models the items were chosen, and what they solved was taken out: {', '.join(parts)}. They are "
            "marked wherever they are named and were asked again for their scores, with other seeds; that they score lower here than models "
            "that chose nothing is partly the choice. At temperature 0 a new answer may be the old one."
        )
    ]
