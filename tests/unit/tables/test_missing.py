"""Missing answers and grades are never wrong: above the allowed share a rate lies between its worst and its best case, in tables, figures and page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fixtures.report import blocks_of, build, parts_of
from fixtures.tables import BREADTH, DEPTH, item, score, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.estimates.repeats import pass_at_k
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, read_table, write_records
from neuralmedbench.recording.record import not_graded_lines
from neuralmedbench.records.items import Family, Gold, Item, Level, Runner
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.results import LEFT_OPEN, RANKED_DIFFERENTIAL, with_board_names
from neuralmedbench.records.scores import ParseStatus, Score, response_key
from neuralmedbench.scoring.explain_reading import describe_reading
from neuralmedbench.tables import cohort
from neuralmedbench.tables.cohort import CaseAnswers
from neuralmedbench.tables.declare import Cells
from neuralmedbench.tables.missing import bounds_of, is_left_open
from neuralmedbench.tables.outcomes import Key, Outcomes, gather_outcomes
from neuralmedbench.tables.study import Study, read_study
from neuralmedbench.tables.write import write_tables

MODELS = ("alpha", "beta")
LIMIT = 0.02


def change(root: Path, which: Callable[[Score], bool], benchmark: str = DEPTH, model: str = "beta", **changes: object) -> int:
    """Change scores of a model; returns how many of the full request."""
    path = root / "results" / "scores" / benchmark / f"{model}.parquet"
    rows = read_records(path, Score)
    write_records(path, Score, [replace(row, **changes) if which(row) else row for row in rows], key=response_key)
    return sum(which(row) and (row.arm, row.strategy) == ("full", "direct") for row in rows)


def lose(root: Path, which: Callable[[Score], bool], benchmark: str = DEPTH, model: str = "beta") -> int:
    """Let answers of a model fail, as of a run that met its cap."""
    number = change(root, which, benchmark, model, missing=True, passed=None, core_diagnosis=None, main_condition=None, state="over_budget")
    path = root / "results" / "responses" / benchmark / f"{model}.parquet"
    gone = {
        (row.item_id, row.arm, row.repeat)
        for row in read_records(root / "results" / "scores" / benchmark / f"{model}.parquet", Score)
        if row.missing
    }
    rows = [
        replace(row, state=ResponseState.OVER_BUDGET, text="") if (row.item_id, row.arm, row.repeat) in gone else row
        for row in read_records(path, Response)
    ]
    write_records(path, Response, rows, key=response_key)
    return number


def rows_of(root: Path, table: str, benchmark: str = DEPTH, model: str = "beta", **cells: str) -> list[dict[str, str]]:
    rows = read_result(root / "results" / "tables", table)
    wanted = {"benchmark": benchmark, "model": model} | cells
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def between(row: dict[str, str]) -> str:
    return f"{100 * float(row['worst_case']):.0f} to {100 * float(row['best_case']):.0f} %"


def outcomes_of(rows: list[Score], items: tuple[Item, ...], answer: str = "glioma") -> Outcomes:
    gold = [Gold(item_id=one.item_id, answer=answer) for one in items]
    return gather_outcomes("b", "depth", items, gold, scores={"m": rows}, sampled={"m": True})


ONE = item("b", "c1", "p1", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN)
OTHER = item("b", "c2", "p2", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN)
LOST = {"passed": None, "missing": True, "state": "failed"}


def test_the_bounds_of_a_rate_are_those_of_every_way_in_which_missing_answers_could_have_ended() -> None:
    rows = [score(ONE, "m", passed=repeat < 2, repeat=repeat, in_candidates=False) for repeat in range(5)]
    rows += [score(OTHER, "m", passed=True, repeat=repeat, in_candidates=True) for repeat in range(3)]
    rows += [score(OTHER, "m", passed=None, repeat=repeat, missing=True, state="failed") for repeat in (3, 4)]
    found, key, every = outcomes_of(rows, (ONE, OTHER)), Key("m"), np.array([True, True])
    # by hand, over both ends: 2 of 5 and 3 or 5 of 5
    hands = {
        "pass1": ((0.4 + 0.6) / 2, (0.4 + 1) / 2),
        "all_right": (0.0, 0.5),
        "candidates5": ((0 + 0.6) / 2, (0 + 1) / 2),
        "pass5": tuple(float(pass_at_k(np.array([5, 5]), np.array([2, most]), 5).mean()) for most in (3, 5)),
    }
    for name, wanted in hands.items():
        assert bounds_of(found, key, name, found.metric(name, key)) == pytest.approx(wanted), name
        assert is_left_open(found, key, name, every, LIMIT)
        assert not is_left_open(found, key, name, np.array([True, False]), LIMIT), "the other item has all of its answers"
    assert not is_left_open(found, key, "pass1", every, 0.2), "two of ten are no more than a fifth"
    # a missing answer may have named a disease that is not there
    control = outcomes_of([score(ONE, "m", passed=True), score(OTHER, "m", **LOST)], (ONE, OTHER), "normal")
    assert bounds_of(control, key, "false_alarm", control.metric("false_alarm", key)) == (0.5, 0.0)


def test_grades_of_cut_answers_alone_are_no_rate() -> None:
    rows = [score(ONE, "m", passed=False, state="truncated", core_diagnosis=0.0), score(OTHER, "m", passed=None)]
    found = outcomes_of(rows, (ONE, OTHER))
    assert found.counts[Key("m")].not_graded.tolist() == [0, 1]
    assert is_left_open(found, Key("m"), "core_diagnosis", np.array([True, True]), LIMIT)


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A run in which 60 of the 100 answers of beta to the depth set never came; the tables, and the blocks and parts of its page."""
    root = tmp_path_factory.mktemp("capped")
    write_study(root, models=MODELS, patients=10)
    assert lose(root, lambda row: row.case_id not in ("case00", "case01", "case06", "case07")) == 60
    page = build(root, MODELS, figures=("leaderboard", "heatmap"))
    return root, blocks_of(page) | parts_of(page)


