"""The workflow past one machine: what is submitted, what stays, and that a submitted job makes what a local one makes.

A stand-in takes the place of a cluster: Snakemake's generic plugin hands job scripts to `tests/stand_in/submit.sh`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conftest import ROOT, snakemake
from fixtures.scale import PER_CASE, SCALE, write_scale

pytestmark = pytest.mark.workflow

STAND_IN = ROOT / "tests" / "stand_in"
TINY = ("--configfile", "config/test.yaml")
LARGEST_MB = 2000
"""Memory of the largest imaging job."""
ABSENT = 'title: Weights that are not here\nbackend: server\nid: data/weights/absent\nrevision: "1"\nserver: {engine: vllm, program: data/absent}\n'


@dataclass(frozen=True)
class Submission:
    """One call of the submit command: how many jobs of which rule, and what it asked for."""

    rules: Counter[str]
    cores: int
    memory_mb: int
    minutes: int


def submit(folder: Path, *arguments: str, runs: bool = True) -> tuple[CompletedProcess[str], list[Submission]]:
    """Run Snakemake with the cluster profile and the stand-in instead of Slurm; give what it said and what was submitted."""
    place = folder.parent / "submissions"
    place.mkdir()
    asked = "{threads} {resources.mem_mb} {resources.runtime}"
    done = snakemake(
        folder,
        *("--workflow-profile", "profiles/slurm", "--executor", "cluster-generic"),
        *("--cluster-generic-submit-cmd", f"sh {shlex.quote(str(STAND_IN / 'submit.sh'))} {asked}"),
        *("--cluster-generic-status-cmd", f"sh {shlex.quote(str(STAND_IN / 'status.sh'))}"),
        *("--seconds-between-status-checks", "1", "--latency-wait", "5"),
        *arguments,
        env={"STAND_IN": str(place), **({} if runs else {"STAND_IN_REFUSES": "1"})},
    )
    return done, [read_submission(path) for path in sorted(place.iterdir())]


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def read_submission(place: Path) -> Submission:
    """Read what the stand-in noted."""
    targets = re.search(r"--target-jobs (.+?) --", (place / "script").read_text(encoding="utf-8"))
    assert targets
    rules = Counter(target.strip("'\"").partition(":")[0] for target in targets[1].split())
    return Submission(rules, *map(int, (place / "asked").read_text().split()))


@pytest.mark.long
def test_submitted_jobs_make_what_local_ones_make(finished_run: Path, tmp_path: Path) -> None:
    """Everything behind the scans; `tests/slurm` submits these too."""
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder)
    scores = "results/test/scores/demo-tiny/text.parquet"
    for name in (
        "answers/demo-tiny.csv",
        "items",
        "gold",
        "prompts",
        "reviews/demo-tiny",
        "slices/demo-tiny/slices.parquet",
        "deidentified/demo-tiny/audit.json",
    ):
        remove(folder / "data" / name)
    remove(folder / "results")
    done, submissions = submit(folder, "-p", *TINY, "--", scores)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-8000:]
    alone = ["assemble_prompts", "build_items", "build_review", "gather_audit", "grade_responses", "run_inference", "score_responses"]
    alone = sorted([*alone, "grade_responses", "plant_errors"])  # the grader is tested on planted errors
    assert sorted(name for one in submissions for name in one.rules) == alone
    assert {one.rules.total() for one in submissions} == {1}
    assert [name for name in ("gather_answers", "gather_slices") if f"localrule {name}:" not in said] == []
    same = ["data/slices/demo-tiny/slices.parquet", "data/deidentified/demo-tiny/audit.json", "data/prompts/demo-tiny.parquet", scores]
    assert [name for name in same if (folder / name).read_bytes() != (finished_run / name).read_bytes()] == []
    # what a cluster recorded is judged on this machine, and by content
    for path in [*(folder / "data").rglob("*"), *(folder / "config").rglob("*")]:
        os.utime(path)
    again = snakemake(folder, "-n", *TINY, "--", scores)
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_job_that_fails_on_a_cluster_is_reported_with_its_own_line(finished_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder)
    (folder / "config" / "models" / "absent.yaml").write_text(ABSENT, encoding="utf-8")
    done, submissions = submit(folder, *TINY, "--config", "models=[text, absent]", "--", "results/test/responses/demo-tiny/absent.parquet")
    assert done.returncode == 1
    assert [one.rules for one in submissions] == [Counter(run_inference=1)]
    assert "ConfigError: model absent: data/absent is not installed here" in done.stdout + done.stderr


@pytest.mark.parametrize("cores", [pytest.param(1, marks=pytest.mark.long), 8])
def test_imaging_is_submitted_ten_cases_at_a_time_and_asks_for_no_more_than_stated(tmp_path: Path, cores: int) -> None:
    folder = write_scale(tmp_path / "project", cases=25, models=1)
    done, submissions = submit(folder, *SCALE, "--cores", str(cores), "--", "results/scale/report.html", runs=False)
    assert done.returncode == 1
    assert sorted(one.rules[PER_CASE[0]] for one in submissions) == [5, 10, 10]
    for one in submissions:
        cases = one.rules[PER_CASE[0]]
        assert one.rules == Counter(dict.fromkeys(PER_CASE, cases))
        assert one.cores == min(cores, cases)
        assert one.memory_mb == LARGEST_MB * one.cores
        assert one.minutes == len(PER_CASE) * 3 * -(-cases // cores)
