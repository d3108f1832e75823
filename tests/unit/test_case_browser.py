"""What the case browser is told: every strategy, dialogues with both sides, and equal words once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conftest import ROOT
from models_fixtures import request
from neuralmedbench.records.bundle import BundleTurn
from neuralmedbench.records.requests import Fact, Inquiry, RequestTurn
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.report.cases import CaseBlock, case_blocks
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.stats.bundle import bundle_cases, turns_of
from scoring_fixtures import GOLD, ITEM, answered, differential, vocabulary

ROUNDS = request("i", RequestTurn(text="First."), RequestTurn(text="Second."), RequestTurn(text="Third."))
FACTS = (Fact(text="A headache for three weeks."), Fact(text="No fever."))
ASKED = replace(
    request("i", RequestTurn(text="Ask.")),
    strategy="ask",
    inquiry=Inquiry(facts=FACTS, max_questions=2, unknown="The case does not say.", left="{left} left.", closing="Answer."),
)


def rows(block: CaseBlock) -> list[dict[str, Any]]:
    """Give the responses of the first item as the page reads them."""

    def spell(place: Any) -> Any:
        return [spell(part) for part in place] if isinstance(place, list) else block.data["leaves"][place]

    return [dict(zip(block.data["columns"], map(spell, row), strict=True)) for row in block.data["items"][0]["responses"]]


def test_a_dialogue_of_rounds_holds_each_answer_with_the_round_that_followed_it():
    said = answered("c", turns=("a", "b", "c"))
    assert turns_of(said, ROUNDS) == (BundleTurn(answer="a", told="Second."), BundleTurn(answer="b", told="Third."))
    broken = replace(said, state=ResponseState.FAILED, text="", turns=("a",))
    assert turns_of(broken, ROUNDS) == (BundleTurn(answer="a", told="Second."),)
    assert turns_of(said, None) == (BundleTurn(answer="a", told=""), BundleTurn(answer="b", told=""))
    assert turns_of(answered("c", turns=("c",)), ROUNDS) == ()
    assert turns_of(replace(broken, turns=()), ROUNDS) == ()


def test_a_dialogue_in_which_the_model_asks_holds_what_the_case_told_it():
    questions = ("QUESTION: Is there a headache?", "QUESTION: Which blood group?")
    said = answered("DIFFERENTIAL:\n1. glioma", turns=(*questions, "DIFFERENTIAL:\n1. glioma"))
    assert turns_of(said, ASKED) == (
        BundleTurn(answer=questions[0], told="A headache for three weeks.\n\n1 left."),
        BundleTurn(answer=questions[1], told="The case does not say.\n\nAnswer."),
    )


def test_answers_of_every_strategy_are_shown_and_direct_ones_alone_are_counted_in_the_summary():
    direct, thought = (answered(differential(name), strategy=how) for name, how in (("glioblastoma", "direct"), ("migraine", "cot")))
    scored = score_responses([direct, thought], {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, [], vocabulary=vocabulary())
    scores = [replace(row, passed=row.strategy == "direct") for row in sorted(scored, key=lambda row: row.strategy, reverse=True)]
    grade = Grade(
        **{name: getattr(scores[1], name) for name in ("item_id", "benchmark", "arm", "strategy", "model", "revision", "repeat")},
        text_sha256=scores[1].text_sha256, grader="g", criterion="core_diagnosis", value=0.0, weight=1.0, explanation="no", state=GradeState.OK,
    )  # fmt: skip
    (block,) = case_blocks(bundle_cases([ITEM], [GOLD], [direct, thought], scores, [grade]), ROOT)
    found = {row["strategy"]: row for row in rows(block)}
    assert block.index[0]["strategies"] == ["direct", "cot"]
    assert block.results == {"fusion": [1, 1]}
    assert (found["cot"]["differential"][0], found["cot"]["grades"]) == ("migraine", [["g", "core_diagnosis", 0.0, "no"]])
    assert found["direct"]["grades"] == []


def test_a_sample_that_only_voted_is_read_and_has_no_score():
    samples = [answered(differential(name), strategy="self_consistency", repeat=place) for place, name in enumerate(["glioblastoma"] * 2)]
    scores = score_responses(samples, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, [], vocabulary=vocabulary())[:1]
    first, second = rows(case_blocks(bundle_cases([ITEM], [GOLD], samples, scores, []), ROOT)[0])
    assert (first["counted"], second["counted"], second["passed"]) == (True, False, None)
    assert second["differential"][0] == "glioblastoma"


def test_what_is_equal_stands_once_and_a_number_is_no_truth_value():
    samples = [answered(differential("glioblastoma"), repeat=repeat) for repeat in range(20)]
    (block,) = case_blocks(bundle_cases([ITEM], [GOLD], samples, [], []), ROOT)
    assert block.data["leaves"].count(samples[0].text) == 1
    assert [row["repeat"] for row in rows(block)] == list(range(20))
    assert {type(row["counted"]) for row in rows(block)} == {bool}
