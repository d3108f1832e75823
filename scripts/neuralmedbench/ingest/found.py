"""Which raw files of a folder belong together: by their headers, by BIDS names, by folders, or by what a person says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from neuralmedbench.files import dicom
from neuralmedbench.ingest.bids import applies_to, is_bids, subject_and_session
from neuralmedbench.ingest.raw_files import Kind, RawScan, stem_of
from neuralmedbench.ingest.told import Told, told_of

NO_SCAN_BESIDE = "gradients or a sidecar without their scan"
METADATA = "metadata of a BIDS data set"
NO_ID = frozenset({"", "0", "00", "000", "0000", "NONE", "NULL", "NA", "N/A", "UNKNOWN", "UNKNOWN ID", "ANON", "ANONYMOUS", "ANONYMIZED",
                   "ANONYMISED", "NOID", "NO ID", "PATIENT", "TEST", "XXXX", "REMOVED", "DEIDENTIFIED", "DE-IDENTIFIED"})  # fmt: skip
"""What stands in PatientID where an archive took the id out: people with it are not one person."""


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
    shows : dict of Path to tuple of str
        What `files.csv` says that a picture shows: sequence and plane.
    dates : set of str
        Days of the scan that `files.csv` gives, `YYYY-MM-DD`.
    root, subject : PurePosixPath or None, str
        The BIDS data set that it is part of, relative to the source, and its label there; empty when it is of none.
    facts : dict of str to str
        What `participants.tsv` of that data set says of the subject: `age`, `sex`.
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
        """Folders that hold its scans; what a data set says about many of them may lie above."""
        return {scan.path.parent for scan in self.scans if scan.kind is not Kind.BESIDE}


def group_scans(
    scans: list[RawScan], source: Path, told: dict[str, Told], roots: set[PurePosixPath], left_out: dict[Path, str]
) -> dict[tuple[str, str], FoundCase]:
    """Group scans into cases by patient and study.

    Parameters
    ----------
    scans : list of RawScan
        Everything below the source that may be a scan or lie beside one.
    source : Path
        The folder.
    told : dict of str to Told
        What `files.csv` says.
    roots : set of PurePosixPath
        Folders of BIDS data sets, relative to the source.
    left_out : dict of Path to str
        Filled with what is no scan, with the reason.
    """
    cases: dict[tuple[str, str], FoundCase] = {}
    above: list[RawScan] = []
    stems = {scan.path.parent / stem_of(scan.path) for scan in scans if scan.kind is Kind.NIFTI}
    for scan in scans:
        if scan.kind is Kind.BESIDE and scan.path.parent / stem_of(scan.path) not in stems:
            above.append(scan)
            continue
        if scan.kind is Kind.OTHER:
            left_out[scan.path] = scan.why_not
            continue
        said = told_of(told, source, scan.path)
        root = _root_of(PurePosixPath(scan.path.relative_to(source).as_posix()), roots)
        key = _key(scan, source, said, root)
        case = cases.setdefault(key, FoundCase(*key, root=root))
        case.scans.append(scan)
        if scan.header is None and is_bids(stem_of(scan.path)):
            case.subject = subject_and_session(stem_of(scan.path))[0]
        if said is not None and said.sequence:
            case.sequences[scan.path] = said.sequence
        if said is not None and said.date:
            case.dates.add(said.date)
    for scan in above:
        if not _inherited(scan, source, roots, list(cases.values())):
            at_root = PurePosixPath(scan.path.parent.relative_to(source).as_posix()) in roots
            left_out[scan.path] = METADATA if at_root else NO_SCAN_BESIDE
    return cases


def _inherited(beside: RawScan, source: Path, roots: set[PurePosixPath], cases: list[FoundCase]) -> bool:
    """Hand a sidecar of a BIDS data set to every case with a scan in or below its folder that it applies to; False when there is none."""
    folder = beside.path.parent
    root = _root_of(PurePosixPath(beside.path.relative_to(source).as_posix()), roots)
    heirs = [
        case
        for case in cases
        if root is not None
        and case.root == root
        and any(
            scan.kind is Kind.NIFTI and folder in scan.path.parents and applies_to(stem_of(beside.path), stem_of(scan.path))
            for scan in case.scans
        )
    ]
    for case in heirs:
        case.scans.append(beside)
    return bool(heirs)


def _root_of(place: PurePosixPath, roots: set[PurePosixPath]) -> PurePosixPath | None:
    return next((folder for folder in place.parents if folder in roots), None)


def _key(scan: RawScan, source: Path, told: Told | None, root: PurePosixPath | None) -> tuple[str, str]:
    """Patient and study of a scan or of what lies beside one."""
    header = scan.header
    place = scan.path.parent.relative_to(source).as_posix()
    name = stem_of(scan.path)
    if header is not None:
        study = dicom.text(header, "StudyInstanceUID") or f"folder {place}"
        patient = dicom.text(header, "PatientID")
        # a study without a patient is a patient of its own: two are never merged
        patient = f"study {study}" if patient.upper() in NO_ID else patient
    elif is_bids(name):
        # the same label in two data sets is two people
        above = "" if root is None or root == PurePosixPath() else f"{root}/"
        patient, study = (f"{above}{part}" for part in subject_and_session(name))
    else:
        word = name.split("_")[0]
        patient = study = word if word.startswith("sub-") else f"{place}/{word}"
    if told is not None:
        study = told.case or study
        patient = told.patient or (told.case if header is None and told.case else patient)
    return patient, study
