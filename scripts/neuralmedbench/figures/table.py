"""Rows of a table of results, cells as text."""

from __future__ import annotations

Row = dict[str, str]


def number(cell: str | None) -> float | None:
    """Read a cell as a number; None when it is empty."""
    return float(cell) if cell else None


def groups(rows: list[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the value of a column, in the order of first appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found
