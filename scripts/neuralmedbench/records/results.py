"""The tables of results: `results/tables/<name>.csv` and their columns, in order."""

from __future__ import annotations

import re
from collections.abc import Mapping

from neuralmedbench.records.result_columns import TABLES

COLUMNS = {name: tuple(columns) for name, columns in TABLES.items()}
"""Columns of every table; an empty cell means not available."""

POOL_MARKS = {
    "in_reference_pool": ("benchmark", "model"),
    "a_in_reference_pool": ("benchmark", "model_a"),
    "b_in_reference_pool": ("benchmark", "model_b"),
    "breadth_in_reference_pool": ("breadth_benchmark", "model"),
    "depth_in_reference_pool": ("depth_benchmark", "model"),
}
"""Columns that mark a model by whose answers the items of a benchmark were chosen, with the columns that name the two."""

HIDDEN, NOT_SHOWN = "(hidden)", "not shown"
"""In the cell that counts the patients of a row that a public run hides beside a small one; and in a cell of words of such a row."""

MARK = re.compile(r"<\d+( patients)?|\(hidden\)")
"""What stands in that cell: `<10` where few patients are behind the row (`docs/metrics.md`)."""


def mark_of(row: Mapping[str, str]) -> str:
    """Say why the empty cells of a row are not shown; empty when nothing of it is hidden."""
    return next((cell for cell in row.values() if MARK.fullmatch(cell)), "")
