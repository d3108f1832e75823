"""Times of day: counted from the start of the study, which is moved to noon, so that intervals stay and the hour of the day goes."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from neuralmedbench.deid.values import DateShift, parse_day

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

NOON = time(12)
"""When every study begins after cleaning: as far from both midnights as can be."""
MIDNIGHT = "000000"
STUDY_DATE, STUDY_TIME = 0x00080020, 0x00080030
CLOCK = re.compile(r"(?P<hour>[01]\d|2[0-3])(?::?(?P<minute>[0-5]\d)(?::?(?P<second>[0-5]\d|60)(?:\.\d{1,6})?)?)?")
MOMENT = re.compile(r"(?P<day>\d{8})(?P<clock>\d{2,6}(?:\.\d{1,6})?)?(?:[+-]\d{4})?")


@dataclass(frozen=True)
class Times:
    """What the times of a header are counted from.

    Attributes
    ----------
    start : datetime or None
        When the study began; None when the header does not say, or when no interval may be kept (years only).
    beside : str
        The time of day that belongs to the date that is cleaned (StudyTime to StudyDate), as the file has it; empty when there is none.
    """

    start: datetime | None = None
    beside: str = ""


NO_TIMES = Times()


def study_start(dataset: Dataset, dates: DateShift) -> datetime | None:
    """When the study of a header began, by StudyDate and StudyTime; None where option 113107 of PS3.15 does not hold."""
    if dates.years_only:
        return None
    day, clock = parse_day(_text(dataset, STUDY_DATE).strip("\0 ")), _clock(_text(dataset, STUDY_TIME))
    return datetime.combine(day, clock) if day is not None and clock is not None else None


def beside(dataset: Dataset, tag: int) -> str:
    """Text of the time of day that belongs to a date of the same dataset or item; empty when there is none."""
    paired = _time_of(tag)
    return _text(dataset, paired) if paired is not None else ""


def _text(dataset: Dataset, tag: int) -> str:
    """Text of an element as the file has it: nothing is decoded that may be malformed."""
    value: Any = dataset.get_item(tag).value if tag in dataset else b""
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value or "")


@cache
def _time_of(tag: int) -> int | None:
    from pydicom.datadict import dictionary_VR, keyword_for_tag, tag_for_keyword

    paired = tag_for_keyword(keyword_for_tag(tag).replace("Date", "Time"))
    return paired if paired is not None and paired != tag and dictionary_VR(paired) == "TM" else None


def moved_time(text: str, times: Times) -> str:
    """Give the time of day (TM, whole seconds) that is shown in place of one; midnight where no interval can be told.

    Examples
    --------
    >>> moved_time("101530.25", Times(datetime(2031, 3, 14, 9, 12)))
    '130330'
    """
    clock = _clock(text)
    if clock is None or times.start is None:
        return MIDNIGHT
    return f"{datetime.combine(date(2000, 1, 2), clock) + _to_noon(times.start):%H%M%S}"


def moved_day(text: str, clock: str, dates: DateShift, times: Times) -> str:
    """Give the date (DA) that is shown in place of one; empty when it is none.

    With its time of day it keeps its distance from the start of the study: what was done after midnight is not moved a day away.
    """
    day, at = parse_day(text.strip().replace("-", "")[:8]), _clock(clock)
    if day is None:
        return ""
    if at is not None and times.start is not None and not dates.years_only:
        with suppress(OverflowError):  # the last day of all calendars stays what it is
            day = (datetime.combine(day, at) + _to_noon(times.start)).date()
    return f"{dates.shifted(day):%Y%m%d}"


def moved_moment(text: str, dates: DateShift, times: Times) -> str:
    """Give the date with time (DT, without its zone) that is shown in place of one; empty when it is none."""
    found = MOMENT.fullmatch(text.strip())
    day, clock = (found["day"], found["clock"] or "") if found else (text.strip()[:8], "")
    moved = moved_day(day, clock, dates, times)
    return moved and moved + moved_time(clock, times)


def _to_noon(start: datetime) -> timedelta:
    return datetime.combine(start.date(), NOON) - start


def _clock(text: str) -> time | None:
    found = CLOCK.fullmatch(text.strip("\0 "))
    if found is None:
        return None
    return time(int(found["hour"]), int(found["minute"] or 0), min(int(found["second"] or 0), 59))
