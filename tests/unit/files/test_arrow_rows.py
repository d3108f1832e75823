"""Rows of a table, converted column by column, equal those of Arrow itself."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from conftest import ROOT
from neuralmedbench.files.tables import gc_paused, rows_of

KINDS = {
    "text": (pa.string(), ["a", None, "", "a", "ä\n"]),
    "whole": (pa.int64(), [1, None, -(2**60) - 1, 0, 3]),
    "part": (pa.float64(), [0.5, None, float("inf"), 0.0, -0.0]),
    "truth": (pa.bool_(), [True, None, False, True, True]),
    "list": (pa.list_(pa.string()), [["a", None], None, [], ["a"], ["b", "c"]]),
    "numbers": (pa.list_(pa.float64()), [[1.0], None, [], [None, 2.0], [3.0]]),
    "map": (pa.map_(pa.string(), pa.bool_()), [{"a": True}, None, {}, {"a": None, "b": False}, {"c": True}]),
    "record": (
        pa.struct([("name", pa.string()), ("value", pa.float64())]),
        [{"name": "a", "value": 1.0}, None, {"name": None, "value": None}, {"name": "a", "value": 0.0}, {"name": "b", "value": None}],
    ),
    "records": (
        pa.list_(pa.struct([("name", pa.string()), ("parts", pa.list_(pa.int64()))])),
        [[{"name": "a", "parts": [1, None]}], None, [], [{"name": "a", "parts": None}, None], [{"name": "b", "parts": []}]],
    ),
}


def plain(rows: object) -> object:
    """Return numbers with their types: 1, 1.0 and true are equal but not the same."""
    if isinstance(rows, list):
        return [plain(row) for row in rows]
    if isinstance(rows, dict):
        return {name: plain(value) for name, value in rows.items()}
    return type(rows), repr(rows)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("part", [slice(0, 5), slice(1, 2), slice(2, 5), slice(0, 0), slice(3, 4)])
def test_every_kind_of_column_with_gaps_and_in_part_gives_what_arrow_gives(name: str, part: slice) -> None:
    kind, values = KINDS[name]
    array = pa.array(values, kind)
    table = pa.table({name: array, "beside": pa.array(range(5), pa.int64())}).slice(part.start, part.stop - part.start)
    expected = table.to_pylist(maps_as_pydicts="strict")
    assert plain(rows_of(table)) == plain(expected)


def test_a_table_in_several_pieces_or_without_rows_is_read_whole() -> None:
    piece = pa.table({name: pa.array(values, kind) for name, (kind, values) in KINDS.items()})
    table = pa.concat_tables([piece, piece.slice(2, 3), piece.slice(0, 0)])
    assert plain(rows_of(table)) == plain(table.to_pylist(maps_as_pydicts="strict"))
    assert rows_of(piece.slice(0, 0)) == []


def test_equal_texts_of_a_column_are_one_object() -> None:
    rows = rows_of(pa.table({"text": [f"item {number % 2}" for number in range(6)]}))
    assert len({id(row["text"]) for row in rows}) == 2


def test_a_map_with_a_key_twice_is_refused() -> None:
    table = pa.table({"map": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))})
    with pytest.raises(KeyError):
        rows_of(table)


def test_the_collector_runs_again_after_a_block_without_it_also_when_it_fails() -> None:
    def fail() -> None:
        with gc_paused():
            assert not gc.isenabled()
            with gc_paused():
                pass
            assert not gc.isenabled()
            raise RuntimeError

    assert gc.isenabled()
    with pytest.raises(RuntimeError):
        fail()
    assert gc.isenabled()


def test_a_job_that_writes_and_reads_a_table_does_not_import_pandas(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.case import SliceRow
path = Path({str(tmp_path / "t.parquet")!r})
write_records(path, SliceRow, [], key=str)
read_records(path, SliceRow)
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
