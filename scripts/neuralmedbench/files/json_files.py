"""Read and write JSON files, and records as JSON or JSON lines; equal values give equal bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from neuralmedbench.errors import DataError
from neuralmedbench.runtime.atomic_write import atomic_file, write_text

R = TypeVar("R")
_adapters: dict[Any, TypeAdapter[Any]] = {}


def write_json(path: Path, value: object, *, private: bool = False) -> None:
    """Write JSON with sorted keys, so that equal values give equal bytes; `private` as in `write_text`."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n", private=private)


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    DataError
        If the file is absent or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"{path.name}: the file is not there; run the stage that writes it"
        raise DataError(message) from None
    except (ValueError, RecursionError) as error:  # another encoding, or a number of thousands of digits, is a ValueError too
        message = f"{path.name}: not valid JSON ({type(error).__name__}); delete it and run its stage again"
        raise DataError(message) from None


def record_adapter(record: Any) -> TypeAdapter[Any]:
    """Return the (de)serialiser of a record class, built once: building it takes longer than reading a record."""
    if record not in _adapters:
        _adapters[record] = TypeAdapter(record)
    return _adapters[record]


def place_of_fault(error: ValidationError) -> str:
    """Return the first field that does not fit, with the fields that hold it; empty for the value as a whole."""
    return ".".join(str(part) for part in error.errors()[0]["loc"])


def write_json_record(path: Path, value: object, *, without: frozenset[str] = frozenset()) -> None:
    """Write a record (a dataclass) as JSON, but for some fields."""
    write_json(path, record_adapter(type(value)).dump_python(value, mode="json", exclude=set(without)))


def read_json_record(path: Path, record: type[R], *, remedy: str) -> R:
    """Read a record from JSON.

    Parameters
    ----------
    path : Path
        The file.
    record : type
        Class of the record.
    remedy : str
        Next step at the end of the message if the content is invalid.

    Returns
    -------
    record
        The record.

    Raises
    ------
    DataError
        If the file is absent, not JSON or invalid; the message names the field, never a value.
    """
    try:
        value: R = record_adapter(record).validate_python(read_json(path))
    except ValidationError as error:
        message = f"{path.name}: does not fit {record.__name__} at {place_of_fault(error)}; {remedy}"
        raise DataError(message) from None
    return value


def write_lines(path: Path, record: type[R], rows: Iterable[R]) -> None:
    """Write records in the given order, one per line; fields with their default value are left out.

    Parameters
    ----------
    path : Path
        The file, written atomically.
    record : type
        Class of the records.
    rows : iterable of record
        The rows.
    """
    adapter = record_adapter(record)
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            value = adapter.dump_python(row, mode="json", exclude_defaults=True)
            file.write(json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n")


def read_lines(path: Path, record: type[R]) -> list[R]:
    """Read records written by `write_lines` or by a person.

    Parameters
    ----------
    path : Path
        The file; empty lines are skipped.
    record : type
        Class of the records.

    Returns
    -------
    list of record
        In the order of the file.

    Raises
    ------
    DataError
        If the file is absent, or a line is not JSON, has an unknown key or is invalid; the message names line and key, never a value.
    """
    adapter = record_adapter(record)
    known = set(record.__dataclass_fields__)  # type: ignore[attr-defined]
    rows: list[R] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    rows.append(_row(adapter, known, line, f"{path.name}, line {number}"))
    except FileNotFoundError:
        message = f"{path.as_posix()}: the file is not there; import the data set again (nmb benchmark import)"
        raise DataError(message) from None
    except UnicodeDecodeError:
        message = f"{path.name}: not UTF-8; save it as UTF-8"
        raise DataError(message) from None
    return rows


def _row(adapter: TypeAdapter[Any], known: set[str], line: str, where: str) -> Any:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        message = f"{where}: not valid JSON"
        raise DataError(message) from None
    if isinstance(value, dict) and (unknown := sorted(set(value) - known)):
        message = f"{where}: unknown key {unknown[0]!r}; known keys: {', '.join(sorted(known))}"
        raise DataError(message)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        problem = "missing" if error.errors()[0]["type"] == "missing" else "does not fit"
        message = f"{where}, {place_of_fault(error) or 'the line'}: {problem}"
        raise DataError(message) from None
