"""Pairs of visits, boxes in sequences and ladders come in by a mapping and a function, on small files made by hand in the published form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from fixtures.imports import built, imported, picture_bytes, put, put_mapping, put_table
from fixtures.prompt import asked, labels, said
from fixtures.scoring import answered, vocabulary
from fixtures.seed_rows import BOXES, CLASSES, RIGHT, STAGES, put_ladder, put_medreco, put_medsg, put_temmed
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.importing import ImportPaths, import_set, import_summary
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.errors import ConfigError, DataError, RatingError
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models.requests_of_model import too_many_pictures, within_budget
from neuralmedbench.prompts.arms import views
from neuralmedbench.ratings.answering.answers import forms_of
from neuralmedbench.records.items import Item, Runner
from neuralmedbench.records.questions import ImportRecord
from neuralmedbench.scoring.scores import score_responses

STAGED: dict[str, Any] = {
    "title": "Mine",
    "home": "here",
    "licence": "ours",
    "axis": "depth",
    "files": ["table.*"],
    "runner": "structured",
}
STAGES_OF_ROW = """
def question(row):
    found, again = (Value(name=name, rule="letter", reference=row["finding"]) for name in ("what", "again"))
    side = Value(name="side", rule="label", reference=row["side"])
    return Question(
        text=row["history"],
        rounds=(
            QuestionRound(stage="where", question=row["q1"], values=(Value(name="where", rule="box", reference=row["box"]),)),
            QuestionRound(stage="what", question=row["q2"], values=(found, side)),
            QuestionRound(stage="what", retry=True, question="Look again.", text=row["hint"], values=(again,)),
        ),
    )
