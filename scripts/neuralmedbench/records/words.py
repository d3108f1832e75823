"""Format numbers and lists alike in tables, figures and page: percentages, intervals, points, counts, p values. Imports nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal

Cell = str | float | None
"""A number, or the text of a cell (empty for no number)."""

UNKNOWN, DASH = "not known", "–"
"""Text for a missing number in a sentence, and in a cell of the page."""

EACH, ONCE, DASHED = "{} % to {} %", "{} to {} %", "{}–{}"
"""Formats of an interval of percentages."""

DECIMALS = 6
"""Numbers are rounded like their CSV cells before they are formatted, so that text and table never differ by a point."""
WITHOUT_SPACES, SIGNS_OF_A_WORD = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"), 3
"""Thai, Lao, Burmese, Khmer, Kana and Chinese signs; three of them count as a word."""
LONGEST_ANSWER, LONGEST_NAME = 12, 120
"""Longest answer, and longest name of a file or an item, that a message repeats; longer ones are free text."""


def number(cell: Cell) -> float | None:
    """Read a cell as a number; None if it is empty or not finite.

    Examples
    --------
    >>> number("0.5"), number(""), number(None), number("nan")
    (0.5, None, None, None)
    """
    value = math.nan if cell in ("", None) else float(cell)
    return round(value, DECIMALS) if math.isfinite(value) else None


def half_up(value: float, digits: int = 0) -> str:
    """Format a number with halves rounded away from zero, as people round them.

    Examples
    --------
    >>> half_up(72.5), half_up(-0.5), half_up(2.675, 2)
    ('73', '-1', '2.68')
    """
    # by its shortest decimal form: 2.675 is slightly less in binary
    return f"{Decimal(repr(round(value, DECIMALS))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


def percent(share: Cell, digits: int = 0, *, missing: str = UNKNOWN) -> str:
    """Format a share in percent.

    Examples
    --------
    >>> percent("0.641667"), percent(0.0215, 1), percent(""), percent(None, missing=DASH)
    ('64 %', '2.2 %', 'not known', '–')
    """
    value = number(share)
    return _absent(share, missing) if value is None else f"{half_up(100 * value, digits)} %".replace("-", "−")


def percent_span(low: Cell, high: Cell, form: str = EACH) -> str:
    """Format an interval of shares in percent; empty if an end is unknown.

    Examples
    --------
    >>> percent_span(0.25, 0.75), percent_span("0.25", "0.75", ONCE), percent_span("0.41", "0.84", DASHED), percent_span("", "0.84")
    ('25 % to 75 %', '25 to 75 %', '41–84', '')
    """
    ends = number(low), number(high)
    return "" if None in ends else form.format(*(half_up(100 * end).replace("-", "−") for end in ends if end is not None))


def percent_with_span(share: Cell, low: Cell, high: Cell, form: str = EACH) -> str:
    """Format a share with its interval, if it has one.

    Examples
    --------
    >>> percent_with_span(0.5, 0.25, 0.75), percent_with_span("0.5", "0.2", "0.8", ONCE), percent_with_span(0.5, None, None)
    ('50 % (25 % to 75 %)', '50 % (20 to 80 %)', '50 %')
    """
    span = percent_span(low, high, form)
    return f"{percent(share)} ({span})" if span else percent(share)


def points(difference: Cell, *, plus: str = "+", minus: str = "−", signed_zero: bool = False, missing: str = UNKNOWN) -> str:
    """Format a difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points("-0.1"), points(0.25), points(0.25, plus=""), points(-0.1, minus="-"), points(0.001), points(0.001, signed_zero=True)
    ('−10', '+25', '25', '-10', '0', '+0')
    """
    value = number(difference)
    if value is None:
        return _absent(difference, missing)
    rounded = half_up(100 * value)
    text = rounded if rounded.startswith("-") else f"+{rounded}"
    return "0" if text[1:] == "0" and not signed_zero else text.replace("+", plus).replace("-", minus)


def points_span(low: Cell, high: Cell, *, plus: str = "+", minus: str = "−", signed_zero: bool = False) -> str:
    """Format an interval of differences in percentage points; empty if an end is unknown.

    Examples
    --------
    >>> points_span("-0.1", "0.05"), points_span("", "0.05")
    ('−10 to +5', '')
    """
    if number(low) is None or number(high) is None:
        return ""
    first, last = (points(end, plus=plus, minus=minus, signed_zero=signed_zero) for end in (low, high))
    return f"{first} to {last}"


def unsure_span(low: Cell, high: Cell) -> str:
    """Format the interval of an inconclusive comparison: one without 0 was inconclusive only after the correction for several comparisons.

    Examples
    --------
    >>> unsure_span(-0.31, 0.06), unsure_span("-0.55", "-0.08")
    ('−31 to +6', '−55 to −8 before correction')
    """
    span = points_span(low, high)
    return f"{span} before correction" if _excludes_zero(low, high) else span


def _excludes_zero(low: Cell, high: Cell) -> bool:
    """Return True for an interval that is known and on one side of 0."""
    ends = number(low), number(high)
    return None not in ends and (ends[0] or 0.0) * (ends[1] or 0.0) > 0


def apart(difference: Cell, low: Cell, high: Cell) -> str:
    """State a difference in percentage points: its direction as a word where the interval is on one side of 0, else the interval alone.

    Examples
    --------
    >>> apart(-0.44, -0.56, -0.31), apart("0.12", "-0.03", "0.27"), apart(0.2, 0.1, 0.3)
    ('44 points lower (31 to 56)', '−3 to +27', '20 points higher (10 to 30)')
    """
    size = number(difference)
    if size is None:
        return _absent(difference, UNKNOWN)
    if not _excludes_zero(low, high):
        return points_span(low, high)
    nearest, farthest = sorted(abs(number(end) or 0.0) for end in (low, high))
    span = points_span(nearest, farthest, plus="")
    return f"{points(abs(size), plus='')} points {'lower' if size < 0 else 'higher'} ({span})"


def decimal(cell: Cell, digits: int = 2, *, missing: str = UNKNOWN) -> str:
    """Format a number with a fixed number of decimals."""
    value = number(cell)
    return _absent(cell, missing) if value is None else half_up(value, digits)


def whole(cell: Cell, *, missing: str = UNKNOWN) -> str:
    """Format a whole number with thousands separators; a suppression mark (`<10`, `(hidden)`) is returned unchanged.

    Examples
    --------
    >>> whole("1234"), whole("83.000000"), whole("<10")
    ('1,234', '83', '<10')
    """
    if cell in ("", None):
        return _absent(cell, missing)
    return cell if isinstance(cell, str) and cell.startswith(("<", "(")) else f"{float(cell):,.0f}"


def p_value(cell: Cell, *, missing: str = UNKNOWN) -> str:
    """Format a p value.

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
    """Format a p value for a sentence.

    Examples
    --------
    >>> p_equals(0.000488), p_equals(0.0312)
    ('p < 0.001', 'p = 0.031')
    """
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def counted(count: int, noun: str, separator: str = ",") -> str:
    """Format a count with its noun in singular or plural.

    Examples
    --------
    >>> counted(1, "patient"), counted(1234, "answer"), counted(1234, "item", separator=""), counted(2, "category"), counted(2, "process")
    ('1 patient', '1,234 answers', '1234 items', '2 categories', '2 processes')
    """
    sibilant = noun.endswith(("s", "x", "ch", "sh"))
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}es" if sibilant else f"{noun}s"
    return f"{f'{count:,}'.replace(',', separator)} {noun if count == 1 else plural}"


