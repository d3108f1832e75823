"""The floor of a benchmark: what the best constant answer earns, chosen on other patients. It is the row `prior` of the tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, Ints, codes_of, item_weights, rate_interval
from neuralmedbench.records.arm_changes import right_letter
from neuralmedbench.records.items import NO_LESION, Family, Gold, Item, ReferenceValue, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.records.scores import ParseStatus, Prediction
from neuralmedbench.records.value_reading import keywords_of
from neuralmedbench.records.value_rules import fields_of, is_right, read_value, right_text, threshold
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.matching import ReferenceAnswer
from neuralmedbench.scoring.places import MAX_PLACES
from neuralmedbench.scoring.rubric import verdict
from neuralmedbench.tables.outcomes import K, Outcomes

SPLITS, SEED = 2000, 1
"""Random halves of the patients over which the choice of the constant is averaged, and their seed: of twelve patients another seed moves the
floor by about 0.2 points. (Our rule.)"""

AT_ONCE = 100
"""Halves that are tried at the same time, so that a large benchmark fits into memory."""

MOST_ANSWERS, MOST_PLACES = 50, 10
"""Diagnoses, texts of options and lesion locations that are tried as constants: those of most patients. (Our rule.)"""

MOST_VALUES, TRIED = 200, 200
"""Answers of values that are tried as constants: of more than these, those that pass most of about this many items. (Our rule.)"""

T = TypeVar("T", str, "Constant")

Constant = tuple[tuple[str, str], ...]
"""An answer with values: text by field."""

BRACKET = "bracket"
"""Method of the interval of a floor: from the low end of the rate of the constant chosen on other patients to the high end of that in hindsight."""


class Floor(NamedTuple):
    """What the best constant answer earns; every array has shape (items,).

    Attributes
    ----------
    chosen : ndarray of float
        Pass rate of the constant that is best for one half of the patients, for the items of the other half; NaN where it does not apply.
    hindsight : ndarray of float
        Pass of the constant that is best for all items: no constant earns more.
    """

    chosen: Floats
    hindsight: Floats

    def at(self, items: npt.NDArray[np.bool_]) -> Floor:
        """Keep some items."""
        return Floor(self.chosen[items], self.hindsight[items])

    def interval(self, by: ByPatient, rate_of: Callable[[Floats, ByPatient], Interval] = rate_interval) -> Interval:
        """Return the rate with an interval for the best constant of all: what is chosen on few patients earns less, what is in hindsight more."""
        low, high = rate_of(self.chosen, by), rate_of(self.hindsight, by)
        return low if low.value is None else Interval(low.value, low.low, high.high, BRACKET)


def chance(outcomes: Outcomes) -> float | None:
    """Return the pass rate of one option drawn at random; None if an item has no options. It is computed, not sampled: no interval."""
    options = [len(item.options) for item in outcomes.items]
    return float(np.mean([1 / number for number in options])) if options and all(options) else None


def floors(outcomes: Outcomes, vocabulary: Vocabulary) -> dict[str, Floor]:
    """Return the floor of `pass1` and `pass1_patients` (one constant) and of `candidates5` (a constant list of five).

    One constant for each family; for structured items, whose pictures show what they are, also one for each modality, sequence, plane and
    source (tag `dataset:`), if that earns more. Whether a constant passes is decided by the rule of the item: letter or text of an option, class,
    diagnosis by the vocabulary, place and side of a lesion (up to three places may be named), values by the rules of their fields.
    """
    size = len(outcomes.items)
    one, alike = (Floor(np.zeros(size), np.zeros(size)) for _ in range(2))
    weights = item_weights(outcomes.patients)
    five = Floor(np.full(size, np.nan), np.full(size, np.nan))
    families: dict[Hashable, list[int]] = defaultdict(list)
    for index, item in enumerate(outcomes.items):
        # an open question and a dialogue are passed by the same answer; values are asked for by name
        form = tuple(fields_of(item.answer_schema)) if item.runner is Runner.STRUCTURED else ()
        families[item.family, Runner.OPEN if item.runner is Runner.DIALOGUE else item.runner, form].append(index)
    for members in families.values():
        items, gold = [outcomes.items[index] for index in members], [outcomes.gold[index] for index in members]
        patients = codes_of(outcomes.patients[members])
        passes = _passes(items, gold, patients, vocabulary)
        kinds = codes_of([repr(_kind_of(item, reference)) for item, reference in zip(items, gold, strict=True)])
        for column, values in zip(one, best_constant(passes, patients, kinds, 1), strict=True):
            column[members] = values
        # a constant is chosen by what it earns: here each item earns its weight
        own = weights[members]
        earned = best_constant(passes * own[:, None], patients, kinds, 1)
        for column, values in zip(alike, (earned.chosen / own, earned.hindsight / own), strict=True):
            column[members] = values
        if outcomes.ranked[members].all():
            for column, values in zip(five, best_constant(passes, patients, kinds, K), strict=True):
                column[members] = values
    return {"pass1": one, PASS1_PATIENTS: alike, "candidates5": five}


def options_only(items: Sequence[Item], gold: Sequence[Gold], patients: Ints) -> Floats:
    """Return what the best guess from the options alone gets right, shape (items,), chosen on other patients.

    The best of three kinds counts: any option; one that is chosen by how often its name is offered, or by its length; one name for all items, of
    a reference of several patients, and any option where it is not offered. Names by their references in the other half are no guess: a
    reference that was right there is seldom right here, because each is offered a fixed number of times.
    """
    offered = Counter(normal_form(option) for item in items for option in item.options)
    right = [normal_form(item.options[LETTERS.index(right_letter(item, row))]) for item, row in zip(items, gold, strict=True)]
    scores = (lambda name: offered[name], lambda name: -offered[name], len)
    by_rule = np.array([[_guessed(item, name, score) for score in scores] for item, name in zip(items, right, strict=True)])
    several = [
        name for name in _commonest(right, patients) if len({p for p, own in zip(patients.tolist(), right, strict=True) if own == name}) > 1
    ]
    by_name = _text_passes(items, right, several)
    weights, alike = item_weights(patients), np.zeros(len(items), dtype=np.int64)
    earned = [best_constant(passes * weights[:, None], patients, alike, 1).chosen / weights for passes in (by_rule, by_name) if passes.size]
    earned.append(np.array([1 / len(item.options) for item in items]))
    return max(earned, key=lambda values: float((values * weights).sum()))


def _guessed(item: Item, right: str, score: Callable[[str], float]) -> float:
    """Return the chance that the option with the highest score is right; equally high ones share it."""
    names = [normal_form(option) for option in item.options]
    highest = max(map(score, names))
    best = [name for name in names if score(name) == highest]
    return best.count(right) / len(best)


def best_constant(passes: Floats, patients: Ints, kinds: Ints, guesses: int) -> Floor:
    """Choose constants on one half of the patients, and try them on the other.

    Parameters
    ----------
    passes : ndarray of float, shape (items, constants)
        Pass of each constant, 0 to 1; times the weight of the item, if items count differently.
    patients, kinds : ndarray of int, shape (items,)
        Patient and kind of each item, numbered from 0.
    guesses : int
        Length of the constant list; it passes where one of its answers does.
    """
    if not passes.size:  # references that no answer can equal, such as those of sets with criteria alone
        return Floor(np.zeros(len(passes)), np.zeros(len(passes)))
    rng = np.random.default_rng(SEED)
    of_family, of_kind = np.zeros(len(passes)), np.zeros(len(passes))
    for _ in range(SPLITS // AT_ONCE):
        by_family, by_kind = _rates_of_halves(rng, passes, patients, kinds, guesses)
        of_family += by_family.sum(axis=0)
        of_kind += by_kind.sum(axis=0)
    chosen = max((of_family / SPLITS, of_kind / SPLITS), key=lambda values: float(values.mean()))
    hindsight = np.zeros(len(passes))
    for kind in np.unique(kinds):
        own = passes[kinds == kind]
        hindsight[kinds == kind] = own[:, _order(own, patients[kinds == kind])[:guesses]].max(axis=1)
    return Floor(chosen, hindsight)


def _order(passes: Floats, patients: Ints) -> list[int]:
    """Return constants from the best to the worst, whatever their order is.

    First stand those that pass most items; of these, items of most patients; of these, the earliest of the items in which they differ.
    """
    sums = passes.sum(axis=0).round(9)
    numbers = [len(np.unique(patients[own > 0])) for own in passes.T]
    return sorted(range(passes.shape[1]), key=lambda place: (-sums[place], -numbers[place], *-passes[:, place]))


def _rates_of_halves(rng: np.random.Generator, passes: Floats, patients: Ints, kinds: Ints, guesses: int) -> tuple[Floats, Floats]:
    """Return the pass rate of each item in some random halves, shape (halves, items), of constants of the family and of the kind."""
    number = int(patients.max()) + 1
    order = np.argsort(rng.random((AT_ONCE, number)), axis=1)
    first: npt.NDArray[np.bool_] = order.take(patients, axis=1) < number // 2
    # equally good constants take turns: less than the smallest difference between two sums is added at random
    turns = rng.random((2, AT_ONCE, passes.shape[1])) * 1e-6
    of_family = _rates_of_best(passes, first, turns, guesses)
    of_kind = of_family.copy()
    for kind in np.unique(kinds) if kinds.any() else ():
        own = kinds == kind
        # without a patient of this kind in both halves, the constant of the family is used
        known = np.asarray(first[:, own].any(axis=1) & ~first[:, own].all(axis=1))[:, None]
        of_kind[:, own] = np.where(known, _rates_of_best(passes[own], first[:, own], turns, guesses), of_family[:, own])
    return of_family, of_kind


def _rates_of_best(passes: Floats, first: npt.NDArray[np.bool_], turns: Floats, guesses: int) -> Floats:
    """Return the pass rate of each item in each split, shape (splits, items), of the constants that are best for the half without it."""
    found = np.zeros(first.shape)
    for half, turn in zip((first, np.logical_not(first)), turns, strict=True):
        sums = np.logical_not(half).astype(np.float64) @ passes
        best = np.argsort(-(sums + turn), axis=1)[:, :guesses]
        # an answer that passed nothing in the other half is not known there
        known = np.take_along_axis(sums, best, axis=1) > 0
        found = np.where(half, np.where(known[:, :, None], passes.T[best], 0.0).max(axis=1), found)
    # nothing is learned where all patients are in one half
    return np.where(np.asarray(first.any(axis=1) & ~first.all(axis=1))[:, None], found, 0.0)


def _passes(items: Sequence[Item], gold: Sequence[Gold], patients: Ints, vocabulary: Vocabulary) -> Floats:
    """Return which constant passes which item of one family and runner, shape (items, constants), 0 to 1."""
    if items[0].runner is Runner.CHOICE:
        return _option_passes(items, gold, patients)
    if items[0].runner is Runner.STRUCTURED and fields_of(items[0].answer_schema):
        return _value_passes(gold, patients)
    if items[0].runner is Runner.STRUCTURED:
        labels = [row.fields.diagnosis_class if row.fields else None for row in gold]
        return np.array([[label == constant for constant in _commonest(labels, patients)] for label in labels], dtype=np.float64)
    # equal references have equal rows
    references = [(row.answer, row.aliases, row.icd10, row.lesion and (row.lesion.location, row.lesion.side)) for row in gold]
    firsts = {repr(reference): place for place, reference in reversed(list(enumerate(references)))}
    constants = _lesion_constants(gold, patients) if _asks_place(items[0]) else _diagnosis_constants(gold, patients, vocabulary)
    rows = {}
    for name, place in firsts.items():
        reference = ReferenceAnswer.of(gold[place], vocabulary)
        rows[name] = [verdict(constant, items[place], reference)[1] for constant in constants]
    return np.array([rows[repr(one)] for one in references], dtype=np.float64)


def _asks_place(item: Item) -> bool:
    return item.family is Family.LESION_RECOGNITION


def _commonest(answers: Sequence[T | None], patients: Ints, number: int = MOST_ANSWERS) -> list[T]:
    """Return the answers of most patients, in that order."""
    counts = Counter(
        answer for answer, _ in sorted({(answer, int(patient)) for answer, patient in zip(answers, patients, strict=True) if answer})
    )
    return [answer for answer, _ in counts.most_common(number)]


def _option_passes(items: Sequence[Item], gold: Sequence[Gold], patients: Ints) -> Floats:
    """One letter for all items; or one text, and where it is no option any letter, which passes by chance."""
    letters = sorted({row.choice for row in gold})
    texts = _commonest([normal_form(row.answer) for row in gold], patients)
    by_letter = np.array([[letter == row.choice for letter in letters] for row in gold], dtype=np.float64)
    return np.concatenate([by_letter, _text_passes(items, [normal_form(row.answer) for row in gold], texts)], axis=1)


def _text_passes(items: Sequence[Item], right: Sequence[str], texts: Sequence[str]) -> Floats:
    """Return what one text for all items passes, shape (items, texts); where it is no option, any option."""
    rows = []
    for item, name in zip(items, right, strict=True):
        offered = {normal_form(option) for option in item.options}
        rows.append([float(text == name) if text in offered else 1 / max(len(item.options), 1) for text in texts])
    return np.array(rows, dtype=np.float64).reshape(len(items), len(texts))


def _value_passes(gold: Sequence[Gold], patients: Ints) -> Floats:
    """One answer for all items: the values of a reference, with either limit in place of a number.

    The items that a number passes change only at a limit, so the best constant number is one. For keywords, which a list of words without
    sense can pass, also the commonest keywords together.
    """
    common = _commonest(
        [constant for row in gold for constant in _constants_of(row)],
        np.repeat(patients, [len(_constants_of(row)) for row in gold]),
        len(gold) * 3,
    )
    constants = [*_keyword_lists(gold, patients), *common]
    tried = gold[:: max(len(gold) // TRIED, 1)]
    if len(constants) > MOST_VALUES:
        earned = _pass_matrix(tried, constants).sum(axis=0)
        constants = [constants[place] for place in np.sort(np.argsort(-earned, kind="stable")[:MOST_VALUES])]
    return _pass_matrix(gold, constants)


def _constants_of(gold: Gold) -> list[Constant]:
    """Return the reference as an answer, and again with the lower and with the upper limit of every number."""
    values = [value for value in gold.values if value.decides and threshold(value) is not None]
    own = tuple((value.field, " ".join(keywords_of(value.value)) if value.rule == "keywords" else right_text(value)) for value in values)
    if all(value.low is None for value in values):
        return [own]
    ends = [
        [repr(end) if end is not None else text for end, (_, text) in zip(limits, own, strict=True)]
        for limits in ([v.low for v in values], [v.high for v in values])
    ]
    return [own, *(tuple((value.field, text) for value, text in zip(values, texts, strict=True)) for texts in ends)]


def _keyword_lists(gold: Sequence[Gold], patients: Ints) -> list[Constant]:
    keywords = [
        (word, patient)
        for row, patient in zip(gold, patients, strict=True)
        for value in row.values
        if value.rule == "keywords" and value.at_least is not None
        for word in keywords_of(value.value)
    ]
    fields = sorted({value.field for row in gold for value in row.values if value.rule == "keywords"})
    listed = " ".join(_commonest([word for word, _ in keywords], np.array([patient for _, patient in keywords], dtype=np.int64)))
    return [tuple((field, listed) for field in fields)] if listed else []


def _pass_matrix(gold: Sequence[Gold], constants: Sequence[Constant]) -> Floats:
    """Return which constant passes which item, shape (items, constants); every text is read once per rule."""
    answers, read = [dict(constant) for constant in constants], cache(read_value)
    rows: dict[tuple[ReferenceValue, ...], list[bool]] = {}
    for row in gold:
        if row.values not in rows:
            wanted = [value for value in row.values if value.decides and threshold(value) is not None]
            rows[row.values] = [
                all(is_right(read(value.rule, answer.get(value.field, "")), value) for value in wanted) for answer in answers
            ]
    return np.array([rows[row.values] for row in gold], dtype=np.float64)


def _diagnosis_constants(gold: Sequence[Gold], patients: Ints, vocabulary: Vocabulary) -> list[Prediction]:
    names = [known.name if (known := vocabulary.of_whole_reference(row.answer, row.icd10)) else row.answer for row in gold]
    return [Prediction(parse_status=ParseStatus.STRICT, differential=(name,)) for name in _commonest(names, patients)]


def _lesion_constants(gold: Sequence[Gold], patients: Ints) -> list[Prediction]:
    """Up to three of the commonest places with each side, and that there is no lesion."""
    places = _commonest([row.lesion.location if row.lesion else None for row in gold], patients, MOST_PLACES)
    sides = sorted({row.lesion.side for row in gold if row.lesion})
    named = [", ".join(some) for number in range(1, MAX_PLACES + 1) for some in combinations(places, number)]
    answers = [{"lesion": "lesion", "location": place, "side": side} for place in named for side in sides]
    return [Prediction(parse_status=ParseStatus.STRICT, fields=fields) for fields in ({"lesion": NO_LESION}, *answers)]


def _kind_of(item: Item, gold: Gold) -> Hashable:
    """Return what a structured item's picture shows without its diagnosis."""
    if item.runner is not Runner.STRUCTURED or gold.fields is None:
        return ()
    source = tuple(tag for tag in item.tags if tag.startswith("dataset:"))
    return (gold.fields.modality, gold.fields.sequence, gold.fields.plane, source)
