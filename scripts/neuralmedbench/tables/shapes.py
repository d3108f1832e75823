"""Rows of `measures.csv`, `contrasts.csv` and `counts.csv` about one model on one benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from itertools import product
from typing import Any, TypeVar

import numpy as np

from neuralmedbench.estimates.contrasts import INCONCLUSIVE, Difference, Ratio, paired_difference, ratio_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, patients_rate, rate_interval
from neuralmedbench.records.items import Arm, Strategy
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.tables.answers import Samples
from neuralmedbench.tables.family import FamilyTest, Paired
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Cells, ContrastRow, CountRow, MeasureRow, ResultRow
from neuralmedbench.tables.study import BenchmarkStudy, Study

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
