"""Clean the notes and the health record of a case.

Parts of notes that hold the answer are cut, identifiers are replaced (`notes.clean`), and of the record only rows that identify nobody stay.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil
from pathlib import Path
from typing import Any

from neuralmedbench.deid.cleaning import Cleaning
from neuralmedbench.deid.file_names import RECORD
from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.notes.dates import mentioned_days
from neuralmedbench.deid.values import TOP_AGE, DateShift, parse_day
from neuralmedbench.errors import DataError
from neuralmedbench.files.identity import Identity, IdentityPattern, fold, identity_pattern
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.files.words import word_set
from neuralmedbench.records.columns import RECORD_COLUMNS, UNKNOWN_DAY
from neuralmedbench.runtime.atomic_write import write_text

MAX_HEADING_WORDS, SHORT_HEADING = 5, 3
SECTION_CUT = "[SECTION CUT]"
_MARKS = r"(?:#{1,6}[ \t]*|>[ \t]*|[-•*+][ \t]+|\(?\d{1,2}[.)][ \t]*|\(?[A-Za-z][.)][ \t]+|[*_]{1,3})*"
_HEADING = r"[^\W\d_][^\n:：.;!?|]{0,60}?"
LINE_HEADING = re.compile(
    rf"^[ \t]*(?P<marks>{_MARKS})(?P<name>{_HEADING})[ \t]*[*_]{{0,3}}[ \t]*(?P<end>[:：][*_]{{0,3}}|[ \t][-–—]+(?=\s|$)|[-–—]+[ \t]*$|#*[ \t]*$)",
    re.MULTILINE,
)
INLINE_HEADING = re.compile(
    r"(?:(?<=[.;!?)\]][ \t])|(?<=[ \t]{2})|(?<=\|[ \t]))(?P<marks>[*_]{0,3}(?:\(?\d{1,2}[.)][ \t]*)?)(?P<name>[A-Z][^\n:：.;!?|]{0,40}?)[*_]{0,3}(?P<end>[:：])"
)
OTHER_HEADINGS = word_set("""
    history hpi hx pmh pmhx psh fh fhx sh shx presenting complaint complaints cc medications medication meds drugs allergies allergy examination exam
    physical neurological vitals observations obs labs laboratory bloods investigations results course subjective objective social family past medical
    surgical review systems ros background reason referral consultation technique comparison findings indication clinical information procedure disposition
    follow followup instructions recommendations addendum signed signature cc copies contact date addressee anamnese vorgeschichte medikation untersuchung
    voorgeschiedenis medicatie onderzoek antécédents traitement examen motif antecedentes tratamiento exploración anamnesi esame terapia
