"""Processes of a program that a job owns: they end with the job, however it ends; what a killed job left is ended by the next one.

`main` runs as a process of its own between the job and the program, from this file alone. It holds the job's pipe as standard input: when
the pipe closes, because the job has closed it or is dead, all processes that descend from the program are ended. It keeps their numbers,
start times and commands in a record, for the case that it is killed itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

GRACE_S = 10.0
"""Time for a clean end (SIGTERM) before the processes are killed."""
AFTER_END_S = 1.0
"""The same for what a program leaves that has ended itself."""
LONGEST_PAUSE_S = 5.0
"""Longest pause between two looks at the processes; they change while the program starts."""
POLL_S = 0.05
PROC = Path("/proc")
SUFFIX = ".processes.json"
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
NOT_STARTED = 127


@dataclass(frozen=True)
class ProcessMark:
    """What tells a process from all others: number, start in clock ticks after boot, digest of its command, boot of the machine."""

    pid: int
    start: int
    command: str
    boot: str


@dataclass(frozen=True)
class _Stat:
    """Of `/proc/<pid>/stat`."""

    state: str
    parent: int
    start: int


def mark_of(pid: int) -> ProcessMark | None:
    """Return the mark of a running process; None if there is none, or it has ended and only waits to be reaped."""
    stat = _stat(pid)
    if stat is None or stat.state in "ZX":
        return None
    with suppress(OSError):
        command = hashlib.sha256((PROC / str(pid) / "cmdline").read_bytes()).hexdigest()[:16]
        return ProcessMark(pid, stat.start, command, _boot())
    return None


def descendants(pid: int) -> list[int]:
    """Return the numbers of all processes that descend from one."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            children.setdefault(stat.parent, []).append(int(entry.name))
    found, todo = list[int](), [pid]
    while todo:
        new = children.pop(todo.pop(), [])
        found += new
        todo += new
    return found


def end_recorded(folder: Path, supervisor: int | None = None) -> int:
    """End the processes that dead jobs have left on this machine; return how many there were.

    A process is ended only if its number, start time and command are those of the record, or if it descends from such a process.

    Parameters
    ----------
    folder : Path
        Folder with the records.
    supervisor : int, optional
        Only those of this supervisor, which is dead, whether its job lives or not.
    """
    ended = 0
    for record in sorted(folder.glob(f"{'*' if supervisor is None else supervisor}{SUFFIX}")):
        owners, owned = _read(record)
        if supervisor is None and any(mark_of(owner.pid) == owner for owner in owners):
            continue  # its job or its supervisor still lives
        marks = {mark for mark in owned if mark_of(mark.pid) == mark}
        marks |= {mark for one in marks for pid in descendants(one.pid) if (mark := mark_of(pid))}
        ended += len(marks)
        if _end(marks):
            record.unlink(missing_ok=True)
    return ended


def recorded(folder: Path, supervisor: int) -> list[int]:
    """Return the processes of one supervisor that are in its record; none before the program has started."""
    return [mark.pid for mark in _read(folder / f"{supervisor}{SUFFIX}")[1]]


