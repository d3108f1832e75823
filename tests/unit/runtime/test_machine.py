"""How many jobs fit on this machine: by affinity, control groups and memory, in versions 1 and 2."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from conftest import ROOT
from neuralmedbench.runtime import machine


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a process with 8 cores and 16 GB, in the control groups of a container: one of each version."""
    (tmp_path / "cgroup").write_text("4:memory:/box/job\n3:cpu,cpuacct:/box/job\n0::/slice/job\n", encoding="utf-8")
    monkeypatch.setattr(machine, "GROUPS_OF_PROCESS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=16_000_000_000))
    return tmp_path / "groups"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n", encoding="utf-8")


def test_without_limits_the_machine_may_be_used_as_the_affinity_says(groups: Path) -> None:
    write(groups / "slice" / "cpu.max", "max 100000")
    write(groups / "cpu" / "box" / "cpu.cfs_quota_us", "-1")
    write(groups / "cpu" / "box" / "cpu.cfs_period_us", "100000")
    write(groups / "memory" / "memory.limit_in_bytes", "9223372036854771712")
    write(groups / "slice" / "memory.max", "max")
    assert (machine.usable_cores(), machine.usable_memory_mb()) == (8, 14_400)


@pytest.mark.parametrize(
    "files",
    [
        {"slice/cpu.max": "250000 100000", "slice/memory.max": "4000000000"},
        {"cpu/box/job/cpu.cfs_quota_us": "250000", "cpu/box/job/cpu.cfs_period_us": "100000", "memory/memory.limit_in_bytes": "4000000000"},
    ],
    ids=["version 2", "version 1"],
)
def test_a_limit_of_any_control_group_above_the_process_counts(groups: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        write(groups / name, text)
    assert (machine.usable_cores(), machine.usable_memory_mb()) == (2, 3600)


def test_half_a_core_is_one_job(groups: Path) -> None:
    write(groups / "cpu.max", "50000 100000")
    assert machine.usable_cores() == 1


def test_no_rule_requests_more_than_the_limit_that_the_smallest_machine_gets() -> None:
    """Snakemake refuses a job that requests more than the limit, instead of running it alone."""
    rules = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "rules").glob("*.smk")))
    (largest,) = map(int, re.findall(r"LARGEST_REQUEST_MB = (\d+)", rules))
    fixed = [int(number) for line in re.findall(r"mem_mb=(.*(?:\n +\d.*)?)", rules) for number in re.findall(r"\b\d{3,}\b", line)]
    assert len(fixed) > 25
    assert max(fixed) == largest
    assert all(float(each) <= 1 for each in re.findall(r"mb_of_cases\(wildcards, \d+, ([\d.]+)\)", rules))


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="affinity is a notion of Linux")
def test_the_makefile_starts_as_many_jobs_as_there_are_cores(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nmb").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/scripts exec {sys.executable} -m neuralmedbench "$@"\n')
    (tmp_path / "bin" / "nmb").chmod(0o755)
    command = ["make", "-n", "-o", "setup", f"VENV={tmp_path}", "report"]
    plan = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert f"snakemake --cores {machine.usable_cores()} " in plan
