"""Models by whose answers the items of a benchmark were chosen: marked in every table that names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuralmedbench.records.results import POOL_MARKS
from neuralmedbench.tables.study import Study

MARK = "in_reference_pool"

Row = dict[str, Any]


def reference_pools(study: Study) -> dict[str, frozenset[str]]:
    """Give the models of each benchmark's reference pool."""
    return {name: frozenset(benchmark.config.reference_pool) for name, benchmark in study.benchmarks.items()}


def marked(rows: Sequence[Row], columns: Sequence[str], pools: Mapping[str, frozenset[str]]) -> list[Row]:
    """Mark the models of the reference pools in the rows of one table.

    Parameters
    ----------
    rows : sequence of dict
        Its rows.
    columns : sequence of str
        Its columns; those of `POOL_MARKS` are filled, unless the row has them already.
    pools : mapping of str to frozenset of str
        Models of the pool by benchmark.

    Returns
    -------
    list of dict
        The rows with their marks.
    """
    named = {mark: POOL_MARKS[mark] for mark in columns if mark in POOL_MARKS}
    return [
        {mark: row[model] in pools[row[benchmark]] for mark, (benchmark, model) in named.items() if mark not in row} | row for row in rows
    ]


def statement(study: Study) -> list[str]:
    """Say in words who is marked and why; nothing when no benchmark of the run has a reference pool."""
    told = [
        f"{benchmark.config.title} ({', '.join(benchmark.config.reference_pool)})"
        for benchmark in study.benchmarks.values()
        if benchmark.config.reference_pool
    ]
    if not told:
        return []
    return [
        (
            f"Reference pool: by answers of some models the items were chosen, and what they solved was taken out: {', '.join(told)}. They are "
            "marked wherever they are named and were asked again for their scores, with other seeds; that they score lower here than models "
            "that chose nothing is partly the choice. At temperature 0 a new answer may be the old one."
        )
    ]
