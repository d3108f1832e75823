"""Results as typed data frames: types as declared, empty and withheld cells missing, and a dictionary that names every file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.errors import DataError
from neuralmedbench.files.tables import write_records, write_table
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.result_columns import TABLES
from neuralmedbench.tables.frames import record_frame, table_frame

COST = {
    "benchmark": "demo",
    "model": "fusion",
    "pass1": None,
    "n_items": 12,
    "on_frontier": True,
    "cost_usd": "0.000000012",
    "note": "-1 of it",
}


def write(folder: Path, name: str, *rows: dict[str, object]) -> None:
    (folder / "tables").mkdir(exist_ok=True)
    write_table(folder / "tables" / f"{name}.csv", rows, TABLES[name])


def test_cells_have_their_declared_types_and_an_empty_one_is_missing(tmp_path: Path) -> None:
    write(tmp_path, "costs", COST)
    frame = table_frame("costs", tmp_path)
    row = frame.iloc[0]
    assert list(frame.columns) == list(TABLES["costs"])
    assert {name: str(frame.dtypes[name]) for name in COST} == {
        "benchmark": "category",
        "model": "category",
        "pass1": "float64",
        "n_items": "Int64",
        "on_frontier": "boolean",
        "cost_usd": "float64",
        "note": "string",
    }
    assert frame.pass1.isna().all()
    assert (row.n_items, row.on_frontier, row.cost_usd, row.note) == (12, True, 1.2e-8, "-1 of it")


def test_a_withheld_number_is_missing_and_its_row_is_named(tmp_path: Path) -> None:
    write(tmp_path, "costs", COST | {"n_patients": 30}, COST | {"n_patients": "<10"}, COST | {"n_patients": "(hidden)"})
    frame = table_frame("costs", tmp_path)
    assert frame.n_patients.isna().tolist() == [False, True, True]
    assert frame.attrs["suppressed"] == [1, 2]


def test_records_have_their_types_and_lists_stay(tmp_path: Path) -> None:
    key = {"item_id": "i", "case_id": "c", "patient_id": "p", "benchmark": "demo", "arm": "full", "strategy": "direct", "model": "m"}
    rows = [
        Response(**key, revision="1", repeat=0, request_id="r", runner="open", state=ResponseState.OK, turns=("a", "b"), prompt_tokens=7),
        Response(**key, revision="1", repeat=1, request_id="r", runner="open", state=ResponseState.SKIPPED),
    ]
    write_records(tmp_path / "responses" / "demo" / "m.parquet", Response, rows, key=lambda row: row.repeat)
    frame = record_frame("responses", tmp_path)
    assert frame.state.tolist() == ["ok", "skipped"]
    assert (str(frame.dtypes["state"]), str(frame.dtypes["prompt_tokens"]), str(frame.dtypes["latency_s"])) == (
        "category",
        "Int64",
        "float64",
    )
    assert frame.prompt_tokens.isna().tolist() == [False, True]
    assert frame.turns[0] == ("a", "b")


def test_what_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="did you mean 'leaderboard'"):
        table_frame("leaderbord", tmp_path)
    with pytest.raises(DataError, match="run build_tables"):
        table_frame("leaderboard", tmp_path)
    with pytest.raises(DataError, match="no file of this run"):
        record_frame("scores", tmp_path)
    with pytest.raises(DataError, match="there are responses"):
        record_frame("answers", tmp_path)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "costs.csv").write_text("benchmark,price\ndemo,1\n")
    with pytest.raises(DataError, match=r"columns do not fit this version"):
        table_frame("costs", tmp_path)


def test_the_dictionary_names_every_file_that_a_rule_writes_to_results() -> None:
    written = {}
    for path in sorted((ROOT / "rules").glob("*.smk")):
        rules = re.split(r"^rule (\w+):", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for rule, text in zip(rules[1::2], rules[2::2], strict=True):
            output = re.search(r"^    output:\n(.*?)^    \w+:", text, re.MULTILINE | re.DOTALL)
            for name in re.findall(r"<results>/([\w{}./-]+)", output[1] if output else ""):
                written.setdefault(re.sub(r"\{+(\w+)\}+", r"<\1>", name), rule)
    others = dict.fromkeys(("tables/paper/<paper>.md", "tables/paper/<paper>.tex"), "compare_published")
    files = (ROOT / "docs/results.md").read_text(encoding="utf-8").partition("## Files")[2].partition("## Records")[0]
    assert written == {name.rstrip("/"): rule for name, rule in re.findall(r"^\| `(.+?)` \| `(\w+)` \|", files, re.MULTILINE)} | others
