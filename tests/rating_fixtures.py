"""A made-up study with the prompts that its answers belong to, from which rating rounds are made."""

from __future__ import annotations

from pathlib import Path

import yaml

from conftest import ROOT
from neuralmedbench.files.cases import CASE_COLUMNS
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.ratings.exports import Form, read_form
from neuralmedbench.records.items import Item
from neuralmedbench.records.requests import Request, RequestImage, RequestTurn
from tables_fixtures import DEPTH, write_study

MODELS = ("alpha", "beta")
SENT = "{notes}\n{record}\nQuestion: {question}"


def write_rated_study(root: Path, *, patients: int = 4, hostile: bool = False) -> None:
    """Write a study of two models on the depth benchmark, ready for `read_run` and `rated_answers`."""
    write_study(root, models=MODELS, patients=patients, hostile=hostile)
    (root / "config" / "config.yaml").write_text(yaml.safe_dump({"benchmarks": [DEPTH], "models": list(MODELS), "graders": ["rubric"]}))
    (root / "config" / "benchmarks" / f"{DEPTH}.cases.tsv").write_text("\t".join(CASE_COLUMNS) + "\n")
    items = read_records(root / "data" / "items" / f"{DEPTH}.parquet", Item)
    write_prompts(root, [request(one) for one in items])


def write_prompts(root: Path, requests: list[Request]) -> None:
    write_records(root / "data" / "prompts" / f"{DEPTH}.parquet", Request, requests, key=lambda row: (row.item_id, row.arm))


def request(item: Item) -> Request:
    """Give what was sent for an item under the arm `full`."""
    images = tuple(
        RequestImage(path=image.path, sha256=image.sha256, label=f"{image.sequence}, {image.plane}", volume_sha256=image.volume_sha256)
        for image in item.images
    )
    text = SENT.format(notes=item.notes, record=item.record, question=item.question)
    return Request(
        item_id=item.item_id, case_id=item.case_id, patient_id=item.patient_id, benchmark=item.benchmark, arm="full", strategy="direct",
        request_id="0" * 64, runner=item.runner, system="You read head scans.", turns=(RequestTurn(text=text, images=images),),
        answer_schema="", samples=5,
    )  # fmt: skip


def form(**changes: object) -> Form:
    """Give the project's form with other settings of a round."""
    whole = read_form(ROOT / "config" / "rating.yaml")
    return whole.model_copy(update={"rounds": whole.rounds.model_copy(update=changes)})
