"""What left the machine and what it cost: the tables against the count of the server that was asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from conftest import ROOT
from fixtures.models import Server, model_config, picture, reply, request, running_server
from fixtures.scoring import GOLD, ITEM, answered, grader_run
from neuralmedbench.config.load import load_grader
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models import retry
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun, RunLimits
from neuralmedbench.models.replay import previous_responses
from neuralmedbench.records.requests import Fact, Inquiry, Request, RequestTurn
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Grade, response_key
from neuralmedbench.scoring.llm.model_grading import grade_with_model
from neuralmedbench.tables.cost import cost_rows, destination_rows, request_rows
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.study import Study

pytestmark = pytest.mark.slow

PRICES = {"usd_per_million_prompt_tokens": 2.5, "usd_per_million_completion_tokens": 10, "dated": "2026-11-22"}
SCHEMA = json.dumps({"type": "object", "properties": {"side": {"type": "string", "enum": ["left", "right"]}}, "required": ["side"]})


class Bookkeeper(Server):
    """Asks one question where it may; counts requests, pictures, and the tokens and money of the answers that it delivered."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    async def handle(self, asked: web.Request) -> web.StreamResponse:
        body = await asked.json()
        self.counts["requests"] += 1
        self.counts["pictures"] += json.dumps(body).count('"image_url": {"url"')
        mode = self.modes.pop(0) if len(self.modes) > 1 else self.modes[0]
        if mode == "cut":
            assert asked.transport
            asked.transport.abort()
        if mode != "ok":
            return web.json_response({"error": {"message": "no"}}, status=int(mode) if mode.isdigit() else 500)
        words, samples = json.dumps(body["messages"]), body.get("n", 1)
        answer = reply("QUESTION: Is there a fever?" if "You may ask" in words and "No fever." not in words else "1. glioblastoma")
        answer["choices"] = [answer["choices"][0] | {"index": number} for number in range(samples)]
        answer["usage"] = {"prompt_tokens": 50 + len(words) % 97, "completion_tokens": 10 * samples}
        self.counts["prompt_tokens"] += answer["usage"]["prompt_tokens"]
        self.counts["completion_tokens"] += answer["usage"]["completion_tokens"]
        return web.json_response(answer)

    @property
    def usd(self) -> float:
        return (2.5 * self.counts["prompt_tokens"] + 10 * self.counts["completion_tokens"]) / 1e6


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bookkeeper]:
    async def at_once(*_: object) -> None:
        """Wait for nothing."""

    monkeypatch.setattr(retry, "interruptible_sleep", at_once)
    book = Bookkeeper()
    with running_server(book):
        yield book


def requests_of_all_runners(root: Path) -> list[Request]:
    """Return requests of every runner; arms share turns and whole requests, and pictures come in first and later turns."""
    seen = RequestTurn(text="Look.", images=tuple(picture(root, number) for number in range(3)))
    rounds = (seen, RequestTurn(text="And the notes?"), RequestTurn(text="And the laboratory?", images=(picture(root, 5),)))
    inquiry = Inquiry(
        facts=(Fact(text="No fever.", images=(picture(root, 6),)),), max_questions=2, unknown="?", left="{left} left", closing="Now."
    )
    same = RequestTurn(text="What is it?")
    may_ask = replace(
        request("ask", replace(seen, text="You may ask up to 2 questions.")), inquiry=inquiry, runner="dialogue", strategy="ask"
    )
    return [
        replace(request("choice", replace(seen, text="A or B?")), runner="choice"),
        request("open", seen, samples=3),
        replace(request("fields", replace(seen, text="Side?")), runner="structured", answer_schema=SCHEMA),
        # rounds of a dialogue: an arm that goes on otherwise after two turns, and one that stops after two
        request("rounds", *rounds, samples=2),
        request("rounds", *rounds[:2], RequestTurn(text="And the biopsy?"), samples=2, arm="no_findings"),
        request("rounds", *rounds[:2], samples=2, arm="first_two"),
        may_ask,
        # an arm that is one request for all items
        *(request(f"shared-{number}", same, arm="no_image") for number in range(5)),
    ]


