"""Rules for the headers of one patient, and the options of DICOM PS3.15 Annex E: what each means and how a header declares it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from neuralmedbench.deid.values import DateShift

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

BASIC = "113100"
CODES = {
    "113100": "Basic Application Confidentiality Profile",
    "113101": "Clean Pixel Data Option",
    "113102": "Clean Recognizable Visual Features Option",
    "113103": "Clean Graphics Option",
    "113104": "Clean Structured Content Option",
    "113105": "Clean Descriptors Option",
    "113107": "Retain Longitudinal Temporal Information Modified Dates Option",
    "113108": "Retain Patient Characteristics Option",
    "113109": "Retain Device Identity Option",
    "113111": "Retain Safe Private Option",
}
"""Code meanings of CID 7050, coding scheme DCM."""
OF_PIXELS = frozenset({"113101", "113102"})
"""What no cleaning of headers can do: declared by those who did it."""
METHOD = "DICOM PS3.15 2026c Basic Profile with options of 0012,0064"
"""At most 64 characters (0012,0063 is LO)."""
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


def declare(dataset: Dataset, codes: Iterable[str]) -> None:
    """Say in a header what was done, as PS3.15 E.3 asks: (0012,0062), (0012,0063), (0012,0064) and (0028,0303)."""
    from pydicom.dataelem import RawDataElement
    from pydicom.tag import Tag

    held = tuple(sorted({BASIC, *codes}))
    dataset.PatientIdentityRemoved = "YES"
    dataset.DeidentificationMethod = METHOD
    implicit, little = (flag is not False for flag in dataset.original_encoding)
    content = _encoded_items(held, implicit=implicit, little=little)
    tag = Tag("DeidentificationMethodCodeSequence")
    dataset[tag] = RawDataElement(tag, "SQ", len(content), content, 0, implicit, little)
    dataset.LongitudinalTemporalInformationModified = "MODIFIED" if "113107" in held else "REMOVED"
    if "113102" in held:
        dataset.RecognizableVisualFeatures = "NO"


@cache
def _encoded_items(codes: tuple[str, ...], *, implicit: bool, little: bool) -> bytes:
    """Encode the code sequence once: it is the same in every file, and building it took longer than cleaning the rest."""
    from pydicom.dataset import Dataset as New
    from pydicom.filebase import DicomBytesIO
    from pydicom.filewriter import write_sequence_item

    buffer = DicomBytesIO()
    buffer.is_implicit_VR, buffer.is_little_endian = implicit, little
    for code in codes:
        item = New()
        item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = code, "DCM", CODES[code]
        write_sequence_item(buffer, item, ["iso8859"])
    return buffer.getvalue()


def declared(dataset: Dataset) -> tuple[str, ...]:
    """Codes that a header declares."""
    return tuple(str(item.CodeValue) for item in dataset.get("DeidentificationMethodCodeSequence") or ())
