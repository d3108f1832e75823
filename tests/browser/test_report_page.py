"""The report in a browser: cases open, a hostile answer stays text, and the answers of every strategy are shown."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fixtures.chromium import CHROMIUM, FLAGS, browser
from fixtures.conversations import QUESTION, add_conversations
from fixtures.report import build
from fixtures.tables import HOSTILE, write_study

PLAYED = """(() => {
  const [turns] = document.querySelectorAll(".turns");
  const shown = [...turns.children].filter((one) => one.matches("div:not(.later)"));
  const say = (selector) => shown.flatMap((one) => [...one.querySelectorAll(selector)].map((part) => part.textContent));
  return { place: turns.querySelector("[aria-live]").textContent, asked: say(".request"), told: say(".told"), pictures: shown[0].querySelectorAll("img").length,
    candidates: say(".candidates li"), bars: shown.flatMap((one) => [...one.querySelectorAll(".part")].map((part) => part.getAttribute("width"))),
    reference: say(".reference span[dir]"), ends: [...turns.querySelectorAll("[aria-disabled=true]")].map((one) => one.textContent), visible: shown.length };
})()"""
"""What is to be seen of the first work-up."""
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


def test_the_answers_of_another_strategy_are_one_press_away_with_what_was_asked_and_told(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=1)
    add_conversations(tmp_path)
    build(tmp_path, ("alpha",))
    with browser(tmp_path) as page:
        page.open(tmp_path / "results" / "report.html")
        page.run("document.getElementById('case-demo-case00').open = true")
        page.until("document.querySelector('details.case .item')")
        direct = page.run(SHOWN)
        assert (direct["title"], direct["items"], len(direct["answers"])) == ("Answers, arm full, strategy direct", 2, 5)
        assert [name.split()[0] for name in direct["strategies"]] == ["direct", "ask", "viewer", "workup"]
        page.run("document.querySelectorAll('.strategies button')[1].click()")
        asked = page.run(SHOWN)
        assert (asked["title"], asked["items"]) == ("Answers, arm full, strategy ask", 1)
        assert asked["pressed"][0].split()[0] == "ask"
        told = "A headache for three weeks.\n\n1 left."
        (whole, lines), (broken, rest) = asked["answers"]
        assert (whole[2], lines[:2], lines[2:]) == ("sample 1, 2 turns", [QUESTION, told], direct["answers"][0][1])
        assert (broken[0], broken[2], rest) == ("failed", "sample 2, 1 turn", [QUESTION, told, "(no text)"])
        # a work-up is played message by message, with the keys alone
        page.run("document.querySelectorAll('.strategies button')[3].click()")
        page.run("document.querySelector('.answer summary').focus()")
        page.run("document.querySelector('.answer').open = true")
        stated = [f"{HOSTILE}50 %", "✓ glioblastoma25 %"]
        start = page.run(PLAYED)
        assert (start["place"], start["visible"], start["ends"]) == ("message 1 of 3", 1, ["←"])
        assert (start["asked"], start["pictures"]) == ([f"Asked for: the FLAIR {HOSTILE} → FLAIR, axial was given"], 1)
        assert (start["told"], start["candidates"]) == (["FLAIR, axial:\n\n1 left."], stated)
        assert (start["bars"], start["reference"]) == (["50", "25"], ["glioblastoma"])
        page.key("ArrowRight", 39)
        assert page.run(PLAYED)["asked"] == ["Asked for: PET → the case does not have it"]
        for _ in range(2):
            page.key("ArrowRight", 39)
        end = page.run(PLAYED)
        assert (end["place"], end["asked"], end["ends"], end["candidates"]) == ("message 3 of 3", [], ["→"], stated)
        page.key("ArrowLeft", 37)
        assert page.run(PLAYED)["place"] == "message 2 of 3"
        page.run("document.querySelector('.turns button').click()")
        assert page.run(PLAYED) == start
        page.run("document.getElementById('filters').elements.strategy.value = 'direct'")
        page.run("document.getElementById('filters').dispatchEvent(new Event('change'))")
        assert page.run(SHOWN) == direct
        assert (asked["injected"], page.complaints) == (0, [])
