"""Objects of uneven depth as text of the case: what is written, what may never be, and what a wrong declaration is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fixtures.imports import built, imported, put, put_table
from neuralmedbench.benchmarks.adapters.case_text import object_parts, object_text
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.importing import ImportPaths, import_set, import_summary
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.config.mapping_sections import TextMapping
from neuralmedbench.config.mappings import load_mappings
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.questions import ImportRecord

FORM: dict[str, Any] = {
    "title": "Mine",
    "home": "here",
    "licence": "ours",
    "axis": "depth",
    "files": ["*.jsonl", "*.json"],
    "runner": "open",
    "family": "differential_diagnosis",
    "text": [{"column": "Exam", "leave_out": ["Right"]}],
    "ask": "What is it?",
    "answer": {"column": "Exam.Right", "form": "text"},
}
FIRST = {
    "Exam": {
        "Task_for_Doctor": "Examine a woman with drooping lids.",
        "Patient": {
            "History": "Her lids droop in the evening.",
            "Symptoms": {"First": "Double vision", "Others": ["Weak arms", {"Site": "neck", "Side": None}, []]},
            "Past_History": "",
        },
        "Tests": {"Chest_X-Ray": {"Findings": "No mass."}, "Blood": {"WBC": 9.0, "Sent": True, "Culture": {}}, "Other": []},
        "Right": "Myasthenia gravis",
    }
}
SECOND = {"Exam": {"Task_for_Doctor": "Examine a man.", "Patient": "A man who falls.", "Tests": {}, "Right": "Migraine"}}


def import_rows(tmp_path: Path, rows: list[dict[str, Any]], **changes: Any) -> tuple[ImportRecord, BenchmarkItems]:
    """Import records with a mapping."""
    put(tmp_path / "config", {"mappings/mine.yaml": yaml.safe_dump({**FORM, **changes})})
    put_table(tmp_path / "set" / "table.jsonl", rows)
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    record = import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places)
    return record, built(places, "full")


def stopped(tmp_path: Path, rows: list[dict[str, Any]], **changes: Any) -> list[str]:
    """Return the lines with which an import stops, which wrote nothing."""
    with pytest.raises(DataError) as caught:
        import_rows(tmp_path, rows, **changes)
    assert not (tmp_path / "questions").exists()
    return [line.strip() for line in str(caught.value).splitlines()]


# what is written


def test_records_of_different_keys_and_depths_become_lines_in_the_order_of_the_file(tmp_path: Path) -> None:
    record, made = import_rows(tmp_path, [FIRST, SECOND])
    assert (record.imported, record.refused) == (2, ())
    assert made.items[0].notes == "\n".join(
        [
            "Task for Doctor: Examine a woman with drooping lids.",
            "Patient:",
            "  History: Her lids droop in the evening.",
            "  Symptoms:",
            "    First: Double vision",
            "    Others:",
            "      - Weak arms",
            "      - Site: neck",
            "Tests:",
            "  Chest X-Ray:",
            "    Findings: No mass.",
            "  Blood:",
            "    WBC: 9",
            "    Sent: yes",
        ]
    )
    assert made.items[1].notes == "Task for Doctor: Examine a man.\nPatient: A man who falls."
    assert [gold.answer for gold in made.gold] == ["Myasthenia gravis", "Migraine"]


def test_a_text_of_several_lines_and_an_object_written_as_json_in_a_table_are_read(tmp_path: Path) -> None:
    cell = json.dumps({"History": "He falls.\n\n  He denies fever. ", "Seen": "[12, 40]"})
    _, made = import_rows(
        tmp_path, [{"Case": cell, "Right": "Stroke"}], text=[{"column": "Case"}], answer={"column": "Right", "form": "text"}
    )
    assert made.items[0].notes == "History:\n  He falls.\n  He denies fever.\nSeen: [12, 40]"


def test_headings_name_an_object_by_its_last_key_and_a_column_as_before(tmp_path: Path) -> None:
    rows = [{**FIRST, "Old_Notes": "None."}]
    _, made = import_rows(tmp_path, rows, headings=True, text=["Old_Notes", {"column": "Exam.Tests", "leave_out": ["Blood"]}])
    assert made.items[0].notes == "Old_Notes:\nNone.\n\nTests:\nChest X-Ray:\n  Findings: No mass."


def test_rounds_of_a_dialogue_reveal_objects_too(tmp_path: Path) -> None:
    rounds = [
        {"text": [{"column": "Exam.Patient.Symptoms"}], "ask": "What is it?"},
        {"text": [{"column": "Exam.Tests"}], "ask": "And now?"},
    ]
    _, made = import_rows(tmp_path, [FIRST], runner="dialogue", text=[], ask="", rounds=rounds)
    assert [turn.reveal.splitlines()[0] for turn in made.items[0].turns] == ["First: Double vision", "Chest X-Ray:"]


@pytest.mark.parametrize(
    ("leave_out", "left"),
    [
        (["Tests"], "A: 1\nList:\n  - Site: arm\n    Tests: 3"),
        (["**.Tests"], "A: 1\nList:\n  - Site: arm"),
        (["List.Site"], "A: 1\nTests:\n  A: 2\nList:\n  - Tests: 3"),
        (["*.A", "L*"], "A: 1"),
    ],
)
def test_keys_are_left_out_by_their_paths_and_by_parts_of_them(leave_out: list[str], left: str) -> None:
    value = {"A": 1, "Tests": {"A": 2}, "List": [{"Site": "arm", "Tests": 3}]}
    assert object_text(TextMapping(column="x", leave_out=tuple(leave_out)), value) == left


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab c\n", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abXY_", min_size=1, max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(NESTED)
def test_every_word_of_any_object_is_written_once_and_nothing_as_python(value: Any) -> None:
    entry = TextMapping(column="x")
    text = object_text(entry, value)
    assert text == object_text(entry, value)
    assert not [line for line in text.splitlines() if not line.strip() or line != line.rstrip()]
    parts = [word for _, words in object_parts(entry, value) for word in words.split()]
    assert sorted(parts) == sorted(text.replace("- ", " ").replace(":", " ").split())


def test_an_object_without_end_and_one_with_bytes_are_refused_in_one_line() -> None:
    deep: Any = "x"
    for _ in range(700):
        deep = {"a": deep}
    assert list(object_parts(TextMapping(column="Exam", leave_out=("a",)), deep)) == []
    with pytest.raises(DataError, match="the column 'Exam' has more than 50 levels of objects; leave out what is below 'a'"):
        object_text(TextMapping(column="Exam"), deep)
    with pytest.raises(DataError, match=r"the column 'Exam': 'a\.b' holds bytes where text was expected; add it to `leave_out`"):
        object_text(TextMapping(column="Exam"), {"a": {"b": b"x"}})


def test_a_file_with_one_record_is_a_table_of_one_row(tmp_path: Path) -> None:
    put(tmp_path / "config", {"mappings/mine.yaml": yaml.safe_dump({**FORM, "files": ["*.json"]})})
    put(tmp_path / "set", {"p1.json": {"name": "p1", **FIRST}, "p2.json": {"name": "p2", **SECOND}})
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    assert import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places).imported == 2


@pytest.mark.parametrize(("name", "file"), [("agentclinic", "agentclinic_medqa"), ("agentclinic-extended", "agentclinic_medqa_extended")])
def test_agentclinic_comes_in_by_yaml_alone(tmp_path: Path, name: str, file: str) -> None:
    record = {"Objective_for_Doctor": "Examine.", "Patient_Actor": {"Symptoms": {"First": "Falls"}}, "Correct_Diagnosis": "Stroke"}
    treated = {**record, "Management_and_Follow_Up": {"Treatment": "Aspirin for the stroke"}}
    put_table(
        tmp_path / "set" / f"{file}.jsonl", [{"OSCE_Examination": one} for one in ((record, treated) if "ext" in name else (record,))]
    )
    _, made = imported(name, tmp_path / "set", tmp_path)
    texts = {item.notes for item in made.items}
    assert texts == {"Objective for Doctor: Examine.\nPatient Actor:\n  Symptoms:\n    First: Falls"}
    assert {gold.answer for gold in made.gold} == {"Stroke"}


# the answer is never in a prompt


def test_an_object_with_the_answer_stops_the_import_and_all_records_are_counted(tmp_path: Path) -> None:
    lines = stopped(tmp_path, [FIRST, SECOND, {"Exam": {"Patient": "x", "Right": "y"}}], text=[{"column": "Exam"}])
    assert " ".join(lines) == (
        "table.jsonl, row 1: the text 'Exam' shows 'Exam.Right', which is the `answer`; expected a text without it;"
        " add it to `leave_out: [Right]` (and 2 more of 3 records)"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": ["Exam.Right"]}, "the text 'Exam.Right' shows 'Exam.Right', which is the `answer`"),
        ({"answer": {"column": "List.name", "form": "text"}, "text": [{"column": "List"}]}, "'List.0.name', which is the `answer`"),
        ({"answer": {"column": "List.0", "form": "text"}, "text": ["List.0.name"]}, "shows 'List.0', which is the `answer`"),
        ({"reasons": "Why.steps", "text": [{"column": "Why"}]}, "shows 'Why.steps', which is the `reasons`"),
        (
            {"answer": {"column": "a", "form": "text", "aliases": "Exam.Names"}, "text": [{"column": "Exam"}]},
            "shows 'Exam.Names', which is the `answer.aliases`",
        ),
    ],
)
def test_every_reference_is_compared_by_its_path_in_the_record(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    row = {"Exam": {"Right": "x", "Names": "y; z"}, "List": [{"name": "x"}], "Why": {"steps": "1. a"}, "a": "x"}
    assert any(said in line for line in stopped(tmp_path, [row], **changes))


def test_a_reference_in_a_round_of_a_list_is_found_in_its_own_round(tmp_path: Path) -> None:
    row = {"rounds": [{"seen": {"a": "falls"}, "ask": "?"}, {"seen": {"a": "tremor", "is": "PD"}, "ask": "?"}]}
    form = {
        "runner": "dialogue",
        "text": [],
        "ask": "",
        "rounds_in": "rounds",
        "rounds": [{"text": [{"column": "seen"}], "question": "ask"}],
    }
    (line,) = stopped(tmp_path, [row], **form, answer={"column": "rounds.-1.seen.is", "form": "text"})
    assert "the rounds.text 'seen' shows 'rounds.1.seen.is', which is the `answer`" in line
    assert line.endswith("add it to `leave_out: [is]`")


def test_the_words_of_an_answer_in_a_text_are_a_warning_with_their_number_and_place(tmp_path: Path) -> None:
    honest = {"Exam": {"Patient": {"History": "Migraine since youth."}, "Right": "Migraine"}}
    report = {"Exam": {"Tests": {"MRI": ["x", "typical of MIGRAINE"]}, "Right": "Migraine (with aura)"}}
    part = {"Exam": {"Patient": {"History": "Antimigraines."}, "Right": "Migraine"}}
    named = {"Exam": {"Tests": {"Migraine_and_Aura": "x"}, "Right": "Migraine"}}
    record, _ = import_rows(tmp_path, [honest, report, part, named])
    assert record.answer_in_text == {
        "table-00001": ("Exam.Patient.History",),
        "table-00002": ("Exam.Tests.MRI",),
        "table-00004": ("Exam.Tests.Migraine_and_Aura",),
    }
    (line,) = [line for line in import_summary(record, written=True).splitlines() if "words of the answer" in line]
    assert "stand in the text of 3 of 4 questions, below Exam.Tests (2) and Exam.Patient (1); first: table-00001" in line
    assert "igraine since" not in line
    record, _ = import_rows(tmp_path, [part])
    assert "words of the answer" not in import_summary(record, written=True)


def test_a_key_that_is_a_copy_of_the_answer_stops_the_import_and_a_rare_one_is_a_warning(tmp_path: Path) -> None:
    names = ["Migraine", "Stroke", "Glioma", "Abscess", "Narcolepsy", "Syncope"]
    rows = [{"Exam": {"Patient": {"Known": name if number < 2 else "none"}, "Right": name}} for number, name in enumerate(names)]
    record, _ = import_rows(tmp_path / "rare", rows)
    assert len(record.answer_in_text) == 2
    for row, name in zip(rows[:4], names, strict=False):
        row["Exam"]["Called"] = [name.upper()]
    (line,) = stopped(tmp_path / "copy", rows)
    assert line == (
        "table.jsonl, row 1: the text 'Exam' shows 'Exam.Called', which holds the answer and nothing else in 4 of 4 records that have it;"
        " expected a text without it; add it to `leave_out: [Called]`"
    )


def test_the_answer_and_its_copies_are_told_at_once(tmp_path: Path) -> None:
    rows = [{"Exam": {"Title": name, "Seen": ["x"], "Right": name}} for name in ("Migraine", "Stroke", "Glioma", "Abscess")]
    head, *lines = stopped(tmp_path, rows, text=[{"column": "Exam"}])
    assert head == "2 mistakes"
    assert ["leave_out: [Right]" in lines[0], "leave_out: [Title]" in lines[1]] == [True, True]


def test_an_answer_that_anybody_says_is_no_warning(tmp_path: Path) -> None:
    record, _ = import_rows(tmp_path, [{"Exam": {"Fever": "No", "WBC": 9, "Right": "No"}}])
    assert record.answer_in_text == {}


# wrong declarations


def test_all_faults_of_a_mapping_are_told_at_once_with_record_path_and_next_step(tmp_path: Path) -> None:
    wrong = ["Exam.Patiant", "Exam.Tests", "Exm", {"column": "Exam"}]
    head, *lines = stopped(tmp_path, [FIRST, SECOND], text=wrong, id=["Exam.Patient"])
    assert head == "5 mistakes"
    assert [line.partition(";")[0] for line in lines] == [
        "table.jsonl, row 1: the column 'Exam.Patiant' is missing",
        "table.jsonl, row 1: the column 'Exm' is missing",
        "table.jsonl, row 1: the column 'Exam.Tests' holds objects (keys Blood, Chest_X-Ray, Other), which hold others",
        "table.jsonl, row 1: the column 'Exam.Patient': a cell holds an object where a text or a number was expected",
        "table.jsonl, row 1: the text 'Exam' shows 'Exam.Right', which is the `answer`",
    ]
    assert lines[0].endswith("'Exam' has Task_for_Doctor, Patient, Tests and Right; did you mean 'Exam.Patient'?")
    assert lines[1].endswith("found Exam; did you mean 'Exam'?")
    assert lines[3].endswith("; name one of its entries, as in `Exam.Patient.<key>`")
    assert lines[2].endswith("; write it out as text with `text: [{column: Exam.Tests}]`")


def test_faults_in_every_record_stop_the_import_and_in_some_refuse_those_with_all_of_theirs(tmp_path: Path) -> None:
    head, *lines = stopped(tmp_path, [FIRST, FIRST], text=["Exam.Tests"], question="Exam.Patient.Symptoms")
    assert (head, len(lines)) == ("2 mistakes", 2)
    assert all(line.endswith("(and 1 more of 2 records)") for line in lines)
    record, made = import_rows(tmp_path, [FIRST, SECOND], text=["Exam.Patient"], tags=["Exam.Plan"], optional=["Exam.Plan"])
    assert [(row.where, row.reason.partition(";")[0]) for row in record.refused] == [
        ("table.jsonl, row 1", "the column 'Exam.Patient' holds objects (keys History, Past_History, Symptoms), which hold others")
    ]
    assert [item.notes for item in made.items] == ["A man who falls."]


def test_a_path_of_leave_out_that_no_record_has_stops_the_import_because_the_key_meant_would_be_shown(tmp_path: Path) -> None:
    lines = stopped(tmp_path, [FIRST, SECOND], text=[{"column": "Exam", "leave_out": ["Right", "Tests.Blod", "Zz"]}])
    assert lines[1:] == [
        "`leave_out` of 'Exam': no record has 'Tests.Blod' below it; did you mean 'Tests.Blood'?",
        "`leave_out` of 'Exam': no record has 'Zz' below it; its keys are Patient, Right, Task_for_Doctor and Tests",
    ]
    record, _ = import_rows(tmp_path, [FIRST, SECOND], text=[{"column": "Exam", "leave_out": ["Right", "Tests.Blood"]}])
    assert record.imported == 2


def test_rows_refused_for_different_reasons_are_told_together(tmp_path: Path) -> None:
    rows = [{"t": "", "n": 1}, {"t": "x", "n": ""}, {"t": "x", "n": ""}]
    lines = stopped(tmp_path, rows, text=["t"], id=["n"], answer=None)
    assert lines == [
        "2 mistakes",
        "mine: none of 3 rows can be used; the first: table.jsonl, row 1, id 1: the text of the case is empty",
        "table.jsonl, row 2: the column 'n', which names the question, is empty",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ([{"column": "Exam", "leaveout": ["Right"]}], "unknown key 'text.0.leaveout'; did you mean 'leave_out'?"),
        ([{"leave_out": ["Right"]}], "the key 'text.0.column' is missing"),
        ([3], "text.0: input should be a valid string, found 3"),
        ([{"column": "Exam", "leave_out": ["Tests..a"]}], "text.0.leave_out: 'Tests..a' is no path: keys joined by full stops"),
    ],
)
def test_a_misspelt_text_is_named_by_its_key(tmp_path: Path, text: list[Any], said: str) -> None:
    put(tmp_path, {"mappings/mine.yaml": yaml.safe_dump({**FORM, "text": text})})
    with pytest.raises(ConfigError) as caught:
        load_mappings(tmp_path)
    assert said in str(caught.value)
    assert "mistakes" not in str(caught.value)
