"""Everything that a model is sent of an item, by where it stands: what the search for answers reads."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from neuralmedbench.records.items import Arm, Item, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import Request

DISCLOSING = frozenset({Arm.FINDINGS_DISCLOSED, Arm.EVIDENCE_SUPPLIED})
"""Arms that show a part of gold on purpose: only what they disclose is searched."""


@dataclass(frozen=True)
class Place:
    """One text that is searched, and the texts of the arms that may show it.

    An arm shows a term when its text holds the line of the term as far as the term goes: arms and text budgets cut at the end.
    """

    text: str
    shown: Mapping[str, str]

    def arms(self, start: int, end: int) -> set[str]:
        """Arms that show what stands from `start` to `end`."""
        line = self.text[self.text.rfind("\n", 0, start) + 1 : end].strip()
        return {arm for arm, text in self.shown.items() if line in text}


def places_of_item(item: Item, requests: Iterable[Request]) -> dict[str, Place]:
    """Give everything that is sent of an item.

    Parameters
    ----------
    item : Item
        The item.
    requests : iterable of Request
        Its requests in every arm and strategy. Answered examples of other patients are passed over: they name answers on purpose.

    Returns
    -------
    dict of str to Place
        By where it stands, as in `AnswerLeak.where`; empty texts are left out. The printed options of an item of choice, those that are
        pictures too, and the labels of a structured form are no text of the item.
    """
    asked = list(requests)
    plain, disclosing = ([row for row in asked if (row.arm in DISCLOSING) is wanted] for wanted in (False, True))
    own = own_texts(item)
    messages = _by_arm((row.arm, _said(row)) for row in plain)
    places = {where: Place(text, messages) for where, text in own.items()}
    rests = _by_arm((row.arm, _rest(_said(row), own, item)) for row in plain)
    places["template"] = Place(_lines(rests.values()), rests)
    known = {line for rest in rests.values() for line in rest.split("\n")}
    told = _by_arm((row.arm, _without(_rest(_said(row), own, item), known)) for row in disclosing)
    places["disclosed"] = Place(_lines(told.values()), told)
    pictures = [(row.arm, [image for turn in row.turns for image in turn.images if not (image.example or image.option)]) for row in asked]
    labels = _by_arm((arm, "\n".join(image.label for image in images)) for arm, images in pictures)
    places["labels"] = Place(_lines(labels.values()), labels)
    names = _by_arm((arm, "\n".join(PurePosixPath(image.path).name for image in images)) for arm, images in pictures)
    places["file names"] = Place(_lines(names.values()), names)
    ids = "\n".join((item.item_id.removeprefix(f"{item.benchmark}/"), item.case_id, item.pair_id))
    places["metadata"] = Place(ids, {row.arm: ids for row in asked})
    return {where: place for where, place in places.items() if place.text.strip()}


def own_texts(item: Item) -> dict[str, str]:
    """Give what an item itself tells, by where it stands."""
    texts = {"question": item.question, "given": item.given, "notes": item.notes, "record": item.record}
    for number, turn in enumerate(item.turns, start=1):
        texts[f"turn {number}"] = f"{turn.reveal}\n{turn.question}" if turn.reveal and turn.question else turn.reveal or turn.question
    if item.runner is Runner.OPEN:
        texts["options"] = "\n".join(item.options)
    return {where: text for where, text in texts.items() if text.strip()}


def _said(request: Request) -> str:
    return "\n".join((request.system, *(turn.text[turn.example_characters :] for turn in request.turns)))


def _rest(text: str, own: Mapping[str, str], item: Item) -> str:
    """Take out of a message what the item tells, and the options or labels that it prints for the answer."""
    parts = {part.strip() for whole in own.values() for part in (whole, *whole.split("\n"), _cut(whole, text)) if part.strip()}
    for part in sorted(parts, key=lambda part: (-len(part), part)):
        text = text.replace(part, "\n")
    printed = {f"{letter}. {option}" for letter, option in zip(LETTERS, item.options, strict=False)}
    for option in sorted(printed, key=lambda option: (-len(option), option)):
        text = text.replace(option, "\n")
    lines = text.split("\n")
    return "\n".join(line for line in lines if not (item.runner is Runner.STRUCTURED and line.startswith('"')))


def _cut(whole: str, text: str) -> str:
    """Give as much of a text as a message shows of it: arms and text budgets cut it behind a word."""
    if whole.strip() in text:
        return ""
    ends = [match.end() for match in re.finditer(r"\S+", whole)]
    shown = bisect_left(ends, True, key=lambda end: whole[:end].strip() not in text)
    return whole[: ends[shown - 1]] if shown > 1 else ""


def _without(text: str, known: set[str]) -> str:
    return "\n".join(line for line in text.split("\n") if line not in known)


def _by_arm(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Put the texts of the strategies of one arm together."""
    found: dict[str, dict[str, None]] = {}
    for arm, text in texts:
        found.setdefault(arm, {})[text] = None
    return {arm: "\n".join(parts) for arm, parts in found.items()}


def _lines(texts: Iterable[str]) -> str:
    """Give every different line once, in order."""
    return "\n".join(dict.fromkeys(line for text in texts for line in text.split("\n") if line.strip()))


def by_item(requests: Iterable[Request]) -> dict[str, Sequence[Request]]:
    """Give the requests of each item."""
    found: dict[str, list[Request]] = {}
    for request in requests:
        found.setdefault(request.item_id, []).append(request)
    return dict(found)
