"""The examinations of a case, and which of them a request in free words asks for; by words, without a model, in English.

A case holds one examination for each sequence and plane of its pictures, for each group of record entries and for each section of its notes.
A request is matched to at most one. What the case does not hold is said not to be there, and a request that names nothing is told so:
nothing is released on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

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


def match_request(request: str, held: Sequence[Examination]) -> RequestMatch:
    """Find the examination that a request in free words asks for.

    Parameters
    ----------
    request : str
        The request.
    held : sequence of Examination
        What the case holds, in the order of the case.

    Returns
    -------
    RequestMatch
        If the request names several, the first of them that the case holds. Of a scan whose plane is not named, the first in the order of
        the case. A plane, a contrast agent or a sequence that is asked for and not held is `absent`, and nothing else is given for it.

    Examples
    --------
    >>> flair = Examination(name="FLAIR, axial", kind=EvidenceKind.PICTURES, sequence="FLAIR", plane="axial")
    >>> match_request("Please show the FLAIR to look for lesions.", [flair]).outcome, match_request("MR angiography", [flair]).outcome
    (<RequestOutcome.GIVEN: 'given'>, <RequestOutcome.ABSENT: 'absent'>)
    """
    if wording.EVERYTHING.match(normal_form(request)):
        return RequestMatch(RequestOutcome.UNCLEAR)
    entries = tuple(sorted({word for one in held for name in _names(one) for word in name.split() if len(word) >= wording.MISSPELT_FROM}))
    said = [sentence for sentence in wording.SENTENCES.split(wording.without_reason(request)) if re.search(r"[^\W\d_]", sentence)]
    plains = [wording.plain_request(sentence, entries) for sentence in said]
    named = wording.named_scan(" ".join(plains))
    sentences = [
        (wording.with_scan(wording.wanted(plain), named) if named else wording.wanted(plain), "?" in sentence, number == len(said))
        for number, (sentence, plain) in enumerate(zip(said, plains, strict=True), start=1)
    ]
    sentences = [row for row in sentences if row[0]] or sentences
    outcome = None
    for sentence, asks, last in sorted(
        sentences, key=lambda row: (wording.is_wish(row[0]) or row[1], len(row[0].split()) <= wording.SHORT or row[2]), reverse=True
    ):
        if outcome is RequestOutcome.UNCLEAR or (outcome is not None and not (asks or wording.is_wish(sentence))):
            continue
        found = _match_sentence(sentence, held)
        if found is not None and found.outcome is RequestOutcome.GIVEN:
            return found
        vague = wording.VAGUE.search(normal_form(sentence)) and (asks or last or wording.is_wish(sentence))
        outcome = outcome or (found.outcome if found else RequestOutcome.UNCLEAR if vague else None)
    plain = " ".join(sentence for sentence, _, _ in sentences)
    if (
        outcome is not RequestOutcome.UNCLEAR
        and (place := _by_name(normal_form(plain), held)) is not None
        and not wording.names_scan(plain)
    ):
        return RequestMatch(RequestOutcome.GIVEN, place)
    return RequestMatch(
        outcome
        or (RequestOutcome.UNCLEAR if wording.VAGUE.search(normal_form(plain)) or not wording.rare_words(plain) else RequestOutcome.ABSENT)
    )


def _match_sentence(sentence: str, held: Sequence[Examination]) -> RequestMatch | None:
    """Match one sentence; the wish may stand behind its reason."""
    wish = wording.WISH.split(sentence)
    behind = sentence.partition(",")[2].strip() if wording.REASON.match(sentence) else ""
    asked = wish[-1].strip() if len(wish) > 1 else ""
    for text in ("" if wording.REASON.match(asked) else asked, behind, sentence):
        for part in (wording.REASON.split(text, maxsplit=1)[0], text):
            if part and (found := _match(part, held)) is not None:
                return found
    return None


def _match(text: str, held: Sequence[Examination]) -> RequestMatch | None:
    """Match a part of a request; None if it names no examination."""
    if wording.EITHER.search(text) and not wording.ELSEWHERE.search(normal_form(text)):
        return RequestMatch(RequestOutcome.UNCLEAR)
    named = absent = unclear = False
    last, agent = "", False
    for part in wording.PARTS.split(text):
        words = normal_form(part)
        if not words:
            continue
        scan = wording.scan_of(f"{words} with contrast" if agent and not wording.WITHOUT.search(words) else words, last)
        agent = scan is None and bool(wording.WITH.search(wording.WITHOUT.sub(" ", words)))
        place = None
        if wording.NOT_HEAD.search(words) and not (scan is None and wording.ELSEWHERE.search(words)):
            place = None if scan else _of_entries(words, held)[0]
            absent = named = absent or not unclear
        elif named and absent and not set(words.split()) - wording.MODALITIES:
            continue  # how it would be made: angiography, CT or MR
        elif elsewhere := wording.ELSEWHERE.search(words):
            place = None if scan else _of_text(words, held, groups=("eeg", "nerve conduction"))[0]
            place = _of_words(elsewhere[0], held) if place is None else place
            absent = named = True
        elif scan == "MRI":
            last, unclear = scan, True
        elif scan is not None:
            place = _picture(scan, words, text, held)
            last, absent, named = scan, True, True
        elif not (named or unclear):
            place, known = _of_text(words, held)
            absent |= known
        if place is not None:
            return RequestMatch(RequestOutcome.GIVEN, place)
    if absent or named:
        return RequestMatch(RequestOutcome.ABSENT)
    return RequestMatch(RequestOutcome.UNCLEAR) if unclear else None


def _picture(scan: str, words: str, text: str, held: Sequence[Examination]) -> int | None:
    wanted = (Scan.SWI, Scan.T2STARW) if scan == "blood" else (scan,)
    planes = [plane for plane, pattern in wording.PLANES.items() if re.search(pattern, words)]
    planes = planes or [plane for plane, pattern in wording.PLANES.items() if re.search(pattern, normal_form(text))]
    for sequence in wanted:
        for place, one in enumerate(held):
            if one.kind is EvidenceKind.PICTURES and one.sequence == sequence and (not planes or one.plane in planes):
                return place
    return None


def _of_text(words: str, held: Sequence[Examination], groups: Collection[str] = tuple(wording.ASKED_BY)) -> tuple[int | None, bool]:
    """Return the note or group of entries that words ask for, and whether they name one that is known."""
    texts = [(place, one) for place, one in enumerate(held) if one.kind is not EvidenceKind.PICTURES]
    place, meant = _of_entries(words, held)
    if place is not None:
        return place, True
    if meant:  # a value that the record does not have: only a note may tell
        groups = [name for name in groups if name in wording.WORDS["sections"]]
    asked = {name: match.start() for name in groups if (match := re.search(wording.ASKED_BY[name], words))}
    for name in sorted(asked, key=lambda name: (asked[name], [*wording.ASKED_BY].index(name))):
        of_group = [(place, one) for place, one in texts if _group_of(one) == name]
        if name == wording.FURTHER:  # notes without a heading, and those whose heading is of a history, before reports
            histories = [(place, one) for place, one in of_group if wording.HISTORY.search(_head(one)) or not _head(one)]
            of_group = histories or [(place, one) for place, one in texts if _group_of(one) == "past history"] or of_group
        if of_group:
            told = [
                place
                for place, one in of_group
                if wording.OTHER_PEOPLE.search(words) and wording.OTHER_PEOPLE.search(normal_form(one.text))
            ]
            return (told or [of_group[0][0]])[0], True
    found = _of_words(words, held)
    return found, bool(asked or meant) or found is not None


def _of_entries(words: str, held: Sequence[Examination]) -> tuple[int | None, bool]:
    """Return the note or group whose title or entry words name, by its own words or by synonyms, and whether they name one that is known."""
    texts = [(place, one) for place, one in enumerate(held) if one.kind is not EvidenceKind.PICTURES]
    # an entry by its name, before the group of entries or the section that would hold it
    fluid = next((place for place, one in texts if _group_of(one) == wording.SPINAL_FLUID), None)
    if fluid is not None and re.search(wording.ASKED_BY[wording.SPINAL_FLUID], words):
        return fluid, True
    if (place := _by_title(words, held)) is not None or (place := _by_name(words, held)) is not None:
        return place, True
    meant = [entry for pattern, entry in wording.SYNONYMS if re.search(pattern, words)]
    for place, one in texts:
        if any(entry and re.search(entry, name) for entry in meant for name in (*_names(one), _title(one))):
            return place, True
    return None, bool(meant)


def _by_name(words: str, held: Sequence[Examination]) -> int | None:
    near = {place: max((_nearness(words, name) for name in _names(one)), default=0) for place, one in enumerate(held)}
    best = max(near.values(), default=0)
    return next((place for place, value in near.items() if value == best), None) if best else None


def _names(examination: Examination) -> list[str]:
    if examination.kind is not EvidenceKind.RECORD:
        return []
    return [normal_form(line.partition(":")[0]) for line in examination.text.splitlines()]


def _title(examination: Examination) -> str:
    """Return the hospital's own words for a note or a group of entries, in normal form; empty if they say nothing of their own."""
    if examination.kind is EvidenceKind.PICTURES:
        return ""
    title = normal_form(examination.name) if examination.kind is EvidenceKind.RECORD else _head(examination)
    title = " ".join(word for word in title.split() if not word.isdecimal())
    telling = {_single(word) for word in title.split()} - wording.POLITE_WORDS - TITLE_WORDS
    return title if telling and len(title.split()) <= LONGEST_TITLE else ""


