"""Thoughts are taken out once, where a reply comes in: no reader, grader, later turn or import meets them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.models import model_config, request, running_server
from fixtures.rule_server import FOUND, RuleServer, exam_requests, given_inputs, rules_of
from fixtures.scoring import ITEM
from neuralmedbench.files.external_files import GivenAnswer
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.imported_answers import import_answers
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.replay import rebuild
from neuralmedbench.records.items import Item, Runner
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import is_cut_in_thought
from neuralmedbench.scoring.explain_reading import why_unread
from neuralmedbench.scoring.parse import parse_answer

RULES = [
    {"if": "stroke", "content": "A tumour? ANSWER: C\nNo.\n</think>\n\nANSWER: A"},
    {"if": "cut", "content": "Let me see. ANSWER: D\nNow the others: B", "finish_reason": "length"},
    {"if": "cut behind", "content": "</think>\nANSWER: D", "finish_reason": "length"},
    {"if": "never", "content": "<unused94>thought\nANSWER: A, I think"},
    {"if": "field", "content": None, "message": {"reasoning_content": "A?\n</think>\nANSWER: B"}},
    {"if": "parts", "message": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "ANSWER: A?"}]}, {"type": "text", "text": "B"}]}},
    {"if": "ladder", "content": "<|channel>thought\nThe first idea is a stroke.<channel|>A seizure."},
]  # fmt: skip


def run_of(server: RuleServer, folder: Path, **changes) -> ModelRun:
    model = model_config(**{"api_base": server.address, "max_attempts": 2, "concurrency": 1} | changes)
    return ModelRun(model, ledger=folder / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=folder)


def asked(*words: str):
    return [request(word.replace(" ", ""), RequestTurn(text=word)) for word in words]


def test_a_reply_is_kept_without_its_thoughts(tmp_path):
    with running_server(RuleServer(RULES)) as server:
        rows = answer_requests(asked("field", "never", "parts", "stroke"), run_of(server, tmp_path))
    assert [row.text for row in rows] == ["ANSWER: B", "<unused94>thought\nANSWER: A, I think", "B", "ANSWER: A"]
    assert why_unread(rows[1].text, ITEM) == "never closed its thinking, so that no answer follows"
    ledger = "".join(entry.text for entry in read_ledger(tmp_path / "m.jsonl").values())
    assert "ANSWER: C" not in ledger


def test_a_limit_met_in_a_thought_that_the_template_opens_is_known_from_the_other_answers(tmp_path):
    requests = asked("cut", "stroke")
    with running_server(RuleServer(RULES)) as server:
        run = run_of(server, tmp_path)
        alone = answer_requests(requests[:1], run)
        rows = answer_requests(requests, run)
        assert rows == rebuild(requests, run.model, read_ledger(run.ledger))
    assert [is_cut_in_thought(row.state, row.text) for row in (*alone, *rows)] == [False, True, False]
    assert parse_answer(rows[0].text, ITEM).parse_status == "failed"


def test_a_later_turn_does_not_show_a_thought(tmp_path):
    talk = request("t", RequestTurn(text="ladder"), RequestTurn(text="never, still"), RequestTurn(text="And now?"))
    with running_server(RuleServer([RULES[3], *RULES])) as server:
        answer_requests([talk], run_of(server, tmp_path))
    assert [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "assistant"]
    sent = str(server.bodies[-1]["messages"])
    assert "thought" not in sent
    assert "I think" not in sent


def test_marks_in_the_yaml_are_used_for_answers_that_came_before(tmp_path):
    rules = [{"content": "{{plan}}ANSWER: A?{{/plan}}ANSWER: B"}]
    with running_server(RuleServer(rules)) as server:
        (before,) = answer_requests(asked("q"), run_of(server, tmp_path))
        (after,) = answer_requests(asked("q"), run_of(server, tmp_path, thought_marks=["{{plan}}", "{{/plan}}"]))
        (new,) = answer_requests(asked("other"), run_of(server, tmp_path, thought_marks=["{{plan}}", "{{/plan}}"]))
        assert len(server.bodies) == 2
    assert (before.text, after.text, new.text) == (rules[0]["content"], "ANSWER: B", "ANSWER: B")


def test_an_imported_answer_is_kept_without_its_thoughts_and_importing_it_again_adds_nothing(tmp_path):
    model = model_config(backend="imported", id="x/y").named("theirs")
    rows = [GivenAnswer(where="row", item="q", sample=0, turns=("A?\n</think>\nANSWER: B",))]
    for added in (1, 0):
        assert import_answers(asked("q"), model, rows, ledger=tmp_path / "l.jsonl").added == added
    assert [entry.text for entry in read_ledger(tmp_path / "l.jsonl").values()] == ["ANSWER: B"]


def test_a_recorded_thought_keeps_its_text_and_the_keys_of_later_turns(tmp_path):
    """What was asked after an answer of former versions followed from its whole text."""
    talk = request("t", RequestTurn(text="First?"), RequestTurn(text="And now?"))
    with running_server(RuleServer([{"content": "A?\n</think>\nB"}])) as server:
        run = run_of(server, tmp_path)
        (row,) = answer_requests([talk], run)
    entries = read_ledger(run.ledger)
    first = next(iter(entries.values()))
    recorded = {first.key: replace(first, text="A?\n</think>\nB", thought="")}
    (due,) = (walk for walk in rebuild_walks(talk, run, recorded))
    assert [message.text for message in due.messages if message.role == "assistant"] == ["A?\n</think>\nB"]
    assert row.turns == ("B", "B")


def rebuild_walks(talk, run, entries):
    from neuralmedbench.models.samples import SampleWalk

    return [SampleWalk(talk, run.model, 0).resume(entries)]


def exam_items() -> list[Item]:
    with (FOUND / "02-closing-think-only" / "exam.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [replace(ITEM, runner=Runner.CHOICE, options=tuple(row[letter] for letter in "ABCD")) for row in rows]


@given_inputs
def test_the_published_replies_with_a_lone_closing_tag_are_read(tmp_path):
    with running_server(RuleServer(rules_of("02-closing-think-only"))) as server:
        rows = answer_requests(exam_requests("02-closing-think-only"), run_of(server, tmp_path))
    letters = [parse_answer(row.text, item).choice for row, item in zip(rows, exam_items(), strict=True)]
    assert letters == ["A", "B", "C", "", "A", "B", "C", "C"]
    assert [is_cut_in_thought(row.state, row.text) for row in rows] == [False] * 3 + [True] + [False] * 4


@given_inputs
def test_the_published_list_in_a_thought_is_not_read(tmp_path):
    with running_server(RuleServer(rules_of("02-closing-think-only", "open-replies.json"))) as server:
        (row,) = answer_requests(asked("q"), run_of(server, tmp_path))
    read = parse_answer(row.text, ITEM)
    assert (read.differential[0].lower(), read.confidence) == ("herpes simplex encephalitis", None)
    assert "Meningioma" not in row.text


@pytest.mark.parametrize("marks", [["<a>", ""], ["<a>"], "x"])
def test_marks_that_end_nothing_are_refused(marks):
    with pytest.raises(ValueError, match="thought_marks"):
        model_config(thought_marks=marks)
