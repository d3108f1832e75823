"""DICOM headers without identity: the table of PS3.15 (2026c) with what its options allow put back under a key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.deid.values import DateShift, clean_descriptor, parse_day, top_code_age
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.io import dicom
from neuralmedbench.io.pseudonyms import uid_pseudonym
from neuralmedbench.io.storage import full_disk_behind

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

TABLE = "dicomfields_2026c"
STANDARD_UIDS = "1.2.840.10008."
METHOD = "PS3.15 2026c basic profile with keyed pseudonyms; see 0012,0064"
CODES = {
    "113100": "Basic Application Confidentiality Profile",
    "113102": "Clean Recognizable Visual Features Option",
    "113105": "Clean Descriptors Option",
    "113107": "Retain Longitudinal Temporal Information Modified Dates Option",
    "113108": "Retain Patient Characteristics Option",
}
AGENT = "ContrastBolusAgent"
DESCRIPTORS = frozenset({"SeriesDescription", "ProtocolName", "SequenceName", "StudyDescription"})
KEPT_TEXT = frozenset({
    "Manufacturer", "ManufacturerModelName", "SoftwareVersions", "ImagedNucleus", "ReceiveCoilName", "TransmitCoilName",
    "ConvolutionKernel", "FilterType", "RescaleType", "SpecificCharacterSet", "CodeValue", "CodingSchemeDesignator",
})  # fmt: skip
"""Free text that describes a device or a code and is written by the device."""
TEXT_VRS = frozenset({"LO", "SH", "ST", "LT", "UT", "UC", "PN", "AE", "UR"})
BINARY_VRS = frozenset({"UN", "OB", "OW", "OF", "OD", "OL", "OV"})
KEPT_BINARY = frozenset({"PixelData", "FloatPixelData", "RedPaletteColorLookupTableData"})
FREE_WORDS = re.compile(r"[A-Za-z0-9 ._+*/()-]{0,64}")


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
    """

    key: bytes
    patient_id: str
    dates: DateShift
    identifying: re.Pattern[str] | None = None


@cache
def _table() -> dict[tuple[int, ...], Callable[..., None]]:
    from dicomanonymizer.simpledicomanonymizer import initialize_actions

    actions: dict[tuple[int, ...], Callable[..., None]] = initialize_actions(TABLE)
    return actions


def clean_header(dataset: Dataset, rules: HeaderRules) -> Counter[str]:
    """Remove what identifies a patient from a DICOM dataset, in place, nested sequences and file meta too.

    Parameters
    ----------
    dataset : Dataset
        A whole dataset; pixels are not touched.
    rules : HeaderRules
        Key, pseudonym and dates.

    Returns
    -------
    Counter
        How many elements each check changed: `private`, `uids`, `dates`, `text`, `table`. An element that resists cleaning is
        removed.
    """
    counts: Counter[str] = Counter()
    age, sex = dicom.text(dataset, "PatientAge"), dicom.text(dataset, "PatientSex")
    for holder, element in list(dicom.elements(dataset)):
        if element.tag in holder:
            counts[_clean_element(holder, element, rules)] += 1
    del counts["kept"]
    dataset.PatientID = dataset.PatientName = rules.patient_id
    dataset.PatientBirthDate = ""
    dataset.PatientAge = top_code_age(age)
    dataset.PatientSex = sex if sex in {"M", "F", "O"} else ""
    _declare(dataset)
    _clean_meta(dataset)
    return counts


def _clean_element(holder: Dataset, element: Any, rules: HeaderRules) -> str:
    """Clean one element; gives the name of the check that changed it, or `kept`."""
    reason = _why_removed(element, dicom.text(holder, element.tag), rules)
    if reason:
        del holder[element.tag]
        return reason
    if element.VR == "UI":
        return _clean_uids(element, rules.key)
    if element.VR in {"DA", "DT"}:
        element.value = _shift(dicom.text(holder, element.tag), element.VR, rules.dates)
        return "dates"
    if element.keyword in DESCRIPTORS or element.keyword == AGENT:
        text = dicom.text(holder, element.tag)
        element.value = clean_descriptor(text) if element.keyword in DESCRIPTORS else "contrast agent" if text else ""
        return "text"
    return _apply_table(holder, element)


