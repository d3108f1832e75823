"""Whose command this is: a command of a killed run must not begin any more, and the commands of one run share its money."""

from __future__ import annotations

import datetime
import functools
import os
import secrets

RUN_VARIABLE = "NMB_RUN"
"""Environment variable in which a run tells its commands who it is, as `<pid namespace>/<pid>/<name>`; a command that a person starts
has none."""


def name_this_run(*, main: bool = True) -> None:
    """Let the commands that this process starts know whose they are.

    Parameters
    ----------
    main : bool
        Whether this process is a run of its own. A job on a cluster reads the Snakefile again: it starts commands, but keeps the name of
        the run that it is a part of.
    """
    name = (not main and _parts()[2]) or _new_name()
    os.environ[RUN_VARIABLE] = f"{_pid_namespace()}/{os.getpid()}/{name}"


def this_run() -> str:
    """Give the name of the run that started this command: unlike a process number it never comes again.

    Returns
    -------
    str
        A command that a person started is a run of its own.
    """
    return _parts()[2] or _own_name()


def run_has_ended() -> bool:
    """Whether the run that started this command is gone; False for a command that a person started."""
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
    except OSError:  # not Linux: there is one
        return "0"
