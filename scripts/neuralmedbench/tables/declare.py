"""Declaration of a results table: its typed rows, the function that makes them, its takeaways, and its suppression in a public run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.results import CLUSTER_MARKS, SIDES
from neuralmedbench.tables.rows import KINDS, SHAPES, Cells, MeasureRow, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway

SCORED, REPEATABLE, RANKED, ALL = "scored", "repeatable", "ranked", "all"
"""Items with a reference; those of them with pass@k; those with a ranked differential; all items. A rate is over one of these sets."""

MODEL = "benchmark model in_reference_pool"
"""Columns that name a model on a benchmark."""

NUMBER = f"{MODEL} topic measure {' '.join(SIDES)} other_in_reference_pool slice value_of_slice"
"""Columns that say what a row of a topic is about."""

DESCRIBED = frozenset({"title", "note", "told"})
"""Columns of those that a hidden row shows which say more of a row that others identify."""


def no_labels(row: Cells) -> list[Label]:
    """Put a row in no part of its benchmark."""
    return []


def no_group(row: Cells) -> object:
    """Put a row in no suppression group."""
    return None


def arm_labels(row: Cells) -> list[Label]:
    """Return the part of the benchmark that an arm asks."""
    return [(f"asked {row['arm']} {row.get('strategy', 'direct')}", "")]


def side_labels(row: Cells) -> list[Label]:
    """Return the parts of the benchmark that the arms of a row of a topic ask."""
    sides = (row["arm"], row["strategy"]), (row.get("other_arm"), row.get("other_strategy"))
    asked = [(arm, strategy) for arms, strategy in sides if arms for arm in arms.split()]
    return [label for arm, strategy in asked for label in arm_labels({"arm": arm, "strategy": strategy})]


def grouped_by(names: str, part: str = "", alone: tuple[str, ...] = ()) -> Callable[[Cells], object]:
    """Return a function that groups rows by some columns; rows with one of the `alone` values in the column `part` are in no group."""
    return lambda row: None if part and row[part] in alone else tuple(row[name] for name in names.split())


@dataclass(frozen=True)
class Suppression:
    """Suppression of one table where patients are not public.

    Attributes
    ----------
    keys : str
        Key columns of a row, which are always shown.
    mark : str
        Column that marks a row as hidden. Without one the row is removed.
    patients : str
        Column that counts the row's patients (cases, where patients are not counted); if empty, the parts alone decide.
    labels : callable
        Parts of the benchmark (`release.parts_of`) that a row is about.
    group : callable
        Group of a row. Rows of one group add up to a number that is shown, so hiding one row hides a second; None for no group.
    each : bool
        True if every row is about one case: none is shown.
    always : str
        Columns that name cases, which are always emptied.
    says : str
        Text column that reads `not shown` in a hidden row.
    whole : bool
        True if its rows are hidden where the whole benchmark is about few patients; else only small counts are.
    of_patients : bool
        False if its numbers are no rates over patients (identifiers that were found), so that none is marked as one of few patients.
    """

    keys: str
    mark: str = "n_patients"
    patients: str = "n_patients"
    labels: Callable[[Cells], list[Label]] = no_labels
    group: Callable[[Cells], object] = no_group
    each: bool = False
    always: str = ""
    says: str = ""
    whole: bool = True
    of_patients: bool = True


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def needs(*functions: Callable[..., Any]) -> Callable[[F], F]:
    """Declare the values that a function takes beside the study; each is made by a function of the study (`Results.once`)."""

    def declare(function: F) -> F:
        vars(function)["needs"] = functions
        return function

    return declare


class Results:
    """The rows of the tables of a run, and the values that several tables need."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._made: dict[Callable[..., Any], Any] = {}

    def once(self, function: Callable[..., T]) -> T:
        """Return what a function makes of the study and of the values that it needs; it is called once."""
        if function not in self._made:
            self._made[function] = function(self._study, *map(self.once, vars(function).get("needs", ())))
        return cast(T, self._made[function])


