"""Growth of a plan: every limit here also holds for 10,000 cases and 20 models (`perf/plan_scale.py` plans those)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import snakemake
from fixtures.scale import PER_CASE, SCALE, write_scale

pytestmark = pytest.mark.workflow

ARGUMENT_BYTES = 131_072
"""Longest argument of a program on Linux; a shell command is a single argument."""
GRADERS = 2
JOBS_PER_MODEL = 2 + GRADERS
"""Inference, scores, and one job per grader."""


@dataclass(frozen=True)
class Plan:
    """Result of a dry run: jobs by rule, and by rule the largest number of case files that a job reads and the longest command."""

    jobs: Counter[str]
    case_files: dict[str, int]
    command_bytes: dict[str, int]

    @property
    def after_imaging(self) -> int:
        """Number of jobs that are not per case."""
        return sum(count for rule, count in self.jobs.items() if rule not in PER_CASE)


def plan_of(folder: Path, cases: int, models: int) -> Plan:
    """Plan a run with the given numbers of cases and models."""
    done = snakemake(write_scale(folder, cases, models), "-n", *SCALE, "--", "results/scale/report.html")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    jobs: Counter[str] = Counter()
    case_files: dict[str, int] = {}
    command_bytes: dict[str, int] = {}
    for block in re.split(r"^(?:local)?rule ", done.stdout, flags=re.MULTILINE)[1:]:
        rule = block.partition(":")[0]
        read = re.search(r"^    input: (.*)$", block, flags=re.MULTILINE)
        command = re.search(r"^Shell command: (.*)$", block, flags=re.MULTILINE)
        assert command, rule
        jobs[rule] += 1
        case_files[rule] = max(case_files.get(rule, 0), read[1].count("/sub-") if read else 0)
        command_bytes[rule] = max(command_bytes.get(rule, 0), len(command[1].encode()))
    return Plan(jobs, case_files, command_bytes)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Plan 30 cases and 20 models."""
    return plan_of(tmp_path_factory.mktemp("scale") / "project", 30, 20)


@pytest.fixture(scope="module")
def fewer_cases(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Plan a third of the cases."""
    return plan_of(tmp_path_factory.mktemp("scale") / "project", 10, 20)


def test_a_case_is_four_jobs(plan: Plan) -> None:
    assert {rule: plan.jobs[rule] for rule in PER_CASE} == dict.fromkeys(PER_CASE, 30)
    assert {plan.case_files[rule] for rule in PER_CASE} == {0, 1}


def test_the_gathers_alone_read_all_cases(plan: Plan) -> None:
    gathers = {rule for rule, files in plan.case_files.items() if files > 1}
    assert gathers == {"describe_scans", "build_review", "gather_audit", "gather_slices", "build_items"}
    assert {plan.case_files[rule] for rule in gathers} == {30}
    assert all(plan.jobs[rule] == 1 for rule in gathers)


def test_after_imaging_jobs_grow_with_models_and_graders_alone(plan: Plan, fewer_cases: Plan, tmp_path: Path) -> None:
    fewer_models = plan_of(tmp_path / "project", 10, 5)
    assert plan.after_imaging == fewer_cases.after_imaging
    assert fewer_cases.after_imaging - fewer_models.after_imaging == (20 - 5) * JOBS_PER_MODEL
    assert plan.after_imaging <= 2000


def test_no_command_grows_with_the_number_of_cases(plan: Plan, fewer_cases: Plan) -> None:
    assert plan.command_bytes == fewer_cases.command_bytes
    assert max(plan.command_bytes.values()) < ARGUMENT_BYTES


def test_a_job_that_asks_a_remote_model_takes_a_slot(tmp_path: Path) -> None:
    done = snakemake(write_scale(tmp_path / "project", 1, 1), "-n", *SCALE, "--", "results/scale/scores/mine/remote00.parquet")
    jobs = re.findall(r"^rule (\w+):\n(?:    (?!resources).*\n)*    resources: (.*)$", done.stdout, flags=re.MULTILINE)
    # each of the two graders has a job, in any order, and another one for planted errors: only the one that calls a model takes a slot
    assert sorted(rule for rule, resources in jobs if "api_slots=1" in resources) == ["grade_responses", "grade_responses", "run_inference"]
    assert "gpu" not in done.stdout
