"""The words that go with a case: de-identified notes and record, as text."""

from __future__ import annotations

import csv
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.records.columns import RECORD_COLUMNS


def read_notes(case: CaseRecord, folder: Path) -> tuple[str, ...]:
    """Read the de-identified notes of a case in order of time, each stripped; empty ones are left out."""
    texts = [_text(case, folder / note).strip() for note in case.notes]
    return tuple(text for text in texts if text)


def read_record(case: CaseRecord, folder: Path) -> str:
    """Read the health record of a case as lines of text; what was measured after the scan is left out, because it may tell the answer.

    Parameters
    ----------
    case : CaseRecord
        The case as the de-identification left it.
    folder : Path
        Folder of its `case.json`.

    Returns
    -------
    str
        One line a variable, for example `Sodium: 138 mmol/L (2 days before the scan)`; empty without a record.

    Raises
    ------
    DataError
        If the record is absent or lacks a column.
    """
    if not case.record:
        return ""
    rows = csv.DictReader(_text(case, folder / case.record).splitlines(), delimiter="\t")
    if not set(RECORD_COLUMNS) <= set(rows.fieldnames or ()):
        message = f"case {case.case_id}: its record lacks one of the columns {', '.join(RECORD_COLUMNS)}; run deidentify again"
        raise DataError(message)
    return "\n".join(_line(row) for row in rows if (_days(row["days_from_scan"]) or 0) <= 0)


def _line(row: dict[str, str]) -> str:
    value = " ".join(part for part in (row["value"], row["unit"]) if part)
    when = _when(row["days_from_scan"])
    return f"{row['variable']}: {value}{f' ({when})' if when else ''}"


def _days(text: str | None) -> int | None:
    try:
        return round(float(text or ""))
    except ValueError:
        return None


def _when(text: str | None) -> str:
    days = _days(text)
    if days is None:
        return ""
    return f"{-days} {'day' if days == -1 else 'days'} before the scan" if days else "on the day of the scan"


def _text(case: CaseRecord, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        message = f"case {case.case_id}: a note or the record is absent or is not UTF-8; run deidentify again"
        raise DataError(message) from None