@dataclass(frozen=True)
class Measure:
    """Definition of one number of a topic, from which the page and the reference of results are made.

    Attributes
    ----------
    name : str
        Its name in the column `measure`.
    title : str
        Heading of its column on the page.
    text : str
        What is counted, and of what: one sentence.
    unit : str
        `share` (0 to 1), `points` (a difference of shares), `number`, `count` (a whole number) or `dollars`.
    main : bool
        True if it is a column of the block's table; the others are in the list of all numbers.
    """

    name: str
    title: str
    text: str
    unit: str = "share"
    main: bool = True


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of results.

    Attributes
    ----------
    name : str
        The file is `results/tables/<name>.csv`; of a topic, the name in the column `topic` of the files of `SHAPES`.
    row : type
        Class of its rows; columns, their order and their types are its fields. A shape makes it a topic, which may have
        rows of the other shapes, too.
    rows : callable
        Makes the rows of the study, and of the values that it `needs`.
    suppression : Suppression or None
        Its suppression in a public run; None for a table that is not about patients (raters, calls).
    takeaways : mapping of str to callable
        The sentence and the `n` line above the blocks of the page that show it, by block id. They are made from the tables as
        written, so that no sentence reveals a hidden number. None for a topic whose sentence is the range of its measures.
    measures : tuple of Measure
        Of a topic: its numbers in the order of the page.
    """

    name: str
    row: type[ResultRow]
    rows: Callable[..., Sequence[ResultRow]]
    suppression: Suppression | None
    takeaways: Mapping[str, Callable[[Study, Tables], Takeaway]] | None = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()

    @property
    def columns(self) -> dict[str, str]:
        """Types by column, in the order of the file."""
        return self._own | (CLUSTER_MARKS if self.has_cluster_marks else {})

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that identify a row, in the order of the file: those that a hidden row shows; where none is shown, its texts."""
        shown = self.suppression
        named = (
            f"{shown.keys} {shown.says}".split()
            if shown and not shown.each
            else [name for name, kind in self._own.items() if kind == "str"]
        )
        return tuple(name for name in self._own if name in named and name not in DESCRIBED and not name.endswith("in_reference_pool"))

    @property
    def has_cluster_marks(self) -> bool:
        """True if its rows hold rates over patients, so that `CLUSTER_MARKS` are added."""
        return self.suppression is not None and self.suppression.of_patients and not self.suppression.each and "float" in self._own.values()

    @property
    def is_topic(self) -> bool:
        """True if its rows stand in the files of `SHAPES`."""
        return self.row in SHAPES.values()

    @property
    def _own(self) -> dict[str, str]:
        shapes = SHAPES.values() if self.is_topic else (self.row,)
        return {name: kind for shape in shapes for name, kind in types_of(shape).items()}


def types_of(row: type[ResultRow]) -> dict[str, str]:
    """Return the type of every column of a row: `float`, `int`, `str` or `bool`."""
    return {one.name: KINDS.get(str(one.type), str(one.type)) for one in fields(row)}


def topic(
    name: str,
    rows: Callable[..., Sequence[ResultRow]],
    measures: tuple[Measure, ...] = (),
    *,
    labels: Callable[[Cells], list[Label]] = side_labels,
    group: Callable[[Cells], object] = no_group,
    takeaways: Mapping[str, Callable[[Study, Tables], Takeaway]] | None = None,
) -> Table:
    """Declare a topic: rows of the three shapes, with the one rule of suppression that the shapes have.

    A row is hidden where its patients, or a part of the benchmark that it is about (`labels`), are few, and with another hidden row of its
    `group`; its names stay.
    """
    return Table(
        name=name,
        row=MeasureRow,
        rows=rows,
        suppression=Suppression(NUMBER, labels=labels, group=group),
        takeaways=takeaways,
        measures=measures,
    )
