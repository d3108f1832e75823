from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fixtures.imports import imported, picture_bytes, put, put_table
from neuralmedbench.errors import DataError
from neuralmedbench.prompts.arms import views
from neuralmedbench.records.items import Family, Runner


def embedded(*values: int) -> str:
    """Return pictures as in the TSV cells: JSON of base64."""
    return json.dumps([base64.b64encode(picture_bytes(value)).decode() for value in values])


FIGURES = {"Figure 1A": "images/7/a.jpg", "Figure 1B": "images/7/b.jpg"}
COMMON = {
    "index": "7",
    "question": "What is the most likely diagnosis?",
    "context": "A 4-year-old girl who falls often.",
    "answer": "Leigh syndrome",
    "figure_mapping": json.dumps(FIGURES),
    "image": embedded(1, 2),
    "image_path": json.dumps(list(FIGURES.values())),
}
DIAGNOSIS = {**COMMON, "answer_aliases": json.dumps(["subacute necrotizing encephalomyelopathy"])}
TREATMENT = {
    **COMMON,
    "question": "How should she be treated?",
    "answer": "Thiamine.",
    "rubric_must_include": json.dumps(["thiamine"]),
    "rubric_must_not": json.dumps(["valproate"]),
}
MAINLINE = [{"claim": "both putamina are bright.", "relation_type": "confirm"}, {"claim": "lactate is high", "relation_type": "confirm"}]
CROSSMODAL = {**COMMON, "question": "How do they fit?", "answer": "They confirm each other.", "golden_mainline": json.dumps(MAINLINE)}
EXAMINATION = {
    **COMMON,
    "question": "Which work-up?",
    "answer": "Lactate, sequencing.",
    "key_test_names": json.dumps(["serum lactate"]),
    "must_not": json.dumps(["sedation without a cardiac check"]),
    "red_flags_to_rule_out": "Wilson disease; tumour",
}
MMRARE = {
    "diagnosis/diagnosis_opened.tsv": DIAGNOSIS,
    "treatment/treatment_plan.tsv": TREATMENT,
    "crossmodal/crossmodal_comparison.tsv": CROSSMODAL,
    "examination/examination_workup.tsv": EXAMINATION,
}


def tables(folder: Path, files: dict[str, dict[str, Any]]) -> Path:
    """Write each row as a separate table."""
    for name, row in files.items():
        put_table(folder / name, [row])
    return folder


def test_the_four_tracks_of_mmrarebench_become_items_with_labelled_pictures(tmp_path):
    record, made = imported("mmrarebench", tables(tmp_path / "set", MMRARE), tmp_path)
    assert (record.found, record.imported, record.images, record.refused) == (4, 4, 2, ())
    assert [item.item_id for item in made.items] == ["b/diagnosis-7", "b/treatment-7", "b/crossmodal-7", "b/examination-7"]
    assert [[image.label for image in item.images] for item in made.items] == [["Figure 1A", "Figure 1B"]] * 4
    assert [item.family for item in made.items] == [Family.DIFFERENTIAL_DIAGNOSIS, *[Family.QUESTION_ANSWERING] * 3]
    assert made.gold[0].aliases == ("subacute necrotizing encephalomyelopathy",)


def test_a_work_up_does_not_tell_the_context_that_names_its_results(tmp_path):
    _, made = imported("mmrarebench", tables(tmp_path / "set", MMRARE), tmp_path)
    assert [item.notes for item in made.items] == [*[COMMON["context"]] * 3, ""]


def test_what_must_and_must_not_be_said_are_criteria_with_signed_points(tmp_path):
    _, made = imported("mmrarebench", tables(tmp_path / "set", MMRARE), tmp_path)
    rubrics = [[(row.criterion, row.text, row.points) for row in gold.rubric] for gold in made.gold]
    assert rubrics[1] == [("must_include_1", "Says: thiamine.", 1.0), ("must_not_1", "Says: valproate.", -1.0)]
    assert rubrics[2] == [
        ("argues_1", "Argues: both putamina are bright.", 1.0),
        ("argues_2", "Argues: lactate is high.", 1.0),
        ("relation_1", "Says that the findings stand in this relation: confirm.", 1.0),
    ]
    assert [(name, points) for name, _, points in rubrics[3]] == [
        ("orders_1", 1.0),
        ("rules_out_1", 1.0),
        ("rules_out_2", 1.0),
        ("must_not_1", -1.0),
    ]
    assert made.gold[2].rationale == ("both putamina are bright.", "lactate is high")
    assert made.gold[1].must_not == ("valproate",)


