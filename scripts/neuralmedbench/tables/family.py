"""The one family: what a sentence at a glance may claim, and its corrected p values.

The primary, if one was stated, is tested first, at the whole error. Only where it is significant, or where
none was stated, all others are tested together: the title, the pictures, and every two models of a benchmark. Which
model leads is chosen by the same answers, so all pairs are corrected, and those with the leader are claimed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from neuralmedbench.estimates.contrasts import Difference, paired_difference, paired_parts, smallest_difference
from neuralmedbench.estimates.intervals import Floats, codes_of, item_weights
from neuralmedbench.estimates.step_down import corrected_together
from neuralmedbench.records.items import Arm, Axis
from neuralmedbench.records.results import FEWEST
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import Key, Outcomes
from neuralmedbench.tables.recognition import CHOICE_ARMS, asks_choice, title_sides
from neuralmedbench.tables.study import Study

PRIMARY, FIRST_SCREEN = "primary", "first screen"
"""The families: the stated comparison, and what is tested beside it."""


class Compared(NamedTuple):
    """Two models on a benchmark, in the order of the run list, or one without and with its pictures (`other` is empty).

    With `title` what one recognises and what it finds.
    """

    benchmark: str
    model: str
    other: str = ""
    title: bool = False


class FamilyTest(NamedTuple):
    """The corrected p value of a comparison, None where it is not tested; the standard error of its difference; what is corrected together.

    `level` is that at which it is tested at least: the whole error, or its part of it.
    """

    p_corrected: float | None
    error: float
    family: str = FIRST_SCREEN
    level: float = 0.0

    def corrected(self, p_value: float | None) -> float | None:
        """Return the corrected p value, no smaller than the one of the comparison alone, which agrees with its interval."""
        return None if self.p_corrected is None or p_value is None else max(self.p_corrected, p_value)

    def detectable(self, patients: int | None) -> float | None:
        """Return the smallest difference that the study has 80 % power to detect; None where none is known."""
        if self.p_corrected is None or not patients or patients < 2 or self.error <= 0:
            return None
        return smallest_difference(self.error, patients, self.level)


class Paired(NamedTuple):
    """pass@1 under two keys: the first minus the second, over some items without a missing answer under both."""

    first: Key
    second: Key
    items: Mask
    difference: Difference

    def unread_that_may_turn(self, outcomes: Outcomes, limit: float) -> float | None:
        """Return the share of unread answers of the lower side, patients alike, if the interval would hold 0 had they passed; else None.

        Up to the limit of missing answers they are wrong.
        """
        value, low, high, *_ = self.difference
        if value is None:
            return None
        counts = outcomes.counts[self.second if value > 0 else self.first]
        weights = item_weights(codes_of(outcomes.patients[self.items]))
        unread = float((counts.mean_of(counts.unread)[self.items] * weights).mean())
        nearest = min(abs(value if end is None else end) for end in (low, high))
        return unread if unread > limit and nearest <= unread else None


def first_answer_of(study: Study) -> str:
    """Return the day of the first answer to the stated comparison; empty where it is of another run."""
    stated = study.stated
    if stated is None or stated.benchmark not in study.benchmarks or not {stated.first, stated.second} <= study.models.keys():
        return ""
    responses = study.benchmarks[stated.benchmark].responses
    days = [row.called_on for model in (stated.first, stated.second) for row in responses[model]]
    return min(filter(None, days), default=stated.on)


def primary_of(study: Study) -> Compared | None:
    """Return the stated comparison in the order of the run list; None if it is of another run, or was stated after its first answer."""
    stated = study.stated
    if stated is None or first_answer_of(study) < stated.on:
        return None
    first, second = sorted((stated.first, stated.second), key=list(study.models).index)
    return Compared(stated.benchmark, first, second)


def corrected_family(study: Study) -> dict[Compared, FamilyTest]:
    """Correct all that a sentence at a glance may claim."""
    primary, alpha = primary_of(study), 1 - study.settings.confidence
    family = {primary: _primary_tested(study, primary, alpha)} if primary else {}
    pictured = picture_benchmarks(study, _asked_without_pictures(study))
    compared = [[one for one in _compared(study, name, pictured) if one != primary] for name in study.benchmarks]
    compared = [group for group in compared if group]
    groups = []
    for group in compared:
        parts = [_parts(study, one) for one in group]
        family |= {one: FamilyTest(None, error) for one, (error, _) in zip(group, parts, strict=True)}
        groups.append(np.stack([values for _, values in parts], axis=1))
    corrected = corrected_together(groups, study.settings, family[primary].p_corrected if primary else None)
    tested = sum(int((~np.isnan(p_values)).sum()) for p_values in corrected)
    for group, p_values in zip(compared, corrected, strict=True):
        for one, p_value in zip(group, p_values.tolist(), strict=True):
            if not np.isnan(p_value):
                family[one] = family[one]._replace(p_corrected=p_value, level=alpha / tested)
    return family


def _compared(study: Study, benchmark: str, pictured: Collection[str]) -> Iterator[Compared]:
    """Yield the comparisons of a benchmark."""
    models = [name for name in study.models if name not in study.readers]
    outcomes = study.benchmarks[benchmark].outcomes
    yield from (Compared(benchmark, model, title=True) for model in models if asks_choice(outcomes, model))
    if benchmark in pictured:
        yield from (Compared(benchmark, model) for model in models if Key(model, Arm.NO_IMAGE) in outcomes.counts)
    yield from (Compared(benchmark, first, second) for first, second in combinations(models, 2))


def _keys(compared: Compared) -> tuple[Key, ...]:
    if compared.title:
        return (*(Key(compared.model, arm) for arm in CHOICE_ARMS), Key(compared.model))
    if compared.other:
        return Key(compared.model), Key(compared.other)
    return Key(compared.model, Arm.NO_IMAGE), Key(compared.model)


def _values(study: Study, compared: Compared) -> tuple[Floats, Floats]:
    outcomes = study.benchmarks[compared.benchmark].outcomes
    if compared.title:
        return title_sides(outcomes, compared.model)
    first, second = (outcomes.pass1_of_complete_items(key) for key in _keys(compared))
    return first, second


def _parts(study: Study, compared: Compared) -> tuple[float, Floats]:
    """Return the standard error of a difference, and what each patient adds to it; of a cluster its first patient stands for all."""
    outcomes = study.benchmarks[compared.benchmark].outcomes
    patients = outcomes.by_patient(study.settings)
    by = patients if compared.other else outcomes.by_patient(study.settings, *_keys(compared))
    first, second = _values(study, compared)
    parts, both = paired_parts(first, second, by), ~np.isnan(first + second)
    _, places = np.unique(by.codes[both], return_index=True)
    values = np.zeros(patients.clusters)
    values[patients.codes[both][places]] = parts.values
    return parts.error, values


def _primary_tested(study: Study, primary: Compared, alpha: float) -> FamilyTest:
    """Return the p value and the error of the primary; p is 1 where it cannot be tested, or where unread answers could turn it."""
    outcomes, settings = study.benchmarks[primary.benchmark].outcomes, study.settings
    difference, keys = paired_difference(*_values(study, primary), outcomes.by_patient(settings)), _keys(primary)
    paired = Paired(keys[0], keys[1], outcomes.complete(*keys), difference)
    unread = paired.unread_that_may_turn(outcomes, settings.max_missing_fraction)
    p_value = difference.p_value if unread is None else None
    return FamilyTest(1.0 if p_value is None else p_value, difference.error, PRIMARY, alpha)


def _asked_without_pictures(study: Study) -> Iterator[Mapping[str, Any]]:
    """Yield what `picture_benchmarks` reads of topic `arms`."""
    for name, benchmark in study.benchmarks.items():
        for model in study.models:
            if Key(model, Arm.NO_IMAGE) in benchmark.outcomes.counts:
                both = benchmark.outcomes.complete(*_keys(Compared(name, model)))
                patients = len(np.unique(benchmark.outcomes.patients[both]))
                yield {
                    "benchmark": name,
                    "model": model,
                    "arm": Arm.NO_IMAGE,
                    "difference": 0.0 if patients else None,
                    "n_patients": patients,
                }


def picture_benchmarks(study: Study, arms: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the benchmarks whose comparison with and without pictures a sentence may state, by topic `arms`.

    Those of depth; where no model answered one of them both ways for at least `FEWEST` patients, the other benchmark with the most. (Our rule.)
    """
    patients: dict[str, int] = {}
    for row in arms:
        if row["arm"] == Arm.NO_IMAGE and row["difference"] is not None and row["model"] not in study.readers:
            patients[row["benchmark"]] = max(patients.get(row["benchmark"], 0), row["n_patients"] or 0)
    asked = [name for name in study.benchmarks if name in patients]
    depth = [name for name in asked if study.benchmarks[name].config.axis is Axis.DEPTH]
    others = [name for name in asked if name not in depth and patients[name] >= FEWEST]
    if not others or any(patients[name] >= FEWEST for name in depth):
        return sorted(depth, key=lambda name: patients[name] < FEWEST)
    return [max(others, key=lambda name: patients[name])]
