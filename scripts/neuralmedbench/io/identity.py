"""What identifies a patient, kept in the private zone: what the notes may not say and no later file may hold."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import asdict, dataclass
from pathlib import Path

from neuralmedbench.io.files import read_json_record, write_json

MIN_LETTERS, MIN_DIGITS = 2, 4


def word_set(*lines: str) -> frozenset[str]:
    """Give the words of some lines, in lower case."""
    return frozenset(word for line in lines for word in line.casefold().split())


GENERIC = word_set("""
    hospital clinic clinics university medical center centre health department radiology neurology institute general memorial the of and
    for saint st mri ct scanner anonymous anonymized anonymised unknown none null phantom patient test name male female doctor dr prof mr
    mrs ms md phd yes no other van von de der den del di da la le el al ii jr sr
""")
"""Words that name nobody by themselves."""
ORDINARY = word_set("""
    white black brown green gray grey young old long short small little rich strong stern head hand foot back day days may mark frank will
    bill grant case page left right good wise best bright sharp weeks major minor price rose hill wood woods stone field lane church bishop
    king pope cook baker miller mason fisher hunter carpenter porter potter taylor turner walker parker ward lord love moody nice swift
    burns cross cole bell ball ring rings stroke pain payne brain skull cortex pons lewy
""")
"""Names that are words as well: they count as a name only when they start with a capital letter."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Values of a patient's headers.

    Attributes
    ----------
    names : tuple of str
        Names of persons, as DICOM writes them (`Family^Given=...`): patient, relatives, physicians, operators.
    places : tuple of str
        Institution, department, address, station.
    numbers : tuple of str
        Patient ids, accession numbers, serial numbers, telephone numbers, birth dates.
    uids : tuple of str
        Unique identifiers of studies, series and instances.
    scan_date : str
        StudyDate, `YYYYMMDD`, or empty; what days are counted from.
    """

    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    scan_date: str = ""


def read_identity(path: Path) -> Identity:
    """Read an `identity.json`; DataError when it is absent or does not fit (its values are not repeated)."""
    return read_json_record(path, Identity, remedy="ingest the case again")


def write_identity(path: Path, identity: Identity) -> None:
    """Write an `identity.json` that only its owner can read."""
    write_json(path, asdict(identity), private=True)


def fold(text: str) -> str:
    """Letters without accents, so that Müller and Muller are one name; the length stays the same where that is possible."""
    return "".join(unicodedata.normalize("NFKD", letter)[0] if letter.isalpha() else letter for letter in text)


def name_parts(name: str) -> set[str]:
    """Parts of a person's name that name this person.

    Examples
    --------
    >>> sorted(name_parts("Vandermeer^Anna Lise^^Dr="))
    ['Anna', 'Lise', 'Vandermeer']
    """
    parts = {part for part in re.split(r"[\^=\s,.;/_]+", name) if part}
    latin = {part for part in parts if part[0].isascii() or fold(part[0]).isascii()}
    others = {part for part in parts - latin if len(part) >= 2}
    joined = {"".join(group.split("^")).replace(" ", "") for group in name.split("=") if group and not fold(group[0]).isascii()}
    named = {part for part in latin if len(part) >= MIN_LETTERS and part.casefold() not in GENERIC and not part.isdigit()}
    return named | others | {word for word in joined if len(word) >= 2}


def place_phrases(place: str) -> set[str]:
    """Phrases of an institution or an address that name this place.

    Examples
    --------
    >>> sorted(place_phrases("Oosterhaven General Hospital"))
    ['Oosterhaven', 'Oosterhaven General Hospital']
    """
    parts = {part.strip() for part in re.split(r"[,;\n]", place)}
    bare = {" ".join(word for word in part.split() if word.casefold() not in GENERIC and not word.isdigit()) for part in parts}
    return {phrase for phrase in parts | bare if len(phrase) > 3 and not phrase.isdigit() and phrase.casefold() not in GENERIC | ORDINARY}


def identity_pattern(identity: Identity) -> re.Pattern[str] | None:
    """One pattern that finds every identifying value in folded text (see `fold`); None when there is no value.

    Notes
    -----
    Words are found as whole words, digits as whole numbers: a patient called Hall is not in every `shall`. The groups
    `place`, `number` and `name` tell what was found; longest values first.
    """
    words = {part for name in identity.names for part in name_parts(name)}
    phrases = {phrase for place in identity.places for phrase in place_phrases(place)}
    numbers = {number.strip() for number in identity.numbers} | {uid.strip() for uid in identity.uids}
    numbers = {value for value in numbers if sum(mark.isalnum() for mark in value) >= MIN_DIGITS and any(mark.isdigit() for mark in value)}
    words |= {value.strip() for value in identity.numbers if value.strip().isalpha() and len(value.strip()) > 3} - numbers
    kinds = {
        "place": {_phrase(phrase) for phrase in phrases},
        "number": {_number(number) for number in numbers},
        "name": {_word(word) for word in words},
    }
    groups = [f"(?P<{kind}>{'|'.join(sorted(values, key=lambda value: (-len(value), value)))})" for kind, values in kinds.items() if values]
    return re.compile("|".join(groups)) if groups else None


def _word(word: str) -> str:
    folded = fold(word)
    if not folded.isascii():
        return re.escape(folded)  # scripts without spaces between words
    spelled = re.escape(folded)
    title = re.escape(folded[:1].upper() + folded[1:].lower())
    capital = title if len(folded) == 2 else rf"(?:{title}|{re.escape(folded.upper())})"  # Te is a name, TE 110 is a setting
    inner = capital if len(folded) == 2 or folded.casefold() in ORDINARY else f"(?i:{spelled})"
    return rf"(?<![A-Za-z]){inner}(?![A-Za-z])"


def _phrase(phrase: str) -> str:
    inner = r"[\s_^-]+".join(re.escape(part) for part in re.split(r"[\s_^]+", fold(phrase)) if part)
    return rf"(?<![A-Za-z0-9])(?i:{inner})(?![A-Za-z0-9])"


def _number(number: str) -> str:
    return rf"(?<![0-9A-Za-z])(?<![0-9]\.)(?i:{re.escape(fold(number))})(?![0-9A-Za-z])"
