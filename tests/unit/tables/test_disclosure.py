"""A public report of patients who are not public: no number is about few of them, and none can be derived."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.report import build
from fixtures.tables import BREADTH, DEPTH, write_study
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.estimates.suppression import CellSize, Label, mask_of, suppressed_cells
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.items import Item
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import mark_of
from neuralmedbench.records.scores import Score, response_key
from neuralmedbench.report.page import FILTERS
from neuralmedbench.report.source import check_profile, with_marks
from neuralmedbench.tables.release import Release, public_tables, weighs_patients
from neuralmedbench.tables.study import read_study
from neuralmedbench.tables.write import TABLES

FEWEST = 4
CASE = re.compile(r"case\d\d|patient\d\d")


@st.composite
def benchmarks(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, ...]]]:
    """Draw the patient of every item, and its group under each of some groupings (empty: in no group)."""
    items = draw(st.integers(1, 24))
    patients = draw(st.lists(st.sampled_from("abcdefghijklmno"), min_size=items, max_size=items))
    groupings = draw(st.integers(1, 4))
    names = st.tuples(*(st.sampled_from(["u", "v", "w", "x", ""]) for _ in range(groupings)))
    return patients, draw(st.lists(names, min_size=items, max_size=items))


def cells_of(groups: list[tuple[str, ...]]) -> dict[Label, int]:
    """Return the items of every group of every grouping."""
    cells: dict[Label, int] = {}
    for place, own in enumerate(groups):
        for number, value in enumerate(own):
            if value:
                cells[str(number), value] = cells.get((str(number), value), 0) | 1 << place
    return cells


def people(mask: int, patients: list[str]) -> int:
    """Count the patients behind some items."""
    return len({patient for place, patient in enumerate(patients) if mask >> place & 1})


def is_combination(target: int, shown: list[int], size: int) -> bool:
    """Return True if a set is a linear combination of others, in exact fractions: the rank does not rise with it."""
    return rank([*shown, target], size) == rank(shown, size)


def rank(masks: list[int], size: int) -> int:
    rows = [[Fraction(mask >> place & 1) for place in range(size)] for mask in masks]
    found = 0
    for column in range(size):
        pivot = next((row for row in range(found, len(rows)) if rows[row][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for row in range(found + 1, len(rows)):
            factor = rows[row][column] / rows[found][column]
            rows[row] = [one - factor * other for one, other in zip(rows[row], rows[found], strict=True)]
        found += 1
    return found


@settings(max_examples=150)
@given(benchmarks())
def test_no_hidden_number_can_be_worked_out_from_those_that_are_shown(drawn: tuple[list[str], list[tuple[str, ...]]]) -> None:
    patients, groups = drawn
    cells, total = cells_of(groups), mask_of(range(len(patients)))
    small, companions = suppressed_cells(cells, total, CellSize(patients, FEWEST))
    assert small == {label for label, mask in cells.items() if people(mask, patients) < FEWEST}
    shown = {label: mask for label, mask in cells.items() if label not in small | companions}
    for label in small:
        assert not is_combination(cells[label], [*shown.values(), total], len(patients)) or cells[label] == total, label
    for whole in [total, *shown.values()]:  # subtraction within every grouping, of any of its groups
        for grouping in {label[0] for label in shown}:
            within = [mask for label, mask in shown.items() if label[0] == grouping and not mask & ~whole]
            for number in range(1, len(within) + 1):
                for taken in itertools.combinations(within, number):
                    rest = whole
                    for mask in taken:
                        rest &= ~mask
                    assert not rest or people(rest, patients) >= FEWEST


def test_the_next_smallest_group_goes_with_a_small_one_and_no_more() -> None:
    patients = [f"p{number}" for number in range(30)]
    parts = {"a": range(3), "b": range(3, 13), "c": range(13, 30)}
    small, companions = suppressed_cells(
        {("level", name): mask_of(part) for name, part in parts.items()}, mask_of(range(30)), CellSize(patients, 10)
    )
    assert (small, companions) == ({("level", "a")}, {("level", "b")})


def test_several_small_groups_that_are_many_together_need_no_other() -> None:
    patients = [f"p{number}" for number in range(30)]
    parts = {"a": range(5), "b": range(5, 10), "c": range(10, 30)}
    small, companions = suppressed_cells(
        {("level", name): mask_of(part) for name, part in parts.items()}, mask_of(range(30)), CellSize(patients, 10)
    )
    assert (small, companions) == ({("level", "a"), ("level", "b")}, set())


def test_a_group_within_another_one_goes_when_what_lies_between_is_small() -> None:
    patients = [f"p{number}" for number in range(40)]
    cells = {("family", "dialogue"): mask_of(range(20)), ("disease", "stroke"): mask_of(range(18))}
    small, companions = suppressed_cells(cells, mask_of(range(40)), CellSize(patients, 10))
    assert (small, companions) == (set(), {("disease", "stroke")})


def test_a_small_group_that_is_a_sum_and_difference_of_shown_ones_takes_one_with_it() -> None:
    patients = [f"p{number}" for number in range(90)]
    left, right = mask_of(range(33)), mask_of(range(30, 60))
    cells = {
        ("a", "left"): left,
        ("b", "right"): right,
        ("c", "either"): left | right,
        ("d", "both"): left & right,
        ("d", "rest"): mask_of(range(60, 90)),
    }
    small, companions = suppressed_cells(cells, mask_of(range(90)), CellSize(patients, 10))
    assert (small, companions) == ({("d", "both")}, {("b", "right")})


OF_NO_PATIENT = {"destinations"}
"""The table about calls: the data that left the machine are always shown."""

RULES = {table.name: table.suppression for table in TABLES if table.suppression is not None}


def test_every_table_says_what_of_it_may_be_shown() -> None:
    assert {table.name for table in TABLES} - RULES.keys() == OF_NO_PATIENT
    for table in TABLES:
        if rule := table.suppression:
            named = {*rule.keys.split(), rule.mark, rule.patients, rule.says, *rule.always.split()} - {""}
            assert named <= table.columns.keys() | ({"n_patients"} if rule.each else set()), table.name


def rows_of(folder: Path, table: str) -> list[dict[str, str]]:
    return read_result(folder, table)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up run of 22 patients who are not public, with its public page."""
    root = tmp_path_factory.mktemp("public")
    write_study(root, models=("alpha",), patients=22, kind="patient")
    build(root, ("alpha",), "public")
    return root


