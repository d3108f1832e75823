"""Numbers in words, the same in tables, figures and page: percentages, intervals, points, counts, p values, lists. It imports nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

Cell = str | float | None
"""A number, or the text of a cell: empty when there is none."""

UNKNOWN, DASH = "not known", "–"
"""What stands for no number in a sentence, and in a cell of the page."""

EACH, ONCE, DASHED = "{} % to {} %", "{} to {} %", "{}–{}"
"""How the ends of an interval of percentages are written."""

DECIMALS = 6
"""A number is rounded as its cell is before it is written in words, so that text and table never differ by a point."""


def number(cell: Cell) -> float | None:
    """Read a cell as a number; None when it is empty or not finite.

    Examples
    --------
    >>> number("0.5"), number(""), number(None), number("nan")
    (0.5, None, None, None)
    """
    value = math.nan if cell in ("", None) else float(cell)
    return round(value, DECIMALS) if math.isfinite(value) else None


def percent(share: Cell, digits: int = 0, *, missing: str = UNKNOWN) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> percent("0.641667"), percent(0.0215, 1), percent(""), percent(None, missing=DASH)
    ('64 %', '2.1 %', 'not known', '–')
    """
    value = number(share)
    return _absent(share, missing) if value is None else f"{100 * value:.{digits}f} %"


def percent_span(low: Cell, high: Cell, form: str = EACH) -> str:
    """Write an interval of shares in percent; empty when an end is not known.

    Examples
    --------
    >>> percent_span(0.25, 0.75), percent_span("0.25", "0.75", ONCE), percent_span("0.41", "0.84", DASHED), percent_span("", "0.84")
    ('25 % to 75 %', '25 to 75 %', '41–84', '')
    """
    ends = number(low), number(high)
    return "" if None in ends else form.format(*(f"{100 * end:.0f}" for end in ends if end is not None))


def percent_with_span(share: Cell, low: Cell, high: Cell, form: str = EACH) -> str:
    """Write a share with its interval, where it has one.

    Examples
    --------
    >>> percent_with_span(0.5, 0.25, 0.75), percent_with_span("0.5", "0.2", "0.8", ONCE), percent_with_span(0.5, None, None)
    ('50 % (25 % to 75 %)', '50 % (20 to 80 %)', '50 %')
    """
    span = percent_span(low, high, form)
    return f"{percent(share)} ({span})" if span else percent(share)


def points(difference: Cell, *, plus: str = "+", minus: str = "−", signed_zero: bool = False, missing: str = UNKNOWN) -> str:
    """Write a difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points("-0.1"), points(0.25), points(0.25, plus=""), points(-0.1, minus="-"), points(0.001), points(0.001, signed_zero=True)
    ('−10', '+25', '25', '-10', '0', '+0')
    """
    value = number(difference)
    if value is None:
        return _absent(difference, missing)
    text = f"{100 * value:+.0f}"
    return "0" if text[1:] == "0" and not signed_zero else text.replace("+", plus).replace("-", minus)


def points_span(low: Cell, high: Cell, *, plus: str = "+", minus: str = "−", signed_zero: bool = False) -> str:
    """Write an interval of differences in percentage points; empty when an end is not known.

    Examples
    --------
    >>> points_span("-0.1", "0.05"), points_span("", "0.05")
    ('−10 to +5', '')
    """
    if number(low) is None or number(high) is None:
        return ""
    first, last = (points(end, plus=plus, minus=minus, signed_zero=signed_zero) for end in (low, high))
    return f"{first} to {last}"


def decimal(cell: Cell, digits: int = 2, *, missing: str = UNKNOWN) -> str:
    """Write a plain number with its decimals."""
    value = number(cell)
    return _absent(cell, missing) if value is None else f"{value:.{digits}f}"


def whole(cell: Cell, *, missing: str = UNKNOWN) -> str:
    """Write a whole number with separators of thousands; a mark of disclosure (`<10`, `(hidden)`) stays as it is.

    Examples
    --------
    >>> whole("1234"), whole("<10")
    ('1,234', '<10')
    """
    if cell in ("", None):
        return _absent(cell, missing)
    return cell if isinstance(cell, str) and cell.startswith(("<", "(")) else f"{int(cell):,}"


def p_value(cell: Cell, *, missing: str = UNKNOWN) -> str:
    """Write a p value.

    Examples
    --------
    >>> p_value("0.000488"), p_value(0.0312)
    ('< 0.001', '0.031')
    """
    value = number(cell)
    if value is None:
        return _absent(cell, missing)
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def p_equals(value: float) -> str:
    """Write a p value as in a sentence.

    Examples
    --------
    >>> p_equals(0.000488), p_equals(0.0312)
    ('p < 0.001', 'p = 0.031')
    """
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def counted(count: int, noun: str, separator: str = ",") -> str:
    """Write how many.

    Examples
    --------
    >>> counted(1, "patient"), counted(1234, "answer"), counted(1234, "item", separator=""), counted(2, "category")
    ('1 patient', '1,234 answers', '1234 items', '2 categories')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{f'{count:,}'.replace(',', separator)} {noun if count == 1 else plural}"


def listing(names: Sequence[str], most: int = 4) -> str:
    """Join names as in a sentence; beyond `most` the rest is counted.

    Examples
    --------
    >>> listing(["a"]), listing(["a", "b"]), listing(["a", "b", "c", "d", "e", "f"])
    ('a', 'a and b', 'a, b, c and 3 more')
    """
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def capital(sentence: str) -> str:
    """Begin with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def spaced(name: str) -> str:
    """Write a name of the tables as words: `no_image` is `no image`."""
    return name.replace("_", " ")


def _absent(cell: object, missing: str) -> str:
    return str(getattr(cell, "mark", missing))  # an empty cell of a public page may carry the mark that says why it is empty
