"""The files of a folder of one's own: what is walked, and what is left out because of its place or name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath

LINK_OUT = "a link that leads out of the folder"
LINK_TO_FOLDER = "a link to a folder, which is not followed"
LINK_TO_FILE = "a link to another file of the folder"
DEAD_LINK = "a link to nothing"
NO_FILE = "not a regular file"
BAD_NAME = "its name is not valid UTF-8; rename it"


def files_below(source: Path) -> tuple[list[Path], dict[Path, str]]:
    """Give the files that may be read, and why others may not.

    Returns: Files in the order of their paths; the files and links that are left out, with the reason. A link is followed only to a file
    inside the folder that is not found otherwise (as data sets under git-annex have them).
    """
    left_out: dict[Path, str] = {}
    files: list[Path] = []
    links: list[Path] = []
    for path in _walk(source, left_out):
        if not _is_text(path):
            left_out[path] = BAD_NAME
        elif path.is_symlink():
            links.append(path)
        elif path.is_file():
            files.append(path)
        else:
            left_out[path] = NO_FILE
    known = {path.resolve() for path in files}
    top = source.resolve()
    for link in links:
        target = link.resolve()
        reason = _why_not(target, top, known)
        if reason:
            left_out[link] = reason
        else:
            known.add(target)
            files.append(link)
    return sorted(files), left_out


def _why_not(target: Path, top: Path, known: set[Path]) -> str:
    if not target.is_relative_to(top):
        return LINK_OUT
    if not target.is_file():
        return DEAD_LINK
    return LINK_TO_FILE if target in known else ""


def _walk(source: Path, left_out: dict[Path, str]) -> Iterator[Path]:
    for folder, folders, names in os.walk(source):
        for name in [name for name in folders if name.startswith(".") or os.path.islink(os.path.join(folder, name))]:
            folders.remove(name)
            if not name.startswith("."):
                left_out[Path(folder, name)] = LINK_TO_FOLDER
        yield from (Path(folder, name) for name in names if not name.startswith("."))


def _is_text(path: Path) -> bool:
    try:
        path.as_posix().encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def printable_path(path: PurePath) -> str:
    """Write a path so that it can be stored as UTF-8 whatever its name holds."""
    return path.as_posix().encode("utf-8", "backslashreplace").decode("utf-8")
