"""Look up one cell of a results table by table, row and column as typed by a person."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.load import nearest
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import unguard_cell
from neuralmedbench.records.results import COLUMNS

KEYS = (
    *("benchmark", "breadth_benchmark", "depth_benchmark", "model", "model_a", "model_b", "revision", "earlier_revision", "arm"),
    *("reference_arm", "strategy", "slice", "value_of_slice", "metric", "field", "grader", "step", "reason", "case_id", "item_id"),
    *("kind", "check", "variable", "round_id", "axis", "destination"),
    *("source", "simulated", "level", "code", "group", "paper_class", "measure", "jury", "criterion", "dropped"),
)
"""Columns that identify a row; all others hold numbers or remarks."""

OF_ALL_ARMS = frozenset({"efficiency", "destinations", "graders"})
"""Tables whose rows count the answers of all arms together."""


@dataclass(frozen=True)
class TableCell:
    """A cell: its table, row number (from 1) and column, and the texts of the whole row."""

    table: str
    number: int
    column: str
    row: dict[str, str]

    @property
    def value(self) -> str:
        """Text of the cell; empty if not available."""
        return self.row[self.column]

    @property
    def keys(self) -> dict[str, str]:
        """Columns that identify the row, with their values."""
        return {name: self.row[name] for name in KEYS if self.row.get(name)}

    @property
    def benchmarks(self) -> frozenset[str] | None:
        """Benchmarks that the row is about; None if the table is about all of them."""
        return self._named("benchmark", "breadth_benchmark", "depth_benchmark")

    @property
    def models(self) -> frozenset[str] | None:
        """Models that the row is about, empty for a table without models or a row such as `prior`; None if it is about a grader of all models."""
        models = self._named("model", "model_a", "model_b") or frozenset()
        return None if any(name.startswith("grader ") for name in models) else models

    @property
    def arms(self) -> tuple[str, ...]:
        """Arms whose answers are in the row; empty for a table that counts all arms."""
        if self.table in OF_ALL_ARMS:
            return ()
        # a row compares both arms, but has no column for them
        if self.table == "decomposition":
            return "full", "findings_disclosed", "findings_of_another", "findings_and_history", "findings_only"
        named = [arm for name in ("arm", "reference_arm") for arm in (self.row.get(name) or "").split()]
        # a measure of pressure compares one or several arms with full, or with each other
        return tuple(dict.fromkeys([*(["full"] if self.table == "pressure" else []), *named])) or ("full",)

    def _named(self, *columns: str) -> frozenset[str] | None:
        present = [name for name in columns if name in self.row]
        return frozenset(self.row[name] for name in present if self.row[name]) if present else None


def look_up_cell(table: str, row: str, column: str, folder: Path = Path("results/tables")) -> TableCell:
    """Look up a cell.

    Parameters
    ----------
    table : str
        Name of a table, with or without folder and `.csv`.
    row : str
        Number (the first row below the header is 1), or enough `column=value` pairs to identify it, joined by commas.
    column : str
        Name of a column.
    folder : Path
        Folder of the tables.

    Returns
    -------
    TableCell
        The cell.

    Raises
    ------
    ConfigError
        If the table, row or column does not exist (with the nearest name), or several rows match.
    """
    name = Path(table).name.removesuffix(".csv")
    if name not in COLUMNS:
        message = f"{name}: no table has this name{nearest(name, list(COLUMNS))}"
        raise ConfigError(message)
    try:
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            head, *lines = list(csv.reader(file))
    except FileNotFoundError:
        message = f"{name}.csv: the table is missing; run the pipeline, or `nmb run pull`"
        raise ConfigError(message) from None
    rows = [dict(zip(head, map(unguard_cell, line), strict=True)) for line in lines]
    if column not in head:
        message = f"{name}: no column {column!r}{nearest(column, head)}"
        raise ConfigError(message)
    # digits are a row number, everything else is column=value pairs
    number = _by_number(name, row, len(rows)) if row.isdecimal() else _by_values(name, row, head, rows)
    return TableCell(name, number, column, rows[number - 1])


def _by_number(table: str, row: str, last: int) -> int:
    if not 1 <= int(row) <= last:
        message = f"{table}: no row {row}; it has {last} rows, the first is 1"
        raise ConfigError(message)
    return int(row)


def _by_values(table: str, row: str, head: Sequence[str], rows: Sequence[dict[str, str]]) -> int:
    fitting = list(range(len(rows)))
    for words in row.split(","):
        column, equals, value = words.partition("=")
        if not equals:
            message = f"{table}: the row {words!r} is neither a number nor of the form column=value, as in benchmark=demo,model=fusion"
            raise ConfigError(message)
        if column not in head:
            message = f"{table}: no column {column!r}{nearest(column, head)}"
            raise ConfigError(message)
        # each pair narrows the rows; values still possible are suggested
        known = sorted({rows[place][column] for place in fitting})
        fitting = [place for place in fitting if rows[place][column] == value]
        if not fitting:
            message = f"{table}: no row with {words}{nearest(value, known)}"
            raise ConfigError(message)
    if len(fitting) > 1:
        differ = [name for name in KEYS if len({rows[place].get(name) for place in fitting}) > 1]
        message = f"{table}: {len(fitting)} rows match {row}; add {' or '.join(differ) or 'their number'}, or give the number of the row"
        raise ConfigError(message)
    return fitting[0] + 1
