"""The folder with the files of a data set: records which tables were read, and reads nothing outside it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.files.external_files import delimited_rows, json_line_rows
from neuralmedbench.files.inside import file_inside
from neuralmedbench.records.words import LONGEST_NAME, quote

SHOWN = 8


class RowError(DataError):
    """A row that cannot be used; `found` is what it has, apart from the reason, by which refused rows are counted."""

    def __init__(self, reason: str, found: str = "") -> None:
        super().__init__(reason)
        self.found = found


class SourceFolder:
    """Reads tables and pictures of one folder, which must exist (DataError); `read` lists the tables that were read."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            message = "the folder of the data set is not there; name the folder that holds its files with --from"
            raise DataError(message)
        self.folder = folder
        self.read: list[str] = []

    def has(self, name: str) -> bool:
        """Return True if the folder has a file of this name."""
        return (self.folder / name).is_file()

    def find(self, *patterns: str) -> list[Path]:
        """Return the files of the first pattern with a match, sorted; DataError, which lists the existing files, if none has one."""
        for pattern in patterns:
            if found := sorted(path for path in self.folder.glob(pattern) if path.is_file()):
                return found
        there = sorted(path.name for path in self.folder.iterdir() if not path.name.startswith("."))
        more = f" and {len(there) - SHOWN} more" if len(there) > SHOWN else ""
        message = f"expected {' or '.join(patterns)} in the folder, found {', '.join(there[:SHOWN]) or 'nothing'}{more}"
        raise DataError(message)

    def file(self, name: str) -> Path:
        """Return the path of a file that an adapter reads itself, and record it as read."""
        return self._remember(self.folder / name)

    def json(self, path: Path) -> Any:
        """Read a JSON file; DataError if it is invalid."""
        try:
            return json.loads(self._remember(path).read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError):  # a wrong encoding is a ValueError too
            message = f"{path.name}: not valid JSON in UTF-8"
            raise DataError(message) from None

    def rows(self, path: Path, columns: Sequence[str] = (), *, under: str = "") -> Iterator[dict[str, Any]]:
        """Read a table row by row: `.csv`, `.tsv`, `.jsonl`, `.json` (a list of objects, or an object of them below `under`, or one) or `.parquet`.

        Cells of CSV and TSV are text. DataError if the file is damaged, or, with the existing columns, if one is missing.
        """
        readers = {".csv": _delimited, ".tsv": _delimited, ".jsonl": _lines, ".parquet": _parquet}
        if path.suffix.lower() == ".json":
            rows = self._objects(path, under)
        elif path.suffix.lower() in readers:
            rows = readers[path.suffix.lower()](self._remember(path))
        else:
            sheet = "; save each sheet as CSV in UTF-8, with commas" if path.suffix.lower() in {".xlsx", ".xls", ".ods"} else ""
            message = f"{path.name}: expected .csv, .tsv, .json, .jsonl or .parquet{sheet}"
            raise DataError(message)
        # every row is checked: tables of objects may differ from row to row
        for number, row in enumerate(rows, start=1):
            if missing := [column for column in columns if column not in row]:
                there = ", ".join(sorted(row))
                message = f"{path.name}, row {number}: the column {missing[0]!r} is missing; found {there}"
                raise DataError(message)
            yield row

    def picture(self, name: str, *, folder: str = "", beside: Path | None = None) -> Path:
        """Return the path of a picture in `folder`, below the data set's folder or that of the table `beside`.

        RowError, which says where it was expected, if the name is empty, or the picture missing or outside the data set's folder.
        """
        if not name:
            message = "the file name of a picture is empty; name its file, or leave the picture out of the row"
            raise RowError(message)
        places = dict.fromkeys(("", beside.parent.relative_to(self.folder).as_posix() if beside else ""))
        paths = [(PurePosixPath(place) / folder / name).as_posix() for place in places]
        # the last place raises the error
        for path in paths[:-1]:
            if (self.folder / path).is_file():
                return file_inside(self.folder, path, "a picture")
        try:
            return file_inside(self.folder, paths[-1], "a picture")
        except DataError as error:
            where = f"{f'in {folder}/ ' if folder else ''}below the folder of the data set{' or beside its table' if beside else ''}"
            message = f"{error}, {where}; add the file, or correct its name in the row" if str(error).endswith("there") else str(error)
            raise RowError(message, quote(name, LONGEST_NAME)) from None

    def _remember(self, path: Path) -> Path:
        name = path.relative_to(self.folder).as_posix()
        if name not in self.read:
            self.read.append(name)
        return path

    def _objects(self, path: Path, under: str) -> Iterator[dict[str, Any]]:
        value = self.json(path)
        if under:
            if not isinstance(value, dict) or under not in value:
                found = ", ".join(sorted(value)[:SHOWN]) if isinstance(value, dict) else "no object"
                message = f"{path.name}: expected a list under the key {under!r}, found {found}"
                raise DataError(message)
            value = value[under]
        # an object of objects is a table whose keys are ids
        if isinstance(value, dict) and all(isinstance(row, dict) for row in value.values()):
            value = [{"_key": key, **row} for key, row in value.items()]
        elif isinstance(value, dict):
            value = [value]  # one record per file
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            message = f"{path.name}: expected a list of objects, or one object"
            raise DataError(message)
        yield from value


def _delimited(path: Path) -> Iterator[dict[str, Any]]:
    return ({name: cell or "" for name, cell in row.items()} for _, row in delimited_rows(path))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return (row for _, row in json_line_rows(path))


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=32):
                yield from batch.to_pylist()
    except (pa.ArrowInvalid, OSError):
        message = f"{path.name}: not a Parquet file, or a damaged one"
        raise DataError(message) from None


def decoded(text: str) -> bytes:
    """Decode a base64 picture, with or without the header of a data URI; DataError if that fails."""
    body = text.partition(",")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        message = "a picture in the table is not base64"
        raise DataError(message) from None
