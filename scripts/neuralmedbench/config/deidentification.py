"""The section `deidentification` of a benchmark: what is removed, and what may be kept.

Own rules for single DICOM elements are stricter than the profile as one likes, and looser only for listed descriptions, with a reason and a
signer.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from neuralmedbench.config.section import Section

CUT_SECTIONS = (
    # English
    "impression", "imp", "diagnosis", "diagnoses", "dx", "ddx", "differential", "differential diagnosis", "assessment", "assessment and plan", "a/p", "a&p",
    "plan", "conclusion", "conclusions", "opinion", "interpretation", "formulation", "radiology report", "imaging report", "mri report", "ct report",
    "report", "imaging", "neuroimaging", "radiology", "mri", "mr", "ct", "mri brain", "mri head", "ct head", "ct brain", "pathology", "histology",
    # German, Dutch
    "beurteilung", "diagnose", "diagnosen", "zusammenfassung", "procedere", "befund", "conclusie", "beleid", "beoordeling", "verslag",
    # French, Spanish, Italian, Portuguese
    "diagnostic", "synthèse", "conduite à tenir", "interprétation", "compte rendu", "impresión", "diagnóstico", "conclusión", "conclusiones",
    "juicio clínico", "valoración", "informe", "diagnosi", "conclusioni", "impressione", "referto", "conclusão", "hipótese diagnóstica", "impressão",
    "avaliação", "laudo",
    # Swedish, Danish, Norwegian, Polish
    "bedömning", "diagnos", "vurdering", "konklusion", "konklusjon", "rozpoznanie", "wnioski",
)  # fmt: skip
Profile = Literal["pseudonymised", "safe_harbor"]
Subjects = Literal["phantom", "public", "patient"]
HeaderOption = Literal["113101", "113102", "113103", "113104", "113105", "113107", "113108", "113109", "113111"]
"""Selectable options of DICOM PS3.15 Annex E; 113100, the basic profile, always applies."""
ALWAYS_DONE = ("113101", "113102")
"""Mandatory options, because pixels may name or show a patient."""
REFUSED_OPTIONS = {
    "113100": "the basic profile always applies and is not an option",
    "113106": "full dates fit neither profile: `pseudonymised` shifts them (113107), `safe_harbor` keeps years only",
    "113110": "UIDs of the source lead back to the patient: they are always replaced under the key",
    "113112": "the institution is never shown",
}
"""Options of the standard that this pipeline does not offer, with the reason."""
MAY_BE_KEPT = frozenset({
    # how the scan was made, in words
    "SeriesDescription", "StudyDescription", "ProtocolName", "SequenceName", "PulseSequenceName", "PerformedProcedureStepDescription",
    "RequestedProcedureDescription", "AcquisitionProtocolDescription", "AcquisitionContextDescription", "AcquisitionDeviceProcessingDescription",
    "MultienergyAcquisitionDescription", "DerivationDescription", "FilterLookupTableDescription", "AcquisitionComments", "FrameComments",
    "ImageComments", "CommentsOnRadiationDose", "BodyPartExamined", "ContrastBolusAgent", "ContrastBolusRoute",
    "RespiratoryMotionCompensationTechniqueDescription",
    # the device, without its serial number, station and place
    "Manufacturer", "ManufacturerModelName", "SoftwareVersions", "ReceiveCoilName", "TransmitCoilName", "ReceiveCoilManufacturerName",
    "TransmitCoilManufacturerName", "MultiCoilElementName",
    # the patient in numbers
    "PatientAge", "PatientSex", "PatientSize", "PatientWeight", "SmokingStatus",
})  # fmt: skip
"""Elements that a rule may keep although profile and options do not; a value that names the patient is never kept."""
NEEDED = frozenset({
    "SpecificCharacterSet", "SOPClassUID", "SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID", "Modality",
    "Manufacturer", "ImageType", "SeriesNumber", "InstanceNumber", "SliceThickness", "SpacingBetweenSlices", "GantryDetectorTilt",
    "ImagePositionPatient", "ImageOrientationPatient", "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence",
    "DimensionIndexSequence", "DimensionOrganizationSequence", "FrameContentSequence", "PlanePositionSequence", "PlaneOrientationSequence",
    "PixelMeasuresSequence", "MRDiffusionSequence", "DiffusionBValue", "DiffusionGradientDirectionSequence", "DiffusionGradientOrientation",
})  # fmt: skip
"""Elements without which a scan cannot be converted in the right place; what may identify in them is replaced anyway."""
PIXEL_GROUPS = frozenset({0x0002, 0x0028, 0x7FE0})
OURS = frozenset({
    "PatientID", "PatientName", "PatientIdentityRemoved", "DeidentificationMethod", "DeidentificationMethodCodeSequence",
    "LongitudinalTemporalInformationModified",
})  # fmt: skip
"""Written by de-identification itself: the pseudonym, and the declaration of what was done."""
WORDS = frozenset({"CS", "LO", "LT", "SH", "ST", "UC", "UT"})
NUMBERED = re.compile(r"\(?([0-9a-fA-F]{4}) ?, ?([0-9a-fA-F]{4})\)?")


class ElementRule(Section):
    """What is done with one element of every header, in sequences too, whatever profile and options say."""

    element: str = Field(description="Keyword of the element as the standard spells it (`StationName`), or its tag (`0008,1010`).")
    action: Literal["remove", "replace", "keep"] = Field(
        description="`remove` the element, `replace` its text by the word REMOVED, or `keep` its value as it is, unless it names the patient or"
        " holds a date or a long number. Only descriptions of the scan, the device and the patient in numbers may be kept."
    )
    reason: str = Field("", description="Why; required by `keep`. The audit shows it, so it names nobody.")
    reviewer: str = Field("", description="Initials of who decided it; required by `keep`.")

    @model_validator(mode="after")
    def _is_possible(self) -> ElementRule:
        keyword = _keyword_of(self.element)
        if problem := _problem(keyword, self.action):
            message = f"the element {keyword} {problem}"
            raise ValueError(message)
        if self.action == "keep" and not (self.reason.strip() and self.reviewer.strip()):
            message = f"to keep {keyword}, which profile and options do not, give a `reason` and a `reviewer` (initials)"
            raise ValueError(message)
        return self

    @property
    def keyword(self) -> str:
        """Keyword of the element."""
        return _keyword_of(self.element)


class DeidentificationConfig(Section):
    """De-identification of one benchmark."""

    options: tuple[HeaderOption, ...] | None = Field(
        None,
        description="Options of DICOM PS3.15 Annex E, by code; absent: all that the profile allows. `113101` burned-in text is hidden or its"
        " series dropped, `113102` faces are removed (these two cannot be left out), `113103` overlays, curves and annotations are removed,"
        " `113104` structured content is kept as codes and numbers (else removed), `113105` descriptions are kept as words about scans (else"
        " removed), `113107` dates are shifted by one number of days per patient (else emptied; `safe_harbor` keeps years instead), `113108`"
        " age (at most 90), sex, size, weight and smoking are kept (else removed), `113109` model, software and coils are kept, station and"
        " serial number as pseudonyms (else removed), `113111` private numbers that a conversion needs, such as b-values, are kept (else"
        " removed).",
    )
    cut_sections: tuple[str, ...] = Field(
        CUT_SECTIONS,
        description="Headings, case-insensitive, of the sections of notes that contain the answer and are cut out; the list replaces the"
        " default, so an empty one cuts nothing. Absent: Impression, Diagnosis, Assessment, Plan, Conclusion, the radiology report and their names in other languages.",
    )
    ner_model: str | None = Field(
        None,
        description="Folder of a local model that recognises names in addition to the patterns: a spaCy pipeline, or a transformers model for token"
        " classification. Nothing is ever downloaded.",
    )
    ner_language: str = Field(
        "en", pattern=r"^[a-z]{2}$", description="Language of `ner_model` (ISO 639-1); notes in it are then cleaned, not withheld."
    )

    burned_in: Literal["hide", "drop", "keep"] = Field(
        "hide",
        description="Treatment of burned-in text: `hide` it under a box, or `drop` the whole series or picture. Text that cannot be hidden"
        " quarantines the case. `keep` leaves single pictures unchanged, with letters and arrows; those of patients are still searched,"
        " and their sheets show where text was found: a person signs that none of it identifies anyone.",
    )

    elements: tuple[ElementRule, ...] = Field(
        (),
        description="Own rules for single header elements, in addition to profile and options: `element`, `action` (`remove`, `replace` or"
        " `keep`), and for `keep` a `reason` and a `reviewer`. The audit lists them. `nmb deid dry-run` shows what they do.",
    )

    @field_validator("elements")
    @classmethod
    def _once(cls, value: tuple[ElementRule, ...]) -> tuple[ElementRule, ...]:
        keywords = [rule.keyword for rule in value]
        if twice := sorted({keyword for keyword in keywords if keywords.count(keyword) > 1}):
            message = f"the element {twice[0]} has two rules; leave one"
            raise ValueError(message)
        return value

    @field_validator("options", mode="before")
    @classmethod
    def _offered(cls, value: Any) -> Any:
        """Accept codes that YAML reads as numbers; reject known codes that are not offered, with the reason."""
        codes = [str(code) if isinstance(code, int) else code for code in value] if isinstance(value, list | tuple) else value
        for code in codes if isinstance(codes, list) else ():
            if code in REFUSED_OPTIONS:
                message = f"{code} is not offered: {REFUSED_OPTIONS[code]}"
                raise ValueError(message)
        return codes

    @field_validator("options")
    @classmethod
    def _complete(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (missing := [code for code in ALWAYS_DONE if code not in value]):
            message = f"{missing[0]} cannot be left out: pixels may name or show a patient"
            raise ValueError(message)
        if value is not None and len(set(value)) < len(value):
            message = "a code is repeated"
            raise ValueError(message)
        return value


def header_options(profile: str, deidentification: DeidentificationConfig) -> tuple[str, ...]:
    """Return the PS3.15 options in force, sorted: those configured, else all that the profile allows."""
    if deidentification.options is not None:
        return tuple(sorted(deidentification.options))
    # safe_harbor keeps years only, so it never shifts dates
    return tuple(code for code in get_args(HeaderOption) if not (profile == "safe_harbor" and code == "113107"))


def _keyword_of(element: str) -> str:
    """Return the keyword of an element given by keyword or tag; ValueError if the standard has none."""
    from pydicom.datadict import keyword_dict, keyword_for_tag

    tag = NUMBERED.fullmatch(element.strip())
    keyword = keyword_for_tag(int(tag[1] + tag[2], 16)) if tag else element.strip()
    if tag and int(tag[1], 16) % 2:
        message = f"no rule is possible for the private element {element}; all go but for the numbers of option 113111"
        raise ValueError(message)
    if keyword not in keyword_dict or not keyword:
        near = difflib.get_close_matches(keyword, list(keyword_dict), n=1)
        message = f"the standard has no element {element}{f'; did you mean {near[0]}?' if near else '; give its keyword or tag'}"
        raise ValueError(message)
    return keyword


def _tag_of(keyword: str) -> int:
    """Return the tag of a keyword of the standard."""
    from pydicom.datadict import keyword_dict

    return int(keyword_dict[keyword])


def actions_by_tag(rules: Iterable[ElementRule]) -> dict[int, str]:
    """Return the actions of rules by tag."""
    return {_tag_of(rule.keyword): rule.action for rule in rules}


def _problem(keyword: str, action: str) -> str:
    """Return why an element cannot be treated so; empty if it can."""
    from pydicom.datadict import dictionary_VR

    group, kinds = _tag_of(keyword) >> 16, set(dictionary_VR(_tag_of(keyword)).split(" or "))
    if keyword in OURS:
        return "is written by de-identification itself (pseudonym, declaration); take the rule out"
    if action == "keep":
        refused = "it can identify a person, or is kept already as far as it is harmless; what may be kept is listed in docs/own-data.md, Own rules"
        return "" if keyword in MAY_BE_KEPT else f"cannot be kept: {refused}"
    if keyword in NEEDED or group in PIXEL_GROUPS:
        return f"cannot be {action}d: without it the scan cannot be read or lies in the wrong place"
    if action == "replace" and not kinds <= WORDS:
        return "cannot be replaced, as it holds no words; use remove"
    return ""
