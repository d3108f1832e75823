"""Rules for single values that headers, notes and records share: dates, times of day, ages, words of descriptions.

Times of day are counted from the start of the study, which is moved to noon: intervals are kept, the hour of the day is lost.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from neuralmedbench.files.identity import fold
from neuralmedbench.files.words import NO_AGENT, UNSTATED_AGENT, word_set

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

TOP_AGE = 90
"""Ages over 89 identify a person; all become 90 (HIPAA Safe Harbor)."""
DESCRIPTOR_WORDS = word_set(
    "t1 t1w t1c t1pre t1post t1ce t1gd t1km t2 t2w t2* t2star pd pdw flair dark fluid dwi adc dti diff diffusion trace tracew swi swan suscept susceptibility",
    "ct cta mr mri head brain neuro skull skullbase orbit orbits pituitary temporal cranial axial ax tra transversal sag sagittal cor coronal obl",
    "se tse fse gre ep2d epi ep ir tir tirm stir haste blade propeller space cube vista vibe bravo mprage mpr tfl tfe ffe spgr fspgr fl2d fl3d",
    "2d 3d iso fs fatsat fat sat dixon spair pre post c +c gd gad gadolinium contrast ce km without with plain native nativ wo w o",
    "b0 b500 b700 b800 b1000 b1500 b2000 scan 3scan stroke tumor tumour ms epilepsy dementia routine standard protocol bone soft tissue",
    "thin thick std angio tof anat diagnostic series map maps image images high low res resolution fast",
    "cct ncct nect cect spiral helical volume vol recon reformat cerebral cerebrum vertex iv intravenous oral intrathecal intraarterial",
)
"""Words that a description of a scan may keep; all others are removed."""
AGENTS = word_set(
    "gadolinium gd gad gadovist gadavist gadobutrol dotarem clariscan gadoterate gadoteric magnevist gadopentetate prohance gadoteridol",
    "multihance gadobenate omniscan gadodiamide primovist eovist gadoxetate elucirem vueway gadopiclenol artirem feraheme ferumoxytol",
    "omnipaque iohexol ultravist iopromide visipaque iodixanol isovue iopamidol iopamiro imeron iomeprol iomeron xenetix iobitridol optiray",
    "ioversol oxilan iodine",
)
SHORT_NUMBER, SLICE_MM = re.compile("[0-9]{1,2}"), re.compile("[0-9]{1,2}mm")
NAMELESS_AGENT = "contrast agent"
"""What is left of a contrast agent whose name is not kept."""
NO_AGENT_WORDS = frozenset({"no", "none", "n", "nil", "off", "without"})
PULSES = (
    "se|tse|tir|tirm|tfl|fl|ep|epfid|epse|epi|ffe|tfe|spc|spcr|swi|h|hst|re|qfl|fi|ci|me|csi|gre|ge|fse|ir|de|dess|ciss|fm|pc|tof|fid|ute"
)
PULSE_NAME = re.compile(rf"\*?(?:{PULSES})(?:[23]d\d{{0,2}})?[a-z]{{0,2}}(?:[_#](?:b?\d{{1,4}}[a-z]{{0,2}}|swi|ns|{PULSES}))*")
"""Names of pulse sequences as scanners write them: `*tfl3d1_16ns`."""
NOON = time(12)
"""Start of every study after cleaning, as far from midnight as possible."""
MIDNIGHT = "000000"
STUDY_DATE, STUDY_TIME = 0x00080020, 0x00080030
CLOCK = re.compile(r"(?P<hour>[01]\d|2[0-3])(?::?(?P<minute>[0-5]\d)(?::?(?P<second>[0-5]\d|60)(?:\.\d{1,6})?)?)?")
DATE_TIME = re.compile(r"(?P<day>\d{8})(?P<clock>\d{2,6}(?:\.\d{1,6})?)?(?:[+-]\d{4})?")


@dataclass(frozen=True)
class DateShift:
    """How the dates of a patient are changed.

    Attributes
    ----------
    days : int
        Days to add; never 0.
    years_only : bool
        True if notes keep only the year (profile `safe_harbor`, or dates are not kept at all); so do headers, unless `emptied`.
    emptied : bool
        True if headers keep no date (without option 113107 of PS3.15).
    """

    days: int
    years_only: bool = False
    emptied: bool = False

    def shifted(self, day: date) -> date:
        """Return the replacement of a date; with `years_only` 1 January of its year."""
        if self.years_only:
            return date(day.year, 1, 1)
        try:
            return day + timedelta(days=self.days)
        except OverflowError:
            return date(day.year, 1, 1)

    def text(self, day: date) -> str:
        """Write a date for a note: ISO, or the year alone."""
        return str(day.year) if self.years_only else self.shifted(day).isoformat()


def parse_day(text: str) -> date | None:
    """Read `YYYYMMDD` or `YYYY-MM-DD`; None if it is not a date."""
    match = re.fullmatch(r"(\d{4})[-.:/]?(\d{2})[-.:/]?(\d{2})", text.strip())
    if not match:
        return None
    try:
        return date(*(int(part) for part in match.groups()))
    except ValueError:
        return None


def clean_descriptor(text: str) -> str:
    """Keep the words of a description that describe the scan, and isolated short numbers.

    Several numbers in a row are removed: they may be a date, a telephone or a record number with separators.

    Examples
    --------
    >>> clean_descriptor("AX T2 FLAIR Vandermeer 4821337")
    'AX T2 FLAIR'
    >>> clean_descriptor("T1 TRA 3 12-34-56 5mm")
    'T1 TRA 5mm'
    """
    words = [word for word in re.split(r"[\s_,;:()\[\]/\\^-]+", text) if word]
    plain = [word.casefold() in DESCRIPTOR_WORDS or SLICE_MM.fullmatch(word.casefold()) is not None for word in words]
    number = [False, *(not known and any(map(str.isdigit, word)) for word, known in zip(words, plain, strict=True)), False]
    alone = [SHORT_NUMBER.fullmatch(word) and not number[place] and not number[place + 2] for place, word in enumerate(words)]
    return " ".join(word for word, known, single in zip(words, plain, alone, strict=True) if known or single)


def clean_pulse_name(text: str) -> str:
    """Keep the name of a pulse sequence; anything else is cleaned like a description."""
    return text if PULSE_NAME.fullmatch(text) else clean_descriptor(text)


def clean_agent(text: str) -> str:
    """Keep the name of a contrast agent, or else only whether one was given; empty where the header does not know.

    Examples
    --------
    >>> [clean_agent(text) for text in ("Gadovist 7ml Vandermeer", "gave by JV", "NONE", "ohne KM", "0 ml", "unknown")]
    ['Gadovist', 'contrast agent', 'NONE', 'NONE', 'NONE', '']
    """
    words = re.findall(r"[A-Za-z]+", text)
    stated = fold(text).strip().casefold()
    if UNSTATED_AGENT.fullmatch(stated):
        return ""
    # one word anywhere is enough: `Contrast: NO`
    if NO_AGENT.fullmatch(stated) or any(word.casefold() in NO_AGENT_WORDS for word in words):
        return "NONE"
    return " ".join(word for word in words if word.casefold() in AGENTS) or NAMELESS_AGENT


def top_code_age(text: str) -> str:
    """Replace a DICOM age over 89 years by 90 (`094Y` becomes `090Y`); anything that is not an age becomes empty."""
    match = re.fullmatch(r"(\d{1,3})([DWMY])", text.strip().upper())
    if not match:
        return ""
    number, unit = int(match[1]), match[2]
    return f"{min(number, TOP_AGE) if unit == 'Y' else number:03d}{unit}"


@dataclass(frozen=True)
class Times:
    """Reference for the times of a header.

    Attributes
    ----------
    start : datetime or None
        Start of the study; None if unknown, or if no interval may be kept (years only).
    paired_time : str
        Time of day that belongs to the date being cleaned (StudyTime to StudyDate), as in the file; empty if absent.
    """

    start: datetime | None = None
    paired_time: str = ""


NO_TIMES = Times()


def study_start(dataset: Dataset, dates: DateShift) -> datetime | None:
    """Read the start of a study from StudyDate and StudyTime; None without option 113107 of PS3.15."""
    if dates.years_only:
        return None
    day, clock = parse_day(_raw_text(dataset, STUDY_DATE).strip("\0 ")), _clock(_raw_text(dataset, STUDY_TIME))
    return datetime.combine(day, clock) if day is not None and clock is not None else None


def paired_time(dataset: Dataset, tag: int) -> str:
    """Return the time of day that belongs to a date in the same dataset or item; empty if absent."""
    paired = _time_of(tag)
    return _raw_text(dataset, paired) if paired is not None else ""


def _raw_text(dataset: Dataset, tag: int) -> str:
    """Return the text of an element without pydicom's decoding, which fails on malformed values."""
    value: Any = dataset.get_item(tag).value if tag in dataset else b""
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value or "")