def test_above_the_limit_no_table_has_a_rate_but_its_bounds(capped: tuple[Path, dict[str, str]]) -> None:
    root, _ = capped
    (board,) = rows_of(root, "leaderboard")
    passes = sum(
        bool(row.passed)
        for row in read_records(root / f"results/scores/{DEPTH}/beta.parquet", Score)
        if row.arm == "full" and not row.missing
    )
    assert (float(board["worst_case"]), float(board["best_case"])) == pytest.approx((passes / 100, (passes + 60) / 100), abs=1e-6)
    ends = [f"{name}{end}" for name in ("pass1", "pass1_strict", "pass5", "candidates5") for end in ("", "_low", "_high")]
    assert {
        name: board[name] for name in (*ends, "all_right", "main_condition", "core_diagnosis", "rank", "tier", "brier")
    } == dict.fromkeys((*ends, "all_right", "main_condition", "core_diagnosis", "rank", "tier", "brier"), "")
    assert "so only its worst and best case are known" in board["note"]
    rates = [row for part in ("family", RANKED_DIFFERENTIAL) for row in rows_of(root, "rates", slice=part)]
    assert {row["measure"] for row in rates} >= {"pass1", "pass5", "candidates5", "all_right"}
    assert {(row["value"], row["method"]) for row in rates} == {("", LEFT_OPEN)}
    assert all(float(row["low"]) < float(row["high"]) for row in rates)
    (whole,) = rows_of(root, "rates", arm="full", slice="all", measure="pass1")
    assert [whole[name] for name in ("value", "low", "high", "method")] == ["", board["worst_case"], board["best_case"], LEFT_OPEN]
    assert (rows_of(root, "calibrated", measure="raw")[0]["value"], rows_of(root, "costs", arm="full")[0]["pass1"]) == ("", "")
    metrics = json.loads((root / "results" / "metrics.json").read_text(encoding="utf-8"))[DEPTH]["beta"]
    assert metrics == {
        "missing_fraction": pytest.approx(0.6, abs=1e-6),
        "worst_case": float(board["worst_case"]),
        "best_case": float(board["best_case"]),
    }


def test_a_group_with_all_of_its_answers_keeps_its_rate(capped: tuple[Path, dict[str, str]]) -> None:
    root, _ = capped
    rows = rows_of(root, "rates", arm="full", strategy="direct", measure="pass1")
    whole = {(row["slice"], row["value_of_slice"]): row for row in rows if row["left_out"] == "0"}
    assert {value for part, value in whole if part == "diagnosis"} == {"glioblastoma", "meningioma"}, (
        "the answers to all cases of two diagnoses came"
    )
    assert all(row["value"] and row["method"] != LEFT_OPEN for row in whole.values())
    assert {(row["value"], row["method"]) for row in rows if row["left_out"] != "0"} == {("", LEFT_OPEN)}
    alpha = rows_of(root, "rates", model="alpha", arm="full", strategy="direct", measure="pass1")
    assert all(row["value"] and row["method"] != LEFT_OPEN for row in alpha)


