"""Find the cases in a folder of one's own: which files belong together, under which pseudonym."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from neuralmedbench.errors import ConfigError
from neuralmedbench.ingest.raw_series import GRADIENT_SUFFIXES, RawScan, is_nifti, read_raw_file, sort_into_series, stem_of
from neuralmedbench.io import dicom
from neuralmedbench.io.cases import KINDS
from neuralmedbench.io.files import sha256_of
from neuralmedbench.io.raw_index import RawFile, RawIndex

NOTE_SUFFIXES = (".txt", ".md")
RECORD_NAME = "record.csv"
FILES_TABLE = "files.csv"
FILES_COLUMNS = ("path", "case", "patient", "sequence")
NOT_DATA = frozenset({FILES_TABLE, "answers.csv", "DICOMDIR", "images.csv"})

STRAY_TEXT, NO_SCAN = "texts left out because they fit no single case", "files left out because they are no readable scan"
LEFT_OUT = (STRAY_TEXT, NO_SCAN)

Pseudonyms = Callable[[str, str], tuple[str, str]]
"""Takes a patient's id and a study's id, gives patient and case pseudonym."""


@dataclass
class FoundCase:
    """One case as it was found; all of it is private.

    Attributes
    ----------
    patient, study : str
        What the pseudonyms are made of.
    scans, notes : list of RawScan or Path
        Its files.
    record : Path or None
        Its health record.
    sequences : dict of Path to str
        Kinds of scan that `files.csv` gives, by file.
    """

    patient: str
    study: str
    scans: list[RawScan] = field(default_factory=list)
    notes: list[Path] = field(default_factory=list)
    record: Path | None = None
    sequences: dict[Path, str] = field(default_factory=dict)

    @property
    def folders(self) -> set[Path]:
        """Folders that hold its scans."""
        return {scan.path.parent for scan in self.scans}


@dataclass(frozen=True)
class ListedCase:
    """One case as the private zone keeps it: index, overrides of kinds of scan, and where a person finds it."""

    index: RawIndex
    overrides: dict[str, str]
    place: str


class Found(NamedTuple):
    """What a folder holds: cases, and the files that are part of none of them, with the reason (one of `LEFT_OUT`)."""

    cases: list[FoundCase]
    left_out: dict[Path, str]


class Listing(NamedTuple):
    """The cases of a folder by case id, and the files that are part of none by their place (see `Found`)."""

    cases: list[ListedCase]
    left_out: dict[str, str]


@dataclass(frozen=True)
class Told:
    """One row of `files.csv`: what a person says about a file or a folder."""

    case: str
    patient: str
    sequence: str


def find_cases(source: Path) -> Found:
    """Walk a folder of any nesting and group its scans, notes and records into cases.

    Parameters
    ----------
    source : Path
        The folder. DICOM files are grouped by PatientID and StudyInstanceUID; NIfTI files by folder and the first word of their name
        before `_`; notes (`*.txt`, `*.md`) and `record.csv` belong to the case whose name (first word of the scans' names, or folder name)
        is the first word of theirs, else whose scans lie in the same folder, below it, in a folder of the same name, or below the nearest
        folder above them that holds any.
        `files.csv` in the folder (columns path, case, patient, sequence; a path may be a folder) overrides all of this.

    Returns
    -------
    Found
        Cases in the order of their patients and studies; no file is dropped without being named.

    Raises
    ------
    ConfigError
        If the folder is absent or holds no scan, `files.csv` is wrong, or a record fits no case or several.
    """
    if not source.is_dir():
        message = "the folder of `source` is not there; check the benchmark's yaml"
        raise ConfigError(message)
    told = _read_told(source)
    cases: dict[tuple[str, str], FoundCase] = {}
    texts: list[Path] = []
    left_out: dict[Path, str] = {}
    for number, path in enumerate(sorted(path for path in source.rglob("*") if path.is_file()), start=1):
        if path.name in NOT_DATA or path.name.startswith("."):
            continue
        if path.suffix.lower() in NOTE_SUFFIXES or path.name == RECORD_NAME:
            texts.append(path)
            continue
        scan = read_raw_file(number, path)
        key = _key(scan, source, _told_of(told, source, path))
        if key is None:
            left_out[path] = NO_SCAN
            continue
        case = cases.setdefault(key, FoundCase(*key))
        case.scans.append(scan)
        sequence = _told_of(told, source, path)
        if sequence and sequence.sequence:
            case.sequences[path] = sequence.sequence
    if not cases:
        message = "no DICOM or NIfTI file was found below `source`; check the benchmark's yaml"
        raise ConfigError(message)
    found = [cases[key] for key in sorted(cases)]
    left_out |= {path: STRAY_TEXT for path in texts if not _give_text(path, source, found, _told_of(told, source, path))}
    return Found(found, left_out)


def _read_told(source: Path) -> dict[str, Told]:
    path = source / FILES_TABLE
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (csv.Error, UnicodeDecodeError):
        message = f"{FILES_TABLE}: not a CSV file in UTF-8; save it as CSV UTF-8"
        raise ConfigError(message) from None
    columns = set(reader.fieldnames or ())
    if "path" not in columns or columns - {*FILES_COLUMNS} or any(None in row for row in rows):
        message = f"{FILES_TABLE}: expected the columns {', '.join(FILES_COLUMNS)} (all but path optional), separated by commas"
        raise ConfigError(message)
    told: dict[str, Told] = {}
    for number, row in enumerate(rows, start=2):
        name = (row["path"] or "").strip().strip("/")
        if not name or not (source / name).exists():
            message = f"{FILES_TABLE}, line {number}: the path is not in the folder; paths are relative to it"
            raise ConfigError(message)
        said = Told(*((row.get(column) or "").strip() for column in FILES_COLUMNS[1:]))
        if said.sequence and said.sequence not in KINDS:
            message = f"{FILES_TABLE}, line {number}, column sequence: expected one of {', '.join(KINDS)}, or nothing"
            raise ConfigError(message)
        told[PurePosixPath(name).as_posix()] = said
    return told


def _told_of(told: dict[str, Told], source: Path, path: Path) -> Told | None:
    """Look up what `files.csv` says about a file: its own row, else that of the nearest folder above it."""
    relative = path.relative_to(source)
    return next((told[place.as_posix()] for place in (relative, *relative.parents) if place.as_posix() in told), None)


def _key(scan: RawScan, source: Path, told: Told | None) -> tuple[str, str] | None:
    """Patient and study of a file; None when it is no scan."""
    header = scan.header
    if header is not None:
        patient, study = dicom.text(header, "PatientID"), dicom.text(header, "StudyInstanceUID")
        patient = patient or f"study {study}"  # a study without a patient is a patient of its own: two are never merged
    elif is_nifti(scan.path) or scan.path.name.endswith(GRADIENT_SUFFIXES):
        word = stem_of(scan.path).split("_")[0]
        patient = study = word if word.startswith("sub-") else f"{scan.path.parent.relative_to(source).as_posix()}/{word}"
    else:
        return None
    if told is not None:
        study = told.case or study
        patient = told.patient or (told.case if header is None and told.case else patient)
    return patient, study


def _give_text(path: Path, source: Path, cases: list[FoundCase], told: Told | None) -> bool:
    """Hand a note or a record to its case; False for a text that has none."""
    owners = [case for case in cases if told is not None and told.case and case.study == told.case]
    if not owners:
        word = path.stem.split("_")[0]
        named = [
            case
            for case in cases
            if word in {stem_of(scan.path).split("_")[0] for scan in case.scans if scan.header is None} | {case.patient}
        ]
        inside = [case for case in cases if path.parent in case.folders] or _below(path.parent, source, cases)
        by_folder = [case for case in cases if path.parent.name in {folder.name for folder in case.folders} | {case.patient, case.study}]
        near = next((found for folder in path.parent.parents if source in folder.parents and (found := _below(folder, source, cases))), [])
        owners = next((choice for choice in ([case for case in inside if case in named], named, inside, by_folder, near) if choice), [])
    if len(owners) != 1 and path.name != RECORD_NAME:
        return False
    if len(owners) != 1:
        many = "fits several cases" if owners else "fits no case"
        message = f"a record {many}: put it into the folder of the scans of one case, or name its case in {FILES_TABLE} (column case)"
        raise ConfigError(message)
    case = owners[0]
    if path.name != RECORD_NAME:
        case.notes.append(path)
    elif case.record is None:
        case.record = path
    else:
        message = f"a case has two files {RECORD_NAME}: keep one, or name their cases in {FILES_TABLE}"
        raise ConfigError(message)
    return True


def _below(folder: Path, source: Path, cases: list[FoundCase]) -> list[FoundCase]:
    """Cases with scans in or below a folder; below `source` itself lie all of them, which tells nothing."""
    return [case for case in cases if folder != source and any(folder in (place, *place.parents) for place in case.folders)]


def list_cases(source: Path, pseudonyms: Pseudonyms) -> Listing:
    """Give the cases of a folder pseudonyms and an index of their files.

    Parameters
    ----------
    source : Path
        The folder.
    pseudonyms : callable
        Makes patient and case pseudonym out of a patient's and a study's id.

    Returns
    -------
    Listing
        Cases by case id.

    Raises
    ------
    ConfigError
        As in `find_cases`, and if two cases get one id (a collision of pseudonyms: take another key).
    """
    listed: dict[str, ListedCase] = {}
    found = find_cases(source)
    for case in found.cases:
        patient_id, case_id = pseudonyms(case.patient, case.study)
        if case_id in listed:
            message = f"two cases get the id {case_id}: a collision of pseudonyms; take another key (--new-key)"
            raise ConfigError(message)
        index = RawIndex(
            case_id=case_id,
            patient_id=patient_id,
            files=_files(scan.path for scan in case.scans),
            notes=_files(case.notes),
            record=_files([case.record])[0] if case.record else None,
        )
        listed[case_id] = ListedCase(index, _overrides(case), _place(case, source))
    left_out = {path.relative_to(source).as_posix(): reason for path, reason in found.left_out.items()}
    return Listing([listed[case_id] for case_id in sorted(listed)], left_out)


def _files(paths: Iterable[Path]) -> tuple[RawFile, ...]:
    return tuple(RawFile(path=path.resolve().as_posix(), sha256=sha256_of(path)) for path in sorted(paths))


def _overrides(case: FoundCase) -> dict[str, str]:
    """Kinds of scan by series id; the ids are those that ingest gives, because both sort the same files the same way."""
    if not case.sequences:
        return {}
    paths = sorted(case.scans, key=lambda scan: scan.path)
    series = sort_into_series(RawScan(number, scan.path, scan.header) for number, scan in enumerate(paths, start=1)).series
    return {one.series_id: case.sequences[one.scans[0].path] for one in series if one.scans[0].path in case.sequences}


def _place(case: FoundCase, source: Path) -> str:
    """Where a person finds the case: its folders, and for NIfTI the first word of its files."""
    places: dict[str, set[str]] = defaultdict(set)
    for scan in case.scans:
        places[scan.path.parent.relative_to(source).as_posix()].add("" if scan.header is not None else stem_of(scan.path).split("_")[0])
    return " | ".join(f"{folder}/{word}" if word else folder for folder in sorted(places) for word in sorted(places[folder]))


def summarise(listing: Listing) -> dict[str, int]:
    """Count what identifies nobody: cases, patients, files, notes, records, overrides, files that belong to no case."""
    rows = listing.cases
    return {
        "cases": len(rows),
        "patients": len({row.index.patient_id for row in rows}),
        "files": sum(len(row.index.files) for row in rows),
        "nifti": sum(is_nifti(Path(file.path)) for row in rows for file in row.index.files),
        "notes": sum(len(row.index.notes) for row in rows),
        "records": sum(row.index.record is not None for row in rows),
        "overrides": sum(len(row.overrides) for row in rows),
        **{reason: list(listing.left_out.values()).count(reason) for reason in LEFT_OUT},
    }
