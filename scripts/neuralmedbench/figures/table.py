"""Rows of a table of results, cells as text."""

from __future__ import annotations

import math
from collections.abc import Iterable

Row = dict[str, str]

FEWEST = "fewest"
"""Column that `draw_figures` adds to every row: a group of fewer patients is a small one."""

SMALL = 10
"""What it holds unless somebody says otherwise (`report.min_patients_shown`)."""


def number(cell: str | None) -> float | None:
    """Read a cell as a number; None when it is empty, or no number (`<10`: few, and not how many).

    Examples
    --------
    >>> number("0.5"), number(""), number("<10"), number("nan")
    (0.5, None, None, None)
    """
    try:
        value = float(cell or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def value_of(row: Row, column: str) -> float:
    """Read a cell that `having` has seen to hold a number; 0 when it does not."""
    return number(row[column]) or 0.0


def having(rows: Iterable[Row], *columns: str) -> list[Row]:
    """Rows that hold a number in each of the columns."""
    return [row for row in rows if all(number(row[column]) is not None for column in columns)]


def is_small(row: Row) -> bool:
    """Whether few patients stand behind a row, or nobody says how many."""
    patients = number(row["n_patients"])
    return patients is None or patients < fewest_of(row)


def fewest_of(row: Row) -> int:
    """Give the number of patients below which a group is small."""
    return int(row.get(FEWEST) or SMALL)


def groups(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the value of a column, in the order of first appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found
