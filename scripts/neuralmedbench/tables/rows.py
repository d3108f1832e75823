"""Rows of results tables: typed ones, whose fields are the columns, and the plain cells that are written and put into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Cells = dict[str, Any]
"""Cells by column: parts of a row while it is made, and rows as a public run may show them."""

Tables = Mapping[str, list[Cells]]
"""Rows by table, as sentences read them."""


@dataclass(frozen=True, kw_only=True)
class ResultRow(Mapping[str, Any]):
    """Base of the rows of every table: a frozen dataclass whose fields are the columns, in order; None is an empty cell.

    Cells can be read by column name too, for what treats all tables alike.
    """

    def __getitem__(self, column: str) -> Any:
        return vars(self)[column]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))
