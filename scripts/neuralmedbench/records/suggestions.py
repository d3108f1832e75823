"""What a colleague may suggest for an item: its reference, or a plausible wrong answer, written as if it were the reference."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from neuralmedbench.records.items import NO_LESION, Family, Gold, Item, Lesion, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

DENIAL = re.compile(r"\b(?:no|not|none|nor|never|without|absent|absence|unremarkable|normal)\b", re.IGNORECASE)
"""Words that deny: a diagnosis with one of them has no rival."""

SUGGESTS = re.compile(r"suggestion-|own_answer-")
"""Beginning of the names of arms in which a colleague suggests an answer, or doubts one."""

OTHER_SIDE = {"left": "right", "right": "left"}

PLACES = {"left": "on the left", "right": "on the right", "bilateral": "on both sides", "midline": "in the midline"}


def by_digest(item_id: str, name: str) -> str:
    """Return the key by which one of several is chosen for an item: another for each item, the same on every machine."""
    return hashlib.sha256(f"{item_id}\n{name}".encode()).hexdigest()


def rival(item_id: str, answer: Diagnosis, vocabulary: Vocabulary, near: Callable[[Diagnosis], bool]) -> Diagnosis | None:
    """Choose a wrong diagnosis that is like the right one.

    Parameters
    ----------
    item_id : str
        The item: items of one disease have different rivals.
    answer : Diagnosis
        The right one.
    vocabulary : Vocabulary
        Where it is found.
    near : callable
        True for a diagnosis that is the right one, or a wider or narrower term of it.

    Returns
    -------
    Diagnosis or None
        A sibling; where there is none, a diagnosis that is confused with it. By a digest, so that a new diagnosis in the vocabulary changes
        few of them. None without one, and for the absence of a disease.
    """
    if DENIAL.search(answer.name):
        return None
    known = vocabulary.diagnoses
    siblings = [entry for entry in known.values() if answer.parent and entry.parent == answer.parent]
    confused = [known[key] for key in answer.confusable if key in known]
    fitting = [entry for entry in siblings or confused if not (near(entry) or DENIAL.search(entry.name))]
    return min(fitting, key=lambda entry: by_digest(item_id, entry.key)) if fitting else None


def wrong_gold(item: Item, gold: Gold, vocabulary: Vocabulary) -> Gold | None:
    """Return a plausible wrong answer to an item.

    Parameters
    ----------
    item : Item
        The item.
    gold : Gold
        Its reference.
    vocabulary : Vocabulary
        Diagnoses and places.

    Returns
    -------
    Gold or None
        The wrong answer as if it were the reference: another option, a rival diagnosis, the other side of the lesion (another place, where it
        has no side), another class. None where there is none: the diagnosis is stated in the question, or the vocabulary knows no rival.
    """
    if item.given:
        return None
    if item.runner is Runner.CHOICE:
        return _another_option(item, gold)
    if item.runner is Runner.STRUCTURED:
        return _another_class(item, gold)
    if item.family is Family.LESION_RECOGNITION:
        return _another_place(item, gold, vocabulary)
    answer = _entry(gold, vocabulary)
    if answer is None:
        return None
    related = {answer.key, *(entry.key for entry in (*vocabulary.ancestors(answer.key), *vocabulary.descendants(answer.key)))}
    named = {entry.key for name in (gold.answer, *gold.aliases) if (entry := vocabulary.find(name))}
    other = rival(item.item_id, answer, vocabulary, lambda entry: entry.key in related | named)
    return replace(gold, answer=other.name, aliases=(), icd10="") if other else None


def suggestion_words(item: Item, gold: Gold) -> str:
    """Write an answer as a colleague would suggest it: an option with its letter, a diagnosis, the place of a lesion, a class."""
    if item.runner is Runner.CHOICE:
        return f"{gold.choice}. {item.options[LETTERS.index(gold.choice)]}"
    if item.runner is Runner.STRUCTURED and gold.fields:
        return f'"class": "{gold.fields.diagnosis_class}"'
    if item.family is Family.LESION_RECOGNITION and gold.lesion:
        return ", ".join(filter(None, (f"a lesion in the {gold.lesion.location}", PLACES.get(gold.lesion.side, ""))))
    return gold.answer


def _entry(gold: Gold, vocabulary: Vocabulary) -> Diagnosis | None:
    plain = re.sub(r"\([^()]*\)", " ", gold.answer)
    return vocabulary.find(plain) or vocabulary.find(gold.answer) or (vocabulary.find(gold.icd10) if gold.icd10 else None)


def _chosen(item: Item, names: Iterable[str]) -> str:
    return min(names, key=lambda name: by_digest(item.item_id, name), default="")


def _another_option(item: Item, gold: Gold) -> Gold | None:
    right = normal_form(item.options[LETTERS.index(gold.choice)]) if gold.choice else ""
    others = [letter for letter, option in zip(LETTERS, item.options, strict=False) if normal_form(option) != right]
    letter = _chosen(item, others) if gold.choice else ""
    return replace(gold, choice=letter, answer=item.options[LETTERS.index(letter)], aliases=(), icd10="") if letter else None


def _another_class(item: Item, gold: Gold) -> Gold | None:
    if gold.fields is None or not gold.fields.diagnosis_class or not item.answer_schema:
        return None
    allowed = json.loads(item.answer_schema).get("properties", {}).get("class", {}).get("enum", ())
    label = _chosen(item, (label for label in allowed if label and label != gold.fields.diagnosis_class))
    return replace(gold, fields=replace(gold.fields, diagnosis_class=label), answer=label, aliases=(), icd10="") if label else None


def _another_place(item: Item, gold: Gold, vocabulary: Vocabulary) -> Gold | None:
    lesion = gold.lesion
    if lesion is None or gold.answer == NO_LESION:
        return None
    if lesion.side in OTHER_SIDE:
        return replace(gold, lesion=replace(lesion, side=OTHER_SIDE[lesion.side]))
    place = _chosen(item, (name for name in vocabulary.locations if _apart(name, lesion.location, vocabulary)))
    return replace(gold, lesion=Lesion(location=place, side="", behaviour={})) if place else None


def _apart(one: str, other: str, vocabulary: Vocabulary) -> bool:
    """Return True if two places are different ones, neither of them within the other."""
    around, names = vocabulary.regions.around, vocabulary.regions.names
    first, second = (names.get(normal_form(place), frozenset()) for place in (one, other))
    within = any(a in around[b] or b in around[a] for a in first for b in second)
    return normal_form(one) != normal_form(other) and not within
