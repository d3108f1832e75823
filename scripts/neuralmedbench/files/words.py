"""Sets of words, written as lines of text."""

from __future__ import annotations


def word_set(*lines: str) -> frozenset[str]:
    """Return the words of some lines, in lower case."""
    return frozenset(word for line in lines for word in line.casefold().split())
