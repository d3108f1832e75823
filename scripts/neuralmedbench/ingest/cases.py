"""Ingest one case: usable scans, notes and record under neutral names.

The kind of every scan and all identifying values are read from the headers here, before de-identification cleans them.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.case_flow import PHANTOM
from neuralmedbench.files.cases import foreign_input
from neuralmedbench.files.identity import Identity, write_identity
from neuralmedbench.files.raw_folder import RawFile, RawIndex
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.ingest.grouping import patients_by_id
from neuralmedbench.ingest.import_series import SeriesOfCase, import_series
from neuralmedbench.ingest.persons_labels import NamedKinds
from neuralmedbench.ingest.pixels import repeated_series
from neuralmedbench.ingest.raw_files import FileKind, RawScan, checked_bytes, load_raw_files, path_inside, read_sidecar, stem_of
from neuralmedbench.ingest.raw_series import RawSeries, sort_into_series
from neuralmedbench.ingest.sequences import plain_words
from neuralmedbench.ingest.series_fates import series_fates
from neuralmedbench.records.case import CaseRecord, FileFate, Series, SeriesFate, State, VoxelSizes

if TYPE_CHECKING:
    from pydicom.dataset import Dataset


USED = "used"


PLACES = ("InstitutionName", "InstitutionAddress", "InstitutionalDepartmentName", "StationName", "PatientAddress", "PerformedStationName")
NUMBERS = (
    "PatientID", "OtherPatientIDs", "AccessionNumber", "StudyID", "DeviceSerialNumber", "PatientBirthDate", "PatientTelephoneNumbers",
    "MedicalRecordLocator", "AdmissionID",
    "PerformedProcedureStepID", "FillerOrderNumberImagingServiceRequest", "PlacerOrderNumberImagingServiceRequest",
)  # fmt: skip
UIDS = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID")
NAMES_OF_OBJECT = ("PatientName", "PatientID", "StudyDescription", "SeriesDescription", "ProtocolName", "BodyPartExamined")
PHANTOM_WORDS = re.compile(r"\b(?:phantoms?|phantomes?|fantome?s?|fantomas?)\b")
PERSON_KEY = re.compile(r"^(?:OtherPatient|Patient\w*|\w*(?:Physicians?|Operators?|Observer|Person))Names?$|Physicians?OfRecord$")
"""Keys of a sidecar that hold names of persons; the standard's keywords of persons, and those of converters."""


def new_case(benchmark: str, case_id: str, index: RawIndex) -> CaseRecord:
    """Return the record of a case before it is ingested."""
    return CaseRecord(
        benchmark=benchmark,
        case_id=case_id,
        patient_id=index.patient_id,
        stage="ingest",
        source_sha256=index.source_sha256,
        same_uids=index.same_uids,
    )


