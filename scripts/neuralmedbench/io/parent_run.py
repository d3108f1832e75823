"""Whose command this is: a command whose run was killed before it could begin must not begin any more."""

from __future__ import annotations

import os

RUN_VARIABLE = "NMB_RUN"
"""Environment variable in which a run tells its commands who it is; a command that a person starts has none."""


def name_this_run() -> None:
    """Let the commands that this process starts know whose they are."""
    os.environ[RUN_VARIABLE] = f"{_pid_namespace()}/{os.getpid()}"


def run_has_ended() -> bool:
    """Whether the run that started this command is gone; False for a command that a person started."""
    namespace, _, pid = os.environ.get(RUN_VARIABLE, "").partition("/")
    if not pid.isdigit() or namespace != _pid_namespace():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _pid_namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:  # not Linux: there is one
        return "0"
