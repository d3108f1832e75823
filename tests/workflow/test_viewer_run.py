"""A model looks through the phantoms: what it may see is listed, audited, cut on demand, and asked for once."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

import run_inference
from fixtures.viewing import Scripted, action, final
from neuralmedbench.config.workflow import read_run
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_records
from neuralmedbench.models import engine
from neuralmedbench.models.protocol import Call
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.recording.stages import dvc_yaml
from neuralmedbench.records.responses import Response
from neuralmedbench.records.views import ViewRules

pytestmark = pytest.mark.workflow

NAME = "demo-tiny"
VIEWS = 4
VIEWER = {"max_views": VIEWS, "planes": ["axial"], "windows": ["own", "brain"], "zooms": [1, 2]}


@pytest.fixture(scope="module")
def run(finished_run: Path, tmp_path_factory: pytest.TempPathFactory, run_snakemake: Callable[..., CompletedProcess[str]]) -> Path:
    """Give the small run, gone on to the prompts of models that look themselves."""
    folder = tmp_path_factory.mktemp("viewer") / "project"
    shutil.copytree(finished_run, folder, symlinks=True)
    path = folder / f"config/benchmarks/{NAME}.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(config | {"strategies": ["direct", "viewer"], "viewer": VIEWER, "samples": 1}), encoding="utf-8")
    done = run_snakemake(folder, "--configfile", "config/test.yaml", "--", f"data/prompts/{NAME}.parquet", f"data/leaks/{NAME}.json")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return folder


def scroll(call: Call) -> str:
    """Ask for slices up the first scan, then answer."""
    number = sum(message.role == "assistant" for message in call.messages)
    scan = re.search(r"^- (\S+): (\S+) slices 1 to (\d+)", call.messages[1].text, re.MULTILINE)
    if scan is None or number == VIEWS:
        return final("ischemic stroke")
    return action("SHOW", sequence=scan[1], plane=scan[2], slice=1 + int(scan[3]) * number // (VIEWS + 1))


def test_views_are_cut_as_the_audit_allows_and_a_second_run_asks_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run)
    audit = read_audit(Path(f"data/deidentified/{NAME}/audit.json"))
    assert audit.views == ViewRules(planes=("axial",), windows=("own", "brain"), zooms=(1, 2))
    study = read_run([Path("config/test.yaml")])
    assert [len(study.view_volumes(name, "image")) for name in (NAME, "demo-tiny-slices")] == [2, 0], "declared where it is needed"
    stages = {name: stage["matrix"]["benchmark"] for name, stage in yaml.safe_load(dvc_yaml(study))["stages"].items() if "matrix" in stage}
    assert stages["views-test"] == stages["infer_with_views-test"] == [NAME]
    assert stages["infer-test"] == ["demo-tiny-slices"]
    backend = Scripted(scroll)
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(backend))
    files = {"prompts": f"data/prompts/{NAME}.parquet", "items": f"data/items/{NAME}.parquet", "out": "responses.parquet"}
    files |= {"audit": f"data/deidentified/{NAME}/audit.json", "vocabulary": study.config.vocabulary, "ledger": "scripted.jsonl"}
    words = ["--benchmark", NAME, "--model", "local-server", "--max-failed-fraction", "0"]
    words += [word for name, path in files.items() for word in (f"--{name}", path)]

    def viewed() -> list[Response]:
        assert run_inference.main(words) == 0
        return [row for row in read_records(Path("responses.parquet"), Response) if row.strategy == "viewer"]

    rows = viewed()
    assert [(row.state, row.images_sent, len(row.turns)) for row in rows] == [("ok", VIEWS, VIEWS + 1)] * 2
    pictures = {path: path.read_bytes() for path in Path("data/views").rglob("*.png")}
    assert len(pictures) == 2 * VIEWS
    for path in pictures:
        path.unlink()
    asked = len(backend.calls)
    assert viewed() == rows
    assert len(backend.calls) == asked
    assert {path: path.read_bytes() for path in pictures} == pictures
