"""What a case holds: its examinations, the titles under which they stand, and the kinds that they are of."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from neuralmedbench.records.case import Sequence as Scan
from neuralmedbench.records.examinations import wording
from neuralmedbench.records.vocabulary import normal_form


class EvidenceKind(StrEnum):
    """Source of an examination: pictures, the health record, or the notes."""

    PICTURES = "pictures"
    RECORD = "record"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True)
class Examination:
    """One unit of evidence.

    Attributes
    ----------
    name : str
        `FLAIR, axial`, `cerebrospinal fluid`, `examination`; unique in the case.
    kind : EvidenceKind
        Its source.
    text : str
        What it says; empty for pictures.
    sequence, plane : str
        Of pictures.
    image_ids : tuple of str
        Of pictures.
    """

    name: str
    kind: EvidenceKind
    text: str = ""
    sequence: str = ""
    plane: str = ""
    image_ids: tuple[str, ...] = ()


class RequestOutcome(StrEnum):
    """Reply to a request: the examination, that the case does not hold it, or that no examination was named."""

    GIVEN = "given"
    ABSENT = "absent"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class RequestMatch:
    """The outcome of a request, and the place of the examination that it asks for."""

    outcome: RequestOutcome
    place: int | None = None


@lru_cache(maxsize=1 << 12)
def entry_names(examination: Examination) -> tuple[str, ...]:
    """Return the names of record entries, in normal form; none of pictures and notes."""
    if examination.kind is not EvidenceKind.RECORD:
        return ()
    return tuple(normal_form(line.partition(":")[0]) for line in examination.text.splitlines())


@lru_cache(maxsize=1 << 12)
def title_of(examination: Examination) -> str:
    """Return the hospital's own words for a note or a group of entries, in normal form; empty if they say nothing of their own."""
    if examination.kind is EvidenceKind.PICTURES:
        return ""
    title = normal_form(examination.name) if examination.kind is EvidenceKind.RECORD else heading_of(examination)
    title = " ".join(word for word in title.split() if not word.isdecimal())
    telling = {singular(word) for word in title.split()} - wording.POLITE_WORDS - TITLE_WORDS
    return title if telling and len(title.split()) <= LONGEST_TITLE else ""


def heading_of(note: Examination) -> str:
    """Return what stands before the first colon of a note, in normal form; empty if that is no heading."""
    head, colon, _ = note.text.partition(":")
    return normal_form(head) if colon and len(head.split()) <= LONGEST_TITLE + 2 else ""


def singular(word: str) -> str:
    """Return a word without the ending of a plural."""
    return word.removesuffix("s") if len(word) >= SHORTEST_PART else word


SHORTEST_PART = 4
"""Letters of a word that is written in short: `mammo`."""
LONGEST_TITLE = 5
TITLE_WORDS = frozenset(("history", "report", "note", "finding", "summary", "course", "blood", "test", "level", "record", "chart", "list"))
"""Words that many titles have."""
TITLE_FILLERS = frozenset(
    ("of", "the", "and", "in", "on", "at", "for", "current", "detailed", "full", "regular", "report", "record", "list", "chart", "note")
)
"""Words of a title that a request may leave out."""


def group_of(examination: Examination) -> str:
    """Return the name of an examination without its number."""
    return examination.name.partition(" (")[0]


@lru_cache(maxsize=1 << 12)
def kinds_of(examination: Examination) -> frozenset[str]:
    """Return the kinds that a request may call an examination by; none if its title says nothing.

    A note without a heading and its colon is of the section as which it begins (`Examination, in the evening`), or a history.
    """
    if examination.kind is EvidenceKind.PICTURES:
        return frozenset({"CT" if examination.sequence in (Scan.CT, Scan.CE_CT) else "MRI"})
    if not examination.text:
        return frozenset()
    title = normal_form(group_of(examination))
    if examination.kind is EvidenceKind.NOTE:
        title = heading_of(examination) or ("" if title == wording.FURTHER else title)
    patterns = wording.TITLES | wording.ORGANS
    kinds = {name for name, pattern in patterns.items() if pattern.search(title)} if title else {wording.ANY_HISTORY}
    return frozenset(kinds - {wording.ANY_HISTORY} if len(kinds) > 1 else kinds)


def group_of_entry(variable: str) -> str:
    """Return the group of a record entry; an entry of no group is one of its own."""
    plain = normal_form(variable)
    return next((name for name, pattern in wording.ENTRIES.items() if re.search(pattern, plain)), variable)


def section_of_note(text: str) -> str:
    """Return the section that a paragraph of a note is, by its heading; `further history` if it has none."""
    plain = normal_form(text)
    return next((name for name, pattern in wording.HEADINGS.items() if re.match(rf"(?:{pattern})\b", plain)), wording.FURTHER)


def unique_names(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return names, numbered if they occur more than once: `examination`, `examination (2)`."""
    found: list[str] = []
    for name in names:
        number = 1 + sum(other.partition(" (")[0] == name for other in (*taken, *found))
        found.append(name if number == 1 else f"{name} ({number})")
    return found
