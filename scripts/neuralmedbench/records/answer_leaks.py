"""What of the answer stands in the texts that a model is sent."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1

SEVERITIES = ("answer", "alias", "code", "family")
"""The answer in its own words, by another name, by its code; a wider term of it or the first other diagnosis to consider."""


@dataclass(frozen=True, kw_only=True)
class AnswerLeak:
    """A term of an item's answer in one of its texts.

    Attributes
    ----------
    item_id : str
        The item.
    where : str
        `question`, `options`, `notes`, `record`, `turn 1`..., or `template` (words that every item of its kind is sent).
    arms : tuple of str
        Arms that show this text.
    term : str
        The term, as gold or the vocabulary writes it.
    severity : str
        One of `SEVERITIES`.
    count : int
        How often it stands there.
    """

    item_id: str
    where: str
    arms: tuple[str, ...]
    term: str
    severity: str
    count: int


@dataclass(frozen=True, kw_only=True)
class AnswerLeaks:
    """The leaks of a benchmark: `data/leaks/<benchmark>.json`.

    Attributes
    ----------
    benchmark : str
        Whose.
    items, leaking : int
        Items with gold, and those of them with the answer, another name or its code in a text.
    leaks : tuple of AnswerLeak
        Sorted by item, text and severity.
    """

    benchmark: str
    items: int
    leaking: int
    leaks: tuple[AnswerLeak, ...]
