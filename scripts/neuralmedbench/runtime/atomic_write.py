"""Write files and folders atomically: a killed process leaves the old one or the new one."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from neuralmedbench.runtime.locks import try_lock

PREFIX = ".partial-"
"""How the names of half-done folders begin; `.dvcignore` names it too."""

_swept: set[Path] = set()


def is_partial(path: Path) -> bool:
    """Whether a path is, or lies in, a half-done folder."""
    return any(part.startswith(PREFIX) for part in path.parts)


@contextmanager
def partial_folder(parent: Path) -> Iterator[Path]:
    """Give an empty folder to work in, inside `parent`; it is gone when the block ends.

    Parameters
    ----------
    parent : Path
        Where it shall lie; made when it is not there. What dead processes left in it is removed first.

    Yields
    ------
    Path
        The folder; only its owner can look into it.
    """
    parent.mkdir(parents=True, exist_ok=True)
    if parent.absolute() not in _swept:  # once a process: a folder can hold thousands of files
        _swept.add(parent.absolute())
        sweep(parent)
    folder, held = _make(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def sweep(parent: Path) -> None:
    """Remove the half-done folders of dead processes; those of living ones stay."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:  # somebody else was faster, or it is no folder
            continue
        try:
            if try_lock(held):  # otherwise its writer lives
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # this file system knows no locks: then nobody can tell
            pass
        finally:
            os.close(held)


def _make(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # another process swept it before it could be held
            continue
        try:
            locked = try_lock(held)
        except OSError:  # no locks here: nobody will sweep it
            return folder, held
        if locked and folder.is_dir():
            return folder, held
        os.close(held)  # another process is sweeping it


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
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
def atomic_folder(path: Path) -> Iterator[Path]:
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
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
        if private:
            partial.chmod(0o600)
