"""What an arm shows of an item: pictures and text left out, exchanged, added or cut."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from neuralmedbench.errors import ConfigError
from neuralmedbench.records.items import FIRST_PART, OPTION, Arm, Disclosure, Item, ItemImage, Turn


@dataclass(frozen=True)
class View:
    """What an arm shows of an item: the item with what is left of it, and the text that the arm discloses."""

    item: Item
    disclosed: str = ""


def views(items: Sequence[Item], arm: str, disclosures: Iterable[Disclosure]) -> list[View]:
    """Show every item as an arm shows it."""
    if part := FIRST_PART.fullmatch(arm):
        return [View(first_part(item, int(part[1]))) for item in items if (item.notes or item.record) and count_words(item) > 1]
    if arm == Arm.SHUFFLED_IMAGE:
        donors = donors_of(items)
        return [View(with_images(item, evidence(donors[item.item_id]))) for item in items if item.item_id in donors]
    if arm in CHANGES:
        changes, change = CHANGES[Arm(arm)]
        return [View(change(item)) for item in items if changes(item)]
    texts = {row.item_id: row.text for row in disclosures if row.arm == arm and row.text}
    return [View(item, texts[item.item_id]) for item in items if item.item_id in texts]


def evidence(item: Item) -> tuple[ItemImage, ...]:
    """Give the pictures that an item is about; those that are options of a choice are no evidence, and stay under every arm."""
    return tuple(image for image in item.images if image.role != OPTION)


def with_images(item: Item, images: tuple[ItemImage, ...]) -> Item:
    """Give the item with these pictures in place of its own, options aside; in a dialogue in the last turn that showed any."""
    shown = [number for number, turn in enumerate(item.turns) if turn.image_ids]
    ids = tuple(image.image_id for image in images)
    turns = [replace(turn, image_ids=ids if shown and number == shown[-1] else ()) for number, turn in enumerate(item.turns)]
    return replace(item, images=(*images, *(image for image in item.images if image.role == OPTION)), turns=tuple(turns))


def without_text(item: Item) -> Item:
    """Give the item without notes and record; the questions, and with them the rounds of a dialogue, stay."""
    return replace(item, notes="", record="", turns=tuple(replace(turn, reveal="") for turn in item.turns))


def first_part(item: Item, percent: int) -> Item:
    """Give the item with the first so many per cent of the words of its notes and, behind them, of its record."""
    return first_words(item, max(1, count_words(item) * percent // 100))


def has_text(item: Item) -> bool:
    """Whether the item tells anything of the case in words."""
    return bool(item.notes or item.record or any(turn.reveal for turn in item.turns))


CHANGES: dict[Arm, tuple[Callable[[Item], bool], Callable[[Item], Item]]] = {
    Arm.FULL: (lambda _: True, lambda item: item),
    Arm.NO_IMAGE: (lambda item: bool(evidence(item)), lambda item: with_images(item, ())),
    Arm.NO_TEXT: (has_text, without_text),
    Arm.DIAGNOSIS_WITHHELD: (lambda item: bool(item.given), lambda item: replace(item, given="")),
}
"""Arms that only take something away: to which items they do, and what is left."""


def donors_of(items: Sequence[Item]) -> Mapping[str, Item]:
    """Choose for each item with pictures an item of another patient whose pictures are shown instead.

    Notes
    -----
    Patients stand on a ring in the order of the digest of their id, and each gets the pictures of the next one: nobody
    gets the own pictures, it is the same in every run, and a new patient changes the donor of one other patient only.
    """
    with_pictures = [item for item in items if evidence(item)]
    ring = sorted({item.patient_id for item in with_pictures}, key=lambda patient: hashlib.sha256(patient.encode()).hexdigest())
    if len(ring) < 2:
        message = "the arm 'shuffled_image' needs pictures of at least two patients; take it out of `arms`"
        raise ConfigError(message)
    following = dict(zip(ring, ring[1:] + ring[:1], strict=True))
    donors: dict[str, Item] = {}
    for patient in ring:
        own = sorted((item for item in with_pictures if item.patient_id == patient), key=lambda item: item.item_id)
        others = sorted((item for item in with_pictures if item.patient_id == following[patient]), key=lambda item: item.item_id)
        for number, item in enumerate(own):
            donors[item.item_id] = others[number % len(others)]
    return donors


WORD = re.compile(r"\S+")


def count_words(item: Item) -> int:
    """Words of the case: of its notes and its record, or of what the turns of a dialogue reveal."""
    return sum(len(WORD.findall(text)) for text in (item.notes, item.record, *(turn.reveal for turn in item.turns)))


def first_words(item: Item, most: int) -> Item:
    """Give the item with the first words of its case only."""
    notes, left = _first(item.notes, most)
    record, left = _first(item.record, left)
    turns: list[Turn] = []
    for turn in item.turns:
        reveal, left = _first(turn.reveal, left)
        turns.append(replace(turn, reveal=reveal))
    return replace(item, notes=notes, record=record, turns=tuple(turns))


def within_words(item: Item, most: int | None) -> tuple[Item, int]:
    """Cut the case to the text budget of a benchmark."""
    cut = 0 if most is None else max(0, count_words(item) - most)
    return (first_words(item, most) if most is not None and cut else item), cut


def _first(text: str, most: int) -> tuple[str, int]:
    """Cut one text, and say how many words are left for the next one."""
    ends = [match.end() for match in WORD.finditer(text)]
    if len(ends) <= most:
        return text, most - len(ends)
    return text[: ends[most - 1]] if most else "", 0
