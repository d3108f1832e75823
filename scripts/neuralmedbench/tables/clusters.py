"""What is counted as independent behind every rate: patients where a benchmark has them, and the mark of rates of fewer than five."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from neuralmedbench.estimates.suppression import Mask
from neuralmedbench.records.results import FEWEST, PATIENT
from neuralmedbench.tables.declare import Suppression, Table
from neuralmedbench.tables.release import ANY_AXIS, OF_DIFFERENTIAL, BenchmarkParts, PublicTables, RoundPatients, parts_of
from neuralmedbench.tables.rows import Cells, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study

RANKS = ("tier", "rank", "rank_low", "rank_high")
"""Columns that are hidden with the rates that they follow from."""

BENCHMARKS = ("benchmark", "breadth_benchmark", "depth_benchmark")
"""Columns that name the benchmarks of a row."""


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
        named = [self._benchmarks[row[name]] for name in BENCHMARKS if row.get(name) in self._benchmarks]
        named = named or list(self._benchmarks.values())
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


def without_few(shown: PublicTables, tables: Iterable[Table]) -> PublicTables:
    """Empty the numbers of marked rows: a public report shows no rate of fewer than five patients, whoever they are.

    Sentences see no such row, and nothing of a benchmark that has no more patients.
    """
    shown = replace(shown, tables=_without_few_differentials(shown.tables), visible=_without_few_differentials(shown.visible))
    numbers = {table.name: [name for name, kind in table.columns.items() if kind == "float" or name in RANKS] for table in tables}
    whole = {row["benchmark"] for row in shown.tables["leaderboard"] if row.get("few_patients")}
    study = shown.study
    return replace(
        shown,
        tables={
            name: [
                row | dict.fromkeys(column for column in numbers[name] if column in row) if row.get("few_patients") else row for row in rows
            ]
            for name, rows in shown.tables.items()
        },
        visible={name: [row for row in rows if not row.get("few_patients")] for name, rows in shown.visible.items()},
        study=replace(study, benchmarks={name: one for name, one in study.benchmarks.items() if name not in whole}),
        few=tuple(one.config.title for name, one in study.benchmarks.items() if name in whole),
    )


def _without_few_differentials(tables: Tables) -> Tables:
    """Empty the cells of the leaderboard about the items of a ranked differential if these are of fewer than five patients."""
    board = [
        row | dict.fromkeys(OF_DIFFERENTIAL) if 0 < (row.get("differential_patients") or 0) < FEWEST else row
        for row in tables["leaderboard"]
    ]
    return {**tables, "leaderboard": board}
