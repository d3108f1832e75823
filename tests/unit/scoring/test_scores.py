"""The scoring rules: wrong, missing, passed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.scoring import GOLD, ITEM, LESION_GOLD, LESION_ITEM, PICTURE_ITEM, answered, differential, lesion_answer, vocabulary
from neuralmedbench.errors import ScoringError
from neuralmedbench.records.items import Criterion, GoldFields, Runner
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import GradeState, response_key
from neuralmedbench.scoring.rubric import gradable, grade_with_rubric
from neuralmedbench.scoring.scores import RubricGraders, score_responses


def score(response, item=ITEM, gold=GOLD, grades=None):
    items, answers = {item.item_id: item}, {gold.item_id: gold} if gold else {}
    if grades is None:
        grades = [grade_with_rubric([response], items, answers, vocabulary(), grader="rubric")]
    return score_responses([response], items, answers, grades, vocabulary=vocabulary(), rubrics=RubricGraders(["rubric"], ["llm"]))[0]


def test_an_open_item_passes_by_the_core_diagnosis():
    row = score(answered(differential("GBM", "abscess")))
    assert (row.passed, row.relation, row.reference_rank, row.in_candidates, row.confidence) == (True, "synonym", 1, True, 0.7)
    assert (row.main_condition, row.core_diagnosis) == (1.0, 1.0)


def test_a_wider_term_is_the_right_family_and_no_pass():
    row = score(answered(differential("high-grade glioma", "glioblastoma")))
    assert (row.passed, row.right_family, row.reference_rank, row.in_candidates) == (False, True, 2, True)


@pytest.mark.parametrize("state", [ResponseState.REFUSED, ResponseState.TRUNCATED])
def test_a_refused_or_truncated_answer_is_wrong_even_when_it_names_the_reference(state):
    row = score(answered(differential("glioblastoma"), state=state))
    assert (row.missing, row.passed, row.in_candidates, row.core_diagnosis) == (False, False, False, 0.0)


def test_an_unparsable_answer_is_wrong():
    row = score(answered("A glioblastoma can look like this."))
    assert (row.missing, row.passed, row.relation, row.parse_status) == (False, False, "", "failed")


@pytest.mark.parametrize("text", [f"<think>{differential('GBM')}", f"<think>{differential('GBM')}</think>"])
def test_thoughts_without_an_answer_are_unread_and_wrong_and_nobody_grades_them(text):
    assert not gradable(answered(text), ITEM)
    row = score(answered(text), grades=[[]])
    assert (row.state, row.missing, row.passed, row.core_diagnosis, row.parse_status) == ("ok", False, False, 0.0, "failed")


@pytest.mark.parametrize("state", [ResponseState.FAILED, ResponseState.OVER_BUDGET, ResponseState.SKIPPED])
def test_an_answer_that_did_not_come_is_missing_and_not_wrong(state):
    row = score(answered("", state=state))
    assert (row.missing, row.scored, row.passed, row.core_diagnosis, row.parse_status) == (True, True, None, None, "absent")


def test_without_gold_nothing_is_scored_and_the_answer_is_kept():
    row = score(answered(differential("GBM")), gold=None)
    assert (row.scored, row.passed, row.differential) == (False, None, ("GBM",))


def test_without_any_grade_an_open_item_has_no_verdict():
    row = score(answered(differential("GBM")), grades=[[]])
    assert (row.scored, row.passed, row.core_diagnosis) == (True, None, None)


def test_the_first_grader_that_has_a_value_counts_and_a_skipped_one_does_not():
    response = answered(differential("GBM"))
    rubric = grade_with_rubric([response], {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, vocabulary(), grader="rubric")
    skipped = [replace(row, grader="llm", value=None, state=GradeState.SKIPPED) for row in rubric]
    against = [replace(row, grader="llm", value=0.0) for row in rubric]
    assert score(response, grades=[skipped, rubric]).passed is True
    assert score(response, grades=[against, rubric]).passed is False


def test_a_grade_of_another_text_does_not_count():
    rubric = grade_with_rubric([answered(differential("GBM"))], {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, vocabulary(), grader="rubric")
    assert score(answered(differential("abscess")), grades=[rubric]).passed is None


def test_the_rubric_is_points_earned_over_points_to_be_had():
    rubric = (
        Criterion(criterion="considers_1", text="Considers: brain abscess.", points=0.5),
        Criterion(criterion="mentions_finding_1", text="Mentions the finding: wide ventricles.", points=1.0),
        Criterion(criterion="must_not_1", text="Says: meningioma.", points=-1.0),
    )
    gold = replace(GOLD, rubric=rubric)
    assert score(answered(differential("GBM", "brain abscess")), gold=gold).keyword_coverage == pytest.approx(1 / 3)
    assert score(answered(differential("meningioma", "brain abscess")), gold=gold).keyword_coverage == 0.0
    assert score(answered(differential("GBM"))).keyword_coverage is None


def test_points_found_by_words_are_keyword_coverage_and_never_points_of_the_rubric():
    says = Criterion(criterion="considers_1", text="Considers: brain abscess.", points=1.0)
    gold = replace(GOLD, rubric=(says,))
    response = answered(differential("GBM", "brain abscess"))
    words = grade_with_rubric([response], {ITEM.item_id: ITEM}, {ITEM.item_id: gold}, vocabulary(), grader="rubric")
    model = [replace(row, grader="llm", value=0.0) for row in words]
    for grades in ([words, model], [model, words]):
        row = score(response, gold=gold, grades=grades)
        assert (row.keyword_coverage, row.rubric) == (1.0, 0.0)
    assert (score(response, gold=gold).keyword_coverage, score(response, gold=gold).rubric) == (1.0, None)
    refused = answered("", state=ResponseState.REFUSED)
    assert (score(refused, gold=gold).keyword_coverage, score(refused, gold=gold).rubric) == (0.0, 0.0)
    asks = replace(says, text="Is an abscess considered?")
    assert score(refused, gold=replace(gold, rubric=(says, asks))).keyword_coverage is None, "words could not have judged it"


def test_a_harmful_answer_has_no_points_and_the_uncapped_value_stands_beside_it():
    rubric = (
        Criterion(criterion="considers_1", text="Considers: brain abscess.", points=2.0),
        Criterion(criterion="must_not_1", text="Says: the patient may drive home.", points=-0.5, cap=True),
    )
    gold = replace(GOLD, rubric=rubric)

    def judged(rationale, known=gold):
        response = answered(differential("GBM", "brain abscess", rationale=rationale))
        grades = grade_with_rubric([response], {ITEM.item_id: ITEM}, {ITEM.item_id: known}, vocabulary(), grader="llm")
        return score(response, gold=known, grades=[grades])

    harmful = judged("The patient may drive home.")
    assert (harmful.rubric, harmful.rubric_uncapped) == (0.0, 0.75)
    assert harmful.passed is True, "the diagnosis alone decides whether an answer passes"
    harmless = judged("The patient may not drive home.")
    assert (harmless.rubric, harmless.rubric_uncapped) == (1.0, 1.0)
    without = replace(gold, rubric=tuple(replace(row, cap=False) for row in rubric))
    kept = judged("The patient may drive home.", without)
    assert (kept.rubric, kept.rubric_uncapped) == (0.75, 0.75)


def test_a_lesion_item_passes_by_place_and_side():
    right, wrong = lesion_answer("mass", "frontal lobe", "left"), lesion_answer("mass", "frontal lobe", "right")
    assert score(answered(right, LESION_ITEM), LESION_ITEM, LESION_GOLD).passed is True
    row = score(answered(wrong, LESION_ITEM), LESION_ITEM, LESION_GOLD)
    assert (row.passed, row.main_condition) == (False, 1.0)
    assert row.fields == {"lesion": "mass", "location": "frontal lobe", "side": "right"}


def test_a_choice_passes_by_its_option():
    item = replace(ITEM, runner=Runner.CHOICE, options=("meningioma", "GBM", "glioblastoma"))
    gold = replace(GOLD, answer="GBM", choice="B")
    assert score(answered("B", item), item, gold, grades=[[]]).passed is True
    assert score(answered("A", item), item, gold, grades=[[]]).passed is False
    assert score(answered("I think B", item), item, gold, grades=[[]]).passed is False
    assert score(answered("C", item), item, gold, grades=[[]]).passed is False, "another name of the right answer is another option"


PICTURE_GOLD = replace(GOLD, item_id=PICTURE_ITEM.item_id, fields=GoldFields(modality="MRI", plane="axial", diagnosis_class="tumor"))


def test_a_structured_item_passes_by_its_class_and_only_fields_with_ground_truth_count():
    text = '{"modality": "MR", "sequence": "FLAIR", "plane": null, "class": "Tumour", "subtype": "glioma", "confidence": 0.5}'
    row = score(answered(text, PICTURE_ITEM), PICTURE_ITEM, PICTURE_GOLD)
    assert row.passed is True
    assert row.fields_right == {"modality": True, "plane": False, "class": True}
    assert row.fields_abstained == ("plane",)


def test_a_structured_answer_that_cannot_be_read_is_wrong_in_every_field():
    row = score(answered("a tumour", PICTURE_ITEM), PICTURE_ITEM, PICTURE_GOLD)
    assert (row.passed, row.fields_right, row.fields_abstained) == (False, {"modality": False, "plane": False, "class": False}, ())


def test_every_turn_of_a_dialogue_is_held_against_the_final_reference():
    item = replace(ITEM, runner=Runner.DIALOGUE)
    turns = (differential("migraine"), "no form at all", differential("GBM"))
    row = score(answered(turns[-1], item, turns=turns), item)
    assert (row.turn_passes, row.passed) == ((False, False, True), True)
    assert row.turn_leaders == ("migraine", "", "GBM")


def test_a_response_without_an_item_and_a_repeated_key_are_refused():
    response = answered("x")
    with pytest.raises(ScoringError, match="which is no item"):
        score_responses([response], {}, {}, [], vocabulary=vocabulary())
    with pytest.raises(ScoringError, match="two responses"):
        score_responses([response, response], {ITEM.item_id: ITEM}, {}, [], vocabulary=vocabulary())


def test_the_key_of_a_score_is_that_of_its_response():
    response = answered(differential("GBM"), repeat=3)
    assert response_key(score(response)) == response_key(response)
