"""Sets whose answers are numbers, dates, indices, boxes and keywords come in with the authors' rule of each row."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT
from fixtures.imports import built, put, put_mapping, put_table
from fixtures.scoring import RESPONSE, vocabulary
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.importing import ImportPaths, import_set
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.items import Runner
from neuralmedbench.records.questions import ImportRecord
from neuralmedbench.records.value_rules import fields_of, read_value, share_of
from neuralmedbench.scoring.scores import score_responses

REAL = os.environ.get("NMB_REAL_BENCHMARKS", "")
BASE: dict[str, Any] = {
    "title": "Mine",
    "home": "here",
    "licence": "ours",
    "axis": "breadth",
    "files": ["table.*"],
    "runner": "structured",
    "question": "q",
    "fields": {"answer": {"column": "a", "rule": "index"}},
}
CALCULATOR = {
    "Row Number": 1,
    "Calculator ID": 2,
    "Calculator Name": "Clearance",
    "Category": "lab",
    "Output Type": "decimal",
    "Note ID": "pmc-1",
    "Patient Note": "A woman of 50 weighs 70 kg.",
    "Question": "What is the clearance in mL/min?",
    "Ground Truth Answer": "25.238",
    "Lower Limit": "23.9761",
    "Upper Limit": "26.4999",
}
CALCULATORS = [
    CALCULATOR,
    {
        **CALCULATOR,
        "Row Number": 2,
        "Calculator ID": 4,
        "Output Type": "integer",
        "Ground Truth Answer": "3",
        "Lower Limit": "3",
        "Upper Limit": "3",
    },
    {**CALCULATOR, "Row Number": 3, "Calculator ID": 13, "Output Type": "date", "Ground Truth Answer": "09/23/2014"},
    {**CALCULATOR, "Row Number": 4, "Calculator ID": 69, "Output Type": "integer", "Ground Truth Answer": "('14 weeks', '1 days')"},
]
NOTES = [
    {
        "Text ID": "t-0",
        "Text": "a b",
        "Sentences": "0 a\n1 b",
        "Error Flag": "1",
        "Error Type": "diagnosis",
        "Error Sentence ID": "1",
        "Corrected Sentence": "c",
    },
    {
        "Text ID": "t-1",
        "Text": "a b",
        "Sentences": "0 a\n1 b",
        "Error Flag": "0",
        "Error Type": "NA",
        "Error Sentence ID": "-1",
        "Corrected Sentence": "NA",
    },
    dict.fromkeys(("Text ID", "Text", "Sentences", "Error Flag", "Error Type", "Error Sentence ID", "Corrected Sentence"), ""),
]


def by_mapping(tmp_path: Path, rows: list[dict[str, Any]], function: str = "", **changes: Any) -> tuple[ImportRecord, BenchmarkItems]:
    put_mapping(tmp_path, {**BASE, **changes}, function)
    put_table(tmp_path / "set" / "table.jsonl", rows)
    return brought(tmp_path, "mine", tmp_path / "config", part=False)


def brought(tmp_path: Path, name: str, config: Path, *, part: bool = True) -> tuple[ImportRecord, BenchmarkItems]:
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    record = import_set(data_sets(config)[name], tmp_path / "set", "b", places, part=part)
    return record, built(places, "full")


def passes(items: BenchmarkItems, texts: list[str]) -> list[bool | None]:
    gold = {row.item_id: row for row in items.gold}
    rows = [replace(RESPONSE, item_id=item.item_id, runner=item.runner, text=text) for item, text in zip(items.items, texts, strict=True)]
    return [row.passed for row in score_responses(rows, {item.item_id: item for item in items.items}, gold, [], vocabulary=vocabulary())]


def test_medcalc_rows_get_the_rule_of_their_calculator_and_the_limits_of_the_table(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "test_data.csv", CALCULATORS)
    record, items = brought(tmp_path, "medcalc-bench", ROOT / "config")
    assert (record.found, record.imported, record.refused) == (4, 4, ())
    values = [gold.values[0] for gold in items.gold]
    assert [value.rule for value in values] == ["number", "whole_number", "date", "weeks_and_days"]
    assert (values[0].low, values[0].high, values[1].low) == (23.9761, 26.4999, None)
    assert [fields_of(item.answer_schema) for item in items.items] == [{"answer": value.rule} for value in values]
    assert {item.runner for item in items.items} == {Runner.STRUCTURED}
    assert passes(items, ["25.2", "3", "9/23/2014", "14 weeks and 1 day"]) == [True] * 4
    assert passes(items, ["27", "3.6", "9/24/2014", "(14, 2)"]) == [False] * 4


def test_medec_asks_for_flag_sentence_and_rewrite_and_counts_no_blank_row(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "MEDEC-MS-TestSet.csv", NOTES)
    record, items = brought(tmp_path, "medec", ROOT / "config")
    assert (record.found, record.imported) == (2, 2)
    assert [[(value.field, value.value) for value in gold.values] for gold in items.gold] == [
        [("flag", "1"), ("sentence", "1"), ("rewrite", "c")],
        [("flag", "0"), ("sentence", "-1"), ("rewrite", "")],
    ]
    answer = json.dumps({"flag": 1, "sentence": 1, "rewrite": "c", "confidence": 0.9})
    assert passes(items, [answer, answer]) == [True, False]


def test_a_box_is_right_by_its_overlap(tmp_path: Path) -> None:
    _, items = by_mapping(tmp_path, [{"q": "Where?", "a": [0.25, 0.25, 0.5, 0.5]}], fields={"box": {"column": "a", "rule": "box"}})
    assert [json.loads(gold.values[0].value) for gold in items.gold] == [[0.25, 0.25, 0.5, 0.5]]
    assert passes(items, ["[0.25, 0.25, 0.5, 0.4]"]) == [True]
    assert passes(items, ['{"box": [0.5, 0.5, 1, 1]}']) == [False]


def test_keywords_are_kept_as_a_list_and_describe(tmp_path: Path) -> None:
    _, items = by_mapping(
        tmp_path, [{"q": "Describe.", "a": ["irregular", "glioma"]}], fields={"answer": {"column": "a", "rule": "keywords"}}
    )
    value = items.gold[0].values[0]
    assert json.loads(value.value) == ["irregular", "glioma"]
    assert passes(items, ["A glioma."]) == [None]


def test_limits_may_be_a_share_of_the_reference(tmp_path: Path) -> None:
    _, items = by_mapping(tmp_path, [{"q": "How much?", "a": -20}], fields={"answer": {"column": "a", "rule": "number", "within": 0.05}})
    assert (items.gold[0].values[0].low, items.gold[0].values[0].high) == (-21, -19)


VALUES = """
def question(row):
    limits = [float(row[name]) if row[name] else None for name in ("lo", "hi")]
    return Question(question=row["q"], values=(Value(name="answer", rule=row["rule"], reference=row["a"], low=limits[0], high=limits[1]),))
