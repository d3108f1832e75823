"""The run that a command belongs to: commands of a killed run must not start, and commands of one run share its budget."""

from __future__ import annotations

import datetime
import functools
import os
import secrets

RUN_VARIABLE = "NMB_RUN"
"""Environment variable that a run sets for its commands: `<pid namespace>/<pid>/<name>`. Commands started by a person have none."""


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
