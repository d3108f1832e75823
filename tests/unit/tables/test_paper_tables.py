"""The papers' tables filled by a made-up study: every cell of ours gets its number, and all formats of a table agree."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import yaml

import build_tables
import compare_published
from conftest import ROOT
from fixtures import tables as tables_fixtures
from fixtures.commands import settings
from fixtures.report import MARGIN
from neuralmedbench.config.load import load_published
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, read_table, write_records
from neuralmedbench.records.items import Item, Level
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, GradeState, Rating, Score
from neuralmedbench.report.page import templates

DEPTH, BREADTH = "neural-medbench", "neurovlm"
PAPERS = {DEPTH: "neural-medbench", BREADTH: "neurovlm-bench"}
MODELS = ("own-gpt", "house", "doctor", "robot")
PRICES = {"usd_per_million_prompt_tokens": 2.5, "usd_per_million_completion_tokens": 10.0, "dated": "2026-11-22"}
BUILTIN = {"backend": "builtin", "revision": "1", "temperature": 1.0, "seed": 1}
PAID = {"backend": "litellm", "id": "openai/gpt-4o-2024-11-20", "api_key_env": "NMB_KEY", "prices": PRICES, "max_cost_usd": 1}
CONFIGS: dict[str, dict[str, Any]] = {
    "own-gpt": BUILTIN | PAID | {"title": "Our GPT"},
    "house": BUILTIN | {"id": "house", "title": "House | model_1"},
    "doctor": {"title": "Dr A", "backend": "imported", "id": "doctor", "revision": "1", "temperature": 1.0, "reader": "clinician"},
    "robot": {"title": "Robot", "backend": "imported", "id": "robot", "revision": "1", "temperature": 1.0, "reader": "simulated"},
}


class Filled(NamedTuple):
    """A made-up run under the names of the papers' benchmarks."""

    folder: Path
    cells: dict[str, list[dict[str, str]]]

    def cell(self, benchmark: str, table: str, model: str, column: str, source: str = "") -> dict[str, str]:
        wanted = {"table": table, "kind": "ours", "model": model, "column": column, "source": source}
        (found,) = [row for row in self.cells[benchmark] if all(row[name] == value for name, value in wanted.items())]
        return found

    def result(self, table: str, **wanted: str) -> dict[str, str]:
        (found,) = [row for row in read_result(self.folder, table) if all(row[name] == value for name, value in wanted.items())]
        return found


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Make a small study of three levels with prices, labelled errors and readers, and compare it with the papers."""
    root = tmp_path_factory.mktemp("papers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_fixtures, "DEPTH", DEPTH)
        patch.setattr(tables_fixtures, "BREADTH", BREADTH)
        patch.setattr(tables_fixtures, "ARM_SHIFT", {"full": 0.0})
        tables_fixtures.make_study(root, MODELS, patients=6)
    for name, config in CONFIGS.items():
        (root / "config" / "models" / f"{name}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    scores = {model: _three_levels(root, model) for model in MODELS}
    _label_errors(root, scores)
    run = {"benchmarks": [DEPTH, BREADTH], "models": MODELS, "graders": ["rubric", "llm"]}
    chosen = settings(**run, statistics={"resamples": 100}, comparison={"margin": MARGIN})
    folder = root / "results" / "tables"
    outputs = ["--out-tables", str(folder), "--out-metrics", str(root / "m.json")]
    tables = ["--root", str(root), "--vocabulary", "config/vocabulary.yaml", *chosen, *outputs]
    assert build_tables.main(tables) == 0
    models = [str(root / "config" / "models" / f"{name}.yaml") for name in MODELS]
    for paper in PAPERS.values():
        published = ["--published", str(ROOT / "config" / "published" / f"{paper}.yaml"), "--models", *models, "--graders"]
        with chdir(root):
            assert compare_published.main([*published, "--out", f"results/tables/paper/{paper}.csv"]) == 0
    return Filled(folder, {name: read_table(folder / "paper" / f"{paper}.csv") for name, paper in PAPERS.items()})


def _order(row: Any) -> tuple[Any, ...]:
    return row.item_id, row.arm, row.repeat


def _three_levels(root: Path, model: str) -> list[Score]:
    """Make dialogues of two patients, and give the answers of the paid model a price."""

    def level(row: Any) -> Any:
        return replace(row, level=Level.DIALOGUE) if row.case_id in ("case01", "case04") else row

    items, scores = root / "data" / "items" / f"{DEPTH}.parquet", root / "results" / "scores" / DEPTH / f"{model}.parquet"
    write_records(items, Item, map(level, read_records(items, Item)), key=lambda row: row.item_id)
    write_records(scores, Score, map(level, read_records(scores, Score)), key=_order)
    for benchmark in (DEPTH, BREADTH) if model == "own-gpt" else ():
        path = root / "results" / "responses" / benchmark / f"{model}.parquet"
        write_records(path, Response, [replace(row, cost_usd=0.003) for row in read_records(path, Response)], key=_order)
    return read_records(scores, Score)


def _label_errors(root: Path, scores: dict[str, list[Score]]) -> None:
    """A grader labels the paid model's answers, clinicians rate two of them, and simulated raters rate the other model alone."""
    path = root / "results" / "grades" / DEPTH / "own-gpt" / "llm.parquet"
    labels = []
    for number, row in enumerate(scores["own-gpt"]):
        for code, value in (
            ("wrong_inference", 2.0),
            ("wrong_side", float(number % 2)),
            ("knowledge_gap", 0.0),
            ("grounding_error", float(number % 3 == 0)),
        ):
            labels.append(
                Grade(
                    item_id=row.item_id, benchmark=DEPTH, arm=row.arm, strategy=row.strategy, model=row.model, revision=row.revision,
                    repeat=row.repeat, text_sha256=row.text_sha256, grader="llm", criterion=f"error.{code}", value=value, weight=1.0,
                    explanation="", state=GradeState.OK,
                )
            )  # fmt: skip
    write_records(path, Grade, [*read_records(path, Grade), *labels], key=lambda row: (*_order(row), row.criterion))
    ratings = [rating for row in _wrong(scores["own-gpt"])[:2] for rating in _sheet(row, "r01", simulated=False)]
    ratings += [rating for row in _wrong(scores["house"])[:2] for rating in _sheet(row, "simulated", simulated=True)]
    write_records(root / "results" / "ratings" / "ratings.parquet", Rating, ratings, key=lambda row: (*_order(row), row.axis, row.rater_id))