"""


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"a": "7.4", "lo": ""}, "answer: a number needs both limits"),
        ({"a": "7.4", "lo": "8", "hi": "9"}, "answer: the reference is not between its limits"),
        ({"a": "2007-13-01", "rule": "date"}, "answer: the reference cannot be read as a date (MM/DD/YYYY)"),
        ({"a": "five", "rule": "index"}, "answer: the reference cannot be read as an index"),
    ],
)
def test_a_reference_that_no_rule_can_use_refuses_its_row(tmp_path: Path, row: dict[str, str], reason: str) -> None:
    good = {"q": "?", "a": "7.4", "lo": "7", "hi": "8", "rule": "number"}
    record, items = by_mapping(tmp_path, [good, {**good, **row}], VALUES, fields={})
    assert len(items.items) == 1
    assert record.refused[0].where.endswith("row 2")
    assert record.refused[0].reason.startswith(reason)


def test_limits_and_shares_of_the_function_count(tmp_path: Path) -> None:
    row = {"q": "How much?", "a": "20", "lo": "19", "hi": "21", "rule": "number"}
    _, items = by_mapping(tmp_path, [row], VALUES, fields={})
    assert passes(items, ["20.9"]) == [True]
    assert passes(items, ["21.1"]) == [False]


def test_a_corrected_answer_that_lost_its_limit_stops_the_items_with_one_line(tmp_path: Path) -> None:
    by_mapping(tmp_path, [{"q": "How much?", "a": 20}], fields={"answer": {"column": "a", "rule": "number", "within": 0.05}})
    path = tmp_path / "questions" / "answers.jsonl"
    answer = json.loads(path.read_text(encoding="utf-8"))
    del answer["values"][0]["low"]
    path.write_text(json.dumps(answer) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"b/table-00001: answer: a number needs both limits .*; correct it in answers.jsonl, or import"):
        built(ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw"), "full")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fields": {}}, "the runner structured needs `fields`"),
        ({"runner": "open"}, "`fields` are for the runner structured, without `answer`"),
        ({"family": "classification"}, "values are asked for by the family question_answering"),
        ({"fields": {"confidence": {"column": "a", "rule": "index"}}}, "every answer has a key confidence"),
        ({"fields": {"answer": {"column": "a"}}}, "the key 'fields.answer.rule' is missing"),
        ({"fields": {"answer": {"column": "a", "rule": "number"}}}, "a number needs `within`"),
        ({"fields": {"answer": {"column": "a", "rule": "nmber"}}}, "did you mean 'number'"),
    ],
)
def test_a_mapping_of_values_that_cannot_work_says_what_to_set(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    put(tmp_path / "config", {"mappings/mine.yaml": yaml.safe_dump({**BASE, **changes})})
    with pytest.raises(ConfigError) as found:
        data_sets(tmp_path / "config")
    assert message in str(found.value)


def test_fields_are_part_of_the_schema_of_mappings() -> None:
    assert "fields" in MappingConfig.model_fields


@pytest.mark.skipif(not REAL, reason="NMB_REAL_BENCHMARKS names no folder of real benchmarks")
def test_the_published_notes_of_medec_all_come_in_with_their_references(tmp_path: Path) -> None:
    """597 notes, 286 without an error; 328 blank rows. The references of the authors' script are the cells as text."""
    (table,) = (Path(REAL) / "medec").glob("*.csv")
    put(tmp_path, {"set/MEDEC-MS-TestSet.csv": table.read_bytes()})
    record, items = brought(tmp_path, "medec", ROOT / "config", part=False)
    assert (record.found, record.imported, len(record.refused)) == (597, 597, 0)
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = {row["Text ID"]: row for row in csv.DictReader(file) if row["Text"]}
    flags = Counter[str]()
    for gold in items.gold:
        row, values = rows[gold.item_id.split("/")[1]], {value.field: value.value for value in gold.values}
        assert (float(values["flag"]), float(values["sentence"])) == (float(row["Error Flag"]), float(row["Error Sentence ID"]))
        flags[values["flag"]] += 1
    assert flags == {"0": 286, "1": 311}
    # the reference itself passes everywhere, and no error is the answer to 286
    answers = [json.dumps({value.field: value.value for value in gold.values}) for gold in items.gold]
    assert all(passes(items, answers))
    assert sum(map(bool, passes(items, [json.dumps({"flag": 0, "sentence": -1, "rewrite": "NA"})] * 597))) == 286


@pytest.mark.skipif(not REAL, reason="NMB_REAL_BENCHMARKS names no folder of real benchmarks")
def test_the_references_of_medec_describe_their_own_rewrites_as_equal(tmp_path: Path) -> None:
    (table,) = (Path(REAL) / "medec").glob("*.csv")
    put(tmp_path, {"set/MEDEC-MS-TestSet.csv": table.read_bytes()})
    _, items = brought(tmp_path, "medec", ROOT / "config", part=False)
    rewrites = [value for gold in items.gold for value in gold.values if value.field == "rewrite"]
    assert sum(not value.value for value in rewrites) == 286
    assert {share_of(read_value("words", value.value or "NA"), value) for value in rewrites} == {1.0}
