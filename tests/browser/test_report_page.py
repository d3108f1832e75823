"""The report in a browser: cases open, and a hostile answer stays text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from report_fixtures import build
from tables_fixtures import write_study

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_an_opened_case_shows_hostile_answers_as_text_and_breaks_no_rule_of_the_page(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=1, hostile=True)
    page = tmp_path / "opened.html"
    text = build(tmp_path, ("alpha",))
    page.write_text(text.replace('<details class="case"', '<details open class="case"'), encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "<title>Neural-MedBench report</title>" in done.stdout
    assert done.stdout.count('class="answer"') == 12
    assert "&lt;/script&gt;&lt;script&gt;" in done.stdout
    assert "Seen: &lt;/script&gt;" in done.stdout
    assert 'metastasis<div class="quiet">for: &lt;/script&gt;' in done.stdout
    assert not re.search(r"<img[^>]*onerror", done.stdout)
    assert not re.search(r"Content Security Policy|Uncaught|CONSOLE.*[Ee]rror", done.stderr)
