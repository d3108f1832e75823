"""Rules for the headers of one patient, and the options of DICOM PS3.15 Annex E with their declaration in a header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
"""Options that concern pixels: declared by the steps that clean them, not by the header cleaner."""
METHOD = "DICOM PS3.15 2026c Basic Profile with options of 0012,0064"
"""At most 64 characters (0012,0063 is LO)."""
OWN_RULES = "Single elements kept by own rules with a reason"
"""Second value of the method if a rule keeps an element."""
ALL_OPTIONS = tuple(code for code in CODES if code != BASIC)


@dataclass(frozen=True)
class HeaderRules:
    """How the headers of one patient are cleaned.

    Attributes
    ----------
    key : bytes
        Secret of the pseudonyms.
    patient_id : str
        Pseudonym written to PatientID and PatientName.
    dates : DateShift
        How dates are changed.
    identifying : re.Pattern or None
        Matches the patient's identifiers in folded text; matches are removed even where the table keeps the element.
    options : tuple of str
        Codes of the options of PS3.15 that apply; 113107 counts only if `dates` are shifted.
    elements : dict of int to str
        Own rules for single elements: `remove`, `replace` or `keep` by tag.
    """

    key: bytes
    patient_id: str
    dates: DateShift
    identifying: re.Pattern[str] | None = None
    options: tuple[str, ...] = ALL_OPTIONS
    elements: Mapping[int, str] = field(default_factory=dict)

    @property
    def held(self) -> frozenset[str]:
        """Codes of the options that apply."""
        return frozenset(self.options) - ({"113107"} if self.dates.years_only else set())

    @property
    def kept_elements(self) -> tuple[str, ...]:
        """Keywords of the elements that own rules keep."""
        from pydicom.datadict import keyword_for_tag

        return tuple(keyword_for_tag(tag) for tag, action in sorted(self.elements.items()) if action == "keep")


def declare(dataset: Dataset, codes: Iterable[str], *, kept: bool = False) -> None:
    """Declare the de-identification in a header, as PS3.15 E.3 requires: (0012,0062), (0012,0063), (0012,0064) and (0028,0303).

    `codes`: options that were applied; the basic profile is declared with them. 113102 sets RecognizableVisualFeatures to NO. `kept`: own
    rules keep single elements.
    """
    from pydicom.dataelem import RawDataElement
    from pydicom.tag import Tag

    held = tuple(sorted({BASIC, *codes}))
    dataset.PatientIdentityRemoved = "YES"
    dataset.DeidentificationMethod = [METHOD, OWN_RULES] if kept else METHOD
    implicit, little = (flag is not False for flag in dataset.original_encoding)
    content = _encoded_items(held, implicit=implicit, little=little)
    tag = Tag("DeidentificationMethodCodeSequence")
    dataset[tag] = RawDataElement(tag, "SQ", len(content), content, 0, implicit, little)
    dataset.LongitudinalTemporalInformationModified = "MODIFIED" if "113107" in held else "REMOVED"
    if "113102" in held:
        dataset.RecognizableVisualFeatures = "NO"


@cache
def _encoded_items(codes: tuple[str, ...], *, implicit: bool, little: bool) -> bytes:
    """Encode the code sequence, cached: it is the same in every file, and building it took longer than cleaning the rest."""
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
    """Return the codes that a header declares."""
    return tuple(str(item.CodeValue) for item in dataset.get("DeidentificationMethodCodeSequence") or ())
