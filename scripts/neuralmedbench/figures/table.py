"""Reading a table of results back from its CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

from neuralmedbench.errors import DataError

Row = dict[str, str]


def read_rows(path: Path) -> list[Row]:
    """Read a CSV file as text cells.

    Raises
    ------
    DataError
        If the file is absent.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        message = f"{path.name}: the table is not there; run build_tables"
        raise DataError(message) from None


def number(cell: str | None) -> float | None:
    """Read a cell as a number; None when it is empty."""
    return float(cell) if cell else None


def groups(rows: list[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the value of a column, in the order of first appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found
