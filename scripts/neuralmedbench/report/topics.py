"""Tables of the page drawn from the definitions of a topic's measures: one line for each model and group, one column for each measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from neuralmedbench.figures.table import Row
from neuralmedbench.records.results import SIDES, SIMULATED
from neuralmedbench.records.words import capital, spaced

Measures = Sequence[Mapping[str, str | bool]]
"""Definitions of the measures of a topic, as the run wrote them (`tables.declare.Measure`)."""

SHOWN_FROM = 10
"""Patients from which a line is on the page; all lines are in the files. (Our rule.)"""

HEADS = {
    "arm": "Arm",
    "strategy": "Strategy",
    "source": "Source",
    "other": "Compared with",
    "other_arm": "Compared with",
    "other_strategy": "Compared with",
}


SLICES = frozenset({"age", "sex", "scanner", "field-strength", "family", "level", "sequence", "diagnosis", "class", "group"})
"""Slices by which checklists point to lines."""


@dataclass(frozen=True)
class TopicColumn:
    """One measure as a column: its heading, definition and unit; `shape` is `value`, `difference` or `count`."""

    measure: str
    title: str
    text: str
    unit: str
    shape: str

    @property
    def element(self) -> str:
        """Name by which checklists point to its cells."""
        return self.measure.replace("_", "-").replace(".", "-")


@dataclass(frozen=True)
class Line:
    """One line: the model on a benchmark, what tells it apart from its other lines, and its rows by column."""

    first: Row
    names: tuple[str, ...]
    cells: dict[TopicColumn, Row] = field(default_factory=dict)


@dataclass(frozen=True)
class TopicTable:
    """The table of a topic; `few` counts the lines that are about fewer than `SHOWN_FROM` patients and are in the files alone."""

    heads: tuple[str, ...]
    columns: tuple[TopicColumn, ...]
    lines: tuple[Line, ...]
    few: int
    several_benchmarks: bool

    @property
    def counts_items(self) -> bool:
        """True if a row of a line counts items beside patients."""
        return any(row["n_items"] for line in self.lines for row in line.cells.values())


def topic_elements(measures: Measures) -> frozenset[str]:
    """Return the names by which checklists point to cells of a topic: its measures with their intervals, and its slices."""
    names = {str(measure["name"]).replace("_", "-").replace(".", "-") for measure in measures}
    return frozenset(names | {f"{name}-interval" for name in names} | SLICES)


def shape_of(row: Row) -> str:
    """Return what kind of number a row of a topic has; a hidden row has none and is a value."""
    return "difference" if row["other_arm"] else "count" if row["count"] else "value"


def topic_table(rows: Sequence[Row], measures: Measures, fewest: int = SHOWN_FROM) -> TopicTable:
    """Return the table of a topic: its main measures, of the lines about enough patients.

    Parameters
    ----------
    rows : sequence of Row
        Rows of the topic, or a part of them.
    measures : sequence of mapping
        The measures of the topic.
    fewest : int
        Patients from which a line is shown; 0 for a description of the cases.

    Returns
    -------
    TopicTable
        Lines in the order of the rows; empty if no row has a main measure.
    """
    main = {str(measure["name"]): measure for measure in measures if measure["main"]}
    rows = [row for row in rows if row["measure"] in main]
    sides = [side for side in SIDES if _tells_apart(rows, side) or _is_named(rows, side)]
    kinds = {row["slice"] for row in rows}
    with_slice = len(kinds) > 1 or _tells_apart(rows, "value_of_slice") or _is_named(rows, "value_of_slice")
    with_value = {row["measure"] for row in rows if shape_of(row) == "value"}
    lines: dict[tuple[str, ...], Line] = {}
    for row in rows:
        place = tuple(row[side] for side in sides)
        names = (*((row["slice"], row["value_of_slice"]) if with_slice else ()), *place)
        line = lines.setdefault(
            (row["benchmark"], row["model"], *names),
            Line(row, (*(_group_of(row, kinds) if with_slice else ()), *(spaced(name) for name in place))),
        )
        line.cells[_column(row, main[row["measure"]], with_value)] = row
    shown = [line for line in lines.values() if not _is_few(line, fewest)]
    order = list(main)
    columns = sorted(
        {column for line in shown for column in line.cells},
        key=lambda column: (order.index(column.measure), column.shape != "value"),
    )
    group = capital(spaced(*kinds)) if len(kinds) == 1 else "Group"
    heads = (*((group,) if with_slice else ()), *(HEADS[side] for side in sides))
    benchmarks = {line.first["benchmark"] for line in shown}
    return TopicTable(heads, tuple(columns), tuple(shown), len(lines) - len(shown), len(benchmarks) > 1)


def _tells_apart(rows: Iterable[Row], name: str) -> bool:
    """Return True if two rows of one measure and shape of one model differ in a column."""
    values: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        values.setdefault((row["benchmark"], row["model"], row["measure"], shape_of(row)), set()).add(row[name])
    return any(len(different) > 1 for different in values.values())


def _is_named(rows: Iterable[Row], side: str) -> bool:
    """Return True if all rows compare with one other model, are of one arm compared with the full request, or of simulated raters."""
    if side in ("source", "value_of_slice"):
        return any(row[side].startswith(SIMULATED) for row in rows)
    if side == "arm" and any(row["other_arm"] != "full" for row in rows):
        return False
    values = {row[side] for row in rows}
    return side in ("arm", "other") and len(values) == 1 and not values & {"", "full"}


def _group_of(row: Row, kinds: AbstractSet[str]) -> tuple[str]:
    """Name the group of a row; the kind of group is in the head where there is one kind."""
    parts = (row["value_of_slice"],) if len(kinds) == 1 else (row["slice"], row["value_of_slice"])
    return (", ".join(spaced(part) for part in parts if part) or "all",)


def _column(row: Row, measure: Mapping[str, str | bool], with_value: AbstractSet[str]) -> TopicColumn:
    title, shape = str(measure["title"]), shape_of(row)
    if shape == "difference" and (measure["unit"] != "points" or row["measure"] in with_value):
        title = f"{title}, difference"
    return TopicColumn(row["measure"], title, str(measure["text"]), str(measure["unit"]), shape)


def _is_few(line: Line, fewest: int) -> bool:
    """Return True if all numbers of a line are about fewer patients, or hidden because of them."""
    counts = [row["n_patients"] for row in line.cells.values() if row["n_patients"]]
    return bool(counts) and all(not count.isdigit() or int(count) < fewest for count in counts)
