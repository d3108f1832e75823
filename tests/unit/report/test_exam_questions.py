"""Patients are named only where there are patients, and pictures where there are pictures: questions of an examination are items in every text."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
import yaml

from fixtures import tables
from fixtures.report import blocks_of, build, parts_of
from fixtures.tables import BREADTH, DEPTH, item, write_study
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.items import Family, Item, Level, Runner
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Score, response_key
from neuralmedbench.tables.study import BenchmarkStudy

PATIENTS, QUESTIONS = 7, 14
LIMITS = (8, 10, 12, 30)
"""Numbers of patients that rules of measurement name."""


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Make a run of a depth benchmark of 7 patients and 14 exam questions that name none."""
    root = tmp_path_factory.mktemp("exam")
    write_study(root, models=("alpha",), patients=PATIENTS, kind="public")

    def of_nobody(row: Item | Score | Response) -> Item | Score | Response:
        name = row.item_id.partition("/")[2]
        return replace(row, case_id=name, patient_id=name) if isinstance(row, Item) else replace(row, patient_id=name)

    path = root / "data" / "items" / f"{BREADTH}.parquet"
    write_records(path, Item, [of_nobody(row) for row in read_records(path, Item)], key=lambda row: row.item_id)
    for kind, record in (("scores", Score), ("responses", Response)):
        path = root / "results" / kind / BREADTH / "alpha.parquet"
        write_records(path, record, [of_nobody(row) for row in read_records(path, record)], key=response_key)
    return root, build(root, ("alpha",), figures=("leaderboard",))


