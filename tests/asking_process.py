"""A process that asks a server on this machine, to be ended in the middle: `python asking_process.py ADDRESS LEDGER COUNT plain|litellm`.

The engine, its ledger and the handling of errors are the real ones. `plain` takes a small backend in place of litellm, whose import alone
costs seconds.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

from models_fixtures import model_config, request
from neuralmedbench.models import engine
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.registry import Opened
from neuralmedbench.runtime.commands import run_command

CONCURRENCY = 4


class PlainBackend:
    """Asks an OpenAI-compatible server, one attempt a call."""

    in_flight = CONCURRENCY
    several = False

    def __init__(self, address: str) -> None:
        self._address = address
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        self._session = self._session or aiohttp.ClientSession()
        body: dict[str, Any] = {"messages": [{"role": message.role, "content": message.text} for message in call.messages]}
        async with self._session.post(f"{self._address}/chat/completions", json=body) as reply:
            value = await reply.json()
        return (Answer(value["choices"][0]["message"]["content"], served_model=value["model"]),)

    def stop(self) -> None:
        """There is no line in this backend."""

    async def close(self) -> None:
        if self._session:
            await self._session.close()


def main(argv: Sequence[str] | None = None) -> int:
    address, ledger, count, backend = argv or sys.argv[1:]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever tests under `nohup` hands its deaf ear on
    if backend == "plain":
        engine.open_backend = lambda *_: Opened(PlainBackend(address))
    engine.answer_requests(
        [request(f"i{number}") for number in range(int(count))],
        model_config(api_base=address, concurrency=CONCURRENCY),
        name="m",
        ledger=Path(ledger),
        destinations=("local",),
        max_failed_fraction=0,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
