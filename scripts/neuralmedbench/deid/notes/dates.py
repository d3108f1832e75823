"""Dates and ages in a note: dates are shifted by the patient's days, or removed if no day can be read; ages over 89 are top-coded."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import date

from neuralmedbench.deid.notes.patterns import COVER, Redaction
from neuralmedbench.deid.values import TOP_AGE, DateShift

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
_DAY_NAME = r"(?:Mon(?:day)?|Tue(?:s(?:day)?)?|Wed(?:s|nesday)?|Thu(?:r(?:s(?:day)?)?)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)"
_MONTH_CAPITALS = (
    "(?:" + "|".join(sorted({name.upper() for month in MONTHS for name in (month, month[:3])}, key=lambda name: (-len(name), name))) + ")"
)
_MONTH_SMALL = "(?:" + "|".join(month for month in MONTHS if month != "may") + ")"
_WEEKDAY = rf"(?:{_DAY_NAME}\.?,?\s+)?"
_ORDINAL = r"(?:st|nd|rd|th|\.)?"
_UNIT = r"(?! ?(?:mg|ml|mL|mm|cm|kg|x|years?|months?|weeks?|days?|hours?|min|%)\b)"
_YEAR = rf"(?P<year>\d{{4}}|['’]\d{{2}}|\d{{2}}(?!\d|[:./]\d|%){_UNIT})"
BORN = re.compile(
    r"\b(?P<word>(?:born|date of birth|dob|d\.o\.b\.|birth ?date|birthday)(?:\s+(?:on|is))?\s*[:.]?\s*)(?P<value>\d{1,4}[-./ ]\d{1,2}[-./ ]\d{1,4}"
    rf"|\d{{1,2}}{_ORDINAL}(?: of)?[ -]{_MONTH},?[ -]\d{{2,4}}|{_MONTH} \d{{1,2}}{_ORDINAL},? \d{{4}}|(?:in )?(?:{_MONTH} )?\d{{4}}|\d{{8}})\b",
    re.IGNORECASE,
)
COMPACT_DATE = re.compile(r"(?<![\w.-])(?P<a>(?:19|20)\d{2})(?P<b>0[1-9]|1[0-2])(?P<c>0[1-9]|[12]\d|3[01])(?![\w-]|\.\d)")
NUMERIC_DATE = re.compile(r"(?<![\d/.-])(?P<a>\d{1,4})(?P<mark>[-./])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{4}|\d{2})(?![\d/-]|\.\d)")
SCORED = re.compile(r"\b(?:apgar|scores?|power|strength|reflexes|MRC)\W*$", re.IGNORECASE)
"""Words before numbers that are scores: Apgar 8/9/10."""
ROMAN_DATE = re.compile(r"\b(?P<day>\d{1,2})[-./ ](?P<roman>[IVX]{1,4})[-./ ](?P<year>\d{4})\b")
DAY_RANGE = re.compile(
    rf"\b(?P<value>\d{{1,2}}{_ORDINAL} ?(?:to|until|through|and|-|–|/) ?)(?=\d{{1,2}}{_ORDINAL}(?: of)? {_MONTH}\b)", re.IGNORECASE
)
MONTH_RANGE = re.compile(rf"\b(?P<value>{_MONTH} ?(?:-|–|/|to|and) ?)(?={_MONTH} \d{{4}}\b)", re.IGNORECASE)
"""The first of two months that share a year: `April-May 2031`."""
DAY_MONTH_YEAR = re.compile(
    rf"\b{_WEEKDAY}(?P<day>\d{{1,2}}){_ORDINAL}(?: of)?(?P<gap>[ -]?)(?P<month>{_MONTH})(?:,? |-|(?<=\.))?{_YEAR}(?!\w)", re.IGNORECASE
)
MONTH_DAY_YEAR = re.compile(rf"\b{_WEEKDAY}(?P<month>{_MONTH}) (?P<day>\d{{1,2}}){_ORDINAL},? (?P<year>\d{{4}})\b", re.IGNORECASE)
MONTH_YEAR = re.compile(rf"\b(?P<month>{_MONTH}),?[ -](?:of )?(?P<year>\d{{4}}\b|['’]\d{{2}}(?![\w%]))", re.IGNORECASE)
FIGURE_MONTH = re.compile(
    r"(?<![\w/.:-])(?:(?P<month>0?[1-9]|1[0-2])(?P<mark>[/-])(?P<year>(?:19|20)\d{2})|(?P<iso>(?:19|20)\d{2})[/-](?P<second>0[1-9]|1[0-2]))(?![\w/%-]|[.:]\d)"
)
"""A numeric month: `2031-03`, `03/2031`, `3/2031`."""
DILUTED = re.compile(r"\b(?:titres?|titers?|dilut\w+|ratio|scale)\W*(?:of |was |is )?$", re.IGNORECASE)
"""Words before numbers that are a dilution."""
MONTH_SPAN = re.compile(r"(?<![\w/.:-])(?:0?[1-9]|1[0-2])/\d{2} ?(?:-|–|to|until) ?(?:0[1-9]|1[0-2])/\d{2}(?![\w/%-]|[.:]\d)")
"""Two months with two-digit years, the second with a leading zero: `12/28 - 02/29`, but not a blood pressure."""
SEASON = re.compile(
    r"\b(?:(?:early|late|mid)[ -])?(?P<part>spring|summer|autumn|fall|winter|Q[1-4])(?: of)?[ /-]?(?P<year>(?:19|20)\d{2})\b", re.IGNORECASE
)
"""A part of a year: `spring of 2027`, `Q2 2031`."""
MIDDLE_MONTHS = {"spring": 4, "summer": 7, "autumn": 10, "fall": 10, "winter": 1, "q1": 2, "q2": 5, "q3": 8, "q4": 11}
DAY_ALONE = re.compile(r"\b(?:on|until|till|by|since) (?P<value>the \d{1,2}(?:st|nd|rd|th))(?=[ ]*(?:[.,;)\n]|$))", re.IGNORECASE)
_WHEN = r"(?:d/c|adm|on|since|until|till|from|by|due|dated|dd|changed|removed|inserted|planned|admitted|discharged|seen|visit|exam|lkw|onset|after|before|CT|MRI|LP|TCD|US|x-?ray|labs?|spell|fall|stroke|TIA|bleed|seizure|surgery|operation|op|appt|appointment|clinic|review|reported|sampled|collected|received|printed|updated|verified|started|stopped)"
DAY_MONTH = re.compile(
    rf"\b{_WEEKDAY}(?:\d{{1,2}}{_ORDINAL}(?: of)?[ -]{_MONTH}|(?-i:{_MONTH}|{_MONTH_CAPITALS}) \d{{1,2}}{_ORDINAL}(?!\d){_UNIT}|{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)|(?-i:{_MONTH_SMALL}) \d{{1,2}}(?!\d){_UNIT})(?![\w/])"
    rf"|(?:(?<=\()|\b{_WHEN}:? |\b(?=\d\d\.\d\d\.[:,)]))(?P<also>(?:0[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.)(?!\d)"
    rf"|\b{_WHEN}:? (?P<value>(?:0?[1-9]|[12]\d|3[01])[/.](?:0?[1-9]|[12]\d|3[01]))\b(?![/.%]\d|/)"
    rf"|\b{_DAY_NAME}\.?,? (?:(?:0?[1-9]|[12]\d|3[01])[/.](?:0?[1-9]|[12]\d|3[01]))\b(?![/.%]\d)",
    re.IGNORECASE,
)
SPELLED_DAY = re.compile(
    rf"\b(?:the )?(?:(?:twenty|thirty)[- ])?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth"
    rf"|seventeenth|eighteenth|nineteenth|twentieth|thirtieth) of {_MONTH}(?!\w)|\b{_MONTH} (?:the )?(?:(?:twenty|thirty)[- ])?(?:first|second|third|fourth|fifth|sixth|seventh"
    r"|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth)\b",
    re.IGNORECASE,
)
NEXT_DAY = re.compile(rf"(?<={COVER})(?P<value>,? ?(?:and|&|to|until|-|–) ?\d{{1,2}}(?:st|nd|rd|th))(?!\w)")
"""A second day of the same month: `May 12th and 13th`."""
MONTH_ALONE = re.compile(
    rf"\b(?:in|since|until|till|last|next|this|early|late|mid|by|from|during|of|and|or|end of)[ -](?P<value>{_MONTH})(?![\w]|[ ](?:be|have|not)\b)"
    rf"|\b(?i:in|since|until|till|last|next|early|late|mid|during|end of)[ -](?P<also>(?i:(?!may|mar\b|dec\b){_MONTH}|may|march))(?![\w]|[ ](?i:be|have|not)\b)"
)
HOLIDAY = re.compile(
    r"\b(?:Christmas(?: Eve| Day)?|Xmas|Boxing Day|New Year['’]?s?(?: Eve| Day)?|Easter(?: Sunday| Monday)?|Good Friday|Whit(?: Sunday| Monday)|Thanksgiving|Hallowe['’]?en"
    r"|(?:St\.? )?Valentine['’]?s Day|St\.? Patrick['’]?s Day|Labou?r Day|Memorial Day|Independence Day|4th of July|Mother['’]?s Day|Father['’]?s Day|Ramadan|Eid|Diwali|Hanukkah|Yom Kippur|Passover)\b(?! (?:tree|disease))",
    re.IGNORECASE,
)
AGE = re.compile(
    r"\b(?P<age>\d{2,3})(?P<rest>[- ]?(?:years?|yrs?|y)\b(?:[- /](?:old|o)\b)?|[- ]?y\.?o\.?\b| ?y/o\b| ?(?-i:[MF])\b(?![\w/])|[ -](?:male|female|man|woman)\b)"
    r"|\b(?P<word>(?:aged?(?: of)?|turn(?:ed|ing|s)|age is):?\s+)(?P<late>\d{2,3})\b",
    re.IGNORECASE,
)
SPELLED_AGE = re.compile(
    r"\bninety(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?(?=[- ]years?)|\b(?:one )?hundred(?:(?: and)? \w+)?(?=[- ]years? old)|\bcentenarian\b|\bnonagenarian\b",
    re.IGNORECASE,
)
UNREADABLE = "[DATE]"
"""Replacement of a date in which no day can be read."""


def replace_dates(note: Redaction, dates: DateShift, scan_day: date | None) -> None:
    """Replace every date of a note; `scan_day` helps to decide between the two readings of 03/04/2031."""
    # full dates first, then months and parts of a year, which would match inside them; last, dates without a year
    day_first = _reads_day_first(note.text, scan_day)
    note.replace(COMPACT_DATE, "date", lambda match: _show(_day(int(match["a"]), int(match["b"]), int(match["c"])), dates))
    note.replace(
        NUMERIC_DATE,
        "date",
        lambda match: None if SCORED.search(match.string[: match.start()]) else _show(numeric_day(match, day_first), dates),
    )
    note.replace(
        ROMAN_DATE,
        "date",
        lambda match: _show_named(match["year"], _roman(match["roman"]), match["day"], dates) if _roman(match["roman"]) else None,
    )
    for pattern in (DAY_RANGE, MONTH_RANGE):
        note.replace(pattern, "date", f"{UNREADABLE} - ")
    for pattern in (DAY_MONTH_YEAR, MONTH_DAY_YEAR):
        note.replace(pattern, "date", lambda match: _show_named(match["year"], _month(match["month"]), match["day"], dates))
    note.replace(MONTH_YEAR, "date", lambda match: _show_month(_year(match["year"]), _month(match["month"]), dates))
    note.replace(FIGURE_MONTH, "date", lambda match: _show_figures(match, dates))
    note.replace(MONTH_SPAN, "date", UNREADABLE)
    note.replace(SEASON, "date", lambda match: _show_year(int(match["year"]), match["part"].casefold(), dates))
    _replace_days(note)
    for pattern in (NEXT_DAY, SPELLED_DAY, DAY_ALONE, MONTH_ALONE, HOLIDAY):
        note.replace(pattern, "date", UNREADABLE)


@dataclass(frozen=True)
class _DayRecorder(DateShift):
    """Records days instead of shifting them."""

    named: list[date] = field(default_factory=list)

    def shifted(self, day: date) -> date:
        """Return the day unchanged."""
        self.named.append(day)
        return day


def mentioned_days(text: str, scan_day: date | None) -> list[date | None]:
    """Return the days mentioned in a text (of a month its middle), and None for each mention in which no day can be read.

    `scan_day`: as for `replace_dates`.
    """
    seen = _DayRecorder(0)
    note = Redaction(text)
    replace_dates(note, seen, scan_day)
    return [*seen.named, *(None for span in note.spans if span.replacement.startswith(UNREADABLE))]


def _replace_days(note: Redaction) -> None:
    for match in list(DAY_MONTH.finditer(note.text)):
        note.cover(*match.span("value" if match["value"] else "also" if match["also"] else 0), "date", UNREADABLE)


def _reads_day_first(text: str, scan_day: date | None) -> bool | None:
    """Return True if 03/04/2031 means 3 April: by unambiguous dates in the note, or by the day of the scan; None if undecided."""
    votes: Counter[bool] = Counter()
    for match in NUMERIC_DATE.finditer(text):
        a, b = int(match["a"]), int(match["b"])
        # an unambiguous date has two votes, a reading that gives the day of the scan one
        if len(match["a"]) < 3 and (a > 12) != (b > 12):
            votes[a > 12] += 2
        elif scan_day is not None and a != b:
            for order in (True, False):
                votes[order] += numeric_day(match, order) == scan_day
    return None if votes[True] == votes[False] else votes[True] > votes[False]


def numeric_day(match: re.Match[str], day_first: bool | None) -> date | None:
    """Read a numeric date; None if it is not a date, or if the order of day and month is unknown."""
    a, b, c = int(match["a"]), int(match["b"]), int(match["c"])
    if len(match["a"]) > 2:
        return _day(a, b, c)
    year = c if len(match["c"]) == 4 else _century(c)
    if a > 12 or b > 12:
        day_first = a > 12
    if day_first is None and a != b:
        return None
    return _day(year, b, a) if day_first or a == b else _day(year, a, b)


def _century(year: int) -> int:
    return 2000 + year if year < 70 else 1900 + year


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _month(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name.casefold().rstrip(".")[:3]))


def _roman(name: str) -> int:
    return ROMAN.index(name.casefold()) + 1 if name.casefold() in ROMAN else 0


def _show_named(year: str, month: int, day: str, dates: DateShift) -> str:
    return _show(_day(_year(year), month, int(day)), dates)


def _year(text: str) -> int:
    number = int(text.lstrip("'’"))
    return number if number > 99 else _century(number)


def _show(day: date | None, dates: DateShift) -> str:
    return UNREADABLE if day is None else dates.text(day)


def _show_month(year: int, month: int, dates: DateShift) -> str:
    day = _day(year, month, 15)
    if day is None:
        return UNREADABLE
    return str(year) if dates.years_only else f"{dates.shifted(day):%Y-%m}"


def _show_figures(match: re.Match[str], dates: DateShift) -> str | None:
    """Replace a numeric month like a written one; None for the dilution of a titre (1/2000)."""
    if DILUTED.search(match.string[: match.start()]):
        return None
    return _show_month(int(match["year"] or match["iso"]), int(match["month"] or match["second"]), dates)


def _show_year(year: int, part: str, dates: DateShift) -> str:
    """Replace a season or quarter by its year, after shifting its middle."""
    day = _day(year, MIDDLE_MONTHS[part], 15)
    return UNREADABLE if day is None else str(dates.shifted(day).year)


def replace_ages(note: Redaction) -> None:
    """Write every age over 89 as 90+."""

    def top_code(match: re.Match[str]) -> str | None:
        age = int(match["age"] or match["late"])
        if not TOP_AGE <= age <= 125:
            return None
        return f"{TOP_AGE}+{match['rest']}" if match["age"] else f"{match['word']}{TOP_AGE}+"

    note.replace(AGE, "age", top_code)
    note.replace(SPELLED_AGE, "age", f"{TOP_AGE}+")
