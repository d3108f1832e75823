"""Collect what identifies the patient from the raw headers, before they are cleaned."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from neuralmedbench.ingest.raw_files import Kind, RawScan, stem_of
from neuralmedbench.io import dicom
from neuralmedbench.io.identity import Identity

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

PLACES = ("InstitutionName", "InstitutionAddress", "InstitutionalDepartmentName", "StationName", "PatientAddress", "PerformedStationName")
NUMBERS = (
    "PatientID", "OtherPatientIDs", "AccessionNumber", "StudyID", "DeviceSerialNumber", "PatientBirthDate", "PatientTelephoneNumbers",
    "MedicalRecordLocator", "AdmissionID",
    "PerformedProcedureStepID", "FillerOrderNumberImagingServiceRequest", "PlacerOrderNumberImagingServiceRequest",
)  # fmt: skip
UIDS = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID")


def collect_identity(scans: Iterable[RawScan], scan_date: str = "") -> Identity:
    """Collect identifying values over all raw files of a case.

    Parameters
    ----------
    scans : iterable of RawScan
        DICOM and NIfTI files; of NIfTI only names are known.
    scan_date : str
        Day of the scan (`YYYYMMDD`) that a person gave, for scans whose headers name none.

    Returns
    -------
    Identity
        Sorted values. The first header of every series is read with all its nested sequences, the others by keyword.
    """
    found: dict[str, set[str]] = {"names": set(), "places": set(), "numbers": set(), "uids": set()}
    dates: set[str] = {scan_date} - {""}
    seen: set[str] = set()
    for scan in scans:
        if scan.header is None:
            if scan.kind is Kind.NIFTI:
                found["numbers"] |= _file_tokens(scan)
            continue
        series = dicom.text(scan.header, "SeriesInstanceUID")
        if series not in seen:
            seen.add(series)
            _walk(scan.header, found)
        if scan.whole is not None:
            found["uids"].update(dicom.texts(scan.whole, "SOPInstanceUID"))
        for kind, keywords in (("places", PLACES), ("numbers", NUMBERS), ("uids", UIDS)):
            for keyword in keywords:
                found[kind].update(dicom.texts(scan.header, keyword))
        found["names"].update(dicom.texts(scan.header, "PatientName"))
        dates.update(dicom.texts(scan.header, "StudyDate"))
    return Identity(
        names=tuple(sorted(found["names"])),
        places=tuple(sorted(found["places"])),
        numbers=tuple(sorted(found["numbers"])),
        uids=tuple(sorted(found["uids"])),
        scan_date=min((date for date in dates if re.fullmatch(r"\d{8}", date)), default=""),
    )


def several_patients(scans: Iterable[RawScan]) -> str:
    """Why scans are not of one patient, by what their headers say; empty when they are.

    Parameters
    ----------
    scans : iterable of RawScan
        What is part of a series: the header of a file that is cut off may hold half an id.
    """
    headers = [scan.header for scan in scans if scan.header is not None]
    for keyword, word in (("PatientID", "patient id"), ("PatientBirthDate", "birth date"), ("PatientSex", "sex")):
        found = {dicom.text(header, keyword).upper() for header in headers} - {"", "O"}
        if len(found) > 1:
            return (
                f"files of more than one patient in one case: {len(found)} different entries for the {word};"
                " sort them apart and list the cases again"
            )
    return ""


def _walk(header: Dataset, found: dict[str, set[str]]) -> None:
    for holder, element in dicom.elements(header):
        keyword = element.keyword
        if element.VR == "PN":
            found["names"].update(dicom.texts(holder, keyword))
        elif keyword in PLACES:
            found["places"].update(dicom.texts(holder, keyword))
        elif keyword in NUMBERS:
            found["numbers"].update(dicom.texts(holder, keyword))


def _file_tokens(scan: RawScan) -> set[str]:
    """Parts of a file's place that look like a patient's number: the first word of its name and its folder's name."""
    return {word for word in (stem_of(scan.path).split("_")[0], scan.path.parent.name) if re.search(r"\d", word)}
