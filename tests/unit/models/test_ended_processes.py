"""Processes that end while calls are in flight: their answers so far are kept, and the next run asks only for the rest."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from threading import Event

import pytest
from aiohttp import web

from conftest import ROOT
from fixtures import asking_process
from fixtures.asking_process import CONCURRENCY, SCANS
from fixtures.models import Server, reply, running_server
from fixtures.viewing import show
from neuralmedbench.errors import InterruptedRunError, ProviderError
from neuralmedbench.models import engine
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.runtime.commands import run_command

pytestmark = pytest.mark.slow

COUNT = 12
FREE = 4
"""This many requests are answered at once; all others wait until the test releases them."""
QUESTIONS = {f"What is it? (i{number})" for number in range(COUNT)}


class Holding(Server):
    """A server that holds its answers back."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0
        self.let_go = Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.begun += 1
        held = self.begun > FREE
        while held and not self.let_go.is_set():
            await asyncio.sleep(0.01)
        return await super().handle(request)


@pytest.fixture
def server() -> Iterator[Holding]:
    with running_server(Holding()) as running:
        yield running


class Asking:
    """Processes that ask the server with one ledger, one after the other; their output goes to a log."""

    def __init__(self, address: str, folder: Path) -> None:
        self.ledger, self.log = folder / "m.jsonl", folder / "log.txt"
        self.started: list[subprocess.Popen[bytes]] = []
        self._address = address

    def start(self, backend: str = "plain", *, before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "fixtures.asking_process", self._address, str(self.ledger), str(COUNT), backend]
        paths = os.pathsep.join(str(ROOT / part) for part in ("scripts", "tests"))
        with self.log.open("ab") as log:
            process = subprocess.Popen([*before, *words], env={**os.environ, "PYTHONPATH": paths}, stdout=log, stderr=log)
        self.started.append(process)
        return process

    def run(self, backend: str = "plain") -> int:
        """Ask in the process of the test, and give the exit code."""
        with self.log.open("a", encoding="utf-8") as log, redirect_stderr(log), pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "open_backend", engine.open_backend)  # the command puts its own in place
            return run_command(asking_process.main, [self._address, str(self.ledger), str(COUNT), backend])

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")


@pytest.fixture
def asking(server: Holding, tmp_path: Path) -> Iterator[Asking]:
    asks = Asking(server.address, tmp_path)
    yield asks
    for process in asks.started:
        if process.poll() is None:
            process.kill()
            process.wait(10)