def test_the_page_shows_the_two_cases_in_the_place_of_a_rate(capped: tuple[Path, dict[str, str]]) -> None:
    root, blocks = capped
    (board,) = rows_of(root, "leaderboard")
    worst = f"<b>{100 * float(board['worst_case']):.0f} %</b>"
    for name in ("matrix", "leaderboard"):
        line = next(row for row in re.findall(r"<tr.*?</tr>", blocks[name], flags=re.DOTALL) if "Beta VLM" in row)
        assert f'<span class="between">{between(board)}</span><small>worst to best case</small>' in line, name
        assert worst not in line, name
    (diagnosis,) = rows_of(root, "rates", slice="family", value_of_slice="differential_diagnosis", measure="pass1")
    glance = next(row for row in re.findall(r"<tr.*?</tr>", blocks["glance"], flags=re.DOTALL) if "Beta VLM" in row)
    assert f'<span class="between">{between(with_board_names(diagnosis))}</span>' in glance
    assert '<small class="warned">depth: 60 % missing</small>' in glance
    assert '<span class="between">' in blocks["groups"]
    assert "stroke-dasharray" in blocks["leaderboard"]
    figures = {name: (root / "results" / "figures" / f"{name}.svg").read_text(encoding="utf-8") for name in ("leaderboard", "heatmap")}
    assert "from the worst to the best case" in figures["leaderboard"]
    assert "from the worst to the best case" in figures["heatmap"]
    assert between(board).replace(" to ", "–").removesuffix(" %") in figures["heatmap"]


