"""How numbers look: cells of the tables as text, the same everywhere."""

from __future__ import annotations

from neuralmedbench.records.results import MARK

NOTHING = "–"


def nothing(cell: object) -> str:
    """Write what stands for no number: a dash, or why the number is not shown."""
    return str(getattr(cell, "mark", NOTHING))


def percent(cell: str | float | None, digits: int = 0) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> percent("0.641667")
    '64 %'
    """
    return nothing(cell) if cell in ("", None) else f"{100 * float(cell):.{digits}f} %"


def span(low: str, high: str) -> str:
    """Write an interval of shares in percent, without the sign.

    Examples
    --------
    >>> span("0.41", "0.84")
    '41–84'
    """
    return "" if low == "" or high == "" else f"{100 * float(low):.0f}–{100 * float(high):.0f}"


def points(cell: str | float | None) -> str:
    """Write a difference of shares in points, with its sign.

    Examples
    --------
    >>> points("-0.1")
    '−10'
    """
    if cell in ("", None):
        return nothing(cell)
    rounded = round(100 * float(cell))
    return "0" if rounded == 0 else f"{rounded:+d}".replace("-", "−")


def points_span(low: str, high: str) -> str:
    """Write an interval of differences in points."""
    return "" if low == "" or high == "" else f"{points(low)} to {points(high)}"


def decimal(cell: str | float | None, digits: int = 2) -> str:
    """Write a plain number."""
    return nothing(cell) if cell in ("", None) else f"{float(cell):.{digits}f}"


def whole(cell: str | int | None) -> str:
    """Write a whole number with separators of thousands."""
    if cell in ("", None):
        return nothing(cell)
    return cell if isinstance(cell, str) and MARK.fullmatch(cell) else f"{int(cell):,}"


def p_value(cell: str) -> str:
    """Write a p value.

    Examples
    --------
    >>> p_value("0.000488")
    '< 0.001'
    """
    if cell == "":
        return nothing(cell)
    return "< 0.001" if float(cell) < 0.001 else f"{float(cell):.3f}"


def words(name: str) -> str:
    """Write a name of the tables as words."""
    return name.replace("_", " ")


FILTERS = {
    "percent": percent,
    "span": span,
    "points": points,
    "points_span": points_span,
    "decimal": decimal,
    "whole": whole,
    "p_value": p_value,
    "words": words,
}
"""The filters of the templates."""
