"""Forms of data that a mapping or a function reads: paths, lists, groups, rubrics, rounds and facts."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT
from fixtures.imports import built, picture_bytes, put, put_mapping, put_table
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.importing import ImportPaths, import_set, write_yaml
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.load import read_yaml
from neuralmedbench.config.mappings import load_mappings
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.records.items import Runner, Strategy
from neuralmedbench.records.questions import ImportRecord
from neuralmedbench.records.requests import Request

CHOICE: dict[str, Any] = {
    "title": "Mine",
    "home": "here",
    "licence": "ours",
    "axis": "breadth",
    "files": ["*.jsonl", "*/*.jsonl"],
    "runner": "choice",
    "question": "q",
    "options": "o",
    "answer": "a",
}
OPEN = {key: value for key, value in CHOICE.items() if key != "options"} | {"runner": "open", "answer": "a"}
TALK = {**OPEN, "runner": "dialogue", "family": "differential_diagnosis", "question": "", "ask": "What is it?"}
ROW = {"q": "Which?", "o": ["left", "right"], "a": "B"}


def import_rows(
    tmp_path: Path,
    rows: list[dict[str, Any]] | dict[str, list[dict[str, Any]]],
    form: dict[str, Any] = CHOICE,
    function: str = "",
    **changes: Any,
) -> tuple[ImportRecord, BenchmarkItems]:
    """Import one table, or several by path, with a mapping and, if there is one, a function."""
    put_mapping(tmp_path, {**form, **changes}, function)
    for name, table in (rows if isinstance(rows, dict) else {"table.jsonl": rows}).items():
        put_table(tmp_path / "set" / name, table)
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    record = import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places)
    return record, built(places, "full")


def requests_of(items: BenchmarkItems, **changes: Any) -> list[Request]:
    values = {"title": "T", "kind": "text", "axis": "breadth", "source": "s", "subjects": "public", "arms": ["full"], **changes}
    material = CaseMaterial(items.disclosures, items.exemplars)
    return assemble(items.items, material, BenchmarkConfig.model_validate(values), Templates(ROOT / "config" / "prompts"))


# paths and lists


def test_a_path_names_keys_of_objects_and_places_of_lists(tmp_path: Path) -> None:
    row = {
        "case": {"id": 7, "notes": [{"text": "Falls."}, {"text": "Tremor."}], "asked": {"stem": "Which side?"}},
        "answers": [{"aid": 1, "atext": "left"}, {"aid": 2, "atext": "right"}],
        "key": {"right": "B"},
    }
    changes = {
        "id": ["case.id"],
        "text": ["case.notes.text"],
        "question": "case.asked.stem",
        "options": "answers.atext",
        "answer": "key.right",
        "tags": ["case.notes.-1.text"],
    }
    _, made = import_rows(tmp_path, [row], **changes)
    assert (made.items[0].item_id, made.items[0].notes, made.items[0].options) == ("b/7", "Falls.\nTremor.", ("left", "right"))
    assert (made.gold[0].choice, made.items[0].tags) == ("B", ("case.notes.-1.text:Tremor.",))


def test_a_column_whose_name_has_a_full_stop_is_that_column(tmp_path: Path) -> None:
    _, made = import_rows(tmp_path, [{**ROW, "q.v2": "Where?", "q": {"v2": "not this"}}], question="q.v2")
    assert made.items[0].question == "Where?"


def test_a_path_that_a_row_lacks_refuses_that_row_and_a_missing_column_stops_the_import(tmp_path: Path) -> None:
    rows = [{**ROW, "case": {"text": "x"}}, {**ROW, "case": {}}]
    record, _ = import_rows(tmp_path, rows, text=["case.text"])
    assert [(row.where, row.reason.partition(";")[0]) for row in record.refused] == [
        ("table.jsonl, row 2", "the column 'case.text' is missing")
    ]
    with pytest.raises(DataError, match=r"table\.jsonl, row 1: the column 'history\.text' is missing; found a, case, o and q"):
        import_rows(tmp_path, rows, text=["history.text"])


@pytest.mark.parametrize("cell", [["He fell.", "He denied fever."], '["He fell.", "He denied fever."]', "['He fell.', 'He denied fever.']"])
def test_a_list_in_a_text_is_joined_and_never_written_as_python(tmp_path: Path, cell: object) -> None:
    _, made = import_rows(tmp_path, [{**ROW, "t": cell}], text=["t"])
    assert made.items[0].notes == "He fell.\nHe denied fever."


def test_numbers_in_brackets_are_words(tmp_path: Path) -> None:
    _, made = import_rows(tmp_path, [{**ROW, "a": "[12, 40]"}], OPEN)
    assert made.gold[0].answer == "[12, 40]"


@pytest.mark.parametrize(
    ("changes", "form", "reason"),
    [
        ({"text": ["t"]}, CHOICE, r"the column 't' holds objects .keys content, role.; name one of their keys, as in `t\.<key>`"),
        ({"question": "t"}, CHOICE, "the column 't' holds objects"),
        ({"answer": "t"}, OPEN, "the column 't' holds objects"),
        ({"id": ["t"]}, CHOICE, "the column 't': a cell holds a list where a text or a number was expected"),
        ({"options": "t"}, CHOICE, r"the column 't' holds objects \(keys content, role\)"),
    ],
)
def test_an_object_or_a_list_where_words_are_needed_is_refused(
    tmp_path: Path, changes: dict[str, Any], form: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DataError, match=reason):
        import_rows(tmp_path, [{**ROW, "t": [{"content": "Hello", "role": "user"}]}], form, **changes)


def test_texts_can_be_headed_by_the_names_of_their_columns(tmp_path: Path) -> None:
    _, made = import_rows(
        tmp_path, [{**ROW, "History": "Falls.", "Tests": "", "Plan": "Scan."}], text=["History", "Tests", "Plan"], headings=True
    )
    assert made.items[0].notes == "History:\nFalls.\n\nPlan:\nScan."


def test_options_may_be_numbered_or_written_as_python(tmp_path: Path) -> None:
    rows = [{**ROW, "o": {"1": "left", "2": "right", "3": None}, "a": 2}, {**ROW, "o": "{'1': 'left', '2': 'right'}", "a": 1}]
    _, made = import_rows(tmp_path, rows, answer="a", first_number=1)
    assert [item.options for item in made.items] == [("left", "right")] * 2
    assert [row.choice for row in made.gold] == ["B", "A"]


OBJECTS = [{"letter": "C", "text": "cyst"}, {"letter": "A", "text": "abscess"}, {"letter": "B", "text": "bleed"}]


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        ("o.text", OBJECTS),
        ("o.text", [{"text": "bleed", "id": 2}, {"text": "cyst", "id": 3}, {"text": "abscess", "id": 1}]),
        ("o.*", {one["letter"]: one["text"] for one in OBJECTS}),
        ("o.*.text", {f"option_{one['letter'].lower()}": {"text": one["text"]} for one in OBJECTS}),
        ("o", {one["letter"]: one["text"] for one in OBJECTS}),
    ],
)
def test_options_are_in_the_order_of_the_letters_beside_them(tmp_path: Path, path: str, cell: object) -> None:
    """The reference is a letter: in another order it would be that of another option."""
    _, made = import_rows(tmp_path, [{**ROW, "o": cell, "a": "A"}], options=path)
    assert made.gold[0].answer == "abscess"
    assert made.items[0].options == ("abscess", "bleed", "cyst")


def test_letters_beside_options_with_a_gap_or_a_repeat_are_refused_with_their_column(tmp_path: Path) -> None:
    gap = [{"letter": letter, "text": text} for letter, text in (("A", "x"), ("C", "y"))]
    twice = [{"letter": "A", "text": text} for text in ("x", "y")]
    record, _ = import_rows(tmp_path, [{**ROW, "o": OBJECTS, "a": "A"}, {**ROW, "o": gap}, {**ROW, "o": twice}], options="o.text")
    words = "the column 'o.text': the letters of the options are not A, B, C... without a gap"
    assert [row.reason for row in record.refused] == [f"{words}: A, C", f"{words}: A, A"]


def test_what_is_not_read_is_told_with_the_next_step(tmp_path: Path) -> None:
    """Mistakes of new users: objects as options, true and false as answers, a workbook."""
    good = {**ROW, "o": ["Yes", "No"], "a": "A"}
    record, _ = import_rows(tmp_path / "1", [good, {**good, "o": OBJECTS}, {**good, "a": True}])
    assert [row.reason.rpartition("; ")[2] for row in record.refused] == [
        "name the key of their texts, as in `o.<key>`",
        'found true or false: with `fixed_options: ["true", "false"]` it is one of them',
    ]
    with pytest.raises(DataError, match="save each sheet as CSV in UTF-8"):
        next(SourceFolder(put(tmp_path / "3", {"a.xlsx": b"PK"})).rows(tmp_path / "3" / "a.xlsx"))


# files and rows


def test_rows_are_left_out_by_the_function_and_not_counted(tmp_path: Path) -> None:
    tables = {
        "new/x.jsonl": [{**ROW, "split": "Test"}, {**ROW, "split": "train"}],
        "old/x.jsonl": [{"stem": "an older form"}],
    }
    function = """
