from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from fixtures.imports import imported, picture_bytes, put, put_table
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.items import Family, Level, Runner

QUESTION = "请结合病历和影像进行分析,给出最可能的疾病"
DIAGNOSE = "根据患者的症状和图片,对疾病进行诊断"


def uri(value: int) -> str:
    """Return a PNG labelled as JPEG, as in the release."""
    return f"data:image/jpeg;base64,{base64.b64encode(picture_bytes(value)).decode()}"


def case(number: int, **changes: Any) -> dict[str, Any]:
    """Return a case as in direct-diagnosis.json."""
    asked = [{"question_number": number, "question_text": QUESTION}]
    return {
        "case_id": f"case_{number}",
        "text": "A 71-year-old man, slow for two years.",
        "images": [uri(number)],
        "questions": asked,
        **changes,
    }


def placeholder(number: int) -> dict[str, Any]:
    """Return an empty case as in the release."""
    return case(number, text="", images=[], questions=[{"question_number": number, "question_text": DIAGNOSE}])


DIALOGUE = case(1, questions=[{"question_number": number, "question_text": f"第{number}轮: 最可能的诊断?"} for number in (1, 2, 3)])
FILES = {
    "direct-diagnosis.json": [case(1), case(2, images=[uri(2), uri(3)]), placeholder(16), placeholder(17)],
    "complex-diseases.json": [case(1)],
    "multi-round-dialogue.json": [DIALOGUE],
}
ROW = {
    "level": "direct",
    "case_id": "case_1",
    "question_number": "1",
    "family": "",
    "diagnosis": "Lewy body dementia",
    "aliases": "DLB|dementia with Lewy bodies",
    "differentials": "Alzheimer disease|vascular dementia",
    "findings": "narrow occipital gyri",
    "lesion_location": "",
    "lesion_side": "",
    "rationale": "slow and stiff early|sees people who are not there",
    "turn_leaders": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The release as published: filled cases, empty placeholders, no answers."""
    return put(tmp_path / "set", FILES)


def key(folder: Path, *rows: dict[str, str]) -> None:
    """Add an answer key to the release."""
    put_table(folder / "answer-key.csv", rows)


def test_every_question_is_an_item_and_empty_placeholders_are_refused_and_counted(folder, tmp_path):
    record, made = imported("neural-medbench", folder, tmp_path)
    assert (record.found, record.imported, record.without_answer, record.images) == (6, 4, 4, 3)
    assert [(row.where, row.reason) for row in record.refused] == [
        ("direct-diagnosis.json, case 3", "an empty placeholder of the release: neither text nor pictures"),
        ("direct-diagnosis.json, case 4", "an empty placeholder of the release: neither text nor pictures"),
    ]
    assert [item.item_id for item in made.items] == [
        "b/direct-case_1-q1",
        "b/direct-case_2-q2",
        "b/complex-case_1-q1",
        "b/dialogue-case_1",
    ]
    assert len(made.items[1].images) == 2
    assert {item.level for item in made.items} == {Level.DIRECT, Level.COMPLEX, Level.DIALOGUE}
    assert set(record.sources) == set(FILES)


def test_cases_of_the_same_number_in_two_files_are_two_patients(folder, tmp_path):
    _, made = imported("neural-medbench", folder, tmp_path)
    assert len({item.patient_id for item in made.items}) == 4


def test_a_chinese_question_over_an_english_text_has_both_languages(folder, tmp_path):
    _, made = imported("neural-medbench", folder, tmp_path)
    assert {item.language for item in made.items} == {"zh"}
    assert {item.tags for item in made.items} == {("text_language:en",)}
    assert made.items[0].question == QUESTION


def test_a_picture_with_the_wrong_type_in_its_data_uri_is_stored_as_what_it_is(folder, tmp_path):
    imported("neural-medbench", folder, tmp_path)
    stored = list((tmp_path / "raw").iterdir())
    assert {path.suffix for path in stored} == {".png"}
    assert {path.read_bytes() for path in stored} == {picture_bytes(number) for number in (1, 2, 3)}


def test_several_questions_of_one_case_are_the_rounds_of_a_dialogue(folder, tmp_path):
    _, made = imported("neural-medbench", folder, tmp_path)
    item = made.items[-1]
    assert (item.runner, item.level, item.notes) == (Runner.DIALOGUE, Level.DIALOGUE, "")
    assert [turn.question for turn in item.turns] == [question["question_text"] for question in DIALOGUE["questions"]]
    assert [turn.reveal for turn in item.turns] == [DIALOGUE["text"], "", ""]
    assert [len(turn.image_ids) for turn in item.turns] == [1, 0, 0]


def test_keys_that_are_not_known_are_told_with_those_that_were_found(folder, tmp_path):
    rounds = [{"round": 1, "question_text": "?"}]
    put(folder, {"multi-round-dialogue.json": [case(1, questions=rounds), case(2, diagnosis="x")]})
    record, _ = imported("neural-medbench", folder, tmp_path)
    reasons = [row.reason for row in record.refused]
    assert reasons[-2].endswith("expected question_number, question_text, found question_text, round")
    assert reasons[-1].endswith("expected case_id, text, images, questions, found case_id, diagnosis, images, questions, text")


def test_a_damaged_picture_refuses_its_case_alone(folder, tmp_path):
    put(folder, {"complex-diseases.json": [case(1, images=["data:image/jpeg;base64,@@"]), case(2, images=[uri(5)])]})
    record, made = imported("neural-medbench", folder, tmp_path)
    assert ("complex-diseases.json, case 1", "a picture in the table is not base64") in [(row.where, row.reason) for row in record.refused]
    assert "b/complex-case_2-q2" in [item.item_id for item in made.items]


def test_the_answer_key_gives_gold_family_rubric_and_findings(folder, tmp_path):
    lesion = {**ROW, "level": "complex", "family": "lesion_recognition", "lesion_location": "occipital lobe", "lesion_side": "left"}
    leaders = "stroke|tumour|Lewy body dementia"
    key(folder, ROW, lesion, {**ROW, "level": "dialogue", "question_number": "", "turn_leaders": leaders})
    record, made = imported("neural-medbench", folder, tmp_path)
    assert (record.without_answer, "answer-key.csv" in record.sources) == (1, True)
    gold = {row.item_id: row for row in made.gold}
    direct = gold["b/direct-case_1-q1"]
    assert (direct.answer, direct.aliases) == ("Lewy body dementia", ("DLB", "dementia with Lewy bodies"))
    assert [criterion.criterion for criterion in direct.rubric] == ["mentions_finding_1", "considers_1", "considers_2"]
    assert made.items[2].family is Family.LESION_RECOGNITION
    assert gold["b/complex-case_1-q1"].lesion.location == "occipital lobe"
    assert gold["b/dialogue-case_1"].turn_leaders == ("stroke", "tumour", "Lewy body dementia")
    assert {row.item_id for row in made.disclosures} == set(gold)
    assert "narrow occipital gyri" in made.disclosures[0].text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"case_id": "case_99"}, r"answer key, line 2: fits no question of the released files \(1 such rows\)"),
        ({"family": "guessing"}, r"answer-key\.csv, line 2, column family: expected one of differential_diagnosis, lesion_recognition"),
        ({"lesion_side": "leftish"}, r"answer-key\.csv, line 2, column lesion_side"),
    ],
)
def test_a_key_that_cannot_be_right_stops_the_import(folder, tmp_path, changes, message):
    key(folder, {**ROW, **changes})
    with pytest.raises(DataError, match=message):
        imported("neural-medbench", folder, tmp_path)
    assert not (tmp_path / "questions").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"family": "lesion_recognition"},
            "line 2 of the answer key: a question on a lesion needs lesion_location, or the diagnosis 'no lesion'",
        ),
        ({"turn_leaders": "a|b"}, "line 2 of the answer key: 2 turn_leaders for 0 rounds"),
        (
            {"findings": "looks like Lewy-body dementia"},
            "finding 1 names the diagnosis (Lewy body dementia); write what is seen, not what it means",
        ),
        (
            {"aliases": "路易体痴呆", "findings": "符合路易体痴呆"},
            "finding 1 names the diagnosis (路易体痴呆); write what is seen, not what it means",
        ),
        ({"level": "dialogue", "question_number": "", "turn_leaders": "a"}, "line 2 of the answer key: 1 turn_leaders for 3 rounds"),
    ],
)
def test_a_row_of_the_key_that_does_not_fit_its_question_refuses_the_question(folder, tmp_path, changes, reason):
    key(folder, {**ROW, **changes})
    record, _ = imported("neural-medbench", folder, tmp_path)
    assert record.imported < 4
    assert any(row.reason.endswith(reason) for row in record.refused), [row.reason for row in record.refused]


def test_a_row_that_fits_questions_of_two_files_stops_the_import_because_one_would_get_the_others_answer(folder, tmp_path):
    key(folder, {**ROW, "level": "", "question_number": ""})
    with pytest.raises(ConfigError, match="answer key, line 2: fits several questions; fill in level and question_number"):
        imported("neural-medbench", folder, tmp_path)
    assert not (tmp_path / "questions").exists()


def test_a_key_may_be_written_in_chinese(folder, tmp_path):
    key(folder, {**ROW, "diagnosis": "路易体痴呆", "findings": "枕叶脑回变窄"})
    record, made = imported("neural-medbench", folder, tmp_path)
    assert (record.imported, made.gold[0].answer, made.gold[0].findings) == (4, "路易体痴呆", ("枕叶脑回变窄",))


def test_two_rows_for_one_question_and_an_unknown_column_are_told_by_line_and_name(folder, tmp_path):
    key(folder, ROW, ROW)
    with pytest.raises(DataError, match=r"answer-key\.csv, line 3: line 2 is for the same question; keep one"):
        imported("neural-medbench", folder, tmp_path)
    key(folder, {**ROW, "diagnose": "x"})
    with pytest.raises(ConfigError, match=r"answer-key\.csv: unknown column 'diagnose'; did you mean 'diagnosis'\?"):
        imported("neural-medbench", folder, tmp_path)


def test_a_row_for_an_empty_placeholder_does_not_stop_the_import(folder, tmp_path):
    key(folder, ROW, {**ROW, "case_id": "case_16", "question_number": "16"})
    record, _ = imported("neural-medbench", folder, tmp_path)
    assert record.imported == 4


def test_a_folder_without_any_of_the_files_is_told_what_it_needs(tmp_path):
    put(tmp_path / "set", {"cases.json": []})
    with pytest.raises(DataError, match=r"expected direct-diagnosis\.json or complex-diseases\.json or .* found cases\.json"):
        imported("neural-medbench", tmp_path / "set", tmp_path)
