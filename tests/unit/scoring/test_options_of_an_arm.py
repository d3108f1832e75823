"""Choices under arms that show the options in another order: the letter is mapped back, and words decide as they do in the own order."""

from __future__ import annotations

import pytest

from fixtures.items import VOCABULARY
from fixtures.prompt import OPTIONS, question
from neuralmedbench.records.arm_changes import NONE_ARM, as_asked, option_order
from neuralmedbench.records.items import Gold
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.scoring.explain_reading import why_unread
from neuralmedbench.scoring.parse import parse_answer, parse_under
from neuralmedbench.scoring.scores import score_responses

ITEM = question()
SEEDS = (1, 2, 3, 4, 5, 6)


def response(text: str, arm: str) -> Response:
    """Give an answer under an arm."""
    return Response(
        item_id=ITEM.item_id, case_id="q1", patient_id="p1", benchmark="b", arm=arm, strategy="direct", model="m", revision="1", repeat=0,
        request_id="r", runner="choice", state=ResponseState.OK, text=text,
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("place", range(3))
def test_a_letter_of_another_order_is_the_option_that_stood_there(seed: int, place: int) -> None:
    order = option_order(ITEM.item_id, 3, seed)
    letter = "ABC"[place]
    for text in (f"ANSWER: {letter}\nCONFIDENCE: 0.8", f"({letter})", f"ANSWER: {letter}. {OPTIONS[order[place]]}", OPTIONS[order[place]]):
        found = parse_under(text, ITEM, f"options_shuffled-{seed}")
        assert (found.choice, found.differential) == ("ABC"[order[place]], (OPTIONS[order[place]],)), text
        assert found.parse_status is not ParseStatus.CONTRADICTED


@pytest.mark.parametrize("seed", SEEDS)
def test_a_letter_before_the_words_of_another_option_of_that_order_is_contradicted(seed: int) -> None:
    order = option_order(ITEM.item_id, 3, seed)
    found = parse_under(f"ANSWER: A. {OPTIONS[order[1]]}", ITEM, f"options_shuffled-{seed}")
    assert found.parse_status is ParseStatus.CONTRADICTED
    assert found.choice == "ABC"[order[0]]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_right_option_passes_in_any_order_and_no_other_does(seed: int) -> None:
    gold = {ITEM.item_id: Gold(item_id=ITEM.item_id, answer=OPTIONS[1], choice="B")}
    order, arm = option_order(ITEM.item_id, 3, seed), f"options_shuffled-{seed}"
    rows = [response(f"ANSWER: {letter}", arm) for letter in "ABC"]
    for place, row in enumerate(rows):
        (score,) = score_responses([row], {ITEM.item_id: ITEM}, gold, [], vocabulary=VOCABULARY)
        assert score.passed is (order[place] == 1)
        assert score.differential == (OPTIONS[order[place]],)


def test_none_of_the_above_passes_by_letter_and_by_words_and_the_option_that_is_gone_is_read_as_nothing() -> None:
    gold = {ITEM.item_id: Gold(item_id=ITEM.item_id, answer=OPTIONS[1], choice="B")}
    for text, passed, read in (
        ("ANSWER: B", True, ("None of the above",)),
        ("ANSWER: None of the above", True, ("None of the above",)),
        ("ANSWER: A", False, (OPTIONS[0],)),
        (OPTIONS[1], False, ()),
    ):
        (score,) = score_responses([response(text, NONE_ARM)], {ITEM.item_id: ITEM}, gold, [], vocabulary=VOCABULARY)
        assert (score.passed, score.differential) == (passed, read), text


def test_other_arms_are_read_as_before() -> None:
    for arm in ("full", "no_image", "suggestion-wrong", "options_shuffled", "options_shuffled-x"):
        assert as_asked(ITEM, arm, right="B") is ITEM
        assert parse_under("ANSWER: C", ITEM, arm) == parse_answer("ANSWER: C", ITEM)
    assert why_unread("ANSWER: glioblastoma", as_asked(ITEM, "options_shuffled-1")) == ""