def question(row):
    return row.by_columns() if row["_folder"] == "new" and row["split"] == "Test" else None
"""
    record, made = import_rows(tmp_path, tables, function=function, expected=1)
    assert (record.found, record.refused) == (1, ())
    assert made.items[0].item_id == "b/x-00001"


def test_a_function_that_leaves_out_every_row_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="mine: the files have no row to import, or the mapping leaves out all of them"):
        import_rows(tmp_path, [ROW], function="def question(row):\n    return None\n")


# missing and repeated


def test_a_question_without_an_answer_is_asked_and_counted(tmp_path: Path) -> None:
    record, made = import_rows(tmp_path, [ROW, {**ROW, "a": " "}])
    assert (record.imported, record.without_answer, [row.choice for row in made.gold]) == (2, 1, ["B"])


def test_a_missing_wrong_option_is_left_out_before_the_digest_orders_them(tmp_path: Path) -> None:
    rows = [{"q": "Which?", "a": f"glioma {number}", "w1": f"abscess {number}", "w2": None, "w3": ""} for number in range(20)]
    record, made = import_rows(tmp_path, rows, options="", distractors=["w1", "w2", "w3"])
    assert (record.imported, record.refused) == (20, ())
    assert {len(item.options) for item in made.items} == {2}
    assert {row.choice for row in made.gold} == {"A", "B"}


def test_a_repeated_option_is_refused_or_kept_as_published_and_the_letter_counts(tmp_path: Path) -> None:
    rows = [{"q": "Which?", "o": ["left", "Left", "right"], "a": "C"}, {"q": "Which?", "o": ["left", "left", "right"], "a": "B"}]
    record, _ = import_rows(tmp_path, {"one/t.jsonl": [ROW], "two/t.jsonl": [{**ROW, "q": "And?"}, *rows]}, id=["_folder", "q", "a"])
    reason = "an option is repeated"
    assert [(row.where, row.reason) for row in record.refused] == [("two/t.jsonl, row 2", reason), ("two/t.jsonl, row 3", reason)]
    shutil.rmtree(tmp_path / "set")
    _, made = import_rows(tmp_path, rows, options="o", keep_repeated=True)
    assert [(len(item.options), row.choice) for item, row in zip(made.items, made.gold, strict=True)] == [(3, "C"), (3, "B")]


# groups


def test_patients_come_from_columns_and_pairs_and_parts_of_paths_from_the_function(tmp_path: Path) -> None:
    rows = [
        {**ROW, "path": "glioma/BraTS2021_00495/t1_85.png", "p": "x"},
        {**ROW, "path": "glioma/BraTS2021_00495/t2_85.png", "p": "x"},
        {**ROW, "path": "ependymoma/08.png", "p": ""},
    ]
    function = """
