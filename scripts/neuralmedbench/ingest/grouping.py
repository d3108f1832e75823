"""Group raw files and texts of a folder into cases: by header, BIDS name, folder, or a person's `files.csv`."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from neuralmedbench.errors import ConfigError
from neuralmedbench.files import dicom
from neuralmedbench.ingest.bids import applies_to, is_bids, spelling, subject_and_session
from neuralmedbench.ingest.raw_files import FileKind, RawScan, stem_of
from neuralmedbench.ingest.source_files import FILES_TABLE, FileRow, row_of
from neuralmedbench.records.case import NoHead

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

METADATA = "metadata of a BIDS data set"
NO_ID = frozenset({"NONE", "NULL", "NIL", "NA", "NAN", "UNKNOWN", "UNKNOWNID", "ANON", "ANONYM", "ANONYME", "ANONIMO", "ANONYMOUS", "ANONYMIZED",
                   "ANONYMISED", "ANONYMISIERT", "ANONIMIZADO", "ANONYMOUSPATIENT", "ANONPATIENT", "NOID", "NOPATIENTID", "PATIENT", "PATIENTID", "TEST", "REMOVED",
                   "DELETED", "REDACTED", "MASKED", "HIDDEN", "WITHHELD", "NOTAVAILABLE", "DEIDENTIFIED", "DEID", "UNBEKANNT", "INCONNU", "DESCONOCIDO"})  # fmt: skip
"""Letters of PatientID, in capitals, that archives put in place of a removed id: equal values are not one patient."""
FILLER = re.compile(r"(?:0*|X+|9{4,})")
"""Letters and digits of a PatientID that was overwritten; none at all if only signs and blanks are left of it."""
T = TypeVar("T", bound=Hashable)
Key = tuple[str, str]
"""Ids of patient and study."""
NOTE_SUFFIXES = (".txt", ".md")
RECORD_NAME = "record.csv"
STRAY_TEXT = "fits no single case"
NO_PATIENT = "study "
"""Start of the id of a patient whose scans have none: every study is a separate patient."""
HELD_BACK = "one series names several patients"
SEVERAL_PATIENTS = f"{HELD_BACK}: name its case and patient in {FILES_TABLE}, and list the cases again"
ONE_VISIT = "several studies may be one visit (same patient and day, same accession number or frame of reference), and are not joined"
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
    root, subject, session : PurePosixPath or None, str, str
        Its BIDS data set, relative to the source, and its labels there; None and empty outside a data set.
    facts : dict of str to str
        `age` and `sex` in the tables of that data set.
    named : bool
        Whether `files.csv` names the case or the patient of one of its scans.
    held_back : str
        Why it is not used before a person decided; empty if it is used.
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
    session: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    named: bool = False
    held_back: str = ""

    @property
    def folders(self) -> set[Path]:
        """Folders of its scans, without those of sidecars: shared ones may be further up in a data set."""
        return {scan.path.parent for scan in self.scans if scan.kind is not FileKind.SIDECAR}


@dataclass(frozen=True)
class Notice:
    """What a person should know about a folder, in one line, and the cases that it is about.

    `joins`: the cases are, or may be, one case; rows of `files.csv` would say so.
    """

    text: str
    cases: tuple[CaseFiles, ...] = ()
    joins: bool = False


Cases = dict[Key, CaseFiles]


def group_scans(
    scans: list[RawScan], source: Path, table: dict[str, FileRow], roots: set[PurePosixPath], left_out: dict[Path, str]
) -> Cases:
    """Group scans into cases by patient and study; `table` has the rows of `files.csv`. Adds files without a case to `left_out`.

    A PatientID in several spellings within a study is one patient. Cases with parts of one series become one that is held back.
    """
    cases: Cases = {}
    spellings = chosen_spellings(scans)
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
        key = _key(scan, source, row, root, spellings)
        case = cases.setdefault(key, CaseFiles(*key, root=root))
        case.scans.append(scan)
        if scan.header is None and is_bids(stem_of(scan.path)):
            case.subject, case.session = subject_and_session(stem_of(scan.path))
        case.named |= row is not None and bool(row.case or row.patient)
        if row is not None and row.sequence:
            case.sequences[scan.path] = row.sequence
        if row is not None and row.date:
            case.dates.add(row.date)
    for scan in shared:
        if not _inherited(scan, source, roots, list(cases.values())):
            at_root = PurePosixPath(scan.path.parent.relative_to(source).as_posix()) in roots
            left_out[scan.path] = METADATA if at_root else NoHead.WITHOUT_SCAN
    return _hold_back(cases)


def _hold_back(cases: Cases) -> Cases:
    """Make one case, which is held back, of cases with parts of one series; what `files.csv` names is a person's decision."""
    for keys in divided_series({key: case.scans for key, case in cases.items() if not case.named}):
        first, *others = sorted(keys, key=lambda key: (key[0].startswith(NO_PATIENT), -len(cases[key].scans), key))
        cases[first].scans += [scan for key in others for scan in cases.pop(key).scans]
        cases[first].held_back = SEVERAL_PATIENTS
    for case in cases.values():
        if not case.named and names_differ(case.scans):
            case.held_back = SEVERAL_PATIENTS
    return cases


