"""Persons' names in a note: by title, role, position in a letter or given name, and every repetition of a detected name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from neuralmedbench.deid.notes import patterns
from neuralmedbench.deid.notes.languages import COMMON, STOP_WORDS, VERB_ENDING
from neuralmedbench.deid.notes.patterns import (
    COVER_NAME,
    COVERS,
    HOUSE_WORDS,
    MEDICAL_ENDING,
    MEDICAL_WORDS,
    NO_NAMES,
    NOT_TOWNS,
    RELATIONS,
    Redaction,
    given_names,
)
from neuralmedbench.files.identity import GENERIC, ORDINARY, fold
from neuralmedbench.files.words import AS_EPONYM, EPONYMS, is_eponym

LEAST_WORDS, CAPITAL_SHARE = 3, 0.8
"""Lines with fewer words are not judged; a line is in capitals (or small letters) if at least this fraction of its words is."""
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
HOUSE_IN_SMALL_LETTERS = re.compile(
    rf"(?P<value>(?:{WORD}[ ]){{1,4}}(?:hospital|clinic|infirmary|medical (?:center|centre)|care home|nursing home|residential home|hospice|(?:primary|secondary|high|elementary) school"
    r"|surgery|academy|college|house|lodge|manor|court|rectory))(?!\w)"
)
STREET_IN_SMALL_LETTERS = re.compile(
    rf"(?<!\w)(?P<value>\d{{1,5}}[a-z]? (?:{WORD}[ ]){{1,3}}(?:street|st|avenue|ave|road|rd|lane|ln|drive|close|crescent|grove|gardens|row|terrace|mews|court|way|hill|place|boulevard|blvd)"
    rf"(?:, {WORD})?)(?!\w)"
)
SAINT_IN_SMALL_LETTERS = re.compile(r"\b(?:at|to|from|in) (?P<value>st\.? [^\W\d_]{4,}(?:['’]s)?)(?!\w)")
NOT_SAINTS = frozenset({"elevation", "segment", "depression", "changes", "elevations", "depressions"})
PLACED_IN_SMALL_LETTERS = re.compile(
    rf"\b(?:lives in|living in|resident of|home to|moved to|drove (?:him|her|them) from|came from|travelled from)[ ](?P<value>{WORD})"
)
KNOWN = COMMON | MEDICAL_WORDS | NO_NAMES | EPONYMS | GENERIC | HOUSE_WORDS | NOT_TOWNS
DISEASE_BEFORE = re.compile(r"\b(?:relapsing|remitting|progressive|with|of|has|known|the|for|in|pmh|hx|dx|rr|pp|sp|primary|secondary)[ ]+$")
"""Words before an `ms` that means multiple sclerosis."""
NAME_MARK = "[NAME]"
SHORT = 4
"""A single word in capitals of at most this length is an abbreviation."""
NO_INITIALS = frozenset(
    {"MR", "DR", "MS", "BY", "TO", "OF", "IN", "AT", "ON", "OR", "AS", "IS", "HE", "WE", "NO", "RE", "GP", "RN", "PT", "OT", "AN"}
)
"""Pairs of capitals before a name that are not its initials."""


def replace_names(note: Redaction, *, other_scripts: bool = True) -> None:
    """Replace names of persons by pattern; eponyms that name a disease, a sign or a score are kept.

    `other_scripts`: replace words in non-Latin scripts too.
    """
    # most reliable patterns first (titles, roles, positions in a letter), then given names, then mere pairs of capitalised words; last, every
    # repetition of a detected name, with adjoining initials
    before = len(note.spans)
    if other_scripts:
        note.replace(patterns.OTHER_SCRIPT, "other_script", "[TEXT]")
    note.replace(patterns.CARETS, "name", NAME_MARK)
    replace_in_one_letter_case(note)
    note.replace(patterns.TITLED_NAME, "name", lambda match: None if match["value"] in {"X", "Y", "Z"} else NAME_MARK)
    note.replace(patterns.TYPIST, "name", NAME_MARK)
    for pattern in (
        patterns.SUFFIXED_NAME, patterns.ROLE_AFTER, patterns.INVERTED_NAME, patterns.PLAIN_INVERTED, patterns.LABELLED_NAME, patterns.TABLED_NAME,
        patterns.ADDRESSED_NAME, patterns.SAID_NAME, patterns.RELATIVE_NAME, patterns.ROLE_NAME, patterns.INITIALLED_NAME,
    ):  # fmt: skip
        _replace_unless_medicine(note, pattern)
    note.replace(patterns.GIVEN_NAME, "name", _given)
    _replace_unless_medicine(note, patterns.PRESENTED_NAME)
    for pattern in (patterns.LISTED_NAME, patterns.PAIR, patterns.SAYING_NAME, patterns.NICKNAMED):
        note.replace(pattern, "name", _pair)
    _repeat(note, before)
    widen_names(note)


def widen_names(note: Redaction) -> None:
    """Replace initials and particles next to a name: `J. van den [NAME]`, `[NAME], P.`."""
    for match in list(patterns.JOINED_NAME.finditer(note.text)):
        note.cover(*match.span("value" if match["value"] else "before"), "name", NAME_MARK)
    for pattern in (patterns.BETWEEN_NAMES, patterns.BEFORE_NAME, patterns.AFTER_NAME):
        note.replace(pattern, "name", lambda match: NAME_MARK if _is_initial(match) else None)


def replace_in_one_letter_case(note: Redaction) -> None:
    """Replace names and places in lines all in capitals or all in small letters, where capitals carry no information.

    A word counts as a name after a title, a relation or an initial, or if it is a common given name, but never if it is an ordinary word of
    notes. A surname without any of these is detected only as a repetition (`_repeat`) or from the patient's header.
    """
    for start, end in _lines_in_one_letter_case(note.text):
        line = note.text[start:end].casefold()
        if len(line) == end - start:
            _replace_line(note, line, start)


def _lines_in_one_letter_case(text: str) -> Iterator[tuple[int, int]]:
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
    """Replace addresses, hospitals, names and towns of one line in small letters that begins at `start`."""

    def cover(first: int, last: int, kind: str, replacement: str) -> None:
        note.cover(start + first, start + last, kind, replacement)

    for match in STREET_IN_SMALL_LETTERS.finditer(line):
        cover(*match.span("value"), "address", "[ADDRESS]")
    for match in HOUSE_IN_SMALL_LETTERS.finditer(line):
        first = _start_of_proper_name(line, match.start("value"), match.end("value"))
        if first is not None:
            cover(first, match.end("value"), "hospital", "[HOSPITAL]")
    for match in SAINT_IN_SMALL_LETTERS.finditer(line):
        if match["value"].split()[-1] not in NOT_SAINTS:
            cover(*match.span("value"), "place", "[PLACE]")
    for match in INVERTED.finditer(line):
        if _is_name(match["family"]) and not _is_known(match["given"]):
            cover(*match.span(), "name", NAME_MARK)
    for first, last in (*_titled(line), *_related(line), *_given_names(line), *_initialled(line)):
        cover(first, last, "name", NAME_MARK)
    for match in PLACED_IN_SMALL_LETTERS.finditer(line):
        if not _is_known(match["value"]):
            cover(*match.span("value"), "place", "[PLACE]")


def _start_of_proper_name(line: str, start: int, end: int) -> int | None:
    """Return where the proper name of a hospital begins, after the last ordinary word; None if it has no proper name."""
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
    """Return the end of a name that begins with the first word: before the first word that cannot be a name."""
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


def _given_names(line: str) -> Iterator[tuple[int, int]]:
    words = list(ANY_WORD.finditer(line))
    for place, match in enumerate(words):
        name = re.sub(r"['’]s$", "", match["value"])
        if name not in given_names() or name in KNOWN:
            continue
        following = [word for word in words[place : place + 2] if word is match or word.start() == match.end() + 1]
        yield match.start(), _grow(line, following) if match["value"] == name else match.start() + len(name)


def _initialled(line: str) -> Iterator[tuple[int, int]]:
    for match in INITIALLED.finditer(line):
        if _is_name(match["name"]) and len(match["name"]) > 2:
            yield match.span("value")


def _replace_unless_medicine(note: Redaction, pattern: re.Pattern[str]) -> None:
    """Replace a pattern's matches without leading words that are not names, unless the match is a medical term."""
    for match in list(pattern.finditer(note.text)):
        start, end = match.span("value" if match["value"] else "also")
        while first := re.match(r"([^\W\d_]+)[.,]?[ ]+", note.text[start:end]):
            if first[1].casefold() not in NO_NAMES:
                break
            start += first.end()
        if not _is_medicine(note.text[start:end]):
            note.cover(start, end, "name", NAME_MARK)