import re

def question(row):
    patient = re.search(r"BraTS2021_([0-9]{5})", row["path"])
    return replace(row.by_columns(), patient=patient[1] if patient else "", pair=row["p"])
"""
    _, made = import_rows(tmp_path / "1", rows, function=function)
    assert [(item.patient_id, item.pair_id) for item in made.items] == [("00495", "x"), ("00495", "x"), ("table-00003", "")]
    _, made = import_rows(tmp_path / "2", rows, function='def question(row):\n    return replace(row.by_columns(), pair=row["p"])\n')
    assert [item.patient_id for item in made.items] == ["x", "x", "table-00003"]
    _, made = import_rows(tmp_path / "3", rows, patient="p")
    assert [item.patient_id for item in made.items] == ["x", "x", "table-00003"]


def test_a_row_may_hold_several_questions_whose_pictures_lie_beside_the_table(tmp_path: Path) -> None:
    put(tmp_path / "set", {f"data/images/{number}.jpg": picture_bytes(number, "JPEG") for number in (1, 2)})
    function = """
def question(row):
    return [
        Question(id=f"{row['key']}-{number}", question=row["q"], options=tuple(row["o"]), answer="A", pictures=(Picture(file=f"images/{name}.jpg"),))
        for number, name in enumerate(row["pictures"], start=1)
    ]
