"""Plant identifiers in the header and pixels of a simulated scan, and derive the rules of its answer key."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from pydicom.uid import MRImageStorage

from neuralmedbench.demo.identity import PhantomIdentity
from neuralmedbench.files.answer_key import contains_planted
from neuralmedbench.records.answer_key import PixelBox, TagRule

MADE_UP_ROOT = "1.2.826.0.1.3680043.10.543"
PRIVATE = (
    (0x0009, "GEMS_IDEN_01"),
    (0x0011, "GEMS_PATI_01"),
    (0x0021, "SIEMENS MED"),
    (0x0051, "SIEMENS MR HEADER"),
    (0x2005, "Philips MR Imaging DD 005"),
)
"""Private blocks of known vendors, in elements that converters do not read."""


def plant_header_values(header: Dataset, identity: PhantomIdentity, number: int) -> None:
    """Plant further identifiers into a header of `series_header`, in place; spellings vary with the series number."""
    words = identity.words()
    day = identity.scanned
    _describe(header, identity, number)
    _name_people(header, identity)
    # the record number, split over two values
    header.MedicalRecordLocator, header.IssuerOfPatientID = identity.mrn[:4], f"second half {identity.mrn[4:]}"
    header.AdmissionID = f"{identity.mrn[:4]}-{identity.mrn[4:]}"
    # names, numbers and dates in free text
    header.RequestingService, header.CurrentPatientLocation = f"ward of {identity.given}", f"bay 3, {identity.family}"
    header.ImageComments = f"Repeat of {words['scanned_slash']} for {identity.initials} ({identity.family.upper()}), ask {identity.phone} or fax {words['fax']}"
    header.VisitComments = (
        f"Visited with {identity.relative} on {words['weekday_ordinal']}, born {words['born']}, plan {words['plan']}, see {words['url']}"
    )
    header.AdmittingDiagnosesDescription = f"fall; {identity.given.lower()} {identity.family.lower()}, {identity.age} years"
    header.ReasonForStudy = f"Known to {identity.elsewhere}"
    header.DerivationDescription = f"copied by {identity.initials} from {identity.family.lower()}-{identity.mrn}"
    header.RegionOfResidence, header.Occupation = identity.town, "teacher"
    header.PatientInsurancePlanCodeSequence = Sequence([_code("plan", words["plan"])])
    # further dates
    header.PerformedProcedureStepStartDate, header.PerformedProcedureStepDescription = f"{day:%Y%m%d}", f"Head {identity.family.upper()}"
    header.InstanceCreationDate, header.DateOfLastCalibration = f"{day:%Y%m%d}", f"{day - dt.timedelta(days=33):%Y%m%d}"
    header.IssueDateOfImagingServiceRequest = f"{day - dt.timedelta(days=5):%Y%m%d}"
    _hide(header, identity, words)
    _nest(header, identity, words)
    # private blocks of vendors: text, bytes, a date and a nested sequence
    for group, creator in PRIVATE:
        block = header.private_block(group, creator, create=True)
        block.add_new(0x70, "LO", f"{identity.family}^{identity.given}")
        block.add_new(0x71, "OB", f"{identity.family} {identity.mrn} ".encode("utf-16-le"))
        block.add_new(0x72, "DT", f"{day:%Y%m%d}091230")
        nested = Dataset()
        nested.PatientName, nested.PatientID = f"{identity.family}^{identity.given}", identity.mrn
        block.add_new(0x73, "SQ", Sequence([nested]))


def _hide(header: Dataset, identity: PhantomIdentity, words: dict[str, str]) -> None:
    """Plant in unexpected elements: device names, codes, numbers, tags in no dictionary, and value representations that are not the tag's."""
    family, day = identity.family.upper().replace("-", " "), identity.scanned
    header.SoftwareVersions, header.ReceiveCoilName = f"phantom 1.0 {identity.station}", f"Head {family}"[:16]
    header.ScanOptions, header.BodyPartExamined = ["FS", family[:16]], family[:16]
    header.InstitutionalDepartmentName, header.StationAETitle = f"Radiology, Dr {identity.physician}", identity.station
    header.HeartRate = identity.mrn
    header.ClinicalTrialSubjectID, header.DeidentificationMethod = words["trial"], f"copied without name by {identity.operator}"
    header.RetrieveURL = f"https://pacs.example.org/studies?PatientID={identity.mrn}"
    header.TextComments = f"{words['dashed']}: {identity.given} came late, fax {words['fax']}"
    # elements with a wrong value representation, unknown, or retired
    header.add_new(0x00321070, "UN", f"agent for {identity.family} ".encode())
    header.add_new(0x0028FFF0, "LO", f"{identity.family} {identity.mrn}")
    header.add_new(0x50000022, "LO", f"curve of {identity.family}")
    header.add_new(0x00204001, "DA", f"{day:%Y%m%d}")
    header.add_new(0xFFFCFFFC, "OB", f"{identity.family} {identity.mrn} ".encode())


