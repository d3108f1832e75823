"""The action for each DICOM element, and the rules for the headers of one patient.

The table and the options are those of PS3.15 (2026c), Annex E, with lists of safe elements for which it has no row; a header declares the
options that were applied.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from neuralmedbench.deid.values import DateShift
from neuralmedbench.files.identity import IdentityPattern

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

EDITION = "dicomfields_2026c"
DESCRIPTORS = frozenset({
    "SeriesDescription", "ProtocolName", "SequenceName", "PulseSequenceName", "StudyDescription", "PerformedProcedureStepDescription",
    "RequestedProcedureDescription", "ContrastBolusRoute", "CodeMeaning",
})  # fmt: skip
DEVICE_TEXT = frozenset({
    "ManufacturerModelName", "SoftwareVersions", "ReceiveCoilName", "TransmitCoilName", "ReceiveCoilManufacturerName",
    "TransmitCoilManufacturerName", "MultiCoilElementName",
})  # fmt: skip
DEVICE_IDS = frozenset({"StationName", "DeviceSerialNumber"})
KEPT_TEXT = frozenset({
    "Manufacturer", "ImagedNucleus", "ConvolutionKernel", "FilterType", "RescaleType", "CodeValue", "CodingSchemeDesignator",
    "CodingSchemeVersion", "StackID",
})  # fmt: skip
"""Text written by the device that describes a setting or a code; conversion needs the manufacturer."""
MANUFACTURERS = frozenset({
    "siemens", "siemens healthineers", "siemens healthcare", "siemens healthcare gmbh", "siemens shenzhen magnetic resonance ltd.",
    "ge", "ge healthcare", "ge medical systems", "ge medical systems, inc.", "philips", "philips healthcare", "philips medical systems",
    "philips medical systems, inc.", "philips medical systems nederland b.v.", "toshiba", "toshiba_mec", "toshiba_mec_mr", "toshiba_mec_ct",
    "toshiba medical systems", "canon", "canon_mec", "canon medical systems", "canon medical systems corporation", "uih", "united imaging",
    "united imaging healthcare", "shanghai united imaging healthcare co., ltd.", "hitachi", "hitachi medical corporation", "hitachi, ltd.",
    "fujifilm", "fujifilm healthcare", "fujifilm healthcare corporation", "bruker", "bruker biospin", "bruker biospin mri gmbh", "mediso",
    "hyperfine", "hyperfine, inc.", "neusoft", "neusoft medical systems", "samsung", "samsung electronics", "samsung neurologica",
    "neurologica", "esaote", "fonar", "imris", "elscint", "picker", "picker international, inc.", "marconi", "marconi medical systems, inc.",
    "shimadzu", "paramed", "carestream", "carestream health", "planmeca", "xoran",
})  # fmt: skip
"""Manufacturers of MR and CT scanners, as they and converters write their names, in lower case. Such a value stays even if a patient has that
name; another one that a patient has is removed."""
PATIENT = frozenset({"PatientAge", "PatientSex", "PatientSize", "PatientWeight", "SmokingStatus"})
CONTENT = frozenset({"ContentSequence", "AcquisitionContextSequence"})
NUMBERS_IN_BYTES = frozenset({
    "RedPaletteColorLookupTableData", "GreenPaletteColorLookupTableData", "BluePaletteColorLookupTableData", "LUTData",
})  # fmt: skip
PIXELS = frozenset({"PixelData"})
"""Pixels of CT and MR images, which are defaced and searched for text. Pixels anywhere else are removed."""
GONE = frozenset({"GraphicAnnotationSequence", "IconImageSequence", "WaveformSequence", "DataSetTrailingPadding", "PatientBirthTime"})
EMPTIED = frozenset({"PatientBirthDate", "ReferringPhysicianName"})
DATE_VRS = frozenset({"DA", "DT", "TM"})
TEXT_VRS = frozenset({"LO", "SH", "ST", "LT", "UT", "UC", "PN", "AE", "UR"})
BINARY_VRS = frozenset({"UN", "OB", "OW", "OF", "OD", "OL", "OV"})
MIN_GROUP = 0x0008
"""Lower groups hold commands, file meta and directories, which do not belong in an image."""
GRAPHICS = frozenset({0x5000, 0x6000})
"""Curves and overlays (groups 50xx, 60xx)."""
SAFE_PRIVATE = {
    ("SIEMENS MR HEADER", 0x0019, 0x0A): ("US", 1),  # images in a mosaic
    ("SIEMENS MR HEADER", 0x0019, 0x0B): ("DS", 1),  # duration of a slice
    ("SIEMENS MR HEADER", 0x0019, 0x0C): ("IS", 1),  # b-value
    ("SIEMENS MR HEADER", 0x0019, 0x0E): ("FD", 3),  # gradient direction
    ("SIEMENS MR HEADER", 0x0019, 0x27): ("FD", 6),  # b-matrix
    ("SIEMENS MR HEADER", 0x0019, 0x28): ("FD", 1),  # bandwidth per pixel, phase encoding
    ("Philips Imaging DD 001", 0x2001, 0x03): ("FL", 1),  # b-value
    ("Philips Imaging DD 001", 0x2001, 0x0A): ("IS", 1),  # slice number
    ("Philips Imaging DD 001", 0x2001, 0x18): ("SL", 1),  # number of slices
    ("Philips MR Imaging DD 001", 0x2005, 0x0D): ("FL", 1),  # scale intercept
    ("Philips MR Imaging DD 001", 0x2005, 0x0E): ("FL", 1),  # scale slope
    ("Philips MR Imaging DD 001", 0x2005, 0xB0): ("FL", 1),  # gradient direction, right to left
    ("Philips MR Imaging DD 001", 0x2005, 0xB1): ("FL", 1),  # front to back
    ("Philips MR Imaging DD 001", 0x2005, 0xB2): ("FL", 1),  # feet to head
    ("GEMS_PARM_01", 0x0043, 0x39): ("IS", 4),  # b-value
    ("GEMS_ACQU_01", 0x0019, 0xBB): ("DS", 1),  # gradient direction x
    ("GEMS_ACQU_01", 0x0019, 0xBC): ("DS", 1),  # y
    ("GEMS_ACQU_01", 0x0019, 0xBD): ("DS", 1),  # z
    ("GEMS_ACQU_01", 0x0019, 0xE0): ("DS", 1),  # number of directions
}
"""Private elements that conversion needs and that hold only numbers: creator, group and element within its block, with VR and maximum number of
values; from PS3.15 Table E.3.10-1 and the vendors' conformance statements."""
CREATORS = frozenset(creator for creator, _, _ in SAFE_PRIVATE)
LEAST, MOST = 1e-9, 1e9
"""Range of settings; text read as binary numbers mostly lies outside."""
DECIMAL = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
MAX_DIGITS = 16
STRUCT_CODES = {"US": "H", "SS": "h", "UL": "I", "SL": "i", "FL": "f", "FD": "d"}
BASIC = "113100"


