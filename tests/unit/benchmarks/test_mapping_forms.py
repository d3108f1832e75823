"""The second form of a mapping: paths, lists, filters, groups, rubrics, conversations, rounds and facts."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT
from fixtures.imports import built, picture_bytes, put, put_table
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.importing import ImportPaths, import_set, write_yaml
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.load import read_yaml
from neuralmedbench.config.mappings import load_mappings
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.records.items import Arm, Runner, Strategy
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
    "options": {"column": "o"},
    "answer": {"column": "a"},
}
OPEN = {key: value for key, value in CHOICE.items() if key != "options"} | {"runner": "open", "answer": {"column": "a", "form": "text"}}
TALK = {**OPEN, "runner": "dialogue", "family": "differential_diagnosis", "question": "", "ask": "What is it?"}
ROW = {"q": "Which?", "o": ["left", "right"], "a": "B"}


def import_rows(
    tmp_path: Path, rows: list[dict[str, Any]] | dict[str, list[dict[str, Any]]], form: dict[str, Any] = CHOICE, **changes: Any
) -> tuple[ImportRecord, BenchmarkItems]:
    """Import one table, or several by path, with a mapping."""
    put(tmp_path / "config", {"mappings/mine.yaml": yaml.safe_dump({**form, **changes})})
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
        "options": {"column": "answers.atext"},
        "answer": {"column": "key.right"},
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
    with pytest.raises(DataError, match=r"table\.jsonl, row 1: the column 'history\.text' is missing; found a, case, o, q"):
        import_rows(tmp_path, rows, text=["history.text"])


@pytest.mark.parametrize("cell", [["He fell.", "He denied fever."], '["He fell.", "He denied fever."]', "['He fell.', 'He denied fever.']"])
def test_a_list_in_a_text_is_joined_and_never_written_as_python(tmp_path: Path, cell: object) -> None:
    _, made = import_rows(tmp_path, [{**ROW, "t": cell}], text=["t"], join=" ")
    assert made.items[0].notes == "He fell. He denied fever."


def test_numbers_in_brackets_are_words(tmp_path: Path) -> None:
    _, made = import_rows(tmp_path, [{**ROW, "a": "[12, 40]"}], OPEN)
    assert made.gold[0].answer == "[12, 40]"


@pytest.mark.parametrize(
    ("changes", "form", "reason"),
    [
        ({"text": ["t"]}, CHOICE, r"the column 't' holds objects .keys content, role.; name one of their keys, as in `t\.<key>`"),
        ({"question": "t"}, CHOICE, "the column 't' holds objects"),
        ({"answer": {"column": "t", "form": "text"}}, OPEN, "the column 't' holds objects"),
        ({"id": ["t"]}, CHOICE, "the column 't': a cell holds a list where a text or a number was expected"),
        ({"options": {"column": "t"}}, CHOICE, r"the column 't' holds objects \(keys content, role\)"),
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
    _, made = import_rows(tmp_path, rows, answer={"column": "a", "form": "number_from_1"})
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
    _, made = import_rows(tmp_path, [{**ROW, "o": cell, "a": "A"}], options={"column": path})
    assert made.gold[0].answer == "abscess"
    assert made.items[0].options == ("abscess", "bleed", "cyst")


def test_letters_beside_options_with_a_gap_or_a_repeat_are_refused_with_their_column(tmp_path: Path) -> None:
    gap = [{"letter": letter, "text": text} for letter, text in (("A", "x"), ("C", "y"))]
    twice = [{"letter": "A", "text": text} for text in ("x", "y")]
    record, _ = import_rows(
        tmp_path, [{**ROW, "o": OBJECTS, "a": "A"}, {**ROW, "o": gap}, {**ROW, "o": twice}], options={"column": "o.text"}
    )
    words = "the column 'o.text': the letters of the options are not A, B, C... without a gap"
    assert [row.reason for row in record.refused] == [f"{words}: A, C", f"{words}: A, A"]


def test_what_is_not_read_is_told_with_the_next_step(tmp_path: Path) -> None:
    """Mistakes of new users: objects as options, true and false as answers, questions one level down, a workbook."""
    good = {**ROW, "o": ["Yes", "No"], "a": "A"}
    record, _ = import_rows(tmp_path / "1", [good, {**good, "o": OBJECTS}, {**good, "a": True}])
    assert [row.reason.rpartition("; ")[2] for row in record.refused] == [
        "name the key of their texts, as in `o.<key>`",
        'found true or false: with `fixed: ["true", "false"]` as options it is one of them',
    ]
    with pytest.raises(DataError, match=r"each entry of the list 'questions' has it: if it is a question, write `each: questions`"):
        import_rows(tmp_path / "2", [{"questions": [good]}])
    with pytest.raises(DataError, match="save each sheet as CSV in UTF-8"):
        next(SourceFolder(put(tmp_path / "3", {"a.xlsx": b"PK"})).rows(tmp_path / "3" / "a.xlsx"))


# files and rows


def test_files_and_rows_are_left_out_by_name_and_by_their_cells(tmp_path: Path) -> None:
    tables = {
        "new/x.jsonl": [
            {**ROW, "split": "Test", "lang": "en"},
            {**ROW, "split": "train", "lang": "en"},
            {**ROW, "split": "test", "lang": "zh"},
        ],
        "old/x.jsonl": [{"stem": "an older form"}],
    }
    record, made = import_rows(
        tmp_path, tables, exclude=["old/*"], only_rows={"split": ["test"]}, skip_rows={"lang": ["ZH", ""]}, expected=1
    )
    assert (record.found, record.refused, list(record.sources)) == (1, (), ["new/x.jsonl"])
    assert made.items[0].item_id == "b/x-00001"


def test_a_filter_by_a_column_that_no_row_has_or_that_leaves_nothing_is_an_error(tmp_path: Path) -> None:
    for key in ("only_rows", "skip_rows"):
        with pytest.raises(DataError, match=r"table\.jsonl: no row has the column 'splitt', by which rows are chosen"):
            import_rows(tmp_path, [{**ROW, "split": "test"}], **{key: {"splitt": ["test"]}})
    with pytest.raises(DataError, match="mine: the files have no row to import, or the mapping leaves out all of them"):
        import_rows(tmp_path, [{**ROW, "split": "train"}], only_rows={"split": ["test"]})


def test_a_limit_draws_the_same_rows_every_time_and_keeps_groups_together(tmp_path: Path) -> None:
    rows = [{**ROW, "n": number, "who": number // 2} for number in range(40)]
    changes = {"id": ["n"], "patient": {"column": "who"}, "limit": 11, "expected": 40}
    drawn = [[item.item_id for item in import_rows(tmp_path, table, **changes)[1].items] for table in (rows, rows)]
    assert drawn[0] == drawn[1]
    numbers = [int(name.partition("/")[2]) for name in drawn[0]]
    assert len(numbers) == 10
    assert {number // 2 for number in numbers} == {number // 2 for number in numbers if number % 2}
    assert numbers != list(range(10))
    assert data_sets(tmp_path / "config")["mine"].title == "Mine (sample of at most 11 rows)"


# missing and repeated


def test_texts_that_mean_nothing_are_compared_without_case_for_options_and_answers(tmp_path: Path) -> None:
    rows = [{"q": "Which?", "o": ["left", "right", "n/a"], "a": "B"}, {"q": "Which?", "o": ["left", "right"], "a": " na "}]
    record, made = import_rows(tmp_path, rows, options={"column": "o", "missing": ["N/A"]}, answer={"column": "a", "missing": ["NA"]})
    assert [item.options for item in made.items] == [("left", "right")] * 2
    assert (record.without_answer, [row.choice for row in made.gold]) == (1, ["B"])
    record, made = import_rows(tmp_path, rows, OPEN, answer={"column": "a", "form": "text", "missing": ["NA"]})
    assert (record.without_answer, [row.answer for row in made.gold]) == (1, ["B"])


def test_a_missing_wrong_option_is_left_out_before_the_digest_orders_them(tmp_path: Path) -> None:
    names = {"right": "glioma", "w1": "abscess", "w2": "nan", "w3": "NaN"}
    rows = [
        {"q": "Which?", **{key: value if value.lower() == "nan" else f"{value} {number}" for key, value in names.items()}}
        for number in range(20)
    ]
    options = {"right": "right", "wrong": ["w*"], "missing": ["nan"]}
    record, made = import_rows(tmp_path, rows, {key: value for key, value in CHOICE.items() if key != "answer"}, options=options)
    assert (record.imported, record.refused) == (20, ())
    assert {len(item.options) for item in made.items} == {2}
    assert {row.choice for row in made.gold} == {"A", "B"}


def test_a_repeated_option_is_refused_or_kept_as_published_and_the_letter_counts(tmp_path: Path) -> None:
    rows = [{"q": "Which?", "o": ["left", "Left", "right"], "a": "C"}, {"q": "Which?", "o": ["left", "left", "right"], "a": "B"}]
    record, _ = import_rows(tmp_path, {"one/t.jsonl": [ROW], "two/t.jsonl": [{**ROW, "q": "And?"}, *rows]}, id=["_folder", "q", "a"])
    reason = "an option is repeated"
    assert [(row.where, row.reason) for row in record.refused] == [("two/t.jsonl, row 2", reason), ("two/t.jsonl, row 3", reason)]
    shutil.rmtree(tmp_path / "set")
    _, made = import_rows(tmp_path, rows, options={"column": "o", "repeated": "keep"})
    assert [(len(item.options), row.choice) for item, row in zip(made.items, made.gold, strict=True)] == [(3, "C"), (3, "B")]


# groups


def test_patients_and_pairs_come_from_columns_or_from_parts_of_paths(tmp_path: Path) -> None:
    rows = [
        {**ROW, "path": "glioma/BraTS2021_00495/t1_85.png", "p": "x"},
        {**ROW, "path": "glioma/BraTS2021_00495/t2_85.png", "p": "x"},
        {**ROW, "path": "ependymoma/08.png", "p": ""},
    ]
    changes = {"patient": {"column": "path", "pattern": r"BraTS2021_(\d{5})"}, "pair": {"column": "p"}}
    _, made = import_rows(tmp_path, rows, **changes)
    assert [(item.patient_id, item.pair_id) for item in made.items] == [("00495", "x"), ("00495", "x"), ("table-00003", "")]
    _, made = import_rows(tmp_path, rows, pair={"column": "p"})
    assert [item.patient_id for item in made.items] == ["x", "x", "table-00003"]
    with pytest.raises(ConfigError, match="not a regular expression"):
        import_rows(tmp_path, rows, patient={"column": "path", "pattern": "("})


def test_a_row_may_hold_one_question_for_each_of_its_pictures_which_lie_beside_the_table(tmp_path: Path) -> None:
    put(tmp_path / "set", {f"data/images/{number}.jpg": picture_bytes(number, "JPEG") for number in (1, 2)})
    row = {
        **ROW,
        "key": "k",
        "im_1": 1,
        "im_2": 2,
        "r1": "left_column",
        "r2": "right_column",
        "left_column": "left",
        "right_column": "right",
    }
    changes = {
        "variants": [{"picture": "im_1", "right": "r1"}, {"picture": "im_2", "right": "r2"}],
        "options": {"columns": ["left_column", "right_column"]},
        "answer": {"column": "right"},
        "id": ["key", "_place"],
        "images": {"columns": ["picture"], "form": "path", "folder": "images", "suffix": ".jpg"},
    }
    record, made = import_rows(tmp_path, {"data/t.jsonl": [row, {**row, "key": "l", "im_2": 3}]}, **changes)
    assert [item.item_id for item in made.items] == ["b/k-1", "b/k-2", "b/l-1"]
    assert [gold.choice for gold in made.gold] == ["A", "B", "A"]
    where = "a picture is not there, in images/ below the folder of the data set or beside its table"
    assert [(refusal.where, refusal.reason.partition(";")[0], refusal.question_id, refusal.found) for refusal in record.refused] == [
        ("data/t.jsonl, row 2, question 2", where, "l-2", "'3.jpg'")
    ]


# criteria of open answers


def test_a_rubric_keeps_its_points_and_its_penalties(tmp_path: Path) -> None:
    criteria = [{"criterion": "Names the stroke.", "points": 7}, {"criterion": "Advises to wait.", "points": -5, "cap": True}]
    rows = [{"q": "What now?", "r": criteria}, {"q": "What now?", "r": [{"criterion": "x", "points": -1}]}, {"q": "?", "r": "text"}]
    record, made = import_rows(tmp_path, rows, {key: value for key, value in OPEN.items() if key != "answer"}, rubric={"column": "r"})
    assert [(one.criterion, one.text, one.points) for one in made.gold[0].rubric] == [
        ("meets_1", "Names the stroke.", 7.0),
        ("harm_2", "Advises to wait.", -5.0),
    ]
    assert made.gold[0].must_not == ("Advises to wait.",)
    assert [one.cap for one in made.gold[0].rubric] == [False, True]
    assert [row.reason for row in record.refused] == ["no criterion earns points, so a score has no denominator", "r is not a list"]
    _, made = import_rows(tmp_path, [{"q": "?", "a": "x", "r": ["One.", "Two."]}], OPEN, rubric={"column": "r", "points_each": 2})
    assert [one.points for one in made.gold[0].rubric] == [2.0, 2.0]


def test_reasons_findings_and_warnings_become_criteria_and_a_disclosure(tmp_path: Path) -> None:
    row = {"q": "?", "a": "stroke", "why": "1. Sudden.\n2. One side.", "seen": ["Bright on DWI.", "Dark on ADC."], "not": ["Wait."]}
    changes = {"family": "rationale_generation", "reasons": "why", "findings": "seen", "must_not": "not"}
    record, made = import_rows(tmp_path, [row, {**row, "seen": ["A stroke is seen."]}], OPEN, **changes)
    gold = made.gold[0]
    assert (gold.rationale, gold.findings) == (("Sudden.", "One side."), ("Bright on DWI.", "Dark on ADC."))
    names = ["mentions_finding_1", "mentions_finding_2", "argues_1", "argues_2", "must_not_1"]
    assert [one.criterion for one in gold.rubric] == names
    assert [(shown.arm, "- Bright on DWI." in shown.text) for shown in made.disclosures] == [(Arm.FINDINGS_DISCLOSED, True)]
    assert ["names the diagnosis" in refusal.reason for refusal in record.refused] == [True]


# conversations and dialogues


def test_a_conversation_ends_in_the_question_and_begins_with_its_speakers(tmp_path: Path) -> None:
    talk = [
        {"role": "user", "content": "My head aches."},
        {"role": "assistant", "content": "Since when?"},
        {"role": "user", "content": "Today."},
    ]
    form = {key: value for key, value in OPEN.items() if key != "question"} | {"conversation": {"column": "prompt"}}
    record, made = import_rows(tmp_path, [{"prompt": talk, "a": "x"}, {"prompt": talk[:2], "a": "x"}, {"prompt": [], "a": "x"}], form)
    assert (made.items[0].question, made.items[0].notes) == (
        "Today.",
        "Conversation so far:\n\nUser: My head aches.\n\nAssistant: Since when?",
    )
    assert [row.reason for row in record.refused] == [
        "the last message of the conversation is the assistant's",
        "the column 'prompt' is not a list of messages",
    ]


def test_rounds_reveal_their_columns_one_after_the_other(tmp_path: Path) -> None:
    row = {"history": "Weakness.", "tests": {"mr": "DWI is bright.", "lab": "Normal."}, "a": "stroke"}
    rounds = [{"text": ["history"], "ask": "Which tests?"}, {"text": ["tests.*"], "ask": "What is it?"}]
    _, made = import_rows(tmp_path, [row], TALK, ask="", rounds=rounds)
    item = made.items[0]
    assert item.runner is Runner.DIALOGUE
    assert [(turn.reveal, turn.question) for turn in item.turns] == [
        ("Weakness.", "Which tests?"),
        ("DWI is bright.\nNormal.", "What is it?"),
    ]
    assert (item.question, item.notes, made.gold[0].answer) == ("What is it?", "", "stroke")


def test_rounds_may_be_a_list_of_objects(tmp_path: Path) -> None:
    row = {"turns": [{"says": "Weakness.", "asks": "Which tests?"}, {"says": "DWI is bright.", "asks": "And now?"}], "a": "stroke"}
    rounds = [{"text": ["says"], "question": "asks"}]
    record, made = import_rows(tmp_path, [row, {"turns": [{"says": "x"}], "a": "y"}], TALK, ask="", rounds=rounds, rounds_in="turns")
    assert [(turn.reveal, turn.question) for turn in made.items[0].turns] == [("Weakness.", "Which tests?"), ("DWI is bright.", "And now?")]
    assert [row.reason for row in record.refused] == ["the question of a round is empty"]


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
        ({"facts": "f"}, OPEN, "the runner dialogue needs `rounds` or `facts`, the other runners have none"),
        ({"facts": "f", "text": []}, CHOICE, "`facts` of a question with options need `text`"),
        ({}, TALK, "the runner dialogue needs `rounds` or `facts`"),
        ({"facts": "f", "family": "question_answering"}, TALK, "a dialogue ends in a diagnosis"),
        ({"rounds": [{"text": ["x"]}]}, TALK, "a round needs `question` .its column., `ask` .fixed words., or both"),
        ({"rounds_in": "x", "rounds": [{"ask": "1"}, {"ask": "2"}]}, TALK, "`rounds_in` needs one entry in `rounds`"),
        ({"reasons": "x"}, CHOICE, "`rubric`, `reasons`, `findings` and `must_not` are for open answers and dialogues"),
        ({"conversation": {"column": "p"}}, OPEN, "`conversation` has the question"),
        ({"each": "x", "variants": [{"a": "b"}]}, CHOICE, "come from `each` or from `variants`"),
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
        "answer": {"column": "target", "form": "text", "aliases": "target"},
        "images": {"columns": ["input.0.content.1.image"], "form": "path"},
        "options": None,
    }
    record, items = import_text(tmp_path, "images.jsonl", INSPECT, form)
    assert (record.found, len(record.refused)) == (2, 0)
    assert [(item.question, len(item.images)) for item in items.items] == [
        ("How many ballons are in this picture?", 1),
        ("What is this a picture of?", 1),
    ]
    assert [(gold.answer, gold.aliases) for gold in items.gold] == [("3", ()), ("bike", ("bicycle",))]


def test_a_table_of_vlmevalkit_is_imported_whether_its_pictures_are_paths_base64_lists_or_in_another_row(tmp_path: Path) -> None:
    form = {"files": ["*.tsv"], "id": ["index"], "options": {"columns": ["A", "B", "C", "D"]}, "question": "question"}
    form |= {"answer": {"column": "answer"}, "tags": ["category"]}
    places = {name: picture_bytes(len(name)) for name in ("dog.jpg", "AMNH.jpg")}
    put(tmp_path / "set", {f"custom_eval/multimodal/images/{name}": content for name, content in places.items()})
    record, items = import_text(tmp_path, "example.tsv", VLMEVALKIT, {**form, "images": {"columns": ["image_path"], "form": "path"}})
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
    images = {"columns": ["image"], "form": "base64", "same_as": "index"}
    record, items = import_text(tmp_path / "packed", "example.tsv", "\n".join(packed), {**form, "images": images})
    assert (record.found, record.refused) == (4, ())
    shown = {item.item_id: [image.sha256 for image in item.images] for item in items.items}
    assert shown["b/1000001"] == shown["b/1"] == by_path["b/1"]
    assert shown["b/7"] == [*by_path["b/1"], *by_path["b/2"]]


NAMES = ["glioblastoma", "migraine", "stroke"]
ASKED_BOTH_WAYS = {**CHOICE, "runner": "open", "family": "differential_diagnosis"}


@pytest.mark.parametrize(("answer", "form"), [("B", "letter"), ("migraine", "text")])
def test_an_open_question_with_options_keeps_them_as_its_rivals(answer: str, form: str, tmp_path: Path) -> None:
    row = {"q": "What is it?", "o": NAMES, "a": answer}
    record, made = import_rows(tmp_path, [row], ASKED_BOTH_WAYS, answer={"column": "a", "form": form})
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