def _describe(header: Dataset, identity: PhantomIdentity, number: int) -> None:
    """Add name and record number to description and protocol, as technicians do."""
    scan = str(header.SeriesDescription)
    family = identity.family.replace(" ", "")
    if number % 2:
        header.SeriesDescription, header.ProtocolName = f"{scan}_{family.upper()}{identity.mrn[:4]}", f"{scan.lower()} {identity.given}"
    else:
        header.SeriesDescription, header.ProtocolName = f"{scan} {family.lower()}", f"{scan.lower()}_{family.upper()}_{identity.mrn}"


def _name_people(header: Dataset, identity: PhantomIdentity) -> None:
    # decomposed letters: accents as separate code points
    apart = unicodedata.normalize("NFD", f"{identity.family}^{identity.given}")
    header.OtherPatientNames = [apart, f"{identity.family.lower().replace('-', ' ')}^{identity.given.upper()}"]
    header.PatientMotherBirthName = _reversed(identity.relative)
    header.PerformingPhysicianName = header.NameOfPhysiciansReadingStudy = _reversed(identity.colleague)
    if identity.operator_script:
        header.OperatorsName = f"{_reversed(identity.operator)}={identity.operator_script.replace(' ', '^')}"


def _nest(header: Dataset, identity: PhantomIdentity, words: dict[str, str]) -> None:
    """Plant in sequences, up to three levels deep."""
    # requests: people in coded entries, down to a name in the third level
    (request,) = header.RequestAttributesSequence
    request.RequestedProcedureID, request.ScheduledProcedureStepID = identity.mrn, identity.accession
    request.ReasonForRequestedProcedureCodeSequence = Sequence([_code("why", f"asked for by {identity.relative}")])
    person = Dataset()
    person.ValueType, person.PersonName = "PNAME", _reversed(identity.relative)
    person.ConceptNameCodeSequence = Sequence([_code("who", f"sister of {identity.given}")])
    protocol = _code("head", f"head {identity.family.upper()}")
    protocol.ProtocolContextSequence = Sequence([person])
    request.ScheduledProtocolCodeSequence = Sequence([protocol])
    request.ScheduledProcedureStepStartDateTime = f"{identity.scanned:%Y%m%d}091500"
    # original attributes, as a changed record leaves them
    before = Dataset()
    before.PatientName, before.PatientID, before.PatientBirthDate = (
        f"{identity.family}^{identity.given}",
        identity.mrn,
        f"{identity.born():%Y%m%d}",
    )
    change = Dataset()
    change.AttributeModificationDateTime, change.ModifyingSystem = f"{identity.scanned:%Y%m%d}101112", identity.station
    change.SourceOfPreviousValues, change.ReasonForTheAttributeModification = identity.elsewhere, "CORRECT"
    change.ModifiedAttributesSequence = Sequence([before])
    header.OriginalAttributesSequence = Sequence([change])
    # a reader and referenced UIDs
    reader = Dataset()
    reader.PersonIdentificationCodeSequence = Sequence([_code("doctor", identity.colleague)])
    reader.InstitutionName, reader.PersonAddress = identity.elsewhere, f"{identity.elsewhere}, {words['zip']}"
    header.PerformingPhysicianIdentificationSequence = Sequence([reader])
    header.ReferencedStudySequence = Sequence([_reference(str(header.StudyInstanceUID))])
    header.ReferencedImageSequence = Sequence([_reference(f"{MADE_UP_ROOT}.{identity.mrn}.1")])


