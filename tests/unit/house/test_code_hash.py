"""The hash of a command covers the modules that it reaches, also from inside functions, and their data files."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.config import code_hash as module
from neuralmedbench.config.code_hash import code_hash, environment_files, reached_files


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """Write a command that reaches one module at the top, one inside a function, one with data, and the exempt ones."""
    files = {
        "cut.py": "from neuralmedbench.a.top import x\nfrom neuralmedbench.runtime.commands import run_command\n\n"
        "def main():\n    from neuralmedbench.b import lazy\n    import numpy\n",
        "neuralmedbench/__init__.py": "",
        "neuralmedbench/errors.py": "",
        "neuralmedbench/runtime/__init__.py": "",
        "neuralmedbench/runtime/commands.py": "",
        "neuralmedbench/a/__init__.py": "",
        "neuralmedbench/a/top.py": "from neuralmedbench.errors import E\n",
        "neuralmedbench/b/__init__.py": "",
        "neuralmedbench/b/lazy.py": "from neuralmedbench.c.deep import y\n",
        "neuralmedbench/b/table.yaml": "a: 1\n",
        "neuralmedbench/b/patients/one.yaml": "a: 1\n",
        "neuralmedbench/b/own/__init__.py": "",
        "neuralmedbench/b/own/table.yaml": "a: 1\n",
        "neuralmedbench/c/__init__.py": "",
        "neuralmedbench/c/deep.py": "from .beside import y\nfrom . import also\n\ndef f():\n    from ..b import far\n    from ..e.inner import z\n",
        "neuralmedbench/c/beside.py": "",
        "neuralmedbench/c/also.py": "",
        "neuralmedbench/b/far.py": "",
        "neuralmedbench/e/__init__.py": "from .face import w\n",
        "neuralmedbench/e/face.py": "",
        "neuralmedbench/e/inner.py": "from .. import e\n",
        "neuralmedbench/d/other.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "scripts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "40_slices.smk").write_text(
        'rule other:\n    conda:\n        "../envs/other.yaml"\n\n\nrule cut:\n    params:\n        x=1,\n    conda:\n        "../envs/imaging.yaml"\n'
    )
    (tmp_path / "envs").mkdir()
    for name in ("imaging", "other"):
        (tmp_path / "envs" / f"{name}.yaml").write_text("dependencies: []\n")
    return tmp_path / "scripts"


def digest_after(scripts: Path, name: str) -> bool:
    """Return True if an edit of a file changes the hash of the command."""
    for function in (module.code_hash, module._content, module._imports, module._data_files):
        function.cache_clear()
    before = code_hash(scripts, "cut")
    (scripts / name).write_text((scripts / name).read_text() + "# edited\n")
    for function in (module.code_hash, module._content, module._imports, module._data_files):
        function.cache_clear()
    return code_hash(scripts, "cut") != before


@pytest.mark.parametrize(
    "name",
    [
        "cut.py",
        "neuralmedbench/a/top.py",
        "neuralmedbench/b/lazy.py",
        "neuralmedbench/c/deep.py",
        "neuralmedbench/b/table.yaml",
        "neuralmedbench/b/patients/one.yaml",
    ],
)
def test_an_edit_of_what_is_reached_changes_the_hash(scripts: Path, name: str) -> None:
    assert digest_after(scripts, name)


@pytest.mark.parametrize(
    "name",
    [
        "neuralmedbench/errors.py",
        "neuralmedbench/runtime/commands.py",
        "neuralmedbench/d/other.py",
        "../envs/other.yaml",
        "neuralmedbench/b/own/table.yaml",
    ],
)
def test_an_edit_of_what_computes_nothing_or_is_not_reached_changes_nothing(scripts: Path, name: str) -> None:
    assert not digest_after(scripts, name)


@pytest.mark.parametrize("name", ["c/beside", "c/also", "b/far", "e/inner", "e/__init__", "e/face"])
def test_an_edit_of_what_is_reached_by_a_relative_import_changes_the_hash(scripts: Path, name: str) -> None:
    assert digest_after(scripts, f"neuralmedbench/{name}.py")


@pytest.mark.parametrize(
    "text",
    [
        "import neuralmedbench.d.other",
        "from neuralmedbench.d import (\n    x,  # why\n    other,\n)",
        "def f():\n    from neuralmedbench.d import other  # late\n",
        "if True: from neuralmedbench.d import other",
        "import os; from neuralmedbench.d import other",
        "from neuralmedbench.d \\\n    import other",
        "from neuralmedbench.d import (x,  # (as in\n    other)",
        "x = 1\ntry:\n\tfrom neuralmedbench.d import other\nexcept ImportError:\n\tpass\n",
        '"""The words that may\nimport more than one line say.\n"""\nfrom neuralmedbench.d import other',
    ],
)
def test_an_import_is_found_in_whatever_form_it_is_written(scripts: Path, text: str) -> None:
    (scripts / "neuralmedbench/a/top.py").write_text(f'"""Two words: how to import."""\n{text}\n')
    assert digest_after(scripts, "neuralmedbench/d/other.py")
    (scripts / "neuralmedbench/a/top.py").write_text(f"{text}\n")
    assert digest_after(scripts, "neuralmedbench/d/other.py")


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.long)])
def test_imports_that_are_picked_by_pattern_are_those_of_the_whole_file(step: int) -> None:
    """Of files in which nothing else says `import`, so that none can be missed, every tenth: to parse all takes seconds."""
    for number, path in enumerate(sorted((ROOT / "scripts").rglob("*.py"))):
        text = path.read_text(encoding="utf-8")
        if number % step and not re.search(r"\bimport\b", module.STATEMENT.sub("", text)):
            continue
        whole = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert sorted(map(ast.unparse, module.import_statements(text))) == sorted(map(ast.unparse, whole)), path


def test_the_hash_does_not_depend_on_where_the_project_lies(scripts: Path, tmp_path: Path) -> None:
    shutil.copytree(scripts.parent, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("elsewhere"))
    assert code_hash(scripts, "cut") == code_hash(tmp_path / "elsewhere" / "scripts", "cut")


def test_every_rule_with_a_command_has_an_environment() -> None:
    text = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    rules = {path.stem for path in (ROOT / "scripts").glob("*.py") if f"rule {path.stem}:" in text}
    assert [rule for rule in sorted(rules) if not environment_files(ROOT, rule)] == []


def test_the_grade_records_do_not_reach_the_imaging_stages() -> None:
    for command in ("normalise_case", "cut_slices", "deidentify_case"):
        assert not [path for path in reached_files(ROOT / "scripts", command) if path.name == "scores.py"]


def test_an_edit_of_a_baseline_or_of_what_it_knows_does_not_replan_the_phantoms() -> None:
    commands = [path.stem for path in (ROOT / "scripts").glob("*.py")]
    reach = {command for command in commands if any("baselines" in path.parts for path in reached_files(ROOT / "scripts", command))}
    assert {"run_inference", "grade_responses"} <= reach
    assert not reach & {"generate_phantom", "cut_demo_pictures", "gather_answers", "ingest_case", "build_tables"}


def test_an_edit_of_the_columns_of_the_tables_replans_what_reads_them_and_asks_no_model() -> None:
    commands = [path.stem for path in (ROOT / "scripts").glob("*.py")]
    columns = ROOT / "scripts/neuralmedbench/records/result_columns/columns.json"
    reach = {command for command in commands if columns in reached_files(ROOT / "scripts", command)}
    assert reach == {"build_tables", "draw_figures", "build_report", "compare_published", "export_results"}