def patient_notices(cases: Sequence[CaseFiles]) -> list[Notice]:
    """Return what a person should know about cases that are held back, and about studies that may be one visit."""
    held = [Notice(f"{HELD_BACK}: 1 case of {len(case.scans)} files is held back", (case,), joins=True) for case in cases if case.held_back]
    studies = {place: (spelling(case.patient), case.scans) for place, case in enumerate(cases) if not (case.named or case.held_back)}
    return held + [Notice(ONE_VISIT, tuple(cases[place] for place in sorted(places)), joins=True) for places in visits(studies)]


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


def _key(scan: RawScan, source: Path, row: FileRow | None, root: PurePosixPath | None, spellings: Mapping[str, str]) -> tuple[str, str]:
    """Return the ids of patient and study of a scan or of its sidecar; `spellings` has the chosen one of PatientIDs with several."""
    header = scan.header
    place = scan.path.parent.relative_to(source).as_posix()
    name = stem_of(scan.path)
    if header is not None:
        study = dicom.text(header, "StudyInstanceUID")
        study = study if names_one_patient(study) else f"folder {place}"
        patient = dicom.text(header, "PatientID")
        patient = spellings.get(patient, patient)
        # a study without a patient id is a separate patient: two are never merged
        patient = patient if names_one_patient(patient) else f"{NO_PATIENT}{study}"
    elif is_bids(name):
        # the same label in two data sets means two persons
        above = "" if root is None or root == PurePosixPath() else f"{root}/"
        subject, session = subject_and_session(name)
        patient = f"{above}{subject}"
        study = f"{patient}/{session}" if session else patient
    else:
        word = name.split("_")[0]
        patient = study = word if word.startswith("sub-") else f"{place}/{word}"
    if row is not None:
        study = row.case or study
        named = row.patient if names_one_patient(row.patient) else ""
        patient = named or (row.case if header is None and row.case else patient)
    return patient, study


def joining_rows(cases: Sequence[CaseFiles], others: Sequence[CaseFiles], source: Path) -> list[tuple[str, str, str]]:
    """Return rows of `files.csv` (path, case, patient) that make one case of some cases, which has the id of the first of them.

    A row names a folder where no scan of `others` is in or below it. The patient is empty where the scans have one PatientID.
    """
    taken = {folder for case in others for scan in case.scans for folder in scan.path.parents} | {source}
    places = {scan.path if scan.path.parent in taken else scan.path.parent for case in cases for scan in case.scans}
    several = cases[0].held_back or len({case.patient for case in cases}) > 1
    patient = cases[0].patient if several else ""
    return [(path.relative_to(source).as_posix(), cases[0].study, patient) for path in sorted(places)]


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


