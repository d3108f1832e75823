"""What a person says about files of an own folder: `files.csv`."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import KINDS
from neuralmedbench.records.case import Plane

FILES_TABLE = "files.csv"
FILES_COLUMNS = ("path", "case", "patient", "sequence", "plane", "date")
PLANES = tuple(plane.value for plane in Plane)


@dataclass(frozen=True)
class Told:
    """One row of `files.csv`: what a person says about a file or a folder; empty where nothing is said."""

    case: str = ""
    patient: str = ""
    sequence: str = ""
    plane: str = ""
    date: str = ""


def read_told(source: Path) -> dict[str, Told]:
    """Read `files.csv` of an own folder.

    Parameters
    ----------
    source : Path
        The folder.

    Returns
    -------
    dict of str to Told
        By path relative to the folder; empty without such a table.

    Raises
    ------
    ConfigError
        If it is no table in UTF-8 with these columns, a path is not in the folder or stands there twice, or a kind, a plane or a date is
        none.
    """
    path = source / FILES_TABLE
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (csv.Error, UnicodeDecodeError):
        message = f"{FILES_TABLE}: not a CSV file in UTF-8; save it as CSV UTF-8"
        raise ConfigError(message) from None
    columns = set(reader.fieldnames or ())
    if "path" not in columns or columns - {*FILES_COLUMNS} or any(None in row for row in rows):
        message = f"{FILES_TABLE}: expected the columns {', '.join(FILES_COLUMNS)} (all but path optional), separated by commas"
        raise ConfigError(message)
    told: dict[str, Told] = {}
    for number, row in enumerate(rows, start=2):
        place, said = _row(source, number, row)
        if place in told:
            message = f"{FILES_TABLE}, line {number}: this path has a row already; keep one"
            raise ConfigError(message)
        told[place] = said
    return told


def _row(source: Path, number: int, row: dict[str, str]) -> tuple[str, Told]:
    name = (row["path"] or "").strip().strip("/")
    if not name or not _is_inside(source, name):
        message = f"{FILES_TABLE}, line {number}: the path is not in the folder; paths are relative to it"
        raise ConfigError(message)
    said = {column: (row.get(column) or "").strip() for column in FILES_COLUMNS[1:]}
    if said["sequence"] and said["sequence"] not in KINDS:
        message = f"{FILES_TABLE}, line {number}, column sequence: expected one of {', '.join(KINDS)}, or nothing"
        raise ConfigError(message)
    if said["plane"] and said["plane"] not in PLANES:
        message = f"{FILES_TABLE}, line {number}, column plane: expected one of {', '.join(PLANES)}, or nothing"
        raise ConfigError(message)
    if said["date"] and not _is_day(said["date"]):
        message = f"{FILES_TABLE}, line {number}, column date: expected a day as YYYY-MM-DD, or nothing"
        raise ConfigError(message)
    return PurePosixPath(name).as_posix(), Told(**said)


def _is_inside(source: Path, name: str) -> bool:
    """Whether a path exists in the folder and does not climb out of it."""
    try:
        return (source / name).exists() and (source / name).resolve().is_relative_to(source.resolve()) and ".." not in name.split("/")
    except (OSError, ValueError):  # a name that no file system takes
        return False


def _is_day(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return False
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def told_of(told: dict[str, Told], source: Path, path: Path) -> Told | None:
    """Look up what `files.csv` says about a file: its own row, else that of the nearest folder above it."""
    relative = path.relative_to(source)
    return next((told[place.as_posix()] for place in (relative, *relative.parents) if place.as_posix() in told), None)
