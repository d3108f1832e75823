"""Replies of graders as servers send them: what is read, what is missing and why, and what asks again."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

from conftest import ROOT
from fixtures.models import running_server
from fixtures.rule_server import FOUND, RuleServer, given_inputs, rules_of
from fixtures.scoring import GOLD, ITEM, answered, grader_run, vocabulary
from neuralmedbench.config.load import load_grader
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.records.scores import GradeState
from neuralmedbench.scoring.llm.model_grading import grade_with_model
from neuralmedbench.scoring.rubric import make_grade
from neuralmedbench.scoring.scores import score_responses

CONFIG = load_grader(ROOT / "config" / "graders" / "llm.yaml")
ANSWER = "DIFFERENTIAL:\n1. Moyamoya disease\nCONFIDENCE: 0.5"
RULES = [
    {"if": "Reference answer: glioblastoma", "content": '{"main_condition": "false", "core_diagnosis": false, "explanation": ""}'},
    {"if": "Reference answer: stroke", "content": 'Mine:\n```json\n{"main_condition": 1, "core_diagnosis": 0, "explanation": ""}\n```'},
    {"if": "Reference answer: abscess", "content": '{"main_condition": 0, "core_diagnosis": 1, "explanation": ""}'},
    {"if": "Reference answer: gateway", "times": 1, "content": "upstream request timeout"},
    {"if": "Reference answer: gateway", "content": '{"main_condition": 0, "core_diagnosis": 0, "explanation": ""}'},
    {"if": "Reference answer: later", "times": 2, "content": '{"main_condition": 90, "core_diagnosis": 90, "explanation": ""}'},
    {"content": '{"main_condition": 1, "core_diagnosis": 1, "explanation": ""}'},
]


def graded(server: RuleServer, folder: Path, *references: str, **settings):
    changes = {"api_base": server.address, "api_key_env": None, "concurrency": 1, "max_attempts": 3, "id": "openai/m", "prices": None}
    model = CONFIG.model.model_copy(update=changes)
    config = CONFIG.model_copy(update={"prompt": str(ROOT / "config" / "prompts" / "grader-v4.j2"), "model": model})
    names = [f"b/q{number}" for number in range(len(references))]
    items = {name: replace(ITEM, item_id=name, case_id=name) for name in names}
    gold = {name: replace(GOLD, item_id=name, answer=reference, aliases=()) for name, reference in zip(names, references, strict=True)}
    rows = [answered(ANSWER, items[name]) for name in names]
    run = grader_run("it", config, ledger=folder / "it.jsonl", destinations=("local",), root=ROOT, **settings)
    grades = grade_with_model(rows, items, gold, run)
    scores = score_responses(rows, items, gold, [grades], vocabulary=vocabulary())
    return {name: [grade for grade in grades if grade.item_id == name] for name in names}, {row.item_id: row.passed for row in scores}


def values(grades):
    return [None if row.state is GradeState.FAILED else row.value for row in grades]


def test_a_verdict_in_another_form_is_read_and_a_contradiction_is_none(tmp_path):
    with running_server(RuleServer(RULES)) as server:
        grades, passed = graded(server, tmp_path, "glioblastoma", "stroke", "abscess", "gateway")
    assert [values(rows) for rows in grades.values()] == [[0, 0], [1, 0], [None, None], [0, 0]]
    assert list(passed.values()) == [False, False, None, False]
    assert "a contradiction" in grades["b/q2"][0].explanation


def test_retry_asks_again_for_a_reply_that_cannot_be_read_and_only_for_that(tmp_path, capsys):
    with running_server(RuleServer(RULES)) as server:
        calls, found = [], []
        for _ in range(4):
            grades, _ = graded(server, tmp_path, "stroke", "later")
            calls.append(len(server.bodies))
            found.append(values(grades["b/q1"]))
        again, _ = graded(server, tmp_path, "stroke", "later", replay=True)
        assert calls == [2, 3, 4, 4]
        assert len(server.bodies) == 4, "a replay asks nothing"
    assert found == [[None, None], [None, None], [1, 1], [1, 1]]
    assert values(again["b/q1"]) == [1, 1]
    assert sum(call.requests for call in again["b/q1"][0].calls) == 3, "every call is counted"
    assert (
        "1 of 2 replies cannot be read (1: 90 for 0 or 1); `nmb run retry` asks for these again, up to 3 times" in capsys.readouterr().err
    )
    assert len(read_ledger(tmp_path / "it.jsonl")) == 4


def test_a_reply_that_stays_unread_is_not_asked_for_without_end(tmp_path):
    rules = [{"content": '{"main_condition": "perhaps", "core_diagnosis": 0, "explanation": ""}'}]
    with running_server(RuleServer(rules)) as server:
        states = [graded(server, tmp_path, "stroke")[0]["b/q0"][0] for _ in range(5)]
        assert len(server.bodies) == 3
    assert [grade.state for grade in states] == ["failed", "failed", *["not_graded"] * 3]
    assert states[-1].explanation == "the grader's answer is not in its form, asked 3 times: other words for 0 or 1"


def references(folder: str) -> list[str]:
    with (FOUND / folder / "open.csv").open(encoding="utf-8", newline="") as file:
        return [row["diagnosis"] for row in csv.DictReader(file)]


@given_inputs
def test_the_published_contradictory_grader_passes_nothing(tmp_path):
    with running_server(RuleServer(rules_of("05-contradictory-grade"))) as server:
        grades, passed = graded(server, tmp_path, *references("05-contradictory-grade"))
    assert [values(rows) for rows in grades.values()] == [[None, None]] * 3
    assert list(passed.values()) == [None] * 3


@given_inputs
def test_the_published_forms_of_graders(tmp_path, capsys):
    """True for 1 is read, as step 19 asks for; the reply of 90 is missing, with what it has instead."""
    with running_server(RuleServer(rules_of("16-grader-forms"))) as server:
        grades, _ = graded(server, tmp_path, *references("16-grader-forms"))
        assert [values(rows) for rows in grades.values()] == [[1, 0], [0, 0], [0, 0], [None, None]]
        assert "1 of 4 replies cannot be read (1: 90 for 0 or 1)" in capsys.readouterr().err
        graded(server, tmp_path, *references("16-grader-forms"))
        assert len(server.bodies) == 5


def test_a_recorded_grade_that_contradicts_itself_is_no_verdict():
    row = answered(ANSWER)
    verdict = {"main_condition": 0.0, "core_diagnosis": 1.0}
    grades = [make_grade(row, "it", name, value=value, weight=1.0, explanation="") for name, value in verdict.items()]
    (score,) = score_responses([row], {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, [grades], vocabulary=vocabulary())
    assert (score.passed, score.main_condition, score.core_diagnosis) == (None, None, None)
