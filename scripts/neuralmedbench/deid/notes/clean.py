"""De-identify clinical notes: the patient's own values first, then the HIPAA Safe Harbor identifiers by pattern."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date

from neuralmedbench.deid.notes import patterns
from neuralmedbench.deid.notes.dates import BORN, replace_ages, replace_dates
from neuralmedbench.deid.notes.languages import NameModel, languages_of
from neuralmedbench.deid.notes.names import replace_names, widen_names
from neuralmedbench.deid.notes.patterns import Redaction, Span
from neuralmedbench.deid.values import DateShift
from neuralmedbench.files.identity import IdentityPattern, fold
from neuralmedbench.files.words import is_eponym

BY_KIND = {"place": "[PLACE]", "number": "[ID]", "name": "[NAME]"}
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
BREAK = re.compile(r"(?<=[^\W\d_])-[ ]*\n[ ]*(?=[^\W\d_])")
PHONE_REGIONS = ("US", "GB")
"""Countries whose national telephone numbers are recognised by their form; international ones of all countries are."""


@dataclass
class CleanNote:
    """A note after cleaning.

    Attributes
    ----------
    text : str
        The note with placeholders; empty if it is withheld.
    counts : Counter
        Replacements by kind; `withheld` if names cannot be recognised in its language.
    spans : tuple of Span
        Replaced parts, ordered by position in `source`.
    source : str
        The note before cleaning, normalised by `plain_text`. It identifies the patient.
    """

    text: str
    counts: Counter[str] = field(default_factory=Counter)
    spans: tuple[Span, ...] = ()
    source: str = ""


def plain_text(text: str) -> str:
    """Normalise a text for the patterns: composed letters, plain spaces and hyphens, no invisible characters."""
    composed = unicodedata.normalize("NFC", INVISIBLE.sub("", text))
    return re.sub("[\u00a0\u2002-\u200a\u202f\u3000]", " ", composed).replace("\u2011", "-").replace("\r\n", "\n")


def clean_note(
    text: str,
    dates: DateShift,
    identifying: IdentityPattern | None,
    *,
    scan_day: date | None = None,
    listed: IdentityPattern | None = None,
    model: NameModel | None = None,
) -> CleanNote:
    """Replace identifiers in a clinical note.

    `identifying`: matches the patient's own values in folded text (see `files.identity`). `listed`: the same for values of the patient's
    health record. Returns the note with `[NAME]`, `[DATE]`, `[ID]`... in place of values. A note in another script, or in a language that
    neither patterns nor model cover, is withheld as a whole.
    """
    plain = plain_text(text)
    languages = languages_of(plain)
    known = model if model is not None and model.language in languages else None
    if "en" not in languages and known is None:
        return CleanNote("", Counter({"withheld": 1}), (), plain)
    # The order matters, because later patterns do not see what is covered. Dates of birth and internet addresses first, which contain dates and
    # numbers; then the patient's own values; numbers that cannot be dates before the dates, other numbers after them; places before names,
    # because hospitals and streets bear names of persons; then names; towns, once no names are left; and ages last.
    note = Redaction(plain)
    note.replace(BORN, "date", "[DATE]")
    for pattern, kind, replacement in (
        (patterns.EMAIL, "email", "[EMAIL]"),
        (patterns.FILE, "file", "[FILE]"),
        (patterns.URL, "url", "[URL]"),
    ):
        note.replace(pattern, kind, replacement)
    _replace_identifying(note, (identifying, listed))
    _replace_numbers(note)
    replace_dates(note, dates, scan_day)
    _replace_more_numbers(note)
    _replace_places(note)
    replace_names(note, other_scripts="en" in languages)
    _replace_towns(note)
    replace_ages(note)
    counts = note.counts()
    if known is not None:
        counts["found_by_model"] = _replace_with_model(note, known)
        counts["cleaned_with_model"] = 1
    return CleanNote(note.result(), counts, tuple(sorted(note.spans)), plain)


def _replace_with_model(note: Redaction, model: NameModel) -> int:
    """Replace names detected only by the model; eponyms are kept. Returns their number."""
    before = len(note.spans)
    for start, end, kind, replacement in model.find(note.source):
        if not is_eponym(note.source[start:end]):
            note.cover(start, end, kind, replacement)
    return len(note.spans) - before


def _replace_identifying(note: Redaction, own: Iterable[IdentityPattern | None]) -> None:
    """Replace the patient's own values, also if broken by a hyphen at the end of a line; folded text has the same length."""
    for identifying in own:
        for match in list(identifying.finditer(fold(note.text))) if identifying else ():
            note.cover(*match.span(), "own_value", BY_KIND[match.lastgroup or "name"])
        # the same with hyphenation at line ends undone
        joined, places = _without_breaks(note.text)
        for match in list(identifying.finditer(fold(joined))) if identifying and len(joined) < len(note.text) else ():
            note.cover(places[match.start()], places[match.end() - 1] + 1, "own_value", BY_KIND[match.lastgroup or "name"])
    widen_names(note)


