"""Leaks: parts of an item's answer in what a model is sent, and their acceptance by a person."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 2

SEVERITIES = ("answer", "alias", "code", "field", "family", "sign")
"""The answer itself, an alias of it, its code; another scored value (a field of a structured answer, the location of a lesion); a wider term
or the first alternative diagnosis; the name of a sign that stands for the disease. The last two are warnings."""

STATES_ANSWER = ("answer", "alias", "code")
"""Those that state the answer itself."""


@dataclass(frozen=True, kw_only=True)
class AnswerLeak:
    """A term of an item's answer in one of its texts.

    Attributes
    ----------
    item_id : str
        The item.
    where : str
        `question`, `options`, `given`, `notes`, `record`, `turn 1`..., `labels` and `file names` of its pictures, `metadata` (its ids),
        `disclosed` (text that an arm discloses), or `template` (text common to all items of its kind).
    arms : tuple of str
        Arms that show this text.
    term : str
        The term, as spelled in gold or the vocabulary.
    severity : str
        One of `SEVERITIES`.
    count : int
        Number of occurrences.
    digest : str
        SHA-256 of item, place, term and text, to which an acceptance refers.
    accepted : str
        The reason for which a person accepted it; empty if not accepted.
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
        Name of the benchmark.
    items, leaking : int
        Items with gold, and those of them for which the answer, an alias, its code or another scored value is sent.
    leaks : tuple of AnswerLeak
        Sorted by item, text and severity.
    accepted : int
        Leaking items of which a person accepted all leaks except wider terms, with a reason.
    """

    benchmark: str
    items: int
    leaking: int
    leaks: tuple[AnswerLeak, ...]
    accepted: int = 0

    def stated(self, arm: str) -> int:
        """Count the items that state their answer, another name of it or its code in what an arm shows, and that no person accepted."""
        return len({leak.item_id for leak in self.leaks if arm in leak.arms and leak.severity in STATES_ANSWER and not leak.accepted})


@dataclass(frozen=True, kw_only=True)
class AcceptedLeak:
    """One leak accepted by a person; it has only the digest of the leak, never the answer."""

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