def plant_graphics(header: Dataset, identity: PhantomIdentity, shape: tuple[int, int]) -> None:
    """Plant an overlay plane and an icon, both with name and record number drawn into them.

    Parameters
    ----------
    header : Dataset
        Header of a series, modified in place.
    identity : PhantomIdentity
        The invented person.
    shape : tuple of int
        Rows and columns of the picture.
    """
    text = draw_text((identity.family.upper(), identity.mrn))
    plane = np.zeros(shape, bool)
    rows, columns = min(shape[0], text.shape[0]), min(shape[1], text.shape[1])
    plane[:rows, :columns] = text[:rows, :columns]
    # overlay plane in group 6000 (PS3.3 C.9.2), one bit per pixel
    block = (
        (0x10, "US", shape[0]), (0x11, "US", shape[1]), (0x22, "LO", identity.family), (0x40, "CS", "G"), (0x50, "SS", [1, 1]), (0x100, "US", 1),
        (0x102, "US", 0), (0x1500, "LO", f"{identity.family} {identity.mrn}"),
        (0x3000, "OW", np.packbits(plane, axis=None, bitorder="little").tobytes().ljust((plane.size + 15) // 16 * 2, b"\0")),
    )  # fmt: skip
    for element, kind, value in block:
        header.add_new((0x6000, element), kind, value)
    # icon with the same text
    icon = Dataset()
    icon.SamplesPerPixel, icon.PhotometricInterpretation, icon.Rows, icon.Columns = 1, "MONOCHROME2", 64, 64
    icon.BitsAllocated, icon.BitsStored, icon.HighBit, icon.PixelRepresentation = 8, 8, 7, 0
    small = np.zeros((64, 64), np.uint8)
    small[: text.shape[0], :] = (
        text[:64, :64] * np.uint8(255) if text.shape[1] >= 64 else np.pad(text, ((0, 0), (0, 64 - text.shape[1]))) * np.uint8(255)
    )
    icon.add_new("PixelData", "OB", small.tobytes())
    header.IconImageSequence = Sequence([icon])


def _code(value: str, meaning: str) -> Dataset:
    item = Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = value, "99DEMO", meaning
    return item


def _reference(uid: str) -> Dataset:
    item = Dataset()
    item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID = MRImageStorage, uid
    return item


def _reversed(name: str) -> str:
    """Write a name as DICOM does, family name first."""
    given, _, family = name.partition(" ")
    return f"{family}^{given}"


EDGE = 3
"""Margin between text and border of the picture, pixels."""


def draw_text(lines: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Draw lines of text.

    Returns
    -------
    ndarray of bool, shape (rows, columns)
        True on letters; cropped to them.
    """
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (400, 12 * len(lines) + 4))
    for place, line in enumerate(lines):
        # the packaged bitmap font, because the rendering of outline fonts changes between versions of Pillow
        ImageDraw.Draw(picture).text((1, 1 + 12 * place), line, fill=255, font=ImageFont.load_default_imagefont())
    drawn = np.asarray(picture) > 127
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    return drawn[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def burn_in(stored: npt.NDArray[np.uint16], identity: PhantomIdentity) -> tuple[npt.NDArray[np.uint16], PixelBox]:
    """Draw name and record number into the upper left corner of every slice, where the picture shows air.

    Parameters
    ----------
    stored : ndarray of uint16, shape (slices, rows, columns)
        Stored values.
    identity : PhantomIdentity
        The invented person.

    Returns
    -------
    stored : ndarray of uint16, shape (slices, rows, columns)
        A copy in which the letters have the highest value of the scan.
    box : PixelBox
        Position of the text.
    """
    lines = (identity.family.upper(), identity.mrn)
    text = draw_text(lines)
    box = PixelBox(top=EDGE, left=EDGE, bottom=EDGE + text.shape[0], right=EDGE + text.shape[1], text=lines)
    marked = stored.copy()
    marked[:, box.top : box.bottom, box.left : box.right][:, text] = stored.max()
    return marked, box


TEXT_KINDS = frozenset({"AE", "CS", "LO", "LT", "PN", "SH", "ST", "UC", "UR", "UT"})
STANDARD = "1.2.840.10008."
RETAINED = (
    "SOPClassUID", "Modality", "Manufacturer", "ManufacturerModelName", "ImageType", "ScanningSequence", "SequenceVariant", "MRAcquisitionType",
    "SequenceName", "RepetitionTime", "EchoTime", "InversionTime", "FlipAngle", "MagneticFieldStrength", "ImagingFrequency", "ImagedNucleus",
    "NumberOfAverages", "PixelBandwidth", "DiffusionBValue", "KVP", "ConvolutionKernel", "ContrastBolusVolume", "ContrastBolusRoute", "EchoTrainLength", "PatientPosition", "PatientSex",
    "ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SliceThickness", "SpacingBetweenSlices", "SliceLocation", "SeriesNumber",
    "InstanceNumber", "AcquisitionNumber", "RescaleIntercept", "RescaleSlope", "WindowCenter", "WindowWidth",
)  # fmt: skip
"""Elements that research needs from a scan, by DICOM keyword."""
PRESENT = (
    "Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "SamplesPerPixel", "PhotometricInterpretation",
)  # fmt: skip
NOT_EMPTY = (
    "PatientID",
    "PatientName",
    "StudyDate",
    "SeriesDate",
    "AcquisitionDate",
    "StudyInstanceUID",
    "SeriesInstanceUID",
    "ContrastBolusAgent",
)


def tag_rules(header: Dataset, identity: PhantomIdentity, description: str, *, kept: bool) -> tuple[TagRule, ...]:
    """Return the answer-key rules of a series from one complete header, removals first.

    Words of `description` must be kept. If not `kept` (a screenshot), there are only removals.
    """
    planted = planted_strings(identity)
    # what must be removed or replaced
    rules = [rule for path, element in _walk(header) for rule in _removal(path, element, planted)]
    rules.append(TagRule(path=_path(header, "PatientID"), action="patid_consistent", category="DICOM"))
    if not kept:
        return tuple(rules)
    # what research needs, and what must exist
    rules += [TagRule(path=_path(header, name), action="text_retained", category="research") for name in RETAINED if name in header]
    rules += [TagRule(path=_path(header, name), action="tag_retained", category="DICOM") for name in PRESENT if name in header]
    rules += [TagRule(path=_path(header, name), action="text_notnull", category="DICOM") for name in NOT_EMPTY if name in header]
    # ages over 89 become 90
    age = f"{min(identity.age, 90):03d}Y"
    rules.append(TagRule(path=_path(header, "PatientAge"), action="text_retained", category="research", text=(age,)))
    words = tuple(word for word in re.split(r"[ _]", description) if any(letter.isalpha() for letter in word))
    rules.append(TagRule(path=_path(header, "ScanOptions"), action="text_retained", category="research", text=("FS",)))
    rules.append(TagRule(path=_path(header, "SeriesDescription"), action="text_retained", category="research", text=words))
    return tuple(rules)


def _removal(path: str, element: DataElement, planted: tuple[str, ...]) -> Iterator[TagRule]:
    """Yield the rules of what must be removed from an element."""
    category = "DICOM" if element.tag.is_private or element.tag.group >= 0x5000 else "HIPAA"
    values = [str(value) for value in element.value] if element.VM > 1 else [str(element.value)]
    # dates are shifted, UIDs of the source replaced; UIDs of the standard stay
    if element.VR in {"DA", "DT"}:
        yield TagRule(path=path, action="date_shifted", category="HIPAA")
    elif element.VR == "UI" and not all(value.startswith(STANDARD) for value in values):
        yield TagRule(path=path, action="uid_changed", category="DICOM")
        yield TagRule(path=path, action="uid_consistent", category="DICOM")
    if element.keyword == "PatientAge" and element.value > "089Y":
        yield TagRule(path=path, action="text_removed", category="HIPAA", text=(element.value,))
    if element.VR in TEXT_KINDS | {"UI", "IS"}:
        strings = tuple(word for word in planted if any(_planted_in(value, word, element.VR) for value in values))
        if strings:
            yield TagRule(path=path, action="text_removed", category=category, text=strings)
    if element.VR in {"OB", "OW", "UN"} and (element.keyword != "PixelData" or "/" in path):  # the icon has pixels too
        yield TagRule(path=path, action="text_removed", category=category)


def _planted_in(value: str, word: str, kind: str) -> bool:
    """Return True if a string was planted in a value; half a record number may directly follow a name."""
    return contains_planted(value, word) or (kind != "UI" and word.isdigit() and word in value)


def _walk(dataset: Dataset, above: str = "") -> Iterator[tuple[str, DataElement]]:
    """Yield every element that is not a sequence, with its path."""
    for element in dataset:
        path = f"{above}{element.tag.group:04X}{element.tag.element:04X}"
        if element.VR != "SQ":
            yield path, element
            continue
        for place, item in enumerate(element.value):
            yield from _walk(item, f"{path}/{place}/")


def _path(header: Dataset, keyword: str) -> str:
    tag = header[keyword].tag
    return f"{tag.group:04X}{tag.element:04X}"


def planted_strings(identity: PhantomIdentity) -> tuple[str, ...]:
    """Return every string about a person that the headers contain, longest first."""
    words, people = identity.words(), (identity.physician, identity.operator, identity.colleague, identity.relative)
    strings = {
        *identity.in_headers(), identity.mrn[:4], identity.mrn[4:], identity.accession[-5:], identity.initials,
        *(part for name in people for part in name.split(" ")),
        *(words[name] for name in ("scanned_slash", "weekday_ordinal", "dashed", "born", "zip", "trial")),
    }  # fmt: skip
    return tuple(sorted(strings - {""}, key=lambda text: (-len(text), text)))
