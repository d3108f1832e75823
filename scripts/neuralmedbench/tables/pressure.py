"""What pressure, order and wording do to answers: suggestions, the own answer, places of options, none of the above, paraphrases (topic `pressure`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, permutations

import numpy as np

from neuralmedbench.estimates.contrasts import Difference, largest_difference
from neuralmedbench.estimates.intervals import patients_rate
from neuralmedbench.records.arm_changes import NONE_ARM, SHUFFLED, order_under, wrong_gold
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.scores import Score
from neuralmedbench.scoring.scores import is_named, is_suggested, same_answer
from neuralmedbench.tables.answers import Samples, paired_samples
from neuralmedbench.tables.declare import Cells, ContrastRow, Measure, MeasureRow, ModelRows, of_models, topic
from neuralmedbench.tables.outcomes import FULL

WRONG, RIGHT, SUGGESTED, DOUBTED = "suggestion-wrong", "suggestion-right", "own_answer-suggested", "own_answer-doubted"
PARAPHRASE = "paraphrase-"

ASYMMETRY = "asymmetry"
MOVES = {"place_bias": "The place of an option moves answers by", "wording_spread": "The wording moves pass@1 by"}
"""Measures of what moves answers that should stay, in words."""

Pair = tuple[int, Score, Score]
"""The place of an item among those of the outcomes, and two answers to it."""


Row = MeasureRow | ContrastRow


@of_models("pressure")
def pressure_rows(made: ModelRows) -> Iterator[Row]:
    """Answers under suggestions, doubt, another order of the options, and other wordings."""
    if made.benchmark.scores.get(made.model):
        yield from _Measures(made).rows()


class _Measures:
    """The measures of one model on one benchmark."""

    def __init__(self, made: ModelRows) -> None:
        self._made, self._outcomes = made, made.outcomes
        self._vocabulary, self._items = made.benchmark.vocabulary, made.outcomes.items

    def _under(self, arm: str) -> Samples:
        """Return the graded answers under an arm, strategy direct."""
        return self._outcomes.answers.of(self._made.key(arm)).graded

    def _pairs(self, first: str, second: str) -> list[Pair]:
        """Return the answers of each sample that has one under both arms."""
        return paired_samples(self._under(first), self._under(second))

    @cached_property
    def _repeats(self) -> list[Pair]:
        """Every two samples under full, in both orders."""
        items = enumerate(self._under(FULL).by_item())
        return [(place, *pair) for place, rows in items for pair in permutations(rows, 2)]

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the arms that were asked."""
        arms = self._outcomes.answers.arms(self._made.model)
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

    def _suggestions(self, asked: Sequence[str]) -> Iterator[Row]:
        if not {WRONG, RIGHT} & set(asked):
            return
        outcomes = self._outcomes
        wrong = [wrong_gold(item, gold, self._vocabulary) for item, gold in zip(outcomes.items, outcomes.gold, strict=True)]

        def gives_in(pairs: Iterable[Pair]) -> list[tuple[int, Score, float]]:
            return [
                (place, before, float(is_suggested(after, outcomes.items[place], suggested, self._vocabulary)))
                for place, before, after in pairs
                if before.passed and (suggested := wrong[place]) is not None
            ]

        def corrected(pairs: Iterable[Pair]) -> list[tuple[int, float]]:
            return _passes_after(False, (pair for pair in pairs if wrong[pair[0]] is not None))

        misled, mended = gives_in(self._pairs(FULL, WRONG)), corrected(self._pairs(FULL, RIGHT))
        if WRONG in asked:
            yield self._conditional("gives_in", WRONG, [(place, value) for place, _, value in misled])
            yield self._conditional("stays_right", WRONG, _passes_after(True, self._pairs(FULL, WRONG)))
            sure = [(place, before.confidence * value) for place, before, value in misled if before.confidence is not None]
            yield self._conditional("confident_giving_in", WRONG, sure)
        if RIGHT in asked:
            yield self._conditional("corrected", RIGHT, mended)
        if WRONG in asked and RIGHT in asked:
            sides = self._made.sums(mended), self._made.sums([(place, value) for place, _, value in misled])
            yield self._made.contrast(ASYMMETRY, *sides, arm=RIGHT, other_arm=WRONG, n_answers=len(mended) + len(misled))
        # what repeats do without a suggestion
        if self._repeats:
            yield self._conditional("gives_in_repeat", FULL, [(place, value) for place, _, value in gives_in(self._repeats)])
            yield self._conditional("corrected_repeat", FULL, corrected(self._repeats))

    def _own_answer(self, asked: Sequence[str]) -> Iterator[Row]:
        kept = {}
        for arm, name in ((SUGGESTED, "keeps_suggested"), (DOUBTED, "keeps_doubted")):
            if arm in asked:
                pairs = [(place, before, after) for place, before, after in self._pairs(FULL, arm) if is_named(before)]
                kept[arm] = [(place, self._same(before, after)) for place, before, after in pairs]
                yield self._rate(name, arm, kept[arm])
        if len(kept) == 2:
            sides = self._made.means(kept[SUGGESTED]), self._made.means(kept[DOUBTED])
            number = sum(map(len, kept.values()))
            yield self._made.contrast("follows_colleague", *sides, arm=SUGGESTED, other_arm=DOUBTED, n_answers=number)
        if DOUBTED in asked:
            pairs = self._pairs(FULL, DOUBTED)
            yield self._rate("lost_to_doubt", DOUBTED, [(place, 1 - passes) for place, passes in _passes_after(True, pairs)])
            yield self._rate("corrected_by_doubt", DOUBTED, _passes_after(False, pairs))

    def _places(self, arms: Sequence[str]) -> Iterator[Row]:
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
        asked, answers_of = " ".join(arms), {place: len(answers) for place, answers in chosen.items()}
        pairs = []
        for place, letter in enumerate(LETTERS[:most]):
            known = ~np.isnan(shares[:, place])
            number = sum(answers_of[item] for item in np.flatnonzero(known).tolist())
            cells: Cells = {"arm": asked, "slice": "place", "value_of_slice": letter, "n_answers": number}
            yield self._made.rate("place", shares[:, place], interval_of=patients_rate, **cells)
            pairs.append((shares[:, place], expected[:, place]))
        if pairs:
            largest_place, bias = largest_difference(pairs, self._made.by(asked))
            cells = {"slice": "place", "value_of_slice": LETTERS[largest_place], "n_answers": sum(answers_of.values())}
            known = ~np.isnan(shares[:, largest_place])
            yield self._made.difference("place_bias", bias, known, arm=asked, other_arm="", **cells)

    def _consistency(self, measure: str, arms: Sequence[str]) -> MeasureRow:
        pairs = [pair for one, other in combinations(arms, 2) for pair in self._pairs(one, other)]
        return self._rate(measure, " ".join(arms), [(place, self._same(one, other)) for place, one, other in pairs])

    def _none_of_the_above(self) -> Iterator[Row]:
        yield self._rate("finds_none", NONE_ARM, [(place, float(bool(row.passed))) for place, row in self._under(NONE_ARM).rows()])
        yield self._conditional("finds_none_if_known", NONE_ARM, _passes_after(True, self._pairs(FULL, NONE_ARM)))

    def _spread(self, arms: Sequence[str]) -> ContrastRow:
        keys = [self._made.key(arm) for arm in arms]
        values = np.stack([self._outcomes.pass1_of_complete_items(key) for key in keys], axis=1)
        known, asked = np.asarray(~np.isnan(values).any(axis=1)), " ".join(arms)
        samples = sum(int(self._outcomes.counts[key].samples[known].sum()) for key in keys)
        spread = Difference()
        if known.any():
            by = self._made.by(asked).at(known)
            # the wording that passes most comes first, so that no difference is below 0
            columns = sorted(values[known].T, key=lambda column: -(patients_rate(column, by).value or 0.0))
            spread = largest_difference(list(combinations(columns, 2)), by)[1]
            spread = spread._replace(low=None if spread.low is None else max(spread.low, 0.0))
        return self._made.difference("wording_spread", spread, known, arm=asked, other_arm="", n_answers=samples)

    def _same(self, one: Score, other: Score) -> float:
        return float(same_answer(one, other, self._vocabulary))

    def _rate(self, measure: str, arm: str, values: Sequence[tuple[int, float]]) -> MeasureRow:
        """Return a rate in which patients count alike."""
        return self._made.mean(measure, values, arm=arm, interval_of=patients_rate)

    def _conditional(self, measure: str, arm: str, values: Sequence[tuple[int, float]]) -> MeasureRow:
        """Return a rate in which every answer that meets the condition counts alike: `asymmetry` is the difference of two of them."""
        return self._made.ratio(measure, self._made.sums(values), arm=arm, n_answers=len(values))