def _head(note: Examination) -> str:
    """Return what stands before the first colon of a note, in normal form; empty if that is no heading."""
    head, colon, _ = note.text.partition(":")
    return normal_form(head) if colon and len(head.split()) <= LONGEST_TITLE + 2 else ""


def _by_title(words: str, held: Sequence[Examination]) -> int | None:
    """Return the note or group of entries all of whose title stands in a request, the longest title first."""
    said = {_single(word) for word in normal_form(words).split()}
    found = [
        (len(title), -place)
        for place, one in enumerate(held)
        if (title := _title(one)) and {_single(word) for word in title.split()} - TITLE_FILLERS <= said
    ]
    return -max(found)[1] if found else None


def _single(word: str) -> str:
    return word.removesuffix("s") if len(word) >= SHORTEST_PART else word


LONGEST_TITLE = 5
TITLE_WORDS = frozenset(("history", "report", "note", "finding", "summary", "course", "blood", "test", "level", "record", "chart", "list"))
"""Words that many titles have."""
TITLE_FILLERS = frozenset(
    ("of", "the", "and", "in", "on", "at", "for", "current", "detailed", "full", "regular", "report", "record", "list", "chart", "note")
)
"""Words of a title that a request may leave out."""


def _nearness(words: str, name: str) -> int:
    """Return how much of the name of an entry a request holds: all of it, its initials, or one long word of it in short; 0 if none."""
    initials = "".join(word[0] for word in name.split())
    said = {_single(word) for word in words.split()}
    if name and {_single(word) for word in name.split()} - NAME_FILLERS <= said:
        return len(name)
    if len(initials) > 1 and initials in words.split():
        return len(initials)
    rare = wording.rare_words(words)
    return (
        len(rare)
        if rare and all(any(part.startswith(word) and len(word) >= SHORTEST_PART for part in name.split()) for word in rare)
        else 0
    )