def test_pictures_beside_the_table_are_found_from_the_folder_of_their_track(tmp_path):
    folder = tables(tmp_path / "set", {"diagnosis/diagnosis_opened.tsv": {**DIAGNOSIS, "image": ""}})
    put(folder, {f"diagnosis/{path}": picture_bytes(place) for place, path in enumerate(FIGURES.values(), start=1)})
    record, made = imported("mmrarebench", folder, tmp_path)
    assert record.images == 2
    assert [image.label for image in made.items[0].images] == ["Figure 1A", "Figure 1B"]


def test_a_track_without_its_columns_says_which_it_found(tmp_path):
    row = {key: value for key, value in TREATMENT.items() if key != "rubric_must_not"}
    with pytest.raises(
        DataError, match=r"treatment_plan\.tsv, row 1: the column 'rubric_must_not' is missing; found .*rubric_must_include"
    ):
        imported("mmrarebench", tables(tmp_path / "set", {"treatment_plan.tsv": row}), tmp_path)
    without = {key: value for key, value in DIAGNOSIS.items() if not key.startswith("image")}
    with pytest.raises(DataError, match="neither the column 'image' nor 'image_path' exists; found answer, answer_aliases"):
        imported("mmrarebench", tables(tmp_path / "other", {"diagnosis_opened.tsv": without}), tmp_path)


FINDINGS = [
    {"title": "MRI", "body": "b", "markdown": "### MRI\nBoth putamina are bright on T2."},
    {"title": "MRS", "body": "a lactate peak"},
]
RANKED = {**DIAGNOSIS, "image findings": json.dumps(FINDINGS)}
EVIDENCE = {
    "index": "3",
    "pmcid": "PMC12",
    "context": "Established diagnosis: Leigh syndrome. Relevant images: Image 1, Image 2.",
    "question_open": "Which evidence supports the established diagnosis?",
    "final_diagnosis": "Leigh syndrome",
    "gold_rationale": "Bright putamina fit the lactate peak.",
    "acceptable_evidence_points": json.dumps(
        [
            {"image": "Image 1", "point": "bright putamina", "credit": "required", "category": "macro_pattern"},
            {"image": "Image 2", "point": "a lactate peak", "credit": "optional", "category": "modality"},
        ]
    ),
    "image_slot_map": json.dumps([{"public_slot": "Image 1"}, {"public_slot": ""}]),
    "image": embedded(1, 2),
}
MRARE = {
    "diagnosis/diagnosis_opened.tsv": RANKED,
    "evidence_verification/evidence_verification_opened_FULL609.tsv": EVIDENCE,
}


def test_the_findings_of_mrarebench_are_shown_by_their_arm_alone(tmp_path):
    _, made = imported("mrarebench", tables(tmp_path / "set", MRARE), tmp_path)
    shown = views(made.items, "findings_disclosed", made.disclosures)
    assert [view.item.item_id for view in shown] == ["b/diagnosis-7"]
    assert shown[0].disclosed == "Findings on the pictures:\n### MRI\nBoth putamina are bright on T2.\n\nMRS\na lactate peak"
    assert "putamina" not in made.items[0].notes


def test_findings_that_name_the_diagnosis_are_not_shown_and_the_item_says_so(tmp_path):
    named = {**RANKED, "image findings": json.dumps([{"markdown": "Changes as in Leigh's syndrome / Leigh syndrome."}])}
    _, made = imported("mrarebench", tables(tmp_path / "set", {"diagnosis_opened.tsv": named}), tmp_path)
    assert made.disclosures == ()
    assert "findings_name_the_diagnosis" in made.items[0].tags


