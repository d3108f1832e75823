"""List the cases of a benchmark's source folder, of scans or of pictures: which files belong together, under which pseudonym."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from neuralmedbench.config.benchmark import MappedSequence
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.identity import MIN_SEPARABLE
from neuralmedbench.files.plain_pictures import MAX_BYTES, TOO_LARGE, picture_head
from neuralmedbench.files.raw_folder import RawFile, RawIndex, RawPicture
from neuralmedbench.files.texts import UnreadableTextError, decode_text, is_scanner_text
from neuralmedbench.ingest.bids import MARKER, METADATA_NAME, other_folder, participant_facts
from neuralmedbench.ingest.grouping import (
    METADATA,
    NOTE_SUFFIXES,
    RECORD_NAME,
    STRAY_TEXT,
    UNREADABLE,
    CaseFiles,
    Notice,
    assign_text,
    group_scans,
    joining_rows,
    names_one_patient,
    patient_notices,
)
from neuralmedbench.ingest.persons_labels import ListedSeries, listed_series, series_of_case
from neuralmedbench.ingest.raw_files import (
    MAX_TEXT_BYTES,
    NIFTI_SUFFIXES,
    TOO_LONG,
    FileKind,
    RawScan,
    drop_bulk,
    read_raw_file,
    stem_of,
)
from neuralmedbench.ingest.source_files import FILES_COLUMNS, FILES_TABLE, FileRow, files_below, printable_path, read_files_table, row_of

NOT_DATA = frozenset({FILES_TABLE, "answers.csv", "DICOMDIR", "images.csv"})
"""Files that belong to no case."""

ABOUT_FILES = frozenset({"readme", "changes", "changelog", "license", "licence"})
OF_DATA_SET = f"about the files, no note; name its case in {FILES_TABLE} to use it"
SCANNER_TEXT = f"scanner text, not used; name its case in {FILES_TABLE} to use it"
NO_CASE = f"a picture without a case: name it, or its folder, in {FILES_TABLE} (column case)"
IS_DICOM = "DICOM: bring scans as `kind: scans`"
IN_TWO_CASES = "the same picture (equal bytes) is in two cases: keep it in one"
TWICE = "the same picture (equal bytes) is in its case already"
MOST_NAMED = 5
"""Cases named in one line."""
UNIQUE = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID")
"""UIDs that no two patients share."""
Pseudonyms = Callable[[Sequence[tuple[str, str]]], list[tuple[str, str]]]
"""Takes the ids of patient and study of all cases, returns the pseudonyms of patient and case of each."""


@dataclass(frozen=True)
class ListedCase:
    """One case as stored in the private zone: index, sequence overrides, place for people, facts (age, sex) for its record, its series."""

    index: RawIndex
    overrides: dict[str, str]
    place: str
    facts: dict[str, str] = field(default_factory=dict)
    series: tuple[ListedSeries, ...] = ()


class FolderContents(NamedTuple):
    """Cases of a folder, the files that belong to no case, with the reason, and what a person should know."""

    cases: list[CaseFiles]
    left_out: dict[Path, str]
    notices: Sequence[Notice] = ()


class Listing(NamedTuple):
    """Cases of a folder, sorted by case id, and reasons by the path of files that belong to no case.

    `notices`: lines for a person. `joins`: rows of `files.csv`, with paths, that would join cases named in them.
    """

    cases: list[ListedCase]
    left_out: dict[str, str]
    notices: Sequence[str] = ()
    joins: Sequence[tuple[str, str, str]] = ()


def find_cases(source: Path) -> FolderContents:
    """Group the scans, notes and records of a folder of any nesting into cases.

    Parameters
    ----------
    source : Path
        The folder. DICOM files are grouped by PatientID and StudyInstanceUID, NIfTI files with BIDS names by subject and session, others
        by folder and the first word of the name (before `_`). A note (`*.txt`, `*.md`) or `record.csv` belongs to the case named by its
        first word (first word of the scans' names, or folder name), else to the case with scans in the same folder, below it, in a folder
        of the same name, or below the nearest parent folder with scans. `files.csv` in the folder (`source_files.FILES_COLUMNS`; a path
        may be a folder) overrides all of this.

    Returns
    -------
    FolderContents
        Cases, sorted by patient and study; every other file with the reason for which it is left out.

    Raises
    ------
    ConfigError
        If the folder is absent or has no scan, `files.csv` is invalid, or a record belongs to no case or to several.
    """
    if not source.is_dir():
        message = "the folder of `source` is not there; check the benchmark's yaml"
        raise ConfigError(message)
    # sort the files into scans, texts and the rest
    table = read_files_table(source)
    files, left_out = files_below(source)
    roots = {PurePosixPath(path.parent.relative_to(source).as_posix()) for path in files if path.name == MARKER}
    texts: list[Path] = []
    scans: list[RawScan] = []
    shared: dict[Any, Any] = {}
    for number, path in enumerate(files, start=1):
        place = PurePosixPath(path.relative_to(source).as_posix())
        if path.name in NOT_DATA:
            continue
        is_metadata = METADATA_NAME.fullmatch(path.name) or (place.parent in roots and path.suffix == ".tsv")
        if reason := other_folder(place, roots) or (METADATA if is_metadata else ""):
            left_out[path] = reason
        elif (path.suffix.lower() in NOTE_SUFFIXES or path.name == RECORD_NAME) and not _is_dicom(path):
            if reason := _why_no_text(path, table.get(place.as_posix())):
                left_out[path] = reason
            else:
                texts.append(path)
        else:
            scan = read_raw_file(number, path)
            drop_bulk(scan, shared)
            scans.append(scan)
    # scans make the cases; texts and the facts of a BIDS data set are added to them
    cases = group_scans(scans, source, table, roots, left_out)
    if not cases:
        message = "no DICOM or NIfTI file was found below `source`; check the benchmark's yaml"
        raise ConfigError(message)
    ordered = [cases[key] for key in sorted(cases)]
    left_out |= {path: STRAY_TEXT for path in texts if not assign_text(path, source, ordered, row_of(table, source, path))}
    notices = patient_notices(ordered)
    for root in sorted(roots):
        of_root = [case for case in ordered if case.root == root and case.subject]
        facts, placed = participant_facts(source / root, [(case.subject, case.session) for case in of_root])
        for case, known in zip(of_root, facts, strict=True):
            case.facts = known
        notices += [Notice(text, tuple(of_root[place] for place in places)) for text, places in placed]
    return FolderContents(ordered, left_out, notices)


def _why_no_text(path: Path, row: FileRow | None) -> str:
    """Return why a file is neither a note nor a record; empty if it is one. A row of its own with a case makes it one."""
    if path.stat().st_size > MAX_TEXT_BYTES:
        return TOO_LONG
    try:
        text = decode_text(path.read_bytes())
    except UnreadableTextError:
        return UNREADABLE
    if path.name == RECORD_NAME or (row is not None and row.case):
        return ""
    if path.stem.casefold() in ABOUT_FILES:
        return OF_DATA_SET
    return SCANNER_TEXT if is_scanner_text(text) else ""


def _is_dicom(path: Path) -> bool:
    """Return whether a file named like a text is DICOM."""
    with path.open("rb") as file:
        return dicom.looks_like_dicom(file.read(dicom.PREAMBLE + 4))


def find_picture_cases(source: Path) -> FolderContents:
    """Group the pictures, notes and records of a folder of any nesting into cases.

    Parameters
    ----------
    source : Path
        The folder. `files.csv` in it (`source_files.FILES_COLUMNS`; a path may be a folder, the nearest row counts) names the case of each
        picture and, where known, patient, sequence, plane and date; names of pictures are not interpreted. Notes and records are assigned
        as in `find_cases`.

    Returns
    -------
    FolderContents
        Cases, sorted by patient and name, with pictures sorted by path; every other file with the reason for which it is left out.

    Raises
    ------
    ConfigError
        If the folder is absent, `files.csv` is absent or invalid, no picture has a case, a case has several patients, or a record belongs
        to no case or to several.
    """
    if not source.is_dir():
        message = "the folder of `source` is not there; check the benchmark's yaml"
        raise ConfigError(message)
    table = read_files_table(source)
    if not table:
        message = f"{FILES_TABLE} is not there or has no row: pictures need it in the folder of `source`, with the columns {', '.join(FILES_COLUMNS)}"
        raise ConfigError(message)
    files, left_out = files_below(source)
    texts: list[Path] = []
    cases: dict[tuple[str, str], CaseFiles] = {}
    for number, path in enumerate(files, start=1):
        if path.name in NOT_DATA:
            continue
        if path.suffix.lower() in NOTE_SUFFIXES or path.name == RECORD_NAME:
            texts.append(path)
        elif reason := _why_not(path, row := row_of(table, source, path)):
            left_out[path] = reason
        elif row is not None:
            _add(cases, RawScan(number, path, kind=FileKind.PICTURE), row)
    left_out |= _leave_copies_out(cases)
    kept_cases = [cases[key] for key in sorted(cases) if cases[key].scans]
    if not kept_cases:
        why = Counter(left_out.values()).most_common(1)
        hint = f"; most of the {len(left_out)} files that were left out: {why[0][0]}" if why else ""
        message = f"no picture with a case was found below `source`{hint}"
        raise ConfigError(message)
    _check_patients(kept_cases)
    rows = {path: table.get(path.relative_to(source).as_posix()) for path in texts}
    unread = {path: reason for path in texts if (reason := _why_no_text(path, rows[path]))}
    left_out |= unread
    left_out |= {
        path: STRAY_TEXT for path in texts if path not in unread and not assign_text(path, source, kept_cases, row_of(table, source, path))
    }
    return FolderContents(kept_cases, left_out)


def _why_not(path: Path, row: FileRow | None) -> str:
    """Return why a file is not a picture of a case; empty if it is one."""
    if path.stat().st_size > MAX_BYTES:
        return TOO_LARGE
    content = path.read_bytes()
    if dicom.looks_like_dicom(content):
        return IS_DICOM
    try:
        picture_head(content)
    except DataError as error:
        return str(error)
    return "" if row is not None and row.case else NO_CASE


def _add(cases: dict[tuple[str, str], CaseFiles], picture: RawScan, row: FileRow) -> None:
    patient = row.patient if names_one_patient(row.patient) else row.case
    case = cases.setdefault((patient, row.case), CaseFiles(patient, row.case))
    case.scans.append(picture)
    case.shows[picture.path] = (row.sequence, row.plane)
    case.dates |= {row.date} - {""}


def _leave_copies_out(cases: dict[tuple[str, str], CaseFiles]) -> dict[Path, str]:
    """Remove pictures that are in several cases, whose owner is unknown, and repeated pictures within a case but the first."""
    left_out: dict[Path, str] = {}
    owners: dict[str, list[tuple[CaseFiles, RawScan]]] = defaultdict(list)
    for case in cases.values():
        for scan in case.scans:
            owners[sha256_of(scan.path)].append((case, scan))
    for same in owners.values():
        several = len({id(case) for case, _ in same}) > 1
        for case, scan in same if several else same[1:]:
            case.scans.remove(scan)
            left_out[scan.path] = IN_TWO_CASES if several else TWICE
    return left_out


def _check_patients(cases: list[CaseFiles]) -> None:
    names = Counter(case.study for case in cases)
    if several := sum(number > 1 for number in names.values()):
        message = (
            f"{FILES_TABLE}: {several} cases have several patients each; give every row of a case the same patient, or make two cases of it"
        )
        raise ConfigError(message)


def list_cases(
    source: Path,
    pseudonyms: Pseudonyms,
    find: Callable[[Path], FolderContents] = find_cases,
    mapping: Sequence[MappedSequence] | None = None,
) -> Listing:
    """Assign pseudonyms to the cases of a folder, and index their files.

    Parameters
    ----------
    source : Path
        The folder.
    pseudonyms : callable
        Returns the pseudonyms of patient and case for the ids of patient and study of each case.
    find : callable
        `find_cases`, or `find_picture_cases` for a folder of pictures.
    mapping : sequence of MappedSequence, optional
        `sequence_map` of the benchmark; with it, even an empty one, the series of each case are listed.

    Raises
    ------
    ConfigError
        As `find`, and if two cases get the same id (a collision of pseudonyms: use another key).
    """
    listed: dict[str, ListedCase] = {}
    uids: dict[str, list[str]] = defaultdict(list)
    contents = find(source)
    names = pseudonyms([(case.patient, case.study) for case in contents.cases])
    ids: dict[int, str] = {}
    for case, (patient_id, case_id) in zip(contents.cases, names, strict=True):
        ids[id(case)] = case_id
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
            held_back=case.held_back,
        )
        for uid in {dicom.text(scan.header, name) for scan in case.scans if scan.header is not None for name in UNIQUE} - {""}:
            uids[uid].append(case_id)
        listed[case_id] = ListedCase(
            index,
            _overrides(case),
            _place(case, source),
            {} if case.record else case.facts,
            tuple(listed_series(one, mapping) for one in series_of_case(case)) if mapping is not None else (),
        )
        case.scans = [replace(scan, header=None) for scan in case.scans]
    for case_id, others in _same_uids(uids, listed).items():
        listed[case_id] = replace(listed[case_id], index=replace(listed[case_id].index, same_uids=others))
    left_out = {printable_path(path.relative_to(source)): reason for path, reason in sorted(contents.left_out.items())}
    notices = [_line(notice, [ids[id(case)] for case in notice.cases]) for notice in contents.notices]
    joins: list[tuple[str, str, str]] = []
    for notice in contents.notices:
        if notice.joins:
            joined = set(map(id, notice.cases))
            apart = [case for case in contents.cases if id(case) not in joined]
            joins += joining_rows(notice.cases, apart, source)
    return Listing([listed[case_id] for case_id in sorted(listed)], left_out, notices, joins)


def _line(notice: Notice, cases: Sequence[str]) -> str:
    more = f" and {len(cases) - MOST_NAMED} more" if len(cases) > MOST_NAMED else ""
    return f"{notice.text}: {', '.join(cases[:MOST_NAMED])}{more}" if cases else notice.text


def _same_uids(uids: Mapping[str, list[str]], listed: Mapping[str, ListedCase]) -> dict[str, tuple[str, ...]]:
    """Return, by case, cases of other patients that share a UID with it, for each UID the first; `uids` has the cases of each UID."""
    found: dict[str, set[str]] = defaultdict(set)
    for cases in uids.values():
        firsts = {listed[case].index.patient_id: case for case in reversed(cases)}
        for case in cases if len(firsts) > 1 else ():
            found[case].add(next(other for patient, other in firsts.items() if patient != listed[case].index.patient_id))
    return {case: tuple(sorted(others)) for case, others in found.items()}


def same_uids_notice(listing: Listing) -> str:
    """Return the cases that share UIDs with another patient's, in one line; empty if there are none."""
    doubles = [row.index for row in listing.cases if row.index.same_uids]
    if not doubles:
        return ""
    return (
        f"{len(doubles)} cases have the same UIDs as a case of another patient (first: {doubles[0].case_id} and {doubles[0].same_uids[0]}): one scan"
        " under two names, or an export that numbers every patient alike; all are kept, compare their sheets"
    )


def _files(paths: Iterable[Path]) -> tuple[RawFile, ...]:
    # links are not resolved: the name of the target (in git-annex) would lose the suffix and the words of a NIfTI file
    return tuple(RawFile(path=Path(os.path.abspath(path)).as_posix(), sha256=sha256_of(path)) for path in sorted(paths))


def _picture(path: Path, case: CaseFiles) -> RawPicture:
    sequence, plane = case.shows[path]
    return RawPicture(path=Path(os.path.abspath(path)).as_posix(), sha256=sha256_of(path), sequence=sequence, plane=plane)


def _words(case: CaseFiles, source: Path) -> tuple[str, ...]:
    """Return the names of patient and case in a folder of pictures, and words with digits in its paths: pictures have no headers."""
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
    """Return sequences by series id; ingest assigns the same ids, because it sorts the same files in the same way."""
    if not case.sequences:
        return {}
    return {one.series_id: case.sequences[one.scans[0].path] for one in series_of_case(case) if one.scans[0].path in case.sequences}


def _place(case: CaseFiles, source: Path) -> str:
    """Describe where a case is, for people: folders, and the first words of NIfTI names; of pictures the case's name and all paths."""
    if pictures := [scan.path.relative_to(source) for scan in case.scans if scan.kind is FileKind.PICTURE]:
        return f"{case.study}: {' | '.join(printable_path(path) for path in pictures)}"
    places: dict[str, set[str]] = defaultdict(set)
    for scan in (scan for scan in case.scans if scan.kind is not FileKind.SIDECAR):
        places[scan.path.parent.relative_to(source).as_posix()].add("" if scan.header is not None else stem_of(scan.path).split("_")[0])
    return " | ".join(f"{folder}/{word}" if word else folder for folder in sorted(places) for word in sorted(places[folder]))


def summarise(listing: Listing) -> dict[str, int]:
    """Count, without identifying anyone: cases, patients, files, notes, records, overrides, and left-out files by reason."""
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
