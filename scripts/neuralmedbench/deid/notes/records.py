"""The structured health record without identity: known columns, checked names and values."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil

from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.notes.dates import days_named
from neuralmedbench.deid.values import TOP_AGE, DateShift, parse_day
from neuralmedbench.errors import DataError
from neuralmedbench.files.identity import Identity, fold
from neuralmedbench.files.words import word_set
from neuralmedbench.records.columns import RECORD_COLUMNS, UNKNOWN_DAY

KNOWN_COLUMNS = frozenset({*RECORD_COLUMNS, "date"})
PERSONAL = word_set(
    "name surname forename initials physician doctor clinician consultant nurse radiologist address street city town village zip postcode",
    "postal county phone telephone mobile fax email mail url website mrn id identifier ssn nhs number insurance policy account hospital clinic",
    "institution ward birth born dob birthday contact kin relative employer licence license passport serial device photo comment comments free text",
    "forenames maiden subject login user username badge barcode fingerprint voiceprint photograph plate vehicle registration accession pager beneficiary",
    "surgeon referrer neurologist neurosurgeon sender recipient signature signed school occupation",
)
"""Words in the name of a variable that make it personal; the whole row goes."""
NAMES = word_set(
    "patient name surname forename forenames maiden initials physician doctor clinician consultant nurse radiologist contact kin relative surgeon referrer",
    "neurologist neurosurgeon sender recipient signature signed",
)
PLACES = word_set("address street city town village county hospital clinic institution ward school employer")
"""Words of variables and columns whose values are names or places."""
MAX_DAYS = 32_507
"""89 years: a longer distance tells an age that may not be told."""
VALUE = re.compile(r"[^\n\t]{0,60}")
DISTANCE = re.compile(r"[+-]?\d{1,6}(?:\.\d{1,6})?")
"""A number of days as hospitals' tables write it."""
NUMBER = re.compile(r"[<>≤≥~]?\s*-?\d{1,5}(?:[.,]\d+)?(?:\s*/\s*\d{1,3})?\s*%?")


@dataclass(frozen=True)
class CleanRecord:
    """A record after cleaning: the TSV's text (empty without rows) and how many rows or columns each check dropped or changed."""

    text: str
    counts: Counter[str]


def record_identity(text: str) -> Identity:
    """Collect what a record says of the person: what its notes may not say either.

    `text`: CSV as in `clean_record`. Returns: Names, places and numbers of the rows whose variable is personal, and of columns beside the
    known ones.
    """
    found: dict[str, set[str]] = {"names": set(), "places": set(), "numbers": set()}
    rows = list(csv.DictReader(io.StringIO(text)))
    columns = [column for column in (rows[0] if rows else ()) if isinstance(column, str) and column not in KNOWN_COLUMNS]
    for column in columns:
        cells = {_plain(row.get(column)) for row in rows}
        if len(cells) == 1 and any(letter.isdigit() for letter in min(cells)):
            found["numbers"] |= cells  # what is the same in every row is the patient's
    for row in rows:
        extra = [(column, row.get(column)) for column in columns]
        for title, cell in (*extra, (row.get("variable"), row.get("value"))):
            words = _title_words(title)
            value = _plain(cell) if isinstance(cell, str) else ""
            if not value or not (PERSONAL | NAMES) & words:
                continue
            if any(letter.isdigit() for letter in value):
                found["numbers"].add(value)
            elif NAMES & words:
                found["names"].add(value)
            elif PLACES & words:
                found["places"].add(value)
    names, places, numbers = (tuple(sorted(found[kind])) for kind in ("names", "places", "numbers"))
    return Identity(names=names, places=places, numbers=numbers)