"""
    rows = [{**ROW, "key": "k", "pictures": [1, 2]}, {**ROW, "key": "l", "pictures": [1, 3]}]
    record, made = import_rows(tmp_path, {"data/t.jsonl": rows}, function=function)
    assert [item.item_id for item in made.items] == ["b/k-1", "b/k-2", "b/l-1"]
    assert [(refusal.where, refusal.question_id, refusal.found) for refusal in record.refused] == [
        ("data/t.jsonl, row 2, question 2", "l-2", "'images/3.jpg'")
    ]


# criteria of open answers


def test_a_rubric_keeps_its_points_and_its_penalties(tmp_path: Path) -> None:
    criteria = [{"criterion": "Names the stroke.", "points": 7}, {"criterion": "Advises to wait.", "points": -5, "cap": True}]
    rows = [{"q": "What now?", "r": criteria}, {"q": "What now?", "r": [{"criterion": "x", "points": -1}]}, {"q": "?", "r": "text"}]
    record, made = import_rows(tmp_path, rows, {key: value for key, value in OPEN.items() if key != "answer"}, rubric="r")
    assert [(one.criterion, one.text, one.points) for one in made.gold[0].rubric] == [
        ("meets_1", "Names the stroke.", 7.0),
        ("harm_2", "Advises to wait.", -5.0),
    ]
    assert made.gold[0].must_not == ("Advises to wait.",)
    assert [one.cap for one in made.gold[0].rubric] == [False, True]
    assert [row.reason for row in record.refused] == [
        "no criterion earns points, so a score has no denominator",
        "the column 'r' is not a list",
    ]
    _, made = import_rows(tmp_path, [{"q": "?", "a": "x", "r": ["One.", "Two."]}], OPEN, rubric="r")
    assert [one.points for one in made.gold[0].rubric] == [1.0, 1.0]


def test_reasons_become_criteria(tmp_path: Path) -> None:
    row = {"q": "?", "a": "stroke", "why": "1. Sudden.\n2. One side."}
    _, made = import_rows(tmp_path, [row], OPEN, family="rationale_generation", reasons="why")
    assert made.gold[0].rationale == ("Sudden.", "One side.")
    assert [one.criterion for one in made.gold[0].rubric] == ["argues_1", "argues_2"]


# dialogues


TALKS = """
def question(row):
    return Question(rounds=tuple(QuestionRound(text=one["says"], question=one["asks"]) for one in row["turns"]), answer=row["a"])
