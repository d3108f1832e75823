"""The audit of a release: checks, counts, reasons and digests, never values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from neuralmedbench.files.json_files import write_json_record
from neuralmedbench.records.case import CaseRecord, State
from neuralmedbench.records.review import OwnRule

KINDS = (
    ("dicom", (".dcm",)),
    ("nifti", (".nii.gz",)),
    ("gradients", (".bval", ".bvec")),
    ("json", (".json",)),
    ("table", (".tsv",)),
    ("picture", (".png",)),
    ("text", (".txt", "README", ".bidsignore")),
)


@dataclass(frozen=True, kw_only=True)
class CaseOutcome:
    """The result for one case.

    Attributes
    ----------
    patient_id : str
        Pseudonym.
    state : State
        `ok` or `quarantined`.
    reason : str
        Reason of its quarantine; empty if ok.
    raw_files : int
        Number of files read.
    raw_files_left_out : dict of str to int
        Number of files that belong to no scan, by reason.
    series : dict of str to str
        Sequence of each written scan, by series id.
    series_left_out : dict of str to str
        Reason for each scan not written.
    checks : dict of str to int
        Number of removals, replacements or detections by check.
    """

    patient_id: str
    state: State
    reason: str = ""
    raw_files: int = 0
    raw_files_left_out: dict[str, int] = field(default_factory=dict)
    series: dict[str, str] = field(default_factory=dict)
    series_left_out: dict[str, str] = field(default_factory=dict)
    checks: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReleaseAudit:
    """The result for a folder.

    Attributes
    ----------
    format, profile : str
        As in `ReleaseSettings`.
    options : tuple of str
        Codes of the applied options of DICOM PS3.15.
    element_rules : tuple of OwnRule
        Own rules for single elements of headers.
    cases : dict of str to CaseOutcome
        Results by case id.
    files_of_no_case : dict of str to int
        Number of files that belong to no case, by reason.
    checks : dict of str to int
        Sums over cases and notes.
    file_kinds : dict of str to int
        Number of written files by kind.
    files : dict of str to str
        SHA-256 of every written file, by its path in the output.
    """

    format: str
    profile: str
    options: tuple[str, ...]
    cases: dict[str, CaseOutcome]
    files_of_no_case: dict[str, int]
    checks: dict[str, int]
    file_kinds: dict[str, int]
    files: dict[str, str]
    element_rules: tuple[OwnRule, ...] = ()


def outcome_of(ingested: CaseRecord, cleaned: CaseRecord, left_out: dict[str, str]) -> CaseOutcome:
    """Build the result for one case."""
    reasons = Counter(fate.reason for fate in ingested.fates if fate.fate != "used")
    kept = {} if cleaned.state is State.QUARANTINED else {series.series_id: series.sequence.value for series in cleaned.series}
    return CaseOutcome(
        patient_id=cleaned.patient_id,
        state=cleaned.state,
        reason=cleaned.reason,
        raw_files=len(ingested.fates),
        raw_files_left_out=dict(sorted(reasons.items())),
        series=kept,
        series_left_out=left_out,
        checks=cleaned.checks,
    )


def write_release_audit(path: Path, audit: ReleaseAudit) -> None:
    """Write the audit as JSON."""
    write_json_record(path, audit)


def count_kinds(paths: Iterable[str]) -> dict[str, int]:
    """Count files by kind, which follows from their names."""
    kinds = Counter(next((kind for kind, ends in KINDS if path.endswith(ends)), "other") for path in paths)
    return dict(sorted(kinds.items()))


def summarise_release(audit: ReleaseAudit) -> dict[str, int]:
    """Count cases by state and written files by kind."""
    states = Counter(outcome.state for outcome in audit.cases.values())
    kinds = {f"{kind} files": number for kind, number in audit.file_kinds.items()}
    return {"cases": states[State.OK], "cases kept back": states[State.QUARANTINED], **kinds}