def _title_words(title: str | None) -> set[str]:
    return set(re.findall(r"[a-z]+", fold(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", title or "")).casefold()))


def clean_record(
    text: str, dates: DateShift, identifying: re.Pattern[str] | None, scan_day: date | None, *, listed: re.Pattern[str] | None = None
) -> CleanRecord:
    """Clean a health record.

    `text`: CSV with a header; the columns `variable` and `value` are needed, `unit`, `days_from_scan` and `date` are used, others are
    dropped. `identifying`: finds the patient's own values in folded text. `scan_day`: what `date` is counted from. `listed`: as
    `identifying`, for values of the record itself (`record_identity`). Returns: TSV with the columns variable, value, unit, days_from_scan,
    in the order of the source. Rows that name a person, a place or a number of one, and rows whose value is no short plain value, are
    dropped; ages over 89 become 90. `days_from_scan` is a whole number, empty for a value without a date, and `UNKNOWN_DAY` for one whose
    date cannot be compared with the scan's. Raises DataError if it is no table with these columns.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(text)))
    except csv.Error:
        message = "the health record (record.csv) is no table of commas; write it anew as CSV in UTF-8"
        raise DataError(message) from None
    columns = {column for row in rows[:1] for column in row if column}
    if rows and not {"variable", "value"} <= columns:
        message = "the health record (record.csv) needs the columns variable and value; unit, days_from_scan or date may stand beside them"
        raise DataError(message)
    counts: Counter[str] = Counter({"record_columns_dropped": len(columns - KNOWN_COLUMNS)})
    kept: list[tuple[str, ...]] = []
    for row in rows:
        cleaned = _clean_row(row, dates, [pattern for pattern in (identifying, listed) if pattern], scan_day)
        if cleaned is None:
            counts["record_rows_dropped"] += 1
        else:
            counts["record_values_changed"] += cleaned[1] != (row["value"] or "").strip()
            counts["record_rows_of_unknown_day"] += cleaned[3] == UNKNOWN_DAY
            kept.append(cleaned)
    lines = ["\t".join(line) for line in (RECORD_COLUMNS, *kept)]
    return CleanRecord("\n".join(lines) + "\n" if kept else "", +counts)


def _clean_row(
    row: dict[str, str], dates: DateShift, identifying: Sequence[re.Pattern[str]], scan_day: date | None
) -> tuple[str, ...] | None:
    variable, value, unit = (_plain(row.get(column)) for column in ("variable", "value", "unit"))
    words = _title_words(variable)
    if not variable or PERSONAL & words:
        return None
    if any(VALUE.fullmatch(cell) is None or any(pattern.search(fold(cell)) for pattern in identifying) for cell in (variable, value, unit)):
        return None
    cells = [_clean_cell(cell, dates, scan_day) for cell in (variable, value, unit)]
    if any(cell is None for cell in cells):
        return None
    if "age" in words and NUMBER.fullmatch(value) and float(re.sub(r"[^\d.]", "", value.replace(",", ".")) or 0) > TOP_AGE - 1:
        cells[1] = f"{TOP_AGE}+"
    named = [days_named(cell, scan_day) for cell in (variable, value, unit) if cell and not NUMBER.fullmatch(cell)]
    return cells[0] or "", cells[1] or "", cells[2] or "", _days(row, scan_day, [day for days in named for day in days])


def _clean_cell(cell: str, dates: DateShift, scan_day: date | None) -> str | None:
    """Clean one cell: dates are moved and ages top-coded; None when anything else in it identifies."""
    if not cell or NUMBER.fullmatch(cell):
        return cell
    note = clean_note(cell, dates, None, scan_day=scan_day)
    return None if set(note.counts) - {"date", "age"} else note.text


def _plain(cell: str | None) -> str:
    return re.sub(r"\s+", " ", cell or "").strip()


def _days(row: dict[str, str], scan_day: date | None, named: Sequence[date | None]) -> str:
    """Days from the scan; no date leaves, only distances do.

    `named`: days that its other cells name, None for one that cannot be read. One after the scan puts the whole row after it. Returns: The
    latest that any of them says, as a whole number (a part of a day after the scan is a day after it). Empty for a value without a date,
    and for one from more than 89 years before the scan: that tells an age. `UNKNOWN_DAY` when a date cannot be compared.
    """
    given, day = _plain(row.get("days_from_scan")).replace("−", "-"), _plain(row.get("date"))
    distances = [ceil(float(given))] if DISTANCE.fullmatch(given) else []
    read = parse_day(re.split("[T ]", day)[0])
    if read and scan_day:
        distances.append((read - scan_day).days)
    after = [(other - scan_day).days for other in named if other and scan_day and other > scan_day]
    if distances or after:
        latest = max(*distances, *after, -MAX_DAYS)
        return UNKNOWN_DAY if latest >= MAX_DAYS else "" if latest <= -MAX_DAYS else str(latest)
    unknown = any(other is None or not scan_day for other in named)
    return UNKNOWN_DAY if given or day or unknown else ""
