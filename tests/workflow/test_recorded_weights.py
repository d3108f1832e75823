"""A run that was recorded with weights in the process (`backend: transformers`) is replayed, shown and audited; nothing is asked anew."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from conftest import NMB, ROOT, copy_project, snakemake
from fixtures.imports import put_pairs
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.responses import Response

pytestmark = [pytest.mark.workflow, pytest.mark.long]

RECORDED = ROOT / "tests" / "fixtures" / "local_weights"
LEDGER = "data/ledger/mediconfusion/tiny-llava.jsonl"
RESPONSES = "results/recorded/responses/mediconfusion/tiny-llava.parquet"
PAIRS = 2
RUN = {"benchmarks": ["mediconfusion"], "models": ["tiny-llava"], "graders": ["rubric"], "statistics": {"resamples": 200}}
ARGUMENTS = ("--configfile", "config/recorded.yaml", "--")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay the recorded model and ledger into a project whose folder of weights is absent."""
    folder = tmp_path_factory.mktemp("recorded")
    project = copy_project(folder / "project")
    pairs = put_pairs(folder / "downloaded", PAIRS)
    subprocess.run([*NMB, "benchmark", "import", "mediconfusion", "--from", str(pairs), "--part"], cwd=project, check=True)
    (project / "config" / "recorded.yaml").write_text(yaml.safe_dump(RUN), encoding="utf-8")
    shutil.copy(RECORDED / "tiny-llava.yaml", project / "config" / "models")
    (project / LEDGER).parent.mkdir(parents=True)
    shutil.copy(RECORDED / "tiny-llava.jsonl", project / LEDGER)
    return project


def test_a_recorded_run_is_replayed_shown_and_audited(project: Path) -> None:
    done = snakemake(project, *ARGUMENTS, "results/recorded/report.html")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    assert (project / LEDGER).read_bytes() == (RECORDED / "tiny-llava.jsonl").read_bytes()
    entries = {entry["key"]: entry for entry in map(json.loads, (project / LEDGER).read_text(encoding="utf-8").splitlines())}
    rows = read_records(project / RESPONSES, Response)
    assert {key for row in rows for key in row.call_keys} == entries.keys()
    assert [row.text for row in rows] == [entries[row.call_keys[-1]]["text"] for row in rows]
    assert "Tiny LLaVA" in (project / "results" / "recorded" / "report.html").read_text(encoding="utf-8")
    words = [*NMB, "run", "audit", "--configfiles", "config/recorded.yaml"]
    audit = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    assert (audit.returncode, "nothing found" in audit.stdout) == (0, True), audit.stdout + audit.stderr


def test_what_would_be_asked_is_refused_with_the_lines_to_write(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(project, folder)
    lines = (folder / LEDGER).read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / LEDGER).write_text("".join(lines[1:]), encoding="utf-8")
    done = snakemake(folder, "--force", *ARGUMENTS, RESPONSES)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "model tiny-llava: `backend: transformers` replays recorded answers and asks nothing" in said
    assert "engine: transformers" in said
    check = [*NMB, "run", "check", "--configfiles", "config/recorded.yaml"]
    (folder / LEDGER).unlink()
    assert subprocess.run(check, cwd=folder, capture_output=True, check=False).returncode == ConfigError.exit_code
