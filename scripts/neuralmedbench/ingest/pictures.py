"""Ingest pictures (not scans), alone or as cases with notes: pixels and texts only, under neutral names."""

from __future__ import annotations

import base64
import binascii
import codecs
import csv
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote_to_bytes

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.cases import CaseRow, quarantine_on_error, write_case
from neuralmedbench.files.digests import sha256_of, sha256_of_value
from neuralmedbench.files.external_files import long_cells
from neuralmedbench.files.identity import MIN_DIGITS, Identity, write_identity
from neuralmedbench.files.inside import file_inside
from neuralmedbench.files.plain_pictures import (
    MAX_BYTES,
    MIME_AND_SUFFIX,
    TOO_LARGE,
    count_pictures,
    mime_type,
    open_picture,
    picture_manifest,
    write_picture,
)
from neuralmedbench.files.raw_folder import RawIndex, RawPicture, read_raw_index
from neuralmedbench.ingest.cases import copy_texts
from neuralmedbench.ingest.raw_files import checked_bytes
from neuralmedbench.records.case import CaseRecord, PictureFate, PictureManifest, State

URI = "data:"
ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "image/x-ms-bmp": "image/bmp"}
SUFFIXES = {f".{suffix}": mime for mime, suffix in MIME_AND_SUFFIX.values() if suffix != "img"} | {
    ".jpeg": "image/jpeg",
    ".tiff": "image/tiff",
}
DATED = re.compile(r"(?:19|20)\d\d(?:[-.]?\d\d){0,2}")
PATH_WORDS = frozenset({"pictures", "picture", "text", "texts", "note", "notes", "record", "review", "tools", "case", "sub", "patient"})
"""Words that occur in the pipeline's paths, and are therefore no identifying names."""


def ingest_pictures(benchmark: str, table: Path, root: Path, out: Path) -> PictureManifest:
    """Copy the pictures of a data set.

    Parameters
    ----------
    benchmark : str
        Name of the benchmark.
    table : Path
        CSV with the column `file_path`: a path relative to `root`, or a data URI. Only the table of an imported data set may be empty.
    root : Path
        Folder of the pictures.
    out : Path
        Folder for `pictures/`.

    Returns
    -------
    PictureManifest
        One fate per row, in the order of the table; a file that is absent, outside the folder or not a single picture is quarantined.
        Checks: `pictures_type_disagrees`.

    Raises
    ------
    ConfigError
        If the table is absent, not CSV in UTF-8, or lacks the column.
    DataError
        If it is empty, and not that of an imported data set.
    """
    fates = [_import_row(number, root, name, out) for number, name in enumerate(_file_paths(table), start=1)]
    if not fates and root == table.parent:  # an imported data set may consist of text only
        message = f"{table.name}: the table has no row"
        raise DataError(message)
    digest = sha256_of_value([sha256_of(table), *(fate.sha256 for fate in fates)])
    flags = Counter(f"pictures_{flag}" for fate in fates for flag in fate.flags)
    return PictureManifest(benchmark=benchmark, stage="ingest", source_sha256=digest, pictures=tuple(fates), checks=dict(flags))


def _file_paths(table: Path) -> list[str]:
    try:
        with long_cells(), table.open(encoding="utf-8-sig", newline="") as file:  # a cell may be a picture as data URI
            reader = csv.DictReader(file)
            if "file_path" not in (reader.fieldnames or ()):
                message = f"{table.name}: the column file_path is missing; it names each picture, relative to the table"
                raise ConfigError(message)
            return [row["file_path"] or "" for row in reader]
    except FileNotFoundError:
        message = "the table of pictures is not there; check `answers` of the benchmark's yaml"
        raise ConfigError(message) from None
    except (UnicodeDecodeError, csv.Error):
        message = f"{table.name}: not a CSV file in UTF-8; save it as CSV UTF-8"
        raise ConfigError(message) from None


def _import_row(number: int, folder: Path, name: str, out: Path) -> PictureFate:
    image_id = f"img-{number:06d}"
    uri = name[: len(URI)].lower() == URI
    fate = PictureFate(image_id=image_id, path=f"pictures/{image_id}.png", sha256="")
    return import_picture(fate, lambda: _from_uri(name) if uri else _from_file(folder, name), out)