def _wrong(scores: list[Score]) -> list[Score]:
    return [row for row in scores if row.passed is False]


def _sheet(row: Score, round_id: str, *, simulated: bool) -> Iterator[Rating]:
    for rater, axis, value in (("a", "dx_correct", 0.0), ("a", "error.premature_closure", 2.0), ("b", "dx_correct", 1.0)):
        yield Rating(
            round_id=round_id, rater_id=rater, item_id=row.item_id, arm=row.arm, strategy=row.strategy, model=row.model, revision=row.revision,
            repeat=row.repeat, text_sha256=row.text_sha256, axis=axis, value=value, seconds=30.0, stale=False, simulated=simulated,
        )  # fmt: skip


def test_every_cell_of_the_main_table_gets_the_number_of_its_level(filled: Filled) -> None:
    for level in ("direct", "complex", "dialogue"):
        for column, measure in (("pass1", "pass1"), ("pass5", "pass5"), ("candidates5", "candidates5")):
            cell = filled.cell(DEPTH, "main", "own-gpt", f"{level}_{column}")
            where = {"slice": "level", "value_of_slice": level, "measure": measure, "arm": "full", "strategy": "direct"}
            rate = filled.result("rates", benchmark=DEPTH, model="own-gpt", **where)
            assert float(cell["value"]) == pytest.approx(100 * float(rate["value"]), abs=1e-4)
            assert (cell["n"], cell["missing"]) == (rate["n_items"], "")
            assert float(cell["low"]) == pytest.approx(100 * float(rate["low"]), abs=1e-4)
            assert cell["interval"].startswith("95 % exact")
        if level != "direct":
            near = filled.result(
                "similarity", benchmark=DEPTH, model="own-gpt", measure="similarity", source="bertscore_f1", value_of_slice=level
            )
            assert float(filled.cell(DEPTH, "main", "own-gpt", f"{level}_bertscore")["value"]) == pytest.approx(float(near["value"]))


def test_the_model_with_the_papers_id_stands_below_its_row_and_people_stand_as_people(filled: Filled) -> None:
    main = [row for row in filled.cells[DEPTH] if row["table"] == "main"]
    lines = list(dict.fromkeys((row["label"], row["kind"]) for row in main))
    assert lines[lines.index(("GPT-4o (2025-03-26)", "published")) + 1] == ("Our GPT", "ours")
    assert lines[-3:] == [("House | model_1", "ours"), ("Dr A", "ours"), ("Robot", "ours")]
    assert {row["group"] for row in main if row["model"] in ("doctor", "robot")} == {"human"}
    assert filled.cell(DEPTH, "main", "doctor", "direct_pass1")["value"]
    robot = filled.cell(DEPTH, "main", "robot", "direct_pass1")
    assert (robot["value"], robot["missing"]) == ("", "a simulated reader is no person, and no model")
    assert not [row for row in filled.cells[DEPTH] if row["table"] == "plan"]


