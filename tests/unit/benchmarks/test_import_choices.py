"""MedFrameQA, GMAI-MMBench and MedBookVQA in their published form, made by hand."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from fixtures.imports import imported, picture_bytes, put, put_table
from neuralmedbench.benchmarks.adapters.medbookvqa import shown_order
from neuralmedbench.errors import DataError
from neuralmedbench.records.questions import LETTERS, QUESTION_FILES

FRAMES = [picture_bytes(value, "JPEG") for value in (1, 2, 3)]
FRAME_ROW: dict[str, Any] = {
    "question_id": "q-17",
    "system": "Central nervous system",
    "organ": "Brain",
    "keyword": "Glioma",
    "modality": "MRI",
    "video_id": "Ab_c-9",
    "question": "What do the frames show together?",
    "options": ["Cyst", "Glioma", "Abscess", "Bleeding", "Infarct", "Nothing"],
    "reasoning_chain": "The border takes up contrast, so it is B.",
    "correct_answer": "B",
    **{f"image_{place}": {"bytes": frame, "path": f"{place}.jpg"} for place, frame in enumerate(FRAMES, start=1)},
    "image_4": None,
    "image_5": None,
}


def without(row: dict[str, Any], *names: str, **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in names} | changes


def test_frames_of_a_video_become_the_pictures_of_one_question_with_up_to_ten_options(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "data" / "test-00000-of-00001.parquet", [FRAME_ROW])
    record, built = imported("medframeqa", tmp_path / "set", tmp_path)
    (item,), (gold,) = built.items, built.gold
    assert (record.expected, record.found, record.imported, record.images) == (2851, 1, 1, 3)
    assert (len(item.images), len(item.options), gold.choice, gold.answer) == (3, 6, "B", "Glioma")
    assert item.tags == ("system:Central nervous system", "organ:Brain", "modality:MRI", "frames:3")
    assert item.case_id.startswith("video-Ab_c-9")
    assert "Glioma" not in " ".join((*item.tags, item.case_id, item.notes)), "the keyword is the answer"


def test_the_chain_of_reasoning_is_gold_and_no_arm_shows_it(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "test.parquet", [FRAME_ROW])
    _, built = imported("medframeqa", tmp_path / "set", tmp_path)
    assert built.gold[0].rationale == ("The border takes up contrast, so it is B.",)
    assert built.disclosures == ()
    assert "border" not in repr(built.items)


LETTERED = [f"{letter}. {option}" for letter, option in zip(LETTERS, FRAME_ROW["options"], strict=False)]
OTHER_FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "a later upload": ("t.parquet", {"image": [{"bytes": frame, "path": None} for frame in FRAMES], "answer": "B"}),
    "options with their letters": ("t.parquet", {"image": FRAMES, "answer": "(B)", "options": LETTERED}),
    "bytes alone": ("t.parquet", {"image": FRAMES, "answer": "B"}),
    "the authors' code": ("t.json", {"image_path": ["f/1.jpg", "f/2.jpg", "f/3.jpg"], "correct_answer": "B"}),
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_the_other_spellings_of_the_same_row_give_the_same_question(form: str, tmp_path: Path) -> None:
    name, columns = OTHER_FORMS[form]
    row = without(FRAME_ROW, "correct_answer", *(f"image_{place}" for place in range(1, 6)), **columns)
    folder = put(tmp_path / "set", {f"f/{place}.jpg": frame for place, frame in enumerate(FRAMES, start=1)})
    if name.endswith("json"):
        put(folder, {name: [row]})
    else:
        put_table(folder / name, [row])
    put_table(tmp_path / "official" / "t.parquet", [FRAME_ROW])
    imported("medframeqa", folder, tmp_path / "one")
    imported("medframeqa", tmp_path / "official", tmp_path / "two")
    for table in QUESTION_FILES:
        assert (tmp_path / "one" / "questions" / table).read_bytes() == (tmp_path / "two" / "questions" / table).read_bytes(), table


def test_columns_that_were_not_expected_are_told_with_those_that_were_found(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "t.parquet", [without(FRAME_ROW, "correct_answer", solution="B")])
    with pytest.raises(DataError, match=r"none of the columns 'correct_answer', 'answer' exists; found .*solution"):
        imported("medframeqa", tmp_path / "set", tmp_path)
    put_table(tmp_path / "set" / "t.parquet", [without(FRAME_ROW, "image_1", "image_2", "image_3", "image_4", "image_5", frame=FRAMES[0])])
    with pytest.raises(DataError, match=r"no frames; expected the columns image, image_1 to image_5 or image_path, found .*frame"):
        imported("medframeqa", tmp_path / "set", tmp_path)


def test_a_single_frame_that_stands_in_no_list_is_refused(tmp_path: Path) -> None:
    single = without(FRAME_ROW, *(f"image_{place}" for place in range(1, 6)), image={"bytes": FRAMES[0], "path": "1.jpg"})
    put_table(tmp_path / "set" / "t.parquet", [single])
    with pytest.raises(DataError, match="the column of the frames is not a list"):
        imported("medframeqa", tmp_path / "set", tmp_path)


GMAI_ROW = {
    "index": "12",
    "image": base64.b64encode(picture_bytes(4)).decode(),
    "question": "Which modality is this?",
    "A": "MR",
    "B": "CT",
    "C": "X-ray",
    "D": "",
    "E": "",
    "answer": "C",
    "category": "Modality",
    "clinical vqa task": "Disease Diagnosis",
    "department": "Neurosurgery",
    "perceptual granularity": "Image",
    "modality": "MR",
    "original task": "classification",
}


def test_a_picture_in_a_cell_and_the_options_that_are_there_make_a_question(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "GMAI-MMBench_VAL.tsv", [GMAI_ROW, {**GMAI_ROW, "index": "13", "B": "", "D": "PET"}])
    record, built = imported("gmai-mmbench", tmp_path / "set", tmp_path)
    assert (record.imported, record.images) == (2, 1)
    assert [item.options for item in built.items] == [("MR", "CT", "X-ray"), ("MR", "X-ray", "PET")]
    assert [(row.choice, row.answer) for row in built.gold] == [("C", "X-ray"), ("B", "X-ray")], "an empty option moves the letters"
    assert built.items[0].tags == ("task:Disease Diagnosis", "department:Neurosurgery", "granularity:Image", "modality:MR")
    assert built.items[0].label_policy == "none"


def test_rows_of_the_test_tables_have_no_answer_and_a_wrong_letter_is_refused(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "GMAI_mm_bench_TEST_part_1.tsv", [without(GMAI_ROW, "answer")])
    put_table(
        tmp_path / "set" / "GMAI_mm_bench_TEST_part_2.tsv",
        [{**GMAI_ROW, "index": "13", "answer": ""}, {**GMAI_ROW, "index": "14", "answer": "D"}],
    )
    record, built = imported("gmai-mmbench", tmp_path / "set", tmp_path)
    assert (record.found, record.imported, record.without_answer, built.gold) == (3, 2, 2, ())
    assert [(row.where, row.reason) for row in record.refused] == [
        ("GMAI_mm_bench_TEST_part_2.tsv, row 2", "the right letter is not one of A to C; correct the answer of that row")
    ]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("12", "the picture's cell has no picture"),
        ("%" * 200, "a picture in the table is not base64"),
        ("QUJD" * 50, "not a picture, or a damaged one"),
    ],
)
def test_a_cell_that_holds_no_picture_is_refused(cell: str, reason: str, tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "GMAI-MMBench_VAL.tsv", [GMAI_ROW, {**GMAI_ROW, "index": "13", "image": cell}])
    record, _ = imported("gmai-mmbench", tmp_path / "set", tmp_path)
    assert [row.reason for row in record.refused] == [reason]


BOOK_ROW: dict[str, Any] = {
    "_id": "65f0c3",
    "QAtype": "D",
    "Question": "What is the diagnosis?",
    "Answer": "Glioma",
    "Distractors": ["Cyst", "Abscess", "Infarct"],
    "correct_choice": "C",
    "other_choices": ["B", "D", "A"],
    "image_path": "/home/somebody/figures/65f0c3.jpg",
    "LABEL": {
        "Modality": ["Magnetic Resonance Imaging", "MRI"],
        "Anatomy": ["Nervous System", "Central", "Head", "Brain"],
        "Department": ["Neurology", "Neurosurgery"],
    },
}


def test_a_figure_of_a_textbook_has_its_options_in_the_published_order(tmp_path: Path) -> None:
    folder = put(tmp_path / "set", {"data.json": [BOOK_ROW], "figures/65f0c3.jpg": picture_bytes(5, "JPEG")})
    record, built = imported("medbookvqa", folder, tmp_path)
    (item,), (gold,) = built.items, built.gold
    assert (record.expected, record.imported, record.images) == (5000, 1, 1)
    assert item.options == ("Infarct", "Cyst", "Glioma", "Abscess")
    assert (gold.choice, gold.answer) == ("C", "Glioma")
    assert "department:Neurology > Neurosurgery" in item.tags
    assert "task:disease" in item.tags


@pytest.mark.parametrize("letters", [{}, {"correct_choice": "A", "other_choices": ["A", "B", "C"]}, {"correct_choice": "E"}])
def test_without_letters_that_name_an_order_the_order_does_not_know_what_is_right(letters: dict[str, Any]) -> None:
    row = {**without(BOOK_ROW, "correct_choice", "other_choices"), **letters}
    first = shown_order("q", row)
    for place in range(3):
        others = [*row["Distractors"][:place], row["Answer"], *row["Distractors"][place + 1 :]]
        assert shown_order("q", {**row, "Answer": row["Distractors"][place], "Distractors": others}) == first
    places = [shown_order(f"q{number}", row).index("Glioma") for number in range(400)]
    assert all(60 < places.count(place) < 140 for place in range(4)), "the right option is about as often at every place"


def test_letters_of_the_options_are_one_letter_each(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "t.parquet", [FRAME_ROW, {**FRAME_ROW, "question_id": "q-18", "correct_answer": LETTERS[:2]}])
    record, _ = imported("medframeqa", tmp_path / "set", tmp_path)
    assert record.imported == 1
    words = "the right answer is not one of A to F, nor the text of an option; found 2 letters: a question with several right answers has"
    assert [row.reason for row in record.refused] == [f"{words} `runner: structured` and `rule: letters`"]