class Option:
    """Codes of the options of PS3.15 Annex E, which apply beside the basic profile."""

    PIXELS = "113101"
    FEATURES = "113102"
    GRAPHICS = "113103"
    CONTENT = "113104"
    DESCRIPTORS = "113105"
    DATES = "113107"
    PATIENT = "113108"
    DEVICE = "113109"
    SAFE_PRIVATE = "113111"


CODES = {
    BASIC: "Basic Application Confidentiality Profile",
    Option.PIXELS: "Clean Pixel Data Option",
    Option.FEATURES: "Clean Recognizable Visual Features Option",
    Option.GRAPHICS: "Clean Graphics Option",
    Option.CONTENT: "Clean Structured Content Option",
    Option.DESCRIPTORS: "Clean Descriptors Option",
    Option.DATES: "Retain Longitudinal Temporal Information Modified Dates Option",
    Option.PATIENT: "Retain Patient Characteristics Option",
    Option.DEVICE: "Retain Device Identity Option",
    Option.SAFE_PRIVATE: "Retain Safe Private Option",
}
"""Code meanings of CID 7050, coding scheme DCM."""
OF_PIXELS = frozenset({Option.PIXELS, Option.FEATURES})
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
    identifying : IdentityPattern or None
        Matches the patient's identifiers in folded text; matches are removed even where the table keeps the element.
    options : tuple of str
        Codes of the options of PS3.15 that apply; 113107 counts only if `dates` are shifted.
    elements : dict of int to str
        Own rules for single elements: `remove`, `replace` or `keep` by tag.
    """

    key: bytes
    patient_id: str
    dates: DateShift
    identifying: IdentityPattern | None = None
    options: tuple[str, ...] = ALL_OPTIONS
    elements: Mapping[int, str] = field(default_factory=dict)

    @property
    def applied(self) -> frozenset[str]:
        """Codes of the options that apply."""
        return frozenset(self.options) - ({Option.DATES} if self.dates.years_only else set())

    @property
    def kept_elements(self) -> tuple[str, ...]:
        """Keywords of the elements that own rules keep."""
        from pydicom.datadict import keyword_for_tag

        return tuple(keyword_for_tag(tag) for tag, action in sorted(self.elements.items()) if action == "keep")


class Action(Enum):
    """What is done with the value of a non-empty element."""

    REMOVE = "remove"
    EMPTY = "empty"
    EMPTY_OR_GONE = "empty_or_gone"
    """Emptied; a sequence is removed from plain images."""
    DUMMY = "dummy"
    """Replaced by a meaningless value."""
    OPTIONAL = "optional"
    """Removed from plain images; enhanced ones may need it and get a dummy."""
    OPTIONAL_VALUE = "optional_value"
    """Emptied in plain images; enhanced ones may need a value and get a dummy."""
    KEEP = "keep"
    """Numbers and codes; kept if they fit their VR."""
    UID = "uid"
    DATE = "date"
    WORDS = "words"
    """A description, reduced to words about scans (113105)."""
    AGENT = "agent"
    DEVICE = "device"
    """A device's model, software or coil; kept if it is plain text (113109)."""
    DEVICE_ID = "device_id"
    """An identifier of one device, replaced by a pseudonym (113109)."""
    PATIENT = "patient"
    """Age, sex, size...; kept if it fits its VR (113108)."""
    TEXT = "text"
    """Free text without a row in the table; reduced to words about scans."""
    PIXELS = "pixels"
    ITEMS = "items"
    """A sequence whose items are cleaned one by one."""
    CONTENT = "content"
    """A sequence of structured content: its items are cleaned (113104), otherwise it is removed."""


