"""Reference pools: the models whose answers were used to choose the items of a benchmark, marked in every table that names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neuralmedbench.records.results import POOL_MARKS
from neuralmedbench.tables.rows import Cells, ResultRow
from neuralmedbench.tables.study import Study

MARK = "in_reference_pool"


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
    return {mark: row[model] in pools[row[benchmark]] for mark, (benchmark, model) in POOL_MARKS.items() if row.get(mark, True) is None}


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