def test_an_evidence_item_is_given_its_diagnosis_and_the_arm_withholds_it(tmp_path):
    _, made = imported("mrarebench", tables(tmp_path / "set", MRARE), tmp_path)
    item = made.items[1]
    assert (item.given, item.notes, item.patient_id) == ("Leigh syndrome", "Relevant images: Image 1, Image 2.", "PMC12")
    assert [image.label for image in item.images] == ["Image 1", "Image 2"]
    withheld = views(made.items, "diagnosis_withheld", ())
    assert [view.item.given for view in withheld] == [""]
    assert "Leigh" not in f"{withheld[0].item.notes} {withheld[0].item.question}"
    gold = made.gold[1]
    assert [(row.criterion, row.text, row.points) for row in gold.rubric] == [
        ("required_1", "Image 1: bright putamina.", 1.0),
        ("optional_1", "Image 2: a lactate peak.", 0.5),
    ]
    assert (gold.answer, gold.rationale) == ("Bright putamina fit the lactate peak.", ("Image 1: bright putamina",))


ARENA = {
    "id": 12,
    "Case Information": "A 30-year-old woman.",
    "Physical Examination": "Optic disc swelling.",
    "Diagnostic Tests": "",
    "Final Diagnosis": "Susac syndrome",
    "Options": {"A": "Multiple sclerosis", "B": "Susac syndrome", "C": "ADEM", "D": "CADASIL"},
    "Right Option": "B",
}


def test_diagnosisarena_is_asked_openly_and_with_its_options(tmp_path):
    put_table(tmp_path / "set" / "data" / "test-00000-of-00001.parquet", [ARENA])
    _, made = imported("diagnosisarena", tmp_path / "set", tmp_path)
    text = "Case Information:\nA 30-year-old woman.\n\nPhysical Examination:\nOptic disc swelling."
    assert (made.items[0].item_id, made.items[0].notes, made.items[0].options) == ("b/12", text, ())
    assert made.gold[0].answer == "Susac syndrome"
    _, choice = imported("diagnosisarena-choice", tmp_path / "set", tmp_path)
    assert choice.items[0].runner is Runner.CHOICE
    assert choice.items[0].options == ("Multiple sclerosis", "Susac syndrome", "ADEM", "CADASIL")
    assert (choice.gold[0].choice, choice.gold[0].answer) == ("B", "Susac syndrome")


@pytest.mark.parametrize(
    "written",
    [
        "A. Multiple sclerosis\nB. Susac syndrome\nC. ADEM\nD. CADASIL",
        "(A) Multiple sclerosis\n(B) Susac syndrome\n(C) ADEM\n(D) CADASIL",
        ["A. Multiple sclerosis", "B. Susac syndrome", "C. ADEM", "D. CADASIL"],
        json.dumps(ARENA["Options"]),
        ["a. Multiple sclerosis", "b. Susac syndrome", "c. ADEM", "d. CADASIL"],
        "a) Multiple sclerosis\nb) Susac syndrome\nc) ADEM\nd) CADASIL",
    ],
)
def test_options_are_read_in_the_forms_in_which_sets_write_them(tmp_path, written):
    put_table(tmp_path / "set" / "test.jsonl", [{**ARENA, "Options": written, "Right Option": "B. Susac syndrome"}])
    _, made = imported("diagnosisarena-choice", tmp_path / "set", tmp_path)
    assert made.items[0].options == ("Multiple sclerosis", "Susac syndrome", "ADEM", "CADASIL")
    assert made.gold[0].choice == "B"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Options": "one of four"}, "the column 'Options': the options are in an unknown form (str)"),
        ({"Options": {"A": "x", "C": "y"}}, "the column 'Options': the letters of the options are not A, B, C... without a gap: A, C"),
        (
            {"Options": ["B. x", "A. y"]},
            "the column 'Options': the options begin with the letters B, A; expected A, B, or texts without letters",
        ),
        (
            {"Options": ["c) x", "a) y", "b) z"], "Right Option": "a"},
            "the column 'Options': the options begin with the letters C, A, B; expected A, B, C, or texts without letters",
        ),
        (
            {"Right Option": "bd"},
            "the right answer is not one of A to D, nor the text of an option; found 2 letters: a question with several right answers has",
        ),
        ({"Right Option": "E"}, "the right answer is not one of A to D, nor the text of an option"),
        ({"Right Option": "C. difficile colitis"}, "the right answer is not one of A to D, nor the text of an option"),
        ({"Case Information": "", "Physical Examination": ""}, "the text of the case is empty"),
        ({"Options": {"A": "ADEM", "B": "adem ", "C": "x"}, "Right Option": "A"}, "an option is repeated"),
    ],
)
def test_a_row_that_cannot_be_asked_is_refused_with_its_reason(tmp_path, changes, reason):
    put_table(tmp_path / "set" / "test.jsonl", [{**ARENA, "id": 1}, {**ARENA, **changes}])
    record, _ = imported("diagnosisarena-choice", tmp_path / "set", tmp_path)
    assert record.imported == 1
    assert record.refused[0].reason.startswith(reason)


