"""Group raw files and texts of a folder into cases: by header, BIDS name, folder, or a person's `files.csv`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from neuralmedbench.errors import ConfigError
from neuralmedbench.files import dicom
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.ingest.bids import applies_to, is_bids, subject_and_session
from neuralmedbench.ingest.raw_files import FileKind, RawScan, stem_of
from neuralmedbench.ingest.source_files import FILES_TABLE, FileRow, row_of
from neuralmedbench.records.case import NoHead

METADATA = "metadata of a BIDS data set"
NO_ID = frozenset({"NONE", "NULL", "NIL", "NA", "NAN", "UNKNOWN", "UNKNOWNID", "ANON", "ANONYM", "ANONYME", "ANONIMO", "ANONYMOUS", "ANONYMIZED",
                   "ANONYMISED", "ANONYMISIERT", "ANONIMIZADO", "ANONYMOUSPATIENT", "ANONPATIENT", "NOID", "NOPATIENTID", "PATIENT", "PATIENTID", "TEST", "REMOVED",
                   "DELETED", "REDACTED", "MASKED", "HIDDEN", "WITHHELD", "NOTAVAILABLE", "DEIDENTIFIED", "DEID", "UNBEKANNT", "INCONNU", "DESCONOCIDO"})  # fmt: skip
"""Letters of PatientID, in capitals, that archives put in place of a removed id: equal values are not one patient."""
FILLER = re.compile(r"(?:0*|X+|9{4,})")
"""Letters and digits of a PatientID that was overwritten; none at all if only signs and blanks are left of it."""
NOTE_SUFFIXES = (".txt", ".md")
RECORD_NAME = "record.csv"
STRAY_TEXT = "fits no single case"
UNREADABLE = "not plain text, or in an unknown encoding; save it as text in UTF-8"


@dataclass
class CaseFiles:
    """Files of one case, before pseudonyms; all of it is private.

    Attributes
    ----------
    patient, study : str
        Ids from which the pseudonyms are made.
    scans, notes : list of RawScan or Path
        Its files.
    record : Path or None
        Its health record.
    sequences : dict of Path to str
        Sequences from `files.csv`, by file.
    shows : dict of Path to tuple of str
        Sequence and plane of pictures, from `files.csv`.
    dates : set of str
        Dates of the scan from `files.csv`, `YYYY-MM-DD`.
    root, subject : PurePosixPath or None, str
        Its BIDS data set, relative to the source, and its label there; None and empty outside a data set.
    facts : dict of str to str
        `age` and `sex` of the subject in `participants.tsv` of that data set.
    """

    patient: str
    study: str
    scans: list[RawScan] = field(default_factory=list)
    notes: list[Path] = field(default_factory=list)
    record: Path | None = None
    sequences: dict[Path, str] = field(default_factory=dict)
    shows: dict[Path, tuple[str, str]] = field(default_factory=dict)
    dates: set[str] = field(default_factory=set)
    root: PurePosixPath | None = None
    subject: str = ""
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def folders(self) -> set[Path]:
        """Folders of its scans, without those of sidecars: shared ones may be further up in a data set."""
        return {scan.path.parent for scan in self.scans if scan.kind is not FileKind.SIDECAR}


def group_scans(
    scans: list[RawScan], source: Path, table: dict[str, FileRow], roots: set[PurePosixPath], left_out: dict[Path, str]
) -> dict[tuple[str, str], CaseFiles]:
    """Group scans into cases by patient and study; `table` has the rows of `files.csv`. Adds files without a case to `left_out`."""
    cases: dict[tuple[str, str], CaseFiles] = {}
    shared: list[RawScan] = []  # sidecars without a scan of their name: BIDS lets several scans inherit them
    stems = {scan.path.parent / stem_of(scan.path) for scan in scans if scan.kind is FileKind.NIFTI}
    for scan in scans:
        if scan.kind is FileKind.SIDECAR and scan.path.parent / stem_of(scan.path) not in stems:
            shared.append(scan)
            continue
        if scan.kind is FileKind.OTHER:
            left_out[scan.path] = scan.why_not
            continue
        row = row_of(table, source, scan.path)
        root = _root_of(PurePosixPath(scan.path.relative_to(source).as_posix()), roots)
        key = _key(scan, source, row, root)
        case = cases.setdefault(key, CaseFiles(*key, root=root))
        case.scans.append(scan)
        if scan.header is None and is_bids(stem_of(scan.path)):
            case.subject = subject_and_session(stem_of(scan.path))[0]
        if row is not None and row.sequence:
            case.sequences[scan.path] = row.sequence
        if row is not None and row.date:
            case.dates.add(row.date)
    for scan in shared:
        if not _inherited(scan, source, roots, list(cases.values())):
            at_root = PurePosixPath(scan.path.parent.relative_to(source).as_posix()) in roots
            left_out[scan.path] = METADATA if at_root else NoHead.WITHOUT_SCAN
    return cases


def _inherited(sidecar: RawScan, source: Path, roots: set[PurePosixPath], cases: list[CaseFiles]) -> bool:
    """Add a sidecar of a BIDS data set to every case with a scan, in or below its folder, to which it applies; False if there is none."""
    folder = sidecar.path.parent
    root = _root_of(PurePosixPath(sidecar.path.relative_to(source).as_posix()), roots)
    heirs = [
        case
        for case in cases
        if root is not None
        and case.root == root
        and any(
            scan.kind is FileKind.NIFTI and folder in scan.path.parents and applies_to(stem_of(sidecar.path), stem_of(scan.path))
            for scan in case.scans
        )
    ]
    for case in heirs:
        case.scans.append(sidecar)
    return bool(heirs)


def _root_of(place: PurePosixPath, roots: set[PurePosixPath]) -> PurePosixPath | None:
    return next((folder for folder in place.parents if folder in roots), None)


def _key(scan: RawScan, source: Path, row: FileRow | None, root: PurePosixPath | None) -> tuple[str, str]:
    """Return the ids of patient and study of a scan or of its sidecar."""
    header = scan.header
    place = scan.path.parent.relative_to(source).as_posix()
    name = stem_of(scan.path)
    if header is not None:
        study = dicom.text(header, "StudyInstanceUID")
        study = study if names_one_patient(study) else f"folder {place}"
        patient = dicom.text(header, "PatientID")
        # a study without a patient id is a separate patient: two are never merged
        patient = patient if names_one_patient(patient) else f"study {study}"
    elif is_bids(name):
        # the same label in two data sets means two persons
        above = "" if root is None or root == PurePosixPath() else f"{root}/"
        patient, study = (f"{above}{part}" for part in subject_and_session(name))
    else:
        word = name.split("_")[0]
        patient = study = word if word.startswith("sub-") else f"{place}/{word}"
    if row is not None:
        study = row.case or study
        named = row.patient if names_one_patient(row.patient) else ""
        patient = named or (row.case if header is None and row.case else patient)
    return patient, study


def names_one_patient(text: str) -> bool:
    """Return whether a PatientID is one: not a word such as `ANONYMOUS`, and not a run of signs, blanks, zeros, nines or `X`.

    Examples
    --------
    >>> [names_one_patient(text) for text in ("48213371", "0042-X", "***", " . ", "00-000", "xxxx", "[removed]")]
    [True, True, False, False, False, False, False]
    """
    plain = unicodedata.normalize("NFKD", text).upper()
    letters = "".join(sign for sign in plain if sign.isalnum())
    return letters not in NO_ID and FILLER.fullmatch(letters) is None


def is_readable(content: bytes) -> bool:
    """Return whether some bytes are plain text in a known encoding; names in a garbled text could not be detected."""
    try:
        decode_text(content)
    except UnreadableTextError:
        return False
    return True


def assign_text(path: Path, source: Path, cases: list[CaseFiles], row: FileRow | None) -> bool:
    """Add a note or a record to its case; return False for a note without exactly one case, ConfigError for such a record."""
    owners = [case for case in cases if row is not None and row.case and case.study == row.case]
    if not owners:
        word = path.stem.split("_")[0]
        # by decreasing certainty: name and folder, name, folder, name of the folder, nearest parent folder
        named = [
            case
            for case in cases
            if word in {stem_of(scan.path).split("_")[0] for scan in case.scans if scan.header is None} | {case.patient, case.study}
        ]
        inside = [case for case in cases if path.parent in case.folders] or _below(path.parent, source, cases)
        by_folder = [case for case in cases if path.parent.name in {folder.name for folder in case.folders} | {case.patient, case.study}]
        near = next(
            (nearest for folder in path.parent.parents if source in folder.parents and (nearest := _below(folder, source, cases))), []
        )
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


def _below(folder: Path, source: Path, cases: list[CaseFiles]) -> list[CaseFiles]:
    """List the cases with scans in or below a folder; none for `source` itself, which contains all cases."""
    return [case for case in cases if folder != source and any(folder in (place, *place.parents) for place in case.folders)]
