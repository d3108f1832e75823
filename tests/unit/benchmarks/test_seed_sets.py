"""Sets that come in by a mapping, on small files made by hand in the form of the published ones."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from fixtures.imports import imported, picture_bytes, put, put_table
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Family, Runner

PICTURE = base64.b64encode(picture_bytes(1)).decode()
OPTIONS = {"A": "one", "B": "two", "C": "three", "D": "four"}
MEDIQ = {
    "id": 0,
    "question": "Which of the following is the most likely diagnosis for the patient?",
    "context": ["A man of 22 has painful lesions", "He denied fever."],
    "options": {"A": "Syphilis", "B": "Herpes"},
    "answer": "Herpes",
    "answer_idx": "B",
    "facts": ["1. A man of 22 has lesions.", "2. They hurt.", "3. He has no fever."],
    "patient": {"age": "22 years", "gender": "male"},
}
HEALTH = {
    "prompt_id": "c12c0b1c-0000",
    "prompt": [{"content": "My neighbour does not wake up. What now?", "role": "user"}],
    "rubrics": [
        {"criterion": "Advises to call an ambulance.", "points": 10, "tags": ["level:example", "axis:completeness"]},
        {"criterion": "Advises to wait.", "points": -8, "tags": ["axis:accuracy"]},
    ],
    "example_tags": ["theme:emergency_referrals"],
    "ideal_completions_data": None,
    "canary": "x",
}
LONG = {
    "texts": {"text_0": "First letter.", "text_1": "Second letter."},
    "name": "Anna Sample",
    "birthday": "1970-01-01",
    "diagnosis": "DLBCL",
    "questions": [
        {
            "No": number,
            "question": "Which drug?",
            **{f"answer_{letter}": f"drug {letter}" for letter in "abcde"},
            "correct": f"drug {right}",
        }
        for number, right in enumerate("ce")
    ],
}
REPORT = {
    "id": "PMC1",
    "body_category": ["Nervous System", "Head"],
    "generate_case": {
        "case_summary": "- Patient: a man of 60.\n- Complaint: seizure.\n- Ancillary Tests\n- MRI: a ring-enhancing mass.",
        "differential_diagnosis": "1. The ring speaks for glioblastoma.\n2. No fever speaks against an abscess.",
        "final_diagnosis": "All in all, glioblastoma.",
        "diagnosis_results": "Glioblastoma",
        "treatment_planning_analysis": "Age allows it.",
        "treatment_plan_results": "Resection, then radiotherapy with temozolomide",
    },
}


def test_mediq_is_a_choice_over_the_whole_case_and_a_dialogue_over_its_facts(tmp_path: Path) -> None:
    put_table(tmp_path / "set" / "data" / "all_craft_md.jsonl", [MEDIQ])
    put_table(tmp_path / "set" / "data" / "all_dev_good.jsonl", [MEDIQ])
    for name in ("mediq-craft-md", "mediq"):
        _, made = imported(name, tmp_path / "set", tmp_path / name)
        assert (made.items[0].notes, made.gold[0].choice) == ("A man of 22 has painful lesions\nHe denied fever.", "B")
    _, made = imported("mediq-craft-md-ask", tmp_path / "set", tmp_path / "ask")
    assert (made.items[0].runner, made.gold[0].answer) == (Runner.DIALOGUE, "Herpes")
    assert made.items[0].turns[0].reveal.splitlines() == [
        "A man of 22 has painful lesions",
        "A man of 22 has lesions.",
        "They hurt.",
        "He has no fever.",
    ]
    # the authors' form: the start and the options are shown, the facts are asked for
    for name in ("mediq-craft-md-choice-ask", "mediq-choice-ask"):
        _, made = imported(name, tmp_path / "set", tmp_path / name)
        assert (made.items[0].options, made.gold[0].choice) == (("Syphilis", "Herpes"), "B")
        assert made.items[0].notes == "A man of 22 has painful lesions\n\nA man of 22 has lesions.\nThey hurt.\nHe has no fever."


def test_healthbench_is_a_conversation_with_criteria_that_earn_and_cost_points(tmp_path: Path) -> None:
    talk = [{"content": "Hello", "role": "user"}, {"content": "How can I help?", "role": "assistant"}, *HEALTH["prompt"]]
    put_table(tmp_path / "set" / "2025-05-07-06-14-12_oss_eval.jsonl", [HEALTH, {**HEALTH, "prompt_id": "two", "prompt": talk}])
    record, made = imported("healthbench", tmp_path / "set", tmp_path)
    assert (record.imported, made.items[0].question, made.items[0].notes) == (2, "My neighbour does not wake up. What now?", "")
    assert made.items[1].notes == "Conversation so far:\n\nUser: Hello\n\nAssistant: How can I help?"
    assert [(row.criterion, row.points) for row in made.gold[0].rubric] == [("meets_1", 10.0), ("harm_2", -8.0)]
    assert made.items[0].tags == ("example_tags:theme:emergency_referrals",)


def test_vm14k_has_a_list_of_options_and_of_topics(tmp_path: Path) -> None:
    row = {
        "id": "d29c",
        "difficulty_level": "Moderate",
        "medical_topic": ["Toxicology", "Emergency Medicine"],
        "question": "_______ từ cá nóc gây tê liệt?",
        "options": ["thuốc độc", "độc hại"],
        "option_map": [0, 1],
        "answer": "B",
        "answer_index": 1,
    }
    put_table(tmp_path / "set" / "data-processed-shuffled0.jsonl", [row])
    _, made = imported("vm14k", tmp_path / "set", tmp_path)
    assert (made.items[0].options, made.gold[0].choice, made.items[0].language) == (("thuốc độc", "độc hại"), "B", "vi")
    assert made.items[0].tags == ("difficulty_level:Moderate", "medical_topic:Toxicology", "medical_topic:Emergency Medicine")


def test_imb_names_the_right_option_by_its_text_and_may_have_four(tmp_path: Path) -> None:
    answers = {f"Answer {letter}": f"risposta {letter}" for letter in "ABCD"}
    row = {"ID": 121, "Category": "Neurologia", "Question": "Quale?", **answers, "Answer E": "", "Correct Answer": "risposta C"}
    put(tmp_path / "set", {"IMB-MCQA.json": [row]})
    _, made = imported("imb-mcqa", tmp_path / "set", tmp_path)
    assert (len(made.items[0].options), made.gold[0].choice, made.items[0].language) == (4, "C", "it")


def test_longhealth_shows_all_documents_of_a_patient_with_every_question(tmp_path: Path) -> None:
    put(tmp_path / "set", {"data/benchmark_v5.json": {"patient_01": LONG}})
    _, made = imported("longhealth", tmp_path / "set", tmp_path)
    assert [(item.item_id, item.patient_id) for item in made.items] == [("b/patient_01-0", "patient_01"), ("b/patient_01-1", "patient_01")]
    assert {item.notes for item in made.items} == {"First letter.\n\n---\n\nSecond letter."}
    assert [row.choice for row in made.gold] == ["C", "E"]


def test_medexpqa_has_numbered_options_of_which_the_last_may_be_absent(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "year": 2022,
        "question_id_specific": 26,
        "full_question": "A woman of 30 sees double. What is it?",
        "type": "NEUROLOGY",
        "options": {"1": "Myasthenia", "2": "Stroke", "3": "Migraine", "4": "Botulism", "5": None},
        "correct_option": 1,
    }
    put_table(tmp_path / "set" / "test.en.casimedicos.rag.jsonl", [row])
    _, made = imported("medexpqa", tmp_path / "set", tmp_path)
    assert (len(made.items[0].options), made.gold[0].answer, made.items[0].notes) == (4, "Myasthenia", "A woman of 30 sees double.")


def test_medr_bench_is_read_out_of_its_nested_case(tmp_path: Path) -> None:
    folder = put(
        tmp_path / "set", {f"data/MedRBench/{name}.json": {"PMC1": REPORT} for name in ("diagnosis_957_cases_x", "treatment_496_cases_x")}
    )
    _, made = imported("medr-bench-diagnosis", folder, tmp_path / "1")
    assert (made.items[0].item_id, made.items[0].family, made.gold[0].answer) == ("b/PMC1", Family.RATIONALE_GENERATION, "Glioblastoma")
    assert [row.criterion for row in made.gold[0].rubric] == ["argues_1", "argues_2"]
    assert made.items[0].tags == ("body_category:Nervous System", "body_category:Head")
    _, made = imported("medr-bench-treatment", folder, tmp_path / "2")
    assert made.gold[0].answer == "Resection, then radiotherapy with temozolomide"
    _, made = imported("medr-bench-ask", folder, tmp_path / "3")
    assert made.items[0].turns[0].reveal.splitlines()[-1] == "- MRI: a ring-enhancing mass."


def test_3mdbench_shows_a_photograph_and_keeps_complaints_as_facts(tmp_path: Path) -> None:
    row = {
        "image": {"bytes": picture_bytes(1), "path": "1.png"},
        "general_complaint": "My arm itches.",
        "complaints": "It is red. It has been there for a week.\nNo fever.",
        "diagnosis": "eczema",
        "personality": "choleric",
    }
    put_table(tmp_path / "set" / "data" / "test-00000-of-00001.parquet", [row])
    record, made = imported("3mdbench", tmp_path / "set", tmp_path)
    item = made.items[0]
    assert (record.images, len(item.turns[0].image_ids), made.gold[0].answer) == (1, 1, "eczema")
    assert item.turns[0].reveal.startswith("My arm itches.\nIt is red.")


def test_medq_bench_has_its_pictures_in_the_table(tmp_path: Path) -> None:
    row = {
        "index": 3,
        "image": PICTURE,
        "question": "Is there ghosting?",
        "A": "Yes",
        "B": "No",
        "C": "",
        "D": "",
        "answer": "B",
        "question_type": "yes-no",
    }
    put_table(tmp_path / "set" / "medqbench_QA_test.tsv", [row])
    put_table(
        tmp_path / "set" / "medqbench_description_test.tsv",
        [{"index": 4, "image": PICTURE, "question": "Describe.", "description": "Usable."}],
    )
    record, made = imported("medq-bench", tmp_path / "set", tmp_path / "1")
    assert (record.images, made.items[0].options, made.gold[0].choice) == (1, ("Yes", "No"), "B")
    record, made = imported("medq-bench-description", tmp_path / "set", tmp_path / "2")
    assert (record.images, made.items[0].runner, made.gold[0].answer) == (1, Runner.OPEN, "Usable.")


def test_medq_deg_asks_a_question_at_each_level_of_quality_and_tags_it(tmp_path: Path) -> None:
    clean = {"index": "7", "image": PICTURE, "question": "Which organ?", "A": "liver", "B": "brain", "C": "lung", "D": "", "answer": " b "}
    worse = [
        {
            **clean,
            "index": str(number),
            "image": base64.b64encode(picture_bytes(number + 1)).decode(),
            "E": "",
            "modality": "MRI",
            "degradation_type": "ghosting_artifact",
            "degradation_severity": f"L{number}",
            "source": "OmniMedVQA",
        }
        for number in (1, 2)
    ]
    put_table(tmp_path / "set" / "MedQ-Robust-good-test.tsv", [clean])
    put_table(tmp_path / "set" / "MedQ-Robust-simulate-test.tsv", worse)
    put_table(tmp_path / "set" / "MedQ-Robust-simulate-dev.tsv", worse)
    record, made = imported("medq-deg", tmp_path / "set", tmp_path)
    assert (record.imported, record.images, len({item.patient_id for item in made.items})) == (3, 3, 3)
    assert {(item.options, gold.choice) for item, gold in zip(made.items, made.gold, strict=True)} == {(("liver", "brain", "lung"), "B")}
    levels = {item.item_id: [tag for tag in item.tags if tag.startswith("degradation")] for item in made.items}
    assert levels == {
        "b/MedQ-Robust-good-test-7": [],
        "b/MedQ-Robust-simulate-test-1": ["degradation_type:ghosting_artifact", "degradation_severity:L1"],
        "b/MedQ-Robust-simulate-test-2": ["degradation_type:ghosting_artifact", "degradation_severity:L2"],
    }


SOURCES: dict[str, Any] = {
    "pubmedqa/ori_pqal.json": {str(n): {"QUESTION": f"Q{n}?", "CONTEXTS": ["One.", "Two."], "final_decision": "no"} for n in range(3)},
    "medhallu/pqa_labeled.json": [
        {"Question": "Q?", "Knowledge": ["K."], "Ground Truth": "right", "Hallucinated Answer": "made up", "Difficulty Level": "hard"}
    ],
    "head-qa/train.json": [
        {
            "name": "c",
            "qid": n,
            "qtext": "Q?",
            "category": "nursing",
            "ra": 2,
            "answers": [{"aid": 1, "atext": "x"}, {"aid": 2, "atext": "y"}],
        }
        for n in range(2)
    ],
    "medqa/test.json": [{"question": "A man falls. Why?", "options": OPTIONS, "answer_idx": "D"}],
    "medmcqa/train-0.json": [
        {"id": f"m{n}", "question": "Q?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 2, "subject_name": "s"} for n in range(2)
    ],
    "medmcqa/train-1.json": [
        {"id": "m2", "question": "Third?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 3, "subject_name": "s"}
    ],
}


def test_an_index_is_resolved_by_the_mappings_of_the_sets_that_it_numbers(tmp_path: Path) -> None:
    index = [
        {"Benchmark Name": "PubMedQA", "Total Number": 1, "Dataset": {"ori_pqal": {"Number": 1, "Indices": [2]}}},
        {"Benchmark Name": "HEAD-QA", "Total Number": 1, "Dataset": {"train": {"Number": 1, "Indices": [0]}}},
        {
            "Benchmark Name": "MedMCQA",
            "Total Number": 3,
            "Dataset": {"train": {"Number": 2, "Indices": [2, 7]}, "validation": {"Number": 1, "Indices": [4]}},
        },
        {"Benchmark Name": "MedQA", "Total Number": 1, "Dataset": {"test": {"Number": 1, "Indices": [0]}}},
        {"Benchmark Name": "MedHallu", "Total Number": 1, "Dataset": {"pqa_labeled": {"Number": 1, "Indices": [0]}}},
        {"Benchmark Name": "Other", "Total Number": 1, "Dataset": {"train": {"Number": 1, "Indices": [5]}}},
    ]
    put(tmp_path / "set", {"ADRD_Unified.json": {"data": index}, **SOURCES})
    record, made = imported("adrd-bench-knowledge", tmp_path / "set", tmp_path)
    found = {item.item_id.removeprefix("b/"): row.answer for item, row in zip(made.items, made.gold, strict=True)}
    assert found == {
        "pubmedqa-ori_pqal-2": "no",
        "head-qa-train-0": "y",
        "medmcqa-train-2": "d",
        "medqa-test-0": "four",
        "medhallu-pqa_labeled-0": "right",
    }
    assert made.items[0].notes == "One.\nTwo."
    assert [(row.where, row.reason) for row in record.refused] == [
        ("medmcqa/train, row 7", "this row of medmcqa/train is not in the subfolder medmcqa"),
        ("medmcqa/validation, row 4", "this row of medmcqa/validation is not in the subfolder medmcqa"),
        ("Other/train, row 5", "`SETS` has no mapping for Other"),
    ]


def test_an_index_reads_nothing_outside_its_folder(tmp_path: Path) -> None:
    put(tmp_path, {"secret/train.json": SOURCES["medmcqa/train-0.json"]})
    index = [{"Benchmark Name": "MedMCQA", "Dataset": {"/../../secret/train": {"Indices": [0]}}}]
    put(tmp_path / "set", {"ADRD_Unified.json": {"data": index}, "medmcqa/x.json": []})
    with pytest.raises(DataError, match="the path of a file that belongs to the row leaves the folder"):
        imported("adrd-bench-knowledge", tmp_path / "set", tmp_path)


@pytest.mark.parametrize(
    ("name", "path", "rows"),
    [
        ("pubmedqa", "ori_pqal.json", SOURCES["pubmedqa/ori_pqal.json"]),
        (
            "medbullets",
            "medbullets_op5.csv",
            [{"question": "A man falls. Why?", **{f"op{letter}": letter for letter in "abcde"}, "answer_idx": "E"}],
        ),
    ],
)
def test_the_sets_of_an_index_come_in_alone_too(tmp_path: Path, name: str, path: str, rows: Any) -> None:
    if path.endswith(".csv"):
        put_table(tmp_path / "set" / path, rows)
    else:
        put(tmp_path / "set", {path: rows})
    record, _ = imported(name, tmp_path / "set", tmp_path)
    assert (record.imported, record.refused, record.without_answer) == (len(rows), (), 0)


def test_every_shipped_set_says_who_the_model_is_or_is_about_the_head() -> None:
    sets = data_sets(ROOT / "config")
    assert sorted(name for name, one in sets.items() if not one.persona) == ["mm-neuroonco", "neural-medbench", "neurovlm"]
