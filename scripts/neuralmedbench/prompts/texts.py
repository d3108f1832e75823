"""How much of a case's text is told: the first words of it, in the order in which they are shown."""

from __future__ import annotations

import re
from dataclasses import replace

from neuralmedbench.records.items import Item, Turn

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
