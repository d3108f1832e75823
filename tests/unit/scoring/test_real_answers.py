"""Replaying what a real language model answered and graded: `tests/fixtures/smollm2`, each answer read by hand."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from conftest import ROOT
from fixtures.scoring import GOLD, ITEM
from neuralmedbench.models.api.replies import _state
from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.scoring.explain_reading import why_unread
from neuralmedbench.scoring.llm.grader_requests import DIAGNOSIS_TASK
from neuralmedbench.scoring.llm.task import GradingInput
from neuralmedbench.scoring.parse import parse_answer

FILE = ROOT / "tests" / "fixtures" / "smollm2" / "answers.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
ANSWERS = [row for row in ROWS if row["form"] != "grade"]
GRADES = [row for row in ROWS if row["form"] == "grade"]


def item_of(row: dict[str, Any]) -> Item:
    if row["form"] == "choice":
        return replace(ITEM, runner=Runner.CHOICE, family=Family.QUESTION_ANSWERING, options=tuple(row["options"]))
    if row["form"] == "structured":
        return replace(ITEM, runner=Runner.STRUCTURED, family=Family.CLASSIFICATION)
    return replace(ITEM, family=Family(row["form"]))


def test_there_are_enough_of_every_kind() -> None:
    kinds = Counter(row["form"] for row in ROWS)
    assert kinds.keys() >= {
        *(family for family in ("differential_diagnosis", "lesion_recognition", "rationale_generation")),
        "choice",
        "grade",
    }
    assert len(ROWS) >= 300
    assert len(GRADES) >= 100


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_the_state_is_what_the_server_said(row: dict[str, Any]) -> None:
    assert _state(row["text"], row["finish"], row["finish"], refused=False) == row["state"]


@pytest.mark.parametrize("row", ANSWERS, ids=range(len(ANSWERS)))
def test_every_answer_is_read_as_by_hand(row: dict[str, Any]) -> None:
    item = item_of(row)
    read = parse_answer(row["text"], item)
    assert {"status": read.parse_status, "differential": list(read.differential), "abstained": read.abstained} == row["read"]
    assert bool(why_unread(row["text"], item)) == (read.parse_status is ParseStatus.FAILED)


@pytest.mark.parametrize("row", GRADES, ids=range(len(GRADES)))
def test_every_grade_is_read_as_by_hand(row: dict[str, Any]) -> None:
    verdict = DIAGNOSIS_TASK.read(row["text"], GradingInput(ITEM, GOLD, "", ""))
    assert (verdict and {judged.criterion: judged.value for judged in verdict}) == row["read"]["verdict"]
