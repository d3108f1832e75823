"""Read and write tables of records as Parquet, with a schema derived from the record, and result tables as CSV."""

from __future__ import annotations

import csv
import gc
import math
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from importlib.machinery import ModuleSpec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import ValidationError

from neuralmedbench.errors import DataError
from neuralmedbench.files.json_files import place_of_fault, record_adapter
from neuralmedbench.runtime.atomic_write import atomic_file

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table like `table.to_pylist(maps_as_pydicts="strict")`; equal texts of a column share one object."""
    names = table.schema.names
    columns = [[value for chunk in column.chunks for value in _values(chunk)] for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(array: pa.Array) -> list[Any]:
    """Return the values of an array; nulls are None."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_string(kind):
        return _texts(array)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        parts = (_values(part) for part in array.flatten())
        return _with_nulls(array, [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)])
    if pa.types.is_map(kind):
        keys, items = _values(array.keys), _values(array.items)
        return _with_nulls(array, [_map(keys[first:end], items[first:end]) for first, end in _ranges(array)])
    if pa.types.is_list(kind):
        inner = _values(array.values)
        return _with_nulls(array, [inner[first:end] for first, end in _ranges(array)])
    # NumPy numbers have no None: nulls are filled here and restored by `_with_nulls`
    filled = array.fill_null(pa.scalar(0).cast(kind)) if array.null_count else array
    return _with_nulls(array, filled.to_numpy(zero_copy_only=False).tolist())


def _texts(array: pa.StringArray) -> list[str | None]:
    # each different text becomes one object; the index after the last one stands for null
    encoded = array.dictionary_encode()
    words = np.append(encoded.dictionary.to_numpy(zero_copy_only=False), np.array([None], dtype=object))
    places = encoded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    return list(words[places])


def _ranges(array: pa.ListArray) -> Iterator[tuple[int, int]]:
    return pairwise(array.offsets.to_numpy().tolist())


def _map(keys: list[Any], items: list[Any]) -> dict[Any, Any]:
    entries = dict(zip(keys, items, strict=True))
    if len(entries) < len(keys):
        message = "a key is repeated in a map"
        raise KeyError(message)
    return entries


def _with_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    nulls = array.is_null().to_numpy(zero_copy_only=False).tolist()
    return [None if null else value for null, value in zip(nulls, values, strict=True)]


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the cyclic garbage collector in a block that creates many records.

    Records have no reference cycles, so it never frees one, but would traverse all of them repeatedly.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _shown(path: Path) -> str:
    """Return the path of a table for a message: several benchmarks and stages have tables of the same name."""
    return (path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(*path.parts[-3:])).as_posix()


SCALARS = {bool: "bool_", int: "int64", float: "float64", str: "string"}


