"""Answers in free words: what is read of them, with and without steps."""

from __future__ import annotations

import pytest

from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.scoring.parse import parse_answer
from prompt_fixtures import open_question


@pytest.mark.parametrize("steps", ["", "REASONING: The area is dark on the ADC map.\nSo it is fresh.\n"])
def test_the_form_is_read_strictly_with_and_without_steps(steps):
    read = parse_answer(f"{steps}ANSWER: A fresh infarction of the left insula\nCONFIDENCE: 0.8", open_question())
    assert read.parse_status is ParseStatus.STRICT
    assert read.differential == ("A fresh infarction of the left insula",)
    assert read.confidence == 0.8
    assert read.rationale == ("The area is dark on the ADC map. So it is fresh." if steps else "")


def test_headings_inside_a_free_answer_are_words_of_the_answer():
    """A long answer has parts of its own; taken for the sections of another form they would be lost, and with them what is graded."""
    text = "ANSWER: Two things.\nFindings: a dark area.\nLocation: left insula.\nRationale: it restricts.\nCONFIDENCE: 0.6"
    read = parse_answer(text, open_question())
    assert read.differential == ("Two things. Findings: a dark area. Location: left insula. Rationale: it restricts",)
    assert read.parse_status is ParseStatus.STRICT


@pytest.mark.parametrize("text", ["**Answer:** infarction", "Here it is.\nANSWER: infarction", "ANSWER: x\nAgain:\nANSWER: infarction."])
def test_a_form_that_is_plainly_meant_is_repaired_and_the_last_answer_counts(text):
    read = parse_answer(text, open_question())
    assert read.parse_status is ParseStatus.REPAIRED
    assert read.differential == ("infarction",)


@pytest.mark.parametrize("text", ["ANSWER: undetermined\nCONFIDENCE: 0", "ANSWER: I cannot tell from these pictures."])
def test_who_cannot_tell_abstains(text):
    read = parse_answer(text, open_question())
    assert read.abstained
    assert read.differential == ()
    assert read.confidence is None


@pytest.mark.parametrize("text", ["An infarction.", "ANSWER:", "ANSWER: <your whole answer>", "", "FINDINGS: an infarction"])
def test_prose_outside_the_form_is_no_answer(text):
    assert parse_answer(text, open_question()).parse_status is ParseStatus.FAILED
