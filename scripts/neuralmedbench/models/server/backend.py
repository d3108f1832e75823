"""A model behind a server that the job starts, asks over the OpenAI protocol and ends."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ProviderError
from neuralmedbench.models.api.backend import ApiBackend
from neuralmedbench.models.causes import next_step
from neuralmedbench.models.protocol import Answer, Call, Message, MessageImage
from neuralmedbench.models.retry import CallError
from neuralmedbench.models.server.engines import (
    HOST,
    engine_of,
    environment_of,
    fingerprint_of,
    package_version,
    packaged,
    served_name,
)
from neuralmedbench.models.server.process import PortTakenError, ServerLock, ServerProcess, clear_orphans, server_folder

STARTS = 3
"""Attempts to start a server at a free port: another program may take it in between."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
PROBE_TOKENS = 64
PROBE_ERRORS = 3
"""Errors 5xx of the probe, other than 503, after which a server is not waited for."""
NOT_YET = frozenset({408, 409, 425, 429, 503})
END_S = 3.0
"""A server that breaks off a call is given this long to end; otherwise the call is tried again."""
PROBE_SCHEMA = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"], "additionalProperties": False}


class ServerBackend:
    """A model whose server belongs to this job; a `models.protocol.Backend`.

    Parameters
    ----------
    model : ModelConfig
        Its yaml, with `backend: server`.

    Raises
    ------
    ConfigError
        If the program or the weights are not there, or the server ignores a setting of the yaml.
    ProviderError
        If the server ends while it starts, serves another model, refuses the probe, or is not ready in time.
    """

    def __init__(self, model: ModelConfig) -> None:
        self._model = model
        self.in_flight, self.several = model.concurrency, model.native_n
        folder = server_folder()
        self._lock = ServerLock(model, folder)
        try:
            clear_orphans(model, folder)
            self._server, self._fingerprint = self._started(folder)
            self._api = ApiBackend(self._api_model())
        except BaseException:
            self._lock.end()
            raise

    @property
    def port(self) -> int:
        """Port of its server."""
        return self._server.port

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Make one attempt; see `models.protocol.Backend`. ProviderError if the server has ended."""
        if self._server.ended:  # whatever listens at its port now is somebody else's
            raise self._server.failure()
        try:
            answers = await self._api.answer(call)
        except CallError as error:
            if error.status is None and await self._has_ended():
                raise self._server.failure() from None
            raise
        return tuple(replace(answer, fingerprint=self._fingerprint) for answer in answers)

    def stop(self) -> None:
        """Nothing waits here: every call that has begun is in flight."""

    async def close(self) -> None:
        """Close the connections and end the server."""
        await self._api.close()
        await asyncio.to_thread(self._server.close)
        self._lock.end()

    def _started(self, folder: Path) -> tuple[ServerProcess, str]:
        _, settings = engine_of(self._model)
        for left in reversed(range(STARTS)):
            server = self._server = ServerProcess(self._model, self._lock, folder)
            begun = time.monotonic()
            print(f"{self._model.name}: {settings.engine} starts; its messages: {server.log}", file=sys.stderr, flush=True)
            try:
                asyncio.run(self._until_ready(begun + settings.start_timeout_s))
            except PortTakenError:
                server.close()
                if settings.port or not left:
                    raise
            except BaseException:
                server.close()
                raise
            else:
                server.ready = True
                fingerprint = fingerprint_of(self._model, self._version())
                print(f"{self._model.name}: ready after {time.monotonic() - begun:.0f} s: {fingerprint}", file=sys.stderr, flush=True)
                return server, fingerprint
        raise AssertionError  # the last start returns or raises

    async def _until_ready(self, end: float) -> None:
        """Wait until the server lists the model and has answered the probe."""
        engine, settings = engine_of(self._model)
        server, pause, listed, errors = self._server, FIRST_PAUSE_S, False, 0
        probe = self._api_model()
        backend = ApiBackend(probe.model_copy(update={"max_tokens": min(probe.max_tokens or PROBE_TOKENS, PROBE_TOKENS)}))
        try:
            while time.monotonic() < end:
                if server.ended:
                    raise server.failure()
                if not listed:
                    status, value = await asyncio.to_thread(server.get, engine.ready)
                    listed = status == 200
                    if listed:
                        self._check_served(value)
                if listed:
                    try:
                        return self._check_probe(await asyncio.wait_for(backend.answer(self._probe()), max(1.0, end - time.monotonic())))
                    except CallError as error:
                        errors += error.status is not None and error.status not in NOT_YET
                        if error.status is not None and (not error.may_pass_later or errors == PROBE_ERRORS):
                            step = next_step(str(error))
                            self._refuse(f"refuses a first question: {error}{f'; {step}' if step else ''}")
                    except TimeoutError:
                        break
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
        finally:
            await backend.close()
        message = f"model {self._model.name}: its server has not answered after {settings.start_timeout_s:g} s; raise `start_timeout_s`, or see its messages: {server.log}"
        raise ProviderError(message)

    def _check_served(self, value: object) -> None:
        """Refuse a server that is not ours, or serves something else, before anything is asked."""
        if not self._server.owns_port():
            message = f"model {self._model.name}: another program answers at port {self._server.port}, not the server that was started; nothing was asked"
            raise PortTakenError(message)
        if not engine_of(self._model)[0].lists:
            return
        entries = value.get("data") if isinstance(value, dict) else None
        names = {entry.get("id") for entry in entries if isinstance(entry, dict)} if isinstance(entries, list) else set()
        if served_name(self._model) not in names:
            self._refuse(f"does not serve {served_name(self._model)}, under which it was started, but {len(names)} other models")

    def _probe(self) -> Call:
        """Make a question of no patient, with a picture and a schema where the model takes them."""
        model = self._model
        structured = model.structured_output != "none"
        words = 'Answer with the JSON object {"ready": true}.' if structured else "Answer with the word ready."
        images = () if model.max_images == 0 else (_grey_picture(),)
        return Call((Message("user", words, images),), (0,), model.seed, PROBE_SCHEMA if structured else None)

    def _check_probe(self, answers: tuple[Answer, ...]) -> None:
        if self._model.structured_output == "none" or answers[0].state != "ok":
            return
        try:
            json.loads(answers[0].text)
        except ValueError:
            self._refuse("answers a first question without the JSON that it was asked for; take out `structured_output`")

    def _refuse(self, what: str) -> NoReturn:
        engine = engine_of(self._model)[1].engine
        message = f"model {self._model.name}: its server ({engine}) {what}; its messages: {self._server.log}"
        raise ProviderError(message)

    def _version(self) -> str:
        engine, settings = engine_of(self._model)
        if packaged(settings):
            return package_version()
        for path, key in engine.version:
            value: Any = self._server.get(path)[1]
            if isinstance(value, dict) and isinstance(value.get(key), str):
                return str(value[key])
        return "" if engine.version else _said_version(settings.program or engine.program, environment_of(settings))

    async def _has_ended(self) -> bool:
        end = time.monotonic() + END_S
        while not self._server.ended and time.monotonic() < end:
            await asyncio.sleep(FIRST_PAUSE_S)
        return self._server.ended

    def _api_model(self) -> ModelConfig:
        """Return the model as the API backend takes it: at the address of its server."""
        address = f"http://{HOST}:{self._server.port}/v1"
        return self._model.model_copy(
            update={"backend": "litellm", "server": None, "id": f"openai/{served_name(self._model)}", "api_base": address}
        )


def _said_version(program: str, environment: dict[str, str]) -> str:
    """Ask a program for its version (`transformers version`); empty if it says none."""
    try:
        done = subprocess.run(
            [program, "version"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    words = done.stdout.split()
    return words[-1] if words else ""


SIDE_PX = 224


def _grey_picture() -> MessageImage:
    """Make a grey picture, large enough for any model."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x80" * SIDE_PX) * SIDE_PX
    header = struct.pack(">IIBBBBB", SIDE_PX, SIDE_PX, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return MessageImage("", png, sha256(png).hexdigest())
