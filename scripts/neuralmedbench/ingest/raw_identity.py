"""Collect what identifies the patient from the raw headers, before they are cleaned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.files import dicom
from neuralmedbench.files.identity import Identity
from neuralmedbench.ingest.raw_files import FileKind, RawScan, stem_of

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

PLACES = ("InstitutionName", "InstitutionAddress", "InstitutionalDepartmentName", "StationName", "PatientAddress", "PerformedStationName")
NUMBERS = (
    "PatientID", "OtherPatientIDs", "AccessionNumber", "StudyID", "DeviceSerialNumber", "PatientBirthDate", "PatientTelephoneNumbers",
    "MedicalRecordLocator", "AdmissionID",
    "PerformedProcedureStepID", "FillerOrderNumberImagingServiceRequest", "PlacerOrderNumberImagingServiceRequest",
)  # fmt: skip
UIDS = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID")
PERSON_KEY = re.compile(r"^(?:OtherPatient|Patient\w*|\w*(?:Physicians?|Operators?|Observer|Person))Names?$|Physicians?OfRecord$")
"""Keys of a sidecar that hold names of persons."""


def collect_identity(scans: Iterable[RawScan], scan_date: str = "") -> Identity:
    """Collect identifying values over all raw files of a case.

    `scan_date`: day of the scan (`YYYYMMDD`) that a person gave, for scans whose headers name none. Returns: Sorted values. The first
    header of every series is read with all its nested sequences, the others by keyword.
    """
    values: dict[str, set[str]] = {"names": set(), "places": set(), "numbers": set(), "uids": set()}
    dates: set[str] = {scan_date} - {""}
    seen: set[str] = set()
    for scan in scans:
        if scan.header is None:
            if scan.kind is FileKind.NIFTI:
                values["numbers"] |= _file_tokens(scan)
            elif scan.kind is FileKind.SIDECAR and scan.path.suffix.lower() == ".json":
                _read_sidecar(scan.path, values)
            continue
        series = dicom.text(scan.header, "SeriesInstanceUID")
        if series not in seen:
            seen.add(series)
            _walk(scan.header if scan.whole is None else scan.whole, values)  # the groups of a frame name people too
        if scan.whole is not None:
            values["uids"].update(dicom.texts(scan.whole, "SOPInstanceUID"))
        for kind, keywords in (("places", PLACES), ("numbers", NUMBERS), ("uids", UIDS)):
            for keyword in keywords:
                values[kind].update(dicom.texts(scan.header, keyword))
        values["names"].update(dicom.texts(scan.header, "PatientName"))
        dates.update(dicom.texts(scan.header, "StudyDate"))
    return Identity(
        names=tuple(sorted(values["names"])),
        places=tuple(sorted(values["places"])),
        numbers=tuple(sorted(values["numbers"])),
        uids=tuple(sorted(values["uids"])),
        scan_date=min((date for date in dates if re.fullmatch(r"\d{8}", date)), default=""),
    )


def several_patients(scans: Iterable[RawScan]) -> str:
    """Why scans are not of one patient, by what their headers say; empty when they are."""
    headers = [scan.header for scan in scans if scan.header is not None]
    for keyword, word in (("PatientID", "patient id"), ("PatientBirthDate", "birth date"), ("PatientSex", "sex")):
        values = {dicom.text(header, keyword).upper() for header in headers} - {"", "O"}
        if len(values) > 1:
            return (
                f"files of more than one patient in one case: {len(values)} different entries for the {word};"
                " sort them apart and list the cases again"
            )
    return ""


def _walk(header: Dataset, values: dict[str, set[str]]) -> None:
    for holder, element in dicom.elements(header):
        keyword = element.keyword
        if element.VR == "PN":
            values["names"].update(dicom.texts(holder, keyword))
        elif keyword in PLACES:
            values["places"].update(dicom.texts(holder, keyword))
        elif keyword in NUMBERS:
            values["numbers"].update(dicom.texts(holder, keyword))


def _read_sidecar(path: Path, values: dict[str, set[str]]) -> None:
    """Collect what a converter wrote of the header into a sidecar; one that is no JSON object says nothing (its scan is refused later)."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError:
        return
    for key, value in content.items() if isinstance(content, dict) else ():
        kind = next((kind for kind, keys in (("places", PLACES), ("numbers", NUMBERS), ("uids", UIDS)) if key in keys), "")
        kind = kind or ("names" if PERSON_KEY.search(key) else "")
        for part in value if isinstance(value, list) else [value]:
            if kind and isinstance(part, str | int) and str(part).strip():
                values[kind].add(str(part).strip())


def _file_tokens(scan: RawScan) -> set[str]:
    """Parts of a file's place that look like a patient's number: the first word of its name and its folder's name."""
    return {word for word in (stem_of(scan.path).split("_")[0], scan.path.parent.name) if re.search(r"\d", word)}
