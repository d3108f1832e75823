"""Names and places in lines that are written in one case: dictated or typed all in small letters, or all in capitals."""

from __future__ import annotations

import re
from collections.abc import Iterator

from neuralmedbench.deid.notes.common_words import COMMON, VERB_ENDING
from neuralmedbench.deid.notes.name_patterns import MEDICAL_ENDING, MEDICAL_WORDS, NO_NAMES, RELATIONS, given_names
from neuralmedbench.deid.notes.place_patterns import HOUSE_WORDS, NOT_TOWNS
from neuralmedbench.deid.notes.redaction import COVERS, Redaction
from neuralmedbench.files.eponyms import EPONYMS
from neuralmedbench.files.identity import GENERIC

LEAST_WORDS, CAPITAL_SHARE = 3, 0.8
"""A line of fewer words tells nothing of its case; a line is in capitals when so many of its words are."""
WORD = rf"[^\W\d_{COVERS}]+(?:['’-][^\W\d_{COVERS}]+)*"
TITLED = re.compile(
    rf"(?<![\w'’-])(?P<title>(?:mrs?|ms|miss|dr|prof|sr|mx|professor|doctor|sister|nurse|matron)\.?)[ ]+(?P<initials>(?:[a-z]\.?[ ]+){{0,2}})(?P<particle>(?:(?:van|von|de|der|den|del|di|da|al|el|la|le|bin|ibn)[ ])*)(?=(?P<value>{WORD}(?:[ ]{WORD}){{0,3}}))"
)
INITIALLED = re.compile(rf"(?<![\w.&/'’-])(?P<value>(?:[a-z]\.[ ]?){{1,2}}(?P<name>{WORD}))")
RELATED = re.compile(
    rf"(?:\b(?:his|her|their|with|by|re|to|and|from|fr|w/)[ ]|(?<=['’]s[ ])|(?<=[.;:,][ ])|^)(?:{RELATIONS})[ ](?:\([a-z]+\)[ ]?)?(?P<value>{WORD}(?:[ ]{WORD})?)"
    rf"|\b(?:named|called|signed(?: by)?|referred by|informed|d/w|discussed with|seen by|per|copy to|accompanied by|reviewed by)[ ](?P<also>{WORD}[ ]{WORD})"
)
INVERTED = re.compile(rf"(?<![\w'’-])(?P<family>{WORD}), ?(?P<given>{WORD})(?=[ ](?:[mf]\b|\d{{1,3}} ?(?:y|yo|yrs?|years?)\b|mrn\b|dob\b))")
ANY_WORD = re.compile(rf"(?<![\w.&/'’-])(?P<value>{WORD})(?!\w)")
HOUSE = re.compile(
    rf"(?P<value>(?:{WORD}[ ]){{1,4}}(?:hospital|clinic|infirmary|medical (?:center|centre)|care home|nursing home|residential home|hospice|(?:primary|secondary|high|elementary) school"
    r"|surgery|academy|college|house|lodge|manor|court|rectory))(?!\w)"
)
STREET = re.compile(
    rf"(?<!\w)(?P<value>\d{{1,5}}[a-z]? (?:{WORD}[ ]){{1,3}}(?:street|st|avenue|ave|road|rd|lane|ln|drive|close|crescent|grove|gardens|row|terrace|mews|court|way|hill|place|boulevard|blvd)"
    rf"(?:, {WORD})?)(?!\w)"
)
SAINT = re.compile(r"\b(?:at|to|from|in) (?P<value>st\.? [^\W\d_]{4,}(?:['’]s)?)(?!\w)")
NOT_SAINTS = frozenset({"elevation", "segment", "depression", "changes", "elevations", "depressions"})
PLACED = re.compile(
    rf"\b(?:lives in|living in|resident of|home to|moved to|drove (?:him|her|them) from|came from|travelled from)[ ](?P<value>{WORD})"
)
KNOWN = COMMON | MEDICAL_WORDS | NO_NAMES | EPONYMS | GENERIC | HOUSE_WORDS | NOT_TOWNS
DISEASE_BEFORE = re.compile(r"\b(?:relapsing|remitting|progressive|with|of|has|known|the|for|in|pmh|hx|dx|rr|pp|sp|primary|secondary)[ ]+$")
"""What stands before an `ms` that is multiple sclerosis."""


def replace_in_one_case(note: Redaction) -> None:
    """Replace names and places in lines of one case, where a capital letter tells nothing.

    Parameters
    ----------
    note : Redaction
        The note; what other patterns found is covered already.

    Notes
    -----
    A word counts as a name behind a title, a relation or an initial, or when it is a common given name; never when it is one of the words that
    notes are made of. A surname that stands alone is found only where it was found elsewhere (names.py repeats it) or by the patient's header.
    """
    for start, end in _lines_of_one_case(note.text):
        line = note.text[start:end].casefold()
        if len(line) == end - start:
            _replace_line(note, line, start)


