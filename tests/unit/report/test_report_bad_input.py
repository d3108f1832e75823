"""Runs with missing or invalid values: tables, figures and page report them, and the rest is complete."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

import build_report
import build_tables
import record_provenance
from fixtures.commands import settings
from fixtures.report import MARGIN, blocks_of
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.figures.gallery import FIGURES
from neuralmedbench.figures.style import styled
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.bundle import CaseBundle
from neuralmedbench.records.items import Gold, Item, Runner
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.records.scores import Grade, GradeState, ParseStatus, Score, SimilarityRow
from neuralmedbench.report.blocks import BLOCKS

MODELS = ("alpha", "beta")
BOTH = (DEPTH, BREADTH)
RECORDS = {"scores": Score, "responses": Response, "grades": Grade}
NO_NUMBER = re.compile(r"\b(nan|-?inf|None)\b")
DRAWING = '<svg viewBox="0 0 10 10" xmlns="http://www.w3.org/2000/svg"><title>A</title></svg>'
Change = Callable[[Any], Any]


def order(row: Any) -> tuple[object, ...]:
    return row.item_id, row.arm, row.repeat, getattr(row, "criterion", "")


def change(root: Path, kind: str, how: Change, models: tuple[str, ...] = MODELS, benchmarks: tuple[str, ...] = BOTH) -> None:
    """Change the rows of some models; rows that become None are removed."""
    for benchmark in benchmarks:
        for model in models:
            folder = root / "results" / kind / benchmark
            for path in [folder / f"{model}.parquet"] if kind != "grades" else sorted((folder / model).glob("*.parquet")):
                rows = [row for row in map(how, read_records(path, RECORDS[kind])) if row is not None]
                write_records(path, RECORDS[kind], rows, key=order)


def gone(row: Any) -> None:
    return None


def empty(root: Path, models: tuple[str, ...] = MODELS) -> None:
    """Remove the answers, scores and grades of some models."""
    for kind in RECORDS:
        change(root, kind, gone, models)


def refused(root: Path) -> None:
    change(root, "responses", lambda row: replace(row, state=ResponseState.REFUSED, text=""))

    def score(row: Score) -> Score:
        grade = 0.0 if row.runner == Runner.OPEN else None
        nothing = {"differential": (), "relation": "", "confidence": None, "fields": None, "in_candidates": False}
        wrong = dict.fromkeys(row.fields_right, False) if row.fields_right else None
        state = {"state": "refused", "parse_status": ParseStatus.FAILED, "passed": False}
        return replace(row, core_diagnosis=grade, main_condition=grade, fields_right=wrong, **state, **nothing)

    change(root, "scores", score)
    for benchmark in BOTH:
        write_records(root / "results" / "similarity" / f"{benchmark}.parquet", SimilarityRow, [], key=order)


def odd_models(root: Path) -> None:
    """One model without answers; for the other, non-finite confidences, similarities and grades."""
    empty(root, ("beta",))
    change(root, "scores", lambda row: replace(row, confidence=math.inf if row.repeat % 2 else math.nan))
    change(root, "grades", lambda row: replace(row, value=math.nan))
    path = root / "results" / "similarity" / f"{DEPTH}.parquet"
    rows = [replace(row, cosine=math.nan, bertscore_f1=math.inf) for row in read_records(path, SimilarityRow)]
    write_records(path, SimilarityRow, rows, key=order)


def tied(root: Path) -> None:
    def score(row: Score) -> Score:
        grade = 1.0 if row.runner == Runner.OPEN else None
        return replace(row, passed=True, confidence=0.9, core_diagnosis=grade, main_condition=grade, in_candidates=True)

    change(root, "scores", score)


def ungraded(row: Score) -> Score:
    return replace(row, passed=None, core_diagnosis=None, main_condition=None) if row.runner == Runner.OPEN else row


def no_grader(root: Path) -> None:
    """A grader that failed on every answer, and one without rows."""
    change(root, "grades", lambda row: replace(row, value=None, state=GradeState.FAILED) if row.grader == "llm" else None)
    change(root, "scores", ungraded)


def no_gold(root: Path) -> None:
    write_records(root / "data" / "gold" / f"{DEPTH}.parquet", Gold, [], key=lambda row: row.item_id)
    change(root, "scores", lambda row: replace(ungraded(row), scored=False, relation="", in_candidates=None), benchmarks=(DEPTH,))
    change(root, "grades", gone)


def one_item(root: Path) -> None:
    kept = set()
    for benchmark in BOTH:
        path = root / "data" / "items" / f"{benchmark}.parquet"
        items = read_records(path, Item)[:1]
        write_records(path, Item, items, key=lambda row: row.item_id)
        kept |= {item.item_id for item in items}
    for kind in RECORDS:
        change(root, kind, lambda row: row if row.item_id in kept else None)


NO_RANK = "Depth, made up. No model has a rank: more than 2 % of the answers of every model are missing or not graded."
VARIANTS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "a model without answers, another without numbers": (
        odd_models,
        (
            "are missing for reasons of the run",
            "No numbers: values that are infinite or not a number count as absent",
            "gave no grade",
        ),
    ),
    "no answer at all": (
        empty,
        (NO_RANK, "No answer has been graded", "Arms: not measured."),
    ),
    "all refused": (refused, ("passes 0 %",)),
    "all tied": (tied, ("Beta VLM does not score significantly lower",)),
    "no grade": (no_grader, (NO_RANK, "No answer has been graded", "gave no grade")),
    "no reference": (no_gold, ("Depth, made up. No model has a rank yet.", "0 items, 0 patients")),
    "one item": (
        one_item,
        (
            "1 item of 1 patient",
            "Sensitivity and specificity: not measured",
            "No reference of this run is on the list",
        ),
    ),
}


def build(root: Path, models: tuple[str, ...] = MODELS, benchmarks: tuple[str, ...] = BOTH) -> str:
    """Make tables and page; every figure is drawn in memory, and empty on the page."""
    results = root / "results"
    run = {"benchmarks": benchmarks, "models": models}
    chosen = settings(**run, graders=GRADERS, statistics={"resamples": 100}, comparison={"margin": MARGIN})
    words = ["--root", str(root), "--vocabulary", "config/vocabulary.yaml"]
    outputs = ["--out-tables", str(results / "tables"), "--out-metrics", str(results / "metrics.json")]
    assert build_tables.main([*words, *chosen, *outputs]) == 0
    (results / "figures").mkdir()
    for name, figure in FIGURES.items():
        rows = figure.keep(read_result(results / "tables", figure.table))
        assert not NO_NUMBER.search(figure.description(rows)), name
        if rows:
            with styled():
                plt.close(figure.draw(rows))
        (results / "figures" / f"{name}.svg").write_text(DRAWING, encoding="utf-8")
    for benchmark in benchmarks:
        write_records(results / "cases" / f"{benchmark}.parquet", CaseBundle, [], key=lambda row: row.item_id)
    provenance = [*words, *settings(**run, statistics={"seed": 1})]
    assert record_provenance.main([*provenance, "--inputs", "config/vocabulary.yaml", "--out", str(results / "provenance.json")]) == 0
    page = results / "report.html"
    assert build_report.main(["--root", str(root), "--results", str(results), *settings(**run, graders=GRADERS), "--out", str(page)]) == 0
    return page.read_text(encoding="utf-8")


def words(page: str) -> str:
    """Return the text that a reader sees."""
    return re.sub(r"\s+", " ", re.sub(r"(?s)<script.*?</script>|<style.*?</style>|<[^>]+>", "", page))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an invented run without faults."""
    root = tmp_path_factory.mktemp("whole")
    write_study(root, models=MODELS, patients=3)
    return root


@pytest.mark.parametrize("name", VARIANTS)
def test_the_page_says_what_is_missing_and_the_rest_stands(whole: Path, tmp_path: Path, name: str) -> None:
    spoil, told = VARIANTS[name]
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    spoil(tmp_path)
    page = build(tmp_path)
    for sentence in told:
        assert sentence in words(page), sentence
    for table in COLUMNS:
        text = (tmp_path / "results" / "tables" / f"{table}.csv").read_text(encoding="utf-8")
        assert not NO_NUMBER.search(text), table
    for file in ("tables/notes.json", "tables/verdict.json", "metrics.json"):
        json.loads((tmp_path / "results" / file).read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert "All 0 pairs" not in page
    assert set(blocks_of(page)) == {block.id for block in BLOCKS} - {"workup", "published"}


def test_a_run_without_a_benchmark_says_so(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    page = words(build(tmp_path, ("alpha",), ()))
    assert "No benchmark of the run list is here, so nothing was measured." in page
    assert "Cohort: not measured. No benchmark of the run list is here." in page
