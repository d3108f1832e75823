"""How a table of results is declared, and its rows are made: columns, the three shapes, measures, suppression, and rates of one model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from itertools import product
from typing import Any, TypeVar, cast

import numpy as np

from neuralmedbench.estimates.contrasts import INCONCLUSIVE, Difference, Ratio, paired_difference, ratio_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, patients_rate, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Arm, Strategy
from neuralmedbench.records.results import CLUSTER_MARKS, PASS1_PATIENTS, SIDES
from neuralmedbench.tables.answers import Samples
from neuralmedbench.tables.family import FamilyTest, Paired
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.study import BenchmarkStudy, Study

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
    these could turn the answer; `detectable` the smallest difference that the study has 80 % power to detect after correction.
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


@dataclass(frozen=True)
class Takeaway:
    """The line above a block: its takeaway, and its counts (without `n =`)."""

    takeaway: str
    n: str


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


R = TypeVar("R", bound=ResultRow)

Values = Iterable[tuple[int, float | None]]
"""Places of items, each with the value of one of their answers; None where the value means nothing."""


class ModelRows:
    """Makes the rows of one topic.

    A row names its arm, or several joined by blanks. Patients who share a request under one of them, or under the arm full, are one.
    """

    def __init__(self, topic: str, study: Study, benchmark: BenchmarkStudy, model: str) -> None:
        self.topic, self.study, self.benchmark, self.model = topic, study, benchmark, model
        self.outcomes = benchmark.outcomes

    @property
    def answers(self) -> Samples:
        """Answers under the arm full, strategy direct."""
        return self.outcomes.answers.of(Key(self.model))

    def key(self, arm: str = Arm.FULL, strategy: str = Strategy.DIRECT) -> Key:
        """Name the model under an arm and a strategy."""
        return Key(self.model, arm, strategy)

    def by(self, arms: str, strategy: str = Strategy.DIRECT) -> ByPatient:
        """Return the patients of the items under some arms."""
        keys = [self.key(arm, strategy) for arm in arms.split()]
        return self.outcomes.by_patient(self.study.settings, self.key(), *keys)

    def rate(
        self,
        measure: str,
        values: Floats,
        *,
        arm: str = Arm.FULL,
        strategy: str = Strategy.DIRECT,
        interval_of: Callable[[Floats, ByPatient], Interval] = rate_interval,
        least: float = 0.0,
        most: float = 1.0,
        **cells: Any,
    ) -> MeasureRow:
        """Return the mean of item values, shape (items,), NaN where an item has none.

        `interval_of` weighs items alike, or patients (`patients_rate`); `least` and `most` are the ends of the scale of the values.
        """
        known = ~np.isnan(values)
        interval = Interval()
        if known.any():
            interval = interval_of((values - least) / (most - least), self.by(arm, strategy))
            value, low, high = (None if end is None else least + end * (most - least) for end in interval[:3])
            interval = interval._replace(value=value, low=low, high=high)
        return self.interval(measure, interval, known, arm=arm, strategy=strategy, **cells)

    def mean(self, measure: str, values: Values, **cells: Any) -> MeasureRow:
        """Return the mean over items, each the mean of its answers."""
        given = list(values)
        known = [(place, value) for place, value in given if value is not None]
        return self.rate(measure, self.means(known), **({"n_answers": len(given), "left_out": len(given) - len(known)} | cells))

    def rate_of_answers(
        self, measure: str, answers: Iterable[tuple[int, float, float]], *, arm: str = Arm.FULL, **cells: Any
    ) -> MeasureRow:
        """Return the mean over answers, each given by the place of its item, its value from 0 to 1, and its weight."""
        places, values, weights = np.array([*answers], dtype=np.float64).reshape(-1, 3).T
        asked = places.astype(np.int64)
        interval = rate_interval(weights * values, self.by(arm).at(asked), weights)
        return self.interval(measure, interval, np.isin(np.arange(len(self.outcomes.items)), asked), arm=arm, **cells)

    def ratio(self, measure: str, side: Ratio, *, arm: str = Arm.FULL, **cells: Any) -> MeasureRow:
        """Return a rate in which every answer that meets a condition counts alike."""
        return self.interval(measure, side.rate(self.by(arm)), side.bottom > 0, arm=arm, **cells)

    def passes(self, key: Key, items: Mask, measure: str = PASS1_PATIENTS, **cells: Any) -> MeasureRow:
        """Return pass@1 of some items under an arm, patients alike; items with a missing answer are left out."""
        values = np.where(items, self.outcomes.pass1_of_complete_items(key), np.nan)
        known, samples = ~np.isnan(values), self.outcomes.counts[key].samples
        interval = patients_rate(values, self.outcomes.by_patient(self.study.settings, key))
        cells |= {"n_answers": int(samples[known].sum()), "left_out": int(samples[~known].sum())}
        return self.interval(measure, interval, known, arm=key.arm, strategy=key.strategy, **cells)

    def passes_contrast(self, measure: str, first: Key, second: Key, items: Mask | None = None, **cells: Any) -> ContrastRow:
        """Return pass@1 under one key minus that under another one, on the items without a missing answer under both."""
        return self.passes_difference(measure, self.paired(first, second, items), **cells)

    def paired(self, first: Key, second: Key, items: Mask | None = None) -> Paired:
        """Compare pass@1 under two keys."""
        ours, theirs = (self.outcomes.pass1_of_complete_items(key) for key in (first, second))
        both = np.asarray(~np.isnan(ours + theirs) & (True if items is None else items))
        by = self.outcomes.by_patient(self.study.settings, first, second)
        return Paired(first, second, both, paired_difference(np.where(both, ours, np.nan), np.where(both, theirs, np.nan), by))

    def passes_difference(self, measure: str, paired: Paired, tested: FamilyTest | None = None, **cells: Any) -> ContrastRow:
        """Return a comparison of pass@1 as a row, with its answer; `tested` if sentences at a glance may claim it."""
        (first, second, both, difference), settings = paired, self.study.settings
        unread = paired.unread_that_may_turn(self.outcomes, settings.max_missing_fraction)
        sides: Cells = {"arm": first.arm, "strategy": first.strategy, "other_arm": second.arm, "other_strategy": second.strategy}
        sides |= {"other": second.model} if second.model != first.model else {}
        sides |= {"n_answers": sum(int(self.outcomes.counts[key].samples[both].sum()) for key in (first, second))}
        row = self.tested(self.difference(measure, difference, both, **(sides | cells)), difference, tested)
        return row if unread is None else replace(row, unread=unread, answer=INCONCLUSIVE)

    def tested(self, row: ContrastRow, difference: Difference, tested: FamilyTest | None) -> ContrastRow:
        """Return a row with the answer of its difference; `tested` if sentences at a glance may claim it."""
        p_corrected = tested.corrected(difference.p_value) if tested else None
        # what is in the family and was not tested is never claimed
        p_decisive = 1.0 if tested and p_corrected is None else p_corrected
        row = replace(row, p_corrected=p_corrected, answer=difference.answer(1 - self.study.settings.confidence, p_decisive))
        return replace(row, family=tested.family, detectable=tested.detectable(row.n_patients)) if tested else row

    def contrast(
        self, measure: str, first: Floats | Ratio, second: Floats | Ratio, *, arm: str = Arm.FULL, other_arm: str = Arm.FULL, **cells: Any
    ) -> ContrastRow:
        """Return the first side minus the second, over the items that both have, or that count on one side of a ratio."""
        by = self.by(f"{arm} {other_arm}")
        if isinstance(first, Ratio) and isinstance(second, Ratio):
            known, found = (first.bottom > 0) | (second.bottom > 0), ratio_difference(first, second, by)
        else:
            first, second = np.asarray(first), np.asarray(second)
            known, found = ~np.isnan(first + second), paired_difference(first, second, by)
        return self.difference(measure, found, known, arm=arm, other_arm=other_arm, **cells)

    def difference(self, measure: str, found: Difference, known: Mask | None = None, **cells: Any) -> ContrastRow:
        """Return a difference between two sides of some items; without a mask of them `cells` count them."""
        cells |= {"difference": found.value, "low": found.low, "high": found.high, "p_value": found.p_value}
        return ContrastRow(**self._head(measure), **(self.sizes(known) | cells))

    def interval(self, measure: str, interval: Interval, known: Mask, **cells: Any) -> MeasureRow:
        """Return a value of some items with its interval."""
        return MeasureRow(**self._head(measure), **(self.sizes(known) | ends_of(interval) | cells))

    def plain(self, measure: str, known: Mask | None = None, **cells: Any) -> MeasureRow:
        """Return a value as it is given, of some items, or of those that `cells` count."""
        return MeasureRow(**self._head(measure), **(self.sizes(known) | cells))

    def count(self, measure: str, count: int, of: int, **cells: Any) -> CountRow:
        """Return how many of some answers, or items, are of a kind."""
        return CountRow(**self._head(measure), count=count, of=of, share=count / of if of else None, **cells)

    def sums(self, values: Iterable[tuple[int, float]]) -> Ratio:
        """Return the sum and the number of some values by item."""
        sums, numbers = np.zeros(len(self.outcomes.items)), np.zeros(len(self.outcomes.items))
        for place, value in values:
            sums[place] += value
            numbers[place] += 1
        return Ratio(sums, numbers)

    def means(self, values: Iterable[tuple[int, float]]) -> Floats:
        """Return the mean of some values by item; NaN where an item has none."""
        sums, numbers = self.sums(values)
        return np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan)

    def _head(self, measure: str) -> dict[str, Any]:
        return {"benchmark": self.benchmark.name, "model": self.model, "topic": self.topic, "measure": measure}

    def sizes(self, known: Mask | None) -> Cells:
        """Count some items and their patients."""
        if known is None:
            return {}
        return {"n_items": int(known.sum()), "n_patients": len(np.unique(self.outcomes.patients[known]))}


def of_benchmarks(function: Callable[..., Iterable[R]]) -> Callable[..., list[R]]:
    """Make the rows of a table by a function of the study, one benchmark, and what the table `needs`."""

    @wraps(function)
    def rows(study: Study, *values: Any) -> list[R]:
        return [row for benchmark in study.benchmarks.values() for row in function(study, benchmark, *values)]

    return rows


def of_models(topic: str, *needed: Callable[[Study], Any]) -> Callable[[Callable[..., Iterable[R]]], Callable[[Study], list[R]]]:
    """Make the rows of a topic by a function of one model on one benchmark, and of what is `needed` of the whole study."""

    def declare(function: Callable[..., Iterable[R]]) -> Callable[[Study], list[R]]:
        @wraps(function)
        def rows(study: Study) -> list[R]:
            values = [value(study) for value in needed]
            models = product(study.benchmarks.values(), study.models)
            return [row for one in models for row in function(ModelRows(topic, study, *one), *values)]

        return rows

    return declare


def ends_of(interval: Interval) -> Cells:
    """Return the cells of a value with its interval."""
    method = "" if interval.value is None else interval.method
    return {"value": interval.value, "low": interval.low, "high": interval.high, "method": method}
