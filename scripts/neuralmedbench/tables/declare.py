"""What a results table declares: its typed rows, how they are made, what is said of them, and what of them a public run hides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

from neuralmedbench.tables.rows import ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.suppression import Suppression
from neuralmedbench.tables.words import Takeaway

T = TypeVar("T")


class Results:
    """What the tables of a run are made from: the run, the tables before them in the list, and what several of them share."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.tables: dict[str, Sequence[ResultRow]] = {}
        self._shared: dict[Callable[[Study], Any], Any] = {}

    def once(self, function: Callable[[Study], T]) -> T:
        """Compute something of the run that several tables need, the first time that it is asked for."""
        if function not in self._shared:
            self._shared[function] = function(self.study)
        return cast(T, self._shared[function])


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of results.

    Attributes
    ----------
    name : str
        The file is `results/tables/<name>.csv`.
    row : type
        Class of its rows; columns, their order and their types are its fields.
    rows : callable
        Makes the rows.
    suppression : Suppression or None
        What of it a public run hides; None for a table that is about no patient (people who rate, calls).
    takeaways : mapping of str to callable
        The sentence and the `n` line above the blocks of the page that show it, by the id of the block. They are made of the tables as they
        are written, so that no sentence says what a table hides.
    """

    name: str
    row: type[ResultRow]
    rows: Callable[[Results], Sequence[ResultRow]]
    suppression: Suppression | None
    takeaways: Mapping[str, Callable[[Study, Tables], Takeaway]] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str]:
        """Types by column, in the order of the file; a type as it is written in the class, without `| None`."""
        return {one.name: str(one.type).removesuffix(" | None") for one in fields(self.row)}


def of_study(function: Callable[[Study], Sequence[ResultRow]]) -> Callable[[Results], Sequence[ResultRow]]:
    """Make rows of the run alone; computed once, should other tables need them."""
    return lambda results: results.once(function)
