"""Juries: joint grades, missing votes, and the grades without each member."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import decide_jury
from conftest import ROOT
from fixtures.loopback import Loopback
from fixtures.models import running_server
from fixtures.scoring import GOLD, ITEM, answered, differential, grader_run, vocabulary
from neuralmedbench.config.juries import jury_members
from neuralmedbench.config.load import load_grader
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.recording.record import scored_files
from neuralmedbench.records.scores import CORE_DIAGNOSIS, Grade, GradeState, response_key
from neuralmedbench.scoring.jury import decide, grade_with_jury
from neuralmedbench.scoring.llm.model_grading import grade_with_model
from neuralmedbench.scoring.rubric import make_grade
from neuralmedbench.scoring.scores import score_responses

ANSWER = answered(differential("glioblastoma"))


def vote(value: float | None, grader: str = "a", *, state: GradeState | None = None, criterion: str = CORE_DIAGNOSIS, of=ANSWER) -> Grade:
    row = make_grade(of, grader, criterion, value=value, weight=1.0, explanation="why")
    row = replace(
        row, destination="api.example.org", attempts=1, characters_sent=9, served_model="m", fingerprint="f", called_on="2026-01-02"
    )
    return replace(row, state=state) if state else row


def jury(*values: float | None, rule: str = "majority", state: GradeState | None = None) -> Grade:
    (row,) = grade_with_jury({str(place): [vote(value, state=state)] for place, value in enumerate(values)}, jury="j", rule=rule)
    return row


@pytest.mark.parametrize(
    ("votes", "majority", "mean"),
    [
        ((1, 1, 0), 1, 2 / 3),
        ((1, 0, 0), 0, 1 / 3),
        ((1, 0), 0, 0.5),
        ((1, 1, 0, 0), 0, 0.5),
        ((1, 1, 1, 0), 1, 0.75),
        ((2, 1, 0), 1, 1),
        ((2, 2, 1), 2, 5 / 3),
        ((2, 0), 0, 1),
        ((0.2, 0.4, 0.9), 0.4, 0.5),
    ],
)
def test_a_majority_is_more_than_half_of_the_votes_and_a_tie_is_none(votes, majority, mean):
    assert decide(votes, "majority") == majority
    assert decide(votes, "mean") == pytest.approx(mean)
    assert decide(votes[::-1], "majority") == majority, "the order of the members decides nothing"


def test_a_member_without_a_grade_is_missing_and_the_others_decide():
    row = jury(1, None, 1)
    assert (row.value, row.state, row.explanation) == (1.0, GradeState.OK, "2 of 3 members voted: 1 (2)")
    assert jury(1, None).value == 1.0, "half of the members is enough"


def test_below_half_of_the_members_there_is_no_grade():
    row = jury(1, None, None)
    assert (row.value, row.state, row.explanation) == (None, GradeState.FAILED, "1 of 3 members voted")
    assert jury(None, None).state is GradeState.FAILED
    assert jury(None, None, state=GradeState.SKIPPED).state is GradeState.SKIPPED


def test_a_member_that_says_nothing_of_a_criterion_has_not_voted():
    members = {"a": [vote(1)], "b": [vote(1, "b", criterion="argues_1")], "c": []}
    assert {row.criterion: row.value for row in grade_with_jury(members, jury="j", rule="majority")} == {
        CORE_DIAGNOSIS: None,
        "argues_1": None,
    }


def test_grades_of_another_text_are_votes_on_another_text():
    other = answered("Another answer.")
    rows = grade_with_jury({"a": [vote(1)], "b": [vote(0, "b", of=other)]}, jury="j", rule="mean")
    assert sorted((row.text_sha256, row.value) for row in rows) == sorted(
        [(vote(1).text_sha256, 1.0), (vote(0, of=other).text_sha256, 0.0)]
    )


def test_a_jury_names_no_call_because_its_members_do():
    row = jury(1, 1)
    assert (row.grader, row.destination, row.attempts, row.characters_sent, row.served_model, row.called_on) == ("j", "", 0, 0, "", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graders").mkdir()
    write(tmp_path, "a", kind="rubric")
    for name, task in (("b", "diagnosis"), ("c", "diagnosis"), ("e", "errors"), ("f", "errors")):
        write(tmp_path, name, kind="llm", task=task)
    return tmp_path


def write(folder: Path, name: str, **values: object) -> None:
    (folder / "graders" / f"{name}.yaml").write_text(yaml.safe_dump({"title": name, **values}), encoding="utf-8")


def members(folder: Path, *names: str, **changes: object) -> list[str]:
    write(folder, "j", kind="jury", members=list(names), **changes)
    graders = {name: load_grader(folder / "graders" / f"{name}.yaml") for name in ("a", "j")}
    return list(jury_members(folder, graders))


def test_members_that_are_in_no_run_list_grade_all_the_same(folder):
    assert members(folder, "b", "a", "c") == ["b", "c"]


@pytest.mark.parametrize(
    ("names", "changes", "says"),
    [
        (("b",), {}, "two or more different graders"),
        (("b", "b"), {}, "two or more different graders"),
        (("b", "c"), {"prompt": "x"}, "belong to its members"),
        (("b", "e"), {}, "judge different things"),
        (("b", "x"), {}, "is not there"),
        (("b", "k"), {}, "is a jury"),
        (("e", "f"), {"rule": "mean"}, "needs `rule: majority`"),
    ],
)
def test_a_jury_that_cannot_vote_is_refused(folder, names, changes, says):
    write(folder, "k", kind="jury", members=["b", "c"])
    with pytest.raises(ConfigError, match=says):
        members(folder, *names, **changes)


def test_only_a_jury_has_members(folder):
    write(folder, "b", kind="llm", members=["a", "c"])
    with pytest.raises(ConfigError, match="`members` belong to a jury"):
        load_grader(folder / "graders" / "b.yaml")


def test_three_graders_vote_through_the_commands_and_their_word_is_scored(folder, tmp_path, monkeypatch):
    rows = [answered(differential("glioblastoma"), repeat=0), answered(differential("meningioma"), repeat=1)]
    monkeypatch.setenv("NMB_TEST_KEY", "nmb-test-0123456789")
    config = load_grader(ROOT / "config/graders/llm-diagnosis-v4.yaml")
    config = config.model_copy(update={"prompt": str(ROOT / config.prompt)})
    members, files = ["gpt", "claude", "gemini"], []
    with running_server(Loopback(longest_s=0.06)) as server:
        for name in members:
            assert config.model is not None
            model = config.model.model_copy(update={"id": f"openai/{name}", "api_base": server.address, "api_key_env": "NMB_TEST_KEY"})
            asked = config.model_copy(update={"model": model})
            settings = {"ledger": tmp_path / f"{name}.jsonl", "destinations": ("local",), "max_failed_fraction": 0.0}
            grades = grade_with_model(rows, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, grader_run(name, asked, **settings))
            files.append(tmp_path / f"{name}.parquet")
            write_records(files[-1], Grade, grades, key=lambda row: (response_key(row), row.criterion))
    write(folder, "j", kind="jury", members=members)
    out = tmp_path / "j.parquet"
    arguments = ["--grader", "j", "--config", str(folder), "--grades", *map(str, files), "--out", str(out)]
    assert decide_jury.main(arguments) == 0
    given = read_records(out, Grade)
    assert {(row.repeat, row.criterion, row.state) for row in given} == {
        (repeat, name, GradeState.OK) for repeat in (0, 1) for name in ("main_condition", CORE_DIAGNOSIS)
    }
    assert {row.explanation[:19] for row in given} == {"3 of 3 members vote"}
    scored = score_responses(rows, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, [given], vocabulary=vocabulary())
    said = {row.repeat: row.value for row in given if row.criterion == CORE_DIAGNOSIS}
    assert {row.repeat: row.core_diagnosis for row in scored} == said
    assert {row.repeat: row.passed for row in scored} == {repeat: value == 1 for repeat, value in said.items()}


def test_a_run_knows_the_members_of_its_juries_and_records_their_grades(monkeypatch, tmp_path):
    members = ["llm", "llm-diagnosis-v4"]
    shutil.copytree(ROOT / "config", tmp_path / "config")
    write(tmp_path / "config", "jury", kind="jury", members=members)
    monkeypatch.chdir(tmp_path)
    run = Run.read({"benchmarks": ["demo"], "models": ["text"], "graders": ["rubric", "jury"]}, Path("config"))
    assert (list(run.graders), list(run.all_graders)) == (["rubric", "jury"], ["rubric", "jury", *members])
    grades = [path for path in scored_files(run) if path.startswith("results/grades/demo/text/")]
    assert grades == [f"results/grades/demo/text/{name}.parquet" for name in run.all_graders]
