"""Only the elected sample of a vote is graded: a paid grader is asked about no other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import grade_responses
from fixtures.scoring import GOLD, ITEM, VOCABULARY_FILE, answered, differential, vocabulary
from neuralmedbench.files.cases import write_audit
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.case import Audit
from neuralmedbench.records.items import Gold, Item, Strategy
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Grade, response_key
from neuralmedbench.scoring.llm import model_grading
from neuralmedbench.scoring.llm.grader_requests import scored_responses
from neuralmedbench.scoring.scores import score_responses

ROOT = Path(__file__).parents[3]
GOOD = json.dumps({"main_condition": 1, "core_diagnosis": 1, "explanation": "the same disease"})
OTHER = replace(ITEM, item_id="demo/other")
VOTE = {"strategy": Strategy.SELF_CONSISTENCY.value}
SAID = ["abscess", "glioblastoma", "glioblastoma", "meningioma", "GBM"]


def samples(item: Item = ITEM, **changes: object) -> list[Response]:
    return [answered(differential(name, findings=f"Sample {place}."), item, repeat=place, **changes) for place, name in enumerate(SAID)]


ROWS = [
    *samples(**VOTE),
    *samples(strategy="cot"),
    *[replace(row, state=ResponseState.FAILED, text="") for row in samples(OTHER, **VOTE)],
]
ITEMS = {row.item_id: row for row in (ITEM, OTHER)}
GOLDS = {row.item_id: row for row in (GOLD, replace(GOLD, item_id=OTHER.item_id))}


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grader: str) -> tuple[list[str], list[Grade]]:
    """Grade with the command; return strategy and number of the samples that the grader was asked about, and the grades."""
    asked: list[str] = []

    def answer(requests, model, **_):
        asked.extend(turn.text for request in requests for turn in request.turns)
        return [answered(GOOD, ITEMS[row.item_id], arm=row.arm, strategy=row.strategy) for row in requests]

    monkeypatch.setattr(model_grading, "answer_requests", answer)
    values = {"title": "B", "kind": "text", "axis": "depth", "source": "s"}
    settings = {"title": "G", "kind": grader}
    if grader == "llm":
        settings |= {"prompt": str(ROOT / "config" / "prompts" / "grader-v1.j2")}
        settings |= {"model": {"title": "G", "backend": "builtin", "id": "text", "revision": "1"}}
    for folder, name, value in (("benchmarks", "b", values), ("graders", "g", settings)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    write_records(tmp_path / "responses.parquet", Response, ROWS, key=response_key)
    write_records(tmp_path / "items.parquet", Item, ITEMS.values(), key=lambda row: row.item_id)
    write_records(tmp_path / "gold.parquet", Gold, GOLDS.values(), key=lambda row: row.item_id)
    write_audit(tmp_path / "audit.json", Audit(benchmark="b", profile="pseudonymised", kind="public", state="passed"))
    arguments = ["--benchmark", "b", "--grader", "g", "--config", str(tmp_path), "--vocabulary", str(VOCABULARY_FILE)]
    arguments += [
        "--audit",
        str(tmp_path / "audit.json"),
        "--ledger",
        str(tmp_path / "ledger.jsonl"),
        "--settings",
        '{"max_failed_fraction": 0}',
    ]
    for name in ("responses", "items", "gold"):
        arguments += [f"--{name}", str(tmp_path / f"{name}.parquet")]
    assert grade_responses.main([*arguments, "--out", str(tmp_path / "grades.parquet")]) == 0
    return asked, read_records(tmp_path / "grades.parquet", Grade)


def test_a_paid_grader_is_asked_about_the_elected_answer_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, grades = run(tmp_path, monkeypatch, "llm")
    texts = "\n".join(asked)
    # the five answers under cot are all scored; the elected sample has the text of one of them, and shares its call
    assert len(asked) == 5
    assert sorted(place for place in range(5) if f"Sample {place}." in texts) == [0, 1, 2, 3, 4]
    assert {row.repeat for row in grades if row.strategy == VOTE["strategy"]} == {1}
    assert {row.repeat for row in grades if row.strategy == "cot"} == set(range(5))


def test_without_other_strategies_one_call_grades_a_vote_of_five(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_graded_votes.ROWS", [row for row in ROWS if row.strategy == VOTE["strategy"]])
    asked, grades = run(tmp_path, monkeypatch, "llm")
    assert len(asked) == 1
    assert "Sample 1." in asked[0]
    assert [row.item_id for row in grades] == [ITEM.item_id] * 2, "a vote that nobody won is missing and is not graded"


def test_every_scored_answer_of_a_vote_still_has_its_grade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for grader in ("llm", "rubric"):
        (tmp_path / grader).mkdir()
        _, grades = run(tmp_path / grader, monkeypatch, grader)
        scores = score_responses(ROWS, ITEMS, GOLDS, [grades], vocabulary=vocabulary())
        assert {(row.item_id, row.strategy, row.missing, row.core_diagnosis is None) for row in scores} == {
            (ITEM.item_id, "cot", False, False),
            (ITEM.item_id, VOTE["strategy"], False, False),
            (OTHER.item_id, VOTE["strategy"], True, True),
        }


def test_what_counts_keeps_its_order_and_earlier_revisions_vote_by_themselves() -> None:
    earlier = [replace(row, revision="0", text=differential("abscess")) for row in samples(**VOTE)]
    kept = scored_responses([*earlier, *ROWS], ITEMS, GOLDS, vocabulary())
    assert [(row.revision, row.strategy, row.repeat) for row in kept if row.item_id == ITEM.item_id] == [
        ("0", VOTE["strategy"], 0),
        (ROWS[0].revision, VOTE["strategy"], 1),
        *[(ROWS[0].revision, "cot", place) for place in range(5)],
    ]
