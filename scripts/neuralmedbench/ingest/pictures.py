"""A data set of loose pictures to neutral names: row 7 of its table becomes `img-000007.png`."""

from __future__ import annotations

import base64
import binascii
import codecs
import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote_to_bytes

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.digests import sha256_of, sha256_of_value
from neuralmedbench.files.inside import file_inside
from neuralmedbench.files.plain_pictures import MAX_BYTES, mime_type, open_picture, write_picture
from neuralmedbench.records.case import PictureFate, PictureManifest

URI = "data:"
MAX_URI = 256 * 2**20
ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "image/x-ms-bmp": "image/bmp"}
SUFFIXES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".bmp": "image/bmp", ".gif": "image/gif", ".tif": "image/tiff",
    ".tiff": "image/tiff", ".webp": "image/webp", ".jp2": "image/jp2",
}  # fmt: skip


def ingest_pictures(benchmark: str, table: Path, root: Path, out: Path) -> PictureManifest:
    """Copy the pictures of a data set.

    Parameters
    ----------
    benchmark : str
        Name of the benchmark.
    table : Path
        CSV with the column `file_path`: a path relative to `root`, or a data URI. Only the table of an imported data set may have no row.
    root : Path
        Folder of the pictures.
    out : Path
        Folder for `pictures/`.

    Returns
    -------
    PictureManifest
        One fate a row, in the order of the table; what is absent, lies outside the folder or is no single picture is quarantined.
        Checks: `pictures_type_disagrees`.

    Raises
    ------
    ConfigError
        If the table is absent, no CSV in UTF-8, or lacks the column.
    DataError
        If it has no row, unless it is that of an imported data set.
    """
    fates = [_take(number, root, name, out) for number, name in enumerate(_file_paths(table), start=1)]
    if not fates and root == table.parent:  # an imported data set may be words alone
        message = f"{table.name}: the table has no row"
        raise DataError(message)
    digest = sha256_of_value([sha256_of(table), *(fate.sha256 for fate in fates)])
    flags = Counter(f"pictures_{flag}" for fate in fates for flag in fate.flags)
    return PictureManifest(benchmark=benchmark, stage="ingest", source_sha256=digest, pictures=tuple(fates), checks=dict(flags))


def _file_paths(table: Path) -> list[str]:
    before = csv.field_size_limit(MAX_URI)
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
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
    finally:
        csv.field_size_limit(before)


def _take(number: int, folder: Path, name: str, out: Path) -> PictureFate:
    image_id = f"img-{number:06d}"
    uri = name[: len(URI)].lower() == URI
    fate = PictureFate(image_id=image_id, path=f"pictures/{image_id}.png", sha256="")
    return take_picture(fate, lambda: _from_uri(name) if uri else _from_file(folder, name), out)


def take_picture(fate: PictureFate, read: Callable[[], tuple[bytes, str]], out: Path) -> PictureFate:
    """Write the pixels of one picture.

    Parameters
    ----------
    fate : PictureFate
        Whose it is, and where it shall lie below `out`.
    read : callable
        Gives the bytes of the file and the MIME type that its name claims (empty when it claims none); a DataError keeps the picture back.
    out : Path
        Folder that the path starts from.

    Returns
    -------
    PictureFate
        With its digest and flags, or quarantined with the reason.
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
    # the bytes decide: a wrong name or type says nothing about the pixels, but something about where they came from
    flags = ("type_disagrees",) if claimed and claimed != mime_type(content) else ()
    return replace(fate, sha256=sha256_of(out / fate.path), flags=flags)


def content_of(path: Path) -> bytes:
    """Read a file that is to be a picture; DataError when it is empty or too large."""
    if path.stat().st_size > MAX_BYTES:
        message = f"a file of more than {MAX_BYTES // 10**6} MB"
        raise DataError(message)
    content = path.read_bytes()
    if not content:
        message = "an empty file (0 bytes)"
        raise DataError(message)
    return content


def _from_uri(uri: str) -> tuple[bytes, str]:
    """Bytes of a data URI and the MIME type that it claims."""
    head, _, body = uri.partition(",")
    kind, *options = (part.strip().lower() for part in head[len(URI) :].split(";"))
    try:
        content = base64.b64decode("".join(body.split()), validate=True) if "base64" in options else unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        message = "a data URI that cannot be decoded"
        raise DataError(message) from None
    return content, ALIASES.get(kind, kind)


def _from_file(folder: Path, name: str) -> tuple[bytes, str]:
    """Bytes of a file and the MIME type that its suffix claims; a text file may hold a data URI."""
    path = file_inside(folder, name)
    content = content_of(path)
    start = content.removeprefix(codecs.BOM_UTF8)
    if start[: len(URI)].lower() == URI.encode():
        return _from_uri(start.decode("ascii", "replace").strip())
    return content, SUFFIXES.get(path.suffix.lower(), "")
