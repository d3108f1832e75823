"""Cells of a public report that are empty because few patients are behind them."""

from __future__ import annotations

from collections.abc import Iterable

from neuralmedbench.errors import ConfigError
from neuralmedbench.figures.table import Row
from neuralmedbench.records.results import mark_of


class Withheld(str):
    """An empty cell that knows why it is empty: as a number it is written as its mark."""

    __slots__ = ("mark",)
    mark: str

    def __new__(cls, mark: str) -> Withheld:
        """Make a cell that is empty and not shown, because of `mark`."""
        cell = super().__new__(cls, "")
        cell.mark = mark
        return cell


def with_marks(rows: Iterable[Row]) -> list[Row]:
    """Let the empty cells of hidden rows say why they are empty."""
    return [{name: cell or Withheld(mark) for name, cell in row.items()} if (mark := mark_of(row)) else row for row in rows]


def check_profile(profile: str, withheld: list[str], disclosure: object) -> None:
    """Refuse a public page of patients who are not public from tables that hide nothing.

    Raises
    ------
    ConfigError
        If the tables were made for an internal report.
    """
    if profile == "public" and withheld and not disclosure:
        message = (
            f"{', '.join(withheld)}: the tables were made for an internal report, a public one of patients who are not public needs others: "
            "set `report.profile: public` and make tables, figures and report again"
        )
        raise ConfigError(message)
