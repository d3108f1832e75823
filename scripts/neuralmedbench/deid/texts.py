"""The notes and the record of a case, cleaned."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.notes.name_model import NameModel
from neuralmedbench.deid.notes.records import clean_record, record_identity
from neuralmedbench.deid.notes.sections import SHOWN, cut_sections
from neuralmedbench.files.identity import identity_pattern
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime.atomic_write import write_text


@dataclass(frozen=True)
class TextRules:
    """What a benchmark asks of its texts.

    Attributes
    ----------
    cut : tuple of str
        Headings of the parts of notes that are cut out because they hold the answer.
    model : NameModel or None
        Recognises names beside the patterns.
    """

    cut: tuple[str, ...] = ()
    model: NameModel | None = None


@dataclass(frozen=True)
class _Cleaning:
    """What cleans the texts of one case, and the counts of what it did."""

    rules: HeaderRules
    texts: TextRules
    scan_day: date | None
    listed: re.Pattern[str] | None
    checks: Counter[str]


def clean_texts(
    case: CaseRecord,
    source: Path,
    out: Path,
    rules: HeaderRules,
    scan_day: date | None,
    *,
    checks: Counter[str],
    texts: TextRules | None = None,
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
    texts : TextRules, optional
        What is cut, and a model of names; nothing and none without.

    Returns
    -------
    tuple of tuple of str and str
        Paths of the notes and of the record (empty without one) relative to `out`; a text of which nothing may be shown is not among them.
    """
    record = _read(source / case.record, checks, "record") if case.record else ""
    listed = identity_pattern(record_identity(record)) if record else None
    cleaning = _Cleaning(rules, texts or TextRules(), scan_day, listed, checks)
    notes = tuple(path for path in case.notes if _write_note(source / path, out / path, cleaning))
    target = "text/record.tsv"
    return notes, target if record and _write_record(record, out / target, cleaning) else ""


def _read(path: Path, checks: Counter[str], what: str) -> str:
    """Read a text; empty when it is none that can be read, which is counted with the reason."""
    try:
        return decode_text(path.read_bytes())
    except UnreadableTextError as error:
        checks[f"{what}_unreadable_{error.reason}"] += 1
        return ""


def _write_note(source: Path, target: Path, cleaning: _Cleaning) -> bool:
    """Write one cleaned note; False when nothing of it may be shown."""
    text, cut = cut_sections(_read(source, cleaning.checks, "notes"), cleaning.texts.cut)
    note = clean_note(
        text,
        cleaning.rules.dates,
        cleaning.rules.identifying,
        scan_day=cleaning.scan_day,
        listed=cleaning.listed,
        model=cleaning.texts.model,
    )
    cleaning.checks.update({f"notes_{kind}": number for kind, number in note.counts.items()})
    if cut:
        cleaning.checks["notes_sections_cut"] += cut
    if not note.text.replace(SHOWN, "").strip():
        return False
    write_text(target, note.text)
    return True


def _write_record(text: str, target: Path, cleaning: _Cleaning) -> bool:
    """Write the cleaned record; False when no row of it may be shown."""
    record = clean_record(text, cleaning.rules.dates, cleaning.rules.identifying, cleaning.scan_day, listed=cleaning.listed)
    cleaning.checks.update(record.counts)
    if not record.text:
        return False
    write_text(target, record.text)
    return True
