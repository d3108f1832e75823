"""One writer per output: a command that survived a killed run and the same command of the next run never write at the same time.

The lock of an output is a file in the user's temporary folder, named by the digest of the output's path. A command also knows the run that
it belongs to: those of a killed run do not start, and those of one run share its budget.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from neuralmedbench.errors import BusyError, ConfigError, StorageError
from neuralmedbench.runtime.locks import LockHolder, read_holder, try_lock, write_holder
from neuralmedbench.runtime.storage import display_path

OUTPUT = "--out"
"""Arguments that begin like this name files or folders that the command writes."""
WAIT_S = 60.0
"""Time to wait for a process that still writes the same output."""
WAIT_VARIABLE = "NMB_WAIT_S"
"""Environment variable that overrides `WAIT_S`."""
ANNOUNCE_AFTER_S = 1.0
POLL_S = 0.1
RUN_VARIABLE = "NMB_RUN"
"""Environment variable that a run sets for its commands: `<pid namespace>/<pid>/<name>`. Commands started by a person have none."""


def outputs_of(arguments: Sequence[str]) -> list[Path]:
    """Return the outputs among the arguments of a command; none if it only prints its help."""
    if {"-h", "--help"} & set(arguments):
        return []
    values = [value for name, value in pairwise(arguments) if name.startswith(OUTPUT) and "=" not in name]
    values += [entry.partition("=")[2] for entry in arguments if entry.startswith(OUTPUT) and "=" in entry]
    return [Path(value) for value in values]


@contextmanager
def only_writer(outputs: Sequence[Path]) -> Iterator[None]:
    """Hold the locks of these outputs, for this user and machine; BusyError after `WAIT_S` seconds, or if the run has ended."""
    with ExitStack() as stack:
        for output in sorted({output.resolve() for output in outputs}):  # a fixed order prevents deadlocks
            stack.enter_context(_locked(output))
        yield


def wait_for_writers(outputs: Sequence[str]) -> None:
    """Wait for commands that survived an earlier run and still write outputs of this run.

    Otherwise Snakemake would delete files while they are written, and take for finished what such a command writes later.

    Parameters
    ----------
    outputs : sequence of str
        Outputs of the run.

    Raises
    ------
    BusyError
        If a command still writes after `WAIT_S` seconds; with its process id.
    """
    places = [Path(output).resolve() for output in outputs]
    wait = _Wait()
    for lock in sorted(lock_folder().glob("*.lock")):
        # a command locks the folder that it writes, Snakemake lists the files in it
        while (holder := _holder_of(lock)) and any(place.is_relative_to(holder.note) for place in places):
            wait.pause(holder)


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    place = lock_folder() / f"{hashlib.sha256(os.fsencode(output)).hexdigest()}.lock"
    lock = _take(place, output)
    try:
        if run_has_ended():
            message = f"{display_path(output)}: the run that started this command has ended, nothing was done; run the same command again"
            raise BusyError(message)
        write_holder(lock, str(output))
        yield
    finally:
        place.unlink(missing_ok=True)  # before the lock ends: a waiting process notices that the file is gone
        os.close(lock)


def _take(place: Path, output: Path) -> int:
    """Wait for the lock of an output; return the descriptor that holds it."""
    wait = _Wait()
    while True:
        try:
            lock = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _no_temporary_folder(error) from None
        holder = None
        if try_lock(lock):
            with suppress(FileNotFoundError):
                if os.fstat(lock).st_ino == place.stat().st_ino:
                    return lock
            # otherwise the previous holder removed the file between the two calls: the lock is on a deleted file
        else:
            holder = LockHolder(read_holder(lock).pid, str(output))
        os.close(lock)
        if holder:
            wait.pause(holder)


class _Wait:
    """Waiting of one command: announces each process once, and gives up after `WAIT_S` seconds."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._limit_s = _wait_s()
        self._announced: set[LockHolder] = set()

    def pause(self, holder: LockHolder) -> None:
        """Sleep for a moment; BusyError after `WAIT_S` seconds in total."""
        waited = time.monotonic() - self._start
        who = f"process {holder.pid or '(number unknown)'} still writes {display_path(Path(holder.note))}"
        if waited > self._limit_s:
            end = f" or end it with `kill {holder.pid}`" if holder.pid else ""
            message = f"{who}; when it belongs to a run that was killed, wait for its end{end}, then run the same command again"
            raise BusyError(message)
        if waited > ANNOUNCE_AFTER_S and holder not in self._announced:
            self._announced.add(holder)
            print(f"{who}; waiting for it to end", file=sys.stderr, flush=True)
        time.sleep(POLL_S)


def _holder_of(place: Path) -> LockHolder | None:
    """Return the holder of a lock, or None."""
    try:
        lock = os.open(place, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # shared, so that two runs can test the lock at the same time
        return None if try_lock(lock, shared=True) else read_holder(lock)
    finally:
        os.close(lock)


def _wait_s() -> float:
    text = os.environ.get(WAIT_VARIABLE, "")
    try:
        return float(text) if text else WAIT_S
    except ValueError:
        message = f"{WAIT_VARIABLE} must be a number of seconds"
        raise ConfigError(message) from None


def lock_folder() -> Path:
    """Return this user's folder of locks on this machine; StorageError if it cannot be used."""
    try:
        folder = Path(tempfile.gettempdir(), f"neuralmedbench-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _no_temporary_folder(error) from None
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():  # in a shared folder, another user may have taken the name
        message = f"{folder.name} in the folder for temporary files belongs to another user; set TMPDIR to another folder"
        raise StorageError(message)
    return folder


def _no_temporary_folder(error: OSError) -> StorageError:
    why = "none has room" if isinstance(error, FileNotFoundError) else error.strerror
    return StorageError(f"the folder for temporary files cannot be written ({why}); free some space in it, or set TMPDIR to another one")


def name_this_run(*, main: bool = True) -> None:
    """Set `NMB_RUN` for the commands that this process starts.

    Parameters
    ----------
    main : bool
        True if this process is a run of its own. A job on a cluster reads the Snakefile again and starts commands, but keeps the name of
        its run.
    """
    name = (not main and _parts()[2]) or _new_name()
    os.environ[RUN_VARIABLE] = f"{_pid_namespace()}/{os.getpid()}/{name}"


def this_run() -> str:
    """Return the name of the run that started this command; unlike a process id it is never reused.

    A command started by a person is a run of its own.
    """
    return _parts()[2] or _own_name()


def run_has_ended() -> bool:
    """Return whether the run that started this command has ended; False for a command started by a person."""
    namespace, pid, _ = _parts()
    if not pid.isdigit() or namespace != _pid_namespace():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _parts() -> tuple[str, str, str]:
    namespace, pid, name, *_ = [*os.environ.get(RUN_VARIABLE, "").split("/"), "", "", ""]
    return namespace, pid, name


def _new_name() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


@functools.cache
def _own_name() -> str:
    return _new_name()


def _pid_namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:  # not Linux: there is only one namespace
        return "0"
