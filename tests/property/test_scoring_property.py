"""Scoring holds for any text: no crash, no verdict out of nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from neuralmedbench.records.items import Runner
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.llm import read_verdict
from neuralmedbench.scoring.matching import Reference, Relation, relation
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.statements import says
from scoring_fixtures import GOLD, ITEM, LESION_ITEM, PICTURE_ITEM, checklist, differential, vocabulary

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
ITEMS = st.sampled_from([ITEM, LESION_ITEM, PICTURE_ITEM, replace(ITEM, runner=Runner.CHOICE, options=("a", "b"))])
NAMES = st.sampled_from(sorted(entry.name for entry in vocabulary().diagnoses.values()))


@settings(max_examples=200, deadline=None)
@given(TEXTS, ITEMS)
def test_any_text_is_read_without_an_error(text, item):
    prediction = parse_answer(text, item)
    assert len(prediction.differential) <= 5
    assert prediction.confidence is None or 0 <= prediction.confidence <= 1
    assert len(prediction.evidence) in {0, len(prediction.differential)}
    if prediction.parse_status is ParseStatus.FAILED:
        assert not prediction.differential
        assert prediction.fields is None


@settings(max_examples=100, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=5, unique=True))
def test_a_differential_written_in_the_form_comes_back_as_it_was_written(names):
    prediction = parse_answer(differential(*names), ITEM)
    assert prediction.parse_status is ParseStatus.STRICT
    assert list(prediction.differential) == names


WORDS = st.text(max_size=40).map(lambda text: " ".join(text.replace("|", "").replace("｜", "").split()))
"""Words of one line."""


@settings(max_examples=150, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=5, unique=True), WORDS | NAMES, WORDS | NAMES)
def test_no_words_of_the_evidence_change_what_a_checklist_names(names, speaks_for, against):
    prediction = parse_answer(checklist(*names, evidence=f"| for: {speaks_for} | against: {against}"), ITEM)
    assert list(prediction.differential) == names
    assert len(prediction.evidence) == len(names)


@settings(max_examples=100, deadline=None)
@given(NAMES, NAMES)
def test_relations_are_mirrored(first, second):
    mirror = {Relation.CHILD: Relation.PARENT, Relation.PARENT: Relation.CHILD, Relation.SYNONYM: Relation.SYNONYM}
    one = relation(first, Reference.of(replace(GOLD, answer=second, aliases=()), vocabulary()))
    other = relation(second, Reference.of(replace(GOLD, answer=first, aliases=()), vocabulary()))
    assert mirror.get(one, one) == other


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_line_has_a_relation_unless_it_is_blank(text):
    found = relation(text, Reference.of(GOLD, vocabulary()))
    assert (found is None) == (not normal_form(text))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80), st.text(max_size=80))
def test_statements_are_compared_without_an_error(text, statement):
    assert says(text, statement) in {True, False}


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["main_condition", "core_diagnosis", "explanation", "x"]), st.none() | st.booleans() | st.text(max_size=5)
    )
)
def test_only_the_grader_form_is_a_verdict(value):
    assert read_verdict(json.dumps(value)) is None


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


@settings(max_examples=300, deadline=None)
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


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.integers(2, 10))
def test_a_choice_is_one_of_the_options_or_none(text, number):
    options = tuple(f"option number {place}" for place in range(number))
    prediction = parse_answer(text, replace(ITEM, runner=Runner.CHOICE, options=options))
    assert (prediction.choice == "") == (prediction.parse_status is ParseStatus.FAILED)
    if prediction.choice:
        assert prediction.differential == (options["ABCDEFGHIJ".index(prediction.choice)],)
