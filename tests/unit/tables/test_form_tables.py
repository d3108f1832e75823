"""Topics `fields` and `validity`: every number is counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fixtures.scoring import ITEM, PICTURE_ITEM, RESPONSE, differential, vocabulary
from neuralmedbench.benchmarks.neurovlm_labels import answer_schema
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.items import Gold, GoldFields, Item
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Score
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.tables.fields import field_rows
from neuralmedbench.tables.form import validity_rows
from neuralmedbench.tables.study import Study

PICTURES = [replace(PICTURE_ITEM, item_id=f"demo/{n}", patient_id=f"p{n}", answer_schema=answer_schema()) for n in range(8)]
GOLD = [Gold(item_id=item.item_id, answer="", fields=GoldFields(modality="MRI", diagnosis_class="tumor")) for item in PICTURES]
WHOLE = {"modality": "MRI", "sequence": "T1", "plane": "axial", "class": "tumor", "subtype": "glioma", "confidence": 0.9}


def text(**changes: object) -> str:
    return json.dumps(WHOLE | changes)


def scored(item: Item, answer: str, **changes: Any) -> list[Score]:
    response = replace(RESPONSE, item_id=item.item_id, patient_id=item.patient_id, runner=item.runner, text=answer, **changes)
    gold = {row.item_id: row for row in GOLD}
    return score_responses(cast(list[Response], [response]), {item.item_id: item}, gold, [], vocabulary=vocabulary())


@pytest.fixture(scope="module")
def study() -> Study:
    answers = [
        (text(), {}),  # as asked, right
        (f"Here it is: {text(confidence=0.4)}", {}),  # mended, right
        (text(**{"class": "normal"}), {}),  # wrong, and a glioma in a normal brain
        (text(**{"class": None}, subtype=None), {}),  # abstains
        (text(**{"class": "lymphoma"}, subtype=None), {}),  # a label that is none
        ("I see a tumor.", {}),  # unreadable
        (text(), {"state": ResponseState.TRUNCATED}),  # cut: wrong, whatever it holds
        ("", {"state": ResponseState.FAILED}),  # missing because of us
    ]
    scores = [row for item, (answer, changes) in zip(PICTURES, answers, strict=True) for row in scored(item, answer, **changes)]
    scores += scored(ITEM, differential("glioblastoma")) + scored(ITEM, "A glioblastoma can look like this.", repeat=1)
    scores += [replace(row, arm="no_image") for row in scores]
    benchmark = SimpleNamespace(name="demo", items=[*PICTURES, ITEM], gold=GOLD, outcomes=None, scores={"m": scores, "silent": []})
    return cast(Study, SimpleNamespace(benchmarks={"demo": benchmark}, models=benchmark.scores, settings=IntervalSettings(100, 1, 0.95)))


def test_fields_tell_coverage_from_accuracy(study: Study) -> None:
    rows = {(row.value_of_slice, row.measure): row for row in field_rows(study)}
    assert {field for field, _ in rows} == {"class", "modality"}, "the fields that have a reference"
    measures = {name: row for (field, name), row in rows.items() if field == "class"}
    assert {(row.n_items, row.n_patients) for row in measures.values()} == {(7, 7)}
    assert {name: (row.value, row.n_answers) for name, row in measures.items()} == {
        "accuracy": (pytest.approx(2 / 7), 7),
        "macro_f1": (pytest.approx(2 * 2 / (7 + 2)), 7),  # two hits, seven tumours, two answers that say tumour
        "coverage": (pytest.approx(4 / 7), 7),
        "selective_accuracy": (0.5, 4),
        "abstained": (pytest.approx(1 / 7), 7),
        "out_of_vocabulary": (0.25, 4),
    }
    assert rows["modality", "coverage"].value == pytest.approx(5 / 7)


def test_validity_counts_every_step_of_every_runner(study: Study) -> None:
    rows = validity_rows(study)
    assert {row["model"] for row in rows} == {"m"}
    found = {(row["value_of_slice"], row["measure"]): (row["count"], row["of"]) for row in rows}
    assert found == {
        ("open", "answered"): (2, 2),
        ("open", "parse_strict"): (1, 2),
        ("open", "parse_repaired"): (0, 2),
        ("open", "parse_failed"): (1, 2),
        ("structured", "answered"): (7, 8),
        ("structured", "parse_strict"): (4, 7),
        ("structured", "parse_repaired"): (2, 7),
        ("structured", "parse_failed"): (1, 7),
        ("structured", "parse"): (6, 7),
        ("structured", "required_fields"): (6, 7),
        ("structured", "enums"): (5, 7),
        ("structured", "consistency"): (4, 7),
    }
    assert all(row["share"] == row["count"] / row["of"] for row in rows)


def test_answers_of_thoughts_alone_are_a_count_of_their_own(study: Study) -> None:
    texts = (f"<think>{differential('glioblastoma')}", differential("glioblastoma"), "A glioblastoma can look like this.")
    scores = [row for repeat, answer in enumerate(texts) for row in scored(ITEM, answer, repeat=repeat)]
    benchmark = SimpleNamespace(name="demo", items=[ITEM], gold=GOLD, outcomes=None, scores={"m": scores})
    rows = validity_rows(cast(Study, SimpleNamespace(benchmarks={"demo": benchmark})))
    assert {row["measure"]: row["count"] for row in rows} == {
        "answered": 3,
        "parse_strict": 1,
        "parse_repaired": 0,
        "parse_failed": 2,
        "thoughts_alone": 1,
    }
