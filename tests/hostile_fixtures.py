"""Words that models, graders and titles could send to harm a page; none of them may do more than be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import yaml

from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, Score
from tables_fixtures import DEPTH, HOSTILE

LONG = "word " * 210_000
TURNED = "safe\u202eenil siht snrut\u2066\u200f"
ANSWERS = (
    f"{HOSTILE}<svg onload=\"document.title='owned'\"></svg>]]><!-- -->",
    "[see](javascript:document.title='owned') javascript:alert(1) https://leak.example/x <a href=\"javascript:alert(1)\">x</a>",
    LONG,
    f"{TURNED}\x07\x1b[31m\x85",
    "Z" + "\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307" * 60,
)


def worsen(root: Path, model: str) -> None:
    """Make the first five answers of a model hostile, with what was read from them, their grades and the titles of model and grader."""
    results = root / "results"
    path = results / "responses" / DEPTH / f"{model}.parquet"
    rows = read_records(path, Response)
    first = [row for row in rows if (row.item_id, row.arm) == (rows[0].item_id, "full")][: len(ANSWERS)]
    texts = {response_key(row): text for row, text in zip(first, ANSWERS, strict=True)}
    write_records(path, Response, [replace(row, text=texts.get(response_key(row), row.text)) for row in rows], key=response_key)
    path = results / "scores" / DEPTH / f"{model}.parquet"
    scores = [
        replace(row, differential=(TURNED + ANSWERS[4], HOSTILE)) if response_key(row) in texts else row
        for row in read_records(path, Score)
    ]
    write_records(path, Score, scores, key=response_key)
    path = results / "grades" / DEPTH / model / "rubric.parquet"
    grades = [replace(row, explanation=TURNED + HOSTILE) if response_key(row) in texts else row for row in read_records(path, Grade)]
    write_records(path, Grade, grades, key=lambda row: (response_key(row), row.criterion))
    for kind, name in (("models", model), ("graders", "rubric")):
        yaml_path = root / "config" / kind / f"{name}.yaml"
        value = yaml.safe_load(yaml_path.read_text(encoding="utf-8"))
        yaml_path.write_text(yaml.safe_dump(value | {"title": f"{value['title']} {HOSTILE}{TURNED}"}), encoding="utf-8")