"""


def test_rounds_reveal_their_texts_one_after_the_other(tmp_path: Path) -> None:
    row = {"turns": [{"says": "Weakness.", "asks": "Which tests?"}, {"says": "DWI is bright.", "asks": "And now?"}], "a": "stroke"}
    lacking = {"turns": [{"says": "x", "asks": ""}], "a": "y"}
    record, made = import_rows(tmp_path, [row, lacking, {"turns": [], "a": "z"}], TALK, TALKS)
    (item,) = made.items
    assert item.runner is Runner.DIALOGUE
    assert [(turn.reveal, turn.question) for turn in item.turns] == [("Weakness.", "Which tests?"), ("DWI is bright.", "And now?")]
    assert (item.question, item.notes, made.gold[0].answer) == ("And now?", "", "stroke")
    assert [row.reason for row in record.refused] == [
        "the question of a round is empty (stage beside the ladder)",
        "the dialogue has no facts and no rounds",
    ]


def test_facts_are_told_one_by_one_to_a_model_that_asks(tmp_path: Path) -> None:
    row = {"first": "A man of 40 cannot see.", "facts": ["1. He has no fever.", "2. The left eye hurts."], "a": "optic neuritis"}
    record, made = import_rows(tmp_path, [row, {**row, "facts": []}], TALK, text=["first"], facts="facts")
    assert len(made.items) == 1
    assert made.items[0].turns[0].reveal == "A man of 40 cannot see.\nHe has no fever.\nThe left eye hurts."
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    data_set = data_sets(tmp_path / "config")["mine"]
    write_yaml(tmp_path / "mine.yaml", data_set, record, places)
    written = BenchmarkConfig.model_validate(read_yaml(tmp_path / "mine.yaml"))
    asked = next(one for one in requests_of(made, strategies=written.strategies) if one.strategy is Strategy.ASK)
    assert asked.inquiry is not None
    assert [fact.text for fact in asked.inquiry.facts] == ["He has no fever.", "The left eye hurts."]
    assert "A man of 40 cannot see." in asked.turns[0].text
    assert "left eye" not in asked.turns[0].text


@pytest.mark.parametrize(
    ("changes", "form", "message"),
    [
        ({"facts": "f"}, OPEN, "`facts` are for the runner dialogue, or for options with `text`"),
        ({"facts": "f", "text": []}, CHOICE, "`facts` are for the runner dialogue, or for options with `text`"),
        ({}, TALK, "the runner dialogue needs `facts`, or a function"),
        ({"facts": "f", "family": "question_answering"}, TALK, "a dialogue ends in a diagnosis"),
        ({"reasons": "x"}, CHOICE, "`rubric` and `reasons` are for open answers and dialogues"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(tmp_path: Path, changes: dict[str, Any], form: dict[str, Any], message: str) -> None:
    put(tmp_path, {"mappings/mine.yaml": yaml.safe_dump({**form, **changes})})
    with pytest.raises(ConfigError, match=message):
        load_mappings(tmp_path)


# the persona


def test_the_system_prompt_is_the_benchmarks_and_stays_that_of_a_neurologist_without_one(tmp_path: Path) -> None:
    _, made = import_rows(tmp_path, [ROW], persona="You are a physician.")
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    data_set = data_sets(tmp_path / "config")["mine"]
    record = import_set(data_set, tmp_path / "set", "mine", places)
    path = tmp_path / "mine.yaml"
    write_yaml(path, data_set, record, places)
    written = read_yaml(path)
    assert isinstance(written, dict)
    assert written["persona"] == "You are a physician."
    systems = [request.system for changes in ({}, {"persona": written["persona"]}) for request in requests_of(made, **changes)]
    common = " You take part in a research evaluation; your answer is never used to treat a patient."
    assert systems[0].startswith(f"You are a neurologist and neuroradiologist.{common}")
    assert systems[1] == systems[0].replace("You are a neurologist and neuroradiologist.", "You are a physician.")


# UKGovernmentBEIS/inspect_ai, examples/images/images.jsonl at 499e615 (MIT licence)
INSPECT = """{ "input": [ { "role": "user", "content": [{ "type": "text", "text": "How many ballons are in this picture?"}, { "type": "image", "image": "ballons.png"} ]}], "target": "3" }
{ "input": [ { "role": "user", "content": [{ "type": "text", "text": "What is this a picture of?"}, { "type": "image", "image": "bike.png"} ]}], "target": ["bike", "bicycle"] }
"""
# modelscope/evalscope, custom_eval/multimodal/mcq/example.tsv at 61408a4 (Apache License 2.0), a table for VLMEvalKit
VLMEVALKIT = """index\tcategory\tanswer\tquestion\tA\tB\tC\tD\timage_path
1\tAnimals\tA\tWhat animal is this?\tDog\tCat\tTiger\tElephant\tcustom_eval/multimodal/images/dog.jpg
2\tBuildings\tD\tWhat building is this?\tSchool\tHospital\tPark\tMuseum\tcustom_eval/multimodal/images/AMNH.jpg
"""


VLMEVALKIT_ROWS = """
def question(row):
    if row["image"].isdecimal():
        row["image"] = next(other["image"] for other in row.others("mine", row["_path"]) if other["index"] == row["image"])
    return row.by_columns()
