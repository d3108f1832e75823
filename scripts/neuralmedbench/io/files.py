"""Files that are whole or absent, and the digests by which they are known."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from neuralmedbench.errors import DataError
from neuralmedbench.io.partial import is_partial, partial_folder

R = TypeVar("R")
_adapters: dict[Any, TypeAdapter[Any]] = {}


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path` to write to, and rename it when the block ends well.

    Parameters
    ----------
    path : Path
        The file that shall appear; its folder is made.

    Yields
    ------
    Path
        The temporary name. It keeps the suffixes of `path`, because some writers go by them.
    """
    with partial_folder(path.parent) as folder:
        partial = folder / path.name
        yield partial
        _to_disk(partial)
        os.replace(partial, path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside `path` to fill, and put it in the place of `path` when the block ends well.

    Parameters
    ----------
    path : Path
        The folder that shall appear; what it held before is replaced. At every moment it is the old one, absent, or the new one.

    Yields
    ------
    Path
        The temporary folder, empty.
    """
    with partial_folder(path.parent) as work:
        new = work / path.name
        new.mkdir()
        yield new
        for attempt in count():
            # aside and not deleted in place: a process that is killed in the middle must not leave half of the old one
            with suppress(FileNotFoundError):
                os.replace(path, work / f"old-{attempt}")
            try:
                os.replace(new, path)
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
            else:
                return  # otherwise another writer was faster: its folder goes the same way


def _to_disk(path: Path) -> None:
    """Make sure of the content before the name: a power cut must not leave an empty file that counts as done."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write UTF-8 text; the file is whole or absent, and nobody but its owner ever reads a private one."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
        if private:
            partial.chmod(0o600)


def write_json(path: Path, value: object, *, private: bool = False) -> None:
    """Write JSON with sorted keys, so that equal values are equal bytes; `private` as in `write_text`."""
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
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        message = f"{path.name}: not valid JSON ({type(error).__name__}); delete it and run its stage again"
        raise DataError(message) from None


def record_adapter(record: Any) -> TypeAdapter[Any]:
    """Make the reader and writer of a kind of record once: it takes longer than a record, and a gather reads thousands."""
    if record not in _adapters:
        _adapters[record] = TypeAdapter(record)
    return _adapters[record]


def write_json_record(path: Path, value: object) -> None:
    """Write a record (a dataclass) as JSON."""
    write_json(path, record_adapter(type(value)).dump_python(value, mode="json"))


def read_json_record(path: Path, record: type[R], *, remedy: str) -> R:
    """Read a record that `write_json_record` wrote.

    Parameters
    ----------
    path : Path
        The file.
    record : type
        The record's class.
    remedy : str
        What to do when it does not fit; ends the message.

    Returns
    -------
    record
        The record.

    Raises
    ------
    DataError
        If the file is absent, is not JSON or does not fit; the message names the place, never a value.
    """
    try:
        value: R = record_adapter(record).validate_python(read_json(path))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        message = f"{path.name}: does not fit {record.__name__} at {where}; {remedy}"
        raise DataError(message) from None
    return value


def sha256_of(path: Path) -> str:
    """Hex SHA-256 digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bytes_with_digest(path: Path, sha256: str) -> bytes | None:
    """Read a file; None when it is not there, or is another one than the digest says."""
    content = path.read_bytes() if path.is_file() else None
    return content if content is not None and hashlib.sha256(content).hexdigest() == sha256 else None


def sha256_of_files(folder: Path) -> dict[str, str]:
    """Digests of all files below a folder, by POSIX path relative to it, sorted; half-done work of others is passed over."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not is_partial(path.relative_to(folder)))
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}


def sha256_of_value(value: object) -> str:
    """Digest of a JSON value in canonical form: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