def study_of(
    rows: list[Response],
    grades: Sequence[Grade] = (),
    earlier: Sequence[Response] = (),
    earlier_grades: Sequence[Grade] = (),
    **changes: Any,
) -> Study:
    present = {"responses": {"m": rows}, "grades": {("m", "g"): grades}}
    before = {"earlier_responses": {"m": list(earlier)}, "earlier_grades": {("m", "g"): earlier_grades}}
    benchmark = SimpleNamespace(name="b", **present, **before, planted_grades={}, answer_tests={})
    models = {"m": model_config(prices=PRICES, max_cost_usd=9)}
    return cast(Study, SimpleNamespace(benchmarks={"b": benchmark}, models=models, **({"all_graders": {}} | changes)))


def as_stored(rows: list[Response], root: Path) -> list[Response]:
    write_records(root / "rows.parquet", Response, rows, key=response_key)
    return read_records(root / "rows.parquet", Response)


def compare(rows: list[Response], server: Bookkeeper) -> None:
    study = study_of(rows)
    (sent,), (spent,) = destination_rows(study), request_rows(study)
    assert {"requests": sent.calls, "pictures": sent.pictures} == {name: server.counts[name] for name in ("requests", "pictures")}
    assert spent.attempts == sent.calls
    for row in (sent, spent):
        assert (row.prompt_tokens, row.completion_tokens) == (server.counts["prompt_tokens"], server.counts["completion_tokens"])
        assert float(row.cost_usd) == pytest.approx(server.usd, abs=1e-9)


@pytest.mark.parametrize("native_n", [False, True])
@pytest.mark.parametrize("schema", ["none", "json_schema"])
@pytest.mark.parametrize("faults", [(), ("429", "500", "ok", "cut", "ok", "ok", "503", "ok", "400", "ok", "500", "500", "ok")])
def test_tables_equal_the_count_of_the_server_over_all_runners_retries_and_failures(
    server: Bookkeeper, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, native_n: bool, schema: str, faults: tuple[str, ...]
) -> None:
    server.modes = [*faults, "ok"]
    model = model_config(
        api_base=server.address, max_attempts=2, concurrency=2, native_n=native_n, structured_output=schema, prices=PRICES, max_cost_usd=9
    )
    requests = requests_of_all_runners(tmp_path)

    def ask() -> list[Response]:
        run = ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=tmp_path)
        return as_stored(answer_requests(requests, run), tmp_path)

    rows = ask()
    compare(rows, server)
    assert f"{server.usd:.4f} USD" in capsys.readouterr().err, "the log shows what was paid"
    # a second run asks for what failed; what the first one sent is not forgotten, and a third run sends nothing
    assert any(row.state is ResponseState.FAILED for row in rows) == bool(faults)
    server.modes = ["500", "ok"]
    rows = ask()
    assert {row.state for row in rows} == {ResponseState.OK}
    compare(rows, server)
    before = dict(server.counts)
    compare(ask(), server)
    assert server.counts == before


def test_what_failed_and_is_not_asked_for_again_is_still_counted(
    server: Bookkeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.modes = ["500"]
    monkeypatch.setenv("M_KEY", "k")
    model = model_config(api_base=server.address, max_attempts=2, api_key_env="M_KEY", prices=PRICES, max_cost_usd=9)
    run = ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=tmp_path)
    requests = requests_of_all_runners(tmp_path)[:2]
    answer_requests(requests, run)
    monkeypatch.delenv("M_KEY")
    rows = as_stored(answer_requests(requests, run), tmp_path)
    assert {row.state for row in rows} == {ResponseState.SKIPPED}
    (sent,) = destination_rows(study_of(rows))
    assert (sent.requests, sent.calls, sent.pictures) == (4, 8, 24) == (4, server.counts["requests"], server.counts["pictures"])


