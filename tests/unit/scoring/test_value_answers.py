"""Answers with values, from the mapping to the score: read, unread, abstained, right and wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fixtures.scoring import PICTURE_ITEM, RESPONSE, vocabulary
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.prompts.answer_schemas import fields_in_words, stepwise_schema
from neuralmedbench.records.items import Family, Gold, Item, ReferenceValue
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Score
from neuralmedbench.records.value_rules import values_schema
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.scores import elect, score_responses
from neuralmedbench.tables.fields import field_rows
from neuralmedbench.tables.floors import floors
from neuralmedbench.tables.form import validity_rows
from neuralmedbench.tables.outcomes import can_pass, gather_outcomes
from neuralmedbench.tables.pass_rules import VALUES_RULE, pass_rule
from neuralmedbench.tables.study import Study

JOINT = values_schema([("flag", "index", "1 for an error, else 0"), ("sentence", "index", ""), ("rewrite", "words", "")])
NUMBER = values_schema([("answer", "number", "")])


def asked(number: int, schema: str = JOINT) -> Item:
    return replace(
        PICTURE_ITEM, item_id=f"demo/{number}", patient_id=f"p{number}", family=Family.QUESTION_ANSWERING, answer_schema=schema, images=()
    )


def note(number: int, flag: int, sentence: int, rewrite: str = "") -> Gold:
    values = [("flag", "index", str(flag)), ("sentence", "index", str(sentence)), ("rewrite", "words", rewrite)]
    return Gold(
        item_id=f"demo/{number}", answer="", values=tuple(ReferenceValue(field=name, rule=rule, value=text) for name, rule, text in values)
    )


def size(number: int, value: float) -> Gold:
    return Gold(
        item_id=f"demo/{number}",
        answer=str(value),
        values=(ReferenceValue(field="answer", rule="number", value=str(value), low=value * 0.95, high=value * 1.05),),
    )


def scored(item: Item, gold: Gold, text: str, **changes: Any) -> Score:
    response = replace(RESPONSE, item_id=item.item_id, patient_id=item.patient_id, runner=item.runner, text=text, **changes)
    return score_responses([response], {item.item_id: item}, {gold.item_id: gold}, [], vocabulary=vocabulary())[0]


def joint(flag: Any, sentence: Any, rewrite: Any = "NA", **more: Any) -> str:
    return json.dumps({"flag": flag, "sentence": sentence, "rewrite": rewrite, "confidence": 0.8, **more})


def test_a_joint_answer_passes_if_flag_and_sentence_are_right_whatever_the_rewrite() -> None:
    row = scored(asked(1), note(1, 1, 5, "The fever rose."), joint(1, 5, "The fever fell."))
    assert (row.passed, row.parse_status, row.confidence) == (True, "strict", 0.8)
    assert row.fields_right == {"flag": True, "sentence": True}
    assert row.fields_share == {"rewrite": pytest.approx(2 * 2 / 6)}
    assert row.differential == ("flag 1; sentence 5",)
    row = scored(asked(1), note(1, 1, 5), joint(1, 4))
    assert (row.passed, row.fields_right) == (False, {"flag": True, "sentence": False})


def test_words_in_place_of_an_index_are_unread_and_wrong_beside_a_field_that_is_read() -> None:
    row = scored(asked(1), note(1, 1, 5), joint(1, "the fifth"))
    assert (row.parse_status, row.passed, row.fields_right) == ("repaired", False, {"flag": True, "sentence": False})
    assert (row.fields, row.fields_abstained) == ({"flag": "1", "sentence": "", "rewrite": "NA"}, ()), "unread, not abstained"


@pytest.mark.parametrize(
    "text", ["", "There is no error.", "[1, 2]", '{"flagged": 1}', "1 5 The fever fell.", '{"flag": {"a": 1}, "sentence": "x"}']
)
def test_an_answer_in_no_known_form_is_unread_and_wrong(text: str) -> None:
    row = scored(asked(1), note(1, 1, 5), text)
    assert (row.parse_status, row.passed, row.fields_right) == ("failed", False, {"flag": False, "sentence": False})
    assert row.fields_abstained == ()


def test_null_abstains() -> None:
    row = scored(asked(1), note(1, 1, 5), joint(None, None, None))
    assert (row.parse_status, row.passed, row.abstained) == ("strict", False, True)
    assert row.fields_abstained == ("flag", "sentence", "rewrite")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"answer": 10.4, "confidence": 0.5}', "strict"),
        ('{"answer": "10.4 mL/min/1.73 m2", "confidence": 0.5}', "repaired"),
        ('```json\n{"answer": 10.4}\n```', "repaired"),
        ("10.4", "repaired"),
        ("ANSWER: 10.4\nCONFIDENCE: 0.5", "repaired"),
        ("<think>It is 3.</think>\n10.4 kg", "repaired"),
    ],
)
def test_one_value_may_stand_without_its_object(text: str, status: str) -> None:
    row = scored(asked(1, NUMBER), size(1, 10.0), text)
    assert (row.passed, row.parse_status, row.fields, row.differential) == (True, status, {"answer": "10.4"}, ("10.4",))


@pytest.mark.parametrize(
    "text", ["The clearance is between 9 and 12.", "First I divide.\nThen it is 10.4.", '{"answer": "9 or 10"}', '{"answer": NaN}']
)
def test_several_numbers_or_prose_are_unread(text: str) -> None:
    row = scored(asked(1, NUMBER), size(1, 10.0), text)
    assert (row.passed, row.parse_status) == (False, "failed")


@pytest.mark.parametrize("state", [ResponseState.REFUSED, ResponseState.TRUNCATED])
def test_a_refused_or_truncated_value_is_wrong(state: ResponseState) -> None:
    row = scored(asked(1, NUMBER), size(1, 10.0), "10", state=state)
    assert (row.passed, row.fields_right) == (False, {"answer": False})


def test_equal_numbers_are_one_vote() -> None:
    rows = [
        scored(asked(1, NUMBER), size(1, 10.0), text, repeat=n, strategy="self_consistency") for n, text in enumerate(["3", "10.0", "10"])
    ]
    (row,) = elect(rows, vocabulary())
    assert row.passed


def test_the_prompt_says_each_value_in_words() -> None:
    words = fields_in_words(stepwise_schema(JOINT))
    assert words["flag"] == "1 for an error, else 0 | null"
    assert words["sentence"] == "an index (a whole number) | null"
    assert words["confidence"] == "a number from 0 to 1 | null"
    assert words["reasoning"] == "your steps, in a few sentences"


def test_a_schema_of_a_users_own_keeps_its_prompt_and_its_form() -> None:
    """Its titles and descriptions are no rules of values."""
    own = json.dumps(
        {
            "properties": {
                "class": {"enum": ["tumor", None], "title": "Class"},
                "confidence": {"type": "number", "description": "how sure", "title": "Confidence"},
            }
        }
    )
    assert fields_in_words(own) == {"class": '"tumor" | null', "confidence": "a number from 0 to 1 | null"}
    item = replace(PICTURE_ITEM, answer_schema=own)
    assert parse_answer('{"class": "tumor", "confidence": 0.5}', item).parse_status == "strict"


def test_an_item_whose_rules_only_describe_cannot_pass() -> None:
    words = Gold(item_id="demo/1", answer="", values=(ReferenceValue(field="rewrite", rule="words", value="x"),))
    assert [can_pass(asked(1), gold) for gold in (note(1, 1, 5), words, None)] == [True, False, False]
    assert pass_rule(asked(1)) == VALUES_RULE


@pytest.fixture(scope="module")
def study() -> Study:
    gold = [note(1, 1, 5, "The fever fell."), note(2, 0, -1), note(3, 0, -1), note(4, 1, 2, "b"), note(5, 1, 3, "c")]
    answers = [joint(1, 5, "The fever fell."), joint(0, -1), joint(1, 4, "x"), joint(None, None, None), "no idea"]
    items = [asked(number) for number in range(1, 6)]
    scores = [scored(item, row, text) for item, row, text in zip(items, gold, answers, strict=True)]
    benchmark = SimpleNamespace(name="demo", items=items, gold=gold, scores={"m": scores}, outcomes=None)
    return cast(Study, SimpleNamespace(benchmarks={"demo": benchmark}, models={"m": None}, settings=IntervalSettings(100, 1, 0.95)))


def test_every_field_has_its_official_rate(study: Study) -> None:
    rows = {(row.value_of_slice, row.measure): row.value for row in field_rows(study)}
    assert rows == {
        **{(field, "accuracy"): 0.4 for field in ("flag", "sentence")},
        **{(field, "selective_accuracy"): pytest.approx(2 / 3) for field in ("flag", "sentence")},
        ("rewrite", "mean_share"): pytest.approx(0.4),
        **{(field, "coverage"): 0.6 for field in ("flag", "sentence", "rewrite")},
        **{(field, "abstained"): 0.2 for field in ("flag", "sentence", "rewrite")},
    }


def test_the_form_of_values_is_counted_step_by_step(study: Study) -> None:
    found = {row.measure: row.count for row in validity_rows(study)}
    assert found == {
        "answered": 5,
        "parse_strict": 4,
        "parse_repaired": 0,
        "parse_failed": 1,
        "parse": 4,
        "required_fields": 4,
        "enums": 4,
        "consistency": 4,
    }


def floor_of(items: list[Item], gold: list[Gold]) -> float:
    found = gather_outcomes("demo", "breadth", items, gold, scores={}, sampled={})
    return float(floors(found, vocabulary())["pass1"].hindsight.mean())


def test_the_best_constant_joint_answer_is_that_of_most_notes() -> None:
    gold = [note(number, 0, -1) if number < 6 else note(number, 1, number) for number in range(10)]
    assert floor_of([asked(number) for number in range(10)], gold) == pytest.approx(0.6)


def test_the_best_constant_number_lies_where_most_limits_meet() -> None:
    """8.0, 8.2, 8.7 and 9.2 all differ; some number lies between the limits of more of them than any of the four does."""
    values = [8.0, 8.7, 20.0, 9.2, 40.0, 8.2]
    items = [asked(number, NUMBER) for number in range(len(values))]
    best = max(sum(value * 0.95 <= x <= value * 1.05 for value in values) for x in np.linspace(7, 42, 200_000))
    assert floor_of(items, [size(number, value) for number, value in enumerate(values)]) == pytest.approx(best / len(values))


def test_a_list_of_words_without_sense_is_a_constant_where_keywords_decide() -> None:
    schema = values_schema([("answer", "keywords", "")])
    words = [["glioma", "left"], ["glioma", "right"], ["oedema"]]
    gold = [
        Gold(
            item_id=f"demo/{n}", answer="", values=(ReferenceValue(field="answer", rule="keywords", value=json.dumps(some), at_least=1.0),)
        )
        for n, some in enumerate(words)
    ]
    assert floor_of([asked(n, schema) for n in range(3)], gold) == 1.0
