"""Dates and ages of a note: moved by the days of the patient's scans, or taken out where no day can be read."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import date

from neuralmedbench.deid.notes import date_patterns as pattern
from neuralmedbench.deid.notes.redaction import Redaction
from neuralmedbench.deid.values import TOP_AGE, DateShift

UNREAD = "[DATE]"
"""What is shown in place of a date in which no day can be read."""


def replace_dates(note: Redaction, dates: DateShift, scan_day: date | None) -> None:
    """Replace every date of a note.

    Parameters
    ----------
    note : Redaction
        The note.
    dates : DateShift
        How dates are changed.
    scan_day : date or None
        Day of the scan; tells which of two readings of 03/04/2031 is meant.
    """
    day_first = _reads_day_first(note.text, scan_day)
    note.replace(pattern.COMPACT_DATE, "date", lambda match: _show(_day(int(match["a"]), int(match["b"]), int(match["c"])), dates))
    note.replace(
        pattern.NUMERIC_DATE,
        "date",
        lambda match: None if pattern.SCORED.search(match.string[: match.start()]) else _show(numeric_day(match, day_first), dates),
    )
    note.replace(
        pattern.ROMAN_DATE,
        "date",
        lambda match: _show_named(match["year"], _roman(match["roman"]), match["day"], dates) if _roman(match["roman"]) else None,
    )
    for found in (pattern.DAY_RANGE, pattern.MONTH_RANGE):
        note.replace(found, "date", f"{UNREAD} - ")
    for found in (pattern.DAY_MONTH_YEAR, pattern.MONTH_DAY_YEAR):
        note.replace(found, "date", lambda match: _show_named(match["year"], _month(match["month"]), match["day"], dates))
    note.replace(pattern.MONTH_YEAR, "date", lambda match: _show_month(_year(match["year"]), _month(match["month"]), dates))
    note.replace(pattern.FIGURE_MONTH, "date", lambda match: _show_figures(match, dates))
    note.replace(pattern.MONTH_SPAN, "date", UNREAD)
    note.replace(pattern.SEASON, "date", lambda match: _show_year(int(match["year"]), match["part"].casefold(), dates))
    _replace_days(note)
    for found in (pattern.NEXT_DAY, pattern.SPELLED_DAY, pattern.DAY_ALONE, pattern.MONTH_ALONE, pattern.HOLIDAY):
        note.replace(found, "date", UNREAD)


@dataclass(frozen=True)
class _Seen(DateShift):
    """Remembers the days that it was asked to change."""

    named: list[date] = field(default_factory=list)

    def shifted(self, day: date) -> date:
        """Give the day as it is."""
        self.named.append(day)
        return day


def days_named(text: str, scan_day: date | None) -> list[date | None]:
    """Give the days that a text names (of a month its middle), and None for each that it names in a way in which no day can be read.

    Parameters
    ----------
    text : str
        The text before dates were replaced in it.
    scan_day : date or None
        As for `replace_dates`.
    """
    seen = _Seen(0)
    note = Redaction(text)
    replace_dates(note, seen, scan_day)
    return [*seen.named, *(None for span in note.spans if span.shown.startswith(UNREAD))]


def _replace_days(note: Redaction) -> None:
    for match in list(pattern.DAY_MONTH.finditer(note.text)):
        note.cover(*match.span("value" if match["value"] else "also" if match["also"] else 0), "date", UNREAD)


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
    return next(number for number, month in enumerate(pattern.MONTHS, start=1) if month.startswith(name.casefold().rstrip(".")[:3]))


def _roman(name: str) -> int:
    return pattern.ROMAN.index(name.casefold()) + 1 if name.casefold() in pattern.ROMAN else 0


def _show_named(year: str, month: int, day: str, dates: DateShift) -> str:
    return _show(_day(_year(year), month, int(day)), dates)


def _year(text: str) -> int:
    number = int(text.lstrip("'’"))
    return number if number > 99 else _century(number)


def _show(day: date | None, dates: DateShift) -> str:
    return UNREAD if day is None else dates.text(day)


def _show_month(year: int, month: int, dates: DateShift) -> str:
    day = _day(year, month, 15)
    if day is None:
        return UNREAD
    return str(year) if dates.years_only else f"{dates.shifted(day):%Y-%m}"


def _show_figures(match: re.Match[str], dates: DateShift) -> str | None:
    """Show a month in figures like a month in words; a dilution of a titre (1/2000) is none."""
    if pattern.DILUTED.search(match.string[: match.start()]):
        return None
    return _show_month(int(match["year"] or match["iso"]), int(match["month"] or match["second"]), dates)


def _show_year(year: int, part: str, dates: DateShift) -> str:
    """Show the year of a season or a quarter, by its middle."""
    day = _day(year, pattern.MIDDLE_MONTHS[part], 15)
    return UNREAD if day is None else str(dates.shifted(day).year)


def replace_ages(note: Redaction) -> None:
    """Write every age over 89 as 90+."""

    def top_code(match: re.Match[str]) -> str | None:
        age = int(match["age"] or match["late"])
        if not TOP_AGE <= age <= 125:
            return None
        return f"{TOP_AGE}+{match['rest']}" if match["age"] else f"{match['word']}{TOP_AGE}+"

    note.replace(pattern.AGE, "age", top_code)
    note.replace(pattern.SPELLED_AGE, "age", f"{TOP_AGE}+")
