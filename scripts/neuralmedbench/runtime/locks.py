"""File locks between processes (flock): taken without waiting, and the holder's process number stands in the locked file."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class LockHolder:
    """The process that holds a lock (0: not known), and what it wrote beside its number."""

    pid: int
    note: str = ""


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file or folder until it is closed; False when another process holds the lock.

    Parameters
    ----------
    descriptor : int
        The open file or folder. The lock is gone when it is closed, or when its process ends.
    shared : bool
        Whether other shared locks are no obstacle: by this a process looks whether anybody holds the lock alone.

    Raises
    ------
    OSError
        If the file system knows no locks.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_holder(descriptor: int, note: str = "") -> None:
    """Write the number of this process, and a note, into a file that it has locked; on a full disk the lock holds all the same."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n{note}".encode(), 0)


def read_holder(descriptor: int) -> LockHolder:
    """Read who holds a lock."""
    pid, _, note = os.pread(descriptor, 4096, 0).decode("utf-8", "replace").partition("\n")
    return LockHolder(int(pid) if pid.isdigit() else 0, note)
