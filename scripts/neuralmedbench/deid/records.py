"""The structured health record without identity: known columns, checked names and values."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from datetime import date

from neuralmedbench.deid.notes import clean_note
from neuralmedbench.deid.values import TOP_AGE, DateShift, parse_day
from neuralmedbench.errors import DataError
from neuralmedbench.io.identity import fold, word_set
from neuralmedbench.records.columns import RECORD_COLUMNS

KNOWN_COLUMNS = frozenset({*RECORD_COLUMNS, "date"})
PERSONAL = word_set(
    "name surname forename initials physician doctor clinician consultant nurse radiologist address street city town village zip postcode",
    "postal county phone telephone mobile fax email mail url website mrn id identifier ssn nhs number insurance policy account hospital clinic",
    "institution ward birth born dob contact kin relative employer licence license passport serial device photo comment comments free text",
)
"""Words in the name of a variable that make it personal; the whole row goes."""
VALUE = re.compile(r"[^\n\t]{0,60}")
NUMBER = re.compile(r"[<>≤≥~]?\s*-?\d{1,5}(?:[.,]\d+)?(?:\s*/\s*\d{1,3})?\s*%?")


@dataclass(frozen=True)
class CleanRecord:
    """A record after cleaning: the TSV's text (empty without rows) and how many rows or columns each check dropped or changed."""

    text: str
    counts: Counter[str]


def clean_record(text: str, dates: DateShift, identifying: re.Pattern[str] | None, scan_day: date | None) -> CleanRecord:
    """Clean a health record.

    Parameters
    ----------
    text : str
        CSV with a header; the columns `variable` and `value` are needed, `unit`, `days_from_scan` and `date` are used, others are dropped.
    dates : DateShift
        How dates inside values are changed.
    identifying : re.Pattern or None
        Finds the patient's own values in folded text.
    scan_day : date or None
        What `date` is counted from.

    Returns
    -------
    CleanRecord
        TSV with the columns variable, value, unit, days_from_scan, in the order of the source. Rows that name a person, a place or a number
        of one, and rows whose value is no short plain value, are dropped; ages over 89 become 90.

    Raises
    ------
    DataError
        If it is no table with these columns.
    """
    rows = list(csv.DictReader(io.StringIO(text)))
    columns = {column for row in rows[:1] for column in row if column}
    if rows and not {"variable", "value"} <= columns:
        message = "the health record (record.csv) needs the columns variable and value; unit, days_from_scan or date may stand beside them"
        raise DataError(message)
    counts: Counter[str] = Counter({"record_columns_dropped": len(columns - KNOWN_COLUMNS)})
    kept: list[tuple[str, ...]] = []
    for row in rows:
        cleaned = _clean_row(row, dates, identifying, scan_day)
        if cleaned is None:
            counts["record_rows_dropped"] += 1
        else:
            counts["record_values_changed"] += cleaned[1] != (row["value"] or "").strip()
            kept.append(cleaned)
    lines = ["\t".join(line) for line in (RECORD_COLUMNS, *kept)]
    return CleanRecord("\n".join(lines) + "\n" if kept else "", +counts)


def _clean_row(row: dict[str, str], dates: DateShift, identifying: re.Pattern[str] | None, scan_day: date | None) -> tuple[str, ...] | None:
    variable, value, unit = (_plain(row.get(column)) for column in ("variable", "value", "unit"))
    if not variable or PERSONAL & set(re.findall(r"[a-z]+", variable.casefold())):
        return None
    if any(VALUE.fullmatch(cell) is None or (identifying and identifying.search(fold(cell))) for cell in (variable, value, unit)):
        return None
    if not NUMBER.fullmatch(value):
        note = clean_note(value, dates, None, scan_day=scan_day)
        if set(note.counts) - {"date"}:
            return None
        value = note.text
    elif "age" in variable.casefold().split() and float(re.sub(r"[^\d.]", "", value.replace(",", ".")) or 0) > TOP_AGE - 1:
        value = f"{TOP_AGE}+"
    return variable, value, unit, _days(row, scan_day)


def _plain(cell: str | None) -> str:
    return re.sub(r"\s+", " ", cell or "").strip()


def _days(row: dict[str, str], scan_day: date | None) -> str:
    """Days from the scan; no date leaves, only distances do."""
    given = _plain(row.get("days_from_scan"))
    if re.fullmatch(r"-?\d{1,6}", given):
        return given
    day = parse_day(row.get("date") or "")
    return str((day - scan_day).days) if day and scan_day else ""
