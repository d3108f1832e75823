"""One server on this machine: its lock, its port, its processes and its messages."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ProviderError
from neuralmedbench.models.server.engines import HOST, PORT_TAKEN, command_of, engine_of, environment_of, folder_of, start_cause
from neuralmedbench.records.words import counted
from neuralmedbench.runtime.locks import read_holder, try_lock, write_holder
from neuralmedbench.runtime.one_writer import lock_folder
from neuralmedbench.runtime.supervisor import GRACE_S, descendants, end_recorded, supervised

MACHINE = "machine.lock"
DEVICES = "CUDA_VISIBLE_DEVICES"
POLL_S = 0.5
ANNOUNCE_AFTER_S = 2.0
SEARCHED = 2**16
"""Bytes at the end of a server's messages in which a cause is looked for."""
REPLY_S = 10.0


def server_folder() -> Path:
    """Return this user's folder of locks, records and messages of servers on this machine."""
    folder = lock_folder() / "servers"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


class ServerLock:
    """Lets one server run at a time on this machine, or on the GPUs that this job may use, over all runs of this user.

    Attributes
    ----------
    files : list of int
        Open files that are locked; a server's supervisor holds them too, until the last of its processes has ended.
    """

    def __init__(self, model: ModelConfig, folder: Path) -> None:
        self.files: list[int] = []
        given = engine_of(model)[1].environment.get(DEVICES) or os.environ.get(DEVICES, "")
        devices = sorted({device.strip() for device in given.split(",")} - {""})
        # a job without named GPUs may use all of them
        names = [f"gpu-{''.join(char if char.isalnum() else '-' for char in device)}.lock" for device in devices]
        try:
            self._take(folder / MACHINE, model.name, shared=bool(devices))
            for name in names:
                self._take(folder / name, model.name)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Let the next one start."""
        while self.files:
            os.close(self.files.pop())

    def _take(self, place: Path, name: str, *, shared: bool = False) -> None:
        lock = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        self.files.append(lock)
        begun, announced = time.monotonic(), False
        while not try_lock(lock, shared=shared):
            if not announced and time.monotonic() - begun > ANNOUNCE_AFTER_S:
                announced = True
                holder = read_holder(lock)
                print(
                    f"{name}: process {holder.pid or '(number unknown)'} serves {holder.note or 'another model'} on this machine; waiting for its end",
                    file=sys.stderr,
                    flush=True,
                )
            time.sleep(POLL_S)
        if not shared:
            write_holder(lock, name)


class PortTakenError(ProviderError):
    """The port was free when it was chosen, and is not any more."""


class ServerProcess:
    """A server that is starting or runs; it ends with this process, however that ends.

    Attributes
    ----------
    ready : bool
        True once it has answered.
    port : int
        Its port.
    log : Path
        File with its messages.

    Parameters
    ----------
    model : ModelConfig
        A model with `backend: server`.
    lock : ServerLock
        Its lock.
    folder : Path
        Folder of records and messages.

    Raises
    ------
    ConfigError
        If its program or its weights are not there.
    ProviderError
        If its port is in use.
    """

    def __init__(self, model: ModelConfig, lock: ServerLock, folder: Path) -> None:
        _, settings = engine_of(model)
        self.ready = False
        self._name, self._engine, self._folder = model.name, settings.engine, folder
        self.port = settings.port or free_port()
        if settings.port and listens(settings.port):
            message = f"model {model.name}: {PORT_TAKEN.words} ({settings.port}) before its server was started; {PORT_TAKEN.step}"
            raise ProviderError(message)
        self.log = folder / f"{model.name}.log"
        self._process: subprocess.Popen[bytes] | None = supervised(
            command_of(model, self.port),
            folder=folder,
            log=self.log,
            environment=environment_of(settings),
            cwd=folder_of(model),
            keep_open=lock.files,
        )
        self._supervisor = self._process.pid

    @property
    def ended(self) -> bool:
        """True if the server has ended."""
        return self._process is None or self._process.poll() is not None

    def get(self, path: str) -> tuple[int, object]:
        """Ask the server for a JSON value; status 0 if there is no reply."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=REPLY_S)  # knows no proxy
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            body = reply.read(2**22)
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()
        with suppress(ValueError):
            return reply.status, json.loads(body)
        return reply.status, None

    def owns_port(self) -> bool:
        """Return whether it is one of its processes that listens at its port, not a program of somebody else."""
        import psutil

        for pid in descendants(self._supervisor):
            with suppress(psutil.Error):
                for connection in psutil.Process(pid).net_connections(kind="tcp"):
                    if connection.status == psutil.CONN_LISTEN and connection.laddr.port == self.port:
                        return True
        return False

    def failure(self) -> ProviderError:
        """Return the error of a server that has ended; nothing of its messages is repeated, because they may hold what was asked."""
        code = self.close()
        cause = start_cause(self.messages(), code)
        why = f"{cause.words}; {cause.step}" if cause else f"exit code {code}, without a cause that is known here"
        kind = PortTakenError if cause is PORT_TAKEN else ProviderError
        return kind(
            f"model {self._name}: its server ({self._engine}) ended while it {'answered' if self.ready else 'started'}: {why}; all its messages: {self.log}"
        )

    def messages(self) -> str:
        """Return the end of its messages."""
        with suppress(OSError), self.log.open("rb") as stream:
            stream.seek(max(0, self.log.stat().st_size - SEARCHED))
            return stream.read().decode("utf-8", "replace")
        return ""

    def close(self) -> int:
        """End all its processes; return the exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.stdin:
            with suppress(OSError):
                process.stdin.close()
        try:
            code = process.wait(2 * GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code < 0:  # the supervisor was killed: what it supervised is in its record
            end_recorded(self._folder, self._supervisor)
        return code


def clear_orphans(model: ModelConfig, folder: Path) -> None:
    """End what the servers of killed jobs have left, and say so."""
    if left := end_recorded(folder):
        print(
            f"{model.name}: {counted(left, 'process')} of a server that a killed job had left {'was' if left == 1 else 'were'} ended",
            file=sys.stderr,
        )


def free_port() -> int:
    """Find a port of the loopback address that nothing uses."""
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def listens(port: int) -> bool:
    """Return whether something listens at a port of this machine."""
    with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False