def test_no_sentence_states_the_worst_case(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    for model in MODELS:
        lose(tmp_path, lambda row: row.repeat > 2, model=model)
    page = build(tmp_path, MODELS, figures=False)
    blocks, matrix = blocks_of(page), parts_of(page)["matrix"]
    beta, alpha = (rows_of(tmp_path, "leaderboard", model=model)[0] for model in ("beta", "alpha"))
    said = "No model has a rank: more than 2 % of the answers of every model are missing or not graded"
    assert (
        f"{said}; Alpha VLM passes {between(alpha)} and Beta VLM passes {between(beta)}, depending on what is missing." in blocks["glance"]
    )
    assert "2 of 4 rates are unknown, because too many answers are missing or not graded" in matrix


def test_below_the_limit_nothing_changes(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    assert lose(tmp_path, lambda row: (row.case_id, row.family, row.repeat) == ("case00", "differential_diagnosis", 0)) == 1
    settings = IntervalSettings(resamples=100, max_missing_fraction=1 / 60)
    study = study_of(tmp_path, ("rubric",), settings)
    tables = written(tmp_path, study)
    board = next(row for row in tables["leaderboard"] if (row["benchmark"], row["model"]) == (DEPTH, "beta"))
    assert board["pass1"] == board["worst_case"] != ""
    assert float(board["best_case"]) == pytest.approx(float(board["worst_case"]) + 1 / 60, abs=1e-6)
    assert board["rank"]
    # the share is that of the answers to the items of a rate
    group = next(
        row
        for row in tables["measures"]
        if (row["topic"], row["model"], row["slice"], row["value_of_slice"], row["measure"])
        == ("rates", "beta", "diagnosis", "glioblastoma", "pass1")
    )
    assert (group["value"], group["left_out"], group["n_answers"]) == ("", "1", "10")


def study_of(root: Path, graders: tuple[str, ...], settings: IntervalSettings) -> Study:
    return read_study(root, [DEPTH, BREADTH], MODELS, graders, vocabulary=Path("config/vocabulary.yaml"), settings=settings)


def written(root: Path, study: Study) -> dict[str, list[dict[str, str]]]:
    write_tables(study, root / "results" / "tables", root / "results" / "metrics.json")
    return {path.stem: read_table(path) for path in (root / "results" / "tables").glob("*.csv")}


def test_answers_that_no_grader_of_the_run_may_judge_are_named_with_the_reason_and_the_next_step(tmp_path: Path) -> None:
    """The second grader of the fixture passes every planted rival, so it is not used; without the first one nobody decides."""
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    changes: Cells = {"passed": None, "core_diagnosis": None, "main_condition": None}
    change(tmp_path, lambda row: row.repeat < 4, **changes)
    number = change(tmp_path, lambda row: row.repeat < 4 and row.case_id < "case03", parse_status=ParseStatus.FAILED)
    wrong = change(tmp_path, lambda row: row.repeat == 4 and row.case_id < "case02", parse_status=ParseStatus.FAILED, passed=False)
    tables = written(tmp_path, study_of(tmp_path, ("llm",), IntervalSettings(resamples=100)))
    board = next(row for row in tables["leaderboard"] if (row["benchmark"], row["model"]) == (DEPTH, "beta"))
    assert (board["expected"], board["missing"], board["not_graded"], board["not_graded_fraction"]) == ("60", "48", "48", "0.800000")
    assert (board["unparsable"], board["unread_missing"]) == (str(number + wrong), str(number))
    assert "not graded: no grader of the run is used for core diagnosis, because they missed planted errors" in board["note"]
    folder = tmp_path / "results" / "tables"
    sentences = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["sentences"]
    (why,) = (one for one in sentences if "are not graded" in one)
    assert why.startswith(
        "Depth, made up: 48 answers (48 of 60 of Beta VLM) are not graded, so neither right nor wrong. Second grader is not used"
    )
    assert "and no other grader of the run decides: add a grader that asks a model (docs/graders.md)" in why
    # unread ones without a grade are missing, and only the others are wrong
    (form,) = (one for one in sentences if "could not be read" in one)
    assert form.endswith(f"{wrong} of the unread ones count as wrong, {number} have no grade and are missing.")
    (line,) = not_graded_lines("results", [DEPTH, BREADTH], tmp_path)
    assert line == f"not graded, {DEPTH}: {why.removeprefix('Depth, made up: ')}"
    assert not_graded_lines("results", [BREADTH], tmp_path) == []
    assert not_graded_lines("elsewhere", [DEPTH], tmp_path) == []


def test_a_grade_that_was_not_given_is_no_grader_that_is_not_used(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    change(tmp_path, lambda row: row.repeat < 2, passed=None, core_diagnosis=None, main_condition=None)
    tables = written(tmp_path, study_of(tmp_path, ("rubric",), IntervalSettings(resamples=100)))
    board = next(row for row in tables["leaderboard"] if (row["benchmark"], row["model"]) == (DEPTH, "beta"))
    assert "not graded: a grader gave no verdict" in board["note"]
    notes = json.loads((tmp_path / "results" / "tables" / "notes.json").read_text(encoding="utf-8"))
    assert "nmb run retry" in notes["not_graded"][DEPTH]


def test_an_unread_answer_that_nobody_graded_is_not_called_wrong() -> None:
    free = replace(ONE, family=Family.QUESTION_ANSWERING, question="Which plane?")
    words = "It is hard to say what this picture shows, " * 20
    assert describe_reading(words, free).endswith("it counts as wrong")
    assert describe_reading(words, free, score(free, "m", passed=False)).endswith("it counts as wrong")
    ungraded = describe_reading(words, free, score(free, "m", passed=None))
    assert ungraded.endswith("it has no grade, so it is missing, neither right nor wrong")
    assert describe_reading("ANSWER: axial", free, score(free, "m", passed=None)).endswith(
        "axial; it has no grade, so it is missing, neither right nor wrong"
    )
    assert describe_reading("ANSWER: axial", free, score(free, "m", passed=True)).endswith("axial")


def test_cases_whose_answers_could_not_be_read_are_not_counted_as_never_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [CaseAnswers(0, 4, 0, unread=3), CaseAnswers(0, 4, 0), CaseAnswers(4, 4, 0)]
    monkeypatch.setattr(cohort, "answers_by_case", lambda *_: found)
    monkeypatch.setattr(cohort, "whole_size", lambda *_: "12 answers")
    study: Any = SimpleNamespace(benchmarks={"b": None})
    assert cohort.cases_takeaway(study, {"leaderboard": []}).takeaway == (
        "Of 3 cases 1 is passed by no model, of 1 more none passes, but some answers could not be read, and 1 by every model every time."
    )


def test_cases_of_which_an_answer_is_missing_are_not_counted_as_never_passed(tmp_path: Path) -> None:
    write_study(tmp_path, models=(*MODELS, "gamma"), patients=4, arms=("full",))
    for model in MODELS:
        change(tmp_path, lambda row: row.case_id == "case00", model=model, passed=False)
        change(tmp_path, lambda row: row.case_id == "case01", model=model, passed=True)
        for benchmark in (DEPTH, BREADTH):
            change(tmp_path, lambda row: row.case_id == "case03", benchmark, model, passed=None)
    # what this model would have answered nobody knows: it says nothing of any case
    for benchmark in (DEPTH, BREADTH):
        lose(tmp_path, lambda row: True, benchmark, "gamma")
    change(tmp_path, lambda row: row.case_id == "case03" and row.repeat == 0, model="alpha", passed=False)
    study = read_study(
        tmp_path,
        [DEPTH],
        (*MODELS, "gamma"),
        ("rubric",),
        vocabulary=Path("config/vocabulary.yaml"),
        settings=IntervalSettings(resamples=50),
    )
    written(tmp_path, study)
    notes = json.loads((tmp_path / "results" / "tables" / "notes.json").read_text(encoding="utf-8"))["blocks"]["cases"]
    assert notes["takeaway"] == (
        "Of 3 cases 1 is passed by no model, and 1 by every model every time; of 1 more case it is not known whether a model passes, "
        "because answers are missing or not graded."
    )
    assert notes["n"].startswith("3 cases with a grade of every answer")
