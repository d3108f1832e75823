"""Small data sets in the form in which they are published, made by hand, and what their import gives."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conftest import ROOT
from neuralmedbench.benchmarks.adapters.entry import DataSet, Entry
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.built import Built
from neuralmedbench.benchmarks.importing import Places, import_set
from neuralmedbench.benchmarks.questions import build_questions, read_questions
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.records.case import PictureFate, PictureManifest
from neuralmedbench.records.items import Arm, Axis, Criterion, Disclosure, Family, Gold, Level, Runner
from neuralmedbench.records.questions import ImportRecord, Question, QuestionImage, QuestionTurn

PAIR = {
    "im_1": "PMC1_a.jpg",
    "im_2": "PMC2_b.jpg",
    "im_1_local": "p-1",
    "im_2_local": "p-2",
    "cap_1": "",
    "cap_2": "",
    "category_1": ["head"],
    "category_2": ["head"],
    "question": "Which side shows the fluid?",
    "option_A": "The left side",
    "option_B": "The right side",
    "im_1_correct": "A",
    "im_2_correct": "B",
}
"""A pair of MediConfusion."""


def picture_bytes(value: int, form: str = "PNG", size: tuple[int, int] = (12, 10)) -> bytes:
    """Encode a small grey picture, different for every value."""
    from PIL import Image

    pixels = np.add.outer(np.arange(size[1]), np.arange(size[0])) * 4 + value
    pixels = (pixels % 256).astype(np.uint8)
    pixels[0, 0] = (value // 256 + 1) % 256
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format=form)
    return file.getvalue()


def put(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write files below a folder: bytes and text as they are, everything else as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def put_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as the kind of table that the suffix says (.csv, .tsv, .jsonl, .parquet)."""
    import csv

    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)


def imported(name: str, folder: Path, out: Path, *, part: bool = True, **changes: object) -> tuple[ImportRecord, Built]:
    """Import a folder and build its items as if every picture passed de-identification unchanged."""
    places = Places(tables=out / "questions", pictures=out / "raw")
    record = import_set(data_sets(ROOT / "config")[name], folder, "b", places, part=part)
    return record, built(places, data_sets(ROOT / "config")[name].label_policy, **changes)


def built(places: Places, label_policy: str, **changes: object) -> Built:
    """Build the items of an imported folder."""
    asked = read_questions(places.tables)
    kind = "pictures" if asked.files else "text"
    fates = tuple(
        PictureFate(image_id=f"img-{place:06d}", path=f"pictures/img-{place:06d}.png", sha256=f"{place:064d}")
        for place in range(1, len(asked.files) + 1)
    )
    config = BenchmarkConfig.model_validate(
        {
            "title": "T",
            "kind": kind,
            "axis": "breadth",
            "source": str(places.pictures),
            "questions": str(places.tables),
            "subjects": "public",
            "label_policy": label_policy,
            **changes,
        }
    )
    return build_questions(
        "b", config, asked, PictureManifest(benchmark="b", stage="deidentify", source_sha256="x", pictures=fates), places.tables
    )


def put_pairs(folder: Path, count: int) -> Path:
    """Write MediConfusion as published, with so many pairs, and its pictures fetched."""
    rows = {str(pair): {**PAIR, "im_1_local": f"p{pair}-1", "im_2_local": f"p{pair}-2"} for pair in range(count)}
    pictures = {f"images/p{pair}-{side}.jpg": picture_bytes(2 * pair + side, "JPEG", (64, 48)) for pair in range(count) for side in (1, 2)}
    return put(folder, {"dataset.json": rows, **pictures})


def put_mixed(folder: Path, data: Path, *, examples: int) -> ImportRecord:
    """Import a small set as benchmark `mixed` that has something for every arm and strategy.

    Two dialogues (`talk` with a picture, `endless`), a question with letters (`letter`) with answered examples of other patients, and an open
    question that is given its diagnosis (`evidence`).
    """
    shown = tuple(
        Entry(question=_lettered(f"example-{number}", exemplar=True), gold=_right(f"example-{number}")) for number in range(examples)
    )
    given = "He has fallen twice and has restless nights."
    evidence = question(
        "evidence",
        Runner.OPEN,
        question="Which evidence supports it?",
        text=given,
        given="Leigh syndrome",
        images=(QuestionImage(file="c"),),
    )
    told = {Arm.EVIDENCE_SUPPLIED: "Spectroscopy: a lactate peak.", Arm.FINDINGS_DISCLOSED: "Seen: bright putamina."}
    rubric = (
        Criterion(criterion="mentions_1", text="Mentions: wide ventricles.", points=2.0),
        Criterion(criterion="must_not_1", text="Says: a shunt is blocked.", points=-1.0),
    )
    entries = (
        Entry(
            question=_dialogue("talk", "A man of 70 walks badly. He is forgetful.", "No fever. Blood pressure 140/90.", picture="a"),
            gold=Gold(item_id="talk", answer="Normal pressure hydrocephalus", rubric=rubric),
            pictures={"a": picture_bytes(1)},
        ),
        Entry(
            question=_dialogue("endless", "A woman of 30 sees double. No fever.", "She takes warfarin."),
            gold=Gold(item_id="endless", answer="Multiple sclerosis"),
        ),
        Entry(
            question=_lettered(
                "letter", text="A woman of 40 with a headache.", date="2025-03-01", tags=("split:one",), images=(QuestionImage(file="b"),)
            ),
            gold=_right("letter"),
            pictures={"b": picture_bytes(2)},
        ),
        Entry(
            question=evidence,
            gold=Gold(item_id="evidence", answer="Bright putamina fit the lactate peak."),
            pictures={"c": picture_bytes(3)},
            disclosures=tuple(Disclosure(item_id="evidence", arm=arm, text=text) for arm, text in told.items()),
        ),
        *shown,
    )
    home = {"name": "mixed", "title": "Mixed", "home": "h", "licence": "l", "files": "f", "axis": Axis.DEPTH}
    one = DataSet(**home, expected=len(entries), read=lambda _: iter(entries))
    places = Places(tables=data / "questions" / "mixed", pictures=data / "raw" / "mixed")
    return import_set(one, put(folder, {"a": "x"}), "mixed", places)


def question(question_id: str, runner: Runner, **changes: Any) -> Question:
    """Make a question of a patient of its own."""
    family = Family.DIFFERENTIAL_DIAGNOSIS if runner is Runner.DIALOGUE else Family.QUESTION_ANSWERING
    return Question(**({"question_id": question_id, "runner": runner, "family": family, "question": "What is it?"} | changes))


def _lettered(question_id: str, **changes: Any) -> Question:
    return question(question_id, Runner.CHOICE, options=("Stroke", "Glioma", "Abscess"), **changes)


def _right(question_id: str) -> Gold:
    return Gold(item_id=question_id, answer="Glioma", choice="B")


def _dialogue(question_id: str, *reveals: str, picture: str = "") -> Question:
    last = len(reveals) - 1
    turns = [
        QuestionTurn(reveal=text, question="The most likely diagnosis?", images=(0,) if picture and number == last else ())
        for number, text in enumerate(reveals)
    ]
    images = (QuestionImage(file=picture),) if picture else ()
    return question(question_id, Runner.DIALOGUE, level=Level.DIALOGUE, turns=tuple(turns), images=images)
