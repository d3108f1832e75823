"""Read one value from a text: a number, an index, a date, weeks and days, an interval, a box, letters, keywords. None if it cannot be read.

Nothing of a text is executed, and a text that states several values states none.
"""

from __future__ import annotations

import json
import math
import re
from datetime import date

MAX_TEXT = 2000
"""Characters of a value that are read."""

NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,4})?|[-+]?\.\d+"
UNIT_NUMBERS = re.compile(
    r"/\s*1[.,]73|(?:\b[a-zµ]+|(?<=\s)[×x]\s*10)\s*\^\s*[-+]?\d+|\bm2\b|\bcm[23]\b|\b[×x]\s*10\s*(?=\^|\d+/)", re.IGNORECASE
)
"""Numbers that belong to a unit: the 1.73 of `mL/min/1.73 m2`, powers."""

OUT_OF = re.compile(rf"(?<![\d./])({NUMBER})\s*(?:points?\s*)?(?:out\s+of|/)\s*(?:{NUMBER})(?![\d/])", re.IGNORECASE)
"""A score with its maximum: `3 out of 5`, `3/5`."""

RESULT = re.compile(r"[=≈]")
INTEGER = re.compile(r"(?:(?:sentence|line|item|index|option|no|number|id|#)[\s.:#]*)?([-+]?\d{1,9})(?:\.0*)?", re.IGNORECASE)
MONTH_DAY_YEAR = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})(?!\d)")
YEAR_MONTH_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
WEEKS_DAYS = re.compile(
    r"\(?\s*[\"']?(\d{1,3})\s*(?:weeks?|wks?|w)?\s*[\"']?\s*(?:,|;|\+|and|&|\s)\s*[\"']?(\d{1,2})\s*(?:days?|d)?\s*[\"']?\s*\)?\.?",
    re.IGNORECASE,
)
TO = r"\s*(?:,|;|to|and|through|until|-|–|—)\s*"
INTERVAL = re.compile(rf"(?:between|from)?\s*[\[(]?\s*({NUMBER}){TO}({NUMBER})\s*[\])]?\s*(?:[^\d]*)", re.IGNORECASE)
COORDINATES = r"\s*(-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?)\s*"
BOX = re.compile(rf"[\[(]\s*[\[(]?{COORDINATES},{COORDINATES}(?:[\])]\s*,?\s*[\[(])?,?{COORDINATES},{COORDINATES}[\])]")
BRACKETED_LETTER = re.compile(r"\(\s*([A-J])\s*\)", re.IGNORECASE)
LEADING_LETTER = re.compile(r"(?:^|[,;]\s*|\s+and\s+)([A-J])\s*[.):](?=\s|$)", re.IGNORECASE)
ONLY_LETTERS = re.compile(r"[A-J](?:\s*(?:,\s*and|[,;/&]|and|\s)\s*[A-J])*", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
NOTHING = frozenset({"", "na", "n/a", "none", "null"})
"""Texts of a rewritten sentence that say that nothing is to be rewritten."""


def read_number(text: str) -> float | None:
    """Read the only number of a text, without those of its unit; a score before its maximum, the result after the last equals sign."""
    plain = UNIT_NUMBERS.sub(" ", RESULT.split(text)[-1])
    if scored := OUT_OF.search(plain):
        plain = scored[1]
    found = {float(part.replace(",", "")) for part in re.findall(rf"(?<![\w.,])(?:{NUMBER})", plain)}
    value = found.pop() if len(found) == 1 else math.nan
    return value if math.isfinite(value) else None


def read_index(text: str) -> int | None:
    match = INTEGER.fullmatch(text.strip(" .\"'"))
    return int(match[1]) if match else {"true": 1, "false": 0}.get(text.lower())


def read_date(text: str) -> date | None:
    plain = text.lstrip(" \"'(")
    for form, order in ((MONTH_DAY_YEAR, (3, 1, 2)), (YEAR_MONTH_DAY, (1, 2, 3))):
        if match := form.match(plain):
            try:
                return date(*(int(match[place]) for place in order))
            except ValueError:  # a day that the month does not have
                return None
    return None


def read_weeks_days(text: str) -> tuple[int, int] | None:
    match = WEEKS_DAYS.fullmatch(text.strip("[] \"'"))
    return (int(match[1]), int(match[2])) if match else None


def read_interval(text: str) -> tuple[float, float] | None:
    match = INTERVAL.fullmatch(text)
    if match is None:
        return None
    low, high = (float(part.replace(",", "")) for part in match.groups())
    return (low, high) if low <= high else None


def read_box(text: str) -> tuple[float, ...] | None:
    match = BOX.search(text)
    return tuple(map(float, match.groups())) if match else None


def read_letters(text: str) -> tuple[str, ...] | None:
    """Read the letters of options: `B`, `b, d`, `(b) 2nd image, (d) 4th image`, `B. 2nd image`; a text of an option alone is not read.

    Examples
    --------
    >>> read_letters("(b) 2nd image, (d) 4th image"), read_letters('["D", "b"]'), read_letters("a bone and a vessel")
    (('B', 'D'), ('B', 'D'), None)
    """
    plain = re.sub(r"[\[\]\"'*]", "", text).strip(" .")
    if ONLY_LETTERS.fullmatch(plain):
        found = re.findall(r"\b[A-J]\b", plain, re.IGNORECASE)
    else:
        found = BRACKETED_LETTER.findall(plain) or LEADING_LETTER.findall(plain)
    return tuple(sorted({letter.upper() for letter in found})) or None


def read_letter(text: str) -> tuple[str, ...] | None:
    """Read the letter of one option; a text with several states none."""
    letters = read_letters(text)
    return letters if letters and len(letters) == 1 else None


def keywords_of(value: str) -> tuple[str, ...]:
    """Return the keywords of a reference: a JSON list."""
    return tuple(json.loads(value))


def read_words(text: str) -> str | None:
    return text or None


def read_label(text: str) -> str | None:
    return " ".join(text.strip(" .\"'*_").casefold().split()) or None
