"""Scoring holds for any text: no crash, no verdict out of nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.scoring import GOLD, ITEM, LESION_ITEM, PICTURE_ITEM, checklist, differential, vocabulary
from neuralmedbench.records.items import Family, Runner
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.records.thoughts import without_thoughts
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.checklist import is_checklist, read_candidates
from neuralmedbench.scoring.choice import read_choice
from neuralmedbench.scoring.llm.grader_requests import DIAGNOSIS_TASK
from neuralmedbench.scoring.llm.task import GradingInput
from neuralmedbench.scoring.matching import ReferenceAnswer, Relation, relation
from neuralmedbench.scoring.parse import parse_answer, parse_checklist
from neuralmedbench.scoring.places import mentioned_places, sides
from neuralmedbench.scoring.sections import read_sections
from neuralmedbench.scoring.statements import contains_statement
from neuralmedbench.scoring.structured_answer import find_answer_object

PIECES = (
    "DIFFERENTIAL:",
    "SEEN:",
    " | ",
    "against: ",
    "FINDINGS:",
    "LESION:",
    "1. ",
    "2) ",
    "**",
    "\n",
    "{",
    "}",
    '"class":',
    "null",
    "<think>",
    "0.5",
    "glioblastoma",
    "ANSWER: B",
    "answer is ",
    "\\boxed{",
    '"answer": "',
    " or ",
    "(B)",
    "A ",
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map("".join))
EVERY_FORM = [
    replace(ITEM, family=family, runner=runner, options=("a", "b") if runner is Runner.CHOICE else ())
    for family in Family
    for runner in Runner
]
EVERY_PARSER = [one for one in EVERY_FORM if Family.DIFFERENTIAL_DIAGNOSIS is one.family or one.runner is Runner.OPEN]
"""Each runner with one family, and each family with one runner."""
ITEMS = st.sampled_from([ITEM, LESION_ITEM, PICTURE_ITEM, *EVERY_FORM])
NAMES = st.sampled_from(sorted(entry.name for entry in vocabulary().diagnoses.values()))


@settings(max_examples=200)
@given(TEXTS, ITEMS)
def test_any_text_is_read_without_an_error(text, item):
    prediction = parse_answer(text, item)
    assert len(prediction.differential) <= 5
    assert prediction.confidence is None or 0 <= prediction.confidence <= 1
    assert len(prediction.evidence) in {0, len(prediction.differential)}
    if prediction.parse_status is ParseStatus.FAILED:
        assert not prediction.differential
        assert prediction.fields is None


@settings(max_examples=100)
@given(st.lists(NAMES, min_size=1, max_size=5, unique=True))
def test_a_differential_written_in_the_form_comes_back_as_it_was_written(names):
    prediction = parse_answer(differential(*names), ITEM)
    assert prediction.parse_status is ParseStatus.STRICT
    assert list(prediction.differential) == names


WORDS = st.text(max_size=40).map(lambda text: " ".join(text.replace("|", "").replace("｜", "").split()))
"""Words of one line."""


@settings(max_examples=150)
@given(st.lists(NAMES, min_size=1, max_size=5, unique=True), WORDS | NAMES, WORDS | NAMES)
def test_no_words_of_the_evidence_change_what_a_checklist_names(names, speaks_for, against):
    prediction = parse_answer(checklist(*names, evidence=f"| for: {speaks_for} | against: {against}"), ITEM)
    assert list(prediction.differential) == names
    assert len(prediction.evidence) == len(names)


@settings(max_examples=100)
@given(NAMES, NAMES)
def test_relations_are_mirrored(first, second):
    mirror = {Relation.CHILD: Relation.PARENT, Relation.PARENT: Relation.CHILD, Relation.SYNONYM: Relation.SYNONYM}
    one = relation(first, ReferenceAnswer.of(replace(GOLD, answer=second, aliases=()), vocabulary()))
    other = relation(second, ReferenceAnswer.of(replace(GOLD, answer=first, aliases=()), vocabulary()))
    assert mirror.get(one, one) == other


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_any_line_has_a_relation_unless_it_is_blank(text):
    found = relation(text, ReferenceAnswer.of(GOLD, vocabulary()))
    assert (found is None) == (not normal_form(text))


@settings(max_examples=100)
@given(st.text(max_size=80), st.text(max_size=80))
def test_statements_are_compared_without_an_error(text, statement):
    assert contains_statement(text, statement) in {True, False}


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(["main_condition", "core_diagnosis", "explanation", "x"]), st.none() | st.booleans() | st.text(max_size=5)
    )
)
def test_truth_values_are_a_verdict_and_nothing_else_is(value):
    names = ("main_condition", "core_diagnosis")
    truths = [TRUTHS.get(str(value.get(name)).strip().lower()) for name in names]
    verdict = DIAGNOSIS_TASK.read(json.dumps(value), SUBJECT)
    known = set(value) == {*names, "explanation"} and isinstance(value["explanation"], str) and None not in truths
    expected = truths if known and truths != [0, 1] else None
    assert (verdict and [judged.value for judged in verdict]) == expected


TRUTHS = {"true": 1, "yes": 1, "1": 1, "false": 0, "no": 0, "0": 0}
SUBJECT = GradingInput(ITEM, GOLD, "", "")
OPTIONS = ("glioma of the brain stem", "meningioma", "brain abscess", "infarct", "T2 shine-through", "B-cell lymphoma", "no lesion")
FORMS = (
    "{letter}",
    "{lower}",
    "({letter})",
    "**{letter}**",
    "{letter}.",
    "{letter}) {words}",
    "{letter}. {words}.",
    "**{letter}. {words}**",
    "Option {letter}",
    "{words}",
    "ANSWER: {letter}",
    "ANSWER: {letter}\nCONFIDENCE: 0.8",
    "**Answer:** ({letter}) {words}",
    "Final answer: {letter}",
    "### Answer\n{letter}",
    "The answer is {letter}.",
    "The answer is ({letter}), because the margin is sharp.",
    "The correct answer is **{letter}. {words}**, as the margin is sharp.",
    "The most likely answer is {words}.",
    "Option {letter} is the correct answer.",
    "I would choose option {letter}.",
    r"\boxed{{{letter}}}",
    r"$\boxed{{\text{{({letter})}}}}$",
    r"The answer is \(\boxed{{{letter}}}\).",
    '{{"answer": "{letter}"}}',
    "<answer>{letter}. {words}</answer>",
    "The answer is '{letter}'.",
    "the correct answer is ({lower}) {words}",
    "答案：{letter}",
    "The answer would most likely be {letter}.",
    "{{'choice': '{letter}', 'confidence': 0.4}}",
    '```json\n{{"reasoning": "The answer is C at first.", "answer": "{letter}) {words}"}}\n```',
    "{letter}\n\nThe margin is sharp and the signal is high.",
    "The margin is sharp.\n\n{letter}",
)


@settings(max_examples=300)
@given(
    st.sampled_from(FORMS),
    st.integers(0, len(OPTIONS) - 1),
    st.sampled_from(("", "<think>The answer is B.</think>", "The answer is D at first.\n")),
)
def test_every_way_to_write_a_letter_gives_this_letter(form, place, before):
    if before.endswith("\n") and not re.search("answer|choi|boxed|答案", form, re.IGNORECASE):
        before = ""  # without a marker the earlier one is the last
    text = before + form.format(letter="ABCDEFG"[place], lower="abcdefg"[place], words=OPTIONS[place])
    prediction = parse_answer(text, replace(ITEM, runner=Runner.CHOICE, options=OPTIONS))
    assert prediction.choice == "ABCDEFG"[place]
    assert prediction.differential == (OPTIONS[place],)
    asked = (form.startswith("ANSWER:") and not before.endswith("\n")) or before + form == "{letter}"
    assert (prediction.parse_status is ParseStatus.STRICT) == asked


@settings(max_examples=200)
@given(TEXTS, st.integers(2, 10))
def test_a_choice_is_one_of_the_options_or_none(text, number):
    options = tuple(f"option number {place}" for place in range(number))
    prediction = parse_answer(text, replace(ITEM, runner=Runner.CHOICE, options=options))
    assert (prediction.choice == "") == (prediction.parse_status is ParseStatus.FAILED)
    if prediction.choice:
        assert prediction.differential == (options["ABCDEFGHIJ".index(prediction.choice)],)


LONG = 50_000
HOSTILE = {
    "a deep list": "[" * LONG,
    "a deep object": '{"class": ' * 20_000,
    "a number of 6,000 digits": '{"confidence": ' + "1" * 6_000 + "}",
    "a confidence of 6,000 digits": "DIFFERENTIAL:\n1. stroke\nCONFIDENCE: " + "9" * 6_000,
    "infinity": '{"class": "stroke", "confidence": 1e999999}',
    "no number": '{"class": "stroke", "confidence": NaN}',
    "half a character": "DIFFERENTIAL:\n1. \ud800\nFINDINGS: \udfff\nANSWER: \ud800",
    "wrong types": '```json\n{"class": ["a", {"b": 1}], "plane": true, "confidence": "x"}\n```',
    "NUL": "ANSWER: \x00B\nLESION: \x00",
    "letters from right to left": "\u202eANSWER: B\u202c",
    "spaces": " " * LONG,
    "lines": "\n" * LONG,
    "stars": "*" * LONG,
    "brackets": "[(" * (LONG // 2),
    "braces": "{" * LONG,
    "boxes": "\\boxed{" * (LONG // 7),
    "answers": "the answer is " * (LONG // 14),
    "evidence": "SEEN: x\nDIFFERENTIAL:\n1. " + " | for: " * (LONG // 8),
    "ranks": "DIFFERENTIAL:\n" + "1. " * (LONG // 3),
    "thoughts": "<think>" * (LONG // 7),
    "fences": "```json\n" * (LONG // 8),
}
"""Answers that a broken or an ill-meaning model writes: no parser may raise, and none may take for ever."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_is_read_by_every_parser(kind: str) -> None:
    text = HOSTILE[kind]
    for item in (*EVERY_PARSER, PICTURE_ITEM):
        prediction = parse_answer(text, item)
        assert prediction.confidence is None or 0 <= prediction.confidence <= 1
    assert DIAGNOSIS_TASK.fault(text, SUBJECT)
    assert contains_statement(text, "no restricted diffusion in the left insula") is False
    assert DIAGNOSIS_TASK.read(text, SUBJECT) is None


@settings(max_examples=200)
@given(
    TEXTS
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ).map(json.dumps)
)
def test_the_parts_of_the_parsers_never_raise(text: str) -> None:
    """Each of them alone: what another command calls is not always behind `parse_answer`."""
    value, _ = find_answer_object(text)
    assert value is None or isinstance(value, dict)
    assert DIAGNOSIS_TASK.read(text, SUBJECT) is None
    assert read_choice(text, OPTIONS).letter in {"", *"ABCDEFG"}
    assert is_checklist(text) in {True, False}
    assert len(read_candidates(text.splitlines())[0]) <= max(1, len(text))
    assert without_thoughts(read_sections(text).text("FINDINGS")) is not None
    assert sides(text) <= {"left", "right", "bilateral", "midline"}
    assert mentioned_places(text, vocabulary()) <= set(vocabulary().locations)
    for family in Family:
        checklist_read = parse_checklist(text, family)
        assert checklist_read is None or checklist_read.parse_status in ParseStatus
