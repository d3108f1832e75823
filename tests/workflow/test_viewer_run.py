"""A model looks through the phantoms: what it may see is listed, audited, cut on demand, and asked for once."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import grade_responses
import run_inference
import score_responses
from fixtures.commands import settings
from fixtures.viewing import Scripted, action, final
from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.workflow import read_run
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_records
from neuralmedbench.models import engine
from neuralmedbench.models.protocol import Call
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.recording.metadata import read_metadata
from neuralmedbench.recording.stages import dvc_yaml
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.items import Family, Gold, Item, ShownLesion
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.records.scores import PLANTED, Score
from neuralmedbench.records.views import ViewRules
from neuralmedbench.tables.outcomes import gather_outcomes
from neuralmedbench.tables.viewer import DIFFERENCE, ORACLE_DIFFERENCE, ORACLE_ITEMS, viewer_rows

pytestmark = [pytest.mark.workflow, pytest.mark.long]

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
    outs = {next(iter(out)) for out in yaml.safe_load(dvc_yaml([study], read_metadata()))["stages"]["report-test"]["outs"]}
    assert {path for path in outs if path.startswith("data/views/")} == {f"data/views/{NAME}.parquet"}
    backend = Scripted(scroll)
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(backend))
    files = {"prompts": f"data/prompts/{NAME}.parquet", "items": f"data/items/{NAME}.parquet", "out": "responses.parquet"}
    files |= {"audit": f"data/deidentified/{NAME}/audit.json", "vocabulary": study.config.vocabulary, "ledger": "scripted.jsonl"}
    words = ["--benchmark", NAME, "--model", "local-server", *settings(max_failed_fraction=0)]
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


@pytest.fixture(scope="module")
def with_oracle(run: Path, tmp_path_factory: pytest.TempPathFactory, run_snakemake: Callable[..., CompletedProcess[str]]) -> Path:
    """Give the run with one slice a sequence and the arm of oracle slices; the place of the second case's lesion is taken out of its answers."""
    folder = tmp_path_factory.mktemp("oracle") / "project"
    shutil.copytree(run, folder, symlinks=True)
    path, answers = folder / f"config/benchmarks/{NAME}.yaml", folder / f"data/answers/{NAME}.csv"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    del config["lesion_masks"]
    config |= {"arms": ["full", "oracle_slices"], "subjects": "patient"}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    with (folder / "config/test.yaml").open("a", encoding="utf-8") as file:
        file.write("slices:\n  per_sequence: 1\n")
    with answers.open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    with answers.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(first))
        writer.writeheader()
        writer.writerows([first, second | {"lesion_position_mm": "", "lesion_extent_mm": ""}])
    targets = "--configfile", "config/test.yaml", "--", f"data/prompts/{NAME}.parquet", f"data/leaks/{NAME}.json"
    # 1. data of patients: the slices are on the sheet, and nothing is shown before a person has signed
    stopped = run_snakemake(folder, *targets)
    assert stopped.returncode != 0
    assert f"{NAME}: de-identification waits for a person" in stopped.stdout + stopped.stderr
    assert not (folder / f"data/prompts/{NAME}.parquet").exists()
    sheets = [(folder / f"data/reviews/{NAME}/sheets/sub-{case['case_id']}.html").read_text(encoding="utf-8") for case in (first, second)]
    assert ["oracle-flair" in sheet for sheet in sheets] == [True, False]
    # 2. the same as phantoms, whose audit passes
    path.write_text(yaml.safe_dump(config | {"subjects": "phantom"}), encoding="utf-8")
    done = run_snakemake(folder, *targets)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return folder


