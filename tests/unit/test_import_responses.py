from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import yaml

import import_responses
from import_fixtures import put, put_table
from models_fixtures import model_config, request
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.io.given_answers import read_given
from neuralmedbench.io.tables import write_records
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.imported_answers import import_answers
from neuralmedbench.records.given import GivenAnswer
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import ResponseState

MODEL = model_config(backend="imported", id="team/their-model", temperature=1.0, api_base=None, api_key_env=None, prices=None)
ONE = request("one", RequestTurn(text="What is it?"), samples=2)
TALK = request("talk", RequestTurn(text="First?"), RequestTurn(text="And now?"))


def given(item: str, *turns: str, sample: int = 0, arm: str = "full") -> GivenAnswer:
    return GivenAnswer(where="row", item=item, sample=sample, turns=turns, arm=arm)


def answers_of(tmp_path: Path, requests: list[Request]) -> list[tuple[str, int, str, str, tuple[str, ...]]]:
    rows = answer_requests(
        requests, MODEL, name="theirs", ledger=tmp_path / "theirs.jsonl", destinations=("local",), max_failed_fraction=None
    )
    return [(row.item_id, row.repeat, row.state, row.finish_reason, row.turns) for row in rows]


def test_imported_answers_are_responses_like_all_others_and_what_is_missing_is_missing(tmp_path):
    rows = [given("b/one", "A stroke."), given("talk", "Perhaps a stroke.", "A stroke.")]
    found = import_answers([ONE, TALK], MODEL, rows, name="theirs", ledger=tmp_path / "theirs.jsonl")
    assert (found.expected, found.given, found.added, found.missing) == (3, 2, 3, 1)
    assert answers_of(tmp_path, [ONE, TALK]) == [
        ("b/one", 0, ResponseState.OK, "imported", ("A stroke.",)),
        ("b/one", 1, ResponseState.SKIPPED, "", ()),
        ("b/talk", 0, ResponseState.OK, "imported", ("Perhaps a stroke.", "A stroke.")),
    ]


def test_the_same_import_twice_adds_nothing_and_another_text_needs_another_revision(tmp_path):
    ledger = tmp_path / "theirs.jsonl"
    for added in (1, 0):
        assert import_answers([ONE], MODEL, [given("one", "A")], name="theirs", ledger=ledger).added == added
    with pytest.raises(DataError, match=r"1 answers differ .* raise `revision`"):
        import_answers([ONE], MODEL, [given("one", "B")], name="theirs", ledger=ledger)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([given("b/other", "A")], "no request for this item"),
        ([given("one", "A", arm="no_image")], "under arm no_image"),
        ([given("one", "A", sample=2)], "sample 2, the benchmark asks for 2"),
        ([given("one", "A"), given("b/one", "B")], "stands twice"),
        ([given("talk", "A")], "1 turns, expected 2"),
    ],
)
def test_answers_that_fit_nothing_are_refused_and_nothing_is_imported(tmp_path, rows, problem):
    with pytest.raises(DataError, match=problem):
        import_answers([ONE, TALK], MODEL, [*rows, given("one", "C", sample=1)], name="theirs", ledger=tmp_path / "theirs.jsonl")
    assert not (tmp_path / "theirs.jsonl").exists() or not (tmp_path / "theirs.jsonl").read_bytes()


def test_a_model_that_is_asked_here_takes_no_imported_answers(tmp_path):
    with pytest.raises(ConfigError, match="backend: litellm"):
        import_answers([ONE], model_config(), [given("one", "A")], name="ours", ledger=tmp_path / "ours.jsonl")


