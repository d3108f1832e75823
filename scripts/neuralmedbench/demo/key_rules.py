"""Out of a header that was just planted, the rules of its answer key: what has to go, what has to stay."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset

from neuralmedbench.demo.identity import PhantomIdentity
from neuralmedbench.demo.invented import further_words
from neuralmedbench.files.answer_key import holds
from neuralmedbench.records.answer_key import TagRule

TEXT_KINDS = frozenset({"AE", "CS", "LO", "LT", "PN", "SH", "ST", "UC", "UR", "UT"})
STANDARD = "1.2.840.10008."
RETAINED = (
    "SOPClassUID", "Modality", "Manufacturer", "ManufacturerModelName", "ImageType", "ScanningSequence", "SequenceVariant", "MRAcquisitionType",
    "SequenceName", "RepetitionTime", "EchoTime", "InversionTime", "FlipAngle", "MagneticFieldStrength", "ImagingFrequency", "ImagedNucleus",
    "NumberOfAverages", "PixelBandwidth", "DiffusionBValue", "KVP", "ConvolutionKernel", "ContrastBolusVolume", "ContrastBolusRoute", "EchoTrainLength", "PatientPosition", "PatientSex",
    "ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SliceThickness", "SpacingBetweenSlices", "SliceLocation", "SeriesNumber",
    "InstanceNumber", "AcquisitionNumber", "RescaleIntercept", "RescaleSlope", "WindowCenter", "WindowWidth",
)  # fmt: skip
"""What research needs of a scan, in the words of the standard."""
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


def tag_rules(header: Dataset, who: PhantomIdentity, description: str, *, kept: bool) -> tuple[TagRule, ...]:
    """Give the rules of a series."""
    planted = planted_strings(who)
    rules = [rule for path, element in _walk(header) for rule in _removal(path, element, planted)]
    rules.append(TagRule(path=_path(header, "PatientID"), action="patid_consistent", category="DICOM"))
    if not kept:
        return tuple(rules)
    rules += [TagRule(path=_path(header, name), action="text_retained", category="research") for name in RETAINED if name in header]
    rules += [TagRule(path=_path(header, name), action="tag_retained", category="DICOM") for name in PRESENT if name in header]
    rules += [TagRule(path=_path(header, name), action="text_notnull", category="DICOM") for name in NOT_EMPTY if name in header]
    age = f"{min(who.age, 90):03d}Y"
    rules.append(TagRule(path=_path(header, "PatientAge"), action="text_retained", category="research", text=(age,)))
    words = tuple(word for word in re.split(r"[ _]", description) if any(letter.isalpha() for letter in word))
    rules.append(TagRule(path=_path(header, "ScanOptions"), action="text_retained", category="research", text=("FS",)))
    rules.append(TagRule(path=_path(header, "SeriesDescription"), action="text_retained", category="research", text=words))
    return tuple(rules)


def _removal(path: str, element: DataElement, planted: tuple[str, ...]) -> Iterator[TagRule]:
    category = "DICOM" if element.tag.is_private or element.tag.group >= 0x5000 else "HIPAA"
    values = [str(value) for value in element.value] if element.VM > 1 else [str(element.value)]
    if element.VR in {"DA", "DT"}:
        yield TagRule(path=path, action="date_shifted", category="HIPAA")
    elif element.VR == "UI" and not all(value.startswith(STANDARD) for value in values):
        yield TagRule(path=path, action="uid_changed", category="DICOM")
        yield TagRule(path=path, action="uid_consistent", category="DICOM")
    if element.keyword == "PatientAge" and element.value > "089Y":
        yield TagRule(path=path, action="text_removed", category="HIPAA", text=(element.value,))
    if element.VR in TEXT_KINDS | {"UI", "IS"}:
        found = tuple(word for word in planted if any(_planted_in(value, word, element.VR) for value in values))
        if found:
            yield TagRule(path=path, action="text_removed", category=category, text=found)
    if element.VR in {"OB", "OW", "UN"} and (element.keyword != "PixelData" or "/" in path):  # the icon has pixels too
        yield TagRule(path=path, action="text_removed", category=category)


def _planted_in(value: str, word: str, kind: str) -> bool:
    """Whether a string was planted in a value; half a record number may stand right behind a name."""
    return holds(value, word) or (kind != "UI" and word.isdigit() and word in value)


def _walk(dataset: Dataset, above: str = "") -> Iterator[tuple[str, DataElement]]:
    """Every element that is no sequence, with its path."""
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


def planted_strings(who: PhantomIdentity) -> tuple[str, ...]:
    """Everything about a person that stands somewhere in the headers, longest first."""
    words = who.words() | further_words(who)
    people = [who.physician, who.operator, who.colleague, who.relative]
    strings = {
        who.family, who.given, who.mrn, who.mrn[:4], who.mrn[4:], who.other_id, who.phone, who.street, who.town, who.hospital, who.elsewhere,
        who.hospital_address, who.station, who.serial, who.accession, who.accession[-5:], who.initials, *who.original_script.split(),
        *who.operator_script.split(), *people, *(part for name in people for part in name.split(" ")),
        *(words[name] for name in ("scanned_slash", "weekday_ordinal", "dashed", "born", "fax", "plan", "url", "zip", "trial")),
    }  # fmt: skip
    return tuple(sorted(strings - {""}, key=lambda text: (-len(text), text)))
