"""What an arm puts in place of what an item has.

A colleague's suggestion: the reference, or a plausible wrong answer written as if it were the reference. The options of a choice in another
order or without the right one, and the way back from a letter. A choice in place of an open question. Altered pictures.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from neuralmedbench.records.items import NO_LESION, OPTION, SIDE_WORDS, Family, Gold, Item, Lesion, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

DENIAL = re.compile(r"\b(?:no|not|none|nor|never|without|absent|absence|unremarkable|normal)\b", re.IGNORECASE)
"""Words that deny: a diagnosis with one of them has no rival."""
SUGGESTS = re.compile(r"suggestion-|own_answer-")
"""Beginning of the names of arms in which a colleague suggests an answer, or doubts one."""
OTHER_SIDE = {"left": "right", "right": "left"}
SHUFFLED = re.compile(r"options_shuffled-(\d+)")
"""Name of an arm that shows the options in another order, with its seed."""
CHOICE = re.compile(r"choice(?:_no_image)?-(\d+)")
"""Name of an arm that asks an open item as a choice among its rivals, with the rotation of their order."""
ROTATIONS = tuple(range(1, 5))
"""Rotations in which a choice is asked: who names the right one in all of them goes by its name, not by its place."""
RANKED = re.compile(r"\s*Rank up to five diagnoses\.")
"""Sentence that asks for a ranked list; a choice asks for one diagnosis."""
NONE_ARM, NONE_OF_THE_ABOVE = "none_of_the_above", "None of the above"
"""The arm that takes the right option away, and the text that stands in its place."""
REFERS = re.compile(
    r"\b(?:above|below|foregoing|preceding)\b|\b(?:all|both|none|neither|any|either) of (?:these|them|the (?:options|choices|answers))\b"
    r"|^\W*(?:both\s+|only\s+|options?\s+)?\(?[A-J]\)?(?:\s*(?:,|and|or|&|\+|/)\s*\(?[A-J]\)?)+(?:\s+only)?\W*$",
    re.IGNORECASE,
)
"""An option that speaks of other options, so that it says something else in another order: `all of the above`, `A and C`."""
NAMED = re.compile(r"\b(?:option|choice|answer)s?\s+\(?[A-J]\b")
"""A question that names an option by its letter."""
CHOICE_QUESTION = "What is the most likely diagnosis?"
"""Question of a dialogue that is asked as a choice: its rounds ask for lists."""
SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class AlteredPicture:
    """A picture made from one or several pictures of a case, for one arm.

    Attributes
    ----------
    case_id, arm : str
        Its case, and the arm that shows it.
    sources : tuple of str
        SHA-256 of the pictures that it was made from; it stands in the place of the first.
    volume_sha256 : str
        Digest of their scan, which the audit covers (in a benchmark of pictures, of the first source).
    path, sha256 : str
        The file, relative to the root of the project, and its digest.
    window : str
        Its CT windows, where its colours have several; empty: that of its source.
    quality : dict of str to float
        Quality numbers of the picture against its source, by name.
    """

    case_id: str
    arm: str
    sources: tuple[str, ...]
    volume_sha256: str
    path: str
    sha256: str
    window: str = ""
    quality: dict[str, float] = field(default_factory=dict)


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
    answer = vocabulary.of_reference(gold.answer, gold.icd10)
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
        return ", ".join(filter(None, (f"a lesion in the {gold.lesion.location}", SIDE_WORDS.get(gold.lesion.side, ""))))
    return gold.answer


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


def option_name(place: int) -> str:
    """Return the text of an option that is a picture, by its index from 0: the label under which the picture is shown."""
    return f"Option {LETTERS[place]}"


def is_movable(item: Item) -> bool:
    """Return True if the options of a choice item say the same in any order, and without one of them."""
    texts = (item.question, *(turn.question for turn in item.turns))
    apart = item.runner is Runner.CHOICE and len(item.options) > 1
    return apart and not any(map(REFERS.search, item.options)) and not any(map(NAMED.search, texts))


def option_order(item_id: str, options: int, seed: int) -> tuple[int, ...]:
    """Return the order in which an arm of shuffled options shows those of an item.

    Parameters
    ----------
    item_id : str
        The item.
    options : int
        Number of its options.
    seed : int
        Seed of the arm, from 1.

    Returns
    -------
    tuple of int
        For each place the index of the option that stands there. The orders of seeds 1 to `options` are the rotations of one order that the
        digest of the item fixes, so that every option stands once in every place (a Latin square); the next `options` seeds are those of
        another order, and so on.

    Examples
    --------
    >>> sorted(option_order("b/q1", 3, seed)[0] for seed in (1, 2, 3))
    [0, 1, 2]
    """
    square, turn = divmod(seed - 1, options)
    fixed = sorted(range(options), key=lambda index: by_digest(item_id, f"{square}\n{index}"))
    return (*fixed[turn:], *fixed[:turn])


def in_form(item: Item, arm: str) -> Item:
    """Return an item in the form in which an arm asks it: with rivals as a choice among them, in one message; else as it is."""
    if not item.rivals or not CHOICE.fullmatch(arm):
        return item
    # a dialogue shows what its rounds reveal at once
    reveals = [turn.reveal for turn in item.turns if turn.reveal]
    return replace(
        item,
        runner=Runner.CHOICE,
        question=CHOICE_QUESTION if item.turns else RANKED.sub("", item.question),
        turns=(),
        notes="\n\n".join(reveals) if item.turns else item.notes,
        options=item.rivals,
        rivals=(),
    )


def right_letter(item: Item, gold: Gold) -> str:
    """Return the letter of the right option of a choice; empty if no option is the reference."""
    if gold.choice:
        return gold.choice
    names = {normal_form(name) for name in (gold.answer, *gold.aliases)}
    right = [letter for letter, option in zip(LETTERS, item.options, strict=False) if normal_form(option) in names]
    return right[0] if len(right) == 1 else ""


def order_under(item: Item, arm: str) -> tuple[int, ...]:
    """Return for each place the index of the option that an arm shows there."""
    shuffled = SHUFFLED.fullmatch(arm) or CHOICE.fullmatch(arm) if item.runner is Runner.CHOICE else None
    return option_order(item.item_id, len(item.options), int(shuffled[1])) if shuffled else tuple(range(len(item.options)))


def in_order(item: Item, order: Sequence[int]) -> Item:
    """Show the options of an item in another order; their pictures move with them, and a picture is called by its new letter."""
    renamed = {item.options[old]: option_name(new) for new, old in enumerate(order) if item.options[old] == option_name(old)}
    pictured = {image.label for image in item.images if image.role == OPTION}
    texts = {text: renamed.get(text, text) if text in pictured else text for text in item.options}
    options = tuple(texts[item.options[old]] for old in order)
    images = [replace(image, label=texts[image.label]) if image.role == OPTION else image for image in item.images]
    # pictures of options come last, in the order of their letters
    images.sort(key=lambda image: options.index(image.label) + 1 if image.role == OPTION else 0)
    return replace(item, options=options, images=tuple(images))


def _without_right_option(item: Item, letter: str) -> Item:
    """Put "None of the above" in the place of the option with a letter; its picture goes."""
    place = LETTERS.index(letter)
    gone = item.options[place]
    options = (*item.options[:place], NONE_OF_THE_ABOVE, *item.options[place + 1 :])
    images = tuple(image for image in item.images if image.role != OPTION or image.label != gone)
    return replace(item, options=options, images=images)


def as_asked(item: Item, arm: str, *, right: str = "") -> Item:
    """Return an item with the options that an arm shows; `right` is the letter of the right option, where it is known."""
    item = in_form(item, arm)
    if item.runner is not Runner.CHOICE:
        return item
    if arm == NONE_ARM and right:
        return _without_right_option(item, right)
    return in_order(item, order_under(item, arm)) if SHUFFLED.fullmatch(arm) or CHOICE.fullmatch(arm) else item


def altered_key(row: AlteredPicture) -> tuple[str, str, tuple[str, ...], str]:
    """Return what is different for every altered picture of a benchmark: case, arm, sources and scan."""
    return row.case_id, row.arm, row.sources, row.volume_sha256
