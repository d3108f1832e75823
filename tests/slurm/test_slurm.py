"""The workflow on a real Slurm cluster of one node (`one_node.py`), with the cluster profile as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from one_node import one_node, why_not

from conftest import copy_project, snakemake
from neuralmedbench.recording.metadata import METADATA

pytestmark = [pytest.mark.workflow, pytest.mark.long]

SCANS = ("--configfile", "config/test.yaml", "--config", "benchmarks=[demo-tiny]", "models=[image]")
"""The part of the small configuration that has scans, and the quicker model: every submission costs seconds of waiting."""
REPORT = ("--", "results/test/report.html")
ABSENT = 'title: Weights that are not here\nbackend: server\nid: data/weights/absent\nrevision: "1"\nserver: {engine: vllm, program: data/absent}\n'
MADE_BEFORE = ("data/raw/", "data/answers/demo-tiny/")
"""What the phantoms come with: they are made on one machine, as scans come from elsewhere too."""
LOCAL = {
    "gather_answers",
    "describe_scans",
    "gather_slices",
    "find_answer_leaks",
    "import_ratings",
    "draw_figures",
    "record_provenance",
    "describe_benchmark",
    "build_report",
}
QUICK = ("--slurm-init-seconds-before-status-checks", "6", "--latency-wait", "5")
"""What a test of minutes sets otherwise than a cluster."""


@dataclass(frozen=True)
class Submission:
    """What the cluster says of one submission."""

    state: str
    cores: int
    granted: str
    rule: str


@dataclass(frozen=True)
class Cluster:
    """The cluster that runs, and a project that it has carried to the report."""

    environment: dict[str, str]
    folder: Path
    said: str
    code: int

    def submissions(self) -> list[Submission]:
        """Every submission so far, in order."""
        command = ["scontrol", "show", "job", "--oneliner"]
        said = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True, timeout=30).stdout
        jobs = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in said.splitlines() if line.startswith("JobId=")]
        return [
            Submission(job["JobState"], int(job["NumCPUs"]), f"{job['TRES']} {job.get('TresPerJob', '')}", job["Comment"])
            for job in sorted(jobs, key=lambda job: int(job["JobId"]))
        ]


def on_cluster(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake with the cluster profile; a cluster that stops answering ends the test, never holds it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = ["timeout", "-k", "20", "600", sys.executable, "-m", "snakemake", "--workflow-profile", "profiles/slurm", *QUICK, *arguments]
    return subprocess.run(command, cwd=folder, env={**environment, "PATH": path}, capture_output=True, text=True, check=False)


def records_of_phantoms(folder: Path) -> list[Path]:
    """Snakemake's records of what was made before: without them the cluster would make it again."""
    return [path for path in (folder / METADATA).iterdir() if urlsafe_b64decode(path.name).decode().startswith(MADE_BEFORE)]


@pytest.fixture(scope="module")
def cluster(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start the cluster and run the small configuration on it, from raw scans."""
    if reason := why_not():
        pytest.skip(reason)
    folder = copy_project(tmp_path_factory.mktemp("slurm") / "project")
    for path in [*(finished_run / part for part in MADE_BEFORE), *records_of_phantoms(finished_run)]:
        copy = folder / path.relative_to(finished_run)
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if path.is_dir() else shutil.copy2)(path, copy)
    with tempfile.TemporaryDirectory(prefix="slurm-") as place, one_node(Path(place)) as environment:
        Path(place).chmod(0o755)
        done = on_cluster(folder, environment, "-p", *SCANS, *REPORT)
        yield Cluster(environment, folder, done.stdout + done.stderr, done.returncode)


@pytest.fixture(scope="module")
def one_machine(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the same run, made on one machine."""
    folder = tmp_path_factory.mktemp("local") / "project"
    shutil.copytree(finished_run, folder)
    done = snakemake(folder, *SCANS, *REPORT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return folder


def test_one_machine_has_made_both_phantoms(finished_run: Path) -> None:
    """First, so that the run on one machine and that on the cluster have each the time of a test."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in records_of_phantoms(finished_run)]
    assert {record["rule"] for record in records} >= {"generate_phantom"}
    assert len({path.parent for path in (finished_run / "data/raw/demo-tiny").glob("*/files.json")}) == 2


def test_the_run_ends_and_every_submission_was_completed(cluster: Cluster) -> None:
    assert cluster.code == 0, cluster.said[-8000:]
    assert {one.state for one in cluster.submissions()} == {"COMPLETED"}
    assert (cluster.folder / "results" / "test" / "report.html").stat().st_size > 100_000


def test_what_a_cluster_makes_is_what_one_machine_makes(cluster: Cluster, one_machine: Path) -> None:
    parts = ("data/deidentified/demo-tiny", "data/slices/demo-tiny", "results/test/tables", "results/test/figures")
    files = [path for part in parts for path in (one_machine / part).rglob("*") if path.is_file()]
    files.append(one_machine / "results/test/scores/demo-tiny/image.parquet")
    names = sorted(str(path.relative_to(one_machine)) for path in files if path.name not in {"costs.csv", "destinations.csv"})
    assert len(names) > 100
    assert [name for name in names if (cluster.folder / name).read_bytes() != (one_machine / name).read_bytes()] == []


def test_imaging_is_one_submission_of_one_core_and_small_rules_are_none(cluster: Cluster) -> None:
    imaging = [one for one in cluster.submissions() if one.rule.startswith("rule_imaging")]
    assert [one.cores for one in imaging] == [1]
    assert imaging[0].granted.startswith("cpu=1,mem=2000M,")
    submitted = {re.match(r"rule_([a-z_]+?)(?:_wildcards|$)", one.rule)[1] for one in cluster.submissions() if one not in imaging}  # type: ignore[index]
    assert {"run_inference", "score_responses", "build_tables"} <= submitted
    assert submitted & LOCAL == set()
    assert "rule generate_phantom:" not in cluster.said
    assert {rule for rule in LOCAL if f"localrule {rule}:" in cluster.said} == LOCAL


def test_one_machine_has_nothing_left_to_do(cluster: Cluster) -> None:
    for path in [*(cluster.folder / "data").rglob("*"), *(cluster.folder / "config").rglob("*")]:
        os.utime(path)
    again = snakemake(cluster.folder, "-n", *SCANS, *REPORT)
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_job_that_fails_is_reported_and_its_model_asked_for_a_card(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(cluster.folder, folder)
    (folder / "config" / "models" / "absent.yaml").write_text(ABSENT, encoding="utf-8")
    wanted = (*SCANS[:-1], "models=[image, absent]", "--", "results/test/responses/demo-tiny/absent.parquet")
    before = len(cluster.submissions())
    done = on_cluster(folder, cluster.environment, *wanted)
    assert done.returncode == 1
    assert "ConfigError: model absent: data/absent is not installed here" in done.stdout + done.stderr
    (failed,) = cluster.submissions()[before:]
    assert (failed.state, failed.rule) == ("FAILED", "rule_run_inference_wildcards_demo-tiny_absent")
    assert failed.granted.endswith(" gres:gpu:1")