NAME_FILLERS = frozenset(("in", "of", "serum", "plasma", "blood", "total"))
SHORTEST_PART = 4
"""Letters of a word that is written in short: `mammo`."""


def _group_of(examination: Examination) -> str:
    return examination.name.partition(" (")[0]


def _of_words(words: str, held: Sequence[Examination]) -> int | None:
    """Return the first note or group of entries that holds all rare words of a request."""
    rare = wording.rare_words(words)
    if not rare:
        return None
    # the record before the notes
    for place, one in sorted(enumerate(held), key=lambda pair: pair[1].kind is EvidenceKind.NOTE):
        if one.kind is not EvidenceKind.PICTURES and all(_is_in(word, normal_form(one.text)) for word in rare):
            return place
    return None


def _is_in(word: str, text: str) -> bool:
    return bool(re.search(rf"\b{re.escape(word)}" + ("" if len(word) > SHORTEST_PART else r"\b"), text))


def group_of_entry(variable: str) -> str:
    """Return the group of a record entry; an entry of no group is one of its own."""
    plain = normal_form(variable)
    return next((name for name, pattern in wording.ENTRIES.items() if re.search(pattern, plain)), variable)


def section_of_note(text: str) -> str:
    """Return the section that a paragraph of a note is, by its heading; `further history` if it has none."""
    plain = normal_form(text)
    return next((name for name, pattern in wording.HEADINGS.items() if re.match(rf"(?:{pattern})\b", plain)), wording.FURTHER)


def offered_requests() -> tuple[str, ...]:
    """Return the requests that people choose from where nothing can match their own words: the same for every case."""
    planes = ("", *(f", {plane}" for plane in wording.PLANES))
    of_scans = wording.WORDS["offered"]["scans of the head"]
    return tuple(
        f"{name}{plane}"
        for names in wording.WORDS["offered"].values()
        for name in names
        for plane in (planes if names is of_scans else ("",))
    )


def unique_names(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return names, numbered if they occur more than once: `examination`, `examination (2)`."""
    found: list[str] = []
    for name in names:
        number = 1 + sum(other.partition(" (")[0] == name for other in (*taken, *found))
        found.append(name if number == 1 else f"{name} ({number})")
    return found
