"""NeuroVLM-Bench in its published form, with a few pictures for the rebuilt collections."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT
from fixtures.imports import imported, picture_bytes, put, put_table
from fixtures.items import benchmark_config
from neuralmedbench.benchmarks.adapters.neurovlm import DEV, DEV_SHARE, TEST, division, identity, subject_of
from neuralmedbench.benchmarks.neurovlm_labels import read_table
from neuralmedbench.benchmarks.question_items import read_questions
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import CaseMaterial, assemble

COLUMNS = ("dataset", "file_path", "class", "original_class", "subclass", "modality", "modality_subtype", "plane")
TABLE = (
    ("sclerosis", "sclerosis/MS/MS Saggital_crop/S1 (706).png", "multiple sclerosis", "", "", "MRI", "FLAIR", "sagittal"),
    ("sclerosis", "sclerosis/MS/Control Axial_crop/kontrol 30 (4).png", "normal", "", "", "MRI", "FLAIR", "axial"),
    ("sclerosis", "sclerosis/MS/Control Saggital_crop/kontrol 30 (7).png", "normal", "", "", "MRI", "FLAIR", "sagittal"),
    ("aisd", "aisd/image/0226143/024.png", "stroke", "clear acute infarct", "ischemic", "CT", "", "axial"),
    ("aisd", "aisd/image/0226143/025.png", "stroke", "clear acute infarct", "ischemic", "CT", "", "axial"),
    (
        "images-17",
        "images-17/Neurocitoma (Central) T1/neurocitoma (49).jpeg",
        "tumor",
        "Neurocitoma T1",
        "neurocitoma",
        "MRI",
        "T1",
        "axial",
    ),
    ("images-44c", "images-44c/Carcinoma T1C+/a.jpg", "tumor", "carcinoma", "carcinoma", "MRI", "T1C+", ""),
    ("Br35H", "Br35H/yes/y864.jpg", "tumor", "", "", "MRI", "", "axial"),
)
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in TABLE]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the table, every picture but the last, one subset and one example, as a user would."""
    folder = put(tmp_path / "set", {row["file_path"]: picture_bytes(number) for number, row in enumerate(ROWS[:-1])})
    put_table(folder / "image_mapping.csv", ROWS)
    put_table(folder / "subsets" / "subset_1.csv", ROWS[3:6])
    put_table(folder / "few_shot_examples.csv", [ROWS[4]])
    return folder


def test_every_row_is_a_question_or_a_counted_refusal(folder: Path, tmp_path: Path) -> None:
    record, built = imported("neurovlm", folder, tmp_path)
    assert (record.expected, record.found, record.imported, record.images) == (29504, 8, 7, 7)
    assert [(row.where, row.reason) for row in record.refused] == [
        ("image_mapping.csv, row 8", "the picture is not there; rebuild its collection below the folder")
    ]
    gold = {row.item_id: row for row in built.gold}
    tumour = gold[f"b/{identity(ROWS[5]['file_path'])}"]
    assert tumour.fields is not None
    assert (tumour.fields.subtype, tumour.fields.plane, tumour.answer) == ("neurocytoma", "axial", "tumor")
    assert {item.label_policy for item in built.items} == {"none"}


def test_an_example_is_never_asked(folder: Path, tmp_path: Path) -> None:
    _, built = imported("neurovlm", folder, tmp_path)
    example = identity(ROWS[4]["file_path"])
    assert f"b/{example}" not in {item.item_id for item in built.items}
    (question,) = [row for row in read_questions(tmp_path / "questions").questions if row.exemplar]
    assert question.question_id == example
    assert "patient_safe:dev" in question.tags
    (shown,) = built.exemplars
    assert json.loads(shown.answer)["class"] == "stroke"


def test_few_shot_prompts_show_examples_of_other_patients_with_their_whole_answers(folder: Path, tmp_path: Path) -> None:
    _, built = imported("neurovlm", folder, tmp_path)
    config = benchmark_config(arms=["full"], strategies=["direct", "few_shot"], label_policy="none", few_shot=20)
    rows = assemble(built.items, CaseMaterial(exemplars=built.exemplars), config, Templates(ROOT / "config" / "prompts"))
    requests = [row for row in rows if row.strategy == "few_shot"]
    asked = {request.item_id for request in requests}
    assert f"b/{identity(ROWS[3]['file_path'])}" not in asked, "it shows the patient of the only example"
    assert len(asked) == len(built.items) - 1
    assert '"class": "stroke", "subtype": "ischemic", "confidence": 1' in requests[0].turns[0].text
    assert [len(request.turns[0].images) for request in requests] == [2] * len(requests)


