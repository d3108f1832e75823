"""Temporary folders beside what they become: held by their process as long as it lives, swept away when it died.

A killed process leaves its half-done work behind. It lies in folders that are versioned and gathered, so it has a name that
everybody passes over, and the next process that writes there removes it. A lock, not a process number, tells whether the writer
still lives: the system gives it up with the process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its writer lives, or this file system knows no locks: then nobody can tell
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
            fcntl.flock(held, fcntl.LOCK_EX)
        except OSError:  # no locks here: nobody will sweep it
            return folder, held
        if folder.is_dir():
            return folder, held
        os.close(held)
