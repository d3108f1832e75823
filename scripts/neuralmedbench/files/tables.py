"""Tables of records: Parquet files whose schema is the record's."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from neuralmedbench.errors import DataError
from neuralmedbench.files.arrow_rows import rows_of
from neuralmedbench.files.json_files import record_adapter
from neuralmedbench.files.memory import uncollected
from neuralmedbench.records.schema import arrow_schema
from neuralmedbench.runtime.atomic_write import whole_file

R = TypeVar("R")


def write_records(path: Path, record: type[R], rows: Iterable[R], *, key: Callable[[R], Any]) -> None:
    """Write records as Parquet, sorted by their key, so that equal rows are equal bytes.

    Parameters
    ----------
    path : Path
        The file; it is whole or absent.
    record : type
        The record's class.
    rows : iterable of record
        The rows.
    key : callable
        Sort key of a row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    version = sys.modules[record.__module__].SCHEMA_VERSION
    schema = arrow_schema(record).with_metadata({"record": record.__name__, "schema_version": str(version)})
    values = record_adapter(list[record]).dump_python(sorted(rows, key=key))  # type: ignore[valid-type]
    with whole_file(path) as partial:
        pq.write_table(pa.Table.from_pylist(values, schema=schema), partial, compression="zstd")


def read_records(path: Path, record: type[R]) -> list[R]:
    """Read a table that `write_records` wrote.

    Parameters
    ----------
    path : Path
        The file.
    record : type
        The record's class.

    Returns
    -------
    list of record
        The rows in the order of the file.

    Raises
    ------
    DataError
        If the file is absent, is not Parquet, or its columns are not the record's.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except FileNotFoundError:
        message = f"{path.name}: the table is not there; run the stage that writes it"
        raise DataError(message) from None
    except pa.ArrowInvalid:
        message = f"{path.name}: not a Parquet file; delete it and run its stage again"
        raise DataError(message) from None
    expected = arrow_schema(record)
    if table.schema.names != expected.names:
        odd = sorted(set(table.schema.names) ^ set(expected.names))
        message = f"{path.name}: columns do not fit {record.__name__} ({', '.join(odd)}); run its stage again"
        raise DataError(message)
    try:
        with uncollected():
            rows: list[R] = record_adapter(list[record]).validate_python(rows_of(table))  # type: ignore[valid-type]
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        message = f"{path.name}: a value does not fit {record.__name__} at {where}; run its stage again"
        raise DataError(message) from None
    return rows


def write_table(path: Path, rows: Iterable[dict[str, Any]], columns: Iterable[str]) -> None:
    """Write a result table as CSV: fixed columns, floats with six decimals, empty cell for None.

    Parameters
    ----------
    path : Path
        The file; it is whole or absent.
    rows : iterable of dict
        The rows in their final order; keys must be among the columns.
    columns : iterable of str
        The columns in order.

    Raises
    ------
    KeyError
        If a row has a key that is not a column.
    """
    names = list(columns)
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            if unknown := set(row) - set(names):
                raise KeyError(", ".join(sorted(unknown)))
            writer.writerow({name: _cell(row.get(name)) for name in names})


def _cell(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6f}"
    return value


def read_table(path: Path) -> list[dict[str, str]]:
    """Read a result table that `write_table` wrote, its cells as text.

    Raises
    ------
    DataError
        If the file is absent.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        message = f"{path.name}: the table is not there; run build_tables"
        raise DataError(message) from None
