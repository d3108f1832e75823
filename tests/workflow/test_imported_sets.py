"""A data set that a user downloaded, from the import to the report."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from import_fixtures import put_pairs

pytestmark = pytest.mark.workflow

PAIRS = 6
RUN = {"benchmarks": ["mediconfusion"], "models": ["image"], "graders": ["rubric"], "statistics": {"resamples": 200}}


@pytest.fixture
def imported(project: Path, tmp_path: Path) -> Path:
    """Give a project into which a small data set was imported, and a configuration that runs it."""
    folder = put_pairs(tmp_path / "downloaded", PAIRS)
    command = [sys.executable, "scripts/import_benchmark.py", "mediconfusion", "--from", str(folder), "--part"]
    subprocess.run(
        command, cwd=project, check=True, capture_output=True, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "scripts")}
    )
    (project / "config" / "imported.yaml").write_text(yaml.safe_dump(RUN), encoding="utf-8")
    return project


def test_an_imported_set_of_pairs_is_asked_scored_and_shown_beside_chance(
    imported: Path, run_snakemake: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    arguments = ("--configfile", "config/imported.yaml", "--", "results/report.html")
    done = run_snakemake(imported, *arguments)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    with (imported / "results" / "tables" / "leaderboard.csv").open(encoding="utf-8") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert (rows["image"]["n_items"], rows["image"]["n_patients"], rows["image"]["missing"]) == (str(2 * PAIRS), str(PAIRS), "0")
    assert float(rows["prior"]["pass1"]) == 0.5, "two options: chance is one half"
    with (imported / "results" / "tables" / "rates.csv").open(encoding="utf-8") as file:
        rates = list(csv.DictReader(file))
    assert {row["arm"] for row in rates} == {"full", "no_image"}
    assert {row["n_items"] for row in rates if row["metric"] == "pair_right" and row["slice"] == "all"} == {str(PAIRS)}
    assert "both of a pair right" in rows["image"]["note"]
    page = (imported / "results" / "report.html").read_text(encoding="utf-8")
    assert "MediConfusion" in page
    again = run_snakemake(imported, *arguments)
    assert "Nothing to be done" in again.stdout + again.stderr
