"""Append-only files of JSON lines.

A killed process leaves its last line whole, torn or unwritten. Readers skip a torn line, and the next one starts a line of its own.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuralmedbench.runtime.storage import open_private

Record = dict[str, Any]
_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def append(descriptor: int, lines: bytes) -> int:
    """Append whole lines to a file that is open for reading and appending; return its size.

    Raises
    ------
    OSError
        If the disk is full: then nothing was added.
    """
    size = os.fstat(descriptor).st_size
    torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
    data = b"\n" + lines if torn else lines
    if os.write(descriptor, data) < len(data):
        os.ftruncate(descriptor, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return size + len(data)


def append_line(path: Path, value: object, *, sync: bool = False) -> None:
    """Append one line to a file that only this user may read; OSError if the disk is full.

    Parameters
    ----------
    path : Path
        The file; created if absent.
    value : object
        What the line holds.
    sync : bool
        True to write it to the disk itself (fsync).
    """
    with open(path, "a+b", opener=open_private) as file:
        append(file.fileno(), json.dumps(value, sort_keys=True).encode() + b"\n")
        if sync:
            os.fsync(file.fileno())


def values(raw: bytes) -> Iterator[Any]:
    """Yield what the whole lines of a file hold."""
    for line in raw.split(b"\n"):
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


def read_log(path: Path) -> list[Record]:
    """Read the records of a log, without a lock; empty if it is absent."""
    return _records(path.read_bytes()) if path.exists() else []


def _records(raw: bytes) -> list[Record]:
    return [value for value in values(raw) if isinstance(value, dict)]


@dataclass
class Transaction:
    """One transaction.

    Attributes
    ----------
    new_records : list of dict
        Records that other processes added since the last transaction of this process; in the first transaction, the whole log.
    added : list of dict
        Records to append at the end of the transaction; dropped if it ends with an error.
    truncate : bool
        True to replace the log by `added`, because its records no longer matter.
    """

    new_records: list[Record]
    added: list[Record] = field(default_factory=list)
    truncate: bool = False


class SharedLog:
    """A log that several processes write, one transaction at a time; for one thread per process.

    Parameters
    ----------
    path : Path or None
        The file; created, with its folders, by the first transaction. None: a log of this process alone, never written.

    Notes
    -----
    A transaction holds `flock` on the file.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file, self._process, self._inode = -1, 0, (0, 0)
        self._read_to = 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Read and write the log while no other process does.

        Yields
        ------
        Transaction
            With the new records; those put into `added` are written at the end.

        Raises
        ------
        OSError
            If the log cannot be opened, or its disk is full: then nothing was added.
        """
        if self._path is None:
            yield Transaction([])
            return
        self._lock(self._path)
        try:
            transaction = Transaction(self._new_records())
            yield transaction
            if transaction.truncate:
                self._replace(self._path, transaction.added)
            elif transaction.added:
                self._read_to = append(self._file, _lines(transaction.added))
        finally:
            if self._file >= 0:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def sync(self) -> None:
        """Flush added records to disk: without it a power cut can lose them (a killed process cannot)."""
        if self._file >= 0:
            os.fsync(self._file)

    def _lock(self, path: Path) -> None:
        while True:
            if self._file < 0 or self._process != os.getpid():  # a forked process shares the lock of its parent and needs its own
                self._open(path)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                status = path.stat()
            except FileNotFoundError:
                status = None
            if status and (status.st_dev, status.st_ino) == self._inode:
                return
            self.close()  # replaced by a truncation since, or removed by hand

    def _open(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file, self._process = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666), os.getpid()
        status = os.fstat(self._file)
        if self._inode != (status.st_dev, status.st_ino):
            self._inode, self._read_to = (status.st_dev, status.st_ino), 0

    def close(self) -> None:
        """Close the file; the next transaction opens it again."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _new_records(self) -> list[Record]:
        size = os.fstat(self._file).st_size
        if size <= self._read_to:
            self._read_to = size
            return []
        raw = os.pread(self._file, size - self._read_to, self._read_to)
        self._read_to = size
        return _records(raw)

    def _replace(self, path: Path, records: list[Record]) -> None:
        replacement = path.with_name(f".{path.name}.{os.getpid()}")
        replacement.write_bytes(_lines(records))
        replacement.replace(path)  # processes that wait for the old file notice the new inode
        self.close()
        self._open(path)
        self._read_to = os.fstat(self._file).st_size


def _lines(records: list[Record]) -> bytes:
    return "".join(f"{_encode(record)}\n" for record in records).encode()
