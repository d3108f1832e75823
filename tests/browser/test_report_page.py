"""The report in a browser: cases open, a hostile answer stays text, and the answers of every strategy are shown."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.chromium import CHROMIUM, FLAGS, browser
from fixtures.report import build
from fixtures.tables import DEPTH, HOSTILE, write_study
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.requests import Fact, Inquiry, Request, RequestTurn
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Score

QUESTION = f"QUESTION: Is there a headache? {HOSTILE}"
SHOWN = """(() => {
  const item = document.querySelector("details.case .item");
  const say = (selector, root = item) => [...root.querySelectorAll(selector)].map((one) => one.textContent);
  return {
    title: say("h4").at(-1),
    answers: [...item.querySelectorAll(".answer")].map((one) => [say("summary span", one), say("pre", one)]),
    strategies: say(".strategies button"),
    pressed: say(".strategies [aria-pressed=true]"),
    items: document.querySelectorAll("details.case .item").length,
    injected: document.querySelectorAll("main script:not([type]), main img[onerror]").length,
  };
})()"""

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


def test_an_opened_case_shows_hostile_answers_as_text_and_breaks_no_rule_of_the_page(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=1, hostile=True)
    page = tmp_path / "opened.html"
    text = build(tmp_path, ("alpha",))
    page.write_text(text.replace('<details class="case"', '<details open class="case"'), encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--dump-dom"]
    command += ["--virtual-time-budget=5000", page.as_uri()]  # a case is decompressed after the page is loaded
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "<title>Neural-MedBench report</title>" in done.stdout
    assert done.stdout.count('class="answer"') == 12
    assert "&lt;/script&gt;&lt;script&gt;" in done.stdout
    assert 'Seen: <span dir="auto">&lt;/script&gt;' in done.stdout
    assert 'metastasis</span><div class="quiet">for: <span dir="auto">&lt;/script&gt;' in done.stdout
    assert not re.search(r"<img[^>]*onerror", done.stdout)
    assert not re.search(r"Content Security Policy|Uncaught|CONSOLE.*[Ee]rror", done.stderr)


def with_dialogues(root: Path) -> None:
    """Add answers under `ask` to the first item: one is complete, one ended after a question."""
    responses, scores = (root / "results" / kind / DEPTH / "alpha.parquet" for kind in ("responses", "scores"))
    rows, scored = read_records(responses, Response), read_records(scores, Score)
    first = next(row for row in rows if (row.arm, row.repeat) == ("full", 0))
    whole = replace(first, strategy="ask", turns=(QUESTION, first.text))
    broken = replace(first, strategy="ask", repeat=1, turns=(QUESTION,), text="", state=ResponseState.FAILED, error="Timeout (no status)")
    write_records(responses, Response, [*rows, whole, broken], key=response_key)
    of_first = next(row for row in scored if response_key(row) == response_key(first))
    lost = replace(of_first, strategy="ask", repeat=1, passed=None, state="failed", missing=True, differential=())
    write_records(scores, Score, [*scored, replace(of_first, strategy="ask"), lost], key=response_key)
    inquiry = Inquiry(
        facts=(Fact(text="A headache for three weeks."),),
        max_questions=2,
        unknown="The case does not say.",
        left="{left} left.",
        closing="Answer.",
    )
    asked = Request(
        item_id=first.item_id,
        case_id=first.case_id,
        patient_id=first.patient_id,
        benchmark=first.benchmark,
        arm="full",
        strategy="ask",
        request_id="r",
        runner="dialogue",
        system="",
        turns=(RequestTurn(text="Ask."),),
        answer_schema="",
        samples=2,
        inquiry=inquiry,
    )
    write_records(root / "data" / "prompts" / f"{DEPTH}.parquet", Request, [asked], key=lambda row: row.item_id)


def test_the_answers_of_another_strategy_are_one_press_away_with_what_was_asked_and_told(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=1)
    with_dialogues(tmp_path)
    build(tmp_path, ("alpha",))
    with browser(tmp_path) as page:
        page.open(tmp_path / "results" / "report.html")
        page.run("document.getElementById('case-demo-case00').open = true")
        page.until("document.querySelector('details.case .item')")
        direct = page.run(SHOWN)
        assert (direct["title"], direct["items"], len(direct["answers"])) == ("Answers, arm full, strategy direct", 2, 5)
        assert [name.split()[0] for name in direct["strategies"]] == ["direct", "ask"]
        page.run("document.querySelectorAll('.strategies button')[1].click()")
        asked = page.run(SHOWN)
        assert (asked["title"], asked["items"]) == ("Answers, arm full, strategy ask", 1)
        assert asked["pressed"][0].split()[0] == "ask"
        told = "A headache for three weeks.\n\n1 left."
        (whole, lines), (broken, rest) = asked["answers"]
        assert (whole[2], lines[:2], lines[2:]) == ("sample 1, 2 turns", [QUESTION, told], direct["answers"][0][1])
        assert (broken[0], broken[2], rest) == ("failed", "sample 2, 1 turn", [QUESTION, told, "(no text)"])
        page.run("document.getElementById('filters').elements.strategy.value = 'direct'")
        page.run("document.getElementById('filters').dispatchEvent(new Event('change'))")
        assert page.run(SHOWN) == direct
        assert (asked["injected"], page.complaints) == (0, [])