def test_no_table_of_a_public_run_is_about_few_patients_or_one_case(public: Path) -> None:
    tables = public / "results" / "tables"
    hidden = 0
    for table in (one.name for one in TABLES):
        for row in rows_of(tables, table):
            assert not CASE.search(" ".join(row.values())), table
            patients = row.get("n_patients") or "0"
            assert not patients.isdigit() or int(patients) == 0 or int(patients) >= 10, (table, row)
            if mark := mark_of(row):
                hidden += 1
                kept = {*RULES[table].keys.split(), RULES[table].mark, RULES[table].says}
                assert not {name for name, cell in row.items() if cell} - kept, (table, mark)
    assert hidden > 100
    assert rows_of(tables, "cases") == []


def test_the_groups_that_are_shown_leave_no_few_patients_over(public: Path) -> None:
    rows = [
        row
        for row in rows_of(public / "results" / "tables", "rates")
        if (row["model"], row["arm"], row["measure"]) == ("alpha", "full", "pass1")
    ]
    checked = 0
    for benchmark in (DEPTH, BREADTH):
        own = [row for row in rows if row["benchmark"] == benchmark]
        (total,) = (int(row["n_items"]) for row in own if row["slice"] == "all")
        for part in {row["slice"] for row in own} - {"all"}:
            groups = [row for row in own if row["slice"] == part]
            if any(mark_of(row) for row in groups):
                left = total - sum(int(row["n_items"]) for row in groups if not mark_of(row))
                checked += 1
                assert left >= 2 * 10, part  # every patient of the made-up run has two items of a benchmark
    assert checked


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up run in which one of 20 patients, who are not public, has three times as many items as the others."""
    root = tmp_path_factory.mktemp("uneven")
    write_study(root, models=("alpha", "beta"), patients=22, kind="patient")

    def joined(row: Any) -> Any:
        return replace(row, patient_id="patient00") if row.case_id in {"case01", "case02"} else row

    for benchmark in (DEPTH, BREADTH):
        path = root / f"data/items/{benchmark}.parquet"
        write_records(path, Item, [joined(row) for row in read_records(path, Item)], key=lambda row: row.item_id)
        for model in ("alpha", "beta"):
            for record, folder in ((Score, "scores"), (Response, "responses")):
                path = root / f"results/{folder}/{benchmark}/{model}.parquet"
                write_records(path, record, [joined(row) for row in read_records(path, record)], key=response_key)
    build(root, ("alpha", "beta"), "public")
    return root


def test_where_two_weights_would_tell_of_one_patient_no_number_weighs_patients(uneven: Path) -> None:
    tables = uneven / "results" / "tables"
    board = [row for row in rows_of(tables, "leaderboard") if row["benchmark"] == DEPTH and row["model"] != "prior"]
    assert all(row["pass1"] and not row["pass1_patients"] and not row["pass1_patients_low"] for row in board)
    told = [
        (table.name, row)
        for table in TABLES
        for row in rows_of(tables, table.name)
        if row.get("benchmark") == DEPTH and weighs_patients(table.name, row) and not mark_of(row)
    ]
    assert told == []
    assert "pass1_patients" not in json.loads((uneven / "results" / "metrics.json").read_text(encoding="utf-8"))[DEPTH]["alpha"]


def test_where_patients_have_equal_numbers_of_items_both_weights_are_shown(public: Path) -> None:
    (row,) = [row for row in rows_of(public / "results/tables", "leaderboard") if (row["benchmark"], row["model"]) == (DEPTH, "alpha")]
    assert row["pass1"] == row["pass1_patients"] != ""


def test_the_page_says_how_much_is_hidden_and_why(public: Path) -> None:
    page = (public / "results" / "report.html").read_text(encoding="utf-8")
    disclosure = json.loads((public / "results" / "tables" / "notes.json").read_text(encoding="utf-8"))["disclosure"]
    assert disclosure["cells"] > 1000
    assert f"{disclosure['cells']:,} cells" in page
    assert "fewer than 10 of these patients" in page
    assert ">&lt;10<" in page
    assert not CASE.search(page)
    for figure in (public / "results" / "figures").glob("*.svg"):
        assert not CASE.search(figure.read_text(encoding="utf-8")), figure.name


def test_a_run_of_few_patients_shows_no_number_at_all(tmp_path: Path) -> None:
    write_study(tmp_path, models=("beta", "alpha"), patients=7, kind="patient")
    page = build(tmp_path, ("beta", "alpha"), "public", figures=False)
    results = tmp_path / "results"
    board = rows_of(results / "tables", "leaderboard")
    assert {row["n_patients"] for row in board} == {"<10"}
    assert {row["pass1"] + row["rank"] + row["n_items"] for row in board} == {""}
    assert [row["model"] for row in board if row["benchmark"] == DEPTH] == ["alpha", "beta", "prior"]  # not in the order of their scores
    assert json.loads((results / "metrics.json").read_text(encoding="utf-8")) == {}
    assert "Fewer than 10 patients, so a public report shows no number about it." in page
    assert "No model has been scored yet" not in page


@pytest.mark.parametrize(("kind", "profile"), [("phantom", "public"), ("public", "public"), ("patient", "internal")])
def test_nothing_else_is_hidden(tmp_path: Path, kind: str, profile: str) -> None:
    write_study(tmp_path, models=(), patients=2, kind=kind)
    study = read_study(
        tmp_path, [DEPTH, BREADTH], (), (), vocabulary=Path("config/vocabulary.yaml"), settings=IntervalSettings(resamples=100)
    )
    tables: dict[str, list[dict[str, object]]] = {table.name: [] for table in TABLES}
    shown = public_tables(study, tables, {table.name: RULES.get(table.name) for table in TABLES}, Release(profile))
    assert shown.tables is tables
    assert shown.visible is tables
    assert (shown.study, shown.notes(), shown.blocks({"cases": {}})) == (study, {}, {"cases": {}})


def test_a_public_page_is_not_made_of_tables_that_hide_nothing() -> None:
    check_profile("public", [], None)
    check_profile("internal", ["Own"], None)
    with pytest.raises(ConfigError, match="Own: the tables were made for an internal report"):
        check_profile("public", ["Own"], None)


def test_an_empty_cell_of_a_hidden_row_says_why() -> None:
    (row,) = with_marks([{"value": "", "n_patients": "<10", "n": ""}])
    assert row["value"] == ""
    assert {FILTERS[name](row["value"]) for name in ("percent", "points", "decimal", "whole", "p_value")} == {"<10"}
    assert FILTERS["whole"](row["n_patients"]) == "<10"
    (plain,) = with_marks([{"value": "", "n_patients": "12"}])
    assert FILTERS["percent"](plain["value"]) == "–"
