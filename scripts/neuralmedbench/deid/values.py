"""Values that every part of de-identification treats alike: dates, ages, descriptor words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from neuralmedbench.files.words import word_set

TOP_AGE = 90
"""Ages over 89 identify; they all become 90 (Safe Harbor)."""


DESCRIPTOR_WORDS = word_set(
    "t1 t1w t1c t2 t2w t2* t2star pd pdw flair dark fluid dwi adc dti diff diffusion trace tracew swi swan suscept susceptibility",
    "ct cta mr mri head brain neuro skull skullbase orbit orbits pituitary temporal cranial axial ax tra transversal sag sagittal cor coronal obl",
    "se tse fse gre ep2d epi ep ir tir tirm stir haste blade propeller space cube vista vibe bravo mprage mpr tfl tfe ffe spgr fspgr fl2d fl3d",
    "2d 3d iso fs fatsat fat sat dixon spair pre post c +c gd gad gadolinium contrast ce km without with plain native nativ wo w o",
    "b0 b500 b700 b800 b1000 b1500 b2000 scan 3scan stroke tumor tumour ms epilepsy dementia routine standard protocol bone soft tissue",
    "thin thick std angio tof anat diagnostic series map maps image images high low res resolution fast",
    "cct ncct nect cect spiral helical volume vol recon reformat cerebral cerebrum vertex iv intravenous oral intrathecal intraarterial",
)
"""What a description may say about a scan; every other word of it goes."""
AGENTS = word_set(
    "gadolinium gd gad gadovist gadavist gadobutrol dotarem clariscan gadoterate gadoteric magnevist gadopentetate prohance gadoteridol",
    "multihance gadobenate omniscan gadodiamide primovist eovist gadoxetate elucirem vueway gadopiclenol artirem feraheme ferumoxytol",
    "omnipaque iohexol ultravist iopromide visipaque iodixanol isovue iopamidol iopamiro imeron iomeprol iomeron xenetix iobitridol optiray",
    "ioversol oxilan iodine",
)
SHORT_NUMBER, SLICE_MM = re.compile("[0-9]{1,2}"), re.compile("[0-9]{1,2}mm")
NO_AGENT = frozenset({"no", "none", "n", "nil", "without"})


PULSES = (
    "se|tse|tir|tirm|tfl|fl|ep|epfid|epse|epi|ffe|tfe|spc|spcr|swi|h|hst|re|qfl|fi|ci|me|csi|gre|ge|fse|ir|de|dess|ciss|fm|pc|tof|fid|ute"
)
PULSE_NAME = re.compile(rf"\*?(?:{PULSES})(?:[23]d\d{{0,2}})?[a-z]{{0,2}}(?:[_#](?:b?\d{{1,4}}[a-z]{{0,2}}|swi|ns|{PULSES}))*")
"""How scanners name a pulse sequence: `*tfl3d1_16ns`."""


@dataclass(frozen=True)
class DateShift:
    """How dates are changed.

    Attributes
    ----------
    days : int
        Days that are added; never 0.
    years_only : bool
        Whether notes show only the year (profile `safe_harbor`, or dates are not kept at all); headers show it too, unless `emptied`.
    emptied : bool
        Whether headers show no date (option 113107 of PS3.15 is left out).
    """

    days: int
    years_only: bool = False
    emptied: bool = False

    def shifted(self, day: date) -> date:
        """Give the date that is shown in place of a date; with `years_only` the first of January of its year."""
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
    """Read `YYYYMMDD` or `YYYY-MM-DD`; None when it is no day."""
    found = re.fullmatch(r"(\d{4})[-.:/]?(\d{2})[-.:/]?(\d{2})", text.strip())
    if not found:
        return None
    try:
        return date(*(int(part) for part in found.groups()))
    except ValueError:
        return None


def clean_descriptor(text: str) -> str:
    """Keep the words of a description that say something about the scan, and short numbers that stand alone.

    Several numbers in a row go: they may be a date, a telephone or a record number with separators.

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
    """Keep the name of a contrast agent, or that there was one, or that there was none.

    Examples
    --------
    >>> [clean_agent(text) for text in ("Gadovist 7ml Vandermeer", "gave by JV", "NONE")]
    ['Gadovist', 'contrast agent', 'NONE']
    """
    words = re.findall(r"[A-Za-z]+", text)
    if any(word.casefold() in NO_AGENT for word in words) or text.strip() in {"0", "-"}:
        return "NONE"
    return " ".join(word for word in words if word.casefold() in AGENTS) or "contrast agent"


def top_code_age(text: str) -> str:
    """DICOM age with everything over 89 years as 90: `094Y` becomes `090Y`; what is no age becomes empty."""
    found = re.fullmatch(r"(\d{1,3})([DWMY])", text.strip().upper())
    if not found:
        return ""
    number, unit = int(found[1]), found[2]
    return f"{min(number, TOP_AGE) if unit == 'Y' else number:03d}{unit}"