def ingest_case(
    base: CaseRecord, index: RawIndex, root: Path, out: Path, named: NamedKinds, *, sizes: VoxelSizes | None = None
) -> CaseRecord:
    """Copy the usable scans, notes and record of one case to neutral names.

    Parameters
    ----------
    base : CaseRecord
        The case, without series.
    index : RawIndex
        The private index of its raw files.
    root : Path
        Folder to which paths of the index are relative.
    out : Path
        Folder to fill: `series/`, `text/`, `identity.json`, and `unused/` and `descriptions.json` for previews.
    named : NamedKinds
        Kinds that a person named, where the headers do not say.
    sizes : VoxelSizes, optional
        Statement that counts in NIfTI headers whose voxel sizes differ.

    Returns
    -------
    CaseRecord
        The case with its series and the fate of every raw file. Quarantined if it has no usable series, or files of several patients.

    Raises
    ------
    DataError
        If a file changed since the listing or is absent.
    ConfigError
        If an override names an unknown sequence, or a series that the case does not have.
    """
    # headers, series and identifying values
    scans = load_raw_files(index, root)
    result = sort_into_series(scans)
    write_identity(out / "identity.json", collect_identity(scans, index.scan_date))
    if unknown := sorted(set(named.overrides) - {series.series_id for series in result.series}):
        message = f"sequence_overrides of case {base.case_id}: it has {len(result.series)} series, and no {unknown[0]}; correct its row in the case table"
        raise ConfigError(message)
    mixed = index.held_back or several_patients([scan for series in result.series for scan in series.scans])
    if mixed:
        fates = _file_fates(len(index.files), {}, dict.fromkeys(range(1, len(index.files) + 1), mixed))
        return replace(
            base,
            state=State.QUARANTINED,
            quarantined_by=base.stage,
            reason=mixed,
            fates=fates,
            raw_files=count_fates(fates),
            raw_series=tuple(SeriesFate(series_id=one.series_id, files=len(one.numbers), reason=mixed) for one in result.series),
        )
    # every series is imported or excluded with a reason
    others = SeriesOfCase(result.series, repeated_series(result.series))
    used: list[Series] = []
    by_file: dict[int, list[str]] = {}  # series that use a file: a multi-frame object or a sidecar may belong to several
    refused: dict[str, Series | str] = {}
    excluded = dict(result.excluded)  # reasons by file number
    for series in result.series:
        try:
            with foreign_input():
                imported = import_series(series, out / "series", named.label_of(series), others, sizes=sizes)
        except DataError as error:
            refused[series.series_id] = str(error)
            excluded.update(dict.fromkeys(series.numbers, f"{series.series_id}: {error}"))
            shutil.rmtree(out / "series" / series.series_id, ignore_errors=True)
        else:
            used.append(imported.series)
            excluded.update(imported.excluded)
            for number in series.numbers:
                if number not in imported.excluded:
                    by_file.setdefault(number, []).append(series.series_id)
    # a copy of an excluded file has the reason of that file
    excluded |= {number: _plain(excluded[first]) for number, first in result.first_copies.items() if first in excluded}
    fates = _file_fates(len(index.files), by_file, excluded)
    case = replace(
        base,
        fates=fates,
        raw_series=series_fates(others, refused | {one.series_id: one for one in used}, excluded, scans, out),
        raw_files=count_fates(fates),
        quality={"files": float(len(index.files)), "files_used": float(len(by_file)), "series": float(len(used))}
        | ({PHANTOM: 1.0} if is_phantom(result.series) else {}),
    )
    if not used:
        # not raised, so that the fate of every file is kept: it shows a person what to correct
        reason = f"no usable series among {len(index.files)} files: {_most_common(excluded)}"
        return replace(case, state=State.QUARANTINED, quarantined_by=base.stage, reason=reason)
    notes, record_path, unread = copy_texts(index, root, out / "text")
    quality = {**case.quality, "texts_unreadable": float(unread)} if unread else case.quality
    return replace(case, series=tuple(used), notes=notes, record=record_path, quality=quality)


def _file_fates(files: int, used: Mapping[int, list[str]], excluded: Mapping[int, str]) -> tuple[FileFate, ...]:
    return tuple(
        FileFate(file=number, fate=USED, reason=", ".join(used[number]))
        if number in used
        else FileFate(file=number, fate="set_aside", reason=excluded[number])
        for number in range(1, files + 1)
    )


def count_fates(fates: Iterable[FileFate]) -> dict[str, int]:
    """Count raw files by fate: `used`, or the reason for which they were excluded.

    Examples
    --------
    >>> count_fates([FileFate(file=1, fate="used", reason="series-01"), FileFate(file=2, fate="set_aside", reason="series-02: 3 of 9 differ")])
    {'3 of 9 differ': 1, 'used': 1}
    """
    counts = Counter(USED if fate.fate == USED else _plain(fate.reason) for fate in fates)
    return dict(sorted(counts.items()))


def _plain(reason: str) -> str:
    """Remove the series id from a reason."""
    return reason.partition(": ")[2] if reason.startswith("series-") else reason


def _most_common(reasons: Mapping[int, str]) -> str:
    """Return the reason that excluded most files, without series ids."""
    plain = [_plain(reason) for reason in reasons.values()]
    return max(sorted(set(plain)), key=plain.count) if plain else "there are none"


