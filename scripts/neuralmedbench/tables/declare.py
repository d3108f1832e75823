"""What a results table declares: its typed rows, how they are made, what is said of them, and what of them a public run hides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

from neuralmedbench.estimates.suppression import Label
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway

SCORED, REPEATABLE, RANKED, ALL = "scored", "repeatable", "ranked", "all"
"""Items with a reference; those of them with pass@k; those with a ranked differential. A rate stands for one of the three."""

MODEL = "benchmark model in_reference_pool"
"""Columns that name a model on a benchmark."""


def no_labels(row: Cells) -> list[Label]:
    """Say of a row that it is about no part of its benchmark."""
    return []


def no_group(row: Cells) -> object:
    """Say of a row that it adds up to nothing with others."""
    return None


def arm_labels(row: Cells) -> list[Label]:
    """Name the part of the benchmark that an arm asks."""
    return [(f"asked {row['arm']} {row.get('strategy', 'direct')}", "")]


def grouped_by(names: str, part: str = "", alone: tuple[str, ...] = ()) -> Callable[[Cells], object]:
    """Group rows by some columns; those with one of the `alone` values in the column `part` are in no group."""
    return lambda row: None if part and row[part] in alone else tuple(row[name] for name in names.split())


@dataclass(frozen=True)
class Suppression:
    """How one table is hidden where patients are not public.

    Attributes
    ----------
    keys : str
        Columns that say what a row is about; they stay.
    mark : str
        The column that says that a row is hidden. Without one the row goes.
    patients : str
        The column that counts the row's patients (cases, where patients are not counted); empty: the parts alone decide.
    labels : callable
        The parts of the benchmark (`release.parts_of`) that a row is about.
    group : callable
        Rows of one group add up to something that is shown, so a hidden one takes another one with it; None for a row that is in no group.
    each : bool
        Every row is about one case: none is left.
    always : str
        Columns that name cases: always emptied.
    says : str
        A column of words that says `not shown` in a hidden row.
    rated : str
        Columns about the answers that clinicians rated; the first counts their patients, and says so when they are too few.
    surest : bool
        Rows are about growing parts of the answers: what lies between two of them has to be enough, too.
    whole : bool
        Whether its rows are hidden where the whole benchmark is about few patients; else small counts alone.
    sort : bool
        Whether the order of its rows says something (a rank): where all of a benchmark is hidden they stand in the order of the models' names.
    """

    keys: str
    mark: str = "n_patients"
    patients: str = "n_patients"
    labels: Callable[[Cells], list[Label]] = no_labels
    group: Callable[[Cells], object] = no_group
    each: bool = False
    always: str = ""
    says: str = ""
    rated: str = ""
    surest: bool = False
    whole: bool = True
    sort: bool = False


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