def chosen_spellings(scans: Iterable[RawScan]) -> dict[str, str]:
    """Return the PatientIDs that differ only in spelling within a study, each with the spelling that most files have."""
    files: Counter[str] = Counter()
    ids_of_study: dict[tuple[str, str], set[str]] = defaultdict(set)
    for scan in scans:
        if scan.header is not None and names_one_patient(written := dicom.text(scan.header, "PatientID")):
            files[written] += 1
            ids_of_study[dicom.text(scan.header, "StudyInstanceUID"), spelling(written)].add(written)
    groups = _joined(ids for (study, _), ids in ids_of_study.items() if len(ids) > 1 and names_one_patient(study))
    return {written: min(ids, key=lambda one: (-files[one], one)) for ids in groups for written in ids}


def divided_series(scans: Mapping[Key, Sequence[RawScan]]) -> list[set[Key]]:
    """Return the keys (patient and study) of cases of several patients that hold parts of one series; `scans` has those of each case.

    Copies of a whole series are no parts of one: their files have the same SOPInstanceUIDs.
    """
    parts: dict[str, dict[Key, set[str]]] = defaultdict(lambda: defaultdict(set))
    for key, scans_of_case in scans.items():
        for scan in scans_of_case:
            if scan.header is not None and names_one_patient(series := dicom.text(scan.header, "SeriesInstanceUID")):
                parts[series][key].add(dicom.text(scan.header, "SOPInstanceUID"))
    shared = [part for part in parts.values() if len({patient for patient, _ in part}) > 1]
    return _joined(set(part) for part in shared if len(set(map(frozenset, part.values()))) > 1)


def names_differ(scans: Iterable[RawScan]) -> bool:
    """Return whether files of one series without a PatientID name several patients."""
    names: dict[str, set[str]] = defaultdict(set)
    for scan in scans:
        if scan.header is None or names_one_patient(dicom.text(scan.header, "PatientID")):
            continue
        name = dicom.text(scan.header, "PatientName")
        if names_one_patient(name):
            names[dicom.text(scan.header, "SeriesInstanceUID")].add(re.sub(r"[\W_]", "", spelling(name)))
    return any(len(spelled) > 1 for spelled in names.values())


def patients_by_id(headers: Iterable[Dataset]) -> list[set[str]]:
    """Return the spellings of PatientID in one case by patient: those of one series are one, as a person said in `files.csv`."""
    ids: dict[str, set[str]] = defaultdict(set)
    for header in headers:
        if written := spelling(dicom.text(header, "PatientID")):
            series = dicom.text(header, "SeriesInstanceUID")
            ids[series or f"no series {written}"].add(written)
    return _joined(ids.values())


def visits(studies: Mapping[T, tuple[str, Sequence[RawScan]]]) -> list[set[T]]:
    """Return the keys of studies that may be one visit: of one patient and day, with one accession number or frame of reference.

    `studies` has the patient and the scans of each.
    """
    keys: dict[tuple[str, ...], set[T]] = defaultdict(set)
    for key, (patient, scans) in studies.items():
        for header in (scan.header for scan in scans if scan.header is not None):
            day = dicom.text(header, "StudyDate")
            for keyword in ("AccessionNumber", "FrameOfReferenceUID") if day else ():
                if names_one_patient(value := dicom.text(header, keyword)):
                    keys[patient, day, keyword, value].add(key)
    return _joined(group for group in keys.values() if len(group) > 1)


def _joined(groups: Iterable[set[T]]) -> list[set[T]]:
    """Join sets that have a member in common."""
    joined: list[set[T]] = []
    for group in groups:
        touched = [other for other in joined if other & group]
        joined = [other for other in joined if not other & group] + [group.union(*touched)]
    return joined
