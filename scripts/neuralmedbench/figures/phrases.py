"""Words for the descriptions of figures: what a reader who cannot see a figure is told of its rows."""

from __future__ import annotations

from collections.abc import Iterable

from neuralmedbench.figures.table import Row, number

MOST = 2
"""Panels of a figure that are told one by one."""


def percent(cell: str | None) -> str:
    """Write a share as a percentage.

    Examples
    --------
    >>> percent("0.725000"), percent("")
    ('72 %', 'not known')
    """
    share = number(cell)
    return "not known" if share is None else f"{100 * share:.0f} %"


def span(row: Row, value: str, ends: tuple[str, str] | None = None) -> str:
    """Write a share with its interval.

    Examples
    --------
    >>> span({"pass1": "0.5", "pass1_low": "0.2", "pass1_high": "0.8"}, "pass1")
    '50 % (20 to 80 %)'
    """
    low, high = (number(row[name]) for name in ends or (f"{value}_low", f"{value}_high"))
    within = "" if low is None or high is None else f" ({100 * low:.0f} to {100 * high:.0f} %)"
    return f"{percent(row[value])}{within}"


def points(row: Row, value: str = "difference") -> str:
    """Write a difference with its interval, in percentage points.

    Examples
    --------
    >>> points({"difference": "-0.25", "low": "-0.4", "high": ""})
    '−25 points'
    """
    found = number(row[value]) or 0.0
    low, high = number(row["low"]), number(row["high"])
    within = "" if low is None or high is None else f" ({100 * low:+.0f} to {100 * high:+.0f})"
    return f"{100 * found:+.0f} points{within}".replace("-", "−")


def many(count: int, name: str) -> str:
    """Count things.

    Examples
    --------
    >>> many(1, "model"), many(3, "model")
    ('1 model', '3 models')
    """
    return f"{count} {name}{'' if count == 1 else 's'}"


def seen(row: Row) -> str:
    """Say how much stands behind a row: items and patients.

    Examples
    --------
    >>> seen({"n_items": "32", "n_patients": "12"})
    '32 items, 12 patients'
    """
    parts = [f"{row[name]} {what}" for name, what in (("n_items", "items"), ("n_patients", "patients")) if row[name]]
    return ", ".join(parts) or "n not known"


def seen_in(rows: Iterable[Row]) -> str:
    """Say how much stands behind several rows, from the least to the most.

    Examples
    --------
    >>> seen_in([{"n_items": "32", "n_patients": "12"}, {"n_items": "30", "n_patients": "12"}])
    '30 to 32 items, 12 patients'
    """
    rows = list(rows)
    parts = []
    for name, what in (("n_items", "items"), ("n_patients", "patients")):
        known = sorted({int(value) for row in rows if (value := number(row[name])) is not None})
        parts += [f"{known[0]}{f' to {known[-1]}' if len(known) > 1 else ''} {what}"] if known else []
    return ", ".join(parts) or "n not known"


def told(sentences: Iterable[str], what: str = "panel") -> str:
    """Put the first sentences behind each other, and say how many more there are.

    Examples
    --------
    >>> told(["A.", "B.", "C.", "D."])
    'A. B. And 2 panels more.'
    """
    every = list(sentences)
    rest = len(every) - MOST
    return " ".join([*every[:MOST], *([f"And {many(rest, what)} more."] if rest > 0 else [])])
