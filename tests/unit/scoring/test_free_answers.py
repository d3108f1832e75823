"""Reading free-text answers, with and without steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fixtures.prompt import open_question
from fixtures.scoring import answered, vocabulary
from neuralmedbench.recording.trace import TracedAnswers, recount
from neuralmedbench.records.items import Criterion, Gold, Item
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import RubricGraders, score_responses
from neuralmedbench.tables.outcomes import Key, gather_outcomes


@pytest.mark.parametrize("steps", ["", "REASONING: The area is dark on the ADC map.\nSo it is fresh.\n"])
def test_the_form_is_read_strictly_with_and_without_steps(steps):
    read = parse_answer(f"{steps}ANSWER: A fresh infarction of the left insula\nCONFIDENCE: 0.8", open_question())
    assert read.parse_status is ParseStatus.STRICT
    assert read.differential == ("A fresh infarction of the left insula",)
    assert read.confidence == 0.8
    assert read.rationale == ("The area is dark on the ADC map. So it is fresh." if steps else "")


def test_headings_inside_a_free_answer_are_words_of_the_answer():
    """A long answer may have headings; read as sections of another form they would be lost, and with them the graded text."""
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


@pytest.mark.parametrize("text", ["ANSWER:", "ANSWER: <your whole answer>", "", "FINDINGS: an infarction", "So it is. " * 60])
def test_another_form_and_long_prose_are_no_answer(text):
    assert parse_answer(text, open_question()).parse_status is ParseStatus.FAILED


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("### Answer\n\n**An infarction**", "An infarction"),
        (
            "Some thoughts first.\n\n**Final answer**\nAn infarction of the insula,\non the left.\n\n## Explanation\nIt is dark.",
            "An infarction of the insula, on the left",
        ),
        ("## Answer\nA tumour\n\nOn reflection:\n\n## The answer:\nAn infarction", "An infarction"),
    ],
)
def test_the_paragraph_below_the_last_heading_answer_is_the_answer(text, read):
    found = parse_answer(text, open_question())
    assert (found.parse_status, found.findings) == (ParseStatus.REPAIRED, read)


@pytest.mark.parametrize(
    "text",
    ["### Answer", "### Answer\n\n## Explanation\nIt is dark.", "### Answer\n" + "so it is " * 61, "## Answer\nIs it an infarction?"],
)
def test_a_heading_without_a_short_answer_below_it_is_none(text):
    assert parse_answer(text, open_question()).parse_status is ParseStatus.FAILED


@pytest.mark.parametrize("text", ["An infarction.", "The lesion is dark. The answer is an infarction.", '{"answer": "An infarction"}'])
def test_a_short_answer_without_its_header_is_repaired(text):
    read = parse_answer(text, open_question())
    assert (read.parse_status, read.findings.lower()) == (ParseStatus.REPAIRED, "an infarction")


def scored(text: str, *criteria: Criterion) -> Score:
    """Score an answer to a question whose answer is `Thiamine at once`, by the deterministic grader alone."""
    item: Item = open_question()
    gold = {item.item_id: Gold(item_id=item.item_id, answer="Thiamine at once", rubric=criteria)}
    response = answered(text, item)
    grades = grade_with_rubric([response], {item.item_id: item}, gold, vocabulary(), grader="rubric")
    by_words = RubricGraders(by_words=["rubric"])
    (score,) = score_responses([response], {item.item_id: item}, gold, [grades], vocabulary=vocabulary(), rubrics=by_words)
    return score


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("ANSWER: thiamine, at once\nCONFIDENCE: 0.8", True),
        ("ANSWER: Give vitamin B1 immediately\nCONFIDENCE: 0.8", None),
        ("ANSWER: undetermined\nCONFIDENCE: 0", False),
        ("Vitamin B1.", None),
        ("FINDINGS: Vitamin B1.", False),
    ],
)
def test_a_free_answer_in_other_words_is_left_to_a_reader_and_never_a_zero(text: str, passed: bool | None) -> None:
    """Words alone cannot show that it is wrong; an answer that names nothing, or has no form, is wrong without a reader."""
    assert scored(text).passed is passed


def test_a_criterion_that_asks_a_question_is_left_to_a_reader_and_so_is_its_rubric() -> None:
    says = Criterion(criterion="must_include_1", text="Says: thiamine.", points=1.0)
    asks = Criterion(criterion="meets_1", text="Does the model advise thiamine?", points=5.0)
    answer = "ANSWER: thiamine at once\nCONFIDENCE: 0.8"
    assert scored(answer, says).keyword_coverage == 1.0
    other = scored("ANSWER: give thiamine\nCONFIDENCE: 0.8", says)
    assert (other.passed, other.keyword_coverage) == (None, 1.0), "points are known where right or wrong is not"
    assert scored(answer, says, asks).keyword_coverage is None


def test_points_of_answers_that_no_grader_could_call_right_or_wrong_are_counted() -> None:
    item = open_question()
    says = Criterion(criterion="must_include_1", text="Says: thiamine.", points=1.0)
    gold = Gold(item_id=item.item_id, answer="Thiamine at once", rubric=(says,))
    rows = [replace(scored("ANSWER: give thiamine\nCONFIDENCE: 0.8", says), rubric=1.0)]
    outcomes = gather_outcomes(item.benchmark, item.axis, [item], [gold], scores={"fusion": rows}, sampled={"fusion": True})
    counts = outcomes.counts[Key("fusion")]
    assert (counts.missing.tolist(), counts.grades["rubric"].tolist()) == ([1], [1.0])
    assert recount("rubric", TracedAnswers(outcomes, Key("fusion"), np.array([0]), outcomes.answers.of(Key("fusion")), {})) == 1.0