def test_errors_are_filled_by_graders_and_clinicians_and_never_by_simulated_raters(filled: Filled) -> None:
    for source, name in (("grader llm", "llm"), ("clinicians, round r01", "round r01")):
        cell = filled.cell(DEPTH, "errors", "own-gpt", "reasoning_failure", source)
        about = {"benchmark": DEPTH, "model": "own-gpt", "source": name, "slice": "class", "value_of_slice": "reasoning_failure"}
        row = filled.result("errors", **about, measure="share_of_labels")
        assert float(cell["value"]) == pytest.approx(100 * float(row["value"]), abs=1e-4)
        assert cell["n"] == row["n_answers"]
    three = [
        filled.cell(DEPTH, "errors", "own-gpt", name, "grader llm") for name in ("knowledge_gap", "grounding_error", "visual_hallucination")
    ]
    hidden = "no row with measure share_of_labels, slice class, value_of_slice visual_hallucination, source llm"
    assert three[2]["missing"].startswith(hidden), "no list of findings is complete here"
    other = filled.cell(DEPTH, "errors", "own-gpt", "other", "grader llm")
    assert float(other["value"]) == pytest.approx(float(three[0]["value"]) + float(three[1]["value"]), abs=1e-4)
    assert other["note"] == "without visual_hallucination, of which nothing could be told"
    simulated = filled.cell(DEPTH, "errors", "house", "reasoning_failure", "simulated raters, round simulated")
    assert simulated["value"] == ""
    assert "labels of simulated raters say nothing" in simulated["missing"]
    assert [row for row in read_result(filled.folder, "errors") if row["model"] == "house"], "there are such labels"


def test_cost_calibration_efficiency_and_fields_have_their_numbers(filled: Filled) -> None:
    cost = filled.result("costs", benchmark=DEPTH, model="own-gpt", arm="full")
    assert float(filled.cell(DEPTH, "cost", "own-gpt", "answers_usd")["value"]) == pytest.approx(0.003 * int(cost["answered"]))
    assert float(filled.cell(DEPTH, "cost", "own-gpt", "usd_per_answer")["value"]) == pytest.approx(0.003)
    assert float(filled.cell(DEPTH, "cost", "own-gpt", "pass_rate")["low"]) == pytest.approx(100 * float(cost["pass1_low"]), abs=1e-4)
    reason = filled.cell(DEPTH, "cost", "house", "answers_usd")["missing"]
    assert reason == "no cost_usd in its row of results/tables/costs.csv: no price: runs here"
    assert float(filled.cell(BREADTH, "efficiency", "own-gpt", "usd_per_1000")["value"]) == pytest.approx(3.0)
    assert float(filled.cell(BREADTH, "efficiency", "own-gpt", "prompt_tokens")["value"]) == pytest.approx(700)
    assert float(filled.cell(BREADTH, "efficiency", "own-gpt", "median_s")["value"]) == pytest.approx(0.4)
    for name in ("brier", "auroc", "overconfidence"):
        confidence = filled.result("confidence", benchmark=BREADTH, model="own-gpt", arm="full", source="stated", measure=name)
        cell = filled.cell(BREADTH, "calibration", "own-gpt", name)
        assert (cell["value"], cell["low"], cell["n"]) == (confidence["value"], confidence["low"], confidence["n_answers"])
    for column, field in (("diagnosis", "class"), ("sequence", "sequence"), ("plane", "plane"), ("modality", "modality")):
        row = filled.result("fields", benchmark=BREADTH, model="own-gpt", measure="accuracy", value_of_slice=field)
        cell = filled.cell(BREADTH, "fields", "own-gpt", column)
        assert float(cell["value"]) == pytest.approx(100 * float(row["value"]), abs=1e-4)
    assert (
        "no row with measure accuracy, value_of_slice subtype in topic fields"
        in filled.cell(BREADTH, "fields", "own-gpt", "subtype")["missing"]
    )


def test_only_cells_that_this_study_cannot_have_are_empty(filled: Filled) -> None:
    empty = {
        (row["table"], row["column"])
        for rows in filled.cells.values()
        for row in rows
        if row["kind"] == "ours" and row["model"] == "own-gpt" and row["value"] == ""
    }
    unseen = {("errors", "visual_hallucination"), ("errors", "visual_hallucination_in_wrong")}
    assert empty == {("fields", "subtype"), *unseen}


