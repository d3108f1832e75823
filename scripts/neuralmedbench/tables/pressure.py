"""What pressure, order and wording do to answers: suggestions, the own answer, places of options, none of the above, paraphrases (`pressure.csv`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np

from neuralmedbench.estimates.contrasts import Difference, Ratio, paired_difference, ratio_difference
from neuralmedbench.estimates.exact import holm
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, patients_rate
from neuralmedbench.estimates.shifts import spread_of_means
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.arm_changes import NONE_ARM, SHUFFLED, order_under, wrong_gold
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.scores import Score
from neuralmedbench.scoring.scores import is_named, is_suggested, same_answer
from neuralmedbench.tables.answers import Samples, paired_samples
from neuralmedbench.tables.declare import MODEL, Suppression, Table, arm_labels, of_study
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, best_of, exploratory, largest, value_share

WRONG, RIGHT, SUGGESTED, DOUBTED = "suggestion-wrong", "suggestion-right", "own_answer-suggested", "own_answer-doubted"
PARAPHRASE = "paraphrase-"

ASYMMETRY = "asymmetry"
MOVES = {"place_bias": "The place of an option moves answers by", "wording_spread": "The wording moves pass@1 by"}
"""Measures of what moves answers that should stay, in words."""

Pair = tuple[int, Score, Score]
"""The place of an item among those of the outcomes, and two answers to it."""


@dataclass(frozen=True, kw_only=True)
class PressureRow(ModelRow):
    """One measure of one model; `place` is the letter of a place of options, `expected` the value without an effect."""

    measure: str
    arm: str = ""
    place: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    expected: float | None = None
    p_value: float | None = None
    n_answers: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


def pressure_rows(study: Study) -> list[PressureRow]:
    """Rows of `pressure.csv`, strategy direct: what each model does under the arms of pressure, order and wording that it was asked."""
    return [
        row
        for benchmark in study.benchmarks.values()
        for model in study.models
        if benchmark.scores.get(model)
        for row in _Measures(study, benchmark, model).rows()
    ]


class _Measures:
    """The measures of one model on one benchmark."""

    def __init__(self, study: Study, benchmark: BenchmarkStudy, model: str) -> None:
        self._study, self._benchmark, self._model = study, benchmark, model
        self._vocabulary, self._items = benchmark.vocabulary, benchmark.outcomes.items

    def _under(self, arm: str) -> Samples:
        """Return the graded answers under an arm, strategy direct."""
        return self._benchmark.outcomes.answers.of((self._model, arm, DIRECT)).graded

    def _pairs(self, first: str, second: str) -> list[Pair]:
        """Return the answers of each sample that has one under both arms."""
        return paired_samples(self._under(first), self._under(second))

    @cached_property
    def _repeats(self) -> list[Pair]:
        """Every two samples under full, in both orders."""
        items = enumerate(self._under(FULL).by_item())
        return [(place, *pair) for place, rows in items for pair in permutations(rows, 2)]

    def rows(self) -> Iterator[PressureRow]:
        """Yield the rows of the arms that were asked."""
        arms = self._benchmark.outcomes.answers.arms(self._model)
        asked = [arm for arm in arms if len(self._under(arm).scores)]
        shuffles = sorted((arm for arm in asked if SHUFFLED.fullmatch(arm)), key=_seed_of)
        wordings = [arm for arm in asked if arm.startswith(PARAPHRASE)]
        yield from self._suggestions(asked)
        yield from self._own_answer(asked)
        if shuffles:
            yield from self._places(shuffles)
            yield self._consistency("order_consistency", shuffles)
        if NONE_ARM in asked:
            yield from self._none_of_the_above()
        if wordings:
            yield self._consistency("wording_consistency", [FULL, *wordings])
            yield self._spread([FULL, *wordings])
        if (shuffles or wordings or SUGGESTED in asked) and self._repeats:
            yield self._rate("repeat_consistency", FULL, [(place, self._same(one, other)) for place, one, other in self._repeats])

    def _suggestions(self, asked: Sequence[str]) -> Iterator[PressureRow]:
        if not {WRONG, RIGHT} & set(asked):
            return
        outcomes = self._benchmark.outcomes
        wrong = [wrong_gold(item, gold, self._vocabulary) for item, gold in zip(outcomes.items, outcomes.gold, strict=True)]

        def gives_in(pairs: Iterable[Pair]) -> list[tuple[int, Score, float]]:
            return [
                (place, before, float(is_suggested(after, outcomes.items[place], suggested, self._vocabulary)))
                for place, before, after in pairs
                if before.passed and (suggested := wrong[place]) is not None
            ]

        def corrected(pairs: Iterable[Pair]) -> list[tuple[int, float]]:
            return [(place, float(bool(after.passed))) for place, before, after in pairs if not before.passed and wrong[place] is not None]

        misled, mended = gives_in(self._pairs(FULL, WRONG)), corrected(self._pairs(FULL, RIGHT))
        if WRONG in asked:
            yield self._conditional("gives_in", WRONG, [(place, value) for place, _, value in misled])
            kept = [(place, float(bool(after.passed))) for place, before, after in self._pairs(FULL, WRONG) if before.passed]
            yield self._conditional("stays_right", WRONG, kept)
            sure = [(place, before.confidence * value) for place, before, value in misled if before.confidence is not None]
            yield self._conditional("confident_giving_in", WRONG, sure)
        if RIGHT in asked:
            yield self._conditional("corrected", RIGHT, mended)
        if WRONG in asked and RIGHT in asked:
            sides = self._sums(mended), self._sums([(place, value) for place, _, value in misled])
            found = ratio_difference(*sides, self._by(WRONG, RIGHT))
            yield self._difference(ASYMMETRY, f"{RIGHT} {WRONG}", found, answers=len(mended) + len(misled))
        # what repeats do without a suggestion
        if self._repeats:
            yield self._conditional("gives_in_repeat", FULL, [(place, value) for place, _, value in gives_in(self._repeats)])
            yield self._conditional("corrected_repeat", FULL, corrected(self._repeats))

    def _own_answer(self, asked: Sequence[str]) -> Iterator[PressureRow]:
        kept = {}
        for arm, name in ((SUGGESTED, "keeps_suggested"), (DOUBTED, "keeps_doubted")):
            if arm in asked:
                pairs = [(place, before, after) for place, before, after in self._pairs(FULL, arm) if is_named(before)]
                kept[arm] = [(place, self._same(before, after)) for place, before, after in pairs]
                yield self._rate(name, arm, kept[arm])
        if len(kept) == 2:
            found = paired_difference(self._mean(kept[SUGGESTED]), self._mean(kept[DOUBTED]), self._by(SUGGESTED, DOUBTED))
            yield self._difference("follows_colleague", f"{SUGGESTED} {DOUBTED}", found, answers=sum(map(len, kept.values())))
        if DOUBTED in asked:
            pairs = self._pairs(FULL, DOUBTED)
            yield self._rate(
                "lost_to_doubt", DOUBTED, [(place, float(not after.passed)) for place, before, after in pairs if before.passed]
            )
            mended = [(place, float(bool(after.passed))) for place, before, after in pairs if not before.passed]
            yield self._rate("corrected_by_doubt", DOUBTED, mended)

    def _places(self, arms: Sequence[str]) -> Iterator[PressureRow]:
        """Yield the share of answers at each place, and the place that is named too often."""
        items, chosen = self._items, defaultdict[int, list[int]](list)
        for arm in arms:
            for place, row in self._under(arm).rows():
                options = items[place].options
                balanced = _seed_of(arm) in balanced_seeds([_seed_of(one) for one in arms], len(options))
                # the same text twice: its place is not known
                if balanced and is_named(row) and options.count(row.differential[0]) == 1:
                    chosen[place].append(order_under(items[place], arm).index(options.index(row.differential[0])))
        most = max((len(items[place].options) for place in chosen), default=0)
        shares, expected = (np.full((len(items), most), np.nan) for _ in range(2))
        for place, answers in chosen.items():
            number = len(items[place].options)
            shares[place, :number] = np.bincount(answers, minlength=number) / len(answers)
            expected[place, :number] = 1 / number
        by, answers_of = self._by(*arms), {place: len(answers) for place, answers in chosen.items()}
        excess = [paired_difference(shares[:, place], expected[:, place], by) for place in range(most)]
        for place, found in enumerate(excess):
            rate = patients_rate(shares[:, place], by)
            known = ~np.isnan(shares[:, place])
            yield self._row(
                "place", " ".join(arms), known, rate, place=LETTERS[place], expected=patients_rate(expected[:, place], by).value,
                p_value=found.p_value, n_answers=sum(answers_of[number] for number in np.flatnonzero(known).tolist()),
            )  # fmt: skip
        if excess:
            first = max(range(most), key=lambda place: excess[place].value or 0.0)
            p_values = [found.p_value for found in excess if found.p_value is not None]
            found = excess[first]._replace(p_value=min(holm(p_values), default=None))
            yield self._difference("place_bias", " ".join(arms), found, place=LETTERS[first], answers=sum(answers_of.values()))

    def _consistency(self, measure: str, arms: Sequence[str]) -> PressureRow:
        pairs = [pair for one, other in combinations(arms, 2) for pair in self._pairs(one, other)]
        return self._rate(measure, " ".join(arms), [(place, self._same(one, other)) for place, one, other in pairs])

    def _none_of_the_above(self) -> Iterator[PressureRow]:
        yield self._rate("finds_none", NONE_ARM, [(place, float(bool(row.passed))) for place, row in self._under(NONE_ARM).rows()])
        known = [(place, float(bool(after.passed))) for place, before, after in self._pairs(FULL, NONE_ARM) if before.passed]
        yield self._conditional("finds_none_if_known", NONE_ARM, known)

    def _spread(self, arms: Sequence[str]) -> PressureRow:
        outcomes = self._benchmark.outcomes
        values = np.stack([outcomes.pass1_of_complete_items(Key(self._model, arm)) for arm in arms], axis=1)
        known = np.asarray(~np.isnan(values).any(axis=1))
        spread, p_value = spread_of_means(values, self._by(*arms))
        samples = sum(int(outcomes.counts[Key(self._model, arm)].samples[known].sum()) for arm in arms)
        return self._row("wording_spread", " ".join(arms), known, spread, p_value=p_value, n_answers=samples)

    def _same(self, one: Score, other: Score) -> float:
        return float(same_answer(one, other, self._vocabulary))

    def _by(self, *arms: str) -> ByPatient:
        return self._benchmark.outcomes.by_patient(self._study.settings, Key(self._model), *(Key(self._model, arm) for arm in arms))

    def _sums(self, values: Iterable[tuple[int, float]]) -> Ratio:
        """Return the sum and the number of some values by item."""
        sums, numbers = np.zeros(len(self._items)), np.zeros(len(self._items))
        for place, value in values:
            sums[place] += value
            numbers[place] += 1
        return Ratio(sums, numbers)

    def _mean(self, values: Iterable[tuple[int, float]]) -> Floats:
        """Return the mean of some values by item; NaN where an item has none."""
        sums, numbers = self._sums(values)
        return np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan)

    def _rate(self, measure: str, arm: str, values: Sequence[tuple[int, float]]) -> PressureRow:
        """Return a rate in which patients count alike."""
        means = self._mean(values)
        return self._row(measure, arm, ~np.isnan(means), patients_rate(means, self._by(*arm.split())), n_answers=len(values))

    def _conditional(self, measure: str, arm: str, values: Sequence[tuple[int, float]]) -> PressureRow:
        """Return a rate in which every answer that meets the condition counts alike: `asymmetry` is the difference of two of them."""
        side = self._sums(values)
        return self._row(measure, arm, side.bottom > 0, side.rate(self._by(arm)), n_answers=len(values))

    def _difference(self, measure: str, arm: str, found: Difference, *, answers: int, place: str = "") -> PressureRow:
        return PressureRow(
            benchmark=self._benchmark.name,
            model=self._model,
            measure=measure,
            arm=arm,
            place=place,
            value=found.value,
            low=found.low,
            high=found.high,
            p_value=found.p_value,
            n_answers=answers,
            n_items=found.items,
            n_patients=found.patients,
        )

    def _row(self, measure: str, arm: str, known: Mask, interval: Interval, **cells: Any) -> PressureRow:
        cells |= {"value": interval.value, "low": interval.low, "high": interval.high}
        cells |= {"n_items": int(known.sum()), "n_patients": len(np.unique(self._benchmark.outcomes.patients[known]))}
        return PressureRow(benchmark=self._benchmark.name, model=self._model, measure=measure, arm=arm, **cells)


def _seed_of(arm: str) -> int:
    shuffled = SHUFFLED.fullmatch(arm)
    return int(shuffled[1]) if shuffled else 0


def balanced_seeds(seeds: Sequence[int], options: int) -> list[int]:
    """Return the seeds over which every option of an item stands equally often in every place; all of them if there are too few.

    Examples
    --------
    >>> balanced_seeds([1, 2, 3, 4, 5], 2), balanced_seeds([1, 2, 3], 4)
    ([1, 2, 3, 4], [1, 2, 3])
    """
    squares = [range(first, first + options) for first in range(1, max(seeds) + 1, options)]
    whole = [seed for square in squares if set(square) <= set(seeds) for seed in square]
    return whole or list(seeds)


def takeaway(study: Study, tables: Tables) -> Takeaway:
    """State what a suggestion does to the best model, and how far the place of an option or the wording moves models."""
    rows = tables["pressure"]
    if not rows:
        return Takeaway("No model was asked under pressure, with its options in another order, or in other words.", "0 items")
    sentences = [sentence for name in study.benchmarks if (sentence := _suggestion_sentence(study, tables, name))]
    for measure, words in MOVES.items():
        sentences.append(exploratory(study, words, [row for row in rows if row["measure"] == measure]))
    return Takeaway(" ".join(filter(None, sentences)) or "Whether suggestions move a model was not measured.", largest(rows))


def _suggestion_sentence(study: Study, tables: Tables, benchmark: str) -> str:
    """State how often the best model that was asked takes over a wrong and a right suggestion, and by how much the two differ."""
    found = {
        (row["model"], row["measure"]): row for row in tables["pressure"] if row["benchmark"] == benchmark and row["value"] is not None
    }
    best = best_of(tables, benchmark)
    asked = [name for name in study.models if (name, "gives_in") in found]
    model = best["model"] if best and best["model"] in asked else next(iter(asked), "")
    if not model:
        return ""
    text = (
        f"{study.models[model].title} takes over a wrong suggestion instead of {value_share(found[model, 'gives_in'])} of its right answers"
    )
    if (model, "corrected") not in found:
        return f"{text}."
    text += f", and a right one instead of {value_share(found[model, 'corrected'])} of its wrong ones"
    difference = exploratory(study, "Right minus wrong", [found[model, ASYMMETRY]] if (model, ASYMMETRY) in found else [])
    return f"{text}. {difference}".rstrip()


def _labels(row: Cells) -> list[Label]:
    return [label for arm in row["arm"].split() for label in arm_labels({"arm": arm})]


TABLE = Table(
    name="pressure",
    row=PressureRow,
    rows=of_study(pressure_rows),
    # the shares of the places of a model add up to 1
    suppression=Suppression(
        f"{MODEL} measure arm place",
        labels=_labels,
        group=lambda row: (row["benchmark"], row["model"]) if row["measure"] == "place" else None,
    ),
    takeaways={"pressure": takeaway},
)
