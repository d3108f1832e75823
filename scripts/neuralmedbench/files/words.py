"""Sets of words, written as lines."""

from __future__ import annotations


def word_set(*lines: str) -> frozenset[str]:
    """Give the words of some lines, in lower case."""
    return frozenset(word for line in lines for word in line.casefold().split())