""")
"""Words of headings that end a cut section."""
_ANSWER_WORDS = word_set(
    "impression diagnosis diagnoses assessment and plan conclusion conclusions opinion differential final discharge working clinical radiology report"
)
REPORT_PARTS = word_set(
    "technique comparison findings indication procedure clinical information sequences protocol contrast dose limitations"
)
"""Headings within the report of a scan, which do not end it."""
REPORT_WORDS = word_set("report radiology imaging neuroimaging mri mr ct scan befund verslag referto informe laudo compte")
SENTENCE_WORDS = word_set("a an he she they it we i his her our my has have had is was were there no to")
"""Words that mark a sentence: `he has a plan:` is not a heading."""
KNOWN_COLUMNS = frozenset({*RECORD_COLUMNS, "date"})
PERSONAL = word_set(
    "name surname forename initials physician doctor clinician consultant nurse radiologist address street city town village zip postcode",
    "postal county phone telephone mobile fax email mail url website mrn id identifier ssn nhs number insurance policy account hospital clinic",
    "institution ward birth born dob birthday contact kin relative employer licence license passport serial device photo comment comments free text",
    "forenames maiden subject login user username badge barcode fingerprint voiceprint photograph plate vehicle registration accession pager beneficiary",
    "surgeon referrer neurologist neurosurgeon sender recipient signature signed school occupation",
)
"""Words in the name of a variable that make it personal; its row is dropped."""
NAMES = word_set(
    "patient name surname forename forenames maiden initials physician doctor clinician consultant nurse radiologist contact kin relative surgeon referrer",
    "neurologist neurosurgeon sender recipient signature signed",
)
PLACES = word_set("address street city town village county hospital clinic institution ward school employer")
"""Words of variables and columns whose values are names or places."""
MAX_DAYS = 32_507
"""89 years in days: a longer distance would reveal an age of 90 or more."""
VALUE = re.compile(r"[^\n\t]{0,60}")
DISTANCE = re.compile(r"[+-]?\d{1,6}(?:\.\d{1,6})?")
"""A number of days as written in hospital tables."""
NUMBER = re.compile(r"[<>≤≥~]?\s*-?\d{1,5}(?:[.,]\d+)?(?:\s*/\s*\d{1,3})?\s*%?")


def clean_texts(cleaning: Cleaning) -> tuple[tuple[str, ...], str]:
    """Write the cleaned notes and the cleaned record of a case.

    Returns paths of the notes and of the record (empty if absent) relative to `cleaning.out`; withheld texts are left out.
    """
    case = cleaning.case
    record = _read(cleaning.source / case.record, cleaning.checks, "record") if case.record else ""
    listed = identity_pattern(record_identity(record)) if record else None
    notes = tuple(path for path in case.notes if _write_note(path, cleaning, listed))
    target = RECORD
    return notes, target if record and _write_record(record, target, cleaning, listed) else ""


def _read(path: Path, checks: Counter[str], what: str) -> str:
    """Read a text; empty if it cannot be read, which is counted by reason."""
    try:
        return decode_text(path.read_bytes())
    except UnreadableTextError as error:
        checks[f"{what}_unreadable_{error.reason}"] += 1
        return ""


def _write_note(path: str, cleaning: Cleaning, listed: IdentityPattern | None) -> bool:
    """Write one cleaned note; False if it is withheld. `listed` matches values of the patient's record."""
    text, cut = cut_sections(_read(cleaning.source / path, cleaning.checks, "notes"), cleaning.texts.cut)
    note = clean_note(
        text,
        cleaning.rules.dates,
        cleaning.rules.identifying,
        scan_day=cleaning.scan_day,
        listed=listed,
        model=cleaning.texts.model,
    )
    cleaning.checks.update({f"notes_{kind}": number for kind, number in note.counts.items()})
    if cut:
        cleaning.checks["notes_sections_cut"] += cut
    if not note.text.replace(SECTION_CUT, "").strip():
        return False
    write_text(cleaning.out / path, note.text)
    return True


def _write_record(text: str, target: str, cleaning: Cleaning, listed: IdentityPattern | None) -> bool:
    """Write the cleaned record; False if no row may be published."""
    record = clean_record(text, cleaning.rules.dates, cleaning.rules.identifying, cleaning.scan_day, listed=listed)
    cleaning.checks.update(record.counts)
    if not record.text:
        return False
    write_text(cleaning.out / target, record.text)
    return True


def cut_sections(text: str, headings: Sequence[str]) -> tuple[str, int]:
    """Cut the sections of a note under the given headings.

    `headings`: headings to cut, case-insensitive; a heading of up to five words that begins or ends with one counts too (`Final diagnosis`).
    Returns the note with `[SECTION CUT]` in place of these sections, and their number. A section ends at the next heading that is not cut:
    one in capitals, one of the same or a higher Markdown level, or one of the usual headings of a note; a colon alone ends nothing. A note
    that is entirely the report of a scan (with headings for technique and findings) is cut as a whole.
    """
    names = tuple(_heading_words(heading) for heading in headings if _heading_words(heading))
    places = sorted((*_headings(LINE_HEADING, text), *_headings(INLINE_HEADING, text)))
    if not names or not places:
        return text, 0
    if _is_report(places, names):
        return SECTION_CUT, 1
    # walk over the headings: copy text outside sections to cut, skip it inside
    parts, place, cut, report, level = [], 0, 0, False, 0
    inside = False
    for start, marks, name, has_line in places:
        if start < place:
            continue
        words = _heading_words(name)
        if _is_to_cut(words, names):
            if not inside:
                parts.append(text[place:start])
                cut, level = cut + 1, marks.count("#")
            inside, report = True, report or bool(REPORT_WORDS & set(words))
        elif inside and _ends_section(words, name, marks, level=level, report=report, has_line=has_line):
            parts.append(f"{SECTION_CUT}\n")
            inside, report, place = False, False, start
    parts.append(SECTION_CUT if inside else text[place:])
    return ("".join(parts), cut) if cut else (text, 0)


