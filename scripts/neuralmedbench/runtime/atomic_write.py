"""Write files and folders atomically: a killed process leaves the old one or the new one."""

from __future__ import annotations

import csv
import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from neuralmedbench.runtime.locks import try_lock

PREFIX = ".partial-"
"""Prefix of temporary folders; `.dvcignore` has it too."""

_swept: set[Path] = set()


def is_partial(path: Path) -> bool:
    """Return whether a path is, or is in, a temporary folder of an unfinished write."""
    return any(part.startswith(PREFIX) for part in path.parts)


@contextmanager
def partial_folder(parent: Path) -> Iterator[Path]:
    """Make a temporary folder inside `parent`, removed at the end of the block.

    Parameters
    ----------
    parent : Path
        Its parent, created if absent. Temporary folders that dead processes left there are removed first.

    Yields
    ------
    Path
        The empty folder, readable by its owner only.
    """
    parent.mkdir(parents=True, exist_ok=True)
    if parent.absolute() not in _swept:  # once per process: a folder can hold thousands of files
        _swept.add(parent.absolute())
        sweep(parent)
    folder, lock = _make(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(parent: Path) -> None:
    """Remove the temporary folders of dead processes; those of running ones are locked and stay."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:  # removed by another process, or not a folder
            continue
        try:
            if try_lock(lock):  # otherwise its writer is running
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # a file system without locks: nothing is known about the writer
            pass
        finally:
            os.close(lock)


def _make(parent: Path) -> tuple[Path, int]:
    """Make a temporary folder and lock it; return it and the descriptor that holds the lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # another process swept it before it was locked
            continue
        try:
            locked = try_lock(lock)
        except OSError:  # a file system without locks: no process will sweep it
            return folder, lock
        if locked and folder.is_dir():
            return folder, lock
        os.close(lock)  # another process is sweeping it


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, and rename it to `path` if the block ends without error.

    Parameters
    ----------
    path : Path
        The final file; its folder is created if absent.

    Yields
    ------
    Path
        The temporary path. It has the suffixes of `path`, because some writers choose the format by them.
    """
    with partial_folder(path.parent) as folder:
        partial = folder / path.name
        yield partial
        _to_disk(partial)
        os.replace(partial, path)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill, and put it in place of `path` if the block ends without error.

    Parameters
    ----------
    path : Path
        The final folder; an old one is replaced. At any moment it is the old folder, absent, or the new one.

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
            # moved away, not deleted in place: a process killed meanwhile must not leave half of the old folder
            with suppress(FileNotFoundError):
                os.replace(path, work / f"old-{attempt}")
            try:
                os.replace(new, path)
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
            else:
                return  # otherwise another writer was faster: its folder is replaced in the next attempt


def _to_disk(path: Path) -> None:
    """Flush the content to disk before the rename: a power cut must not leave an empty file under the final name."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_tsv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write rows, the names of the columns first, as tab-separated UTF-8 text atomically."""
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write UTF-8 text atomically; only its owner can read a private file."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
        if private:
            partial.chmod(0o600)
