"""Rows of tables that come from outside: text with separators, and lines of JSON."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError

MAX_CELL = 256 * 2**20
"""Longest cell of a table: pictures stand in some as base64."""


def delimited_rows(path: Path) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Read a CSV or TSV file row by row.

    Parameters
    ----------
    path : Path
        The file; tabs separate the cells of a `.tsv`, commas those of any other.

    Yields
    ------
    tuple of int and dict of str to (str or None)
        The line on which the row ends, and its cells by column; None for those that a short row lacks.

    Raises
    ------
    DataError
        If it is no table in UTF-8, a column stands twice, or a row has more cells than there are columns.
    """
    before = csv.field_size_limit(MAX_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            if double := [name for name, number in Counter(reader.fieldnames or ()).items() if number > 1]:
                message = f"{path.name}: the column {double[0]!r} stands twice"
                raise DataError(message)
            for row in reader:
                if None in row:
                    message = f"{path.name}: a row has more cells than the first line has names"
                    raise DataError(message)
                yield reader.line_num, row
    except (UnicodeDecodeError, csv.Error):
        message = f"{path.name}: not a table in UTF-8, or a cell of more than {MAX_CELL // 2**20} MiB"
        raise DataError(message) from None
    finally:
        csv.field_size_limit(before)


def json_line_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read lines of JSON objects.

    Parameters
    ----------
    path : Path
        The file; empty lines are passed over.

    Yields
    ------
    tuple of int and dict of str to object
        Number of the line, and its object.

    Raises
    ------
    DataError
        If the file is no such lines in UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        message = f"{path.name}, line {number}: expected an object"
                        raise DataError(message)
                    yield number, row
    except (ValueError, RecursionError):  # a wrong encoding is a ValueError too
        message = f"{path.name}: not lines of JSON in UTF-8"
        raise DataError(message) from None
