"""The reference row `prior`: what knowing how common things are is worth, without looking at the patient."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable

import numpy as np

from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.records.items import Gold, Item, Runner
from neuralmedbench.tables.outcomes import K, Outcomes

PRIOR = "prior"
"""Name of the reference in the tables; it is computed at this stage and is not a model."""


def prior_values(outcomes: Outcomes) -> dict[str, Floats]:
    """Compute the expected pass of guessing the commonest answers among the other patients' items that look alike from outside.

    `pass1` (one guess) and `candidates5` (five guesses). Equally common answers share the guesses evenly, so the
    values are expectations and need no random draw. Of items of choice `pass1` is the chance of one option among all.

    Leave-one-patient-out: the patient's own items never count. Structured items are compared within modality,
    sequence, plane and the tag `dataset:` (the source), not by parts of a split; open ones within family, level and modality.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, (item, gold) in enumerate(zip(outcomes.items, outcomes.gold, strict=True)):
        groups[_looks(item, gold)].append(index)
    first, five = np.zeros(len(outcomes.items)), np.zeros(len(outcomes.items))
    for members in groups.values():
        answers = {index: _answer(outcomes.gold[index]) for index in members}
        everyone = Counter(answers.values())
        own: dict[int, Counter[str]] = defaultdict(Counter)
        for index in members:
            own[int(outcomes.patients[index])][answers[index]] += 1
        for index in members:
            others = everyone - own[int(outcomes.patients[index])]
            options = len(outcomes.items[index].options)
            first[index] = 1 / options if options else chance_among_commonest(others, answers[index], 1)
            five[index] = chance_among_commonest(others, answers[index], K)
    return {"pass1": first, "candidates5": np.where(outcomes.ranked, five, np.nan)}


def chance_among_commonest(others: Counter[str], answer: str, guesses: int) -> float:
    """Chance that an answer is among the commonest ones, ties drawn evenly.

    Examples
    --------
    >>> chance_among_commonest(Counter({"stroke": 2, "glioma": 1, "normal": 1}), "glioma", 2)
    0.5
    """
    if answer not in others:
        return 0.0
    commoner = sum(number > others[answer] for number in others.values())
    tied = sum(number == others[answer] for number in others.values())
    return float(min(1.0, max(0, guesses - commoner) / tied))


def _answer(gold: Gold) -> str:
    if gold.fields is not None and gold.fields.diagnosis_class is not None:
        return gold.fields.diagnosis_class
    return gold.answer.casefold()


def _looks(item: Item, gold: Gold) -> Hashable:
    if item.runner is Runner.STRUCTURED and gold.fields is not None:
        source = tuple(tag for tag in item.tags if tag.startswith("dataset:"))
        return (gold.fields.modality, gold.fields.sequence, gold.fields.plane, source)
    modality = sorted({"CT" if image.sequence in ("CT", "ceCT") else "MR" for image in item.images})
    return (item.family, item.level, tuple(modality))
