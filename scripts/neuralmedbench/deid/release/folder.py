"""De-identify a folder of raw scans case by case, as BIDS or DICOM."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.deid.cleaning import begin_cleaning
from neuralmedbench.deid.dataset import write_dataset
from neuralmedbench.deid.leaks import require_no_leaks
from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.release.audit import CaseOutcome, ReleaseAudit, count_kinds, outcome_of
from neuralmedbench.deid.release.dicom_series import clean_dicom_case
from neuralmedbench.deid.release.settings import ReleaseSettings
from neuralmedbench.deid.stage import deidentify_case
from neuralmedbench.deid.texts import clean_texts
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import quarantine_on_error
from neuralmedbench.files.digests import sha256_of_files
from neuralmedbench.files.identity import Identity, identity_pattern, read_identity, write_identity
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.ingest.case_tables import with_facts
from neuralmedbench.ingest.cases import ingest_case
from neuralmedbench.ingest.listing import ListedCase, list_cases
from neuralmedbench.records.case import CaseRecord, State
from neuralmedbench.runtime.atomic_write import write_text

TARGET = "notes.txt"
IGNORE = ".bidsignore"
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
        A text about these patients; its cleaned form is written to `out`/notes.txt.
    work : Path, optional
        Private folder for intermediate files, which show raw headers and faces; they are removed at the end. Default: the system's
        temporary folder.

    Returns
    -------
    ReleaseAudit
        The result for every case and file.

    Raises
    ------
    ConfigError
        As in `ingest.listing.list_cases`.
    DataError
        If the text cannot be read; nothing is written then.
    """
    text = read_notes(notes) if notes is not None else None  # fails before hours of work
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
    """Read and clean one case; returns the ingested case, the cleaned case, and the reasons of excluded series."""
    index = with_facts(listed.index, listed.facts, private)
    base = CaseRecord(benchmark=NAME, case_id=index.case_id, patient_id=index.patient_id, stage="ingest", source_sha256=index.source_sha256)
    write_identity(private / "identity.json", Identity())
    ingested = quarantine_on_error(base, lambda: ingest_case(base, index, private, private, listed.overrides))
    left_out: dict[str, str] = {}
    if ingested.state is State.QUARANTINED:
        return ingested, ingested, left_out
    start = replace(ingested, stage="deidentify", checks={}, fates=())
    if settings.form == "bids":
        step = quarantine_on_error(start, lambda: deidentify_case(start, private, folder, settings.policy))
    else:
        step = quarantine_on_error(start, lambda: _as_dicom(start, private, folder, settings, left_out))
    return ingested, step, left_out


def _as_dicom(case: CaseRecord, private: Path, folder: Path, settings: ReleaseSettings, left_out: dict[str, str]) -> CaseRecord:
    cleaning = begin_cleaning(case, private, folder, settings.policy)
    left_out.update(clean_dicom_case(cleaning))
    notes, record = clean_texts(cleaning)
    require_no_leaks(folder, cleaning.identity)
    series = tuple(one for one in case.series if one.series_id not in left_out)
    counted = {name: cleaning.checks[name] for name in sorted(cleaning.checks)}
    return replace(case, series=series, notes=notes, record=record, checks={**counted, "leaks": 0})


def check_release(audit: ReleaseAudit) -> None:
    """Refuse a release without any case; DataError states the first reason."""
    if not any(outcome.state is State.OK for outcome in audit.cases.values()):
        reasons = [outcome.reason for outcome in audit.cases.values()]
        message = f"none of {len(reasons)} cases could be released: {reasons[0] if reasons else 'no case was found'}; see the audit"
        raise DataError(message)


def read_notes(path: Path) -> str:
    """Read the text; DataError if it is not plain text (a word processor's file, an unknown encoding), or cannot be read."""
    try:
        return decode_text(path.read_bytes())
    except OSError:
        message = "--notes: the text cannot be read; check the file"
    except UnreadableTextError as error:
        message = f"--notes: expected plain text, found something else ({error.reason}); save it as text in UTF-8"
    raise DataError(message) from None


def write_notes(notes: str, out: Path, people: Sequence[tuple[str, Identity]], settings: ReleaseSettings) -> Counter[str]:
    """Clean a text to `out`/notes.txt.

    `notes`: result of `read_notes`. Returns replacements by kind; `notes_withheld` if the text is withheld, and then no file is written.
    """
    patients = sorted({patient for patient, _ in people})
    known = [identity for _, identity in people]
    everyone = Identity(
        names=tuple(sorted({value for identity in known for value in identity.names})),
        places=tuple(sorted({value for identity in known for value in identity.places})),
        numbers=tuple(sorted({value for identity in known for value in identity.numbers})),
        uids=tuple(sorted({value for identity in known for value in identity.uids})),
    )
    # the dates of several patients have no common shift: only years are kept
    dates = DateShift(-1, years_only=True)
    if len(patients) == 1:
        dates = settings.policy.rules_of(patients[0], everyone).dates
    days = {identity.scan_date for _, identity in people}
    scan_day = parse_day(next(iter(days))) if len(days) == 1 else None
    note = clean_note(notes, dates, identity_pattern(everyone), scan_day=scan_day)
    counts = Counter({f"notes_{kind}": number for kind, number in note.counts.items()})
    if note.text.strip():
        write_text(out / TARGET, note.text)
        if (out / IGNORE).exists():
            write_text(out / IGNORE, (out / IGNORE).read_text(encoding="utf-8") + f"{TARGET}\n")
    return counts
