"""The state of the code that made a page."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import record_provenance
from fixtures.commands import settings
from fixtures.tables import DEPTH, write_study
from neuralmedbench.report.provenance import git_state


def test_the_command_of_a_run_names_no_folder_outside_the_project(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=2)
    out = tmp_path / "results" / "provenance.json"
    words = ["--root", str(tmp_path), "--vocabulary", "config/vocabulary.yaml"]
    words += ["--inputs", f"data/items/{DEPTH}.parquet", "--out", str(out)]
    chosen = settings(benchmarks=[DEPTH], models=["alpha"], statistics={"seed": 1}, configfiles=["../../patients-smith/study.yaml"])
    assert record_provenance.main([*words, *chosen]) == 0
    text = out.read_text(encoding="utf-8")
    assert json.loads(text)["command"].startswith("snakemake --cores 8 ")
    assert "smith" not in text


@pytest.mark.parametrize(
    ("path", "dirty"),
    [("config/study.yaml", False), ("config/models/mine.yaml", False), ("config/config.yaml", True), ("scripts/new.py", True)],
)
def test_a_configuration_that_was_added_is_no_change_of_the_code(tmp_path: Path, path: str, dirty: bool) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("a: 1", encoding="utf-8")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert git_state(tmp_path)["dirty"] is False
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("b: 2", encoding="utf-8")
    assert git_state(tmp_path)["dirty"] is dirty