def test_the_numbered_reasons_of_medcasereasoning_are_statements_of_the_rationale(tmp_path):
    row = {
        "pmcid": "PMC9",
        "case_prompt": "A man with fever.",
        "diagnostic_reasoning": '1. Fever fits: "38.9 C"\n2. The neck was stiff\nand painful.\n3) No 12. rib pain.',
        "final_diagnosis": "Bacterial meningitis",
        "text": "The whole article, which names bacterial meningitis.",
    }
    put_table(tmp_path / "set" / "data" / "test-00000-of-00001.parquet", [row])
    record, made = imported("medcasereasoning", tmp_path / "set", tmp_path)
    assert record.expected == 897
    assert made.gold[0].rationale == ('Fever fits: "38.9 C"', "The neck was stiff and painful.", "No 12. rib pain.")
    assert [criterion.criterion for criterion in made.gold[0].rubric] == ["argues_1", "argues_2", "argues_3"]
    assert (made.items[0].notes, made.items[0].family) == ("A man with fever.", Family.RATIONALE_GENERATION)
    # rows are numbered over all tables, and neither the report nor its date need be there
    assert (made.items[0].item_id, made.items[0].case_id, made.items[0].date) == ("b/00001-PMC9", "PMC9", "")
    put_table(tmp_path / "set" / "data" / "test-00001-of-00002.parquet", [{key: row[key] for key in row if key != "pmcid"}])
    _, made = imported("medcasereasoning", tmp_path / "set", tmp_path)
    assert [(item.item_id, item.patient_id) for item in made.items] == [("b/00001-PMC9", "PMC9"), ("b/00002", "00002")]


LIVE = {
    "case_id": "1",
    "post_time": "2023-04-16T00:00:00",
    "narrative": "A 45-year-old man is sick.",
    "core_request": "What could be the cause?",
    "doctor_advice": "It is likely a virus.",
    "rubric_items": [
        {"criterion": "Does the model name a virus?", "points": 10},
        {"criterion": "Does it recommend antibiotics?", "points": -5},
    ],
}


def test_livemedbench_keeps_signed_points_dates_and_languages(tmp_path):
    chinese = {**LIVE, "case_id": "2", "narrative": "男，45岁", "core_request": "可能的原因是什么?"}
    put(tmp_path / "set", {"LiveMedBench_v202601.json": [LIVE, chinese]})
    _, made = imported("livemedbench", tmp_path / "set", tmp_path)
    assert [(item.language, item.date) for item in made.items] == [("en", "2023-04-16"), ("zh", "2023-04-16")]
    assert [(row.criterion, row.points) for row in made.gold[0].rubric] == [("meets_1", 10.0), ("harm_2", -5.0)]
    assert made.gold[0].must_not == ("Does it recommend antibiotics?",)
    assert (made.items[0].notes, made.items[0].question) == (LIVE["narrative"], LIVE["core_request"])


def test_a_rubric_without_points_to_earn_and_a_question_of_two_releases_are_refused(tmp_path):
    broken = [
        {**LIVE, "case_id": "2", "rubric_items": [{"criterion": "x", "points": -1}]},
        {**LIVE, "case_id": "3", "rubric_items": [{"points": 1}]},
    ]
    put(tmp_path / "set", {"LiveMedBench_v202601.json": [LIVE, *broken]})
    record, _ = imported("livemedbench", tmp_path / "set", tmp_path)
    assert [row.reason for row in record.refused] == [
        "no criterion earns points, so a score has no denominator",
        "criterion 1: expected the keys 'criterion' and 'points'",
    ]
    put(tmp_path / "set", {"LiveMedBench_v202602.json": [LIVE]})
    record, _ = imported("livemedbench", tmp_path / "set", tmp_path)
    assert (record.imported, record.refused[-1].where) == (1, "LiveMedBench_v202602.json, row 1")
    assert record.refused[-1].reason.startswith("the id is repeated")
