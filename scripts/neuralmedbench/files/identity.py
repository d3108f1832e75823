"""Identifying values of a patient, stored in the private zone, and patterns that find them in notes and files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from neuralmedbench.files.json_files import read_json_record, write_json
from neuralmedbench.files.words import EPONYMS, NOT_AFTER, NOT_BEFORE, word_set

MIN_LETTERS, MIN_DIGITS = 2, 4
MIN_SEPARABLE = 5
"""A number of at least so many letters and digits is found with other separators too."""

GENERIC = word_set("""
    hospital clinic clinics university medical center centre health department radiology neurology institute general memorial the of and
    for saint st mri ct scanner anonymous anonymized anonymised unknown none null phantom patient test name male female doctor dr prof mr
    mrs ms md phd yes no other van von de der den del di da la le el al ii jr sr
""")
"""Words that identify no person or place by themselves."""
ORDINARY = word_set("""
    white black brown green gray grey young old long short small little rich strong stern head hand foot back day days may mark frank will
    bill grant case page left right good wise best bright sharp weeks major minor price rose hill wood woods stone field lane church bishop
    king pope cook baker miller mason fisher hunter carpenter porter potter taylor turner walker parker ward lord love moody nice swift
    burns cross cole bell ball ring rings stroke pain payne brain skull cortex pons lewy tan hope grace faith joy summer autumn june april august
    an do so to no he long sun son park per can sage dawn ivy rich wade gale chase drew pat sue rob ray jean
""")
"""Names that are also ordinary words: found only with a capital letter."""

_MONTHS = word_set("may june april august march")
_BARE = {
    "ł": "l",
    "Ł": "L",
    "ø": "o",
    "Ø": "O",
    "đ": "d",
    "Đ": "D",
    "ß": "s",
    "æ": "a",
    "Æ": "A",
    "œ": "o",
    "Œ": "O",
    "ı": "i",
    "þ": "t",
    "ð": "d",
}
"""Base letters where Unicode has no decomposition; one for one, so that positions in a text do not change."""
DIGITS_AND_DOTS = re.compile(r"(?<![0-9A-Za-z])(?<![0-9]\.)(?=([0-9][0-9.]{0,63}))")
"""Each place at which a number may start, with the digits and dots from there on: a UID has at most 64."""
UID_END = re.compile(r"(?![0-9A-Za-z])")
AS_NUMBER = re.compile(r"(?P<number>[0-9.]+)")
APOSTROPHES = "'’‘´`ʼ"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Identifying values from a patient's headers.

    Attributes
    ----------
    names : tuple of str
        Names of persons in DICOM form (`Family^Given=...`): patient, relatives, physicians, operators.
    places : tuple of str
        Institution, department, address, station.
    numbers : tuple of str
        Patient ids, accession numbers, serial numbers, telephone numbers, birth dates.
    uids : tuple of str
        Unique identifiers of studies, series and instances.
    scan_date : str
        StudyDate, `YYYYMMDD`, or empty; day 0 of relative dates.
    """

    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    scan_date: str = ""


def read_identity(path: Path) -> Identity:
    """Read an `identity.json`; DataError if it is absent or invalid (its values are not repeated)."""
    return read_json_record(path, Identity, remedy="ingest the case again")


def write_identity(path: Path, identity: Identity) -> None:
    """Write an `identity.json` that only its owner can read."""
    write_json(path, asdict(identity), private=True)


def fold(text: str) -> str:
    """Remove accents, so that Müller and Muller are equal; the length does not change."""
    return "".join(_BARE.get(letter) or unicodedata.normalize("NFKD", letter)[0] if letter.isalpha() else letter for letter in text)


def name_parts(name: str) -> set[str]:
    """Return the parts of a person's name that identify this person.

    Examples
    --------
    >>> sorted(name_parts("Vandermeer^Anna Lise^^Dr="))
    ['Anna', 'Lise', 'Vandermeer']
    >>> sorted(name_parts("Lopes-Silva^Inês"))
    ['Inês', 'Lopes', 'Lopes-Silva', 'Silva']
    """
    # components of a DICOM name, and the parts of double names
    parts = {part for part in re.split(r"[\^=\s,.;/_()]+", name) if part}
    parts |= {piece for part in parts for piece in part.split("-") if len(piece) > MIN_LETTERS}
    # other scripts write family and given name without a space
    latin = {part for part in parts if part[0].isascii() or fold(part[0]).isascii()}
    others = {part for part in parts - latin if len(part) >= 2}
    joined = {"".join(group.split("^")).replace(" ", "") for group in name.split("=") if group and not fold(group[0]).isascii()}
    named = {part for part in latin if len(part) >= MIN_LETTERS and part.casefold() not in GENERIC and not part.isdigit()}
    return named | others | {word for word in joined if len(word) >= 2}