@cache
def _time_of(tag: int) -> int | None:
    from pydicom.datadict import dictionary_VR, keyword_for_tag, tag_for_keyword

    paired = tag_for_keyword(keyword_for_tag(tag).replace("Date", "Time"))
    return paired if paired is not None and paired != tag and dictionary_VR(paired) == "TM" else None


def shift_time(text: str, times: Times) -> str:
    """Return the replacement of a time of day (TM, whole seconds); midnight if its interval from the start is unknown.

    Examples
    --------
    >>> shift_time("101530.25", Times(datetime(2031, 3, 14, 9, 12)))
    '130330'
    """
    clock = _clock(text)
    if clock is None or times.start is None:
        return MIDNIGHT
    return f"{datetime.combine(date(2000, 1, 2), clock) + _to_noon(times.start):%H%M%S}"


def shift_date(text: str, clock: str, dates: DateShift, times: Times) -> str:
    """Return the replacement of a date (DA); empty if it is not a date.

    With its time of day it keeps its interval from the start of the study, so a series after midnight is not moved by another day.
    """
    day, at = parse_day(text.strip().replace("-", "")[:8]), _clock(clock)
    if day is None:
        return ""
    if at is not None and times.start is not None and not dates.years_only:
        with suppress(OverflowError):  # near year 9999, the day is kept
            day = (datetime.combine(day, at) + _to_noon(times.start)).date()
    return f"{dates.shifted(day):%Y%m%d}"


def shift_datetime(text: str, dates: DateShift, times: Times) -> str:
    """Return the replacement of a date with time (DT), without its zone; empty if it is not a date."""
    match = DATE_TIME.fullmatch(text.strip())
    day, clock = (match["day"], match["clock"] or "") if match else (text.strip()[:8], "")
    moved = shift_date(day, clock, dates, times)
    return moved and moved + shift_time(clock, times)


def _to_noon(start: datetime) -> timedelta:
    return datetime.combine(start.date(), NOON) - start


def _clock(text: str) -> time | None:
    match = CLOCK.fullmatch(text.strip("\0 "))
    if match is None:
        return None
    return time(int(match["hour"]), int(match["minute"] or 0), min(int(match["second"] or 0), 59))
