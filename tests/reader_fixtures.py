"""A small made-up benchmark with a question of every runner and family, as readers answer it: items, prompts, pictures, audit."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from conftest import ROOT
from neuralmedbench.benchmarks.neurovlm import answer_schema
from neuralmedbench.config.load import load_model
from neuralmedbench.config.workflow import read_run
from neuralmedbench.estimates.intervals import Settings
from neuralmedbench.files.cases import CASE_COLUMNS, write_audit, write_pictures
from neuralmedbench.files.json_files import write_json, write_json_record
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.readers import asked_of
from neuralmedbench.ratings.answering.rounds import Asked, FrozenAnswers, freeze_answers
from neuralmedbench.ratings.answering.settings import AnswerSettings
from neuralmedbench.ratings.folders import write_round
from neuralmedbench.recording.asked_items import asked_items
from neuralmedbench.records.answer_leaks import AnswerLeaks
from neuralmedbench.records.case import Audit, PictureManifest
from neuralmedbench.records.items import Family, Gold, GoldFields, Item, ItemImage, Lesion, Level, Runner, Turn
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, Rating, Score, SimilarityRow
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.tables.study import Study, read_study
from prompt_fixtures import OPTIONS, asked, open_question, picture
from scoring_fixtures import VOCABULARY_FILE, vocabulary

ROUND, MODEL = "h01", "zeta"
ANSWER = "acute ischaemic stroke"
SECRET = "0c"
DIALOGUE = "talk"


def items(folder: Path) -> list[Item]:
    """Give one item of each kind, each of a case of its own but the last, with pictures that are there."""

    def of(name: str, **changes: object) -> Item:
        images = (_picture(folder, name, "z10"), _picture(folder, name, "z20", label="Figure B"))
        return open_question(name, f"p-{name}", **{"images": images, "question": "What is the most likely diagnosis?", **changes})

    talk = of(DIALOGUE, runner=Runner.DIALOGUE, family=Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIALOGUE, notes="", record="")
    ids = tuple(image.image_id for image in talk.images)
    turns = (
        Turn(reveal="A man of 70 years cannot speak since this morning.", question="What do you think of?"),
        Turn(reveal="The pictures are there now.", question="What is the most likely diagnosis?", image_ids=ids),
    )
    ddx = of("ddx", family=Family.DIFFERENTIAL_DIAGNOSIS)
    return [
        ddx,
        of("lesion", family=Family.LESION_RECOGNITION),
        of("why", family=Family.RATIONALE_GENERATION, level=Level.COMPLEX),
        replace(talk, turns=turns),
        of("choice", family=Family.QUESTION_ANSWERING, runner=Runner.CHOICE, options=OPTIONS, level=Level.NONE),
        of("free", family=Family.QUESTION_ANSWERING, level=Level.NONE),
        of("fields", family=Family.CLASSIFICATION, runner=Runner.STRUCTURED, level=Level.NONE, answer_schema=answer_schema()),
        replace(ddx, item_id="b/ddx-2", family=Family.RATIONALE_GENERATION, given=ANSWER),
    ]


def _picture(folder: Path, case: str, name: str, label: str = "") -> ItemImage:
    from PIL import Image

    path = Path("data") / "slices" / "b" / f"{case}-{name}.png"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (48, 40), sum(case.encode()) % 200 + len(label)).save(folder / path)
    digest = hashlib.sha256((folder / path).read_bytes()).hexdigest()
    return replace(picture(name, label=label), path=path.as_posix(), sha256=digest, volume_sha256="0" * 64)


def gold_of(item: Item) -> Gold:
    """Give what is right."""
    return Gold(
        item_id=item.item_id,
        answer=ANSWER,
        choice="A" if item.options else "",
        lesion=Lesion(location="insula", side="left", behaviour={}) if item.family is Family.LESION_RECOGNITION else None,
        fields=GoldFields(modality="MRI", diagnosis_class="stroke") if item.answer_schema else None,
    )


def requests_of(rows: list[Item], form: str = "checklist") -> list[Request]:
    """Give what models are sent, with an arm and a strategy more than readers are asked, five samples each."""
    return list(asked(rows, arms=["full", "no_image"], strategies=["direct", "cot"], answer_form=form, samples=5).values())


def write_asked(root: Path) -> list[Item]:
    """Write the benchmark `b` as the workflow leaves it before inference."""
    rows = items(root)
    write_records(root / "data/items/b.parquet", Item, rows, key=lambda row: row.item_id)
    write_records(root / "data/gold/b.parquet", Gold, [gold_of(row) for row in rows], key=lambda row: row.item_id)
    write_records(root / "data/prompts/b.parquet", Request, requests_of(rows), key=lambda row: (row.item_id, row.arm, row.strategy))
    audit = Audit(benchmark="b", profile="pseudonymised", kind="phantom", state="passed", checks={}, covered={"0" * 64: "c"}, score=())
    write_audit(root / "data/deidentified/b/audit.json", audit)
    common = {"title": "B", "kind": "pictures", "axis": "depth", "source": "s", "answers": "a.csv", "subjects": "phantom", "private": False}
    run = {"benchmarks": ["b"], "models": [MODEL], "graders": ["rubric"], "vocabulary": VOCABULARY_FILE.as_posix()}
    model = {"title": "Zeta VLM", "backend": "builtin", "id": "fusion", "revision": "1"}
    files = {
        "benchmarks/b.yaml": common,
        "config.yaml": run,
        f"models/{MODEL}.yaml": model,
        "graders/rubric.yaml": {"title": "Rubric", "kind": "rubric"},
    }
    for path, value in files.items():
        (root / "config" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "config" / path).write_text(yaml.safe_dump(value))
    (root / "config/benchmarks/b.cases.tsv").write_text("\t".join(CASE_COLUMNS) + "\n")
    return rows


def questions(root: Path) -> list[Asked]:
    """Give what a round may draw of the benchmark."""
    return asked_items(read_run(folder=root / "config"), tuple(Family), root)


def make_round(root: Path, **settings: object) -> tuple[Path, FrozenAnswers]:
    """Freeze a round of all questions and write it."""
    values = AnswerSettings.model_validate({"items": 20, "readers": 1, "once_per_case": False, **settings})
    frozen = freeze_answers(ROUND, values, questions(root), root=root, secret=SECRET)
    folder = root / "data" / "ratings" / ROUND
    write_round(folder, frozen)
    return folder, frozen


def filled(item: Item, turn: int = 0) -> dict[str, Any]:
    """Give what a reader fills in."""
    empty: dict[str, Any] = {"texts": {}, "candidates": [], "choice": "", "fields": {}, "confidence": 0.7}
    stroke = {"name": "Acute ischaemic stroke", "for": "bright | on DWI", "against": "no: history"}
    if item.runner is Runner.CHOICE:
        return {**empty, "choice": "A"}
    if item.runner is Runner.STRUCTURED:
        return {**empty, "fields": {"modality": "MRI", "sequence": None, "plane": "axial", "class": "stroke", "subtype": None}}
    if item.family is Family.QUESTION_ANSWERING:
        return {**empty, "texts": {"ANSWER": "A stroke\nof the left insula."}}
    if item.family is Family.LESION_RECOGNITION:
        return {**empty, "candidates": [stroke], "texts": {"LOCATION": "insula", "SIDE": "left", "FINDINGS": "A bright area."}}
    if item.runner is Runner.DIALOGUE and turn == 0:
        return {**empty, "candidates": [{"name": "Glioma"}], "texts": {"FINDINGS": "Aphasia."}}
    second = {"name": "Glioma: high grade - left", "for": "", "against": "sudden"}
    return {**empty, "candidates": [stroke, second], "texts": {"SEEN": "MRI; FLAIR", "SIDE": "left", "RATIONALE": "It\nfits."}}


def export_of(frozen: FrozenAnswers, rows: list[Item], reader: int = 0) -> dict[str, Any]:
    """Give a complete export of a simulated reader."""
    packet = frozen.key.packets[reader]
    by_id = {row.item_id: row for row in rows}
    entries = []
    for place, opaque in enumerate(packet.order, start=1):
        item = by_id[packet.items[opaque].item_id]
        turns = [
            {"status": "answered", "locked": turn + 1 < len(item.turns), "answer": filled(item, turn), "seconds_active": 30 + turn}
            for turn in range(max(1, len(item.turns)))
        ]
        entries.append({"item_id": opaque, "position": place, "turns": turns})
    return {
        "schema": "neuralmedbench.answers/1",
        "packet_id": packet.packet_id,
        "packet_sha256": packet.packet_sha256,
        "rater": {"id": packet.rater, "role": "neurologist", "years": 7, "simulated": True},
        "started": "2026-01-01T08:00:00Z",
        "exported": "2026-01-01T09:00:00Z",
        "complete": True,
        "items": entries,
    }


def put_export(folder: Path, export: dict[str, Any], name: str = "answers.json") -> Path:
    """Carry an export into the folder of its round."""
    write_json(folder / name, json.loads(json.dumps(export)))
    return folder / name


def write_results(root: Path, responses: dict[str, list[Response]]) -> Study:
    """Score the responses of models as the workflow does, and give the run that tables are made of."""
    items_of = {row.item_id: row for row in read_records(root / "data/items/b.parquet", Item)}
    gold = {row.item_id: row for row in read_records(root / "data/gold/b.parquet", Gold)}
    for name, rows in responses.items():
        grades = grade_with_rubric(rows, items_of, gold, vocabulary(), grader="rubric")
        scores = score_responses(rows, items_of, gold, [grades], vocabulary=vocabulary())
        results = root / "results"
        write_records(results / f"responses/b/{name}.parquet", Response, rows, key=response_key)
        write_records(results / f"scores/b/{name}.parquet", Score, scores, key=response_key)
        write_records(results / f"grades/b/{name}/rubric.parquet", Grade, grades, key=lambda row: (*response_key(row), row.criterion))
    write_records(root / "results/similarity/b.parquet", SimilarityRow, [], key=response_key)
    write_records(root / "results/ratings/ratings.parquet", Rating, [], key=response_key)
    write_pictures(
        root / "data/deidentified/b/pictures.json", PictureManifest(benchmark="b", stage="deidentify", source_sha256="0" * 64, pictures=())
    )
    write_json_record(root / "data/leaks/b.json", AnswerLeaks(benchmark="b", items=len(items_of), leaking=0, leaks=()))
    for name in ("rating.yaml", "readiness.yaml"):
        shutil.copyfile(ROOT / "config" / name, root / "config" / name)
    return read_study(root, ["b"], list(responses), ["rubric"], vocabulary=VOCABULARY_FILE, settings=Settings(resamples=200))


def responses_of_reader(root: Path, name: str) -> list[Response]:
    """Give what inference makes of a reader's ledger."""
    model = load_model(root / f"config/models/{name}.yaml")
    requests = asked_of(model, read_records(root / "data/prompts/b.parquet", Request))
    ledger = root / f"data/ledger/b/{name}.jsonl"
    return answer_requests(requests, model, name=name, ledger=ledger, destinations=("local",), max_failed_fraction=None)