def _arrow_type(hint: Any) -> pa.DataType:
    """Return the Arrow type of an annotation: all types are nullable, a tuple is a list, a dict a map, a record a struct; else TypeError."""
    import pyarrow as pa

    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _arrow_type(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return pa.list_(_arrow_type(arguments[0]))
    if origin is dict:
        return pa.map_(pa.string(), _arrow_type(arguments[1]))
    if isinstance(hint, type) and is_dataclass(hint):
        return pa.struct(list(arrow_schema(hint)))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return pa.string()
    if hint in SCALARS:
        return getattr(pa, SCALARS[hint])()
    message = f"no Arrow type for {hint!r}"
    raise TypeError(message)


_schemas: dict[type, pa.Schema] = {}


def arrow_schema(record: type) -> pa.Schema:
    """Return the Arrow schema of a record, columns in the order of its fields; to derive it for each file would take a twentieth of the time of the tables."""
    import pyarrow as pa

    if record not in _schemas:
        hints = get_type_hints(record)
        _schemas[record] = pa.schema([pa.field(entry.name, _arrow_type(hints[entry.name])) for entry in fields(record)])
    return _schemas[record]


R = TypeVar("R")


def write_records(path: Path, record: type[R], rows: Iterable[R], *, key: Callable[[R], Any]) -> None:
    """Write records as Parquet, sorted by key, so that equal rows give equal bytes.

    Parameters
    ----------
    path : Path
        The file, written atomically.
    record : type
        Class of the records.
    rows : iterable of record
        The rows.
    key : callable
        Sort key of a row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    _keep_pandas_out()
    version = sys.modules[record.__module__].SCHEMA_VERSION
    schema = arrow_schema(record).with_metadata({"record": record.__name__, "schema_version": str(version)})
    values = record_adapter(list[record]).dump_python(sorted(rows, key=key))  # type: ignore[valid-type]
    # the schema is given, not inferred: columns without any value keep their type
    with atomic_file(path) as partial:
        pq.write_table(pa.Table.from_pylist(values, schema=schema), partial, compression="zstd")


def read_by_item(path: Path, record: type[R]) -> dict[str, R]:
    """Read a table with one row an item, by the item's id; errors as in `read_records`."""
    rows: list[Any] = read_records(path, record)
    return {row.item_id: row for row in rows}


def read_records(path: Path, record: type[R]) -> list[R]:
    """Read a table written by `write_records`.

    Parameters
    ----------
    path : Path
        The file.
    record : type
        Class of the records.

    Returns
    -------
    list of record
        The rows in the order of the file.

    Raises
    ------
    DataError
        If the file is absent, not Parquet, or has other columns than the record. A table of a former `schema_version` may lack columns that
        have a default today.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    _keep_pandas_out()
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except FileNotFoundError:
        message = f"{_shown(path)}: the table is not there; run the stage that writes it"
        raise DataError(message) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of the content
            raise
        message = f"{_shown(path)}: not a Parquet file, or a damaged one; delete it and run its stage again"
        raise DataError(message) from None
    expected = arrow_schema(record).names
    lacking = _added_since(table.schema.metadata, record) - set(table.schema.names)
    if table.schema.names != [name for name in expected if name not in lacking]:
        differing = sorted(set(table.schema.names) ^ set(expected))
        message = f"{_shown(path)}: columns do not fit {record.__name__} ({', '.join(differing)}); run its stage again"
        raise DataError(message)
    try:
        with gc_paused():
            rows: list[R] = record_adapter(list[record]).validate_python(rows_of(table))  # type: ignore[valid-type]
    except ValidationError as error:
        message = f"{_shown(path)}: a value does not fit {record.__name__} at {place_of_fault(error)}; run its stage again"
        raise DataError(message) from None
    return rows


def _added_since(metadata: Mapping[bytes, bytes] | None, record: type) -> set[str]:
    """Return the columns that a table of a former version may lack: those with a default; none if the table is of today's version."""
    version = int((metadata or {}).get(b"schema_version", b"0"))
    if version >= sys.modules[record.__module__].SCHEMA_VERSION:
        return set()
    return {entry.name for entry in fields(record) if entry.default is not MISSING or entry.default_factory is not MISSING}


class _NoPandas:
    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return None


@cache
def _keep_pandas_out() -> None:
    """Prevent pyarrow from importing pandas, which it tries once, with the first list that it converts: a third of the time of a short job."""
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
"""Beginning of a cell that spreadsheets take for a formula, after any apostrophes."""


def guard_cell(text: str) -> str:
    r"""Put an apostrophe before a text that a spreadsheet would run as a formula; numbers stay as they are.

    Examples
    --------
    >>> guard_cell("=1+1"), guard_cell("-0.25"), guard_cell("'=1"), guard_cell("glioma")
    ("'=1+1", '-0.25', "''=1", 'glioma')
    """
    if not FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def unguard_cell(text: str) -> str:
    """Return the text that `guard_cell` was given."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def write_table(path: Path, rows: Iterable[dict[str, Any]], columns: Iterable[str], *, guarded: bool = True) -> None:
    """Write a table as CSV: fixed columns, floats with six decimals, an empty cell for None and NaN.

    Parameters
    ----------
    path : Path
        The file, written atomically.
    rows : iterable of dict
        The rows in their final order; keys must be among the columns.
    columns : iterable of str
        The columns in order.
    guarded : bool
        Guard the cells against spreadsheets (`guard_cell`), which `read_table` undoes; False for tables that other programs read.

    Raises
    ------
    KeyError
        If a row has a key that is not a column.
    """
    names = list(columns)
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            if unknown := set(row) - set(names):
                raise KeyError(", ".join(sorted(unknown)))
            cells = {name: _cell(row.get(name)) for name in names}
            writer.writerow({name: guard_cell(cell) if guarded and isinstance(cell, str) else cell for name, cell in cells.items()})


def _cell(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:z.6f}"
    if isinstance(value, str):  # csv does not quote a lone carriage return, which would end the row
        return value.replace("\r\n", "\n").replace("\r", "\n")
    return value


def read_table(path: Path) -> list[dict[str, str]]:
    """Read a result table written by `write_table`, cells as text.

    Raises
    ------
    DataError
        If the file is absent or another program saved it in another encoding.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [
                {name: unguard_cell(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in csv.DictReader(file)
            ]
    except FileNotFoundError:
        message = f"{_shown(path)}: the table is not there; run build_tables"
        raise DataError(message) from None
    except (UnicodeDecodeError, csv.Error):
        message = f"{_shown(path)}: not a table in UTF-8, as it was written; delete it and run build_tables"
        raise DataError(message) from None
