"""File locks between processes (flock), taken without waiting; the locked file has the process id of the holder."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class LockHolder:
    """Process id of the holder of a lock (0: unknown), and its note."""

    pid: int
    note: str = ""


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file or folder; return False if another process holds the lock.

    Parameters
    ----------
    descriptor : int
        The open file or folder. The lock ends when it is closed, or with the process.
    shared : bool
        True for a shared lock, which only an exclusive one prevents: a test for an exclusive holder.

    Raises
    ------
    OSError
        If the file system does not support locks.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_holder(descriptor: int, note: str = "") -> None:
    """Write the id of this process and a note into a file that it has locked; a full disk is ignored, the lock holds anyway."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n{note}".encode(), 0)


def read_holder(descriptor: int) -> LockHolder:
    """Read the holder of a lock."""
    pid, _, note = os.pread(descriptor, 4096, 0).decode("utf-8", "replace").partition("\n")
    return LockHolder(int(pid) if pid.isdigit() else 0, note)