def test_a_model_that_is_right_only_if_it_sees_the_lesion_gets_0_with_slices_away_from_it_and_1_with_oracle_slices(
    with_oracle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(with_oracle)
    rows = read_records(Path(f"data/slices/{NAME}/slices.parquet"), SliceRow)
    shows = {(row.case_id, row.image_id) for row in read_records(Path(f"data/gold/{NAME}/lesions.parquet"), ShownLesion) if row.shown}
    assert {row.oracle for row in rows if (row.case_id, row.image_id) in shows} == {True}, "the chosen slices are away from it"
    items = [item for item in read_records(Path(f"data/items/{NAME}.parquet"), Item) if item.family == Family.DIFFERENTIAL_DIAGNOSIS]
    gold = {row.item_id: row for row in read_records(Path(f"data/gold/{NAME}.parquet"), Gold)}
    answers = {item.case_id: gold[item.item_id].answer for item in items}
    known = {row.sha256: answers[row.case_id] for row in rows if (row.case_id, row.image_id) in shows}

    def reply(call: Call) -> str:
        """Look at the lowest slice, if it may look; name the diagnosis only if a picture shows the lesion."""
        scan = re.search(r"^- (\S+): (\S+) slices 1 to (\d+)", call.messages[1].text, re.MULTILINE)
        if scan and not any(message.role == "assistant" for message in call.messages):
            return action("SHOW", sequence=scan[1], plane=scan[2], slice=1)
        seen = [known[image.sha256] for message in call.messages for image in message.images if image.sha256 in known]
        return final(seen[0] if seen else "migraine")

    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(Scripted(reply)))
    prompts, data = Path(f"data/prompts/{NAME}.parquet"), {"items": f"data/items/{NAME}.parquet", "gold": f"data/gold/{NAME}.parquet"}
    requests, vocabulary = read_records(prompts, Request), read_run([Path("config/test.yaml")]).config.vocabulary
    (placed,) = {row.case_id for row in rows if row.oracle}
    assert {row.case_id for row in requests if row.arm == "oracle_slices"} == {placed}
    audit = f"data/deidentified/{NAME}/audit.json"
    asked = {
        "benchmark": NAME,
        "model": "local-server",
        "settings": json.dumps({"max_failed_fraction": 0}),
        "prompts": str(prompts),
        "items": data["items"],
    }
    asked |= {"audit": audit, "vocabulary": vocabulary, "ledger": "oracle.jsonl", "out": "oracle.parquet"}
    graded = {"benchmark": NAME, "grader": "rubric", "audit": audit, "responses": "oracle.parquet", "vocabulary": vocabulary, **data}
    graded |= {"ledger": "grader.jsonl", "settings": json.dumps({"max_failed_fraction": 0}), "out": "grades.parquet"}
    scored = {"responses": "oracle.parquet", **data, "grades": "grades.parquet", "planted": f"results/test/planted/{NAME}.parquet"}
    scored |= {
        "planted-grades": f"results/test/grades/{NAME}/{PLANTED}/rubric.parquet",
        "settings": json.dumps({"grader_checks": {"floor": 0.0}}),
    }
    scored |= {"vocabulary": vocabulary, "out": "scores.parquet"}
    for command, options in ((run_inference, asked), (grade_responses, graded), (score_responses, scored)):
        assert command.main([word for name, value in options.items() for word in (f"--{name}", value)]) == 0
    scores = [row for row in read_records(Path("scores.parquet"), Score) if row.family == Family.DIFFERENTIAL_DIAGNOSIS]
    passed = {(row.arm, row.strategy, answers[row.case_id]): row.passed for row in scores}
    benchmark = SimpleNamespace(
        name=NAME,
        outcomes=gather_outcomes(NAME, "depth", items, gold.values(), scores={"local-server": scores}, sampled={"local-server": False}),
        arms=load_arms(Path("config"), ["oracle_slices"], NAME),
        requests=[row for row in requests if row.strategy == "viewer"],
        responses={"local-server": read_records(Path("oracle.parquet"), Response)},
        gold=list(gold.values()),
    )
    models = {"local-server": SimpleNamespace(title="M", max_images=None)}
    study: Any = SimpleNamespace(benchmarks={NAME: benchmark}, models=models, settings=IntervalSettings(resamples=50), readers={})
    found = {(row.measure, row.arm, row.strategy, row.slice): row for row in viewer_rows(study)}
    looks, fixed, oracle = ("full", "viewer"), ("full", "direct"), ("oracle_slices", "direct")
    wanted = {
        (PASS1_PATIENTS, *looks, ""): 0.0,
        (PASS1_PATIENTS, *fixed, ""): 0.0,
        (DIFFERENCE, *looks, ""): 0.0,
        (PASS1_PATIENTS, *looks, ORACLE_ITEMS): 0.0,
        (PASS1_PATIENTS, *fixed, ORACLE_ITEMS): 0.0,
        (PASS1_PATIENTS, *oracle, ORACLE_ITEMS): 1.0,
        (DIFFERENCE, *looks, ORACLE_ITEMS): 0.0,
        (ORACLE_DIFFERENCE, *oracle, ORACLE_ITEMS): 1.0,
    }
    compared = {PASS1_PATIENTS, DIFFERENCE, ORACLE_DIFFERENCE}
    assert {key: row.value for key, row in found.items() if key[0] in compared} == pytest.approx(wanted, abs=1e-9), passed
    assert {key: found[key].n_items for key in wanted} == {key: 1 if key[-1] else 2 for key in wanted}
