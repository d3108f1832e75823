"""What the cleaning of a patient's headers needs to know."""

from __future__ import annotations

import re
from dataclasses import dataclass

from neuralmedbench.deid.headers.options import BASIC, CODES
from neuralmedbench.deid.values import DateShift

ALL_OPTIONS = tuple(code for code in CODES if code != BASIC)


@dataclass(frozen=True)
class HeaderRules:
    """What the keyed layer needs.

    Attributes
    ----------
    key : bytes
        Secret of the pseudonyms.
    patient_id : str
        Pseudonym that takes the place of PatientID and PatientName.
    dates : DateShift
        How dates are changed.
    identifying : re.Pattern or None
        Finds the patient's own values in folded text; what it finds is removed even where the table keeps it.
    options : tuple of str
        Options of PS3.15 that hold, by code; 113107 counts only where `dates` shifts.
    """

    key: bytes
    patient_id: str
    dates: DateShift
    identifying: re.Pattern[str] | None = None
    options: tuple[str, ...] = ALL_OPTIONS

    @property
    def held(self) -> frozenset[str]:
        """Options that hold."""
        return frozenset(self.options) - ({"113107"} if self.dates.years_only else set())
