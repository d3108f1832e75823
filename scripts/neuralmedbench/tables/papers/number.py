"""One number of a paper's table as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DIGITS = {"percent": 1, "score": 2, "count": 0, "usd": 2, "seconds": 2}
CENTS = 0.1
"""Prices below it are written with four digits."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number in words.

    Attributes
    ----------
    raw : str
        The number of the table, for sorting; empty without one.
    value, interval, n : str
        As text; `n` is given for ours alone, the published ones stand in the caption.
    others : str
        What another source says of the same number.
    mark : int
        Number of its footnote, 0 without one.
    """

    raw: str = ""
    value: str = ""
    interval: str = ""
    n: str = ""
    others: str = ""
    mark: int = 0

    @property
    def text(self) -> str:
        """All of it."""
        parts = [self.value, f"({self.interval})" if self.interval else "", f"n={self.n}" if self.n else ""]
        parts += [f"[{self.others}]" if self.others else "", f"[{self.mark}]" if self.mark else ""]
        return " ".join(part for part in parts if part)


def digits_of(value: Any, unit: str) -> int:
    """Give the decimals of a published number: as many as were published, and no fewer than ours have.

    Examples
    --------
    >>> digits_of("53.960000", "percent"), digits_of(30.0, "percent")
    (2, 1)
    """
    return max(DIGITS[unit], len(f"{float(value):.6f}".rstrip("0").partition(".")[2]))


def number(value: Any, digits: int) -> str:
    """Write a number with separators of thousands.

    Examples
    --------
    >>> number("5533000.000000", 0), number(0.725, 2)
    ('5,533,000', '0.72')
    """
    return f"{float(value):,.{digits}f}"
