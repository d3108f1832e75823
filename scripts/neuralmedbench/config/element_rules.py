"""Own rules for single DICOM elements: stricter than the profile as one likes, looser only for listed descriptions, with a reason and a signer."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.section import Section

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
        keyword = keyword_of(self.element)
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
        return keyword_of(self.element)


def keyword_of(element: str) -> str:
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


def tag_of(keyword: str) -> int:
    """Return the tag of a keyword of the standard."""
    from pydicom.datadict import keyword_dict

    return int(keyword_dict[keyword])


def actions_by_tag(rules: Iterable[ElementRule]) -> dict[int, str]:
    """Return the actions of rules by tag."""
    return {tag_of(rule.keyword): rule.action for rule in rules}


def read_element_arguments(arguments: Iterable[str]) -> tuple[ElementRule, ...]:
    """Read rules from arguments of a command, each in JSON."""
    return tuple(ElementRule.model_validate_json(argument) for argument in arguments)


def _problem(keyword: str, action: str) -> str:
    """Return why an element cannot be treated so; empty if it can."""
    from pydicom.datadict import dictionary_VR

    group, kinds = tag_of(keyword) >> 16, set(dictionary_VR(tag_of(keyword)).split(" or "))
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
