from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import NMB, ROOT
from fixtures.imports import PAIR, imported, picture_bytes, put
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Runner


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """MediConfusion as published: one pair, its pictures fetched."""
    return put(
        tmp_path / "set",
        {"dataset.json": {"7": PAIR}, "images/p-1.jpg": picture_bytes(1, "JPEG"), "images/p-2.jpg": picture_bytes(2, "JPEG")},
    )


def test_a_pair_becomes_two_items_that_know_of_each_other_and_have_opposite_answers(folder, tmp_path):
    record, made = imported("mediconfusion", folder, tmp_path)
    assert (record.found, record.imported, record.images, record.expected) == (2, 2, 2, 352)
    assert [item.pair_id for item in made.items] == ["7", "7"]
    assert {item.runner for item in made.items} == {Runner.CHOICE}
    assert [row.choice for row in made.gold] == ["A", "B"]
    assert [row.answer for row in made.gold] == ["The left side", "The right side"]
    assert made.items[0].images[0].image_id != made.items[1].images[0].image_id


def test_another_number_of_questions_than_were_published_is_refused_unless_a_part_is_wanted(folder, tmp_path):
    with pytest.raises(DataError, match=r"published with 352 questions, found 2; .*--part"):
        imported("mediconfusion", folder, tmp_path, part=False)
    assert not (tmp_path / "questions").exists()


def test_a_wrong_letter_and_an_absent_picture_are_refused_by_row_and_the_rest_goes_on(folder, tmp_path):
    put(folder, {"dataset.json": {"7": PAIR, "8": {**PAIR, "im_1_correct": "C", "im_2_local": "gone"}}})
    record, made = imported("mediconfusion", folder, tmp_path)
    assert (record.found, record.imported) == (4, 2)
    assert [(row.where, row.reason.partition(";")[0], row.found) for row in record.refused] == [
        ("dataset.json, row 2, question 1", "the right answer is not one of A to B, nor the text of an option", "'C'"),
        (
            "dataset.json, row 2, question 2",
            "a picture is not there, below the folder of the data set or beside its table",
            "'images/gone.jpg'",
        ),
    ]
    assert len(made.items) == 2


def test_a_missing_column_is_told_with_the_columns_that_were_found(folder, tmp_path):
    put(folder, {"dataset.json": {"7": {key: value for key, value in PAIR.items() if key != "option_A"}}})
    with pytest.raises(DataError, match=r"dataset\.json, row 1, id dataset-00001: the column 'option_A' is missing; found .*option_B"):
        imported("mediconfusion", folder, tmp_path)


def test_a_folder_without_the_files_is_told_what_it_needs_and_what_it_holds(tmp_path):
    put(tmp_path / "set", {"readme.txt": "x"})
    with pytest.raises(DataError, match=r"expected dataset\.json or \*/dataset\.json in the folder, found readme\.txt"):
        imported("mediconfusion", tmp_path / "set", tmp_path)


def test_the_command_writes_tables_pictures_and_a_yaml_and_prints_the_counts(folder, tmp_path):
    for suffix in ("yaml", "py"):
        name = f"config/mappings/mediconfusion.{suffix}"
        put(tmp_path, {name: (ROOT / name).read_bytes()})
    command = [*NMB, "benchmark", "import", "mediconfusion", "--from", str(folder), "--part"]
    places = ["--config", str(tmp_path / "config"), "--data", str(tmp_path / "data")]
    done = subprocess.run([*command, *places], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "mediconfusion: 352 published, 2 found, 2 imported, 0 refused, 2 pictures, 0 without an answer" in done.stdout
    assert (tmp_path / "config" / "benchmarks" / "mediconfusion.yaml").is_file()
    assert sorted(path.name for path in (tmp_path / "data" / "questions" / "mediconfusion").iterdir()) == [
        "answers.jsonl",
        "disclosures.jsonl",
        "images.csv",
        "import.json",
        "questions.jsonl",
    ]
    again = subprocess.run([*command, *places], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "exists and is unchanged" in again.stdout