def place_phrases(place: str) -> set[str]:
    """Return the phrases of an institution or an address that identify this place.

    Examples
    --------
    >>> sorted(place_phrases("Oosterhaven General Hospital"))
    ['Oosterhaven', 'Oosterhaven General Hospital']
    >>> sorted(place_phrases("Lindenlaan 27, 1234 AB Oosterhaven"))
    ['1234 AB Oosterhaven', 'Lindenlaan', 'Lindenlaan 27', 'Oosterhaven']
    """
    parts = {part.strip() for part in re.split(r"[,;\n]", place)}
    bare = {" ".join(word for word in part.split() if word.casefold() not in GENERIC and not _is_postcode(word)) for part in parts}
    return {phrase for phrase in parts | bare if len(phrase) > 3 and not phrase.isdigit() and phrase.casefold() not in GENERIC | ORDINARY}


def _is_postcode(word: str) -> bool:
    """Return whether a word of an address is a house number or part of a postcode."""
    return any(letter.isdigit() for letter in word) or (len(word) <= 2 and word.isascii() and word.isupper())


@dataclass(frozen=True)
class IdentityPattern:
    """Finds every identifying value in folded text, as a compiled pattern would.

    Attributes
    ----------
    values : Pattern or None
        Places, numbers and names.
    numbers : tuple of str
        Patterns of the numbers among them, in the order in which they are tried.
    uids : frozenset of str
        UIDs of digits and dots. A case has one for each image: they are looked up, as a pattern of thousands takes 0.1 ms for each letter.
    """

    values: re.Pattern[str] | None
    numbers: tuple[str, ...]
    uids: frozenset[str]

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches that do not overlap, from left to right; their group `place`, `number` or `name` gives the kind."""
        place = 0
        value = self.values.search(text) if self.values else None
        uids = self._uids_in(text)
        uid = next(uids, None)
        while first := self._first(value, uid):
            yield first
            place = first.end()
            while uid and uid.start() < place:
                uid = next(uids, None)
            if self.values and value and value.start() < place:
                value = self.values.search(text, place)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match."""
        return next(self.finditer(text), None)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return a match of the whole text."""
        if text in self.uids:
            return AS_NUMBER.fullmatch(text)
        return self.values.fullmatch(text) if self.values else None

    def _uids_in(self, text: str) -> Iterator[re.Match[str]]:
        """Yield, at each place, the UID that would be tried first."""
        for start in DIGITS_AND_DOTS.finditer(text) if self.uids else ():
            ends = [end for end in range(start.start(1) + MIN_DIGITS, start.end(1) + 1) if UID_END.match(text, end)]
            uids = [uid for end in ends if (uid := text[start.start(1) : end]) in self.uids]
            if uids and (
                match := AS_NUMBER.match(text, start.start(1), start.start(1) + len(min(uids, key=lambda uid: _order(_exact(uid)))))
            ):
                yield match

    def _first(self, value: re.Match[str] | None, uid: re.Match[str] | None) -> re.Match[str] | None:
        """Return the match that comes first, at the same place the one whose pattern is tried first: places, numbers, names."""
        if not value or not uid:
            return value or uid
        if value.start() != uid.start() or value.lastgroup != "number":
            return uid if (uid.start(), value.lastgroup == "place") < (value.start(), True) else value
        number = next(pattern for pattern in self.numbers if re.compile(pattern).match(value.string, value.start()))
        return value if _order(number) < _order(_exact(uid[0])) else uid


def _order(pattern: str) -> tuple[int, str]:
    """Sort key of patterns of one kind: longer ones are tried first."""
    return -len(pattern), pattern


@lru_cache(maxsize=4)  # needed twice per case: when files are cleaned and when they are searched for leaks
def identity_pattern(identity: Identity) -> IdentityPattern | None:
    """Return one pattern that finds every identifying value in folded text (see `fold`), or None without any value.

    Notes
    -----
    Words are found as whole words, digits as whole numbers: a patient called Hall is not in every `shall`. The groups `place`, `number`
    and `name` give the kind of a match; longer values are tried first.
    """
    # values by kind; a "number" of letters only is searched as a name
    words = {part for name in identity.names for part in name_parts(name)}
    phrases = {phrase for place in identity.places for phrase in place_phrases(place)}
    numbers = {number.strip() for number in identity.numbers}
    numbers = {value for value in numbers if sum(mark.isalnum() for mark in value) >= MIN_DIGITS and any(mark.isdigit() for mark in value)}
    words |= {value.strip() for value in identity.numbers if value.strip().isalpha() and len(value.strip()) > 3} - numbers
    # an id of several words is cited whole: its short words would stay behind if only those that are names were found
    cited = {value.strip() for value in identity.numbers if not any(mark.isdigit() for mark in value) and len(value.split()) > 1}
    cited = {value for value in cited if any(word.isalpha() and word.casefold() not in GENERIC | ORDINARY for word in value.split())}
    uids = {uid.strip() for uid in identity.uids if len(uid.strip()) >= MIN_DIGITS}
    plain_uids = frozenset(uid for uid in uids if re.fullmatch(r"[0-9][0-9.]{0,63}", uid))
    kinds = {
        "place": {_phrase(phrase) for phrase in phrases},
        "number": {_number(number) for number in numbers}
        | {_phrase(value) for value in cited}
        | {_exact(uid) for uid in uids - plain_uids},
        "name": {_word(word) for word in words} | {spelled for name in identity.names for spelled in _initials(name)},
    }
    ordered = {kind: sorted(values, key=_order) for kind, values in kinds.items() if values}
    groups = [f"(?P<{kind}>{'|'.join(values)})" for kind, values in ordered.items()]
    if not groups and not plain_uids:
        return None
    return IdentityPattern(re.compile("|".join(groups)) if groups else None, tuple(ordered.get("number", ())), plain_uids)


def _word(word: str) -> str:
    """Return the pattern of a name as a whole word; stricter where the name has another meaning."""
    folded = fold(word)
    if not folded.isascii():
        return f"(?i:{re.escape(folded)})"  # scripts without spaces between words
    small, plain = folded.casefold(), fold(word.casefold())
    title = plain[:1].upper() + plain[1:]
    if len(folded) == 2:  # Te is a name, TE 110 an echo time, Li level a laboratory value
        return rf"(?<![A-Za-z]){re.escape(title)}(?![A-Za-z]| level\b)"
    if small in _MONTHS:  # Mrs May, but not in May 2031
        inner, before, after = (
            rf"(?:{title}|{title.upper()})",
            r"(?<!\d )(?<!\dst )(?<!\dnd )(?<!\drd )(?<!\dth )(?<!\b[io][nf] )",
            r"(?![ ,]+\d)",
        )
    elif small in EPONYMS:
        inner, before, after = rf"(?:{_spelled(title)}|{_spelled(title.upper())})", NOT_BEFORE, NOT_AFTER
    elif small in ORDINARY:
        inner, before, after = rf"(?:{title}|{title.upper()})", "", ""
    else:
        inner, before, after = f"(?i:{_spelled(word)})", "", ""
    return rf"(?<![A-Za-z]){before}{inner}(?![A-Za-z]){after}"


def _initials(name: str) -> set[str]:
    """Return patterns of a name's initials with full stops: `E.J.A.`, family name first or last."""
    family, _, given = fold(name.partition("=")[0]).partition("^")
    first = [word[0].upper() for word in re.split(r"[\s^-]+", given) if word[:1].isascii() and word[:1].isalpha()]
    last = [word[0].upper() for word in family.split() if word[0].isascii() and word[0].isalpha() and word.casefold() not in GENERIC]
    if not first or not last:
        return set()
    return {
        rf"(?<![A-Za-z.])(?:{r'[ -]?'.join(rf'{letter}[.]' for letter in order)})(?![A-Za-z])" for order in (first + last, last + first)
    }


