"""The notes and the record of a case, cleaned."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

from neuralmedbench.deid.headers import HeaderRules
from neuralmedbench.deid.notes import clean_note
from neuralmedbench.deid.records import clean_record
from neuralmedbench.io.files import write_text
from neuralmedbench.records.case import CaseRecord


def clean_texts(
    case: CaseRecord, source: Path, out: Path, rules: HeaderRules, scan_day: date | None, *, checks: Counter[str]
) -> tuple[tuple[str, ...], str]:
    """Write the cleaned notes and the cleaned record of a case.

    Parameters
    ----------
    case : CaseRecord
        The ingested case.
    source, out : Path
        Its folder, and the folder of the de-identified case.
    rules : HeaderRules
        Dates, and the patient's own values.
    scan_day : date or None
        What the record's dates are counted from.
    checks : Counter
        Counts what was done.

    Returns
    -------
    tuple of tuple of str and str
        Paths of the notes and of the record (empty without one) relative to `out`; a text of which nothing may be shown is not among them.
    """
    notes = tuple(path for path in case.notes if _write_note(source / path, out / path, rules, scan_day, checks))
    target = "text/record.tsv"
    shown = bool(case.record) and _write_record(source / case.record, out / target, rules, scan_day, checks)
    return notes, target if shown else ""


def _write_note(source: Path, target: Path, rules: HeaderRules, scan_day: date | None, checks: Counter[str]) -> bool:
    """Write one cleaned note; False when nothing of it may be shown."""
    note = clean_note(source.read_text(encoding="utf-8"), rules.dates, rules.identifying, scan_day=scan_day)
    checks.update({f"notes_{kind}": number for kind, number in note.counts.items()})
    if not note.text.strip():
        return False
    write_text(target, note.text)
    return True


def _write_record(source: Path, target: Path, rules: HeaderRules, scan_day: date | None, checks: Counter[str]) -> bool:
    """Write the cleaned record; False when no row of it may be shown."""
    record = clean_record(source.read_text(encoding="utf-8"), rules.dates, rules.identifying, scan_day)
    checks.update(record.counts)
    if not record.text:
        return False
    write_text(target, record.text)
    return True