def test_published_subsets_are_tags_and_the_patients_of_aisd_are_known(folder: Path, tmp_path: Path) -> None:
    _, built = imported("neurovlm", folder, tmp_path)
    items = {item.item_id.removeprefix("b/"): item for item in built.items}
    aisd, tumour, carcinoma = (items[identity(ROWS[number]["file_path"])] for number in (3, 5, 6))
    assert "split:subset_1" in aisd.tags
    assert "split:subset_1" in tumour.tags
    assert not any(tag.startswith("split:") for tag in carcinoma.tags)
    assert aisd.patient_id != aisd.case_id
    assert "0226143" not in repr(aisd)
    assert "patient_safe:dev" in aisd.tags, "an example shows the same patient"


def test_a_class_does_not_stand_in_an_id(folder: Path, tmp_path: Path) -> None:
    _, built = imported("neurovlm", folder, tmp_path)
    ids = " ".join(f"{item.item_id} {item.case_id}" for item in built.items).lower()
    for word in ("neurocitoma", "carcinoma", "kontrol", "control", "ms ", "yes"):
        assert word not in ids


def test_an_example_that_the_table_does_not_have_and_a_label_that_is_none_are_refused(folder: Path, tmp_path: Path) -> None:
    put_table(folder / "few_shot_examples.csv", [{**ROWS[4], "file_path": "aisd/image/1/1.png"}])
    put_table(folder / "image_mapping.csv", [*ROWS[:7], {**ROWS[0], "file_path": "sclerosis/new.png", "class": "migraine"}])
    put(folder, {"sclerosis/new.png": picture_bytes(77)})
    record, _ = imported("neurovlm", folder, tmp_path)
    reasons = [row.reason for row in record.refused]
    assert reasons[0].startswith("the row: the class is not one of tumor, stroke")
    assert reasons[1] == "the table of the pictures does not have this example"
    assert "migraine" not in str(record)


def test_pictures_of_one_patient_and_equal_pictures_are_on_one_side() -> None:
    pictures = {f"p{number}": (f"picture {number % 900}", f"aisd {number % 300}") for number in range(3000)}
    divided = division(pictures, fixed={})
    for place in (0, 1):
        by_name: dict[str, set[str]] = {}
        for picture, names in pictures.items():
            by_name.setdefault(names[place], set()).add(divided[picture])
        assert all(len(found) == 1 for found in by_name.values())
    assert DEV_SHARE / 2 < sum(side == DEV for side in divided.values()) / len(divided) < DEV_SHARE * 2


def test_a_picture_that_two_patients_share_binds_them_and_the_order_of_the_rows_does_not_matter() -> None:
    pictures = {"a": ("picture 1", "aisd 1"), "b": ("picture 1", "aisd 2"), "c": ("picture 3", "aisd 2"), "d": ("picture 4",)}
    divided = division(pictures, fixed={})
    assert divided["a"] == divided["b"] == divided["c"]
    assert division(dict(reversed(pictures.items())), fixed={}) == divided
    for side in (DEV, TEST):
        assert {picture: found for picture, found in division(pictures, fixed={"a": side}).items() if picture != "d"} == dict.fromkeys(
            "abc", side
        )


def test_only_paths_that_name_somebody_have_a_subject() -> None:
    assert subject_of("aisd", ROWS[3]["file_path"]) == subject_of("aisd", ROWS[4]["file_path"]) == "aisd 0226143"
    assert subject_of("sclerosis", ROWS[1]["file_path"]) == subject_of("sclerosis", ROWS[2]["file_path"]) == "control kontrol 30"
    assert subject_of("sclerosis", ROWS[0]["file_path"]) == ""
    assert subject_of("Br35H", ROWS[7]["file_path"]) == ""


def test_a_path_that_leaves_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    put(tmp_path, {"outside.png": picture_bytes(9)})
    put_table(folder / "image_mapping.csv", [*ROWS[:7], {**ROWS[0], "file_path": "../outside.png"}])
    record, _ = imported("neurovlm", folder, tmp_path)
    assert (record.imported, len(record.refused)) == (7, 1)


def test_a_table_in_another_encoding_or_with_a_row_cut_short_is_one_line(tmp_path: Path) -> None:
    config: Any = SimpleNamespace(label_policy="none", answers=str(tmp_path / "mapping.csv"))
    table = "".join(",".join(row) + "\n" for row in (COLUMNS, *TABLE[:2]))
    (tmp_path / "mapping.csv").write_text(table.replace("Control", "Kontrollgrüße"), encoding="latin-1")
    with pytest.raises(DataError, match=r"^mapping\.csv: not a table in UTF-8"):
        read_table(config, "b")
    (tmp_path / "mapping.csv").write_text(table.removesuffix(",axial\n") + "\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=rf"^mapping\.csv, line 3: expected {len(COLUMNS)} cells as in the first line; complete the row or delete it"
    ):
        read_table(config, "b")
    (tmp_path / "mapping.csv").unlink()
    (tmp_path / "mapping.csv").mkdir()
    with pytest.raises(ConfigError, match=r"is not there or cannot be read; correct `answers`"):
        read_table(config, "b")
