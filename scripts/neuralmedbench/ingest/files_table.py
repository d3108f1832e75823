"""`files.csv` of a source folder: what a person wrote about its files."""

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
class FileRow:
    """One row of `files.csv`: what a person wrote about a file or a folder; empty cells are empty."""

    case: str = ""
    patient: str = ""
    sequence: str = ""
    plane: str = ""
    date: str = ""


def read_files_table(source: Path) -> dict[str, FileRow]:
    """Read `files.csv` of a source folder.

    Returns: By path relative to the folder; empty without such a table. Raises ConfigError if it is no table in UTF-8 with these columns, a
    path is not in the folder or stands there twice, or a kind, a plane or a date is none.
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
    table: dict[str, FileRow] = {}
    for number, row in enumerate(rows, start=2):
        place, entry = _row(source, number, row)
        if place in table:
            message = f"{FILES_TABLE}, line {number}: this path has a row already; keep one"
            raise ConfigError(message)
        table[place] = entry
    return table


def _row(source: Path, number: int, row: dict[str, str]) -> tuple[str, FileRow]:
    name = (row["path"] or "").strip().strip("/")
    if not name or not _is_inside(source, name):
        message = f"{FILES_TABLE}, line {number}: the path is not in the folder; paths are relative to it"
        raise ConfigError(message)
    entry = {column: (row.get(column) or "").strip() for column in FILES_COLUMNS[1:]}
    if entry["sequence"] and entry["sequence"] not in KINDS:
        message = f"{FILES_TABLE}, line {number}, column sequence: expected one of {', '.join(KINDS)}, or nothing"
        raise ConfigError(message)
    if entry["plane"] and entry["plane"] not in PLANES:
        message = f"{FILES_TABLE}, line {number}, column plane: expected one of {', '.join(PLANES)}, or nothing"
        raise ConfigError(message)
    if entry["date"] and not _is_day(entry["date"]):
        message = f"{FILES_TABLE}, line {number}, column date: expected a day as YYYY-MM-DD, or nothing"
        raise ConfigError(message)
    return PurePosixPath(name).as_posix(), FileRow(**entry)


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


def row_of(table: dict[str, FileRow], source: Path, path: Path) -> FileRow | None:
    """Find the row of a file: its own, else that of the nearest folder above it."""
    relative = path.relative_to(source)
    return next((table[place.as_posix()] for place in (relative, *relative.parents) if place.as_posix() in table), None)