def plural(count: int, noun: str) -> str:
    """Return a noun in singular or plural.

    Examples
    --------
    >>> plural(1, "patient"), plural(2, "patient")
    ('patient', 'patients')
    """
    return counted(count, noun).rpartition(" ")[2]


def all_of(count: int, noun: str) -> str:
    """Name all things of a kind by their number, as a sentence says it.

    Examples
    --------
    >>> [all_of(count, "pair") for count in (0, 1, 2, 3)]
    ['all pairs', 'the only pair', 'both pairs', 'all 3 pairs']
    """
    several = plural(2, noun)
    return {0: f"all {several}", 1: f"the only {noun}", 2: f"both {several}"}.get(count, f"all {counted(count, noun)}")


def are(count: int) -> str:
    """Return the verb for a count: one is, none or several are.

    Examples
    --------
    >>> are(0), are(1), are(2)
    ('are', 'is', 'are')
    """
    return "is" if count == 1 else "are"


def items_of(items: int, clusters: int, cluster: str | None = "patient", between: str = ", ", separator: str = ",") -> str:
    """Count items and what they are of; questions without patients are items alone.

    `cluster` is that of the tables (`records.results.CLUSTER_MARKS`); without one they are patients.

    Examples
    --------
    >>> items_of(32, 12), items_of(32, 12, "patient", " of "), items_of(315, 315, "item"), items_of(352, 176, "pair")
    ('32 items, 12 patients', '32 items of 12 patients', '315 items', '352 items, 176 pairs')
    """
    found = counted(items, "item", separator)
    return found if cluster == "item" else f"{found}{between}{counted(clusters, cluster or 'patient', separator)}"


def listing(names: Sequence[str], most: int = 4) -> str:
    """Join names for a sentence; if there are more than `most`, the last ones are counted.

    Examples
    --------
    >>> listing(["a"]), listing(["a", "b"]), listing(["a", "b", "c", "d", "e", "f"])
    ('a', 'a and b', 'a, b, c and 3 more')
    """
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def capital(sentence: str, names: Iterable[str] = ()) -> str:
    """Begin a sentence with a capital letter, unless it begins with one of `names`, which are spelled as they are.

    Examples
    --------
    >>> capital("no answer"), capital("gpt-4o passes 3 of 4", ["gpt-4o"])
    ('No answer', 'gpt-4o passes 3 of 4')
    """
    named = any(re.match(rf"{re.escape(name)}(?!\w)", sentence) for name in names)
    return sentence if named else sentence[:1].upper() + sentence[1:]


def as_sentence(text: str) -> str:
    """Begin a text with a capital letter, and end it with a full stop if it has no such mark.

    Examples
    --------
    >>> as_sentence("no lesion"), as_sentence("Why?")
    ('No lesion.', 'Why?')
    """
    whole = f"{text[:1].upper()}{text[1:]}"
    return whole if whole.endswith((".", "!", "?")) else f"{whole}."


def spaced(name: str) -> str:
    """Return a name of the tables as words: `no_image` is `no image`."""
    return name.replace("_", " ")


def _absent(cell: object, missing: str) -> str:
    return str(getattr(cell, "mark", missing))  # an empty cell of a public page may have the mark of its suppression


def count_words(text: str) -> int:
    """Count the words of a text; signs of scripts without spaces count as a word by threes.

    Examples
    --------
    >>> count_words("What is the diagnosis?"), count_words("最も考えられる診断はどれか。")
    (4, 5)
    """
    return len(text.split()) + len(WITHOUT_SPACES.findall(text)) // SIGNS_OF_A_WORD


def quote(value: str, longest: int) -> str:
    """Return a value in quotes, or the length of one that is longer.

    Examples
    --------
    >>> quote("E", LONGEST_ANSWER), quote("neither of the two", LONGEST_ANSWER)
    ("'E'", 'a text of 18 characters')
    """
    return repr(value) if len(value) <= longest else f"a text of {len(value)} characters"
