from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, source
from fixtures.models import model_config, request
from fixtures.prompt import question as choice_question
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.config.arms import load_arms
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.templates import Templates
from neuralmedbench.models.conversation import next_messages, question_of
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.records.fact_matching import matching_facts, matching_statements
from neuralmedbench.records.items import Level
from neuralmedbench.records.requests import STATEMENT, Fact, Inquiry, RequestTurn

NOTE = "Sudden weakness of the right arm. She takes warfarin for atrial fibrillation. No fever.\nBlood pressure 180/95."
TEMPLATES = Templates(ROOT / "config/prompts")
FACTS = tuple(
    Fact(text=text) for text in ("She takes warfarin.", "Atrial fibrillation since 2 years.", "No fever.", "Blood pressure 180/95.")
)


def asking(*facts: Fact, most: int = 3) -> Inquiry:
    return Inquiry(
        facts=facts, max_questions=most, unknown="The case does not say.", left="Questions left: {left}.", closing="Final answer now."
    )


def asked(*facts: Fact, most: int = 3):
    return replace(request("i1", RequestTurn(text="A patient.")), inquiry=asking(*facts, most=most))


def last(messages) -> str:
    assert messages is not None
    return messages[-1].text


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("Does she take any drugs such as warfarin?", ["She takes warfarin."]),
        ("Is there a fever?", ["No fever."]),
        ("What is the blood pressure?", ["Blood pressure 180/95."]),
        ("Any fibrillations of the atria?", ["Atrial fibrillation since 2 years."]),
        ("What does the liver biopsy show?", []),
        ("", []),
    ],
)
def test_a_question_is_answered_by_the_facts_that_share_its_words_and_by_no_other(question, facts):
    assert [fact.text for fact in matching_facts(question, FACTS)] == facts


@given(st.text(max_size=300))
def test_a_reply_never_says_more_than_the_case(question):
    assert set(matching_facts(question, FACTS)) <= set(FACTS)


def test_what_a_model_asks_is_told_apart_from_its_final_answer():
    assert question_of("I wonder.\n**QUESTION:** Any fever?") == "Any fever?"
    assert question_of("DIFFERENTIAL:\n1. stroke\nFINDINGS: she said\nQUESTION: none") == ""
    assert question_of("A stroke.") == ""


def test_a_dialogue_goes_on_while_the_model_asks_and_ends_with_its_differential():
    one = asked(*FACTS)
    answers = ["QUESTION: any fever?"]
    assert last(next_messages(one, answers, None)) == "No fever.\n\nQuestions left: 2."
    answers.append("QUESTION: the liver?")
    assert last(next_messages(one, answers, None)) == "The case does not say.\n\nQuestions left: 1."
    assert next_messages(one, [*answers, "DIFFERENTIAL:\n1. stroke"], None) is None


def test_after_the_last_question_the_final_answer_is_asked_for_and_nothing_after_it():
    one = asked(*FACTS, most=1)
    assert last(next_messages(one, ["QUESTION: fever?"], None)) == "No fever.\n\nFinal answer now."
    assert next_messages(one, ["QUESTION: fever?", "QUESTION: and the pressure?"], None) is None


def test_a_model_that_cannot_be_asked_is_skipped_and_rounds_and_questions_are_two_requests(tmp_path):
    made = build_cases("b", benchmark_config(), [source("a1", notes=(NOTE,))], {"a1": answer("a1", level=Level.DIALOGUE)}, VOCABULARY)
    requests = assemble(made.items, CaseMaterial(), benchmark_config(arms=["full"], strategies=["direct", "ask"], samples=1), TEMPLATES)
    dialogue = [row for row in requests if row.strategy == "ask"]
    assert [row.item_id for row in dialogue] == ["b/a1/differential_diagnosis"]
    model = model_config(backend="imported", id="x", temperature=None)
    rows = answer_requests(dialogue, ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None))
    assert [row.state for row in rows] == ["skipped"], "a model that has no answers is skipped, it does not hang"


