"""What all tests share: the root of the project, and one copy of it in which the small workflow has run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("Snakefile", "rules", "scripts", "config", "profiles", "envs", "requirements.lock", "dvc.yaml")


@pytest.fixture(scope="session")
def root() -> Path:
    """Root of the project."""
    return ROOT


def copy_project(target: Path) -> Path:
    """Copy what a run needs, without data and results."""
    target.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, target / part)
    return target


def snakemake(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a folder, with the interpreter of the tests first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=folder,
        env={**os.environ, "PATH": path, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )


@pytest.fixture(scope="session")
def run_snakemake() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Give the function that runs Snakemake in a folder."""
    return snakemake


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a fresh copy of the project, nothing run."""
    return copy_project(tmp_path / "project")


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the project in which `config/test.yaml` has run from raw scans to the report; do not change it."""
    folder = copy_project(tmp_path_factory.mktemp("finished") / "project")
    done = snakemake(folder, "--configfile", "config/test.yaml", "--", "results/report.html")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return folder
