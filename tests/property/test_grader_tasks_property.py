"""Whatever a grader answers and whatever a candidate says: nothing is raised, and nothing that was not asked for is read."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.scoring import GOLD, ITEM
from neuralmedbench.records.items import Criterion
from neuralmedbench.scoring.jury import decide
from neuralmedbench.scoring.llm.grader_requests import TASKS
from neuralmedbench.scoring.llm.task import MAX_CHARACTERS, GradingInput, UnreadReplyError, blind, contains_quote, escape_markup, object_of

KNOWN = replace(
    GOLD, rationale=("one", "two"), findings_complete=True, rubric=(Criterion(criterion="considers_1", text="Considers: x.", points=1.0),)
)
NAMES = (
    "main_condition", "core_diagnosis", "explanation", "considers_1", "met", "steps", "covered", "quote", "kind", "evidence", "errors",
    "code", "significant",
)  # fmt: skip
WORDS = ("reasoning", "supported", "wrong_side", "missed_lesion", "A mass", "", "x")
LEAVES = st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4), max_leaves=12
)
LIKELY = st.fixed_dictionaries(
    {
        "steps": st.lists(st.fixed_dictionaries({"quote": LEAVES, "kind": LEAVES, "evidence": LEAVES}) | VALUES, max_size=3),
        "covered": st.lists(LEAVES, max_size=3),
        "explanation": LEAVES,
    }
) | st.fixed_dictionaries(
    {"errors": st.lists(st.fixed_dictionaries({"code": LEAVES, "significant": LEAVES, "quote": LEAVES, "explanation": LEAVES}), max_size=3)}
)
NO_MARKS = str.maketrans("", "", "{}<>[]◁")
SUBJECT = GradingInput(replace(ITEM, lesion_shown=True), KNOWN, "A mass.", "A mass.")


@settings(max_examples=300)
@given(st.text() | VALUES.map(json.dumps) | LIKELY.map(json.dumps), st.sampled_from(sorted(TASKS)))
def test_no_answer_of_a_grader_raises_and_every_word_is_one_that_was_asked_for(text, task):
    words = TASKS[task].read(text, SUBJECT)
    if words is not None:
        asked = TASKS[task].criteria(SUBJECT.item, SUBJECT.gold)
        assert [word.criterion for word in words] == list(dict.fromkeys(word.criterion for word in words))
        assert {word.criterion for word in words} <= set(asked)
        assert all(word.value is None or 0 <= word.value <= (2 if task == "errors" else 1) for word in words)


@settings(max_examples=150)
@given(st.text(max_size=40))
def test_words_around_an_object_do_not_matter_and_another_one_does(text):
    with suppress(UnreadReplyError):
        assert object_of(f'{{"a": 1}} {text}', "a") == {"a": 1}
    assert object_of(f'{{"a": 1}} {text.translate(NO_MARKS)}', "a") == {"a": 1}
    with pytest.raises(UnreadReplyError):
        object_of(f'{{"a": 1}} {text} {{"a": 1}}', "a")


@settings(max_examples=200)
@given(st.text(max_size=200), st.lists(st.text(max_size=10), max_size=3))
def test_no_candidate_opens_or_closes_a_tag(text, names):
    shown = blind(text, names)
    assert len(shown) <= MAX_CHARACTERS
    assert not {"<", ">"} & set(escape_markup(shown))
    assert blind(shown, names) == shown
    assert contains_quote(shown, text) in {True, False}


@given(st.lists(st.floats(0, 2), min_size=1, max_size=7))
def test_a_majority_is_reached_by_more_than_half_and_nothing_larger_is(votes):
    value = decide(votes, "majority")
    assert 2 * sum(vote >= value for vote in votes) > len(votes)
    assert all(2 * sum(vote >= larger for vote in votes) <= len(votes) for larger in votes if larger > value)
