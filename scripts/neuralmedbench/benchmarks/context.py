"""The words that go with a case: de-identified notes and record, as text."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.files.templates import Templates
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.records.columns import RECORD_COLUMNS

TEMPLATE = "record"
"""Template that words the health record."""
WHOLE_DAYS = re.compile(r"[+-]?\d{1,6}")


@dataclass(frozen=True)
class RecordRow:
    """One value of a health record as its template is given it; `days` from the index scan are 0 or negative, None when it has no date."""

    variable: str
    value: str
    unit: str
    days: int | None


def read_notes(case: CaseRecord, folder: Path) -> tuple[str, ...]:
    """Read the de-identified notes of a case in order of time, each stripped; empty ones are left out."""
    texts = [_text(case, folder / note).strip() for note in case.notes]
    return tuple(text for text in texts if text)


def read_record(case: CaseRecord, folder: Path, templates: Templates) -> str:
    """Render the health record of a case; what was measured after the index scan is left out, because it may tell the answer.

    Parameters
    ----------
    case : CaseRecord
        The case as the de-identification left it.
    folder : Path
        Folder of its `case.json`.
    templates : Templates
        Where the template of the record is.

    Returns
    -------
    str
        One line a variable, for example `Sodium: 138 mmol/L (2 days before the scan)`; empty without a record, or without such a value.

    Raises
    ------
    DataError
        If the record is absent or lacks a column.
    ConfigError
        If the template is wrong.
    """
    rows = record_rows(case, folder)
    return templates.render(TEMPLATE, rows=rows) if rows else ""


def record_rows(case: CaseRecord, folder: Path) -> list[RecordRow]:
    """Give the values of a record that enter a prompt: those without a date, and those up to the day of the scan; errors as in `read_record`.

    A row whose day is known to exist and not known to be before the scan (`columns.UNKNOWN_DAY`, or anything else that is no whole number)
    stays out: nobody can say that it does not tell the answer.
    """
    if not case.record:
        return []
    # a quotation mark is a sign like any other in this table: read as one that opens a cell it would swallow the rows behind it
    rows = csv.DictReader(_text(case, folder / case.record).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    if not set(RECORD_COLUMNS) <= set(rows.fieldnames or ()):
        message = f"case {case.case_id}: its record lacks one of the columns {', '.join(RECORD_COLUMNS)}; run deidentify again"
        raise DataError(message)
    kept: list[RecordRow] = []
    for row in rows:
        cell = (row["days_from_scan"] or "").strip()
        days = int(cell) if WHOLE_DAYS.fullmatch(cell) else None
        if not cell or (days is not None and days <= 0):
            kept.append(RecordRow(row["variable"], row["value"], row["unit"], days))
    return kept


def _text(case: CaseRecord, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        message = f"case {case.case_id}: a note or the record is absent or is not UTF-8; run deidentify again"
        raise DataError(message) from None
