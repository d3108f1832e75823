"""A data set of loose pictures to neutral names: row 7 of its table becomes `img-000007.png`."""

from __future__ import annotations

import csv
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.io.files import sha256_of, sha256_of_value
from neuralmedbench.io.plain_pictures import open_picture, write_picture
from neuralmedbench.records.case import PictureFate, PictureManifest, State


def ingest_pictures(benchmark: str, table: Path, out: Path) -> PictureManifest:
    """Copy the pictures of a data set.

    Parameters
    ----------
    benchmark : str
        Name of the benchmark.
    table : Path
        CSV with the column `file_path`, relative to the table's folder.
    out : Path
        Folder for `pictures/`.

    Returns
    -------
    PictureManifest
        One fate a row, in the order of the table; what is absent, lies outside the folder or is no picture is quarantined.

    Raises
    ------
    ConfigError
        If the table is absent or lacks the column.
    DataError
        If it has no row.
    """
    fates = [_take(number, table.parent, name, out) for number, name in enumerate(_file_paths(table), start=1)]
    if not fates:
        message = f"{table.name}: the table has no row"
        raise DataError(message)
    digest = sha256_of_value([sha256_of(table), *(fate.sha256 for fate in fates)])
    return PictureManifest(benchmark=benchmark, stage="ingest", source_sha256=digest, pictures=tuple(fates))


def _file_paths(table: Path) -> list[str]:
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


def _take(number: int, folder: Path, name: str, out: Path) -> PictureFate:
    image_id = f"img-{number:06d}"
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            message = "the path leaves the folder of the table"
            raise DataError(message)
        if not path.is_file():
            message = "the file is not there"
            raise DataError(message)
        target = out / "pictures" / f"{image_id}.png"
        write_picture(target, open_picture(path.read_bytes()))
    except DataError as error:
        return PictureFate(image_id=image_id, path="", sha256="", state=State.QUARANTINED, reason=str(error))
    return PictureFate(image_id=image_id, path=f"pictures/{image_id}.png", sha256=sha256_of(target))
