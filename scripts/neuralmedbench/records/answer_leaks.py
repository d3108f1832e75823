"""What of the answer stands in what a model is sent, and what a person has to say of it."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 2

SEVERITIES = ("answer", "alias", "code", "field", "family")
"""The answer in its own words, by another name, by its code; another scored value (a field of a structured answer, the place of a lesion);
a wider term of it or the first other diagnosis to consider."""


@dataclass(frozen=True, kw_only=True)
class AnswerLeak:
    """A term of an item's answer in one of its texts.

    Attributes
    ----------
    item_id : str
        The item.
    where : str
        `question`, `options`, `given`, `notes`, `record`, `turn 1`..., `labels` and `file names` of its pictures, `metadata` (its ids),
        `disclosed` (what an arm discloses), or `template` (words that every item of its kind is sent).
    arms : tuple of str
        Arms that show this text.
    term : str
        The term, as gold or the vocabulary writes it.
    severity : str
        One of `SEVERITIES`.
    count : int
        How often it stands there.
    digest : str
        SHA-256 of item, place, term and text: what a person accepts, and nothing else.
    accepted : str
        The reason with which a person accepted it; empty when nobody did.
    """

    item_id: str
    where: str
    arms: tuple[str, ...]
    term: str
    severity: str
    count: int
    digest: str = ""
    accepted: str = ""


@dataclass(frozen=True, kw_only=True)
class AnswerLeaks:
    """The leaks of a benchmark: `data/leaks/<benchmark>.json`.

    Attributes
    ----------
    benchmark : str
        Whose.
    items, leaking : int
        Items with gold, and those of them with a scored value, another name of the answer or its code in what is sent.
    leaks : tuple of AnswerLeak
        Sorted by item, text and severity.
    accepted : int
        Items among the leaking ones all of whose leaks (but wider terms) a person accepted with a reason.
    """

    benchmark: str
    items: int
    leaking: int
    leaks: tuple[AnswerLeak, ...]
    accepted: int = 0


@dataclass(frozen=True, kw_only=True)
class AcceptedLeak:
    """One leak that a person looked at and accepts: no answer stands here, only the digest of what was seen."""

    item_id: str
    where: str
    digest: str
    reason: str
    reviewer: str
    accepted_on: str


@dataclass(frozen=True, kw_only=True)
class AcceptedLeaks:
    """`config/benchmarks/<benchmark>.leaks.json`, written by `nmb benchmark accept-leaks`."""

    benchmark: str
    accepted: tuple[AcceptedLeak, ...] = ()