def supervised(
    command: Sequence[str], *, folder: Path, log: Path, environment: dict[str, str], cwd: Path, keep_open: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a program under a supervisor of its own.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    folder : Path
        Folder of the records, on this machine.
    log : Path
        File for the output of the program; only this user may read it.
    environment : dict of str to str
        The whole environment of the program.
    cwd : Path
        Folder in which it runs.
    keep_open : sequence of int
        Descriptors that stay open until the last process has ended, such as those of locks.

    Returns
    -------
    subprocess.Popen
        The supervisor. The program ends when its `stdin` is closed; it ends itself when no process is left.
    """
    job = mark_of(os.getpid())
    owner = json.dumps(asdict(job) if job else {})
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        # isolated: nothing of the program's environment changes this interpreter
        return subprocess.Popen(
            [sys.executable, "-I", __file__, str(folder), owner, str(GRACE_S), *command],
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=stream,
            env=environment,
            cwd=cwd,
            pass_fds=tuple(keep_open),
            start_new_session=True,  # Ctrl-C reaches the job alone, which still waits for the calls in flight
        )
    finally:
        os.close(stream)


def main(argv: Sequence[str]) -> int:
    """Run a program until it ends or the job closes the pipe, then end what is left of it."""
    folder, owner, grace_s, command = Path(argv[0]), json.loads(argv[1]), float(argv[2]), argv[3:]
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    awake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)  # they only wake the loop below
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    system = ctypes.CDLL(None)
    system.prctl(SET_CHILD_SUBREAPER, 1)  # processes whose parent has ended become children of this one
    try:
        # a killed supervisor takes the program with it; what the program itself started is in the record
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=lambda: system.prctl(SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 it has no threads
        )
    except OSError as error:
        print(f"cannot be started: {error.strerror}", flush=True)
        return NOT_STARTED
    record, me = folder / f"{os.getpid()}{SUFFIX}", mark_of(os.getpid())
    owners = [owner, *([asdict(me)] if me else [])]
    written, pause, code = list[ProcessMark](), POLL_S, None
    while code is None:
        marks = [mark for pid in descendants(os.getpid()) if (mark := mark_of(pid))]
        if marks != written:
            _write(record, owners, marks)
            written = marks
        ready, _, _ = select.select([0, awake], [], [], pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
        if 0 in ready or signal.SIGTERM in _signals(awake):
            break
        code = _reap(program.pid)
    _end_children(grace_s if code is None else min(grace_s, AFTER_END_S))
    record.unlink(missing_ok=True)
    return 0 if code is None else code


def _signals(awake: int) -> bytes:
    try:
        return os.read(awake, 4096)
    except BlockingIOError:
        return b""


def _reap(program: int) -> int | None:
    """Reap the children that have ended; return the exit code of the program if it is one of them."""
    code = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == program:
                code = os.waitstatus_to_exitcode(ended[1])
    return code if code is None else code if code >= 0 else 128 - code


def _end_children(grace_s: float) -> None:
    """End all descendants of this process: those that ignore SIGTERM are killed."""
    number, until = signal.SIGTERM, time.monotonic() + grace_s
    asked = set[int]()
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = descendants(os.getpid())
        if not left:
            return
        for pid in left:  # they cannot be reaped, so their numbers cannot be those of others
            if pid not in asked or number == signal.SIGKILL:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        asked.update(left)
        if time.monotonic() > until:
            number = signal.SIGKILL
        time.sleep(POLL_S)


def _end(marks: Iterable[ProcessMark]) -> bool:
    """End processes that are no children of this one, each only while it is still the marked one; False if one cannot be ended."""
    left, until = set(marks), time.monotonic() + GRACE_S
    for mark in left:
        _send(mark, signal.SIGTERM)
    while left := {mark for mark in left if mark_of(mark.pid) == mark}:
        if time.monotonic() > until + GRACE_S:  # it hangs in a driver
            return False
        for mark in left if time.monotonic() > until else ():
            _send(mark, signal.SIGKILL)
        time.sleep(POLL_S)
    return True


def _send(mark: ProcessMark, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        descriptor = os.pidfd_open(mark.pid)
        try:  # the descriptor stays that of the process that is looked at
            if mark_of(mark.pid) == mark:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _stat(pid: int) -> _Stat | None:
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # the name of the program stands in parentheses and may hold anything
    fields = text[text.rindex(b")") + 2 :].split()
    return _Stat(fields[0].decode(), int(fields[1]), int(fields[19]))


def _boot() -> str:
    return (PROC / "sys" / "kernel" / "random" / "boot_id").read_text(encoding="ascii").strip()


def _read(record: Path) -> tuple[list[ProcessMark], list[ProcessMark]]:
    """Read the owners and the processes of a record; none if it is absent or torn."""
    try:
        value = json.loads(record.read_text(encoding="utf-8"))
        return [ProcessMark(**entry) for entry in value["owners"]], [ProcessMark(**entry) for entry in value["processes"]]
    except (OSError, ValueError, KeyError, TypeError):
        return [], []


def _write(record: Path, owners: Sequence[dict[str, object]], marks: Sequence[ProcessMark]) -> None:
    draft = record.with_suffix(".tmp")
    with suppress(OSError):  # a full disk: the processes end with the pipe all the same
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            json.dump({"owners": owners, "processes": [asdict(mark) for mark in marks]}, stream)
        draft.replace(record)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