def _lines_of_one_case(text: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(r"[^\n]+", text):
        words = re.findall(r"[^\W\d_]{2,}", match[0])
        plain = [word for word in words if not set(word) & set(COVERS)]
        mixed = [word for word in plain if word[0].isupper() and not word.isupper()]
        capitals = [word for word in plain if word.isupper()]
        small = [word for word in plain if word.islower()]
        if len(plain) < LEAST_WORDS or mixed:
            continue
        if len(capitals) >= CAPITAL_SHARE * len(plain) or (small and len(capitals) <= (1 - CAPITAL_SHARE) * len(plain)):
            yield match.span()


def _replace_line(note: Redaction, line: str, start: int) -> None:
    def cover(first: int, last: int, kind: str, shown: str) -> None:
        note.cover(start + first, start + last, kind, shown)

    for match in STREET.finditer(line):
        cover(*match.span("value"), "address", "[ADDRESS]")
    for match in HOUSE.finditer(line):
        first = _first_own_word(line, match.start("value"), match.end("value"))
        if first is not None:
            cover(first, match.end("value"), "hospital", "[HOSPITAL]")
    for match in SAINT.finditer(line):
        if match["value"].split()[-1] not in NOT_SAINTS:
            cover(*match.span("value"), "place", "[PLACE]")
    for match in INVERTED.finditer(line):
        if _is_name(match["family"]) and not _is_known(match["given"]):
            cover(*match.span(), "name", "[NAME]")
    for first, last in (*_titled(line), *_related(line), *_given(line), *_initialled(line)):
        cover(first, last, "name", "[NAME]")
    for match in PLACED.finditer(line):
        if not _is_known(match["value"]):
            cover(*match.span("value"), "place", "[PLACE]")


def _first_own_word(line: str, start: int, end: int) -> int | None:
    """Where the own name of a house begins: behind the last word that notes are made of; None when it has none."""
    words = list(re.finditer(WORD, line[start:end]))
    first = None
    for word in reversed(words):
        if word[0] in HOUSE_WORDS or word[0] in {"house", "lodge", "manor", "court", "rectory", "regional"}:
            continue
        if _is_known(word[0]) or MEDICAL_ENDING.search(word[0]):
            break
        first = start + word.start()
    return first


def _is_known(word: str) -> bool:
    bare = re.sub(r"['’]s$", "", word)
    return word in KNOWN or bare in KNOWN or any(piece in KNOWN for piece in re.split("['’-]", word) if len(piece) > 2)


def _is_name(word: str) -> bool:
    return not _is_known(word) and not VERB_ENDING.search(word) and not MEDICAL_ENDING.search(word)


def _grow(line: str, words: list[re.Match[str]]) -> int:
    """Where a name ends that begins with the first of some words: before the first word that is none."""
    end, given = words[0].end(), words[0][0] in given_names()
    for word in words[1:3]:
        if not (_is_name(word[0]) or (given and not _is_known(word[0]))):
            break
        end, given = word.end(), False
    return end


def _titled(line: str) -> Iterator[tuple[int, int]]:
    for match in TITLED.finditer(line):
        words = list(re.compile(WORD).finditer(line, match.start("value"), match.end("value")))
        title, first = match["title"].rstrip("."), words[0][0]
        if title == "ms" and DISEASE_BEFORE.search(line[: match.start()]):
            continue
        plain = title in {"mr", "mrs", "dr", "prof"}
        if _is_known(first) or (not plain and not _is_name(first)):
            continue
        yield match.start("initials"), _grow(line, words)


def _related(line: str) -> Iterator[tuple[int, int]]:
    for match in RELATED.finditer(line):
        group = "value" if match["value"] else "also"
        words = list(re.compile(WORD).finditer(line, match.start(group), match.end(group)))
        if not _is_name(words[0][0]) or (group == "also" and not _is_name(words[-1][0])):
            continue
        yield words[0].start(), _grow(line, words)


def _given(line: str) -> Iterator[tuple[int, int]]:
    words = list(ANY_WORD.finditer(line))
    for place, match in enumerate(words):
        name = re.sub(r"['’]s$", "", match["value"])
        if name not in given_names() or name in KNOWN:
            continue
        behind = [word for word in words[place : place + 2] if word is match or word.start() == match.end() + 1]
        yield match.start(), _grow(line, behind) if match["value"] == name else match.start() + len(name)


def _initialled(line: str) -> Iterator[tuple[int, int]]:
    for match in INITIALLED.finditer(line):
        if _is_name(match["name"]) and len(match["name"]) > 2:
            yield match.span("value")