"""
"""A cell of digits is the number of the row that has the picture."""


def import_text(tmp_path: Path, name: str, text: str, form: dict[str, Any]) -> tuple[ImportRecord, BenchmarkItems]:
    """Import a table as it was published."""
    put(tmp_path / "config", {"mappings/mine.yaml": yaml.safe_dump({**CHOICE, "files": ["*"], **form})})
    (tmp_path / "set").mkdir(exist_ok=True)
    (tmp_path / "set" / name).write_text(text, encoding="utf-8")
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    return import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places), built(places, "full")


def test_samples_of_inspect_with_pictures_are_imported_and_each_of_several_targets_is_right(tmp_path: Path) -> None:
    for name in ("ballons.png", "bike.png"):
        put(tmp_path / "set", {name: picture_bytes(len(name))})
    form = {
        "runner": "open",
        "files": ["*.jsonl"],
        "question": "input.0.content.0.text",
        "answer": "target",
        "aliases": "target",
        "images": {"columns": ["input.0.content.1.image"]},
        "options": "",
    }
    record, items = import_text(tmp_path, "images.jsonl", INSPECT, form)
    assert (record.found, len(record.refused)) == (2, 0)
    assert [(item.question, len(item.images)) for item in items.items] == [
        ("How many ballons are in this picture?", 1),
        ("What is this a picture of?", 1),
    ]
    assert [(gold.answer, gold.aliases) for gold in items.gold] == [("3", ()), ("bike", ("bicycle",))]


def test_a_table_of_vlmevalkit_is_imported_whether_its_pictures_are_paths_base64_lists_or_in_another_row(tmp_path: Path) -> None:
    form = {"files": ["*.tsv"], "id": ["index"], "options": ["A", "B", "C", "D"], "question": "question"}
    form |= {"answer": "answer", "tags": ["category"]}
    places = {name: picture_bytes(len(name)) for name in ("dog.jpg", "AMNH.jpg")}
    put(tmp_path / "set", {f"custom_eval/multimodal/images/{name}": content for name, content in places.items()})
    record, items = import_text(tmp_path, "example.tsv", VLMEVALKIT, {**form, "images": {"columns": ["image_path"]}})
    assert (record.found, len(record.refused)) == (2, 0)
    by_path = {item.item_id: [image.sha256 for image in item.images] for item in items.items}
    # as its tools pack a table: pictures in the cells, once each; a copy with other options names the row, two pictures are a list of Python
    dog, building = (base64.b64encode(content).decode() for content in places.values())
    head, first, second = VLMEVALKIT.splitlines()
    packed = [head.replace("image_path", "image"), first.rpartition("\t")[0] + f"\t{dog}", second.rpartition("\t")[0] + f"\t{building}"]
    packed += [
        first.replace("1\t", "1000001\t", 1).rpartition("\t")[0] + "\t1",
        second.replace("2\t", "7\t", 1).rpartition("\t")[0] + f"\t{[dog, building]}",
    ]
    put(tmp_path / "packed" / "config", {"mappings/mine.py": VLMEVALKIT_ROWS})
    record, items = import_text(tmp_path / "packed", "example.tsv", "\n".join(packed), {**form, "images": {"columns": ["image"]}})
    assert (record.found, record.refused) == (4, ())
    shown = {item.item_id: [image.sha256 for image in item.images] for item in items.items}
    assert shown["b/1000001"] == shown["b/1"] == by_path["b/1"]
    assert shown["b/7"] == [*by_path["b/1"], *by_path["b/2"]]


NAMES = ["glioblastoma", "migraine", "stroke"]
ASKED_BOTH_WAYS = {**CHOICE, "runner": "open", "family": "differential_diagnosis"}


@pytest.mark.parametrize("answer", ["B", "migraine"])
def test_an_open_question_with_options_keeps_them_as_its_rivals(answer: str, tmp_path: Path) -> None:
    row = {"q": "What is it?", "o": NAMES, "a": answer}
    record, made = import_rows(tmp_path, [row], ASKED_BOTH_WAYS)
    assert record.refused == ()
    assert (made.items[0].runner, made.items[0].options, made.items[0].rivals) == (Runner.OPEN, (), tuple(NAMES))
    assert (made.gold[0].answer, made.gold[0].choice) == ("migraine", "")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"q": "What is it?", "o": ["GBM", "gbm", "stroke"], "a": "C"}, "an option is repeated"),
        ({"q": "What is it?", "o": ["stroke", "", "migraine"], "a": "A"}, "an option is empty"),
    ],
)
def test_rivals_that_cannot_be_told_apart_are_refused(row: dict[str, Any], reason: str, tmp_path: Path) -> None:
    good = {"q": "What is it?", "o": NAMES, "a": "A"}
    record, _ = import_rows(tmp_path, [good, row], ASKED_BOTH_WAYS)
    assert [one.reason for one in record.refused] == [reason]


# the function


def test_a_mistake_in_a_function_gives_its_line_and_class_and_no_word_of_the_row(tmp_path: Path) -> None:
    function = """
