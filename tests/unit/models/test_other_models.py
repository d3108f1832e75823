"""Answers by another model than the one asked: missing, warned of at the first one, and never asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from conftest import ROOT
from fixtures.models import Server, model_config, reply, request, running_server
from fixtures.scoring import GOLD, ITEM, answered, differential, grader_run
from neuralmedbench.config.load import load_grader
from neuralmedbench.errors import ProviderError
from neuralmedbench.models.causes import can_be_asked
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.explain import explain
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.replay import previous_responses
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import Response, distinct_calls
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.scoring.jury import grade_with_jury
from neuralmedbench.scoring.llm.model_grading import grade_with_model

OTHER = "m-3.5-lite"
WHY = f"answered by another model: {OTHER}, not m"
CONCURRENCY = 4
PRICES = {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 1, "dated": "2026-01-01"}


class Switching(Server):
    """Answers as the model that was asked until `left` answers were given, then as another one."""

    def __init__(self, left: int = 0) -> None:
        super().__init__()
        self.left = left

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.left -= 1
        return web.json_response(reply("DIFFERENTIAL:\n1. meningioma", model="m-2026-01-01" if self.left >= 0 else OTHER))


@pytest.fixture
def server() -> Iterator[Switching]:
    with running_server(Switching()) as running:
        assert isinstance(running, Switching)
        yield running


def ask(root: Path, server: Switching, *items: str, turns: int = 1, run: dict[str, Any] | None = None, **model: object) -> list[Response]:
    asked = [request(item, *(RequestTurn(text=f"{item} {number}") for number in range(turns))) for item in items]
    config = model_config(api_base=server.address, concurrency=CONCURRENCY, **model)
    settings: dict[str, Any] = {
        "ledger": root / "m.jsonl",
        "destinations": ("local",),
        "max_failed_fraction": 0.05,
        "root": root,
        **(run or {}),
    }
    return answer_requests(asked, ModelRun(config, **settings))


def test_the_warning_comes_with_the_first_answer_and_once(server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[int, str]] = []
    monkeypatch.setattr("neuralmedbench.models.engine.print_to_person", lambda line: lines.append((len(server.bodies), line)))
    ask(tmp_path, server, *(f"i{number}" for number in range(60)))
    ((sent, line),) = lines
    assert sent <= 2 * CONCURRENCY
    assert line.startswith(f"m: WARNING: {WHY}; it does not count as its answer: correct `id` in its yaml")
    assert "`served_as`" in line


def test_the_warning_does_not_wait_for_the_end_of_a_dialogue(server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr("neuralmedbench.models.engine.print_to_person", lambda _: sent.append(len(server.bodies)))
    ask(tmp_path, server, *(f"i{number}" for number in range(12)), turns=6)
    assert sent[0] <= 2 * CONCURRENCY


def test_such_answers_are_missing_and_paid_for_and_the_run_goes_on(server, tmp_path: Path) -> None:
    rows = ask(tmp_path, server, "a", "b", "c", prices=PRICES, max_cost_usd=1)
    assert {(str(row.state), row.error, row.text, row.served_model) for row in rows} == {("failed", WHY, "", OTHER)}
    assert {row.turns for row in rows} == {("DIFFERENTIAL:\n1. meningioma",)}, "what came can still be read"
    calls = distinct_calls(rows)
    assert (len(calls), sum(call.requests for call in calls), sum(call.cost_usd or 0 for call in calls)) == (
        3,
        3,
        pytest.approx(3 * 110e-6),
    )
    assert all((row.destination, row.characters_sent > 0) == ("local", True) for row in rows)
    assert not can_be_asked(WHY)
    assert can_be_asked("Timeout (no status)")
    # they are in the ledger, and nothing is asked twice
    assert ask(tmp_path, server, "a", "b", "c", prices=PRICES, max_cost_usd=1) == rows
    assert len(server.bodies) == 3
    # one line of the yaml says that it is the same model
    same = ask(tmp_path, server, "a", "b", "c", prices=PRICES, max_cost_usd=1, served_as=[OTHER])
    assert {(str(row.state), row.error, row.text) for row in same} == {("ok", "", "DIFFERENTIAL:\n1. meningioma")}
    assert len(server.bodies) == 3


def test_failed_calls_still_end_a_run_beside_such_answers(server, tmp_path: Path) -> None:
    class Failing(Switching):
        async def handle(self, request: web.Request) -> web.StreamResponse:
            body = await request.json()
            if "bad" in str(body["messages"]):
                return web.json_response({"error": {"message": "no"}}, status=400)
            return web.json_response(reply("x", model=OTHER))

    with running_server(Failing()) as failing, pytest.raises(ProviderError, match="1 of 3 answers failed") as error:
        ask(tmp_path, failing, "a", "b", "bad", max_attempts=1)
    assert OTHER not in str(error.value)


def test_one_turn_of_a_dialogue_by_another_model_is_enough(tmp_path: Path) -> None:
    with running_server(Switching(left=1)) as server:
        (row,) = ask(tmp_path, server, "i", turns=3)
        assert (row.error, row.served_model, len(row.turns)) == (WHY, OTHER, 3)


def test_answers_of_an_earlier_revision_are_compared_with_the_id_of_then(server, tmp_path: Path) -> None:
    ask(tmp_path, server, "a", id=f"openai/{OTHER}", revision="1")
    config = model_config(api_base=server.address, id="openai/m-4", revision="2")
    (row,) = previous_responses([request("a", RequestTurn(text="a 0"))], config, tmp_path / "m.jsonl")
    assert (row.state, row.revision, row.error) == ("ok", "1", "")


def test_a_person_sees_what_came_and_why_it_does_not_count(server, tmp_path: Path) -> None:
    rows = ask(tmp_path, server, "a")
    config = model_config(api_base=server.address)
    shown = explain(request("a", RequestTurn(text="a 0")), config, read_ledger(tmp_path / "m.jsonl"), rows=rows)
    assert f"by {OTHER}" in shown
    line = next(line for line in shown.splitlines() if "table of responses" in line)
    assert WHY in line
    assert "retry" not in line, "asking again brings the same answer"


class Judging(Server):
    """Grades every answer as right, under a name that is set."""

    named = "judge-2026-01-01"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        return web.json_response(reply('{"main_condition": 1, "core_diagnosis": 1, "explanation": "e"}', model=self.named))


def grades_of(root: Path, server: Judging) -> list[Grade]:
    """Ask a grader about one answer, and a jury of it and of one that says no."""
    config = load_grader(ROOT / "config/graders/llm.yaml")
    assert config.model
    model = config.model.model_copy(update={"api_base": server.address, "id": "openai/judge", "api_key_env": None, "prices": None})
    config = config.model_copy(update={"prompt": str(ROOT / "config/prompts/grader-v1.j2"), "model": model})
    grading = grader_run("llm", config, ledger=root / f"{server.named}.jsonl", destinations=("local",), max_failed_fraction=0.05)
    return grade_with_model([answered(differential("meningioma"))], {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, grading)


def test_a_grade_by_another_grader_is_missing_and_is_no_vote_of_a_jury(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_server(Judging()) as server:
        assert isinstance(server, Judging)
        assert {grade.value for grade in grades_of(tmp_path, server)} == {1.0}
        server.named = "judge-mini"
        grades = grades_of(tmp_path, server)
    why = "answered by another model: judge-mini, not judge"
    assert {(grade.value, str(grade.state), grade.explanation, grade.served_model) for grade in grades} == {
        (None, "failed", why, "judge-mini")
    }
    assert f"llm: WARNING: {why}" in capsys.readouterr().err
    others = [replace(grade, grader="other", state=GradeState.OK, value=0.0, explanation="") for grade in grades]
    for vote in grade_with_jury({"llm": grades, "other": others}, jury="jury", rule="majority"):
        assert (vote.value, vote.explanation) == (0.0, "1 of 2 members voted: 0 (1)")