def test_requests_that_went_to_another_host_before_stay_with_that_host(server: Bookkeeper, tmp_path: Path) -> None:
    server.modes = ["500", "500", "ok"]
    requests, ledger = [request("i")], tmp_path / "m.jsonl"
    model = model_config(api_base=server.address, max_attempts=2)
    answer_requests(requests, ModelRun(model, ledger=ledger, destinations=("local",), max_failed_fraction=None))
    # the same failures, as they would stand there of another host
    log = tmp_path / ".m.failed"
    log.write_text(log.read_text().replace('"local"', '"far.example.org"') + '["torn')
    rows = answer_requests(requests, ModelRun(model, ledger=ledger, destinations=("local",), max_failed_fraction=None))
    places = {row.destination: (row.requests, row.calls) for row in destination_rows(study_of(rows))}
    assert places == {"far.example.org": (1, 2), "local": (1, 1)}


def test_what_was_sent_for_the_previous_revision_is_counted_too(server: Bookkeeper, tmp_path: Path) -> None:
    requests, ledger = [request("i"), request("j")], tmp_path / "m.jsonl"
    rows: dict[str, list[Response]] = {}
    for revision in ("1", "2"):
        model = model_config(api_base=server.address).model_copy(update={"revision": revision})
        rows[revision] = answer_requests(requests, ModelRun(model, ledger=ledger, destinations=("local",), max_failed_fraction=None))
    earlier = previous_responses(requests, model, ledger)
    (sent,) = destination_rows(study_of(rows["2"], earlier=earlier))
    assert (sent.requests, sent.calls) == (4, server.counts["requests"]) == (4, 4)


def test_the_calls_of_a_grader_are_counted_with_their_tokens_and_cost(server: Bookkeeper, tmp_path: Path) -> None:
    server.modes = ["500", "ok"]
    model = model_config(api_base=server.address, max_attempts=2, prices=PRICES, max_cost_usd=9)
    config = load_grader(ROOT / "config" / "graders" / "llm.yaml").model_copy(
        update={"model": model, "prompt": str(ROOT / "config" / "prompts" / "grader-v2.j2")}
    )
    settings: dict[str, Any] = {"ledger": tmp_path / "g.jsonl", "destinations": ("local",), "control": RunLimits()}
    answers = [answered(text, repeat=number) for number, text in enumerate(("1. glioma", "1. glioma", "1. abscess"))]
    grades = grade_with_model(answers, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, grader_run("g", config, **settings))
    for study in (study_of([], grades, all_graders={"g": config}), study_of([], earlier_grades=grades, all_graders={"g": config})):
        assert [row.requests for row in destination_rows(study) if row.model == "grader g"] == [2]
    sent = next(row for row in destination_rows(study) if row.model == "grader g")
    assert (sent.requests, sent.calls, sent.pictures) == (2, server.counts["requests"], 0) == (2, 3, 0)
    assert (sent.prompt_tokens, sent.completion_tokens) == (server.counts["prompt_tokens"], server.counts["completion_tokens"])
    assert sent.cost_usd == pytest.approx(server.usd, abs=1e-9)


def test_answers_that_share_a_call_cost_it_once(server: Bookkeeper, tmp_path: Path) -> None:
    model = model_config(api_base=server.address, prices=PRICES, max_cost_usd=9)
    run = ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None)
    rows = answer_requests([request(f"i{number}", RequestTurn(text="What is it?")) for number in range(4)], run)
    study: Any = study_of(rows)
    counts = {Key("m"): SimpleNamespace(passes=SimpleNamespace(sum=lambda: 4), not_graded=SimpleNamespace(sum=lambda: 0))}
    study.benchmarks["b"].outcomes = SimpleNamespace(items=[SimpleNamespace(item_id=row.item_id) for row in rows], counts=counts)
    study.readers, study.settings = {}, IntervalSettings()
    placed = {"benchmark": "b", "model": "m", "pass1": 1.0, "pass1_low": 0.9, "pass1_high": 1.0, "n_items": 4, "n_patients": 4, "rank": 1}
    (row,) = cost_rows(study, [placed])
    assert (row.answered, row.prompt_tokens, row.completion_tokens) == (
        4,
        server.counts["prompt_tokens"],
        server.counts["completion_tokens"],
    )
    assert float(row.cost_usd or 0) == pytest.approx(server.usd, abs=1e-9)
