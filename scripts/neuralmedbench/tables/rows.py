"""Rows of results tables: typed rows, whose fields are the columns, and plain cells, which are written and described in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Cells = dict[str, Any]
"""Cells by column: parts of a row under construction, and rows after suppression."""

Tables = Mapping[str, list[Cells]]
"""Rows by table, as read by sentences."""


def with_ends(intervals: Mapping[str, Sequence[Any]]) -> Cells:
    """Return the cells of values and their intervals by name: `x`, `x_low` and `x_high`; an interval begins with value, low and high."""
    return {f"{name}{end}": one[place] for name, one in intervals.items() for place, end in enumerate(("", "_low", "_high"))}


@dataclass(frozen=True, kw_only=True)
class ResultRow(Mapping[str, Any]):
    """Base of the rows of every table: a frozen dataclass whose fields are the columns, in order; None is an empty cell.

    Cells can be read by column name too, for code that treats all tables alike.
    """

    def __getitem__(self, column: str) -> Any:
        return vars(self)[column]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))


@dataclass(frozen=True, kw_only=True)
class ModelRow(ResultRow):
    """Base of the rows that are each about one model on one benchmark; `in_reference_pool` is set where a run says which models it compares."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
