"""Caps and limits of a run, from the configuration to the calls actually made."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web

from conftest import ROOT
from fixtures.models import Server, model_config, reply, request, running_server
from neuralmedbench.config.pipeline import PipelineConfig, RateLimit
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models import engine, rate_limits, retry
from neuralmedbench.models.budget import NANO, read_spend_log
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun, RunControl, RunLimits
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.models.retry import CallError
from neuralmedbench.recording.record import incomplete_files
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import response_key
from neuralmedbench.runtime.append_log import read_log
from neuralmedbench.runtime.one_writer import RUN_VARIABLE, name_this_run, this_run
from neuralmedbench.runtime.options import read_settings

DIME = {
    "prices": {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 1000, "dated": "2026-11-22"},
    "max_tokens": 100,
    "max_cost_usd": 10,
    "api_base": "http://127.0.0.1:9/v1",
}
"""A model whose answers cost 0.1 USD each."""
REQUESTS = [request(f"i{number}") for number in range(8)]
OK, OVER = ResponseState.OK, ResponseState.OVER_BUDGET


class Paid:
    """A backend whose answers have the greatest length; it first raises the given failures."""

    in_flight, several = 4, False

    def __init__(self) -> None:
        self.calls = 0
        self.failures: list[CallError] = []

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        self.calls += 1
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        return (Answer("answer", prompt_tokens=10, completion_tokens=100),)

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def backend(monkeypatch):
    backend = Paid()
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(backend))
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    return backend


@pytest.fixture
def ask(backend, tmp_path, monkeypatch):
    """Return a function that asks in a named run with its caps and limits, and returns the number of answers by state."""

    def asking(benchmark="b", requests=REQUESTS, run="1", *, cap=None, limits=None, **changes):
        monkeypatch.setenv(RUN_VARIABLE, f"0/0/{run}")
        rows = answer_requests(
            requests,
            ModelRun(
                model_config(**{**DIME, **changes}),
                ledger=tmp_path / "ledger" / f"{benchmark}.jsonl",
                destinations=("local",),
                max_failed_fraction=None,
                root=tmp_path,
                control=RunLimits(cap, limits or {}, tmp_path / "spending"),
            ),
        )
        write_records(tmp_path / f"results/responses/{benchmark}/m.parquet", Response, rows, key=response_key)
        states = [row.state for row in rows]
        return {state: states.count(state) for state in sorted(set(states))}

    return asking


def test_two_benchmarks_of_one_run_share_its_cap_and_a_raised_cap_asks_for_what_was_stopped_and_nothing_else(ask, backend, tmp_path):
    assert ask("b1", cap=1.0) == {OK: 8}
    assert ask("b2", cap=1.0) == {OK: 2, OVER: 6}
    assert backend.calls == 10
    assert ask("b2", cap=1.0) == {OK: 2, OVER: 6}  # the same run again: still nothing left
    run = SimpleNamespace(
        results="results", benchmarks=["b1", "b2"], models={"m": SimpleNamespace(reader=None, backend="litellm")}, all_graders=[]
    )
    (path, causes) = incomplete_files(run, tmp_path).popitem()
    assert (path, {state for state, _ in causes}, causes.total()) == ("results/responses/b2/m.parquet", {"over_budget"}, 6)
    assert ask("b2", run="2", cap=1.0) == {OK: 8}
    assert backend.calls == 16
    assert incomplete_files(run, tmp_path) == {}


def test_the_cap_of_a_model_holds_over_runs_and_benchmarks_until_it_is_raised(ask, backend):
    assert ask("b1", max_cost_usd=1) == {OK: 8}
    assert ask("b2", run="2", max_cost_usd=1) == {OK: 2, OVER: 6}
    assert ask("b2", run="3", max_cost_usd=1) == {OK: 2, OVER: 6}
    assert ask("b2", run="4", max_cost_usd=1.3) == {OK: 5, OVER: 3}
    assert backend.calls == 13


def test_the_response_says_which_cap_stopped_it(ask, tmp_path):
    ask("b1", cap=0.1)
    ask("b2", run="2", max_cost_usd=0.2)
    errors = [{row.error for row in read_records(tmp_path / f"results/responses/{name}/m.parquet", Response)} for name in ("b1", "b2")]
    assert errors == [{"", "max_run_cost_usd"}, {"", "max_cost_usd"}]


@pytest.fixture
def clone(backend, tmp_path, monkeypatch):
    """Return a function that asks in a copy of the project, as its commands do, and returns the number of answers by state."""

    def asking(name, link="", of="", requests=REQUESTS, **changes):
        folder = tmp_path / name
        place = folder / "data" / "ledger" / link
        if of and not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(tmp_path / of)
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        monkeypatch.setenv(RUN_VARIABLE, f"0/0/{name}")
        control = RunLimits.of(RunControl())
        run = ModelRun(model_config(**{**DIME, **changes}), ledger=Path("data/ledger/b/m.jsonl"), destinations=("local",),
                       max_failed_fraction=None, root=tmp_path, control=control)  # fmt: skip
        states = [row.state for row in answer_requests(requests, run)]
        return {state: states.count(state) for state in sorted(set(states))}

    return asking


OTHERS = [request(f"j{number}") for number in range(8)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"of": "one/data/ledger"}),  # the folder of another copy
        ({}, {"of": "one/data/ledger/b", "link": "b"}),  # one of its benchmarks
        ({}, {"of": "one/data/ledger/b/m.jsonl", "link": "b/m.jsonl"}),  # one file
        ({"of": "shared"}, {"of": "shared"}),  # both elsewhere
        ({"of": "shared/ledger"}, {"of": "shared/ledger"}),
    ],
)
def test_copies_of_the_project_that_share_a_ledger_by_a_link_have_one_cap(clone, backend, tmp_path, first, second):
    """Each had a log of its own: 0.0192 USD were spent under a cap of 0.010."""
    for place in ("shared/ledger", "one"):
        (tmp_path / place).mkdir(parents=True)
    assert clone("one", **first, max_cost_usd=1) == {OK: 8}
    assert clone("two", **second, requests=OTHERS, max_cost_usd=1) == {OK: 2, OVER: 6}
    assert clone("one", **first, requests=OTHERS, max_cost_usd=1) == {OK: 2, OVER: 6}, "those that the other copy asked for"
    assert backend.calls == 10


def test_copies_with_ledgers_of_their_own_have_caps_of_their_own_and_what_was_spent_before_a_link_counts(clone, backend, tmp_path):
    assert clone("one", max_cost_usd=1) == {OK: 8}
    assert clone("two", max_cost_usd=1) == {OK: 8}
    (tmp_path / "two/data/ledger").rename(tmp_path / "two/data/own")
    assert clone("two", of="one/data/ledger", requests=OTHERS, max_cost_usd=1.9) == {OK: 3, OVER: 5}
    assert backend.calls == 19
    assert Path("data/spending/money.jsonl").exists(), "its own log is kept"


def test_an_attempt_from_which_nothing_came_back_is_paid_for_beside_the_next(ask, backend, tmp_path):
    backend.failures = [CallError("Timeout"), CallError("E", 503), CallError("NotConnected", sent=False)]
    assert ask(requests=REQUESTS[:1], max_attempts=4) == {OK: 1}
    assert read_spend_log(tmp_path / "spending" / "money.jsonl").by_account.total() == 0.2e9
    backend.failures = [CallError("Timeout")] * 2
    assert ask("b2", requests=REQUESTS[:1], max_cost_usd=0.35, max_attempts=4) == {ResponseState.FAILED: 1}
    assert read_spend_log(tmp_path / "spending" / "money.jsonl").by_account.total() == 0.3e9
    assert backend.calls == 5


class Miscounting(Server):
    """Answers normally, and reports this usage."""

    def __init__(self, usage):
        super().__init__()
        self.usage = usage

    async def handle(self, request):
        self.bodies.append(await request.json())
        return web.json_response({**reply("answer"), "usage": self.usage})


@pytest.mark.parametrize(
    ("usage", "paid"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 10}, (8, 0.08)),
        ({"input_tokens": 100, "output_tokens": 10}, (8, 0.08)),
        ({"total_tokens": 50}, (8, 0.4)),  # as if all tokens had the higher price
        ({"total_tokens": 110}, (5, 0.5)),  # which is more than was reserved
        ({"total_tokens": 0}, (5, 0.5)),
        ({"prompt_tokens": None, "completion_tokens": None}, (5, 0.5)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, (5, 0.5)),
        ({"prompt_tokens": 100, "completion_tokens": 0}, (5, 0.5)),
        ({"prompt_tokens": -100, "completion_tokens": -3_000_000}, (5, 0.5)),
        ({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": -110}, (5, 0.5)),
        ({"prompt_tokens": 100, "completion_tokens": 2**70}, (5, 0.5)),
        ({"prompt_tokens": 1.5, "completion_tokens": 0.5}, (5, 0.5)),
        ({"prompt_tokens": "100", "completion_tokens": "10"}, (5, 0.5)),
        ("110", (5, 0.5)),
    ],
)
def test_a_cap_binds_whatever_a_provider_says_of_its_tokens_and_every_answer_that_was_paid_for_is_kept(
    ask, monkeypatch, tmp_path, usage, paid
):
    """The worst bug here: tokens counted as 0 or less cost nothing, so that the cap is never reached."""
    monkeypatch.undo()
    answers, spent = paid
    with running_server(Miscounting(usage)) as server:
        found = ask("b", max_cost_usd=0.5, api_base=server.address)
    assert found == {OK: answers} | ({OVER: 8 - answers} if answers < 8 else {})
    assert len(server.bodies) == answers, "no answer was thrown away"
    book = tmp_path / "spending" / "money.jsonl"
    assert read_spend_log(book).by_account.total() == pytest.approx(spent * NANO)
    assert min(line["usd"] for line in read_log(book)) > 0
    rows = read_records(tmp_path / "results/responses/b/m.parquet", Response)
    assert all(row.cost_usd is None or row.cost_usd == pytest.approx(0.01) for row in rows)
    kept = read_ledger(tmp_path / "ledger" / "b.jsonl").values()
    assert {count for entry in kept for count in (entry.prompt_tokens, entry.completion_tokens)} <= {None, 100, 10}


def test_the_requests_of_a_group_keep_its_limit_over_jobs_and_retries_count(ask, backend, tmp_path, monkeypatch):
    monkeypatch.setattr(rate_limits, "WINDOW_S", 0.3)
    monkeypatch.setattr(rate_limits, "POLL_S", 0.05)
    backend.failures = [CallError("E", 503), CallError("E", 429, 0.1)]
    limits = {"g": RateLimit(requests_per_minute=5)}
    ask("b1", limits=limits, rate_limit_group="g")
    ask("b2", REQUESTS[:2], limits=limits, rate_limit_group="g", prices=None)
    sent = [line["at"] for line in read_log(tmp_path / "spending" / "rates" / "g.jsonl") if "at" in line]
    assert len(sent) == backend.calls == 12
    assert all(later - earlier >= 0.3 for earlier, later in zip(sent, sent[5:], strict=False))
    pauses = [line for line in read_log(tmp_path / "spending" / "rates" / "g.jsonl") if "until" in line]
    assert len(pauses) == 1


def test_commands_of_one_run_know_its_name_and_a_run_inside_it_keeps_it(monkeypatch):
    monkeypatch.delenv(RUN_VARIABLE, raising=False)
    alone = this_run()
    assert alone == this_run()
    name_this_run()
    first = this_run()
    name_this_run(main=False)
    assert this_run() == first
    name_this_run()
    assert len({alone, first, this_run()}) == 3
    monkeypatch.delenv(RUN_VARIABLE)
    name_this_run(main=False)
    assert this_run() not in {"", first}


def test_the_configuration_of_a_run_reaches_its_commands():
    config = PipelineConfig.model_validate(
        {"benchmarks": ["b"], "models": ["m"], "max_run_cost_usd": 3, "rate_limits": {"g": {"tokens_per_minute": 9}}}
    )
    control = RunLimits.of(config)
    assert (control.max_run_cost_usd, control.rate_limits["g"].tokens_per_minute) == (3, 9)
    limits = {"max_run_cost_usd": 3, "rate_limits": {"g": {"tokens_per_minute": 9}}}
    assert RunLimits.of(read_settings(RunControl, "--control", json.dumps(limits))) == control
    assert control.folder == Path("data/spending")


def test_every_command_and_stage_that_asks_a_model_hands_its_caps_on():
    """A stage that forgets them spends regardless of other jobs."""
    asking = {"ModelRun", "probe_model"}
    asks_nothing = {"grade_explanations.py"}
    found = 0
    for path in sorted(path for path in (ROOT / "scripts").rglob("*.py") if path.name not in asks_nothing):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(f"{name}(" in text for name in asking) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in asking:
                given = {word.arg or ast.unparse(word.value) for word in node.keywords}
                assert "control" in given, f"{path.name}: {node.func.id}"
                found += 1
    assert found == 4
