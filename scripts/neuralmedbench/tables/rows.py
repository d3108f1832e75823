"""Rows of results tables: typed rows, whose fields are the columns, and plain cells, which are written and described in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuralmedbench.records.items import Arm, Strategy

Cells = dict[str, Any]
"""Cells by column: parts of a row under construction, and rows after suppression."""

Number = float | None
Count = int | None
Text = str | None
Flag = bool | None

KINDS = {"Number": "float", "Count": "int", "Text": "str", "Flag": "bool"}
"""Types of the columns that may be empty, as they are written in the classes of rows."""

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
    in_reference_pool: Flag = None


@dataclass(frozen=True, kw_only=True)
class TopicRow(ModelRow):
    """Base of the rows of the shapes. `topic` is the part of the page that shows the row, `other` a second model, if it is about two."""

    topic: str
    measure: str
    arm: str = Arm.FULL
    strategy: str = Strategy.DIRECT
    other: str = ""


@dataclass(frozen=True, kw_only=True)
class MeasureRow(TopicRow):
    """A value of one model over the answers to some items of a benchmark: a row of `measures.csv`.

    `slice` and `value_of_slice` name the items, places or rounds, `source` who judged or where a confidence
    comes from, `method` how the interval was made.
    `left_out` counts answers that are missing, or for which the measure means nothing.
    """

    slice: str = ""
    value_of_slice: str = ""
    source: str = ""
    value: Number = None
    low: Number = None
    high: Number = None
    method: str = ""
    n_answers: Count = None
    left_out: Count = None
    n_items: Count = None
    n_patients: Count = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ContrastRow(TopicRow):
    """A difference between two sets of answers to the same items: a row of `contrasts.csv`.

    The first side is `model`, `arm` and `strategy`, the second `other` (if empty, the same model), `other_arm` and `other_strategy`.
    `p_value` is that of this test alone, `p_corrected` after correction for all of `family`: what sentences at a glance may claim. Without
    one a row is exploratory. `answer` is about pass@1 (`Difference.answer`). `unread` is the share of unread answers of the lower side, where
    these could turn the answer; `detectable` the smallest difference that 8 of 10 such studies would show after correction.
    """

    other_in_reference_pool: Flag = None
    other_arm: str = Arm.FULL
    other_strategy: str = Strategy.DIRECT
    slice: str = ""
    value_of_slice: str = ""
    difference: Number = None
    low: Number = None
    high: Number = None
    p_value: Number = None
    p_corrected: Number = None
    family: str = ""
    answer: str = ""
    unread: Number = None
    detectable: Number = None
    n_answers: Count = None
    n_items: Count = None
    n_patients: Count = None
    note: str = ""

    @property
    def value(self) -> float | None:
        """The difference, under the name that a measure has for its number."""
        return self.difference


@dataclass(frozen=True, kw_only=True)
class CountRow(TopicRow):
    """How many answers, or items, of a model are of a kind: a row of `counts.csv`. `share` is `count` of `of`."""

    slice: str = ""
    value_of_slice: str = ""
    count: int
    of: int
    share: Number = None
    n_items: Count = None
    n_patients: Count = None


SHAPES: dict[str, type[ResultRow]] = {"measures": MeasureRow, "contrasts": ContrastRow, "counts": CountRow}
"""Rows by the file that holds those of all topics."""