def test_tables_and_the_logs_of_inspect_and_lmms_eval_are_read(tmp_path):
    put_table(tmp_path / "a.csv", [{"item": "one", "sample": "1", "text": "A, then"}, {"item": "two", "sample": "0", "text": "B"}])
    put_table(tmp_path / "b.jsonl", [{"item": "one", "text": "A"}, {"item": "one", "text": "B"}, {"item": "t", "turns": ["x", "y"]}])
    sample = {"id": "one", "epoch": 2, "output": {"choices": [{"message": {"content": [{"type": "text", "text": "A"}]}}]}}
    put(tmp_path, {"log.json": {"version": 2, "samples": [sample, {"id": 7, "epoch": 1, "output": {"completion": "B"}}]}})
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/one_epoch_2.json", json.dumps(sample))
    put_table(tmp_path / "c.jsonl", [{"doc_id": 4, "doc": {"question_id": "q4"}, "resps": [["A"], ["B"]], "filtered_resps": ["A"]}])

    def read(name: str, form: str, key: str = "") -> list[tuple[str, int, tuple[str, ...]]]:
        return [(row.item, row.sample, row.turns) for row in read_given(tmp_path / name, form, key)]

    assert read("a.csv", "table") == [("one", 1, ("A, then",)), ("two", 0, ("B",))]
    assert read("b.jsonl", "table") == [("one", 0, ("A",)), ("one", 1, ("B",)), ("t", 0, ("x", "y"))]
    assert read("log.json", "inspect") == [("one", 1, ("A",)), ("7", 0, ("B",))]
    assert read("log.eval", "inspect") == [("one", 1, ("A",))]
    assert read("c.jsonl", "lmms-eval", "question_id") == [("q4", 0, ("A",)), ("q4", 1, ("B",))]
    assert read("c.jsonl", "lmms-eval") == [("4", 0, ("A",)), ("4", 1, ("B",))]


@pytest.mark.parametrize(
    ("content", "form", "problem"),
    [
        ('{"item": "one", "answer": "A secret"}', "table", "unknown column 'answer'"),
        ('{"item": "one"}', "table", "`item` and `text`"),
        ("not json: A secret", "table", "not lines of JSON in UTF-8"),
        ('{"results": "A secret"}', "inspect", "KeyError at 'samples'"),
        ('{"doc_id": 1}', "lmms-eval", "KeyError at 'filtered_resps'"),
    ],
)
def test_a_file_of_another_form_is_one_line_without_its_words(tmp_path, content, form, problem):
    put(tmp_path, {"x.jsonl": content})
    with pytest.raises(DataError, match=problem) as told:
        read_given(tmp_path / "x.jsonl", form)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("item,text\none\n", "a.csv, line 2: `item` and `text`"),
        ("item,text\none,A,secret\n", "a.csv: a row has more cells than the first line has names"),
        ("item,item,text\none,one,A\n", "a.csv: the column 'item' stands twice"),
        ('item,text\none,"A\nB"\none\n', "a.csv, line 4: `item` and `text`"),
    ],
)
def test_a_table_with_a_wrong_row_is_refused_by_its_line(tmp_path, content, problem):
    put(tmp_path, {"a.csv": content})
    with pytest.raises(DataError, match=problem) as told:
        read_given(tmp_path / "a.csv", "table")
    assert "secret" not in str(told.value)


def test_the_command_prints_the_coverage(tmp_path, capsys):
    write_records(tmp_path / "data" / "prompts" / "b.parquet", Request, [ONE], key=lambda row: row.item_id)
    values = {"title": "Theirs", "backend": "imported", "id": "team/their-model", "revision": "1", "temperature": 1.0}
    benchmark = {"title": "B", "kind": "text", "axis": "depth", "source": "s"}
    put(tmp_path, {"config/models/theirs.yaml": yaml.safe_dump(values), "config/benchmarks/b.yaml": yaml.safe_dump(benchmark)})
    put_table(tmp_path / "a.csv", [{"item": "one", "text": "A"}])
    places = ["--config", str(tmp_path / "config"), "--data", str(tmp_path / "data")]
    assert import_responses.main([str(tmp_path / "a.csv"), "--benchmark", "b", "--model", "theirs", *places]) == 0
    assert capsys.readouterr().out == "theirs: 2 answers expected, 1 given, 1 new, 1 missing\n"
    assert (tmp_path / "data" / "ledger" / "b" / "theirs.jsonl").read_text().count("\n") == 1