def _spelled(word: str) -> str:
    """Return the pattern of a Latin name in folded text: any or no apostrophes and hyphens, `Mueller` and `Müller`."""
    parts, place = [], 0
    while place < len(word):
        letter, bare = word[place], fold(word[place])
        vowel = bare.casefold()
        if letter in APOSTROPHES:
            parts.append(f"[{APOSTROPHES} ]?")
        elif letter in "-‐‑":
            parts.append("[-‐‑ ]?")
        elif letter == "ß":
            parts.append("ss?")
        elif vowel in "aou" and letter.casefold() != vowel:
            parts.append(f"{bare}[ae]?")
        elif vowel in "aou" and place + 2 < len(word) and word[place + 1] in "eE" and place > 0:
            parts.append(f"{bare}e?")
            place += 1
        else:
            parts.append(re.escape(bare))
        place += 1
    return "".join(parts)


def _phrase(phrase: str) -> str:
    """Return the pattern of a phrase, with any separators between its words."""
    inner = r"[\s_^-]+".join(re.escape(part) for part in re.split(r"[\s_^]+", fold(phrase)) if part)
    return rf"(?<![A-Za-z0-9])(?i:{inner})(?![A-Za-z0-9])"


def _number(number: str) -> str:
    """Return the pattern of a number with any grouping, with or without leading zeros."""
    letters = [letter for letter in fold(number) if letter.isalnum()]
    if len(letters) < MIN_SEPARABLE:
        return _exact(number)
    marks = r"[ ./_-]?" if len(letters) > MIN_SEPARABLE + 1 else r"[ /_-]?"  # in a shorter number, a full stop may be a decimal point
    zeros = next(place for place, letter in enumerate([*letters, "x"]) if letter != "0")
    bare = letters[zeros:] if len(letters) - zeros >= MIN_SEPARABLE else letters
    inner = marks.join(re.escape(letter) for letter in bare)
    return rf"(?<![0-9A-Za-z])(?<![0-9]\.)(?i:{'0*' if bare[0].isdigit() else ''}{inner})(?![0-9A-Za-z])"


def _exact(number: str) -> str:
    return rf"(?<![0-9A-Za-z])(?<![0-9]\.)(?i:{re.escape(fold(number))})(?![0-9A-Za-z])"
