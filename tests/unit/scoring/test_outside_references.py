"""A reference that the vocabulary does not have: no answer to it is graded by rule, and it is said at import, in the check and on the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from fixtures.imports import put, put_table
from fixtures.report import blocks_of, build
from fixtures.scoring import ITEM, answered, differential, vocabulary
from fixtures.tables import DEPTH, write_study
from neuralmedbench.cli.main import main
from neuralmedbench.files.tables import read_records, read_table, write_records
from neuralmedbench.records.items import Family, Gold
from neuralmedbench.records.scores import CORE_DIAGNOSIS, GradeState, Score
from neuralmedbench.scoring.matching import outside_references
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import score_responses

OUTSIDE = Gold(item_id=ITEM.item_id, answer="Hoshino syndrome")
VOCABULARY = str(ROOT / "config" / "vocabulary" / "neurology.yaml")


def grades_of(text: str, gold: Gold, **changes: object) -> list:
    items = {ITEM.item_id: replace(ITEM, **changes)}
    return grade_with_rubric([answered(text, ITEM)], items, {ITEM.item_id: gold}, vocabulary(), grader="rubric")


@pytest.mark.parametrize("text", [differential("Hoshino syndrome"), differential("meningioma"), "I cannot say."])
def test_no_answer_to_a_reference_outside_the_vocabulary_is_graded_by_words(text):
    rows = grades_of(text, OUTSIDE)
    assert {(row.state, row.value) for row in rows} == {(GradeState.NOT_GRADED, None)}
    assert {row.explanation for row in rows} == {"not graded: the vocabulary does not have the reference"}


@pytest.mark.parametrize("name", ["glioblastoma", "familial hemiplegic migraine", "narcolepsy type 1", "left frontal meningioma"])
def test_diagnoses_kinds_and_diseases_of_the_terminology_are_graded(name):
    assert {row.state for row in grades_of(differential(name), Gold(item_id=ITEM.item_id, answer=name))} == {GradeState.OK}


def test_a_free_question_is_judged_by_the_words_of_its_answer():
    rows = grades_of("ANSWER: Hoshino syndrome", OUTSIDE, family=Family.QUESTION_ANSWERING)
    assert {row.criterion: row.value for row in rows} == {CORE_DIAGNOSIS: 1.0}


def test_another_grader_decides_and_nothing_is_said_about_the_candidates():
    response, items, gold = answered(differential("meningioma"), ITEM), {ITEM.item_id: ITEM}, {ITEM.item_id: OUTSIDE}
    rule = grade_with_rubric([response], items, gold, vocabulary(), grader="rubric")
    model = [replace(row, grader="llm", value=1.0, state=GradeState.OK) for row in rule]
    (alone,) = score_responses([response], items, gold, [rule], vocabulary=vocabulary())
    (both,) = score_responses([response], items, gold, [rule, model], vocabulary=vocabulary())
    assert (alone.passed, alone.missing, both.passed) == (None, False, True)
    assert (both.relation, both.right_family, both.reference_rank, both.in_candidates) == ("", None, None, None)


def test_references_outside_the_vocabulary_are_listed_once():
    answers = ("glioblastoma", "Hoshino syndrome", "FHM", "Hoshino syndrome", "Chronic migraine")
    assert outside_references([Gold(item_id="i", answer=answer) for answer in answers], vocabulary()) == ["Hoshino syndrome"]


def test_the_import_and_the_check_of_a_set_say_how_many_and_which(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch):
    form = {
        "title": "Mine", "home": "here", "licence": "ours", "axis": "depth", "files": ["*.csv"], "runner": "open", "question": "q",
        "family": "differential_diagnosis", "answer": "a",
    }  # fmt: skip
    put(tmp_path / "config", {"mappings/mine.yaml": yaml.safe_dump(form)})
    put_table(tmp_path / "set" / "t.csv", [{"q": f"What is it? {a}", "a": a} for a in ("glioblastoma", "Hoshino syndrome", "MELAS")])
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark", "import", "mine", "--from", "set", "--vocabulary", VOCABULARY]) == 0
    said = "look at this: 1 of 3 diagnoses are not in the vocabulary: `rubric` does not grade their answers, which count as missing."
    imported = capsys.readouterr().out
    assert said in imported
    assert imported.rstrip().endswith("Hoshino syndrome")
    assert main(["benchmark", "check", "--benchmark", "mine", "--vocabulary", VOCABULARY]) == 0
    assert said in capsys.readouterr().out


def test_the_first_screen_says_how_many_references_the_vocabulary_does_not_have(tmp_path: Path):
    write_study(tmp_path, models=("alpha",), patients=6, arms=("full",))
    gold_path, scores = tmp_path / "data" / "gold" / f"{DEPTH}.parquet", tmp_path / "results" / "scores" / DEPTH / "alpha.parquet"
    items = {item for item in {row.item_id for row in read_records(scores, Score)} if "case00" in item}
    gold = [
        replace(row, answer="Hoshino syndrome", icd10="", aliases=()) if row.item_id in items else row
        for row in read_records(gold_path, Gold)
    ]
    write_records(gold_path, Gold, gold, key=lambda row: row.item_id)
    nothing = {"passed": None, "core_diagnosis": None, "main_condition": None, "relation": "", "right_family": None}
    nothing |= {"reference_rank": None, "in_candidates": None}
    rows = [replace(row, **nothing) if row.item_id in items else row for row in read_records(scores, Score)]
    write_records(scores, Score, rows, key=lambda row: (row.item_id, row.arm, row.repeat))
    glance = blocks_of(build(tmp_path, ("alpha",), figures=False))["glance"]
    assert "are not in the vocabulary: add a grader that asks a model, or add them to the vocabulary (docs/graders.md)" in glance
    table = read_table(tmp_path / "results" / "tables" / "leaderboard.csv")
    (board,) = [row for row in table if (row["benchmark"], row["model"]) == (DEPTH, "alpha")]
    assert "not graded: the references of " in board["note"]
    assert int(board["not_graded"]) == sum(row.item_id in items for row in rows)
    assert board["rank"] == ""
