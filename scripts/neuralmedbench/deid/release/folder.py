"""A folder of raw scans to a folder that identifies nobody: found, read and cleaned case by case."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from neuralmedbench.deid.dataset import write_dataset
from neuralmedbench.deid.headers.dicom_case import clean_dicom_case
from neuralmedbench.deid.leaks import count_leaks
from neuralmedbench.deid.release.audit import CaseOutcome, ReleaseAudit, count_kinds, outcome_of
from neuralmedbench.deid.release.notes import read_notes, write_notes
from neuralmedbench.deid.release.settings import ReleaseSettings
from neuralmedbench.deid.stage import deidentify_case, rules_of
from neuralmedbench.deid.texts import clean_texts
from neuralmedbench.deid.values import parse_day
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files.cases import quarantine_on_error
from neuralmedbench.files.digests import sha256_of_files
from neuralmedbench.files.identity import Identity, read_identity, write_identity
from neuralmedbench.ingest.case_tables import with_facts
from neuralmedbench.ingest.cases import ingest_case
from neuralmedbench.ingest.listing import ListedCase, list_cases
from neuralmedbench.records.case import CaseRecord, State

NAME = "release"


def release_folder(source: Path, out: Path, settings: ReleaseSettings, notes: Path | None, work: Path | None = None) -> ReleaseAudit:
    """De-identify all cases of a folder.

    Parameters
    ----------
    source, out : Path
        Raw scans, and a new or empty folder.
    settings : ReleaseSettings
        Format, profile, key, options.
    notes : Path, optional
        A text about these patients; cleaned to `out`/notes.txt.
    work : Path, optional
        Private folder for what lies between: raw headers and faces, gone at the end. The system's temporary folder when absent.

    Returns
    -------
    ReleaseAudit
        What became of every case and file.

    Raises
    ------
    ConfigError
        As in `ingest.listing.list_cases`.
    DataError
        If the text cannot be read; nothing was written then.
    """
    text = read_notes(notes) if notes is not None else None  # before hours of work
    listing = list_cases(source, settings.pseudonyms)
    out.mkdir(parents=True, exist_ok=True)
    done: list[tuple[CaseRecord, Path]] = []
    outcomes: dict[str, CaseOutcome] = {}
    people: list[tuple[str, Identity]] = []
    for listed in listing.cases:
        folder = out / f"sub-{listed.index.case_id}"
        with tempfile.TemporaryDirectory(prefix="nmb-", dir=work) as private:
            ingested, cleaned, left_out = _release_case(listed, Path(private), folder, settings)
            people.append((ingested.patient_id, read_identity(Path(private) / "identity.json")))
        if cleaned.state is State.QUARANTINED:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            done.append((cleaned, folder))
        outcomes[cleaned.case_id] = outcome_of(ingested, cleaned, left_out)
    if settings.form == "bids" and done:
        write_dataset(out, NAME, done)
    checks = Counter[str]()
    if text is not None:
        checks.update(write_notes(text, out, people, settings))
    for outcome in outcomes.values():
        checks.update(outcome.checks)
    files = sha256_of_files(out)
    return ReleaseAudit(
        format=settings.form,
        profile=settings.profile,
        options=settings.options,
        cases=outcomes,
        files_of_no_case=dict(sorted(Counter(listing.left_out.values()).items())),
        checks={name: checks[name] for name in sorted(checks)},
        file_kinds=count_kinds(files),
        files=files,
    )


def _release_case(
    listed: ListedCase, private: Path, folder: Path, settings: ReleaseSettings
) -> tuple[CaseRecord, CaseRecord, dict[str, str]]:
    """Read and clean one case; gives it as it was read, as it was cleaned, and why series of it were left out."""
    index = with_facts(listed.index, listed.facts, private)
    base = CaseRecord(benchmark=NAME, case_id=index.case_id, patient_id=index.patient_id, stage="ingest", source_sha256=index.source_sha256)
    write_identity(private / "identity.json", Identity())
    ingested = quarantine_on_error(base, lambda: ingest_case(base, index, private, private, listed.overrides))
    left_out: dict[str, str] = {}
    if ingested.state is State.QUARANTINED:
        return ingested, ingested, left_out
    start = replace(ingested, stage="deidentify", checks={}, fates=())
    if settings.form == "bids":
        step = quarantine_on_error(
            start, lambda: deidentify_case(start, private, folder, settings.key, settings.profile, options=settings.options)
        )
    else:
        step = quarantine_on_error(start, lambda: _as_dicom(start, private, folder, settings, left_out))
    return ingested, step, left_out


def _as_dicom(case: CaseRecord, private: Path, folder: Path, settings: ReleaseSettings, left_out: dict[str, str]) -> CaseRecord:
    identity = read_identity(private / "identity.json")
    rules = rules_of(case.patient_id, identity, settings.key, settings.profile, settings.options)
    checks: Counter[str] = Counter()
    left_out.update(clean_dicom_case(case, private, folder, rules, checks))
    notes, record = clean_texts(case, private, folder, rules, parse_day(identity.scan_date), checks=checks)
    if leaks := count_leaks(folder, identity):
        message = f"{leaks} identifying values are left after cleaning: the case is kept back; report the kind of file, never the value"
        raise DeidentificationError(message)
    series = tuple(one for one in case.series if one.series_id not in left_out)
    counted = {name: checks[name] for name in sorted(checks)}
    return replace(case, series=series, notes=notes, record=record, checks={**counted, "leaks": 0})


def check_release(audit: ReleaseAudit) -> None:
    """Refuse a release of which nothing is left; DataError names the first reason."""
    if not any(outcome.state is State.OK for outcome in audit.cases.values()):
        reasons = [outcome.reason for outcome in audit.cases.values()]
        message = f"none of {len(reasons)} cases could be released: {reasons[0] if reasons else 'there is none'}; see the audit"
        raise DataError(message)
