"""Find the cases in a folder of pictures of one's own: `files.csv` says whose each picture is, because no picture does."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.plain_pictures import MAX_BYTES, picture_head
from neuralmedbench.ingest.files_table import FILES_COLUMNS, FILES_TABLE, FileRow, read_files_table, row_of
from neuralmedbench.ingest.grouping import NO_ID, NOTE_SUFFIXES, RECORD_NAME, STRAY_TEXT, UNREADABLE, CaseFiles, give_text, is_readable
from neuralmedbench.ingest.listing import NOT_DATA, FolderContents
from neuralmedbench.ingest.raw_files import FileKind, RawScan
from neuralmedbench.ingest.source_files import files_below

NO_CASE = f"a picture without a case: name it, or its folder, in {FILES_TABLE} (column case)"
IS_DICOM = "DICOM: bring scans as `kind: scans`"
TOO_LARGE = f"a file of more than {MAX_BYTES // 10**6} MB"
IN_TWO_CASES = "the same picture (equal bytes) stands in two cases: keep it in one"
TWICE = "the same picture (equal bytes) stands in its case already"


def find_picture_cases(source: Path) -> FolderContents:
    """Walk a folder of any nesting and group its pictures, notes and records into cases.

    Parameters
    ----------
    source : Path
        The folder. `files.csv` in it (columns of `files_table.FILES_COLUMNS`; a path may be a folder, the nearest row wins) says of each picture the
        case and, where known, patient, sequence, plane and day; nothing is guessed from names. Notes and records belong to cases as in
        `listing.find_cases`.

    Returns
    -------
    Found
        Cases in the order of their patients and names, their pictures in the order of their paths; no file is dropped without being named.

    Raises
    ------
    ConfigError
        If the folder is absent, `files.csv` is absent or wrong, no picture has a case, a case has several patients, or a record fits no
        case or several.
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
    unread = {path for path in texts if not is_readable(path.read_bytes())}
    left_out |= dict.fromkeys(unread, UNREADABLE)
    left_out |= {
        path: STRAY_TEXT for path in texts if path not in unread and not give_text(path, source, kept_cases, row_of(table, source, path))
    }
    return FolderContents(kept_cases, left_out)


def _why_not(path: Path, row: FileRow | None) -> str:
    """Why a file is no picture of a case; empty when it is one."""
    if path.stat().st_size > MAX_BYTES:
        return TOO_LARGE
    content = path.read_bytes()
    if dicom.looks_like_dicom(content[: dicom.PREAMBLE + 4]):
        return IS_DICOM
    try:
        picture_head(content)
    except DataError as error:
        return str(error)
    return "" if row is not None and row.case else NO_CASE


def _add(cases: dict[tuple[str, str], CaseFiles], picture: RawScan, row: FileRow) -> None:
    patient = row.case if row.patient.upper() in NO_ID else row.patient
    case = cases.setdefault((patient, row.case), CaseFiles(patient, row.case))
    case.scans.append(picture)
    case.shows[picture.path] = (row.sequence, row.plane)
    case.dates |= {row.date} - {""}


def _leave_copies_out(cases: dict[tuple[str, str], CaseFiles]) -> dict[Path, str]:
    """Take pictures out that stand in several cases, since nobody can tell whose they are, and all but the first of those that stand twice in one."""
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
