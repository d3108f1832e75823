"""Numbers on the first pages: what the code can count is counted, what was measured names its source in `docs/numbers.tsv`."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from subprocess import run
from sys import executable

import pytest
import yaml

from conftest import ROOT, copy_project
from neuralmedbench.tables.form_warnings import UNREAD_LIMIT

PAGES = ("README.md", "docs/quickstart.md", "docs/local-server.md", "docs/zero.md")
NUMBER = re.compile(
    r"(?<![\w.,])\d[\d.,]*(?: to \d[\d.,]*)? (?:GB|MB|kB|minutes?|min|s|CPU|%|times|px|characters|tokens|pictures|DICOM files|patients)(?![\w/])"
)
"""A number with a unit or a thing that is counted; numbers of packages, steps and outs are counted below."""


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def lines(lock: str) -> int:
    return len((ROOT / lock).read_text(encoding="utf-8").splitlines())


def test_numbers_of_packages_are_those_of_the_locks() -> None:
    assert re.findall(r"(\d+) packages", text("README.md")) == [str(lines("requirements.lock") + 1), str(lines("requirements-dev.lock"))]


def test_the_number_of_outs_is_that_of_the_stages() -> None:
    stages = yaml.safe_load(text("dvc.yaml"))["stages"].values()
    outs = 0
    for stage in stages:
        times = 1
        for values in stage.get("matrix", {}).values():
            times *= len(values)
        outs += times * sum(len(stage.get(kind, ())) for kind in ("outs", "metrics", "plots"))
    named = [number for page in sorted((ROOT / "docs").glob("*.md")) for number in re.findall(r"recorded: (\d+) outs", page.read_text())]
    assert set(named) == {str(outs)}


@pytest.mark.workflow
@pytest.mark.slow
def test_the_number_of_steps_is_that_of_the_demo(tmp_path: Path) -> None:
    command = [executable, "-m", "snakemake", "-n", "--cores", "2", "--quiet", "rules", "--", "results/report.html"]
    plan = run(command, cwd=copy_project(tmp_path / "project"), capture_output=True, text=True, check=True)
    steps = re.search(r"^total +(\d+)$", plan.stdout + plan.stderr, re.MULTILINE)[1]
    named = [number for page in sorted((ROOT / "docs").glob("*.md")) for number in re.findall(r"\d of (\d+) steps", page.read_text())]
    assert set(named) == {steps}


@pytest.mark.parametrize("page", PAGES)
def test_every_other_number_has_a_source(page: str) -> None:
    with (ROOT / "docs" / "numbers.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["page"] == page]
    found = set(NUMBER.findall(text(page)))
    sources = {row["number"] for row in rows}
    assert all(row["source"] for row in rows)
    assert sorted(found - sources) == []
    assert sorted(sources - found) == []
    scripts = [name for row in rows for name in re.findall(r"perf/\w+\.py", row["source"])]
    assert [name for name in scripts if not (ROOT / name).is_file()] == []


def test_limits_in_sentences_are_those_of_the_code() -> None:
    assert f"more than {UNREAD_LIMIT:.0%}".replace("%", " %") in text("README.md")
