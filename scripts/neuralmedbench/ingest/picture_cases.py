"""Cases whose pictures are not scans: pictures, notes and record to neutral names, as pixels and text and nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.cases import CaseRow, quarantine_on_error, write_case
from neuralmedbench.files.identity import MIN_DIGITS, Identity, write_identity
from neuralmedbench.files.picture_cases import count_pictures, picture_manifest
from neuralmedbench.files.raw_index import RawIndex, RawPicture, read_raw_index
from neuralmedbench.ingest.cases import copy_texts
from neuralmedbench.ingest.pictures import SUFFIXES, content_of, take_picture
from neuralmedbench.ingest.raw_files import checked_bytes
from neuralmedbench.records.case import CaseRecord, PictureFate, PictureManifest, State

DATED = re.compile(r"(?:19|20)\d\d(?:[-.]?\d\d){0,2}")
OWN_WORDS = frozenset({"pictures", "picture", "text", "texts", "note", "notes", "record", "review", "tools", "case", "sub", "patient"})
"""Words of our own paths: a case that is called by one of them is named by none."""


def ingest_picture_cases(benchmark: str, rows: Sequence[CaseRow], raw: Path, out: Path) -> PictureManifest:
    """Copy the pictures, notes and records of all cases of a table.

    Parameters
    ----------
    benchmark : str
        Name of the benchmark.
    rows : sequence of CaseRow
        Its case table; excluded cases are passed over.
    raw : Path
        `data/raw/<benchmark>`, which holds the private index of each case.
    out : Path
        Folder to fill: `sub-<case>/` with `case.json`, `identity.json`, `pictures/` and `text/`; what it held of cases before is removed.

    Returns
    -------
    PictureManifest
        One fate a picture, by case. A case with a text that changed since it was listed is kept back whole.

    Raises
    ------
    ConfigError
        If the table says what a series shows.
    DataError
        If the private index of a case is not there.
    """
    if told := [row.case_id for row in rows if row.sequence_overrides]:
        message = (
            f"case {told[0]}: sequence_overrides is for series of scans; say what pictures show in files.csv, and list the cases again"
        )
        raise ConfigError(message)
    for old in out.glob("sub-*"):
        shutil.rmtree(old)
    cases: list[CaseRecord] = []
    for row in sorted((row for row in rows if not row.exclude), key=lambda row: row.case_id):
        folder = out / f"sub-{row.case_id}"
        index = read_raw_index(raw / row.case_id / "files.json")
        pictures = tuple(_take(row.case_id, number, picture, folder) for number, picture in enumerate(index.pictures, start=1))
        base = CaseRecord(
            benchmark=benchmark,
            case_id=row.case_id,
            patient_id=index.patient_id,
            stage="ingest",
            source_sha256=index.source_sha256,
            pictures=pictures,
            raw_files=count_pictures(pictures),
        )
        case = quarantine_on_error(base, partial(_with_texts, base, index, raw, folder))
        if case.state is State.QUARANTINED:
            shutil.rmtree(folder, ignore_errors=True)
        write_identity(folder / "identity.json", identity_of(index))
        write_case(folder / "case.json", case)
        cases.append(case)
    return picture_manifest(benchmark, "ingest", out, cases)


def _take(case_id: str, number: int, picture: RawPicture, folder: Path) -> PictureFate:
    fate = PictureFate(
        image_id=f"{case_id}-{number:02d}",
        path=f"pictures/{number:02d}.png",
        sha256="",
        case_id=case_id,
        sequence=picture.sequence or "unknown",
        plane=picture.plane,
    )

    def read() -> tuple[bytes, str]:
        path = Path(picture.path)
        if path.is_file():
            content_of(path)
        return checked_bytes(path, picture.sha256, f"picture {number}"), SUFFIXES.get(path.suffix.lower(), "")

    return take_picture(fate, read, folder)


def _with_texts(base: CaseRecord, index: RawIndex, raw: Path, folder: Path) -> CaseRecord:
    if all(picture.state is not State.OK for picture in base.pictures):
        message = f"no usable picture among {len(base.pictures)}: {base.pictures[0].reason}"
        raise DataError(message)
    notes, record, unread = copy_texts(index, raw / index.case_id, folder / "text")
    return replace(base, notes=notes, record=record, quality={"texts_unreadable": float(unread)} if unread else {})


def identity_of(index: RawIndex) -> Identity:
    """Give what the words say by which the folder calls a patient: long numbers, and words that may be a name.

    Examples
    --------
    >>> identity_of(RawIndex(case_id="a", patient_id="b", files=(), words=("Vandermeer_Anna", "48-213-371", "p7", "MS", "2031"), scan_date="20310314"))
    Identity(names=('Anna', 'Vandermeer'), places=(), numbers=('48-213-371',), uids=(), scan_date='20310314')
    """
    # the year or the day of an examination is no number of the patient, and notes are full of years
    numbers = {word for word in index.words if sum(letter.isdigit() for letter in word) >= MIN_DIGITS and not DATED.fullmatch(word)}
    words = {part for word in index.words for part in re.split(r"[\W_]+", word)}
    # three capitals are an abbreviation more often than a name
    names = {word for word in words if word.isalpha() and word[0].isupper() and len(word) > (4 if word.isupper() else 2)}
    return Identity(
        names=tuple(sorted(word for word in names if word.casefold() not in OWN_WORDS)),
        numbers=tuple(sorted(numbers)),
        scan_date=index.scan_date,
    )
