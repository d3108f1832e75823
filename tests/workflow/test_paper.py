"""The tables of the papers on a machine without data and keys."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.reference import assert_as_written

pytestmark = [pytest.mark.workflow, pytest.mark.long]


def test_the_papers_tables_are_finished_without_data_and_say_what_is_missing(
    project: Path, run_snakemake: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = run_snakemake(project, "--configfile", "config/paper.yaml", "--", "results/paper/report.html")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    with (project / "results/paper/tables/paper/neural-medbench.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["kind"] for row in rows} == {"published", "ours", "plan"}
    ours = [row for row in rows if row["kind"] == "ours"]
    assert {row["value"] for row in ours} == {""}
    assert all("config/benchmarks/neural-medbench.yaml is not there" in row["missing"] for row in ours)
    page = (project / "results/paper/report.html").read_text(encoding="utf-8")
    assert "No benchmark of the run list is here, so nothing was measured." in page
    assert 'id="published"' in page
    assert_as_written("paper", project / "results/paper")
