"""Clinical notes without identity: the patient's own values first, then the Safe Harbor kinds by pattern."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from neuralmedbench.deid import note_patterns as pattern
from neuralmedbench.deid.values import TOP_AGE, DateShift
from neuralmedbench.io.identity import fold, word_set

FIRST_MARK = 0xE000
"""Replaced text stands as one character of the private use area until the end, so that no later pattern sees it."""
MAX_MARKS = 0x1900
LATIN_SHARE = 0.8
FEW_WORDS, ENGLISH_SHARE = 12, 0.07
"""A note of this many words in which fewer than this part are English function words is in a language that is not known here."""
STOP_WORDS = {
    "en": word_set(
        "the and of with was is in to for on no at not has had her his she he from by a an or were been patient left right seen year old day days two since after pain normal"
    ),
    "de": word_set("der die das und mit war ist von zu den im nicht ein eine auf bei wurde für seit patientin"),
    "fr": word_set("le la les et de des du avec est un une dans pour pas sur au qui patiente depuis était"),
    "es": word_set("el la los las y de del con es un una en para no por su que se paciente desde"),
    "it": word_set("il la gli e di del della con è un una in per non che si paziente da era"),
    "nl": word_set("de het een en van met was is in niet op bij voor zij hij patiënt sinds werd geen"),
    "pt": word_set("o a os as e de do da com é um uma em para não por que se paciente desde"),
}


OWN_VALUES = {"place": "[PLACE]", "number": "[ID]", "name": "[NAME]"}


@dataclass
class CleanNote:
    """A note after cleaning.

    Attributes
    ----------
    text : str
        The note with placeholders; empty when it is withheld.
    counts : Counter
        How often each kind was replaced; `withheld` when nothing can recognise names in its language.
    """

    text: str
    counts: Counter[str] = field(default_factory=Counter)


class _Marks:
    """Text whose replaced parts are out of reach of later patterns."""

    def __init__(self, text: str) -> None:
        self.text = "".join(letter for letter in text if not FIRST_MARK <= ord(letter) < FIRST_MARK + MAX_MARKS)
        self.shown: list[str] = []
        self.counts: Counter[str] = Counter()

    def mark(self, shown: str, kind: str) -> str:
        self.counts[kind] += 1
        if len(self.shown) >= MAX_MARKS:
            return ""
        self.shown.append(shown)
        return chr(FIRST_MARK + len(self.shown) - 1)

    def replace(self, found: re.Pattern[str], kind: str, shown: Callable[[re.Match[str]], str | None] | str) -> None:
        """Replace every match, or its group `value` where it has one; `shown` may decline with None."""

        def put(match: re.Match[str]) -> str:
            text = shown if isinstance(shown, str) else shown(match)
            if text is None:
                return match[0]
            if "value" not in found.groupindex:
                return self.mark(text, kind)
            start, end = (place - match.start() for place in match.span("value"))
            return match[0][:start] + self.mark(text, kind) + match[0][end:]

        self.text = found.sub(put, self.text)

    def result(self) -> str:
        return "".join(
            self.shown[ord(letter) - FIRST_MARK] if FIRST_MARK <= ord(letter) < FIRST_MARK + len(self.shown) else letter
            for letter in self.text
        )


def is_recognised_language(text: str) -> bool:
    """Whether the patterns can be trusted with a note: Latin letters, and as many English function words as of any other language.

    Examples
    --------
    >>> is_recognised_language("Der Patient wurde mit Kopfschmerzen in die Klinik gebracht und ist seit gestern nicht ansprechbar")
    False
    """
    letters = [letter for letter in text if letter.isalpha()]
    if not letters:
        return True
    if sum(fold(letter).isascii() for letter in letters) < LATIN_SHARE * len(letters):
        return False
    words = re.findall(r"[^\W\d_]+", text.casefold())
    hits = {language: sum(word in stop for word in words) for language, stop in STOP_WORDS.items()}
    other = max(number for language, number in hits.items() if language != "en")
    if other >= 2 and other > hits["en"]:
        return False
    return len(words) < FEW_WORDS or hits["en"] >= ENGLISH_SHARE * len(words)


def clean_note(text: str, dates: DateShift, identifying: re.Pattern[str] | None, *, scan_day: date | None = None) -> CleanNote:
    """Replace what identifies a person in a clinical note.

    Parameters
    ----------
    text : str
        The note.
    dates : DateShift
        How dates are changed; the same as in the headers of the patient's scans.
    identifying : re.Pattern or None
        Finds the patient's own values in folded text (see io.identity); a name that is an eponym too is removed.
    scan_day : date, optional
        Day of the scan; tells which of two readings of 03/04/2031 is meant.

    Returns
    -------
    CleanNote
        The note with `[NAME]`, `[DATE]`, `[ID]`... in the place of values. A note in another script, or in a language for which there are
        no patterns, is withheld as a whole.
    """
    if not is_recognised_language(text):
        return CleanNote("", Counter({"withheld": 1}))
    note = _Marks(text)
    note.replace(pattern.BORN, "date", "[DATE]")
    note.replace(pattern.EMAIL, "email", "[EMAIL]")
    note.replace(pattern.URL, "url", "[URL]")
    if identifying is not None:
        _replace_own(note, identifying)
    _replace_numbers(note)
    _replace_dates(note, dates, scan_day)
    _replace_places(note)
    _replace_names(note)
    _replace_ages(note)
    return CleanNote(note.result(), note.counts)


def _replace_own(note: _Marks, identifying: re.Pattern[str]) -> None:
    """Replace the patient's own values; they are searched in folded text, which has the same length."""
    folded, parts, place = fold(note.text), [], 0
    for match in identifying.finditer(folded):
        parts += [note.text[place : match.start()], note.mark(OWN_VALUES[match.lastgroup or "name"], "own_value")]
        place = match.end()
    note.text = "".join([*parts, note.text[place:]])