def wait_until(happened: Callable[[], bool], what: Callable[[], str]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end, what()
        time.sleep(0.01)


def wait_for_calls_under_way(server: Holding, asking: Asking) -> None:
    """Wait until the free answers are in the ledger and the largest allowed number of calls is in flight."""
    wait_until(lambda: server.begun == FREE + CONCURRENCY and len(read_ledger(asking.ledger)) == FREE, asking.said)


@pytest.mark.parametrize(
    ("number", "backend"),
    [(signal.SIGINT, "plain"), (signal.SIGTERM, "litellm"), (signal.SIGHUP, "plain")],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_a_process_that_is_asked_to_end_makes_no_new_calls_and_keeps_those_under_way(server, asking, number, backend):
    process = asking.start(backend)
    wait_for_calls_under_way(server, asking)
    process.send_signal(number)
    wait_until(lambda: "m: no more calls are made; waiting for those in flight" in asking.said(), asking.said)
    server.let_go.set()
    assert process.wait(60) == InterruptedRunError.exit_code, asking.said()
    assert "InterruptedRunError: model m: interrupted; the answers so far are kept: run the same command again" in asking.said()
    assert "Traceback" not in asking.said()
    assert server.begun == len(server.answered) == len(read_ledger(asking.ledger)) == FREE + CONCURRENCY
    assert asking.run() == 0, asking.said()
    assert server.begun == COUNT
    assert Counter(server.answered) == dict.fromkeys(QUESTIONS, 1)
    assert len(read_ledger(asking.ledger)) == COUNT


@pytest.mark.parametrize(
    "signals",
    [
        pytest.param((signal.SIGINT, signal.SIGINT), id="SIGINT twice"),
        pytest.param((signal.SIGTERM, signal.SIGTERM), id="SIGTERM twice", marks=pytest.mark.long),
        pytest.param((signal.SIGKILL,), id="kill -9"),
    ],
)
def test_a_process_that_ends_at_once_loses_no_answer_but_those_under_way(server, asking, signals):
    process = asking.start()
    wait_for_calls_under_way(server, asking)
    process.send_signal(signals[0])
    if len(signals) > 1:
        wait_until(lambda: "interrupt again to end at once" in asking.said(), asking.said)
        process.send_signal(signals[1])
    assert process.wait(60) != 0, asking.said()
    assert "Traceback" not in asking.said()
    assert (len(server.answered), len(read_ledger(asking.ledger))) == (FREE, FREE)
    server.let_go.set()
    assert asking.run() == 0, asking.said()
    assert server.begun == FREE + CONCURRENCY + COUNT - FREE
    assert len(read_ledger(asking.ledger)) == COUNT
    twice = [question for question, count in Counter(server.answered).items() if count > 1]
    assert set(server.answered) == QUESTIONS
    assert len(twice) <= CONCURRENCY


def test_a_process_whose_parent_alone_is_killed_goes_on_and_a_second_one_pays_for_nothing(server, asking):
    parent = asking.start(before=("sh", "-c", '"$@" & wait', "sh"))
    wait_for_calls_under_way(server, asking)
    parent.kill()
    parent.wait(60)
    assert asking.run() == ProviderError.exit_code, asking.said()
    assert "writes to this ledger; wait for it to end" in asking.said()
    assert server.begun == FREE + CONCURRENCY
    server.let_go.set()
    wait_until(lambda: "m: 12 calls made" in asking.said(), asking.said)
    wait_until(lambda: asking.run() == 0, asking.said)
    assert server.begun == COUNT
    assert Counter(server.answered) == dict.fromkeys(QUESTIONS, 1)


class Working(Server):
    """A server that makes one wish after the other, then answers; its replies name the conversation that they belong to."""

    def __init__(self, wishes: Sequence[str]) -> None:
        super().__init__()
        self.wishes = wishes
        self.begun: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        messages = (await request.json())["messages"]
        name = hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:16]
        self.begun.append(name)
        await asyncio.sleep(0.02)
        asked = sum(message["role"] == "assistant" for message in messages)
        wish = self.wishes[asked] if asked < len(SCANS) else "DIFFERENTIAL:\n1. glioblastoma"
        return web.json_response(reply(f"{name}\nCANDIDATES:\n1. glioblastoma | 0.5\n{wish}"))


WISHES = {"work-up": [f"REQUEST: {scan}" for scan in SCANS], "viewer": [show("FLAIR", 3), show("T1w", 9), "no action"]}


@pytest.mark.parametrize(
    ("kind", "most_kills"), [("work-up", 1), ("viewer", 1), *(pytest.param(kind, 8, marks=pytest.mark.long) for kind in WISHES)]
)
def test_a_work_up_and_a_viewer_go_on_where_they_were_after_kills_and_nothing_in_the_ledger_is_asked_again(tmp_path, kind, most_kills):
    rng, count = random.Random(7), COUNT * (len(SCANS) + 1)
    with running_server(Working(WISHES[kind])) as server:
        asks = Asking(server.address, tmp_path)
        kills = 0
        while kills < most_kills:
            before, kept = len(server.begun), {entry.text[:16] for entry in read_ledger(asks.ledger).values()}
            process = asks.start(kind)
            # each kill falls in the middle of work-ups: after some calls of this process, so that some are answered and some are under way
            target = min(before + rng.randint(CONCURRENCY + 1, count // (most_kills + 1)), before + count - len(kept))
            wait_until(lambda process=process, target=target: len(server.begun) >= target or process.poll() is not None, asks.said)
            process.kill()
            process.wait(60)
            kills += 1
            assert not kept & set(server.begun[before:]), "an answer in the ledger was asked for again"
        kept = {entry.text[:16] for entry in read_ledger(asks.ledger).values()}
        before = len(server.begun)
        assert 0 < len(kept) < count
        assert asks.run(kind) == 0, asks.said()
        assert not kept & set(server.begun[before:])
        assert len(read_ledger(asks.ledger)) == len(set(server.begun)) == count
        assert sum(number - 1 for number in Counter(server.begun).values()) <= kills * CONCURRENCY