def _why_removed(element: Any, text: str, rules: HeaderRules) -> str:
    """Name the check that removes an element as a whole; empty when it stays.

    Curves and overlays (groups 50xx and 60xx) hold text and burned-in marks; bytes of an unknown kind may hold anything.
    """
    keyword, kind = element.keyword, element.VR
    if element.tag.is_private or 0x5000 <= element.tag.group < 0x6100 or (kind in BINARY_VRS and keyword not in KEPT_BINARY):
        return "private"
    cleaned_later = keyword in DESCRIPTORS or keyword == AGENT
    harmless = FREE_WORDS.fullmatch(text.replace("\\", " ")) is not None and not (rules.identifying and rules.identifying.search(text))
    if (kind in TEXT_VRS and not cleaned_later and not (keyword in KEPT_TEXT and harmless)) or (kind == "CS" and not harmless):
        return "text"
    return ""


def _apply_table(holder: Dataset, element: Any) -> str:
    action = None if element.keyword in KEPT_TEXT else _table().get((element.tag.group, element.tag.element))
    if action is None:
        return "kept"
    try:
        action(holder, (element.tag.group, element.tag.element))
    except Exception:  # whatever the action stumbles over, its text may hold the value: the element goes
        holder.pop(element.tag, None)
    return "table"


def _clean_uids(element: Any, key: bytes) -> str:
    values = [str(uid) for uid in element.value] if element.VM > 1 else [str(element.value or "")]
    if all(uid.startswith(STANDARD_UIDS) or not uid for uid in values):
        return "kept"
    cleaned = [uid if uid.startswith(STANDARD_UIDS) or not uid else uid_pseudonym(key, uid) for uid in values]
    element.value = cleaned if len(cleaned) > 1 else cleaned[0]
    return "uids"


def _shift(value: str, kind: str, dates: DateShift) -> str:
    """Give a valid shifted date (times of day go to midnight), or nothing when it was none."""
    day = parse_day(value.partition("\\")[0][:8])
    if day is None:
        return ""
    moved = f"{dates.shifted(day):%Y%m%d}"
    return moved if kind == "DA" else f"{moved}000000"


def _declare(dataset: Dataset) -> None:
    """Say in the header what was done, as PS3.15 asks."""
    from pydicom.dataset import Dataset as New
    from pydicom.sequence import Sequence

    items = []
    for code, meaning in CODES.items():
        item = New()
        item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = code, "DCM", meaning
        items.append(item)
    dataset.PatientIdentityRemoved = "YES"
    dataset.DeidentificationMethod = METHOD
    dataset.DeidentificationMethodCodeSequence = Sequence(items)
    dataset.LongitudinalTemporalInformationModified = "MODIFIED"


def _clean_meta(dataset: Dataset) -> None:
    """Build the file meta group anew: the old one holds the instance's UID and the sender's name."""
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import ImplicitVRLittleEndian

    old = getattr(dataset, "file_meta", None)
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    meta.TransferSyntaxUID = (old.get("TransferSyntaxUID") if old is not None else None) or ImplicitVRLittleEndian
    dataset.file_meta = meta
    dataset.preamble = b"\0" * 128


def clean_series(source: Path, target: Path, rules: HeaderRules) -> Counter[str]:
    """Clean the files of one DICOM series.

    Parameters
    ----------
    source, target : Path
        Folder of the raw files with neutral names, and folder for the cleaned ones under the same names.
    rules : HeaderRules
        Key, pseudonym and dates.

    Returns
    -------
    Counter
        Sums of `clean_header`.

    Raises
    ------
    DataError
        If a file cannot be read.
    DeidentificationError
        If a file cannot be written after cleaning.
    OSError
        If the disk is full.
    """
    target.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    paths = sorted(source.glob("*.dcm"))
    for number, path in enumerate(paths, start=1):
        dataset = dicom.read_dicom(path)
        counts += clean_header(dataset, rules)
        try:
            dataset.save_as(target / path.name, enforce_file_format=True)
        except Exception as error:  # whatever pydicom stumbles over, its text may hold a value of the header
            if full := full_disk_behind(error):
                raise full from None
            message = f"file {number} of {len(paths)} of a series could not be written after cleaning ({type(error).__name__})"
            raise DeidentificationError(message) from None
    return counts