def copy_texts(index: RawIndex, root: Path, folder: Path) -> tuple[tuple[str, ...], str, int]:
    """Copy notes and record of a case as UTF-8 under neutral names into `folder`, `text/` of the case.

    Returns the paths of the notes and of the record (empty if there is none), relative to the folder of the case, and the number of
    unreadable texts. DataError if a file changed or is absent.
    """
    folder.mkdir(parents=True, exist_ok=True)
    total, unread = len(index.notes), 0
    for number, note in enumerate(index.notes, start=1):
        unread += not _write_text(root, note, f"note {number} of {total}", folder / f"note-{number:02d}.txt")
    if index.record is not None:
        unread += not _write_text(root, index.record, "the health record", folder / "record.csv")
    notes = tuple(f"text/note-{number:02d}.txt" for number in range(1, total + 1))
    return notes, "text/record.csv" if index.record else "", unread


def _write_text(root: Path, file: RawFile, what: str, target: Path) -> bool:
    """Copy one text; return False if it is unreadable: copied unchanged, so that de-identification counts and withholds it."""
    content = checked_bytes(path_inside(root, file.path, what), file.sha256, what)
    try:
        target.write_text(decode_text(content), encoding="utf-8", newline="\n")
    except UnreadableTextError:
        target.write_bytes(content)
        return False
    return True


def collect_identity(scans: Iterable[RawScan], scan_date: str = "") -> Identity:
    """Collect identifying values from the headers, sidecars and names of all raw files of a case, sorted.

    The first header of every series is read with all nested sequences, the others by keyword. `scan_date` (`YYYYMMDD`) is the date that
    a person gave, for scans whose headers have none.
    """
    values: dict[str, set[str]] = {"names": set(), "places": set(), "numbers": set(), "uids": set()}
    dates: set[str] = {scan_date} - {""}
    seen: set[str] = set()
    for scan in scans:
        if scan.header is None:
            if scan.kind is FileKind.NIFTI:
                values["numbers"] |= _file_tokens(scan)
            elif scan.kind is FileKind.SIDECAR and scan.is_json:
                _read_sidecar(scan.path, values)
            continue
        series = dicom.text(scan.header, "SeriesInstanceUID")
        if series not in seen:
            seen.add(series)
            _walk(scan.header if scan.whole is None else scan.whole, values)  # functional groups name persons too
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


def several_patients(scans: SequenceOf[RawScan]) -> str:
    """Return why scans are not of one patient, by their headers; empty if they may be."""
    headers = [scan.header for scan in scans if scan.header is not None]
    numbers = {"patient id": len(patients_by_id(headers))}
    for keyword, word in (("PatientBirthDate", "birth date"), ("PatientSex", "sex")):
        numbers[word] = len({dicom.text(header, keyword).upper() for header in headers} - {"", "O"})
    for word, number in numbers.items():
        if number > 1:
            return f"files of more than one patient in one case: {number} different entries for the {word}; sort them apart and list the cases again"
    return ""


def is_phantom(series: Iterable[RawSeries]) -> bool:
    """Return whether headers or file names call the scanned object a phantom."""
    for one in series:
        header = one.header
        texts = [stem_of(one.scans[0].path)] if header is None else [dicom.text(header, keyword) for keyword in NAMES_OF_OBJECT]
        if PHANTOM_WORDS.search(plain_words(*texts)):
            return True
    return False


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
    """Collect the header values that a converter wrote into a sidecar; skip an invalid one, whose scan is refused later."""
    try:
        fields = read_sidecar(path)
    except DataError:
        return
    for key, value in fields.items():
        kind = next((kind for kind, keys in (("places", PLACES), ("numbers", NUMBERS), ("uids", UIDS)) if key in keys), "")
        kind = kind or ("names" if PERSON_KEY.search(key) else "")
        for part in value if isinstance(value, list) else [value]:
            if kind and isinstance(part, str | int) and str(part).strip():
                values[kind].add(str(part).strip())


def _file_tokens(scan: RawScan) -> set[str]:
    """Return the parts of a path that look like a patient's number: first word of the file name, name of the folder."""
    return {word for word in (stem_of(scan.path).split("_")[0], scan.path.parent.name) if re.search(r"\d", word)}
