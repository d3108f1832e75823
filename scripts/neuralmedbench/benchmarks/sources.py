"""What is known of local cases without their answers: de-identified pictures, notes and record."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.imaging import SEQUENCE_ORDER
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.templates import Templates
from neuralmedbench.records.case import CaseRecord, PictureFate, SliceRow, State
from neuralmedbench.records.columns import RECORD_COLUMNS
from neuralmedbench.records.items import ItemImage, slice_image
from neuralmedbench.records.model_marks import without_marks

TEMPLATE = "record"
"""Template of the health record."""

WHOLE_DAYS = re.compile(r"[+-]?\d{1,6}")


@dataclass(frozen=True)
class PromptRecordRow:
    """One value of a health record for its template; `days` from the index scan are 0 or negative, None if it has no date."""

    variable: str
    value: str
    unit: str
    days: int | None


@dataclass(frozen=True, kw_only=True)
class CaseSource:
    """One case without its answer: record, notes, and pictures, either cut from scans or supplied as pictures.

    `oracle` are slices that were cut at the lesion for an arm, beside the others; no item has them.
    """

    case: CaseRecord
    images: tuple[SliceRow, ...]
    notes: tuple[str, ...]
    record: str
    pictures: tuple[ItemImage, ...] = ()
    oracle: tuple[SliceRow, ...] = ()

    @property
    def shown(self) -> tuple[ItemImage, ...]:
        """All pictures in the form of an item."""
        return (*map(slice_image, self.images), *self.pictures)


def read_sources(paths: Iterable[Path], slices: Sequence[SliceRow], templates: Templates) -> list[CaseSource]:
    """Gather notes, record and pictures of each case.

    Parameters
    ----------
    paths : iterable of Path
        `case.json` of the de-identified cases, quarantined ones included, relative to the repository.
    slices : sequence of SliceRow
        The pictures cut from the scans of all cases.
    templates : Templates
        The prompt templates, which include that of the health record.

    Returns
    -------
    list of CaseSource
        The cases with pictures, sorted by case id; their pictures by sequence, plane and position.

    Raises
    ------
    DataError
        If a note or a record is missing or does not fit.
    ConfigError
        If the template of the record is wrong.
    """
    cut: dict[str, list[SliceRow]] = defaultdict(list)
    for row in slices:
        cut[row.case_id].append(row)
    sources = []
    for path in paths:
        case = read_case(path)
        rows = sorted(cut[case.case_id], key=_reading_order)
        # under the policy lesion all slices are oracle slices, and are those of the items
        images = tuple(row for row in rows if not row.oracle) or tuple(rows)
        # pictures that were not cut from scans
        loose = [item_image(picture, path.parent) for picture in case.pictures if picture.state is State.OK]
        if case.state is State.OK and (images or loose):
            notes, record = read_notes(case, path.parent), read_record(case, path.parent, templates)
            beside = tuple(row for row in rows if row not in images)
            pictures = tuple(sorted(loose, key=_place))
            sources.append(CaseSource(case=case, images=images, notes=notes, record=record, pictures=pictures, oracle=beside))
    return sorted(sources, key=lambda source: source.case.case_id)


def _reading_order(row: SliceRow) -> tuple[int, str, str, float]:
    return *_place(row), row.position_mm


def _place(row: SliceRow | ItemImage) -> tuple[int, str, str]:
    place = SEQUENCE_ORDER.index(row.sequence) if row.sequence in SEQUENCE_ORDER else len(SEQUENCE_ORDER)
    return place, row.sequence, row.plane


def item_image(picture: PictureFate, folder: Path) -> ItemImage:
    """Convert a de-identified picture to the form of an item; its path is relative to `folder`."""
    return ItemImage(
        image_id=picture.image_id,
        path=(folder / picture.path).as_posix(),
        sha256=picture.sha256,
        volume_sha256=picture.sha256,
        sequence=picture.sequence,
        plane=picture.plane,
        role="picture",
        position_mm=None,
        mm_per_px=None,
        oracle=False,
    )


def read_notes(case: CaseRecord, folder: Path) -> tuple[str, ...]:
    """Read the de-identified notes of a case in chronological order, stripped, without empty ones."""
    texts = [without_marks(_text(case, folder / note)).strip() for note in case.notes]
    return tuple(text for text in texts if text)


def _text(case: CaseRecord, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        message = f"case {case.case_id}: a note or the record is missing or is not UTF-8; run deidentify again"
        raise DataError(message) from None


def read_record(case: CaseRecord, folder: Path, templates: Templates) -> str:
    """Render the health record of a case, one line per variable, such as `Sodium: 138 mmol/L (2 days before the scan)`.

    Values after the index scan could reveal the answer and are left out. DataError if the record is missing or lacks a column, ConfigError
    if its template is wrong.
    """
    rows = _record_rows(case, folder)
    return without_marks(templates.render(TEMPLATE, rows=rows)) if rows else ""


def _record_rows(case: CaseRecord, folder: Path) -> list[PromptRecordRow]:
    """Return the record values that enter a prompt: those without a date, and those up to the day of the scan.

    Rows with an unknown day (`columns.UNKNOWN_DAY`, or not an integer) are left out, because they may reveal the answer.
    """
    if not case.record:
        return []
    # QUOTE_NONE: a quotation mark is an ordinary character here; read as an opening quote it would swallow the following rows
    rows = csv.DictReader(_text(case, folder / case.record).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    if not set(RECORD_COLUMNS) <= set(rows.fieldnames or ()):
        message = f"case {case.case_id}: its record lacks one of the columns {', '.join(RECORD_COLUMNS)}; run deidentify again"
        raise DataError(message)
    kept: list[PromptRecordRow] = []
    for row in rows:
        cell = (row["days_from_scan"] or "").strip()
        days = int(cell) if WHOLE_DAYS.fullmatch(cell) else None
        # no date, or on or before the day of the scan
        if not cell or (days is not None and days <= 0):
            kept.append(PromptRecordRow(row["variable"], row["value"], row["unit"], days))
    return kept
