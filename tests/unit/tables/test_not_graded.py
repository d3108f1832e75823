"""Answers in a language without names: missing, with their share beside every rate, no rank above the limit, and nothing said that is not known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.report import blocks_of, build
from fixtures.tables import DEPTH, write_study
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.recording.record import _missing
from neuralmedbench.recording.trace import read_answers, recount
from neuralmedbench.records.scores import Grade, GradeState, Score
from neuralmedbench.tables.outcomes import Key

MODELS = ("alpha", "beta")
UNREAD = {
    "passed": None,
    "core_diagnosis": None,
    "main_condition": None,
    "relation": "",
    "right_family": None,
    "reference_rank": None,
    "in_candidates": None,
}


def unread(root: Path, model: str, which: Callable[[Score], bool], *, graded: bool | None = None) -> int:
    """Make answers of a model Russian; with `graded` another grader passed (failed) them. Returns how many of the arm full there are."""
    path = root / "results" / "scores" / DEPTH / f"{model}.parquet"
    rows = read_records(path, Score)
    changed = [replace(row, **(UNREAD | {"passed": graded}), other_language="ru") if which(row) else row for row in rows]
    write_records(path, Score, changed, key=lambda row: (row.item_id, row.arm, row.repeat))
    return sum(which(row) and (row.arm, row.strategy) == ("full", "direct") for row in rows)


def rows_of(root: Path, name: str, model: str = "beta") -> list[dict[str, str]]:
    return [row for row in read_result(root / "results" / "tables", name) if (row["benchmark"], row["model"]) == (DEPTH, model)]


def test_the_share_of_answers_not_graded_stands_beside_the_rates_of_the_leaderboard(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    number = unread(tmp_path, "beta", lambda row: row.case_id == "case00" and row.repeat == 0)
    blocks = blocks_of(build(tmp_path, MODELS, figures=False))
    block = blocks["leaderboard"]
    assert f"{number} came and are not graded" in blocks["glance"]
    assert "The vocabulary has no names in their language: a grader that asks a model can read them" in blocks["glance"]
    (board,) = rows_of(tmp_path, "leaderboard")
    expected = int(board["expected"])
    assert (int(board["not_graded"]), int(board["missing"])) == (number, number)
    assert float(board["not_graded_fraction"]) == pytest.approx(number / expected, abs=1e-6)
    assert f"{number / expected:.0%}".replace("%", " %") in block
    assert re.search(r"\d+ % not graded", block)
    assert "of the answers are in Russian, for which the vocabulary has no names" in board["note"]
    assert "of the answers are in Russian, for which the vocabulary has no names" in block
    whole = [row for row in rows_of(tmp_path, "rates") if (row["arm"], row["slice"], row["measure"]) == ("full", "all", "pass1")]
    assert [row["left_out"] for row in whole] == [board["not_graded"]]
    assert {row["left_out"] for row in rows_of(tmp_path, "rates", "alpha")} == {"0"}
    # above 2 % missing there is no rank, and the bounds say what the answers could change
    assert number / expected > 0.02
    assert (board["rank"], board["tier"]) == ("", "")
    assert float(board["best_case"]) - float(board["worst_case"]) == pytest.approx(number / expected, abs=1e-6)
    assert [board[name] for name in ("pass1", "pass1_low", "pass1_high", "candidates5", "core_diagnosis")] == [""] * 5
    answers = read_answers(DEPTH, Key("beta"), root=tmp_path)
    for name in ("missing", "worst_case", "best_case"):
        assert float(board[name]) == pytest.approx(recount(name, answers), abs=1e-6)


def test_where_every_answer_is_in_another_language_nothing_is_known(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=4)
    unread(tmp_path, "beta", lambda _: True)
    build(tmp_path, MODELS, figures=False)
    (board,) = rows_of(tmp_path, "leaderboard")
    assert (board["pass1"], board["rank"], board["candidates5"], board["not_graded_fraction"]) == ("", "", "", "1.000000")
    assert rows_of(tmp_path, "rates") == []


def test_what_another_grader_judged_has_a_rate_and_its_list_has_none(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=4)
    unread(tmp_path, "beta", lambda row: row.arm == "full", graded=True)
    build(tmp_path, MODELS, figures=False)
    (board,) = rows_of(tmp_path, "leaderboard")
    assert (board["pass1"], board["rank"], board["missing"], board["not_graded"]) == ("1.000000", "1", "0", "0")
    assert board["candidates5"] == ""
    lists = rows_of(tmp_path, "differential")
    assert lists
    assert {row["value"] for row in lists if row["measure"] == "candidates"} == {""}


def test_grades_that_were_not_given_for_their_language_are_not_asked_for_again(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=2)
    path = tmp_path / "results" / "grades" / DEPTH / "beta" / "rubric.parquet"
    rows = [replace(row, value=None, state=GradeState.NOT_GRADED) for row in read_records(path, Grade)]
    write_records(
        path,
        Grade,
        [replace(rows[0], state=GradeState.FAILED), *rows[1:]],
        key=lambda row: (row.item_id, row.arm, row.repeat, row.criterion),
    )
    assert {state: number for (state, _), number in _missing(path).items()} == {"failed": 1}