def _is_medicine(name: str) -> bool:
    words = [word for word in re.findall(r"[^\W\d_]+", name) if len(word) > 1]
    if not words or words[0].casefold() in NO_NAMES or (words[-1].casefold() in STOP_WORDS["en"] and len(words) == 1):
        return True
    if not name[:1].isupper() and name[:2].casefold() not in {"va", "vo", "de", "al", "el", "bi", "da", "di", "o'"}:
        return True
    if words[0].isupper() and len(words[0]) <= SHORT and (len(words) == 1 or is_eponym(words[-1])):
        return True
    return is_eponym(name)


def _is_initial(match: re.Match[str]) -> bool:
    """Return True if letters next to a name are its initials: `I`, `A` and `T` are words unless at the edge of a field (`RE: I Ravenscroft`)."""
    letters = match[0].strip()
    if NO_INITIALS.issuperset(letters.split()):
        return False
    if letters not in {"I", "A", "T"} or match.lastgroup == "last":
        return True
    return re.search(r"(?:[:|(\t]|\b(?i:re|for|mrs?|ms|dr)\.?)[ ]*$", match.string[: match.start()]) is not None


def _pair(match: re.Match[str]) -> str | None:
    value = match["value"] or match["also"]
    if AS_EPONYM.match(match.string[match.start() + match[0].index(value) + len(value) :]) or MEDICAL_ENDING.search(value):
        return None
    words = {word.casefold() for word in re.findall(r"[^\W\d_]+", value)}
    known = MEDICAL_WORDS | NO_NAMES | EPONYMS | STOP_WORDS["en"] | HOUSE_WORDS | NOT_TOWNS
    return None if words & known else NAME_MARK


def _given(match: re.Match[str]) -> str | None:
    name = match["given"]
    pieces = {name.casefold(), *name.casefold().split("-")}
    if not pieces & given_names() or AS_EPONYM.match(match.string[match.end("given") :]):
        return None
    return NAME_MARK


def _repeat(note: Redaction, before: int) -> None:
    """Replace every other occurrence in the note of the names detected since the first `before` spans."""
    words = {
        word
        for span in note.spans[before:]
        if span.replacement == NAME_MARK
        for word in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", note.source[span.start : span.end])
        if len(word) > 2
        and (word[0].isupper() or (len(word) > SHORT and word not in COMMON))
        and word.casefold() not in EPONYMS | ORDINARY | GENERIC | NO_NAMES
    }
    if words:
        again = "|".join(sorted((re.escape(fold(word)) for word in words), key=lambda word: (-len(word), word)))
        for match in list(re.finditer(rf"(?<![\w{COVER_NAME}])(?:{again})(?!\w)", fold(note.text))):
            note.cover(*match.span(), "name", NAME_MARK)
