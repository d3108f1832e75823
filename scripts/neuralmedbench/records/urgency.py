"""Time-critical diagnoses of a vocabulary, each with its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from neuralmedbench.records.vocabulary import Vocabulary


class Within(StrEnum):
    """Order of the time in which treatment or a decision is expected."""

    MINUTES = "minutes"
    HOURS = "hours"


@dataclass(frozen=True, kw_only=True)
class TimeCritical:
    """Why a diagnosis is time-critical: the order of the time, and the guideline, consensus or review (body and year)."""

    within: Within
    source: str


@dataclass(frozen=True, kw_only=True)
class Urgency:
    """Time-critical diagnoses by their key in the vocabulary.

    Attributes
    ----------
    version, status : str
        Version of the file, and who chose the diagnoses; both are stated on the page. Empty without a file.
    time_critical : dict of str to TimeCritical
        A diagnosis holds for its narrower terms.
    not_time_critical : tuple of str
        Narrower terms for which it does not.
    """

    version: str = ""
    status: str = ""
    time_critical: dict[str, TimeCritical] = field(default_factory=dict)
    not_time_critical: tuple[str, ...] = ()

    def of(self, key: str, vocabulary: Vocabulary) -> TimeCritical | None:
        """Return the entry of a diagnosis, or of the nearest wider term that is listed; None if it is not time-critical."""
        for name in (key, *(wider.key for wider in vocabulary.ancestors(key))):
            if name in self.not_time_critical:
                return None
            if name in self.time_critical:
                return self.time_critical[name]
        return None
