"""Find the cases in a folder of one's own: which files belong together, under which pseudonym."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from neuralmedbench.errors import ConfigError
from neuralmedbench.files import dicom
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.identity import MIN_SEPARABLE
from neuralmedbench.files.raw_index import RawFile, RawIndex, RawPicture
from neuralmedbench.ingest.bids import MARKER, other_folder, read_participants
from neuralmedbench.ingest.files_table import FILES_TABLE, read_files_table, row_of
from neuralmedbench.ingest.grouping import (
    METADATA,
    NOTE_SUFFIXES,
    RECORD_NAME,
    STRAY_TEXT,
    UNREADABLE,
    CaseFiles,
    give_text,
    group_scans,
    is_readable,
)
from neuralmedbench.ingest.raw_files import NIFTI_SUFFIXES, FileKind, RawScan, frames_of, read_raw_file, stem_of
from neuralmedbench.ingest.raw_series import sort_into_series
from neuralmedbench.ingest.source_files import files_below, printable_path

NOT_DATA = frozenset({FILES_TABLE, "answers.csv", "DICOMDIR", "images.csv"})

Pseudonyms = Callable[[str, str], tuple[str, str]]
"""Takes a patient's id and a study's id, gives patient and case pseudonym."""


@dataclass(frozen=True)
class ListedCase:
    """One case as the private zone keeps it: index, overrides of kinds of scan, where a person finds it, facts for its record."""

    index: RawIndex
    overrides: dict[str, str]
    place: str
    facts: dict[str, str] = field(default_factory=dict)


class FolderContents(NamedTuple):
    """What a folder holds: cases, and the files that are part of none of them, with the reason."""

    cases: list[CaseFiles]
    left_out: dict[Path, str]


class Listing(NamedTuple):
    """The cases of a folder by case id, and the files that are part of none by their place (see `FolderContents`)."""

    cases: list[ListedCase]
    left_out: dict[str, str]


def find_cases(source: Path) -> FolderContents:
    """Walk a folder of any nesting and group its scans, notes and records into cases.

    Parameters
    ----------
    source : Path
        The folder. DICOM files are grouped by PatientID and StudyInstanceUID; NIfTI files with BIDS names by subject and session, others by
        folder and the first word of their name before `_`; notes (`*.txt`, `*.md`) and `record.csv` belong to the case whose name (first
        word of the scans' names, or folder name) is the first word of theirs, else whose scans lie in the same folder, below it, in a
        folder of the same name, or below the nearest folder above them that holds any.
        `files.csv` in the folder (columns of `files_table.FILES_COLUMNS`; a path may be a folder) overrides all of this.

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
    table = read_files_table(source)
    files, left_out = files_below(source)
    roots = {PurePosixPath(path.parent.relative_to(source).as_posix()) for path in files if path.name == MARKER}
    texts: list[Path] = []
    scans: list[RawScan] = []
    for number, path in enumerate(files, start=1):
        place = PurePosixPath(path.relative_to(source).as_posix())
        if path.name in NOT_DATA:
            continue
        if reason := other_folder(place, roots) or (METADATA if place.parent in roots and path.suffix == ".tsv" else ""):
            left_out[path] = reason
        elif (path.suffix.lower() in NOTE_SUFFIXES or path.name == RECORD_NAME) and not _is_dicom(path):
            if is_readable(path.read_bytes()):
                texts.append(path)
            else:
                left_out[path] = UNREADABLE
        else:
            scans.append(read_raw_file(number, path))
    cases = group_scans(scans, source, table, roots, left_out)
    if not cases:
        message = "no DICOM or NIfTI file was found below `source`; check the benchmark's yaml"
        raise ConfigError(message)
    found = [cases[key] for key in sorted(cases)]
    left_out |= {path: STRAY_TEXT for path in texts if not give_text(path, source, found, row_of(table, source, path))}
    facts = {root: read_participants(source / root) for root in roots}
    for case in found:
        case.facts = next((facts[root][case.subject] for root in roots if case.subject in facts[root] and root == case.root), {})
    return FolderContents(found, left_out)


def _is_dicom(path: Path) -> bool:
    """Whether a file with a name of a text holds DICOM."""
    with path.open("rb") as file:
        return dicom.looks_like_dicom(file.read(dicom.PREAMBLE + 4))


def list_cases(source: Path, pseudonyms: Pseudonyms, find: Callable[[Path], FolderContents] = find_cases) -> Listing:
    """Give the cases of a folder pseudonyms and an index of their files.

    Parameters
    ----------
    source : Path
        The folder.
    pseudonyms : callable
        Makes patient and case pseudonym out of a patient's and a study's id.
    find : callable
        `find_cases`, or `find_picture_cases` for a folder of pictures.

    Returns
    -------
    Listing
        Cases by case id.

    Raises
    ------
    ConfigError
        As of `find`, and if two cases get one id (a collision of pseudonyms: take another key).
    """
    listed: dict[str, ListedCase] = {}
    found = find(source)
    for case in found.cases:
        patient_id, case_id = pseudonyms(case.patient, case.study)
        if case_id in listed:
            message = f"two cases get the id {case_id}: a collision of pseudonyms; take another key (--new-key)"
            raise ConfigError(message)
        index = RawIndex(
            case_id=case_id,
            patient_id=patient_id,
            files=_files(scan.path for scan in case.scans if scan.kind is not FileKind.PICTURE),
            notes=_files(case.notes),
            record=_files([case.record])[0] if case.record else None,
            scan_date=_scan_date(case),
            pictures=tuple(_picture(scan.path, case) for scan in case.scans if scan.kind is FileKind.PICTURE),
            words=_words(case, source),
        )
        listed[case_id] = ListedCase(index, _overrides(case), _place(case, source), {} if case.record else case.facts)
    left_out = {printable_path(path.relative_to(source)): reason for path, reason in sorted(found.left_out.items())}
    return Listing([listed[case_id] for case_id in sorted(listed)], left_out)


def _files(paths: Iterable[Path]) -> tuple[RawFile, ...]:
    # not resolved: of a link into a store the name would be lost, and with it the kind of a NIfTI file
    return tuple(RawFile(path=Path(os.path.abspath(path)).as_posix(), sha256=sha256_of(path)) for path in sorted(paths))


def _picture(path: Path, case: CaseFiles) -> RawPicture:
    sequence, plane = case.shows[path]
    return RawPicture(path=Path(os.path.abspath(path)).as_posix(), sha256=sha256_of(path), sequence=sequence, plane=plane)


def _words(case: CaseFiles, source: Path) -> tuple[str, ...]:
    """Give what a folder of pictures calls its patient, and the words of its paths: no header says more."""
    paths = [scan.path.relative_to(source).with_suffix("") for scan in case.scans if scan.kind is FileKind.PICTURE]
    words = {word for path in paths for word in re.split(r"[/_ ]", printable_path(path)) if len(re.findall(r"\d", word)) >= MIN_SEPARABLE}
    return tuple(sorted({case.patient, case.study, *words})) if paths else ()


def _scan_date(case: CaseFiles) -> str:
    if len(case.dates) > 1:
        message = (
            f"{FILES_TABLE}, column date: one case has {len(case.dates)} different days; keep one, or make cases of them (column case)"
        )
        raise ConfigError(message)
    return next(iter(case.dates), "").replace("-", "")


def _overrides(case: CaseFiles) -> dict[str, str]:
    """Kinds of scan by series id; the ids are those that ingest gives, because both sort the same files the same way."""
    if not case.sequences:
        return {}
    paths = sorted(case.scans, key=lambda scan: scan.path)
    numbered = (replace(scan, number=number) for number, scan in enumerate(paths, start=1))
    series = sort_into_series(frame for scan in numbered for frame in frames_of(scan)).series
    return {one.series_id: case.sequences[one.scans[0].path] for one in series if one.scans[0].path in case.sequences}


def _place(case: CaseFiles, source: Path) -> str:
    """Where a person finds the case: its folders, and for NIfTI the first word of its files; of pictures its name and each file in order."""
    if pictures := [scan.path.relative_to(source) for scan in case.scans if scan.kind is FileKind.PICTURE]:
        return f"{case.study}: {' | '.join(printable_path(path) for path in pictures)}"
    places: dict[str, set[str]] = defaultdict(set)
    for scan in (scan for scan in case.scans if scan.kind is not FileKind.SIDECAR):
        places[scan.path.parent.relative_to(source).as_posix()].add("" if scan.header is not None else stem_of(scan.path).split("_")[0])
    return " | ".join(f"{folder}/{word}" if word else folder for folder in sorted(places) for word in sorted(places[folder]))


def summarise(listing: Listing) -> dict[str, int]:
    """Count what identifies nobody: cases, patients, files, notes, records, overrides, and files of no case by the reason."""
    rows = listing.cases
    reasons = list(listing.left_out.values())
    files = [file for row in rows for file in row.index.files]
    pictures = sum(len(row.index.pictures) for row in rows)
    nifti = sum(file.path.lower().endswith(NIFTI_SUFFIXES) for file in files)
    return {
        "cases": len(rows),
        "patients": len({row.index.patient_id for row in rows}),
        **({"pictures": pictures} if pictures else {"files": len(files), "nifti": nifti}),
        "notes": sum(len(row.index.notes) for row in rows),
        "records": sum(row.index.record is not None or bool(row.facts) for row in rows),
        "overrides": sum(len(row.overrides) for row in rows),
        "files left out": len(reasons),
        **{f"of them: {reason}": reasons.count(reason) for reason in sorted(set(reasons))},
    }