@pytest.fixture(scope="module")
def questions(exam: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Make a page of the exam questions alone, of a model whose yaml does not say whether its weights are available."""
    root = tmp_path_factory.mktemp("questions") / "exam"
    shutil.copytree(exam[0], root)
    model = root / "config" / "models" / "alpha.yaml"
    values = yaml.safe_load(model.read_text(encoding="utf-8"))
    del values["open_weights"]
    model.write_text(yaml.safe_dump(values), encoding="utf-8")
    return blocks_of(build(root, ("alpha",), figures=False, benchmarks=(BREADTH,)))


def test_weights_of_which_the_yaml_says_nothing_are_not_called_closed(exam: tuple[Path, str], questions: dict[str, str]) -> None:
    assert "open weights" in blocks_of(exam[1])["leaderboard"]
    assert "weights: not stated" in questions["leaderboard"]
    assert "closed" not in questions["leaderboard"]


def test_tables_say_what_they_count(exam: tuple[Path, str]) -> None:
    for row in read_result(exam[0] / "results" / "tables", "rates"):
        assert row["cluster"] == ("patient" if row["benchmark"] == DEPTH else "item")


def test_no_text_of_the_page_calls_questions_patients(exam: tuple[Path, str]) -> None:
    root, text = exam
    plain = unescape(re.sub(r"<[^>]+>", " ", text))
    for number in re.findall(r"\b(\d[\d,]*) patients?\b", plain):
        assert int(number.replace(",", "")) in {*range(PATIENTS + 1), *LIMITS}, number
    assert not re.search(rf"\b{QUESTIONS} patients?\b", plain)
    notes = read_json(root / "results" / "tables" / "notes.json")["blocks"]
    assert notes["leaderboard"]["n"] == f"{DEPTH}: 14 items, 7 patients, 70 answers; {BREADTH}: 14 items, 14 answers"
    blocks = blocks_of(text)
    assert ">14 items<" in blocks["leaderboard"]
    assert ">14 items, 7 patients<" in blocks["leaderboard"]
    assert f">{QUESTIONS} items</td>" in parts_of(text)["groups"]
    leaderboard = (root / "results" / "figures" / "leaderboard.svg").read_text(encoding="utf-8")
    assert f"{BREADTH} (breadth): {QUESTIONS} items<" in leaderboard


def test_explanations_on_a_page_of_exam_questions_have_the_noun_of_its_tables(questions: dict[str, str]) -> None:
    for name, words in {
        "leaderboard": "when items are resampled",
        "arms": "Items who share a request",
    }.items():
        assert words in questions[name]
    plain = {name: unescape(re.sub(r"<script.*?</script>|<[^>]+>", " ", html, flags=re.DOTALL)) for name, html in questions.items()}
    for name in ("leaderboard", "pairs", "confidence", "repeats"):
        assert re.findall(r".{30}[Pp]atients?\b.{20}", plain[name]) == []
    # the case browser lists the same things; `cases/` is a folder of the results
    assert re.findall(r".{30}\b[Cc]ases?\b(?!/).{20}", plain["cases"]) == []
    assert "14 items with a grade of every answer" in plain["cases"]


def test_a_page_of_texts_alone_does_not_speak_of_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ARM_SHIFT", {"full": 0.0})
    write_study(tmp_path, models=("alpha",), patients=6, kind="public")
    config = tmp_path / "config" / "benchmarks" / f"{DEPTH}.yaml"
    words = yaml.safe_load(config.read_text(encoding="utf-8")) | {"kind": "text", "arms": ["full"]}
    config.write_text(yaml.safe_dump(words), encoding="utf-8")
    path = tmp_path / "data" / "items" / f"{DEPTH}.parquet"
    write_records(path, Item, [replace(row, images=()) for row in read_records(path, Item)], key=lambda row: row.item_id)
    path = tmp_path / "results" / "responses" / DEPTH / "alpha.parquet"
    write_records(path, Response, [replace(row, images_sent=0) for row in read_records(path, Response)], key=response_key)
    text = build(tmp_path, ("alpha",), figures=False, benchmarks=(DEPTH,))
    # the glossary and the prompts, verbatim, are those of every run
    blocks = {"nav": text[text.index("<nav") : text.index("</nav>")]} | {
        name: html for name, html in blocks_of(text).items() if name != "methods"
    }
    plain = {name: unescape(re.sub(r"<(script|svg)\b.*?</\1>|<[^>]+>", " ", html, flags=re.DOTALL)) for name, html in blocks.items()}
    found = {name: re.findall(r".{0,40}(?:[Pp]icture|_image|[Ss]canner).{0,20}", words) for name, words in plain.items()}
    assert {name: words for name, words in found.items() if words} == {}
    assert "grounding" not in parts_of(text)


def made(config: dict[str, object], *items: Item) -> BenchmarkStudy:
    class Config:
        has_cases, subjects = config["has_cases"], config["subjects"]

    return BenchmarkStudy(
        **dict.fromkeys(
            (
                "name",
                "gold",
                "scores",
                "responses",
                "grades",
                "similarity",
                "audit",
                "flow",
                "pictures",
                "questions",
                "sampled",
                "vocabulary",
            )
        ),  # type: ignore[arg-type]
        config=Config(),  # type: ignore[arg-type]
        items=list(items),
    )


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        ([("q1", "q1", ""), ("q2", "q2", "")], "item"),
        ([("c1", "c1", ""), ("c1", "c1", "")], "case"),
        ([("p1", "p1", "p1"), ("p1", "p1", "p1")], "pair"),
        ([("c1", "anna", ""), ("q2", "q2", "")], "patient"),
    ],
)
def test_an_imported_set_without_patients_counts_pairs_cases_or_items(ids: list[tuple[str, str, str]], wanted: str) -> None:
    items = [
        replace(
            item(BREADTH, case, patient, Family.CLASSIFICATION, level=Level.NONE, runner=Runner.CHOICE),
            pair_id=pair,
            item_id=f"{BREADTH}/{number}",
        )
        for number, (case, patient, pair) in enumerate(ids)
    ]
    assert made({"has_cases": False, "subjects": "public"}, *items).cluster == wanted
    assert made({"has_cases": True, "subjects": "public"}, *items).cluster == "patient"
    assert made({"has_cases": False, "subjects": "phantom"}, *items).cluster == "patient"
