"""Objects of uneven depth as text of the case: what is written, what may never be, and what a wrong declaration is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.imports import built, imported, put, put_mapping, put_table
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.case_text import object_text, readable
from neuralmedbench.benchmarks.importing import ImportPaths, import_set, import_summary
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.errors import DataError
from neuralmedbench.records.questions import ImportRecord

FORM: dict[str, Any] = {
    "title": "Mine",
    "home": "here",
    "licence": "ours",
    "axis": "depth",
    "files": ["*.jsonl", "*.json"],
    "runner": "open",
    "family": "differential_diagnosis",
    "ask": "What is it?",
}
EXAM = """
def question(row):
    exam = row["Exam"]
    return Question(text=object_text({key: value for key, value in exam.items() if key != "Right"}), answer=exam["Right"])
"""
SHOWN = """
def question(row):
    return Question(text=object_text(row["Exam"]), answer=row["Exam.Right"])
"""
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


def import_rows(tmp_path: Path, rows: list[dict[str, Any]], function: str = EXAM, **changes: Any) -> tuple[ImportRecord, BenchmarkItems]:
    """Import records with a function, or by their columns without one."""
    put_mapping(tmp_path, {**FORM, **changes}, function)
    put_table(tmp_path / "set" / "table.jsonl", rows)
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    record = import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places)
    return record, built(places, "full")


def stopped(tmp_path: Path, rows: list[dict[str, Any]], function: str = EXAM, **changes: Any) -> list[str]:
    """Return the lines with which an import stops, which wrote nothing."""
    with pytest.raises(DataError) as caught:
        import_rows(tmp_path, rows, function, **changes)
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


def test_a_text_of_several_lines_and_an_object_written_as_json_in_a_table_are_read() -> None:
    cell = json.dumps({"History": "He falls.\n\n  He denies fever. ", "Seen": "[12, 40]"})
    assert object_text(cell) == "History:\n  He falls.\n  He denies fever.\nSeen: [12, 40]"


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab c\n", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abXY_", min_size=1, max_size=4), inner, max_size=3),
    max_leaves=12,
)


def words(value: Any) -> list[str]:
    """Return the words of an object that are to be written; empty branches are none."""
    if isinstance(value, dict):
        return [word for key, part in value.items() if (below := words(part)) for word in (*readable(key).split(), *below)]
    if isinstance(value, list):
        return [word for part in value for word in words(part)]
    return [] if value is None else ("no", "yes")[value].split() if isinstance(value, bool) else str(value).split()


@given(NESTED)
def test_every_word_of_any_object_is_written_once_and_nothing_as_python(value: Any) -> None:
    text = object_text(value)
    assert not [line for line in text.splitlines() if not line.strip() or line != line.rstrip()]
    assert sorted(words(value)) == sorted(text.replace("- ", " ").replace(":", " ").split())


def test_an_object_without_end_and_one_with_bytes_are_refused_in_one_line() -> None:
    deep: Any = "x"
    for _ in range(700):
        deep = {"a": deep}
    with pytest.raises(DataError, match="a record has more than 50 levels"):
        object_text(deep)
    with pytest.raises(DataError, match="a cell holds bytes"):
        object_text({"a": {"b": b"x"}})


def test_a_file_with_one_record_is_a_table_of_one_row(tmp_path: Path) -> None:
    put_mapping(tmp_path, {**FORM, "files": ["*.json"]}, EXAM)
    put(tmp_path / "set", {"p1.json": {"name": "p1", **FIRST}, "p2.json": {"name": "p2", **SECOND}})
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    assert import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places).imported == 2


@pytest.mark.parametrize(("name", "file"), [("agentclinic", "agentclinic_medqa"), ("agentclinic-extended", "agentclinic_medqa_extended")])
def test_agentclinic_comes_in_without_its_diagnosis(tmp_path: Path, name: str, file: str) -> None:
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


NAMES = ("Migraine", "Stroke", "Glioma", "Abscess", "Narcolepsy", "Syncope")


def test_a_text_with_the_answer_in_a_line_of_its_own_stops_the_import_with_its_heading(tmp_path: Path) -> None:
    rows = [{"Exam": {"Patient": "x", "Right": name}} for name in NAMES]
    (line,) = stopped(tmp_path, rows, SHOWN)
    assert line.startswith("table.jsonl, row 1: a line of the text (Right) holds the answer and nothing else, in 6 of 6 questions")


def test_a_copy_of_the_answer_stops_the_import_and_a_rare_one_is_a_warning(tmp_path: Path) -> None:
    rows: list[Any] = [{"Exam": {"Patient": {"Known": name if number < 2 else "none"}, "Right": name}} for number, name in enumerate(NAMES)]
    record, _ = import_rows(tmp_path / "rare", rows)
    assert record.answer_in_text == {"table-00001": ("Known",), "table-00002": ("Known",)}
    (line,) = [line for line in import_summary(record, written=True).splitlines() if "a line of the text is the answer" in line]
    assert "in 2 of 6 questions: Known (2); first: table-00001" in line
    for row, name in zip(rows[:4], NAMES, strict=False):
        row["Exam"]["Called"] = [name.upper()]
    (line,) = stopped(tmp_path / "copy", rows)
    assert "holds the answer and nothing else, in 4 of 6 questions" in line


def test_a_history_that_names_the_answer_and_an_answer_that_anybody_says_are_no_warning(tmp_path: Path) -> None:
    honest = {"Exam": {"History": "Migraine since youth.", "Right": "Migraine"}}
    record, _ = import_rows(tmp_path, [honest, {"Exam": {"Fever": "No", "WBC": 9, "Right": "No"}}])
    assert record.answer_in_text == {}


# wrong columns


def test_all_missing_columns_are_told_at_once_with_record_and_next_step(tmp_path: Path) -> None:
    head, *lines = stopped(tmp_path, [FIRST, SECOND], "", text=["Exm"], question="Task", answer="Exam.Right")
    assert head == "2 mistakes"
    assert lines == [
        "table.jsonl, row 1: the column 'Task' is missing; found Exam; correct it, or name it in `optional` if rows may lack it",
        "table.jsonl, row 1: the column 'Exm' is missing; found Exam; did you mean 'Exam'?",
    ]


def test_an_object_where_text_is_needed_refuses_the_row(tmp_path: Path) -> None:
    changes = {"text": ["Exam.Patient"], "answer": "Exam.Right", "tags": ["Exam.Plan"], "optional": ["Exam.Plan"]}
    record, made = import_rows(tmp_path, [FIRST, SECOND], "", **changes)
    assert [(row.where, row.reason.partition(";")[0]) for row in record.refused] == [
        ("table.jsonl, row 1", "the column 'Exam.Patient' holds objects (keys History, Past_History, Symptoms)")
    ]
    assert [item.notes for item in made.items] == ["A man who falls."]


def test_rows_refused_for_different_reasons_are_told_together(tmp_path: Path) -> None:
    rows = [{"t": "", "n": 1}, {"t": "x", "n": ""}, {"t": "x", "n": ""}]
    lines = stopped(tmp_path, rows, "", text=["t"], id=["n"])
    assert lines == [
        "2 mistakes",
        "mine: none of 3 rows can be used; the first: table.jsonl, row 1, id 1: the text of the case is empty",
        "table.jsonl, row 2: the column 'n', which names the question, is empty",
    ]
