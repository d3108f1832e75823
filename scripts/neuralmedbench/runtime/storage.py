"""Full and read-only disks, and folders in the place of files: reported as one line with the next step, never as bad data or a traceback."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from neuralmedbench.errors import ConfigError, StorageError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})
LEAST_ROOM_BYTES = 2**20
"""A disk with less free space counts as full."""
AGAIN = "run the same command again: what was finished is kept"


def has_room(place: Path | int, room_bytes: int) -> bool:
    """Return whether a disk has free space.

    Parameters
    ----------
    place : Path or int
        A folder, or the descriptor of an open file.
    room_bytes : int
        Space needed.

    Returns
    -------
    bool
        True also for a file system that does not report its size. Quotas are not considered.
    """
    disk = os.statvfs(place)
    return disk.f_blocks == 0 or disk.f_bavail * disk.f_frsize >= room_bytes


def open_private(path: str, flags: int) -> int:
    """Open a file, as `opener` of `open`: a new one is readable for its owner alone, later rights are left as they are."""
    return os.open(path, flags, 0o600)


def check_project(root: Path = Path()) -> None:
    """Refuse to plan where Snakemake cannot work (Snakemake itself would print a traceback).

    Raises
    ------
    ConfigError
        If the path of the project has a brace, which Snakemake takes for the beginning of a wildcard.
    StorageError
        If the folder of Snakemake's records cannot be written, or its disk is full.
    """
    if set("{}") & set(str(root.absolute())):
        message = "this folder, or one above it, has a brace in its name, which Snakemake takes for a wildcard; rename or move it"
        raise ConfigError(message)
    records = root / ".snakemake"
    if not os.access(records if records.exists() else root, os.W_OK):
        message = f"Snakemake cannot keep its records here: .snakemake is read-only or not yours; make it writable and {AGAIN}"
        raise StorageError(message)
    if not has_room(root, LEAST_ROOM_BYTES):
        message = f"no room left on the disk of this folder; free some space and {AGAIN}"
        raise StorageError(message)


def check_places(outputs: Iterable[str]) -> None:
    """Refuse to start a run if the folder of an output cannot be written.

    Raises
    ------
    StorageError
        With the folder.
    """
    for folder in sorted({Path(output).parent for output in outputs}):
        place = next(place for place in (folder, *folder.parents) if place.exists())
        if not os.access(place, os.W_OK):
            message = f"{display_path(place)} cannot be written: it is read-only or not yours; make it writable and {AGAIN}"
            raise StorageError(message)


def disk_full() -> OSError:
    """Return the error of a full disk, for programs and C++ libraries that report it unspecifically or not at all."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_cause(error: BaseException) -> OSError | None:
    """Return the full-disk error among the causes of an error, however often it was wrapped, or None."""
    return next((cause for cause in _causes(error) if cause.errno in FULL), None)


def as_storage_error(error: Exception, outputs: Sequence[Path]) -> StorageError | None:
    """Turn a disk error, or a folder in the place of a file, into a message with the next step; None for other errors.

    Only outputs are named: other paths could be those of raw files.
    """
    known = FULL | FORBIDDEN | {errno.EROFS, errno.EISDIR}
    cause = next((cause for cause in _causes(error) if cause.errno in known), None)
    if cause is None:
        return None
    output = _touched(cause, outputs)
    where = display_path(output or outputs[0]) if outputs else "its output"
    if cause.errno in FULL:
        return StorageError(f"no room left on the disk (or in the quota) for {where}; free some space and {AGAIN}")
    if cause.errno == errno.EROFS:
        return StorageError(f"{where} cannot be written: its disk or folder is read-only; make it writable and {AGAIN}")
    if cause.errno == errno.EISDIR:
        return StorageError(
            f"a folder stands where a file is read or written for {where}; give the path of a file, or move the folder away"
        )
    if output is None:
        return StorageError(f"no permission for a file that is read to make {where}; give yourself permission and {AGAIN}")
    return StorageError(f"no permission to write {where}; give yourself permission for its folder and {AGAIN}")


def _causes(error: BaseException) -> Iterator[OSError]:
    """Yield the OSErrors in the chain of causes and contexts of an error, itself included."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, OSError):
            yield one
        waiting += [one.__context__, one.__cause__]


def _touched(cause: OSError, outputs: Sequence[Path]) -> Path | None:
    """Return the output in whose folder an OSError occurred, or None."""
    if not isinstance(cause.filename, str | bytes | os.PathLike):
        return None
    place = Path(os.fsdecode(cause.filename)).absolute()
    inside = [output for output in outputs if place.is_relative_to(output.absolute().parent)]
    # a folder that could not be created is above the output
    return next(iter([*inside, *(output for output in outputs if output.absolute().is_relative_to(place))]), None)


def display_path(path: Path) -> str:
    """Format a path for a message: relative to the project; only the name of a file elsewhere."""
    absolute = path.absolute()
    return absolute.relative_to(Path.cwd()).as_posix() if absolute.is_relative_to(Path.cwd()) else path.name