def _replace_numbers(note: _Marks) -> None:
    for found, kind, shown in (
        (pattern.IP_ADDRESS, "ip_address", "[IP]"),
        (pattern.SSN, "id", "[ID]"),
        (pattern.PHONE, "phone", "[PHONE]"),
        (pattern.RECORD_NUMBER, "id", "[ID]"),
        (pattern.LONG_NUMBER, "id", "[ID]"),
    ):
        note.replace(found, kind, shown)


def _replace_dates(note: _Marks, dates: DateShift, scan_day: date | None) -> None:
    day_first = _reads_day_first(note.text, scan_day)
    note.replace(pattern.NUMERIC_DATE, "date", lambda match: _show(numeric_day(match, day_first), dates))
    for found in (pattern.DAY_MONTH_YEAR, pattern.MONTH_DAY_YEAR):
        note.replace(found, "date", lambda match: _show(_day(int(match["year"]), _month(match["month"]), int(match["day"])), dates))
    note.replace(pattern.MONTH_YEAR, "date", lambda match: _show_month(int(match["year"]), _month(match["month"]), dates))
    note.replace(pattern.DAY_MONTH, "date", "[DATE]")


def _reads_day_first(text: str, scan_day: date | None) -> bool | None:
    """Whether 03/04/2031 is the third of April: by the dates of the note that leave no doubt, or by the day of the scan; None when open."""
    votes: Counter[bool] = Counter()
    for match in pattern.NUMERIC_DATE.finditer(text):
        a, b = int(match["a"]), int(match["b"])
        if len(match["a"]) < 3 and (a > 12) != (b > 12):
            votes[a > 12] += 2
        elif scan_day is not None and a != b:
            for order in (True, False):
                votes[order] += numeric_day(match, order) == scan_day
    return None if votes[True] == votes[False] else votes[True] > votes[False]


def numeric_day(match: re.Match[str], day_first: bool | None) -> date | None:
    """Read a date in figures; None when it is none, or when it is not known whether day or month comes first."""
    a, b, c = int(match["a"]), int(match["b"]), int(match["c"])
    if len(match["a"]) > 2:
        return _day(a, b, c)
    year = c if len(match["c"]) == 4 else 2000 + c if c < 70 else 1900 + c
    if a > 12 or b > 12:
        day_first = a > 12
    if day_first is None and a != b:
        return None
    return _day(year, b, a) if day_first or a == b else _day(year, a, b)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _month(name: str) -> int:
    return next(number for number, month in enumerate(pattern.MONTHS, start=1) if month.startswith(name.casefold().rstrip(".")[:3]))


def _show(day: date | None, dates: DateShift) -> str:
    return "[DATE]" if day is None else dates.text(day)


def _show_month(year: int, month: int, dates: DateShift) -> str:
    day = _day(year, month, 15)
    if day is None:
        return "[DATE]"
    return str(year) if dates.years_only else f"{dates.shifted(day):%Y-%m}"


def _replace_places(note: _Marks) -> None:
    note.replace(pattern.ADDRESS, "address", "[ADDRESS]")
    note.replace(pattern.ADDRESS_LINE, "address", " [ADDRESS]")
    for house in (pattern.HOUSE, pattern.HOUSE_FIRST):
        note.replace(house, "hospital", lambda match: None if _is_generic(match[0]) else "[HOSPITAL]")


def _is_generic(house: str) -> bool:
    return all(word.casefold() in pattern.HOUSE_WORDS for word in re.findall(r"\w+", house))


def _replace_names(note: _Marks) -> None:
    note.replace(pattern.TITLED_NAME, "name", "[NAME]")
    note.replace(pattern.SUFFIXED_NAME, "name", "[NAME]")
    note.replace(pattern.LABELLED_NAME, "name", lambda match: None if not match["value"][:1].isupper() else "[NAME]")
    note.replace(pattern.RELATIVE_NAME, "name", lambda match: None if _is_eponym(match["value"]) else "[NAME]")


def _is_eponym(name: str) -> bool:
    first = re.split(r"[ '’-]", name, maxsplit=1)[0]
    return first.casefold() in pattern.EPONYMS


def _replace_ages(note: _Marks) -> None:
    def top_code(match: re.Match[str]) -> str | None:
        age = int(match["age"] or match["late"])
        if not TOP_AGE <= age <= 125:
            return None
        return f"{TOP_AGE}+{match['rest']}" if match["age"] else f"{match['word']}{TOP_AGE}+"

    note.replace(pattern.AGE, "age", top_code)
    note.replace(pattern.SPELLED_AGE, "age", f"{TOP_AGE}+")