def ingest_picture_cases(benchmark: str, rows: Sequence[CaseRow], raw: Path, out: Path) -> PictureManifest:
    """Copy the pictures, notes and records of all cases of a table.

    Parameters
    ----------
    benchmark : str
        Name of the benchmark.
    rows : sequence of CaseRow
        Its case table; excluded cases are skipped.
    raw : Path
        `data/raw/<benchmark>`, with the private index of each case.
    out : Path
        Folder to fill: `sub-<case>/` with `case.json`, `identity.json`, `pictures/` and `text/`; earlier cases in it are removed.

    Returns
    -------
    PictureManifest
        One fate per picture, sorted by case. A case with a text that changed since the listing is quarantined as a whole.

    Raises
    ------
    ConfigError
        If the table has sequence overrides, which are for scans.
    DataError
        If the private index of a case is absent.
    """
    if overridden := [row.case_id for row in rows if row.sequence_overrides]:
        message = (
            f"case {overridden[0]}: sequence_overrides is for series of scans; describe pictures in files.csv, and list the cases again"
        )
        raise ConfigError(message)
    for old in out.glob("sub-*"):  # one job writes all cases: remove those of earlier tables
        shutil.rmtree(old)
    cases: list[CaseRecord] = []
    for row in sorted((row for row in rows if not row.exclude), key=lambda row: row.case_id):
        folder = out / f"sub-{row.case_id}"
        index = read_raw_index(raw / row.case_id / "files.json")
        pictures = tuple(_import_one(row.case_id, number, picture, folder) for number, picture in enumerate(index.pictures, start=1))
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


def import_picture(fate: PictureFate, read: Callable[[], tuple[bytes, str]], out: Path) -> PictureFate:
    """Write the pixels of one picture below `out`; return its fate with digest and flags, or quarantined with the reason.

    `read` returns the bytes of the file and the MIME type that its name claims (empty if none); its DataError quarantines the picture.
    """
    try:
        content, claimed = read()
        picture = open_picture(content)
        if picture.getcolors(maxcolors=1):
            message = "all pixels are equal; the picture shows nothing"
            raise DataError(message)
        write_picture(out / fate.path, picture)
    except DataError as error:
        return fate.kept_back(str(error))
    # the bytes decide: a wrong name or type does not affect the pixels, but casts doubt on their origin
    flags = ("type_disagrees",) if claimed and claimed != mime_type(content) else ()
    return replace(fate, sha256=sha256_of(out / fate.path), flags=flags)


def content_of(path: Path) -> bytes:
    """Read a picture file; DataError if it is empty or too large."""
    if path.stat().st_size > MAX_BYTES:
        raise DataError(TOO_LARGE)
    content = path.read_bytes()
    if not content:
        message = "an empty file (0 bytes)"
        raise DataError(message)
    return content


def _from_uri(uri: str) -> tuple[bytes, str]:
    """Return the bytes of a data URI and the MIME type that it claims."""
    head, _, body = uri.partition(",")
    kind, *options = (part.strip().lower() for part in head[len(URI) :].split(";"))
    try:
        content = base64.b64decode("".join(body.split()), validate=True) if "base64" in options else unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        message = "a data URI that cannot be decoded"
        raise DataError(message) from None
    return content, ALIASES.get(kind, kind)


def _from_file(folder: Path, name: str) -> tuple[bytes, str]:
    """Return the bytes of a file and the MIME type that its suffix claims; a text file may contain a data URI."""
    path = file_inside(folder, name)
    content = content_of(path)
    start = content.removeprefix(codecs.BOM_UTF8)
    if start[: len(URI)].lower() == URI.encode():
        return _from_uri(start.decode("ascii", "replace").strip())
    return content, SUFFIXES.get(path.suffix.lower(), "")


def _import_one(case_id: str, number: int, picture: RawPicture, folder: Path) -> PictureFate:
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
            content_of(path)  # refuse an empty or too large file before its digest is compared
        return checked_bytes(path, picture.sha256, f"picture {number}"), SUFFIXES.get(path.suffix.lower(), "")

    return import_picture(fate, read, folder)


def _with_texts(base: CaseRecord, index: RawIndex, raw: Path, folder: Path) -> CaseRecord:
    if all(picture.state is not State.OK for picture in base.pictures):
        message = f"no usable picture among {len(base.pictures)}: {base.pictures[0].reason}"
        raise DataError(message)
    notes, record, unread = copy_texts(index, raw / index.case_id, folder / "text")
    return replace(base, notes=notes, record=record, quality={"texts_unreadable": float(unread)} if unread else {})


def identity_of(index: RawIndex) -> Identity:
    """Return possible identifiers among the words of a case's names and paths: long numbers, and words that may be a name.

    Examples
    --------
    >>> identity_of(RawIndex(case_id="a", patient_id="b", files=(), words=("Vandermeer_Anna", "48-213-371", "p7", "MS", "2031"), scan_date="20310314"))
    Identity(names=('Anna', 'Vandermeer'), places=(), numbers=('48-213-371',), uids=(), scan_date='20310314')
    """
    # a year or a date does not identify a patient, and notes are full of years
    numbers = {word for word in index.words if sum(letter.isdigit() for letter in word) >= MIN_DIGITS and not DATED.fullmatch(word)}
    words = {part for word in index.words for part in re.split(r"[\W_]+", word)}
    # up to four capitals are an abbreviation more often than a name
    names = {word for word in words if word.isalpha() and word[0].isupper() and len(word) > (4 if word.isupper() else 2)}
    return Identity(
        names=tuple(sorted(word for word in names if word.casefold() not in PATH_WORDS)),
        numbers=tuple(sorted(numbers)),
        scan_date=index.scan_date,
    )
