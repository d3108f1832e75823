"""Parsing answers: the requested form, repaired where the intention is clear, and never prose."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fixtures.scoring import GOLD, ITEM, LESION_ITEM, PICTURE_ITEM, differential, lesion_answer, vocabulary
from neuralmedbench.records.items import Family, Runner
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.scoring.explain_reading import why_unread
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, relation
from neuralmedbench.scoring.parse import parse_answer

CHOICE_ITEM = replace(ITEM, runner=Runner.CHOICE, options=("glioma", "meningioma", "brain abscess"))
CHOICE_IN_CHINESE = replace(CHOICE_ITEM, options=("脑梗死", "脑出血", "脑肿瘤（左）", "正常"))
SCHEMA = json.dumps(
    {
        "properties": {
            "modality": {"enum": ["MRI", "CT", None]},
            "sequence": {"enum": ["T1", "T1C+", "FLAIR", None]},
            "plane": {"enum": ["axial", None]},
            "class": {"enum": ["tumor", "stroke", "normal", None]},
            "subtype": {"enum": ["glioma", None]},
            "confidence": {"type": ["number", "null"]},
        }
    }
)
FIELDS = {"modality": "MRI", "sequence": "T1C+", "plane": "axial", "class": "tumor", "subtype": "glioma", "confidence": 0.9}
SCHEMA_ITEM = replace(PICTURE_ITEM, answer_schema=SCHEMA)


def test_the_form_that_was_asked_for_is_read_strictly():
    prediction = parse_answer(differential("glioblastoma", "brain abscess"), ITEM)
    assert prediction.parse_status is ParseStatus.STRICT
    assert prediction.differential == ("glioblastoma", "brain abscess")
    assert (prediction.findings, prediction.rationale, prediction.confidence) == ("A mass.", "It fits.", 0.7)


@pytest.mark.parametrize(
    "text",
    [
        "Here is my answer.\n" + differential("glioblastoma", "abscess"),
        differential("**Glioblastoma**", "abscess").replace("DIFFERENTIAL:", "**Differential diagnosis:**"),
        differential("glioblastoma", "abscess").replace("1. ", "- ").replace("2. ", "- "),
        "DIFFERENTIAL: 1. glioblastoma 2. abscess\nFINDINGS: x",
        "DIFFERENTIAL:\n2. abscess\n1. glioblastoma\nFINDINGS: x",
        differential("glioblastoma - a ring that enhances", "abscess"),
        differential("glioblastoma", "abscess", confidence="70%"),
        "```\n" + differential("glioblastoma", "abscess") + "\n```",
        differential("meningioma") + "\n\nOn reflection:\n" + differential("glioblastoma", "abscess"),
    ],
)
def test_a_form_that_is_plainly_meant_is_repaired(text):
    prediction = parse_answer(text, ITEM)
    assert prediction.parse_status is ParseStatus.REPAIRED
    assert [name.lower() for name in prediction.differential] == ["glioblastoma", "abscess"]


@pytest.mark.parametrize(
    "text",
    [
        "A glioblastoma can look like this.",
        "There is a mass, perhaps a glioblastoma.",
        "She has been diagnosed with glioblastoma.",
        "What is the most likely diagnosis? Her mother has a glioblastoma.",
        "The most likely diagnosis is not glioblastoma.",
        "If there is no fever, the most likely diagnosis is glioblastoma.",
        "A less likely diagnosis is glioblastoma.",
        "The diagnosis of glioblastoma is unlikely.",
        "This is most likely a glioblastoma. This is most likely an abscess.",
        "Possible diagnoses are glioblastoma, abscess and lymphoma.",
        "no form at all",
        "Thank you for the case",
        "The findings that support the diagnosis are:\n1. glioblastoma\n2. abscess",
        "Other possible diagnoses include:\n- glioblastoma",
        "1. <most likely diagnosis>\n2. glioblastoma",
        "Diagnosis: <most likely diagnosis>",
        "FINDINGS: glioblastoma",
        "{}",
        "[" * 5000,
    ],
)
def test_prose_that_does_not_commit_itself_is_never_rank_1(text):
    prediction = parse_answer(text, ITEM)
    assert prediction.parse_status is ParseStatus.FAILED
    assert prediction.differential == ()
    assert not prediction.abstained


@pytest.mark.parametrize(
    "text",
    [
        "The most likely diagnosis is glioblastoma.",
        "The most likely diagnosis, given the ring, is glioblastoma, which grows fast.",
        "In summary, the most likely diagnosis for this patient is:\n\n* Glioblastoma\n\nIt enhances.",
        "Glioblastoma is the most likely diagnosis.",
        "Therefore, glioblastoma is the most likely diagnosis.",
        "This is most likely a glioblastoma.",
        "It is a glioblastoma.",
        "I would diagnose the patient with glioblastoma.",
        "The patient most likely has a glioblastoma.",
        "The findings are consistent with a diagnosis of glioblastoma.",
        "Diagnosis: Glioblastoma",
        "**Diagnosis:** Glioblastoma, given the ring.",
        "**Final Diagnosis**: **Glioblastoma**",
        "## Most likely diagnosis\nGlioblastoma\n\n## Reasoning\nA ring.",
        "Diagnosis 1: glioblastoma",
        "Impression: 1. Glioblastoma 2. Old lacunes",
        "Final answer: glioblastoma (80%)",
        "Primary diagnosis: glioblastoma\nSecondary diagnosis: abscess",
        "At first the most likely diagnosis is meningioma. On reflection, the most likely diagnosis is glioblastoma.",
        "As an AI I cannot replace a doctor. The most likely diagnosis is glioblastoma.",
        '{"diagnosis": "Glioblastoma", "confidence": 0.8}',
        'Here it is:\n```json\n{"result": {"final_diagnosis": "glioblastoma"}}\n```',
        "Glioblastoma",
        "<think>The most likely diagnosis is meningioma.</think>Diagnosis: glioblastoma",
        "The most likely diagnosis is glioblastoma. The most likely diagnosis is gliobl",
    ],
)
def test_an_answer_in_another_usual_form_is_repaired(text):
    prediction = parse_answer(text, ITEM)
    assert (prediction.parse_status, [name.lower() for name in prediction.differential]) == (ParseStatus.REPAIRED, ["glioblastoma"])


@pytest.mark.parametrize(
    "text",
    [
        "1. glioblastoma\n2. abscess",
        "1. **Glioblastoma** – a ring\n   - it enhances\n2. **Abscess** – fever",
        "- glioblastoma\n- abscess",
        "The differential diagnoses are:\n- glioblastoma: a ring\n- abscess (20%)\n\nIt began slowly.",
        "Most likely diagnosis: Glioblastoma\nDifferential diagnosis:\n1. Abscess",
        "Differential diagnosis:\n1. Abscess\n\nThe most likely diagnosis is glioblastoma.",
        '{"final_diagnosis": "Glioblastoma", "differential": ["abscess"]}',
        '{"differential_diagnosis": [{"diagnosis": "glioblastoma", "probability": 0.6}, {"diagnosis": "abscess"}]}',
        '["glioblastoma", "abscess"]',
    ],
)
def test_a_list_in_another_usual_form_keeps_its_ranks_and_what_is_called_most_likely_comes_first(text):
    prediction = parse_answer(text, ITEM)
    assert prediction.parse_status is ParseStatus.REPAIRED
    assert [name.lower() for name in prediction.differential] == ["glioblastoma", "abscess"]


@pytest.mark.parametrize(
    "text",
    [
        "The most likely diagnosis is either glioblastoma or abscess.",
        "Final diagnosis: glioblastoma vs. abscess",
        "Diagnosis: glioblastoma (GBM) or abscess",
        "Diagnosis: glioblastoma; abscess; meningioma",
        "The most likely diagnosis is glioblastoma, abscess, or meningioma.",
        "Diagnosis: glioblastoma and abscess",
    ],
)
def test_who_names_several_diagnoses_as_one_earns_nothing(text):
    (name,) = parse_answer(text, ITEM).differential
    for reference in ("glioblastoma", "brain abscess", "meningioma"):
        gold = ReferenceAnswer.of(replace(GOLD, answer=reference, aliases=()), vocabulary())
        assert relation(name, gold) not in RIGHT


def test_a_list_of_findings_in_a_rationale_is_no_differential():
    item = replace(ITEM, family=Family.RATIONALE_GENERATION)
    assert parse_answer("1. glioblastoma\n2. abscess", item).parse_status is ParseStatus.FAILED
    assert parse_answer("Diagnosis: glioblastoma", item).differential == ("glioblastoma",)


def test_a_refusal_with_a_list_of_possible_diseases_stays_a_refusal():
    prediction = parse_answer("I cannot make a diagnosis. Possible conditions are:\n1. glioblastoma\n2. abscess", ITEM)
    assert (prediction.differential, prediction.abstained) == ((), True)


def test_a_statement_that_no_diagnosis_can_be_named_abstains():
    assert parse_answer("The diagnosis is unclear.", ITEM).abstained


@pytest.mark.parametrize("text", ["", "  \n", "I'm sorry, but I cannot help with that.", "As an AI, I am unable to diagnose."])
def test_an_empty_answer_and_a_refusal_abstain(text):
    assert parse_answer(text, ITEM).abstained
    assert parse_answer(text, ITEM).parse_status is ParseStatus.FAILED


@pytest.mark.parametrize("text", ["undetermined", "Unknown", "Cannot be determined from these pictures", "insufficient information"])
def test_a_form_that_names_no_diagnosis_abstains(text):
    prediction = parse_answer(differential(text), ITEM)
    assert prediction.abstained
    assert (prediction.differential, prediction.confidence) == ((), None)


def test_a_diagnosis_hidden_in_thoughts_does_not_count():
    assert parse_answer(f"<think>{differential('glioblastoma')}", ITEM).parse_status is ParseStatus.FAILED
    text = f"<think>{differential('meningioma')}</think>{differential('glioblastoma')}"
    assert parse_answer(text, ITEM).differential == ("glioblastoma",)


def test_placeholders_of_the_form_are_no_candidates():
    text = differential("<most likely diagnosis>", "glioblastoma")
    assert parse_answer(text, ITEM).differential == ("glioblastoma",)
    assert parse_answer(differential("<most likely diagnosis>"), ITEM).parse_status is ParseStatus.FAILED


def test_at_most_five_candidates_are_read():
    prediction = parse_answer(differential(*"abcdefg"), ITEM)
    assert prediction.differential == tuple("abcde")
    assert prediction.parse_status is ParseStatus.REPAIRED


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1.0), ("0.35", 0.35), ("7", None), ("-0.2", None), ("high", None), ("nan", None), ("101%", None)]
)
def test_a_confidence_outside_0_to_1_is_none(text, value):
    assert parse_answer(differential("glioblastoma", confidence=text), ITEM).confidence == value


def test_a_lesion_answer_gives_lesion_place_and_side():
    prediction = parse_answer(lesion_answer("enhancing mass", "frontal lobe", "left"), LESION_ITEM)
    assert prediction.parse_status is ParseStatus.STRICT
    assert prediction.fields == {"lesion": "enhancing mass", "location": "frontal lobe", "side": "left"}


def test_no_lesion_is_an_answer_and_undetermined_is_none():
    assert not parse_answer(lesion_answer("no lesion"), LESION_ITEM).abstained
    assert not parse_answer(lesion_answer("none"), LESION_ITEM).abstained
    assert parse_answer(lesion_answer("undetermined"), LESION_ITEM).abstained
    assert parse_answer("The lesion lies on the left.", LESION_ITEM).parse_status is ParseStatus.FAILED


@pytest.mark.parametrize(
    ("text", "letter", "status"),
    [
        ("B", "B", "strict"),
        ("ANSWER: B", "B", "strict"),
        ("(B) meningioma", "B", "repaired"),
        ("meningioma", "B", "repaired"),
        ("**Answer:** B", "B", "repaired"),
        ("B or C", "", "failed"),
        ("A brain abscess, I think", "", "failed"),
        ("D", "", "failed"),
        ("Both are possible", "", "failed"),
        ("ANSWER: B\nCONFIDENCE: 0.7", "B", "strict"),
        ("REASONING: the answer is A at first sight.\nANSWER: B\nCONFIDENCE: 0.7", "B", "strict"),
        (r"The signal fits. $\boxed{\text{C}}$", "C", "repaired"),
        ("The correct answer is therefore (C).", "C", "repaired"),
        ("**C**", "C", "repaired"),
        ("C) brain abscess", "C", "repaired"),
        ('{"answer": "C"}', "C", "repaired"),
        ('```json\n{"steps": "A or B?", "answer": "C) brain abscess"}\n```', "C", "repaired"),
        ("### Final answer\n\n**B. Meningioma**", "B", "repaired"),
        ("Option B is the most likely answer.", "B", "repaired"),
        ("I would choose option B.", "B", "repaired"),
        ("B\n\nThe tail of the dura is typical.", "B", "repaired"),
        ("The answer is meningioma, given the tail of the dura.", "B", "repaired"),
        ("The most likely answer is A because of its margin", "A", "repaired"),
        ("ANSWER: C, because A and B are less likely.", "C", "repaired"),
        ("The answer is C. A man of 45 years with fever has an abscess.", "C", "repaired"),
    ],
)
def test_a_choice_is_a_letter_or_an_option_and_nothing_more(text, letter, status):
    prediction = parse_answer(text, CHOICE_ITEM)
    assert (prediction.choice, prediction.parse_status) == (letter, status)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("The answer is A. No: the answer is B.", "B"),
        (r"\boxed{A}, or rather \boxed{B}", "B"),
        ("ANSWER: A\nI correct this.\nANSWER: B", "B"),
    ],
)
def test_of_several_choices_the_last_one_counts(text, letter):
    assert parse_answer(text, CHOICE_ITEM).choice == letter


@pytest.mark.parametrize(
    "text",
    [
        "ANSWER: B or C",
        "The answer is (B) and (C).",
        "Answer: B/C",
        "ANSWER: B\nC",
        "The answer is AB.",
        "The answer is D.",
        r"\boxed{D}",
        '{"answer": "E"}',
        "The answer is not B.",
        "The answer is B. In fact the answer is not B.",
        "B. meningioma or C. abscess",
        "B. Or C.",
        "It is unlikely that this is a meningioma.",
        "Whereas a glioma grows, this is a meningioma.",
        "What fits less is meningioma.",
        "B) not sure",
        "A. It has no dural tail.\nC. It has a rim.",
        "Answer: neither",
        "ANSWER: A meningioma",
        "The answer is a matter of taste.",
        "Answer: C-shaped",
        "The answer isn't clear.",
        "Answer: I can't tell",
        "Option A: glioma. Unlikely.\nOption B: meningioma. Likely.",
        "A mass is seen in the left hemisphere.",
        "I think that it is an infection.",
        "A. glioma\nB. meningioma\nC. brain abscess",
        "Vitamin C is low.",
        "ANSWER: <the letter of one option>\nCONFIDENCE: 0.5",
    ],
)
def test_two_letters_a_letter_that_is_not_offered_and_prose_are_no_choice(text):
    prediction = parse_answer(text, CHOICE_ITEM)
    assert (prediction.choice, prediction.differential, prediction.parse_status) == ("", (), ParseStatus.FAILED)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B. A tumour of the dura, with a tail.", "B"),
        ("(C) Abscess of the brain\n\nIt has a rim.", "C"),
        ("**B:** the tail of the dura is typical", "B"),
        ("It has a dural tail.\n\nB. A tumour of the dura.", "B"),
        ("B. Meningeal tumour\n\nThe answer is not A.", "B"),
        ("The answer is B, not C.", "B"),
        ("The answer is B rather than C.", "B"),
        ('{"step_by_step_thinking": "It is A or B.", "answer_choice": "B"}', "B"),
        ('{"final_answer_letter": "B"}', "B"),
        ("answer_choice: B", "B"),
        ("The tumour with a dural tail is B.", "B"),
        ("The letter of one option is confirmed as B.", "B"),
        ('The tumour with a dural tail is "meningioma".', "B"),
        ("A tumour with a dural tail is most likely a meningioma.", "B"),
    ],
)
def test_a_letter_counts_whatever_words_follow_it(text, letter):
    prediction = parse_answer(text, CHOICE_ITEM)
    assert (prediction.choice, prediction.parse_status) == (letter, ParseStatus.REPAIRED)


@pytest.mark.parametrize("text", ["The answer is B. glioma", "B. glioma", "(B) brain abscess\n\nIt has a rim.", r"\boxed{B. glioma}"])
def test_a_letter_before_the_words_of_another_option_counts_and_is_marked(text):
    prediction = parse_answer(text, CHOICE_ITEM)
    assert (prediction.choice, prediction.differential, prediction.parse_status) == ("B", ("meningioma",), ParseStatus.CONTRADICTED)


def test_the_beginning_of_an_options_own_words_contradicts_nothing():
    item = replace(CHOICE_ITEM, options=("diaphragm", "pleura", "diaphragm and pleura"))
    assert parse_answer("C. diaphragm, pleura", item).parse_status is ParseStatus.REPAIRED
    assert parse_answer("C. pleura, diaphragm", item).parse_status is ParseStatus.CONTRADICTED


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("B. Provide a written note with the answer on it", ParseStatus.CONTRADICTED),
        ("B. Repeat the answer in simplified words so that the patient fully understands.", ParseStatus.REPAIRED),
        ("A. Give the patient a note with the answer on it.", ParseStatus.REPAIRED),
        (
            "C. The patient fully understands a written note with the answer on it, and so does the family, as many know.",
            ParseStatus.REPAIRED,
        ),
    ],
)
def test_the_words_of_another_option_with_few_of_them_changed_contradict_a_letter_too(text, status):
    options = (
        "Give the patient a written note with the answer on it.",
        "Repeat the answer using simplified synonyms to ensure the patient fully understands.",
        "Move it to the back of the closet.",
    )
    assert parse_answer(text, replace(CHOICE_ITEM, options=options)).parse_status is status


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Yes, there is a lesion in the left thalamus.", "A"),
        ("No, there is no restricted diffusion.", "B"),
        ("Yes. The ventricles are wide.\n\nThere is no doubt that it is hydrocephalus.", "A"),
        ("**No.** The sulci are not effaced.", "B"),
        ("**Yes**, it enhances.\nCONFIDENCE: 0.8", "A"),
        ("no; nothing enhances", "B"),
        ("Yes - the rim enhances", "A"),
        ("Yes there is a lesion.", "A"),
        ("No it is not enlarged.", "B"),
        ("Yes, because no enhancement is seen.", "A"),
        ("Yes, there is. The answer is yes.", "A"),
        ("<think>No, there is none.</think>Yes, there is a lesion.", "A"),
    ],
)
@pytest.mark.parametrize("options", [("Yes", "No"), ("yes", "no", "maybe")])
def test_an_opening_yes_or_no_is_read_where_these_are_the_options(text, letter, options):
    prediction = parse_answer(text, replace(CHOICE_ITEM, options=options))
    assert (prediction.choice, prediction.parse_status) == (letter, ParseStatus.REPAIRED)


@pytest.mark.parametrize("options", [("Yes", "No", "Only on the left"), ("Glioma", "Abscess"), ("Yes", "Glioma")])
def test_an_opening_yes_is_not_read_where_there_are_other_options(options):
    assert parse_answer("Yes, there is a lesion.", replace(CHOICE_ITEM, options=options)).choice == ""


@pytest.mark.parametrize(
    "text",
    [
        "Yes, there is a lesion. So the answer is no.",
        "Yes ... so the answer is no",
        "Yes, it is bright, so the answer to the question is no.",
        "No, it is dark. The final answer: yes",
        "Yes, there is.\n\nNo",
        "Yes, there is. No, there is not.",
        "Yes, it looks so, but no.",
        "No, there is none. I would say yes.",
        "No, wait, there is a lesion.",
        "No, there is no lesion.\nThis sentence is incorrect.",
        "Yes, option B.",
        "Yes and no.",
        "Yes or no",
        "Yes/No",
        "Yes, if contrast was given.",
        "No lesion is seen.",
        "No. 5 is the best slice.",
        "Yesterday, it was larger.",
        "Not sure, there may be one.",
        "The lesion is small. Yes, there is one.",
    ],
)
@pytest.mark.parametrize("options", [("Yes", "No"), ("yes", "no", "maybe")])
def test_an_opening_yes_or_no_that_is_contradicted_or_no_answer_is_not_read(text, options):
    assert parse_answer(text, replace(CHOICE_ITEM, options=options)).parse_status is ParseStatus.FAILED


def test_a_letter_counts_behind_an_opening_yes_or_no_too():
    """It is the form that was asked for."""
    for text in ("Yes, there is a lesion.\nANSWER: B", "Yes, there is a lesion. The answer is (B)."):
        assert parse_answer(text, replace(CHOICE_ITEM, options=("Yes", "No"))).choice == "B"


def test_printed_letters_count_where_the_options_are_letters_themselves():
    item = replace(CHOICE_ITEM, options=("B", "C", "A"))
    assert parse_answer("ANSWER: A", item).differential == ("B",)
    assert parse_answer("The answer is A. B", item).choice == "A"


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("정답: B", "B"),
        ("B. 수막종", "B"),
        ("수막종", "B"),
        ("（B）", "B"),
        ("答案：B。", "B"),
        ("B. 교모세포종", "B"),
        ("B 는 아니다", ""),
        ("뇌종양", ""),
    ],
)
def test_options_in_other_scripts_are_compared_too(text, letter):
    item = replace(CHOICE_ITEM, options=("교모세포종", "수막종", "뇌농양"))
    assert parse_answer(text, item).choice == letter


def test_an_option_may_say_that_none_is_right():
    item = replace(CHOICE_ITEM, options=("glioma", "meningioma", "None of the above"))
    assert parse_answer("The answer is none of the above.", item).choice == "C"


def test_a_lesion_in_json_and_the_sentence_that_there_is_none_are_read():
    fields = {"lesion": "enhancing mass", "location": "frontal lobe", "side": "left"}
    read = parse_answer(json.dumps({**fields, "note": "x"}), LESION_ITEM)
    assert (read.parse_status, read.fields) == (ParseStatus.REPAIRED, fields)
    none = parse_answer("There is no lesion.\n\nThe ventricles are normal.", LESION_ITEM)
    assert (none.differential, none.fields["lesion"]) == (("no lesion",), "no lesion")


def test_a_structured_answer_that_fits_its_schema_is_strict():
    prediction = parse_answer(json.dumps(FIELDS), SCHEMA_ITEM)
    assert prediction.parse_status is ParseStatus.STRICT
    assert prediction.fields == {"modality": "MRI", "sequence": "T1C+", "plane": "axial", "class": "tumor", "subtype": "glioma"}
    assert prediction.confidence == 0.9


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{json.dumps(FIELDS)}\n```",
        f"Here it is: {json.dumps(FIELDS)} I hope it helps.",
        str(FIELDS),
        json.dumps(FIELDS).replace("}", ",}"),
        json.dumps({**FIELDS, "class": "Brain Tumour", "sequence": "T1 C+"}),
        json.dumps({**FIELDS, "comment": "x"}),
    ],
)
def test_a_structured_answer_is_taken_out_of_its_surroundings(text):
    prediction = parse_answer(text, SCHEMA_ITEM)
    assert prediction.parse_status is ParseStatus.REPAIRED
    assert prediction.fields["class"] == "tumor"
    assert prediction.fields["sequence"] == "T1C+"


def test_null_abstains_and_an_unknown_label_is_kept_as_wrong():
    prediction = parse_answer(json.dumps({**FIELDS, "class": None, "plane": "oblique"}), SCHEMA_ITEM)
    assert prediction.abstained
    assert "class" not in prediction.fields
    assert prediction.fields["plane"] == "oblique"
    assert prediction.confidence is None


@pytest.mark.parametrize("text", ["tumor", "[]", "3", '{"a": 1}', "{" * 10_000, '{"class": "tumor"'])
def test_an_answer_without_an_object_of_fields_is_failed(text):
    assert parse_answer(text, SCHEMA_ITEM).parse_status is ParseStatus.FAILED


def test_a_differential_in_another_script_is_read_like_any_other():
    answer = "DIFFERENTIAL:\n1. 脑梗死\n2. 胶质瘤\nFINDINGS: 左侧岛叶\nRATIONALE: 突发\nCONFIDENCE: 0.7"
    prediction = parse_answer(answer, ITEM)
    assert (prediction.parse_status, prediction.differential) == (ParseStatus.STRICT, ("脑梗死", "胶质瘤"))


def test_the_words_of_an_open_answer_are_what_its_rubric_is_judged_by():
    item = replace(ITEM, family=Family.QUESTION_ANSWERING)
    prediction = parse_answer("ANSWER: Start heparin, then repeat the scan.\nCONFIDENCE: 0.4", item)
    assert (prediction.parse_status, prediction.findings) == (ParseStatus.STRICT, "Start heparin, then repeat the scan")


def test_full_width_signs_and_digits_of_other_scripts_are_those_of_the_form():
    chinese = parse_answer(
        "DIFFERENTIAL：\n１．脑梗死（左侧）\n２、脑出血：基底节\nFINDINGS：高信号。水肿\nRATIONALE：符合\nCONFIDENCE：０．７", ITEM
    )
    assert (chinese.differential, chinese.findings, chinese.confidence) == (("脑梗死 (左侧)", "脑出血"), "高信号. 水肿", 0.7)
    arabic = parse_answer("DIFFERENTIAL:\n١. احتشاء دماغي\n٢. نزف دماغي\nFINDINGS: وذمة\nCONFIDENCE: ٧٠٪", ITEM)
    assert (arabic.differential, arabic.confidence) == (("احتشاء دماغي", "نزف دماغي"), 0.7)
    in_a_line = parse_answer("DIFFERENTIAL: 1、脑梗死 2、脑出血", ITEM)
    assert in_a_line.differential == ("脑梗死", "脑出血")


@pytest.mark.parametrize(
    "text",
    ["答案：Ｂ", "答案是Ｂ。", "正确答案为（Ｂ）", "答案：B选项", "答案是B，因为A选项不符合", "答案是B，不是A。", "（Ｂ）脑出血", "B、脑出血", "脑出血", "答えはBです。", "정답은 B입니다", "回答：B",
     "Ответ: B", "Réponse : B", "Respuesta: **B**", "Antwort: B", "الإجابة: B", "תשובה: B", "उत्तर: B", "คำตอบ: B"],
)  # fmt: skip
def test_a_choice_is_read_behind_the_word_for_answer_in_other_languages(text):
    assert parse_answer(text, CHOICE_IN_CHINESE).choice == "B"


@pytest.mark.parametrize(
    "text",
    [
        "答案是A和B",
        "答案：A或B",
        "정답은 A와 B입니다",
        "正答はＡとＢ",
        "Respuesta a la pregunta",
        "Antwort: unklar",
        "脑出血或脑梗死",
    ],
)
def test_two_choices_or_none_are_not_read_in_other_languages_either(text):
    assert parse_answer(text, CHOICE_IN_CHINESE).choice == ""


@pytest.mark.parametrize(
    ("text", "item", "why"),
    [
        (differential("glioblastoma"), ITEM, ""),
        (" ", ITEM, "is empty"),
        ("<think>It is a glioma.", ITEM, "never closed its thinking"),
        ("<think>I cannot tell B from C.", CHOICE_ITEM, "never closed its thinking"),
        ("<think>It is a glioma.</think>\n", ITEM, "is nothing but thoughts"),
        ("I'm sorry, but I cannot help with that.", ITEM, "refuses"),
        ("1. <most likely diagnosis>\n2. <next diagnosis>", ITEM, "copies the form"),
        ("The patient fell. " + "She was brought in by her neighbour at eight in the morning and was awake. " * 9, ITEM, "repeats itself"),
        ("She has a glioblastoma in her history.", ITEM, "calls nothing the diagnosis"),
        ("B or C", CHOICE_ITEM, "names no option"),
        ("The lesion lies on the left.", LESION_ITEM, "has no LESION"),
        ("a tumour", SCHEMA_ITEM, "has no JSON object"),
    ],
)
def test_why_an_answer_was_not_read_is_said_without_its_words(text, item, why):
    said = why_unread(text, item)
    assert said.startswith(why)
    assert bool(said) == bool(why)


def test_what_a_model_thinks_is_neither_an_abstention_nor_a_refusal():
    prediction = parse_answer("<think>I cannot tell B from C. ANSWER: not known", CHOICE_ITEM)
    assert (prediction.parse_status, prediction.abstained) == (ParseStatus.FAILED, False)


def test_a_paragraph_without_spaces_is_no_candidate():
    reason = "患者有头痛和癫痫发作的病史，影像学检查显示右侧顶叶出血性梗死伴周围水肿，因此首先考虑静脉窦血栓形成，其他可能性较小"
    assert parse_answer(f"DIFFERENTIAL:\n脑静脉窦血栓形成\n{reason}", ITEM).differential == ("脑静脉窦血栓形成",)


@pytest.mark.parametrize(
    "text",
    [
        "DIFFERENTIAL: 0\nRESPONSE: [2:2]",
        "DIFFERENTIAL: 2",
        "DIFFERENTIAL:\n1. 7\n2. glioma",
        "The most likely diagnosis is the most likely one:",
        "The most likely diagnosis is the single most likely diagnosis.",
        "To say which diagnosis it is, we look at these facts:\n1. right hippocampus\n2. left fusiform gyrus",
    ],
)
def test_numbers_circles_and_facts_are_no_diagnoses(text):
    """Forms that a small model wrote: what names nothing is unread, and a later line does not take its place."""
    assert parse_answer(text, ITEM).parse_status is ParseStatus.FAILED


def test_a_diagnosis_of_words_of_rank_and_more_is_read():
    assert parse_answer("FIRST DIAGNOSIS: white brain\nSECOND DIAGNOSIS: glioma", ITEM).differential == ("white brain",)
    assert parse_answer("The most likely diagnosis is primary angiitis.", ITEM).differential == ("primary angiitis",)
    assert parse_answer("DIFFERENTIAL:\n1. trisomy 21\n2. 4", ITEM).differential[0] == "trisomy 21"


@pytest.mark.parametrize(
    ("text", "item", "abstained"),
    [
        ("ANSWER: not known\nCONFIDENCE: 0.1", CHOICE_ITEM, True),
        ('**ANSWER:** "not known"', CHOICE_ITEM, True),
        ("ANSWER: glioma, though not known for sure", CHOICE_ITEM, False),
        ("The cause is not known.", CHOICE_ITEM, False),
        ("ANSWER: not known", replace(ITEM, runner=Runner.STRUCTURED), False),
    ],
)
def test_a_choice_that_is_left_open_in_the_form_is_an_abstention(text, item, abstained):
    assert parse_answer(text, item).abstained is abstained