def _headings(pattern: re.Pattern[str], text: str) -> Iterable[tuple[int, str, str, bool]]:
    """Yield position, marks and name of each heading, and True if it stands alone on its line."""
    for match in pattern.finditer(text):
        name, words = match["name"].strip(), _heading_words(match["name"])
        alone = not match["end"].strip()
        if not words or len(words) > MAX_HEADING_WORDS:
            continue
        if alone and not ("#" in match["marks"] or "*" in match["marks"] or name.isupper() or _is_known(words)):
            continue
        yield match.start("marks"), match["marks"], name, alone or text[match.end() :].partition("\n")[0].strip() == ""


def _is_known(words: tuple[str, ...]) -> bool:
    """Return True if a line without marks is a heading, that is if all its words occur in headings."""
    return all(word in OTHER_HEADINGS | _ANSWER_WORDS for word in words)


def _heading_words(heading: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+(?:[/&][^\W_]+)?", fold(heading).casefold()))


def _is_to_cut(words: tuple[str, ...], names: Sequence[tuple[str, ...]]) -> bool:
    """Return True if a heading is one of the names, or begins or ends with one that is long enough to be unambiguous."""
    if words in names:
        return True
    if SENTENCE_WORDS & set(words):
        return False
    distinctive = [name for name in names if len(name) > 1 or (len(name[0]) > SHORT_HEADING and name[0] not in REPORT_WORDS)]
    return any(words[: len(name)] == name or words[-len(name) :] == name for name in distinctive)


def _ends_section(words: tuple[str, ...], name: str, marks: str, *, level: int, report: bool, has_line: bool) -> bool:
    """Return True if a heading ends the section that is being cut; `level` is the Markdown level at which the section began."""
    if report and REPORT_PARTS & set(words):
        return False
    if "#" in marks:
        return level == 0 or marks.count("#") <= level
    letters = "".join(letter for letter in name if letter.isalpha())
    return bool(OTHER_HEADINGS & set(words)) or (letters.isupper() and len(letters) > 3 and (has_line or bool(marks) or len(words) > 1))


def _is_report(places: Sequence[tuple[int, str, str, bool]], names: Sequence[tuple[str, ...]]) -> bool:
    """Return True if a note is the report of a scan and such reports are to be cut."""
    heads = [set(_heading_words(name)) for _, _, name, _ in places]
    wanted = any(REPORT_WORDS & set(name) for name in names)
    return wanted and any("technique" in words for words in heads) and any("findings" in words for words in heads)


@dataclass(frozen=True)
class CleanRecord:
    """A cleaned record as TSV (empty if no row is left), and the number of rows or columns that each check dropped or changed."""

    text: str
    counts: Counter[str]


def record_identity(text: str) -> Identity:
    """Collect the patient's identifiers from a record, so that they can be removed from the notes too.

    `text`: CSV as in `clean_record`. Returns names, places and numbers from rows with a personal variable, and from unknown columns.
    Raises DataError as `clean_record` does.
    """
    identifiers: dict[str, set[str]] = {"names": set(), "places": set(), "numbers": set()}
    rows = _read_rows(text)
    columns = [column for column in (rows[0] if rows else ()) if isinstance(column, str) and column not in KNOWN_COLUMNS]
    for column in columns:
        cells = {_plain(row.get(column)) for row in rows}
        if len(cells) == 1 and any(letter.isdigit() for letter in min(cells)):
            identifiers["numbers"] |= cells  # a number that is equal in every row is the patient's
    for row in rows:
        extra = [(column, row.get(column)) for column in columns]
        for title, cell in (*extra, (row.get("variable"), row.get("value"))):
            words = _title_words(title)
            value = _plain(cell) if isinstance(cell, str) else ""
            if not value or not (PERSONAL | NAMES) & words:
                continue
            if any(letter.isdigit() for letter in value):
                identifiers["numbers"].add(value)
            elif NAMES & words:
                identifiers["names"].add(value)
            elif PLACES & words:
                identifiers["places"].add(value)
    names, places, numbers = (tuple(sorted(identifiers[kind])) for kind in ("names", "places", "numbers"))
    return Identity(names=names, places=places, numbers=numbers)


def _read_rows(text: str) -> list[dict[str, Any]]:
    """Read the rows of a record; DataError if it is no CSV (an open quotation mark makes one cell of all that follows)."""
    try:
        return list(csv.DictReader(io.StringIO(text)))
    except csv.Error:
        message = "the health record (record.csv) is not a comma-separated table; save it again as CSV in UTF-8"
        raise DataError(message) from None


def _title_words(title: str | None) -> set[str]:
    return set(re.findall(r"[a-z]+", fold(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", title or "")).casefold()))


def clean_record(
    text: str, dates: DateShift, identifying: IdentityPattern | None, scan_day: date | None, *, listed: IdentityPattern | None = None
) -> CleanRecord:
    """Clean a health record.

    `text`: CSV with a header; the columns `variable` and `value` are required, `unit`, `days_from_scan` and `date` are used, others are
    dropped. `identifying`: matches the patient's identifiers in folded text. `scan_day`: day 0 of `days_from_scan`. `listed`: like
    `identifying`, for values of the record itself (`record_identity`). Returns TSV with the columns variable, value, unit, days_from_scan,
    rows in the order of the source. Rows with a name, a place or an identifying number, and rows whose value is not a short plain value, are
    dropped; ages over 89 become 90+. `days_from_scan` is an integer, empty for a value without a date, and `UNKNOWN_DAY` if the date cannot
    be compared with the scan's. Raises DataError if the text is not a table with these columns.
    """
    rows = _read_rows(text)
    columns = {column for row in rows[:1] for column in row if column}
    if rows and not {"variable", "value"} <= columns:
        message = "the health record (record.csv) needs the columns variable and value; unit, days_from_scan and date are optional"
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
    row: dict[str, str], dates: DateShift, identifying: Sequence[IdentityPattern], scan_day: date | None
) -> tuple[str, ...] | None:
    """Clean one row: the four cells of the result, or None if the row is dropped."""
    variable, value, unit = (_plain(row.get(column)) for column in ("variable", "value", "unit"))
    # dropped: personal variables, long values, and cells with one of the patient's identifiers
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
    named = [mentioned_days(cell, scan_day) for cell in (variable, value, unit) if cell and not NUMBER.fullmatch(cell)]
    return cells[0] or "", cells[1] or "", cells[2] or "", _days(row, scan_day, [day for days in named for day in days])


def _clean_cell(cell: str, dates: DateShift, scan_day: date | None) -> str | None:
    """Clean one cell: dates are shifted and ages top-coded; None if anything else in it identifies."""
    if not cell or NUMBER.fullmatch(cell):
        return cell
    note = clean_note(cell, dates, None, scan_day=scan_day)
    return None if set(note.counts) - {"date", "age"} else note.text


def _plain(cell: str | None) -> str:
    return re.sub(r"\s+", " ", cell or "").strip()


def _days(row: dict[str, str], scan_day: date | None, named: Sequence[date | None]) -> str:
    """Compute the days from the scan; only differences are published, never dates.

    `named`: days mentioned in the other cells, None for one that cannot be read; one after the scan puts the whole row after it. Returns the
    latest of all as an integer, rounded up (half a day after the scan is a day after it); empty for a value without a date, and for one more
    than 89 years before the scan, which would reveal an age. `UNKNOWN_DAY` if a date cannot be compared.
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
