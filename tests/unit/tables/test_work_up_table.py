"""The table of work-ups: probabilities by message, and evidence that is asked for against all of it at once."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT
from fixtures.confidence import answer, open_item, study_of
from fixtures.items import VOCABULARY
from neuralmedbench.config.arms import load_arms
from neuralmedbench.records.items import Gold, Runner, Strategy
from neuralmedbench.records.requests import STATEMENT, Fact, Inquiry
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.workup import CHOICE, TABLE, work_up_rows

ITEMS = [open_item(number, f"p{number}") for number in range(40)]
TOGETHER = "evidence-together"
FACTS = tuple(Fact(name=name, kind="pictures", text=name, sequence=name, plane="axial") for name in ("FLAIR", "dwi"))
INQUIRY = Inquiry(
    facts=FACTS, max_questions=3, unknown="Not there.", left="{left} left.", closing="Final.", unclear="Name one.", again="Given."
)


def answers(model: str, chosen: int, together: int) -> list[Score]:
    """Give final answers of which the first ones are right, under both arms."""
    return [
        replace(answer(one, None, place < right), model=model, arm=arm, strategy=Strategy.WORKUP)
        for arm, right in (("full", chosen), (TOGETHER, together))
        for place, one in enumerate(ITEMS)
    ]


def study_under(scores: dict[str, list[Score]], *, messages: tuple[tuple[str, ...], ...] = ()) -> Any:
    """Give a study of the answers; the first items have the messages of the model `m`."""
    study = study_of(ITEMS, scores, sampled=False)
    (benchmark,) = study.benchmarks.values()
    arms = dict.fromkeys(row.arm for rows in scores.values() for row in rows)
    benchmark.arms = load_arms(ROOT / "config", arms, "made-up")
    benchmark.requests = [SimpleNamespace(item_id=one.item_id, arm="full", inquiry=INQUIRY) for one in ITEMS]
    benchmark.gold = [Gold(item_id=one.item_id, answer="glioblastoma") for one in ITEMS]
    benchmark.vocabulary = VOCABULARY
    benchmark.responses = {
        "m": [
            SimpleNamespace(item_id=one.item_id, arm="full", strategy=Strategy.WORKUP, state="ok", text=turns[-1], turns=turns)
            for one, turns in zip(ITEMS, messages, strict=False)
        ]
    }
    return study


def test_items_without_an_answer_under_one_arm_are_in_neither_side() -> None:
    scores = answers("m", 20, 40)
    scores[39] = answer(ITEMS[39], None, None, strategy=Strategy.WORKUP, missing=True, state="failed")
    (row,) = [row for row in work_up_rows(study_under({"m": scores})) if row.measure == CHOICE]
    assert (row.n_items, row.n_answers, row.value) == (39, 78, pytest.approx(-19 / 39))
    assert not [row for row in work_up_rows(study_under({"m": scores[:40]})) if row.measure == CHOICE], "asked one way alone"


def test_an_answer_that_has_ended_keeps_its_last_probabilities_and_unread_ones_are_counted_apart() -> None:
    def said(mass: float, request: str = "") -> str:
        return f"CANDIDATES:\n1. glioblastoma | {mass}\n" + (f"REQUEST: {request}" if request else "DIFFERENTIAL:\n1. glioblastoma")

    messages = ((said(0.2, "FLAIR"), said(0.4, "dwi"), said(0.9)), (said(0.6),), ("No idea. REQUEST: FLAIR", said(0.3)))
    rows = [row for row in work_up_rows(study_under({"m": answers("m", 1, 1)}, messages=messages)) if row.measure == "mass"]
    assert [(row.value_of_slice, row.value, row.n_items, row.left_out) for row in rows] == [
        ("1", pytest.approx(0.4), 2, 1),
        ("2", pytest.approx((0.4 + 0.6 + 0.3) / 3), 3, 0),
        ("3", pytest.approx((0.9 + 0.6 + 0.3) / 3), 3, 0),
    ]


def test_asking_for_facts_is_measured_beside_all_of_them_and_none() -> None:
    items = [replace(one, runner=Runner.CHOICE, options=("abscess", "glioma")) for one in ITEMS]
    right = {"full": 20, TOGETHER: 30, "evidence-history": 10}
    scores = [
        replace(answer(one, None, place < number), model="m", arm=arm, strategy=Strategy.ASK)
        for arm, number in right.items()
        for place, one in enumerate(items)
    ]
    study = study_of(items, {"m": scores}, sampled=False)
    (benchmark,) = study.benchmarks.values()
    benchmark.arms = load_arms(ROOT / "config", right, "made-up")
    facts = tuple(Fact(text=text, kind=STATEMENT) for text in ("No fever.", "She takes warfarin.", "The left eye hurts.", "No rash."))
    asked = Inquiry(facts=facts, max_questions=3, unknown="Not said.", left="{left} left.", closing="Final.")
    told = replace(asked, facts=(), max_questions=0)
    benchmark.requests = [
        SimpleNamespace(item_id=one.item_id, arm=arm, strategy="ask", runner="choice", inquiry=asked if arm == "full" else told)
        for one in items
        for arm in right
    ]
    turns = ("QUESTION: Any fever?", "QUESTION: Has she travelled?", "ANSWER: B"), ("QUESTION: Which drugs?", "ANSWER: not known")
    benchmark.gold, benchmark.vocabulary = [], VOCABULARY
    benchmark.responses = {
        "m": [
            SimpleNamespace(item_id=one.item_id, arm=arm, strategy="ask", state="ok", text=said[-1], turns=said, informed=())
            for arm in right
            for one, said in zip(items, turns if arm == "full" else (("ANSWER: B",), ("ANSWER: A",)), strict=False)
        ]
    }
    rows = {(f"{row.arm} {getattr(row, 'other_arm', '')}".rstrip(), row.measure): row for row in work_up_rows(study)}
    assert {name: rows["full", name].value for name in ("questions", "facts_asked", "not_answered", "no_option")} == {
        "questions": pytest.approx(1.5),
        "facts_asked": pytest.approx(1 / 4),
        "not_answered": pytest.approx(1 / 4),
        "no_option": pytest.approx(1 / 2),
    }
    assert [rows[arm, "pass1_patients"].value for arm in right] == [pytest.approx(number / 40) for number in right.values()]
    assert (rows[TOGETHER, "facts_asked"].value, rows[TOGETHER, "facts_asked"].left_out, rows[TOGETHER, "no_option"].value) == (
        None,
        2,
        0,
    )
    assert rows[f"full {TOGETHER}", "asking_gain"].value == pytest.approx(-0.25)
    assert rows["full evidence-history", "asking_gain"].value == pytest.approx(0.25)
    assert TABLE.suppression.labels(vars(rows["full", "pass1_patients"])) == [("asked full ask", "")]
    assert not [name for _, name in rows if name.startswith("informant")], "words decided"
    # told by a language model: of three questions two replies had to be corrected, one of them in vain
    for request in benchmark.requests:
        request.inquiry = replace(request.inquiry, informant="You keep the record.", correction="Again.")
    for response, replies in zip(benchmark.responses["m"], (("FACTS: 1", "lupus", "FACTS: 4, 2"), ("FACTS: 9", "")), strict=False):
        response.informed = replies
    rows = {(f"{row.arm} {getattr(row, 'other_arm', '')}".rstrip(), row.measure): row for row in work_up_rows(study)}
    assert {name: rows["full", name].value for name in ("informant_corrected", "informant_unusable", "facts_asked", "not_answered")} == {
        "informant_corrected": pytest.approx((1 / 2 + 1) / 2),
        "informant_unusable": pytest.approx((0 + 1) / 2),
        "facts_asked": pytest.approx(3 / 4 / 2),
        "not_answered": pytest.approx((0 + 1) / 2),
    }