def test_the_first_message_tells_one_sentence_and_everything_else_waits_to_be_asked_for():
    made = build_cases("b", benchmark_config(), [source("a1", notes=(NOTE,))], {"a1": answer("a1", level=Level.DIALOGUE)}, VOCABULARY)
    config = benchmark_config(arms=["full", "no_image", "no_text"], strategies=["direct", "ask"], max_questions=4)
    rows = {row.arm: row for row in assemble(made.items, CaseMaterial(), config, TEMPLATES) if row.strategy == "ask"}
    assert set(rows) == {"full", "no_image"}, "without a text nothing could be asked for"
    first = rows["full"].turns[0]
    assert "Sudden weakness of the right arm." in first.text
    assert "warfarin" not in first.text
    assert "up to 4 questions" in first.text
    assert not first.images
    inquiry = rows["full"].inquiry
    assert inquiry is not None
    assert [fact.text for fact in inquiry.facts if fact.images] == ["The pictures of the head follow this text, each after its label."]
    assert "Sodium: 138 mmol/L" in [fact.text for fact in inquiry.facts], "the record can be asked for too"
    shown = next_messages(rows["full"], ["QUESTION: What does the MRI of the brain show?"], None)
    assert shown is not None
    assert len(shown[-1].images) == 4
    assert not [fact for fact in rows["no_image"].inquiry.facts if fact.images]
    assert rows["full"].request_id != rows["no_image"].request_id


STATEMENTS = tuple(
    Fact(text=text, kind=STATEMENT)
    for text in (
        "Her sister had a melanoma.",
        "The rash does not itch.",
        "The rash is on the left leg.",
        "The rash began 3 weeks ago.",
        "She takes methotrexate.",
        "She has no history of skin cancer.",
        "On examination there is an ulcer of the shin.",
        "She has a weight loss of 4 kg.",
    )
)


@pytest.mark.parametrize(
    ("question", "places"),
    [
        ("Is there a family history of melanoma or other skin cancers?", [0]),
        ("Is the rash itchy?", [1]),
        ("When did it start?", [3]),
        ("Which medications does she take?", [4]),
        ("Fever, chills, or weight loss?", [7]),
        ("What does the examination show?", [6]),
        # one shared word of two, or a subject of which the case says nothing, is no answer
        ("What did the skin biopsy show?", []),
        ("Does anyone in the family have diabetes?", []),
        ("Has she travelled?", []),
        ("", []),
    ],
)
def test_a_statement_is_told_only_if_it_is_on_the_subject_of_the_question_or_shares_most_of_its_words(question, places):
    assert matching_statements(question, STATEMENTS) == [STATEMENTS[place] for place in places]


@given(st.text(max_size=300))
def test_no_question_brings_more_than_three_statements(question):
    told = matching_statements(question, STATEMENTS * 2)
    assert len(told) <= 3
    assert set(told) <= set(STATEMENTS)


def test_a_question_with_options_is_asked_for_its_facts_or_told_all_or_none_of_them():
    item = choice_question(record="", images=(), notes="A woman of 53 has a rash.\n\nThe rash does not itch.\nShe takes methotrexate.")
    arms = ["full", "evidence-history", "evidence-together"]
    config = benchmark_config(arms=arms, strategies=["direct", "ask"], samples=1, max_questions=2)
    rows = assemble([item], CaseMaterial(arms=load_arms(ROOT / "config", config.arms, "b")), config, TEMPLATES)
    assert {(row.arm, row.strategy) for row in rows} == {("full", "direct"), *((arm, "ask") for arm in arms)}
    full, history, together = (next(row for row in rows if (row.arm, row.strategy) == (arm, "ask")) for arm in arms)
    for row in (full, history, together):
        assert "A woman of 53 has a rash." in row.turns[0].text
        assert f"A. {item.options[0]}" in row.turns[0].text
        assert ("methotrexate" in row.turns[0].text) is (row is together)
        assert next_messages(row, ["ANSWER: B"], None) is None
        assert ("QUESTION: <one question>" in row.turns[0].text) is (row is full)
    assert last(next_messages(full, ["QUESTION: Which drugs?"], None)) == "She takes methotrexate.\n\nQuestions left: 1."
    closing = last(next_messages(full, ["QUESTION: Which drugs?", "QUESTION: Any fever?"], None))
    assert closing.startswith("The case does not say.\n\nThere are no questions left.")
    # a letter ends it, whatever else is asked in the same message
    assert next_messages(full, ["QUESTION: Which drugs?\nANSWER: B"], None) is None


def test_an_arm_of_facts_needs_questions_with_facts():
    item = choice_question(record="", images=(), notes="A woman of 53 has a rash.")
    config = benchmark_config(arms=["full", "evidence-together"], strategies=["direct"], samples=1)
    with pytest.raises(
        ConfigError, match=r"arm evidence-together: it is one of work-ups and of questions with options .*; add `workup` or `ask`"
    ):
        assemble([item], CaseMaterial(arms=load_arms(ROOT / "config", config.arms, "b")), config, TEMPLATES)
