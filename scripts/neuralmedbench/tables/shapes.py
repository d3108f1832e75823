"""Rows of `measures.csv` and `contrasts.csv` about one model on one benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from neuralmedbench.estimates.contrasts import Ratio, paired_difference, ratio_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, rate_interval
from neuralmedbench.records.items import Arm, Strategy
from neuralmedbench.tables.answers import Samples
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import ContrastRow, CountRow, MeasureRow
from neuralmedbench.tables.study import BenchmarkStudy, Study


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

    def by(self, arms: str, strategy: str = Strategy.DIRECT) -> ByPatient:
        """Return the patients of the items under some arms."""
        keys = [Key(self.model, arm, strategy) for arm in arms.split()]
        return self.outcomes.by_patient(self.study.settings, Key(self.model), *keys)

    def rate(
        self,
        measure: str,
        values: Floats,
        *,
        arm: str = Arm.FULL,
        strategy: str = Strategy.DIRECT,
        least: float = 0.0,
        most: float = 1.0,
        **cells: Any,
    ) -> MeasureRow:
        """Return the mean of item values, shape (items,), NaN where an item has none; `least` and `most` are the ends of their scale."""
        known = ~np.isnan(values)
        interval = Interval()
        if known.any():
            interval = rate_interval((values - least) / (most - least), self.by(arm, strategy))
            value, low, high = (None if end is None else least + end * (most - least) for end in interval[:3])
            interval = interval._replace(value=value, low=low, high=high)
        return self._measure(measure, known, interval, arm=arm, strategy=strategy, **cells)

    def mean(self, measure: str, values: Iterable[tuple[int, float | None]], **cells: Any) -> MeasureRow:
        """Return the mean over items, each the mean of its answers, given as place of the item and value; None where a value means nothing."""
        given = list(values)
        known = [(place, value) for place, value in given if value is not None]
        side = self.sums(known)
        means = np.where(side.bottom > 0, side.top / np.maximum(side.bottom, 1), np.nan)
        return self.rate(measure, means, **({"n_answers": len(given), "left_out": len(given) - len(known)} | cells))

    def sums(self, values: Iterable[tuple[int, float]]) -> Ratio:
        """Return the sum and the number of some values by item."""
        sums, numbers = np.zeros(len(self.outcomes.items)), np.zeros(len(self.outcomes.items))
        for place, value in values:
            sums[place] += value
            numbers[place] += 1
        return Ratio(sums, numbers)

    def ratio(self, measure: str, side: Ratio, *, arm: str = Arm.FULL, **cells: Any) -> MeasureRow:
        """Return a rate in which every answer that meets a condition counts alike."""
        return self._measure(measure, side.bottom > 0, side.rate(self.by(arm)), arm=arm, **cells)

    def contrast(
        self,
        measure: str,
        first: Floats | Ratio,
        second: Floats | Ratio,
        *,
        arm: str = Arm.FULL,
        other_arm: str = Arm.FULL,
        strategy: str = Strategy.DIRECT,
        **cells: Any,
    ) -> ContrastRow:
        """Return the first side minus the second, over the items that both have."""
        by = self.by(f"{arm} {other_arm}", strategy)
        if isinstance(first, Ratio) and isinstance(second, Ratio):
            found = ratio_difference(first, second, by)
            patients = self._patients((first.bottom > 0) | (second.bottom > 0))
        else:
            found = paired_difference(np.asarray(first), np.asarray(second), by)
            patients = self._patients(~np.isnan(np.asarray(first) + np.asarray(second)))
        ends = {"difference": found.value, "low": found.low, "high": found.high, "p_value": found.p_value}
        return ContrastRow(
            benchmark=self.benchmark.name,
            model=self.model,
            topic=self.topic,
            measure=measure,
            arm=arm,
            other_arm=other_arm,
            strategy=strategy,
            n_items=found.items,
            n_patients=patients,
            **(ends | cells),
        )

    def plain(self, measure: str, **cells: Any) -> MeasureRow:
        """Return a value as it is given, without an interval."""
        return MeasureRow(benchmark=self.benchmark.name, model=self.model, topic=self.topic, measure=measure, **cells)

    def count(self, measure: str, count: int, of: int, **cells: Any) -> CountRow:
        """Return how many of some answers, or items, are of a kind."""
        cells |= {"count": count, "of": of, "share": count / of if of else None}
        return CountRow(benchmark=self.benchmark.name, model=self.model, topic=self.topic, measure=measure, **cells)

    def _measure(self, measure: str, known: Mask, interval: Interval, **cells: Any) -> MeasureRow:
        return MeasureRow(
            benchmark=self.benchmark.name,
            model=self.model,
            topic=self.topic,
            measure=measure,
            value=interval.value,
            low=interval.low,
            high=interval.high,
            **({"n_items": int(known.sum()), "n_patients": self._patients(known)} | cells),
        )

    def _patients(self, known: Mask) -> int:
        return len(np.unique(self.outcomes.patients[known]))