def _without_breaks(text: str) -> tuple[str, list[int]]:
    """Return a text without the hyphens that break words at the end of a line, and the original position of each letter."""
    broken = {place for match in BREAK.finditer(text) for place in range(*match.span())}
    places = [place for place in range(len(text)) if place not in broken]
    return "".join(text[place] for place in places), places


def _replace_numbers(note: Redaction) -> None:
    """Replace numbers that cannot be dates."""
    for pattern, kind, replacement in (
        (patterns.UID, "id", "[ID]"),
        (patterns.IP_ADDRESS, "ip_address", "[IP]"),
        (patterns.MAC_ADDRESS, "id", "[ID]"),
        (patterns.SSN, "id", "[ID]"),
        (patterns.SPOKEN, "id", "[ID]"),
        (patterns.DONATION, "id", "[ID]"),
        (patterns.IBAN, "id", "[ID]"),
        (patterns.BIOMETRIC, "id", "[ID]"),
        (patterns.STATION, "id", "[ID]"),
        (patterns.LOGIN, "id", "[ID]"),
        (patterns.PHONE, "phone", "[PHONE]"),
        (patterns.INSURANCE, "id", "[ID]"),
        (patterns.RECORD_NUMBER, "id", "[ID]"),
        (patterns.NUMBERED, "id", "[ID]"),
    ):
        note.replace(pattern, kind, replacement)


def _replace_more_numbers(note: Redaction) -> None:
    """Replace remaining numbers that look like identifiers, after the dates are gone."""
    _replace_known_phones(note)
    # groups of three and four digits of which the second is round are not taken for a telephone number
    note.replace(patterns.LOCAL_PHONE, "phone", lambda match: None if int(match["line"]) % 50 == 0 else "[PHONE]")
    note.replace(patterns.VEHICLE, "id", "[ID]")
    note.replace(patterns.LETTER_AND_GROUPS, "id", "[ID]")
    note.replace(patterns.BESIDE_NUMBER, "id", "[ID]")
    for pattern in (patterns.CODE, patterns.LONG_NUMBER, patterns.GROUPED_NUMBER):
        note.replace(pattern, "id", lambda match: "[ID]" if _is_identifier(match) else None)


def _replace_known_phones(note: Redaction) -> None:
    """Replace numbers that are valid in a national telephone plan."""
    from phonenumbers import Leniency, PhoneNumberMatcher

    for region in PHONE_REGIONS:
        for number in list(PhoneNumberMatcher(note.text, region, leniency=Leniency.VALID)):
            note.cover(number.start, number.end, "phone", "[PHONE]")


def _is_identifier(match: re.Match[str]) -> bool:
    """Return False for a laboratory value, a sequence parameter or a gene, True for an identifier."""
    text, digits = match[0], sum(letter.isdigit() for letter in match[0])
    if patterns.MEASURED.match(match.string, match.end()) or patterns.LABORATORY.search(match.string[: match.start()]):
        return False
    if text.isdigit():
        return True
    # groups of digits, then codes with letters
    if text[0].isdigit() and not any(letter.isalpha() for letter in text):
        return digits >= 9
    return digits >= 5 or (digits == 4 and bool(re.search(r"[A-Z]-?\d{4}$|\d-\d{4}$|\d[A-Z]+\d", text)) and "/" not in text)


def _replace_places(note: Redaction) -> None:
    note.replace(patterns.ADDRESS, "address", "[ADDRESS]")
    note.replace(patterns.POSTCODE, "address", "[ADDRESS]")
    note.replace(patterns.ADDRESS_LINE, "address", "[ADDRESS]")
    note.replace(patterns.NAMED_STREET, "address", "[ADDRESS]")
    for house in (patterns.HOUSE, patterns.HOUSE_FIRST):
        note.replace(house, "hospital", lambda match: None if _is_generic(match[0]) else "[HOSPITAL]")
    note.replace(patterns.SAINT, "place", "[PLACE]")
    note.replace(patterns.BARE_HOUSE, "hospital", lambda match: None if _is_generic(match[0]) else "[HOSPITAL]")


def _is_generic(house: str) -> bool:
    return all(word.casefold() in patterns.HOUSE_WORDS for word in re.findall(r"\w+", house))


def _replace_towns(note: Redaction) -> None:
    """Replace towns, after names of persons were replaced."""
    for pattern in (patterns.NAMED_FROM, patterns.PLACED, patterns.GOING):
        for match in list(pattern.finditer(note.text)):
            group = next(name for name in ("value", "second", "third") if name in pattern.groupindex and match[name])
            words = re.findall(r"[^\W\d_]+", match[group])
            if not is_eponym(match[group]) and words[0].casefold() not in patterns.NOT_TOWNS:
                note.cover(*match.span(group), "place", "[PLACE]")