@cache
def action_of(tag: int) -> Action:
    """Return the action for a standard element (not a private one); for dates and times see also `table_action`."""
    from pydicom.datadict import keyword_for_tag

    group, keyword, kinds = tag >> 16, keyword_for_tag(tag), vrs_of(tag)
    listed = table_action(tag)
    # The order matters: the first condition that holds decides, so each line relies on all lines before it having failed.
    # 1. elements that do not belong in an image, whatever the table says; 2. elements listed in this module, by the option that cleans them;
    # 3. kinds of values with a common rule; 4. the rest: bytes that cannot be interpreted, free text without a row, and the table's own action.
    cases = (
        (group < MIN_GROUP or group & 0xFF00 in GRAPHICS or tag & 0xFFFF == 0 or not kinds or keyword in GONE, Action.REMOVE),
        (keyword in EMPTIED, Action.EMPTY),
        (keyword in DESCRIPTORS, Action.WORDS),
        (keyword == "ContrastBolusAgent", Action.AGENT),
        (keyword in DEVICE_TEXT, Action.DEVICE),
        (keyword in DEVICE_IDS, Action.DEVICE_ID),
        (keyword in PATIENT, Action.PATIENT),
        (keyword in CONTENT, Action.CONTENT),
        (keyword in PIXELS, Action.PIXELS),
        (keyword in NUMBERS_IN_BYTES | KEPT_TEXT, Action.KEEP),
        ("SQ" in kinds and listed not in {Action.REMOVE, Action.EMPTY, Action.EMPTY_OR_GONE}, Action.ITEMS),
        (bool(kinds & DATE_VRS), Action.DATE),
        ("UI" in kinds and listed is not Action.REMOVE, Action.UID),
        (kinds <= BINARY_VRS, Action.REMOVE),
        (listed is None and bool(kinds & TEXT_VRS), Action.TEXT),
    )
    return next((action for applies, action in cases if applies), listed or Action.KEEP)


