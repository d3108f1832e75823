"""Models with a written behaviour through parsing, scoring and the table: a right diagnosis with a wrong side keeps no credit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY
from fixtures.places import BEHAVIOURS, answers_of, cases
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.config.arms import load_arms
from neuralmedbench.estimates.exact import one_sided_bounds
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.scoring.evidence import ASKED, KINDS, Pictures
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.tables.declare import MeasureRow
from neuralmedbench.tables.evidence import evidence_items, evidence_rows
from neuralmedbench.tables.outcomes import gather_outcomes

FAST = IntervalSettings(resamples=200)
PATIENTS = 12
BUILT = cases(PATIENTS)


def study_of(answers: dict[str, list[Response]], built: BenchmarkItems = BUILT, form: str = "evidence", layouts: Sequence[str] = ()) -> Any:
    """Grade and score the answers of each model as the stages do; the parts of a run that the table reads."""
    items, gold = {one.item_id: one for one in built.items}, {one.item_id: one for one in built.gold}
    asked = [one for one in built.items if one.family == "differential_diagnosis"]
    arms = load_arms(ROOT / "config", layouts, "b")
    shown = {name: arm.layout for name, arm in arms.items() if arm.layout}
    pictures = Pictures({(one.case_id, one.image_id): one for one in built.lesions}, ASKED[form], layouts=shown)
    scores = {}
    for model, responses in answers.items():
        grades = grade_with_rubric(responses, items, gold, VOCABULARY, grader="rubric")
        scores[model] = score_responses(responses, items, gold, [grades], vocabulary=VOCABULARY, pictures=pictures)
    outcomes = gather_outcomes("b", "depth", asked, built.gold, scores=scores, sampled=dict.fromkeys(answers, False))
    config = SimpleNamespace(answer_form=form, title="Made-up cases")
    benchmark = SimpleNamespace(
        name="b", config=config, items=asked, gold=built.gold, scores=scores, outcomes=outcomes, cluster="patient", layouts=shown
    )
    models = {model: SimpleNamespace(title=model.capitalize()) for model in answers}
    return SimpleNamespace(benchmarks={"b": benchmark}, models=models, settings=FAST, all_graders={})


def test_an_arm_of_another_layout_has_rows_of_its_own_and_those_of_full_stay() -> None:
    right = answers_of("right in all", BUILT)
    swapped = [replace(row, arm="layout-gemini") for row in answers_of("loose box", BUILT)]
    rows = evidence_rows(study_of({"m": [*right, *swapped]}, layouts=["layout-gemini"]))
    assert [row for row in rows if row.arm == "full"] == evidence_rows(study_of({"m": right}))
    found = {row.value_of_slice: row.value for row in rows if row.arm == "layout-gemini" and row.measure == "pass1"}
    # x before y was not asked for
    assert found == {"plain": 1, "side": 1, "region": 1, "slice": 1, "point": 0, "box_0.3": 0, "box_0.5": 0, "all": 0}


def by_model(rows: Sequence[MeasureRow], measure: str = "pass1") -> dict[str, dict[str, MeasureRow]]:
    found: dict[str, dict[str, MeasureRow]] = {}
    for row in rows:
        if row.measure == measure:
            found.setdefault(row.model, {})[row.value_of_slice] = row
    return found


WRITTEN = study_of({name: answers_of(name, BUILT, repeats=2) for name in BEHAVIOURS})
"""Every written behaviour, with two samples of each item."""

ROWS, LOST = (by_model(evidence_rows(WRITTEN), measure) for measure in ("pass1", "credit_lost"))


def test_a_right_diagnosis_with_the_wrong_side_drops_to_zero_and_one_that_is_right_in_all_keeps_everything() -> None:
    wrong, right = ROWS["wrong side"], ROWS["right in all"]
    assert (wrong["plain"].value, wrong["side"].value, wrong["all"].value) == (1.0, 0.0, 0.0)
    lost = LOST["wrong side"]["side"]
    assert (lost.value, lost.low) == (1.0, pytest.approx(one_sided_bounds(PATIENTS, PATIENTS, 0.95)[0]))
    assert {row.value for row in right.values()} == {1.0}
    assert list(right) == ["plain", *KINDS, "all"]


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("wrong region", {"plain", "side", "slice", "point", "box_0.3", "box_0.5"}),
        ("another picture", {"plain", "side", "region"}),
        ("loose box", {"plain", "side", "region", "slice", "point", "box_0.3"}),
        ("points", {"plain", "side", "region", "slice", "point"}),
        ("names no place", {"plain", "side", "region"}),
        ("wrong diagnosis", set()),
    ],
)
def test_each_written_behaviour_keeps_what_it_gets_right(model: str, kept: set[str]) -> None:
    assert {name for name, row in ROWS[model].items() if row.value == 1.0} == kept
    assert {row.value for name, row in ROWS[model].items() if name not in kept} == {0.0}


def test_all_rows_are_over_the_same_items_and_their_ends_contain_them() -> None:
    for model, rows in ROWS.items():
        every = [*rows.values(), *LOST[model].values()]
        assert {(row.n_items, row.n_patients, row.n_answers) for row in every} == {(PATIENTS, PATIENTS, 2 * PATIENTS)}
        for row in every:
            assert row.low <= row.value <= row.high  # type: ignore[operator]
        for name, row in LOST[model].items():
            assert row.value == pytest.approx((rows["plain"].value or 0.0) - (rows[name].value or 0.0))


def test_a_model_that_mixes_up_the_side_in_a_third_of_the_patients_has_that_difference_in_its_interval() -> None:
    right, wrong = (answers_of(name, BUILT) for name in ("right in all", "wrong side"))
    mixed = [replace(one if number % 3 else other, model="m") for number, (one, other) in enumerate(zip(right, wrong, strict=True))]
    row = by_model(evidence_rows(study_of({"m": mixed})), "credit_lost")["m"]["side"]
    assert row.value == pytest.approx(1 / 3)
    assert 0 < row.low < 1 / 3 < row.high  # type: ignore[operator]


def test_an_item_of_which_one_kind_is_unknown_counts_in_no_row() -> None:
    partly = cases(PATIENTS)
    gold = [replace(one, lesion=replace(one.lesion, side="")) if "/c00/" in one.item_id and one.lesion else one for one in partly.gold]
    study = study_of({"m": [replace(one, model="m") for one in answers_of("right in all", BUILT)]}, replace(partly, gold=tuple(gold)))
    kinds, mask = evidence_items(study.benchmarks["b"])
    assert kinds == list(KINDS)
    assert int(mask.sum()) == PATIENTS - 1
    assert {row.n_items for row in evidence_rows(study)} == {PATIENTS - 1}


def test_what_is_known_of_no_item_has_no_row_and_the_note_says_so() -> None:
    built = cases(PATIENTS, lesion_extent_mm=None)
    told = [replace(one, model="m") for one in answers_of("right in all", BUILT)]
    rows = by_model(evidence_rows(study_of({"m": told}, built)))["m"]
    assert list(rows) == ["plain", "side", "region", "slice", "all"]
    assert rows["plain"].note == "not known of any item: point, box (overlap 0.3) and box (overlap 0.5)"


def test_a_checklist_asks_for_side_and_region_alone_and_the_short_form_for_neither() -> None:
    told = {"m": [replace(one, model="m") for one in answers_of("wrong side", BUILT)]}
    rows = by_model(evidence_rows(study_of(told, form="checklist")))["m"]
    assert {name: row.value for name, row in rows.items()} == {"plain": 1.0, "side": 0.0, "region": 1.0, "all": 0.0}
    assert evidence_rows(study_of(told, form="short")) == []


def test_missing_answers_are_left_out_and_unread_places_are_counted() -> None:
    told = [replace(one, model="m") for one in answers_of("right in all", BUILT)]
    told[0] = replace(told[0], state=ResponseState.SKIPPED, text="")
    told[1] = replace(told[1], text=told[1].text.replace("PICTURE: 3", "PICTURE: 3 and 4"))
    every = evidence_rows(study_of({"m": told}))
    rows = by_model(every)["m"]
    assert {row.n_items for row in every} == {PATIENTS - 1}
    assert by_model(every, "places_unread")["m"][""].value == pytest.approx(1 / (PATIENTS - 1))
    assert rows["slice"].value == pytest.approx((PATIENTS - 2) / (PATIENTS - 1))