def test_every_published_cell_keeps_the_number_that_our_results_gave_it(filled: Filled) -> None:
    """A measure may leave the tables of results only where no table of a paper is filled from it."""
    with (ROOT / "tests" / "golden" / "published_cells.csv").open(encoding="utf-8", newline="") as file:
        written = {tuple(row[:-2]): row[-2:] for row in csv.reader(file)}
    cells = {
        (PAPERS[benchmark], *(row[name] for name in ("table", "model", "source", "column"))): [row["value"], row["n"]]
        for benchmark, rows in filled.cells.items()
        for row in rows
        if row["kind"] == "ours" and row["value"]
    }
    assert cells == written
    assert len(written) > 100


def _texts(filled: Filled, paper: str) -> Iterator[list[list[list[str]]]]:
    """Return the cells of a paper's tables in Markdown, LaTeX and the report: one list of lines per table, without the head."""
    markdown, latex = ((filled.folder / "paper" / f"{paper}{end}").read_text(encoding="utf-8") for end in (".md", ".tex"))
    piped = re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE)
    yield [[[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()[2:]] for table in piped]
    bodies = re.findall(r"\\midrule\n(.*?)\\bottomrule", latex, flags=re.DOTALL)
    yield [[re.split(r" & ", line.removesuffix(" \\\\").replace("--", "–")) for line in body.splitlines()] for body in bodies]
    published = load_published(ROOT / "config" / "published" / f"{paper}.yaml")
    rows = read_table(filled.folder / "paper" / f"{paper}.csv")
    page = (
        templates({})
        .get_template("blocks/published.html.j2")
        .render(source=SimpleNamespace(papers=[SimpleNamespace(name=paper, published=published, rows=rows)]))
    )
    found = []
    for table in re.findall(r"<tbody>(.*?)</tbody>", page, flags=re.DOTALL):
        lines = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in re.findall(r"<tr[^>]*>.*?</tr>", table)]
        found.append([[_plain(cell) for cell in line] for line in lines])
    yield found


def _plain(cell: str) -> str:
    interval = re.sub(r"<small>([\d.,–-]+–[\d.,-]+)</small>", r" (\1)", cell)
    return html.unescape(re.sub(r"<[^>]+>", " ", interval)).strip()


@pytest.mark.parametrize("benchmark", PAPERS)
def test_numbers_in_markdown_latex_and_the_report_are_those_of_the_csv(filled: Filled, benchmark: str) -> None:
    published = load_published(ROOT / "config" / "published" / f"{PAPERS[benchmark]}.yaml")
    compared = 0
    for form in _texts(filled, PAPERS[benchmark]):
        assert len(form) == len(published.tables)
        for (name, table), lines in zip(published.tables.items(), form, strict=True):
            rows = [row for row in filled.cells[benchmark] if row["table"] == name]
            keys = list(dict.fromkeys((row["kind"], row["label"], row["source"], row["model"]) for row in rows))
            assert len(lines) == len(keys)
            for key, line in zip(keys, lines, strict=True):
                assert len(line) == 2 + len(table.columns)
                own = {row["column"]: row for row in rows if (row["kind"], row["label"], row["source"], row["model"]) == key}
                for column, text in zip(table.columns, line[2:], strict=True):
                    compared += _compare(own.get(column), text)
    assert compared > 100


def _compare(row: dict[str, str] | None, text: str) -> int:
    """Compare the text of one cell with the CSV; return the number of values compared."""
    if row is None or row["value"] == "":
        assert re.fullmatch(r"(\[ *\d+ *\])?", text), text
        assert bool(text) is (row is not None)
        return 0
    number = r"-?[\d,]+(?:\.(\d+))?"
    value, low, high = (re.search(pattern, text) for pattern in (rf"^({number})", rf"\(({number})–", rf"–({number})\)"))
    assert value
    same = 0
    for found, name in ((value, "value"), (low, "low"), (high, "high")):
        assert (found is not None) is (row[name] != ""), (text, name)
        if found:
            half = 0.5 * 10 ** -len(found[2] or "")
            assert abs(float(found[1].replace(",", "")) - float(row[name])) <= half + 1e-9, (text, name, row[name])
            same += 1
    if row["kind"] == "ours" and row["n"]:
        assert re.search(rf"n= ?{int(row['n']):,}\b", text), text
    assert not row["others"] or row["others"] in text
    return same


def test_the_files_are_whole_csv_files_whose_lines_are_cells(filled: Filled) -> None:
    for paper in PAPERS.values():
        with (filled.folder / "paper" / f"{paper}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert len({len(row) for row in rows}) == 1