@cache
def table_action(tag: int) -> Action | None:
    """Return the table's own action for an element; None if it has no row."""
    action = _table().get((tag >> 16, tag & 0xFFFF))
    return _OF_TABLE[action.__name__] if action is not None else None


@cache
def vrs_of(tag: int) -> frozenset[str]:
    """Return the VRs of an element in the standard; empty if the element is unknown."""
    from pydicom.datadict import dictionary_VR

    try:
        return frozenset(dictionary_VR(tag).split(" or "))
    except KeyError:
        return frozenset()


@cache
def _table() -> dict[tuple[int, ...], Callable[..., None]]:
    from dicomanonymizer.simpledicomanonymizer import initialize_actions

    actions: dict[tuple[int, ...], Callable[..., None]] = initialize_actions(EDITION)
    return actions


def private_vr(creator: str, tag: int) -> str:
    """Return the VR of an element of `SAFE_PRIVATE`, regardless of the file."""
    return SAFE_PRIVATE[creator, tag >> 16, tag & 0xFF][0]


def is_safe_private(creator: str, tag: int, vr: str, value: bytes, *, little_endian: bool) -> bool:
    """Return True if a private element is in `SAFE_PRIVATE` and holds only numbers, at most as many as listed.

    `vr`: VR in the file, `UN` if it has none.
    """
    known = SAFE_PRIVATE.get((creator, tag >> 16, tag & 0xFF))
    if known is None or vr not in {known[0], "UN"}:
        return False
    kind, most = known
    if kind in STRUCT_CODES:
        size = struct.calcsize(f"<{STRUCT_CODES[kind]}")
        count, rest = divmod(len(value), size)
        if rest or not 0 < count <= most:
            return False
        numbers = struct.unpack(f"{'<' if little_endian else '>'}{count}{STRUCT_CODES[kind]}", value)
        return all(math.isfinite(number) and (number == 0 or LEAST <= abs(number) <= MOST) for number in numbers)
    parts = [part.strip() for part in value.rstrip(b"\0 ").split(b"\\")]
    return len(parts) <= most and all(len(part) <= MAX_DIGITS and DECIMAL.fullmatch(part) for part in parts)


_OF_TABLE = {
    "delete": Action.REMOVE,
    "empty": Action.EMPTY,
    "replace": Action.DUMMY,
    "replace_UID": Action.UID,
    "delete_or_replace": Action.OPTIONAL,
    "delete_or_empty": Action.EMPTY_OR_GONE,
    "delete_or_empty_or_replace": Action.OPTIONAL,
    "empty_or_replace": Action.OPTIONAL_VALUE,
    "delete_or_empty_or_replace_UID": Action.ITEMS,
}


def pixel_options(*, face_removed: bool) -> frozenset[str]:
    """Return the options of pixels that were applied to a scan: that of the face only where one was removed."""
    return OF_PIXELS if face_removed else OF_PIXELS - {Option.FEATURES}


def declare(dataset: Dataset, codes: Iterable[str], *, kept: bool = False) -> None:
    """Declare the de-identification in a header, as PS3.15 E.3 requires: (0012,0062), (0012,0063), (0012,0064) and (0028,0303).

    `codes`: options that were applied; the basic profile is declared with them. 113102 sets RecognizableVisualFeatures to NO. `kept`: own
    rules keep single elements.
    """
    from pydicom.dataelem import RawDataElement
    from pydicom.tag import Tag

    applied = tuple(sorted({BASIC, *codes}))
    dataset.PatientIdentityRemoved = "YES"
    dataset.DeidentificationMethod = [METHOD, OWN_RULES] if kept else METHOD
    implicit, little = (flag is not False for flag in dataset.original_encoding)
    content = _encoded_items(applied, implicit=implicit, little=little)
    tag = Tag("DeidentificationMethodCodeSequence")
    dataset[tag] = RawDataElement(tag, "SQ", len(content), content, 0, implicit, little)
    dataset.LongitudinalTemporalInformationModified = "MODIFIED" if Option.DATES in applied else "REMOVED"
    if Option.FEATURES in applied:
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
