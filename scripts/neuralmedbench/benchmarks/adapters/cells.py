"""Reading cells: text, lists, days and languages as data sets write them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

DAY = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
KANA = re.compile(r"[\u3040-\u30ff]")
HANGUL = re.compile(r"[\uac00-\ud7af]")


def written(value: Any) -> str:
    """Give a cell as text; nothing for a missing value (None, NaN)."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return (str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)).strip()


def words(row: Mapping[str, Any], column: str) -> str:
    """Give the text of a column; nothing when the row does not have it."""
    return written(row.get(column))


def parts(value: Any) -> list[Any]:
    """Give the entries of a cell that holds a list: a list, JSON of one, or text separated by `;`.

    Examples
    --------
    >>> parts('["a", "b"]'), parts("a; b"), parts(None)
    (['a', 'b'], ['a', 'b'], [])
    """
    if isinstance(value, list | tuple):
        return list(value)
    text = written(value)
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, list):
            return found
    return [part.strip() for part in text.split(";") if part.strip()]


def texts(value: Any) -> tuple[str, ...]:
    """Give the entries of a list that are filled, as text."""
    return tuple(text for text in map(written, parts(value)) if text)


def day(value: Any) -> str:
    """Give the day (or month, or year) with which a time begins; nothing when it does not begin with one.

    Examples
    --------
    >>> day("2023-04-16T00:00:00"), day("spring")
    ('2023-04-16', '')
    """
    found = DAY.match(written(value))
    return found[0] if found else ""


def language_of(text: str, usual: str = "en") -> str:
    """Language of a text by its script: `ja`, `ko`, `zh`, or else the usual one."""
    for language, script in (("ja", KANA), ("ko", HANGUL), ("zh", CHINESE)):
        if script.search(text):
            return language
    return usual
