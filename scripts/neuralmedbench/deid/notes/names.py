"""Persons' names in a note: by title, role, place in a letter, given name; and wherever a name that was found stands again."""

from __future__ import annotations

import re

from neuralmedbench.deid.notes import name_patterns as pattern
from neuralmedbench.deid.notes.common_words import COMMON
from neuralmedbench.deid.notes.languages import STOP_WORDS
from neuralmedbench.deid.notes.one_case import replace_in_one_case
from neuralmedbench.deid.notes.place_patterns import HOUSE_WORDS, NOT_TOWNS
from neuralmedbench.deid.notes.redaction import COVER_NAME, Redaction
from neuralmedbench.files.eponyms import AS_EPONYM, EPONYMS, is_eponym
from neuralmedbench.files.identity import GENERIC, ORDINARY, fold

SHOWN = "[NAME]"
SHORT = 4
"""A single word of capitals that is no longer than this is an abbreviation."""
NO_INITIALS = frozenset(
    {"MR", "DR", "MS", "BY", "TO", "OF", "IN", "AT", "ON", "OR", "AS", "IS", "HE", "WE", "NO", "RE", "GP", "RN", "PT", "OT", "AN"}
)
"""Two capitals before a name that are none of its initials."""


def widen_names(note: Redaction) -> None:
    """Replace initials and particles that touch a name: `J. van den [NAME]`, `[NAME], P.`."""
    for match in list(pattern.JOINED_NAME.finditer(note.text)):
        note.cover(*match.span("value" if match["value"] else "before"), "name", SHOWN)
    for found in (pattern.BETWEEN_NAMES, pattern.BEFORE_NAME, pattern.AFTER_NAME):
        note.replace(found, "name", lambda match: SHOWN if _is_initial(match) else None)


def replace_names(note: Redaction, *, other_scripts: bool = True) -> None:
    """Replace the names of persons that patterns find; eponyms stay where they name a disease, a sign or a score.

    Parameters
    ----------
    note : Redaction
        The note.
    other_scripts : bool
        Whether words in another script than Latin are replaced too.
    """
    before = len(note.spans)
    if other_scripts:
        note.replace(pattern.OTHER_SCRIPT, "other_script", "[TEXT]")
    note.replace(pattern.CARETS, "name", SHOWN)
    replace_in_one_case(note)
    note.replace(pattern.TITLED_NAME, "name", lambda match: None if match["value"] in {"X", "Y", "Z"} else SHOWN)
    note.replace(pattern.TYPIST, "name", SHOWN)
    for found in (
        pattern.SUFFIXED_NAME, pattern.ROLE_BEHIND, pattern.INVERTED_NAME, pattern.PLAIN_INVERTED, pattern.LABELLED_NAME, pattern.TABLED_NAME,
        pattern.ADDRESSED_NAME, pattern.SAID_NAME, pattern.RELATIVE_NAME, pattern.ROLE_NAME, pattern.INITIALLED_NAME,
    ):  # fmt: skip
        _replace_unless_medicine(note, found)
    note.replace(pattern.GIVEN_NAME, "name", _given)
    _replace_unless_medicine(note, pattern.PRESENTED_NAME)
    for found in (pattern.LISTED_NAME, pattern.PAIR, pattern.SAYING_NAME, pattern.NICKNAMED):
        note.replace(found, "name", _pair)
    _repeat(note, before)
    widen_names(note)


def _replace_unless_medicine(note: Redaction, found: re.Pattern[str]) -> None:
    """Replace what a pattern takes for a name, without the words before it that are none."""
    for match in list(found.finditer(note.text)):
        start, end = match.span("value" if match["value"] else "also")
        while first := re.match(r"([^\W\d_]+)[.,]?[ ]+", note.text[start:end]):
            if first[1].casefold() not in pattern.NO_NAMES:
                break
            start += first.end()
        if not _is_medicine(note.text[start:end]):
            note.cover(start, end, "name", SHOWN)


def _is_medicine(name: str) -> bool:
    words = [word for word in re.findall(r"[^\W\d_]+", name) if len(word) > 1]
    if not words or words[0].casefold() in pattern.NO_NAMES or (words[-1].casefold() in STOP_WORDS["en"] and len(words) == 1):
        return True
    if not name[:1].isupper() and name[:2].casefold() not in {"va", "vo", "de", "al", "el", "bi", "da", "di", "o'"}:
        return True
    if words[0].isupper() and len(words[0]) <= SHORT and (len(words) == 1 or is_eponym(words[-1])):
        return True
    return is_eponym(name)


def _is_initial(match: re.Match[str]) -> bool:
    """Whether letters beside a name belong to it: `I`, `A` and `T` are words, unless a field begins or ends there (`RE: I Ravenscroft`)."""
    letters = match[0].strip()
    if NO_INITIALS.issuperset(letters.split()):
        return False
    if letters not in {"I", "A", "T"} or match.lastgroup == "last":
        return True
    return re.search(r"(?:[:|(\t]|\b(?i:re|for|mrs?|ms|dr)\.?)[ ]*$", match.string[: match.start()]) is not None


def _pair(match: re.Match[str]) -> str | None:
    value = match["value"] or match["also"]
    if AS_EPONYM.match(match.string[match.start() + match[0].index(value) + len(value) :]) or pattern.MEDICAL_ENDING.search(value):
        return None
    words = {word.casefold() for word in re.findall(r"[^\W\d_]+", value)}
    known = pattern.MEDICAL_WORDS | pattern.NO_NAMES | EPONYMS | STOP_WORDS["en"] | HOUSE_WORDS | NOT_TOWNS
    return None if words & known else SHOWN


def _given(match: re.Match[str]) -> str | None:
    name = match["given"]
    pieces = {name.casefold(), *name.casefold().split("-")}
    if not pieces & pattern.given_names() or AS_EPONYM.match(match.string[match.end("given") :]):
        return None
    return SHOWN


def _repeat(note: Redaction, before: int) -> None:
    """Replace the names that were found wherever else they stand in the note."""
    words = {
        word
        for span in note.spans[before:]
        if span.shown == SHOWN
        for word in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", note.source[span.start : span.end])
        if len(word) > 2
        and (word[0].isupper() or (len(word) > SHORT and word not in COMMON))
        and word.casefold() not in EPONYMS | ORDINARY | GENERIC | pattern.NO_NAMES
    }
    if words:
        again = "|".join(sorted((re.escape(fold(word)) for word in words), key=lambda word: (-len(word), word)))
        for match in list(re.finditer(rf"(?<![\w{COVER_NAME}])(?:{again})(?!\w)", fold(note.text))):
            note.cover(*match.span(), "name", SHOWN)
