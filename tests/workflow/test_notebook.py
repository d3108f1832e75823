"""The notebook on results runs on a finished run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import ROOT

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def test_every_cell_of_the_notebook_runs(finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    (tmp_path / "results").symlink_to(finished_run / "results" / "test")
    monkeypatch.chdir(tmp_path)
    cells = json.loads((ROOT / "docs" / "notebooks" / "results.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
    names: dict[str, object] = {}
    for text in code:
        exec(compile(text, "results.ipynb", "exec"), names)
    assert len(code) >= 4
    assert names["axes"].get_xlabel().startswith("pass@1")