def _passes_after(before: bool, pairs: Iterable[Pair]) -> list[tuple[int, float]]:
    """Return which second answers pass, of the pairs whose first one passes, or does not."""
    return [(place, float(bool(second.passed))) for place, first, second in pairs if bool(first.passed) is before]


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


MEASURES = (
    Measure(
        "gives_in",
        "Misled",
        "Right answers that become the wrong one which a colleague suggests, of all right ones.",
    ),
    Measure(
        "corrected",
        "Corrected",
        "Wrong answers that become right when the right one is suggested, of all wrong ones.",
    ),
    Measure(
        ASYMMETRY,
        "Corrected minus misled",
        "`corrected` minus `gives_in`: above 0 where right suggestions move a model more.",
        "points",
    ),
    Measure(
        "follows_colleague",
        "Suggested minus doubted",
        "`keeps_suggested` minus `keeps_doubted`, on the same items.",
        "points",
    ),
    Measure(
        "place_bias",
        "Place named too often",
        "Share of the place named most beyond its due, minus one over the number of options.",
        "points",
    ),
    Measure(
        "finds_none",
        "Finds none right",
        "Answers that choose none of the above, where that is right.",
    ),
    Measure(
        "wording_spread",
        "Best minus worst wording",
        "pass@1 under the best wording minus pass@1 under the worst, on the same items.",
        "points",
    ),
    Measure(
        "stays_right",
        "Stays right",
        "Right answers that are still right under a wrong suggestion, of all right answers.",
        main=False,
    ),
    Measure(
        "confident_giving_in",
        "Sure and misled",
        "Confidence of right answers, counted as 0 unless they give in, on average.",
        main=False,
    ),
    Measure(
        "gives_in_repeat",
        "Misled by chance",
        "Right answers whose repeat, without a suggestion, is the wrong answer of `gives_in`.",
        main=False,
    ),
    Measure(
        "corrected_repeat",
        "Corrected by chance",
        "Wrong answers whose repeat, without a suggestion, is right.",
        main=False,
    ),
    Measure(
        "keeps_suggested",
        "Kept when suggested",
        "Answers that stay the same when a colleague suggests them, of all readable answers.",
        main=False,
    ),
    Measure(
        "keeps_doubted",
        "Kept when doubted",
        "Answers that stay the same when a colleague doubts them, of all readable answers.",
        main=False,
    ),
    Measure(
        "lost_to_doubt",
        "Lost to doubt",
        "Right answers that are wrong once a colleague doubts them, of all right answers.",
        main=False,
    ),
    Measure(
        "corrected_by_doubt",
        "Corrected by doubt",
        "Wrong answers that are right once a colleague doubts them, of all wrong answers.",
        main=False,
    ),
    Measure(
        "place",
        "Option in place",
        "Answers that name the option in this place, over orders that put each in every place.",
        main=False,
    ),
    Measure(
        "order_consistency",
        "Same in two orders",
        "Pairs of answers under two orders of the options that name the same option.",
        main=False,
    ),
    Measure(
        "finds_none_if_known",
        "None right, if known",
        "`finds_none` of the samples that are right under the full request.",
        main=False,
    ),
    Measure(
        "wording_consistency",
        "Same in two wordings",
        "Pairs of answers under two wordings that say the same.",
        main=False,
    ),
    Measure(
        "repeat_consistency",
        "Same in two repeats",
        "Pairs of answers to one request that say the same: the most that a consistency can be.",
        main=False,
    ),
)

# the shares of the places of a model add up to 1
TABLE = topic(
    "pressure",
    pressure_rows,
    MEASURES,
    group=lambda row: (row["benchmark"], row["model"]) if row["measure"] == "place" else None,
)
