"""The collector of the numbers of a run: it loses none, and sees each that changes."""

from __future__ import annotations

import csv
from pathlib import Path

from fixtures.reference import differences, read_rows, rows_of, write_rows
from neuralmedbench.records.result_columns import TABLES

PAIR = {
    "benchmark": "deep",
    "model": "x",
    "other": "y",
    "difference": "0.125",
    "low": "-0.1",
    "high": "0.35",
    "p_value": "0.04",
    "p_corrected": "0.08",
    "detectable": "0.3",
    "n_patients": "12",
}
BINS = [
    {"benchmark": "deep", "model": "x", "bin": number, "mean_confidence": 0.2 * number, "share_right": 0.5, "n_patients": "<10"}
    for number in (1, 2)
]


def tables(folder: Path, **changes: str) -> Path:
    folder.mkdir()
    for name, rows in (("contrasts", [PAIR | changes]), ("reliability", BINS)):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(TABLES[name]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


def test_every_number_is_a_row_with_its_interval_and_nothing_is_lost_when_it_is_stored(tmp_path: Path) -> None:
    rows = rows_of(tables(tmp_path / "a"))
    (difference,) = [row for row in rows if row.measure == "difference"]
    assert (difference.model, difference.other) == ("x", "y")
    assert difference[8:] == ("0.125000", "-0.100000", "0.350000", "0.040000", "12")
    assert {row.measure for row in rows if row.kind == "contrasts"} == {"difference", "p_corrected", "detectable", "n_patients"}
    assert len({row.place for row in rows}) == len(rows), "a bin is part of what its numbers are about"
    write_rows(rows, tmp_path / "rows.csv.xz")
    assert read_rows(tmp_path / "rows.csv.xz") == rows


def test_a_change_in_the_sixth_decimal_and_a_number_that_goes_or_comes_are_seen(tmp_path: Path) -> None:
    before = rows_of(tables(tmp_path / "a"))
    assert differences(before, rows_of(tables(tmp_path / "b", difference="0.1250004"))) == []
    (line,) = differences(before, rows_of(tables(tmp_path / "c", difference="0.125001")))
    assert line.startswith("differs: contrasts | deep | x | y | difference: ")
    lines = differences(before, rows_of(tables(tmp_path / "d", detectable="", unread="0.3")))
    assert [line.partition(":")[0] for line in lines] == ["gone", "new"]
