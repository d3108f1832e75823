"""The answers to one benchmark as columns: the only index of answers, and the place where it is decided which are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.intervals import Floats, Ints
from neuralmedbench.records.items import Arm, Item, Strategy
from neuralmedbench.records.responses import ResponseState, is_cut_in_thought
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, ParseStatus, Score

RUBRIC = "rubric"
"""Share of the points of a rubric, judged by language models."""

GRADES = (MAIN_CONDITION, CORE_DIAGNOSIS, RUBRIC)

Condition = tuple[str, str, str]
"""A model under an arm and a strategy."""


@dataclass(frozen=True)
class Samples:
    """Expected samples, sorted by model, arm, strategy, item and number.

    Attributes
    ----------
    columns : dict of str to ndarray, shape (samples,)
        `place` is that of the item. An answer is `there` unless it is missing, `graded` if it is there and has a verdict. Nothing that could
        not be read because of its language (`foreign`) is `unparsable`. `confidence` and `GRADES` are numbers, NaN where there is none.
    scores : sequence of Score or None
        Their records, in the order of the rows; None where none was written.
    size : int
        Number of items.
    """

    columns: Mapping[str, npt.NDArray[Any]]
    scores: Sequence[Score | None]
    size: int

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """Return a column as an array."""
        return self.columns[column]

    def where(self, mask: npt.NDArray[np.bool_]) -> Samples:
        """Return some of the samples."""
        columns = {name: values[mask] for name, values in self.columns.items()}
        return Samples(columns, [self.scores[row] for row in np.flatnonzero(mask).tolist()], self.size)

    @property
    def there(self) -> Samples:
        """The answers that are not missing."""
        return self.where(self["there"])

    @property
    def graded(self) -> Samples:
        """The answers that have a verdict."""
        return self.where(self["graded"])

    def rows(self) -> Iterator[tuple[int, Score]]:
        """Yield the place of the item and the record of every sample that has one."""
        for place, score in zip(self["place"].tolist(), self.scores, strict=True):
            if score is not None:
                yield place, score

    def by_item(self) -> list[list[Score]]:
        """Return the records of every item, in the order of their numbers."""
        items: list[list[Score]] = [[] for _ in range(self.size)]
        for place, score in self.rows():
            items[place].append(score)
        return items

    @property
    def asked(self) -> npt.NDArray[np.bool_]:
        """True for items with a record, shape (items,)."""
        return self.number(self["state"] != "") > 0

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """True for items that were asked and lack no answer, shape (items,)."""
        return self.asked & (self.number(~self["there"]) == 0)

    def number(self, mask: npt.NDArray[np.bool_] | None = None) -> Ints:
        """Count the samples of every item, or some of them; shape (items,)."""
        places = self["place"] if mask is None else self["place"][mask]
        return np.bincount(places, minlength=self.size)

    def mean(self, column: str) -> Floats:
        """Return the mean of a column by item, shape (items,); NaN where no sample has a value."""
        values = self[column].astype(np.float64)
        known = ~np.isnan(values)
        sums = np.bincount(self["place"][known], weights=values[known], minlength=self.size)
        number = self.number(known)
        return np.where(number > 0, sums / np.maximum(number, 1), np.nan)


@dataclass(frozen=True)
class Answers(Samples):
    """All answers of a benchmark to items with a reference, with the rows of every condition."""

    spans: Mapping[Condition, slice]

    def of(self, condition: Condition) -> Samples:
        """Return the samples of a model under an arm and a strategy; none where it was not asked."""
        span = self.spans.get(condition, slice(0))
        return Samples({name: values[span] for name, values in self.columns.items()}, self.scores[span], self.size)

    def arms(self, model: str, strategy: str = Strategy.DIRECT) -> list[str]:
        """Return the arms under which a model was asked, sorted."""
        return sorted(arm for name, arm, asked in self.spans if (name, asked) == (model, strategy))


def paired_samples(first: Samples, second: Samples) -> list[tuple[int, Score, Score]]:
    """Return the place of the item and both records of every sample that has one on both sides; what is left of a vote is one sample."""

    def number(score: Score) -> int:
        return 0 if score.strategy == Strategy.SELF_CONSISTENCY else score.repeat

    others = {(place, number(score)): score for place, score in second.rows()}
    pairs = ((place, score, others.get((place, number(score)))) for place, score in first.rows())
    return [(place, score, other) for place, score, other in pairs if other is not None]


def gather_answers(items: Sequence[Item | Score], scores: Mapping[str, Sequence[Score]]) -> Answers:
    """Index the answers of all models.

    A sample of an item is expected for every number up to the highest that any item of its runner has; one under `self_consistency`, where
    the samples voted and one is left. Under the arm `full` every item is expected, under another one each that any model was asked.
    An expected sample without a record is missing.

    Parameters
    ----------
    items : sequence of Item or Score
        The items, or a record of each, sorted; records of others are left out.
    scores : mapping of str to sequence of Score
        Scores of one revision of every model, or of sides that are compared, by name.
    """
    places = {item.item_id: place for place, item in enumerate(items)}
    whole = str(Arm.FULL), str(Strategy.DIRECT)
    asked: dict[tuple[str, str], set[int]] = {whole: set(range(len(items)))}
    written: dict[Condition, list[Score]] = {(model, *whole): [] for model in scores}
    for model, rows in scores.items():
        for row in rows:
            if row.item_id in places:
                written.setdefault((model, row.arm, row.strategy), []).append(row)
                asked.setdefault((row.arm, row.strategy), set()).add(places[row.item_id])
    numbers: list[tuple[int, int]] = []
    records: list[Score | None] = []
    spans: dict[Condition, slice] = {}
    for condition in sorted(written):
        start = len(records)
        for place, repeat, record in _expected(condition[2], written[condition], items, places, sorted(asked[condition[1:]])):
            numbers.append((place, repeat))
            records.append(record)
        spans[condition] = slice(start, len(records))
    return Answers(_columns(numbers, records), records, len(items), spans)


def _expected(
    strategy: str, rows: Iterable[Score], items: Sequence[Item | Score], places: Mapping[str, int], asked: Iterable[int]
) -> Iterator[tuple[int, int, Score | None]]:
    """Yield place, number and record of every sample that is expected under one condition."""
    samples: dict[str, int] = {}
    records: dict[int, dict[int, Score]] = {}
    for row in rows:
        place = places[row.item_id]
        runner = items[place].runner
        samples[runner] = max(samples.get(runner, 1), row.repeat + 1)
        records.setdefault(place, {})[row.repeat] = row
    for place in asked:
        present = records.get(place, {})
        numbers: Iterable[int] = range(samples.get(items[place].runner, 1))
        if strategy == Strategy.SELF_CONSISTENCY:  # the sample that is left keeps its number
            numbers = list(present) or [0]
        for repeat in numbers:
            yield place, repeat, present.get(repeat)


def _columns(numbers: Sequence[tuple[int, int]], records: Sequence[Score | None]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of the samples, which have the place of their item and a number."""

    def values(name: str, absent: object = None) -> list[Any]:
        return [absent if row is None else getattr(row, name) for row in records]

    def flags(known: Iterable[object]) -> npt.NDArray[np.bool_]:
        return np.array([bool(value) for value in known], dtype=bool)

    state, parse_status = (np.array(values(name, ""), dtype=object) for name in ("state", "parse_status"))
    there, has_verdict = ~flags(values("missing", True)), flags(value is not None for value in values("passed"))
    graded, other_language = there & has_verdict, flags(values("other_language"))
    passed, foreign = graded & flags(values("passed")), other_language & ~has_verdict
    answered, candidates = there & (state == ResponseState.OK), values("in_candidates")
    places = np.array(numbers, dtype=np.int64).reshape(-1, 2)
    return {
        "place": places[:, 0],
        "repeat": places[:, 1],
        "state": state,
        "there": there,
        "graded": graded,
        "passed": passed,
        "strict": passed & (parse_status == ParseStatus.STRICT),
        "in_candidates": graded & flags(candidates),
        "unlisted": graded & flags(value is None for value in candidates),
        "abstained": there & flags(values("abstained")),
        "other_language": other_language,
        "foreign": foreign,
        "unparsable": answered & (parse_status == ParseStatus.FAILED) & ~foreign,
        "contradicted": answered & (parse_status == ParseStatus.CONTRADICTED),
        "in_thought": there & flags(row is not None and is_cut_in_thought(row.state, row.text) for row in records),
        **{name: np.array(values(name), dtype=np.float64) for name in ("confidence", *GRADES)},
    }