"""
ROW = {
    "history": "A fall.",
    "q1": "Where?",
    "box": "[0, 0, 0.5, 0.5]",
    "q2": "What? (a) x (b) y",
    "finding": "(b) y",
    "side": "left",
    "hint": "It is bright.",
}


def mine(tmp_path: Path, rows: list[dict[str, Any]], function: str = STAGES_OF_ROW, **changes: Any) -> tuple[ImportRecord, BenchmarkItems]:
    put_mapping(tmp_path, {**STAGED, **changes}, function)
    put_table(tmp_path / "set" / "table.jsonl", rows)
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    record = import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places)
    return record, built(places, "full")


def passes(made: BenchmarkItems, texts: list[str]) -> list[bool | None]:
    rows = [answered(text, item) for item, text in zip(made.items, texts, strict=True)]
    gold = {row.item_id: row for row in made.gold}
    return [row.passed for row in score_responses(rows, {item.item_id: item for item in made.items}, gold, [], vocabulary=vocabulary())]


def test_a_pair_of_visits_is_asked_in_the_order_of_time_and_named(tmp_path: Path) -> None:
    record, made = imported("temmed-bench", put_temmed(tmp_path / "set"), tmp_path)
    assert (record.expected, record.found, record.imported, record.images) == (2000, 6, 6, 6)
    assert [item.item_id for item in made.items] == ["b/0-0", "b/0-1", "b/1-1", "b/1-2", "b/2-2", "b/2-0"]
    assert [row.answer for row in made.gold] == ["Yes", "No", "No", "No", "No", "Yes"]
    assert {item.patient_id for item in made.items} == {"patient00000", "patient00001", "patient00002"}
    # the earlier picture was read first, whichever column is named first
    assert [[(image.role, image.label) for image in item.images] for item in made.items] == [
        [("prior", "Earlier image"), ("current", "Present image")]
    ] * 6
    requests = asked(made.items)
    assert labels(requests["0-0", "full", "direct"]) == ["Earlier image", "Present image"]
    assert "The earlier image is from the last visit of this patient" in said(requests["0-0", "full", "direct"])
    earlier, present = made.items[0].images
    numbers = {name: place for place, name in enumerate(sorted(path.name for path in (tmp_path / "raw").iterdir()))}
    assert len(numbers) == 6
    assert earlier.image_id != present.image_id
    assert passes(made, ["ANSWER: A", "B", "ANSWER: A", "No", "B. No", "ANSWER: Yes"]) == [True, True, False, True, True, True]


def test_the_earlier_picture_is_the_historical_one(tmp_path: Path) -> None:
    folder = put_temmed(tmp_path / "set", 1)
    put(folder, {"PNG/train/patient00000/study1/view1_frontal.png": picture_bytes(99, size=(20, 30))})
    imported("temmed-bench", folder, tmp_path)
    question = json.loads((tmp_path / "questions" / "questions.jsonl").read_text(encoding="utf-8").splitlines()[0])
    sizes = {
        row.split(",")[0]: row.split(",")[2:] for row in (tmp_path / "questions" / "images.csv").read_text(encoding="utf-8").splitlines()
    }
    assert [sizes[image["file"]] for image in question["images"]] == [["20", "30"], ["12", "10"]]


def test_a_pair_is_never_cut_by_a_picture_budget(tmp_path: Path) -> None:
    _, made = imported("temmed-bench", put_temmed(tmp_path / "set", 1), tmp_path)
    request = asked(made.items)["0-0", "full", "direct"]
    assert too_many_pictures(request, 1) == "b/0-0: the question needs all of its 2 pictures, max_images is 1"
    assert too_many_pictures(request, 2) == too_many_pictures(request, None) == ""
    assert [image.label for turn in within_budget(request.turns, 2) for image in turn.images] == ["Earlier image", "Present image"]


def test_a_list_that_names_no_pair_or_no_question_is_refused_by_its_row(tmp_path: Path) -> None:
    folder = put_temmed(tmp_path / "set", 1)
    listed = [{"img_id": 0, "question_id": 0}, {"img_id": 7, "question_id": 0}, {"img_id": 0, "question_id": 9}]
    put(folder, {"TestSet_SelectedVQA_2000.json": listed})
    record, _ = imported("temmed-bench", folder, tmp_path)
    assert [row.where for row in record.refused] == [f"TestSet_SelectedVQA_2000.json, row {number}" for number in (2, 3)]
    lacking = "TestSet_VQA_ReportGeneration.json has no such pair of visits, or no such question"
    assert {row.reason for row in record.refused} == {lacking}


def test_a_case_without_one_of_its_stages_is_refused_and_names_the_file(tmp_path: Path) -> None:
    folder = put_ladder(tmp_path / "set", 2)
    next((folder / "qa/inspiration/path1/stage3").glob("*/0001*.json")).unlink()
    record, made = imported("cxreasonbench", folder, tmp_path)
    assert len(made.items) == 2
    (refusal,) = record.refused
    assert refusal.reason.startswith("0 files of this row; expected one; add the missing file")
    assert refusal.found.startswith("'qa/inspiration/path1/stage3/*/0001")


def test_changes_over_time_have_four_classes_and_two_patients_are_no_pair(tmp_path: Path) -> None:
    record, made = imported("medreco", put_medreco(tmp_path / "set"), tmp_path)
    assert (record.found, record.imported) == (4, 4), "the row about two patients is not asked"
    assert {item.options for item in made.items} == {CLASSES}
    assert [row.answer for row in made.gold] == list(CLASSES)
    assert [item.patient_id for item in made.items] == [f"p1000000{patient}" for patient in range(4)]
    requests = list(asked(made.items).values())
    assert {tuple(labels(request)) for request in requests} == {("Earlier image", "Present image")}
    assert all("reason" not in said(request) and "<image>" not in said(request) for request in requests)


def test_boxes_are_asked_and_told_in_fractions_over_the_pictures_of_a_sequence(tmp_path: Path) -> None:
    record, made = imported("medsg-bench", put_medsg(tmp_path / "set"), tmp_path)
    assert (record.imported, record.refused) == (3, ())
    items = {item.tags[0].removeprefix("task:"): item for item in made.items}
    assert [item.patient_id for item in items.values()] == ["LUNA16-001", "VIEWS-003", "ACDC-004"]
    wanted = {gold.item_id: json.loads(gold.values[0].value) for gold in made.gold}
    sizes = {"Registered_Diff": 336, "object_tracking": 336, "multi_view": 200}
    of_task = dict(zip(("Registered_Diff", "object_tracking", "multi_view"), BOXES, strict=True))
    for task, item in items.items():
        assert wanted[item.item_id] == pytest.approx([edge / sizes[task] for edge in of_task[task]])
    assert items["object_tracking"].question == (
        "The region [0.25, 0.0, 0.5, 1.0] of the first image is RightVentricle. Find it in the third image."
    )
    requests = asked(made.items)
    name = items["object_tracking"].item_id.removeprefix("b/")
    assert labels(requests[name, "full", "direct"]) == ["Image 1", "Image 2", "Image 3"]
    assert too_many_pictures(requests[name, "full", "direct"], 2)
    # half of the reference box is an overlap of one half, a bit less is not enough
    assert passes(made, ["[0.25, 0.25, 0.5, 0.375]", '{"box": [0.05, 0.1, 0.55, 0.6]}', "[0, 0, 0.24, 1]"]) == [True, True, False]


def test_a_box_of_a_question_outside_its_picture_is_refused(tmp_path: Path) -> None:
    folder = put_medsg(tmp_path / "set")
    (row,) = json.loads((folder / "Task4.json").read_text(encoding="utf-8"))
    put(folder, {"Task4.json": [{**row, "question": row["question"].replace("(168,336)", "(168,999)")}]})
    record, _ = imported("medsg-bench", folder, tmp_path)
    assert [refusal.reason for refusal in record.refused] == ["a box is not within its picture"]


def test_a_ladder_is_read_from_a_file_for_each_stage(tmp_path: Path) -> None:
    record, made = imported("cxreasonbench", put_ladder(tmp_path / "set"), tmp_path)
    assert (record.expected, record.imported, record.refused) == (1200, 3, ())
    printed = import_summary(record, written=True).splitlines()
    assert f"  sha256 of {len(record.sources) - 20} more files: import.json" in printed
    assert sum(line.startswith("  sha256 ") for line in printed) == 21
    refined, plain = made.items[0], made.items[-1]
    assert [(turn.stage, turn.retry, turn.asks) for turn in refined.turns] == [
        ("", False, ("first_answer",)),
        ("criterion", False, ("criterion",)),
        ("", False, ("refined_criterion",)),
        ("anatomy", False, ("anatomy",)),
        ("measurement", False, ("measurement",)),
        ("decision", False, ("decision",)),
        ("anatomy", True, ("guided_anatomy",)),
        ("anatomy", True, ("guided_anatomy_2",)),
        ("measurement", True, ("guided_measurement",)),
        ("decision", True, ("guided_decision",)),
    ]
    assert len(plain.turns) == 9, "a task without a refined criterion has no such round"
    assert [len(turn.image_ids) for turn in refined.turns] == [1, 0, 0, 4, 0, 0, 4, 0, 1, 0]
    assert refined.patient_id == plain.patient_id == "p10000000"
    assert {value.field: value.decides for value in made.gold[0].values} == {name: name in STAGES for name in RIGHT}
    assert {refined.runner, plain.runner} == {Runner.STRUCTURED}


def test_every_turn_of_a_ladder_shows_its_own_pictures_and_asks_for_its_own_field(tmp_path: Path) -> None:
    _, made = imported("cxreasonbench", put_ladder(tmp_path / "set", 1), tmp_path)
    request = asked(made.items)[made.items[0].item_id.removeprefix("b/"), "full", "direct"]
    assert [[image.label for image in turn.images] for turn in request.turns] == [
        ["Image 1"], [], [], ["Image 1", "Image 2", "Image 3", "Image 4"], [], [], ["Image 1", "Image 2", "Image 3", "Image 4"], [], ["Image 1"], [],
    ]  # fmt: skip
    # the masks of both paths are the same files, in the same order
    assert [image.sha256 for image in request.turns[3].images] == [image.sha256 for image in request.turns[6].images]
    for turn, one in zip(request.turns, made.items[0].turns, strict=True):
        assert turn.text.count('"confidence"') == 1
        assert [name for name in RIGHT if f'"{name}": ' in turn.text] == list(one.asks)
    assert (request.runner, request.answer_schema) == ("structured", ""), "one schema would not fit every turn"
    stepwise = asked(made.items, strategies=["direct", "cot"])[made.items[0].item_id.removeprefix("b/"), "full", "cot"]
    assert all('"reasoning": your steps' in turn.text for turn in stepwise.turns)


def test_arms_leave_out_the_pictures_of_a_ladder_and_exchange_none(tmp_path: Path) -> None:
    _, made = imported("cxreasonbench", put_ladder(tmp_path / "set"), tmp_path)
    without = asked(made.items, arms=["full", "no_image"])
    assert all(not labels(request) for (_, arm, _), request in without.items() if arm == "no_image")
    pair = imported("temmed-bench", put_temmed(tmp_path / "pairs"), tmp_path / "other")[1]
    shown = views([*made.items, *pair.items], "shuffled_image", [])
    assert {view.item.item_id for view in shown} == {item.item_id for item in pair.items}
    assert all([image.role for image in view.item.images] == ["prior", "current"] for view in shown)


def test_a_table_of_ones_own_can_hold_a_ladder_of_boxes_letters_and_labels(tmp_path: Path) -> None:
    record, made = mine(tmp_path, [ROW])
    assert record.refused == ()
    (item,), (gold,) = made.items, made.gold
    assert [(value.field, value.rule, value.decides) for value in gold.values] == [
        ("where", "box", True), ("what", "letter", True), ("side", "label", True), ("again", "letter", False),
    ]  # fmt: skip
    assert (item.notes, item.turns[0].reveal, item.turns[2].reveal) == ("", "A fall.", "It is bright.")
    texts = ["[0, 0, 0.5, 0.4]", '{"what": "b", "side": "Left", "confidence": 1}', "a"]
    response = replace(answered(texts[-1], item), turns=tuple(texts))
    (score,) = score_responses([response], {item.item_id: item}, {item.item_id: gold}, [], vocabulary=vocabulary())
    assert score.fields_right == {"where": True, "what": True, "side": True, "again": False}
    assert (score.passed, score.fields_share) == (True, {"where": pytest.approx(0.8)})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('name="where"', 'name="what"', "two values have one name"),
        ('name="where"', 'name="confidence"', "every answer has the keys confidence and reasoning"),
        ('QuestionRound(stage="where"', 'QuestionRound(stage="where", retry=True', "rounds of the retry stand before others"),
        ('question=row["q1"]', 'question=""', "the question of a round is empty (stage where)"),
        ('reference=row["finding"]', 'reference="the second one"', "what: the reference has no letter of an option"),
        ("rounds=(", "values=(side,), rounds=(", "two values have one name"),
    ],
)
def test_rounds_that_cannot_be_asked_refuse_the_row_with_the_reason(tmp_path: Path, old: str, new: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        mine(tmp_path, [ROW], STAGES_OF_ROW.replace(old, new))
    assert reason in str(caught.value)


def test_rounds_and_values_are_for_their_runners(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="rounds are for the runners dialogue and structured"):
        mine(tmp_path / "1", [ROW], runner="open")
    with pytest.raises(DataError, match="values are asked for by the runner structured, and by no other"):
        mine(tmp_path / "2", [ROW], runner="dialogue", family="differential_diagnosis")


def test_each_column_of_pictures_has_its_role(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="2 columns and 1 roles"):
        mine(tmp_path, [ROW], images={"columns": ["a", "b"], "roles": ["prior"]})


def test_a_line_whose_turns_do_not_ask_for_every_field_is_refused_when_the_items_are_made(tmp_path: Path) -> None:
    mine(tmp_path, [ROW])
    path = tmp_path / "questions" / "questions.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"asks": ["again"]', '"asks": ["where"]'), encoding="utf-8")
    with pytest.raises(DataError, match="the turns do not ask for each field of the answer once"):
        built(ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw"), "full")


def test_items_with_stages_are_written_and_read_again(tmp_path: Path) -> None:
    _, made = imported("cxreasonbench", put_ladder(tmp_path / "set", 1), tmp_path)
    write_records(tmp_path / "items.parquet", Item, made.items, key=lambda item: item.item_id)
    assert read_records(tmp_path / "items.parquet", Item) == sorted(made.items, key=lambda item: item.item_id)


def test_a_clinicians_page_does_not_ask_what_it_has_no_form_for(tmp_path: Path) -> None:
    _, made = imported("cxreasonbench", put_ladder(tmp_path / "set", 1), tmp_path)
    request = asked(made.items)[made.items[0].item_id.removeprefix("b/"), "full", "direct"]
    with pytest.raises(RatingError, match="the field first_answer of its schema has no list of labels; a page cannot ask it"):
        forms_of(made.items[0], request)


def test_the_mappings_name_where_their_form_was_read() -> None:
    for name in ("temmed-bench", "medreco", "medsg-bench", "cxreasonbench"):
        head = (ROOT / "config" / "mappings" / f"{name}.yaml").read_text(encoding="utf-8").partition("\ntitle:")[0]
        assert "The form" in head
        assert "arXiv" in head
