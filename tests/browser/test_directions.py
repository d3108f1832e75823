"""Right-to-left and mixed text keeps its own base direction: in the case browser, on a rater's page, and on a review sheet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.chromium import CHROMIUM, Browser, browser
from fixtures.rating import form, write_rated_study
from fixtures.report import build
from fixtures.tables import DEPTH, write_study
from neuralmedbench.config.workflow import read_run
from neuralmedbench.deid.review.sheet import CaseStage, CaseStages, case_sheet
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.ratings.folders import write_round
from neuralmedbench.ratings.rounds import RoundMaterial, freeze_round
from neuralmedbench.recording.reader_answers import rated_answers
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, Score, response_key
from neuralmedbench.runtime.atomic_write import write_text

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]

ARABIC = "خثار الجيب السهمي العلوي"
HEBREW = "פקקת של הסינוס הסגיטלי העליון."
ENGLISH = "Superior sagittal sinus thrombosis."
MIXED = f"{ARABIC} (superior sagittal sinus), MRV: لا جريان."
LINES = f"DIFFERENTIAL:\n1. {ARABIC}\nFINDINGS: {MIXED}\n{MIXED}\n{HEBREW}\n{ENGLISH}"
ANSWERS = (LINES, MIXED, f"{ENGLISH} {ARABIC}")

LOOK = """((selector) => [...document.querySelectorAll(selector)].map((one) => {
  const style = getComputedStyle(one);
  const edges = [...new Set([...one.childNodes].filter((node) => node.nodeType === 3).flatMap((node) => {
    const lines = [];
    let start = 0;
    for (const line of node.data.split("\\n")) {
      const range = document.createRange();
      range.setStart(node, start);
      range.setEnd(node, start + line.length);
      const [box, frame] = [range.getBoundingClientRect(), one.getBoundingClientRect()];
      if (line) lines.push(Math.abs(box.right - frame.right) < Math.abs(box.left - frame.left) ? "right" : "left");
      start += line.length + 1;
    }
    return lines;
  }))];
  return { text: one.textContent, direction: style.direction, align: style.textAlign, bidi: style.unicodeBidi, mark: style.listStylePosition, edges };
}))"""
"""Direction of elements, and the edges at which the lines of their text begin."""


def looks(page: Browser, selector: str) -> list[dict[str, Any]]:
    return list(page.run(f"{LOOK}({selector!r})"))


def of(page: Browser, selector: str, words: str) -> dict[str, Any]:
    return next(one for one in looks(page, selector) if one["text"] == words)


def speak(root: Path, model: str) -> None:
    """Let a model answer in Arabic, Hebrew and English, with a reference and a question in Arabic."""
    results = root / "results"
    path = results / "responses" / DEPTH / f"{model}.parquet"
    rows = read_records(path, Response)
    first = [row for row in rows if (row.item_id, row.arm) == (rows[0].item_id, "full")][: len(ANSWERS)]
    texts = {response_key(row): text for row, text in zip(first, ANSWERS, strict=True)}
    write_records(path, Response, [replace(row, text=texts.get(response_key(row), row.text)) for row in rows], key=response_key)
    path = results / "scores" / DEPTH / f"{model}.parquet"
    scores = [replace(row, differential=(ARABIC, ENGLISH)) if response_key(row) in texts else row for row in read_records(path, Score)]
    write_records(path, Score, scores, key=response_key)
    path = results / "grades" / DEPTH / model / "rubric.parquet"
    grades = [replace(row, explanation=ARABIC) if response_key(row) in texts else row for row in read_records(path, Grade)]
    write_records(path, Grade, grades, key=lambda row: (response_key(row), row.criterion))
    for name, record, changes in (("gold", Gold, {"answer": ARABIC, "findings": (MIXED,)}), ("items", Item, {"question": MIXED})):
        table = root / "data" / name / f"{DEPTH}.parquet"
        written = [replace(row, **changes) if row.item_id == rows[0].item_id else row for row in read_records(table, record)]
        write_records(table, record, written, key=lambda row: row.item_id)


def test_an_answer_reads_in_its_own_direction_in_the_report(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha", "beta"), patients=2)
    speak(tmp_path, "alpha")
    build(tmp_path, ("alpha", "beta"))
    with browser(tmp_path) as page:
        page.open(tmp_path / "results" / "report.html")
        page.run("document.querySelector('details.case').open = true")
        page.until("document.querySelector('details.case .answer')")
        page.run("for (const one of document.querySelectorAll('.case details')) one.open = true")
        assert of(page, ".case-answer", ARABIC)["direction"] == "rtl"
        question = of(page, ".item p", MIXED)
        assert (question["direction"], question["align"], question["edges"]) == ("rtl", "start", ["right"])
        assert (of(page, ".item li", MIXED)["direction"], of(page, ".item li", MIXED)["mark"]) == ("rtl", "inside")
        assert of(page, ".answer .first", ARABIC)["direction"] == "rtl"
        assert of(page, ".answer p span", ARABIC)["direction"] == "rtl"
        assert of(page, ".answer pre", MIXED)["edges"] == ["right"]
        assert of(page, ".answer pre", ANSWERS[2])["edges"] == ["left"]
        # every line of an answer has the direction of its own first letter
        assert (of(page, ".answer pre", LINES)["bidi"], sorted(of(page, ".answer pre", LINES)["edges"])) == ("plaintext", ["left", "right"])
        page.picture(tmp_path / "report.png")
        assert page.complaints == []


def test_a_rater_reads_an_answer_in_its_own_direction(tmp_path: Path) -> None:
    write_rated_study(tmp_path, patients=2)
    path = tmp_path / "results" / "responses" / DEPTH / "alpha.parquet"
    write_records(path, Response, [replace(row, text=MIXED) for row in read_records(path, Response)], key=response_key)
    path = tmp_path / "results" / "responses" / DEPTH / "beta.parquet"
    write_records(path, Response, [replace(row, text=MIXED) for row in read_records(path, Response)], key=response_key)
    questions = form(responses=8, raters=1, raters_per_response=1, repeats=0, controls=0)
    candidates = rated_answers(read_run(folder=tmp_path / "config"), questions.rounds.families, tmp_path)
    folder = tmp_path / "data" / "ratings" / "r01"
    write_round(folder, freeze_round("r01", RoundMaterial(questions, candidates, [], root=tmp_path, secret="07")))
    with browser(tmp_path) as page:
        page.open(folder / "packets" / "rater-1.html")
        assert looks(page, "pre.answer")[0]["edges"] == ["right"]
        assert "left" in looks(page, "pre.asked")[0]["edges"]
        page.run(f"document.getElementById('comment').value = {ARABIC!r}")
        assert looks(page, "#comment")[0]["direction"] == "rtl"
        page.picture(tmp_path / "packet.png")


def test_a_note_reads_in_its_own_direction_on_a_review_sheet(tmp_path: Path) -> None:
    write_text(tmp_path / "note.txt", f"{MIXED}\n[NAME] {ENGLISH}\n")
    case = CaseRecord(benchmark="mine", case_id="c1", patient_id="p1", stage="deidentify", notes=("note.txt",))
    stage, sheet = CaseStage(case, tmp_path), tmp_path / "sheets" / "sub-c1.html"
    write_text(sheet, case_sheet(CaseStages(stage, stage, stage), ("", ""), sheet))
    assert "<mark>[NAME]</mark>" in sheet.read_text(encoding="utf-8")
    with browser(tmp_path) as page:
        page.open(sheet)
        assert "right" in looks(page, "pre")[0]["edges"]
        assert "left" in looks(page, "pre")[0]["edges"]