def question(row):
    if row["q"] == "Which?":
        return row.by_columns()
    return int(row["q"])
"""
    record, _ = import_rows(tmp_path, [ROW, {**ROW, "q": "Mrs Example of Sampletown"}], function=function)
    (refusal,) = record.refused
    assert (refusal.where, refusal.reason) == ("table.jsonl, row 2", "mappings/mine.py, line 10: ValueError")
    assert "Example" not in json.dumps(json.loads((tmp_path / "questions" / "import.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("def question(row:\n", "mappings/mine.py, line 6: SyntaxError"),
        ("import a_module_that_is_absent\n", "mappings/mine.py, line 6: ModuleNotFoundError"),
        ("def ask(row):\n    return row\n", "mappings/mine.py: expected a function `question"),
    ],
)
def test_a_file_that_cannot_be_loaded_stops_the_import_and_no_list_of_sets(tmp_path: Path, function: str, message: str) -> None:
    put_mapping(tmp_path, CHOICE, function)
    assert "mine" in data_sets(tmp_path / "config")
    with pytest.raises(ConfigError, match=message):
        import_rows(tmp_path, [ROW], function=function)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("def question(row):\n    return 7\n", "`question(row)` returned int; expected Question, a list of them, or None"),
        ('def question(row):\n    return ["x"]\n', "`question(row)` returned str; expected Question, a list of them, or None"),
        ("def question(row):\n    return []\n", "the row has no question"),
        ('def question(row):\n    return row["case.text"]\n', "the column 'case.text' is missing; found a, o and q"),
        ('def question(row):\n    return row.json("../secret.json")\n', "the path of a file that belongs to the row leaves the folder"),
        ('def question(row):\n    return row.json("*.json*")\n', "2 files of this row; expected one"),
        ('def question(row):\n    return row.json("gone.json")\n', "0 files of this row; expected one"),
    ],
)
def test_what_a_function_may_not_return_or_read_refuses_the_row(tmp_path: Path, function: str, reason: str) -> None:
    put(tmp_path, {"secret.json": {}, "set/other.json": {}})
    with pytest.raises(DataError) as caught:
        import_rows(tmp_path, [ROW], function=function)
    assert reason in str(caught.value)


def test_the_record_of_an_import_has_the_digest_of_the_function(tmp_path: Path) -> None:
    plain, _ = import_rows(tmp_path / "1", [ROW])
    made, _ = import_rows(tmp_path / "2", [ROW], function="def question(row):\n    return row.by_columns()\n")
    assert (plain.function, made.function) == ("", sha256_of(tmp_path / "2" / "config" / "mappings" / "mine.py"))
    written = [json.loads((tmp_path / place / "questions" / "import.json").read_text(encoding="utf-8")) for place in "12"]
    assert ["function" in record for record in written] == [False, True]
