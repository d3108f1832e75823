"""Measures of models that look through scans: scripts whose values were worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT
from fixtures.confidence import answer, open_item, study_of
from fixtures.viewing import VIEWER, action, final, show
from neuralmedbench.config.arms import load_arms
from neuralmedbench.records.items import Gold, Lesion, Strategy
from neuralmedbench.records.views import view_steps
from neuralmedbench.tables.contrasts import arm_rows, oracle_arms
from neuralmedbench.tables.declare import ContrastRow, MeasureRow
from neuralmedbench.tables.viewer import viewer_measures, viewer_rows

LESION = Lesion(location="putamen", side="left", behaviour={"T1w": "isointense"}, size_mm=12.0, position_mm=(50.0, 20.0, 16.0))
"""FLAIR slices 11, 12 and 13 (z = 10, 15 and 20 mm) are within 6 mm of its centre; T1w does not show it."""
SCRIPTS = {
    "scrolls to the lesion": [show("FLAIR", 3), show("FLAIR", 8), show("FLAIR", 8), show("FLAIR", 12), final("stroke")],
    "answers at once": [final("stroke")],
    "looks beside it": [
        show("FLAIR", 1),
        show("FLAIR", 25),
        show("T1w", 57),
        action("COMPARE", sequences=["FLAIR", "T1w"], plane="axial", slice=11),
        final("stroke"),
    ],
    "zooms": [
        show("FLAIR", 12, zoom=4, at=[100, 100]),
        show("FLAIR", 12, zoom=4, at=[750, 600]),
        action("MEASURE", sequence="FLAIR", plane="axial", slice=12, points=[[700, 600], [760, 600]]),
        final("stroke"),
    ],
}
NAMES = ("lesion_found", "views_on_lesion", "views_to_lesion", "wasted_views", "corrections", "views")
EXPECTED = {
    "scrolls to the lesion": (1.0, 1 / 4, 4.0, 1 / 4, 0.0, 4.0),
    "answers at once": (0.0, None, None, None, None, 0.0),
    "looks beside it": (1.0, 1 / 4, 3.0, 1 / 4, 1 / 4, 4.0),
    "zooms": (1.0, 1 / 2, 2.0, 0.0, 0.0, 2.0),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_have_the_values_that_were_worked_out_by_hand(script: str) -> None:
    found = viewer_measures(view_steps(VIEWER, SCRIPTS[script]), LESION)
    assert found == pytest.approx(dict(zip(NAMES, EXPECTED[script], strict=True)), abs=1e-9)


@pytest.mark.parametrize("lesion", [None, Lesion(location="putamen", side="left", behaviour={})])
def test_without_a_lesion_of_known_place_nothing_is_said_about_it(lesion: Lesion | None) -> None:
    found = viewer_measures(view_steps(VIEWER, SCRIPTS["scrolls to the lesion"]), lesion)
    assert [found[name] for name in NAMES[:3]] == [None] * 3
    assert found["wasted_views"] == 1 / 4


def study_of_viewers(patients: int = 4, looking: int = 2, shown: int = 1, oracle: Sequence[bool | None] = ()) -> Any:
    """Give patients, of whom the first four are looked at by one script each; with own views `looking` are right, with the chosen slices `shown`.

    The first patients have `oracle` slices, with which the answer is right, wrong, or missing (None).
    """
    items = [open_item(number, f"p{number}") for number in range(patients)]
    looked = [replace(answer(one, None, place < looking), model="m", strategy=Strategy.VIEWER) for place, one in enumerate(items)]
    fixed = [replace(answer(one, None, place < shown), model="m") for place, one in enumerate(items)]
    placed = [replace(answer(one, None, right), model="m", arm="oracle_slices") for one, right in zip(items, oracle, strict=False)]
    study = study_of(items, {"m": [*looked, *fixed, *placed]}, sampled=False)
    (benchmark,) = study.benchmarks.values()
    benchmark.arms = load_arms(ROOT / "config", ["oracle_slices"] if oracle else [], "made-up")
    study.models = {"m": SimpleNamespace(title="M", max_images=None)}
    benchmark.requests = [SimpleNamespace(item_id=one.item_id, viewer=VIEWER) for one in items]
    benchmark.gold = [Gold(item_id=one.item_id, answer="stroke", lesion=LESION) for one in items]
    benchmark.responses = {
        "m": [
            SimpleNamespace(item_id=one.item_id, strategy=Strategy.VIEWER, state="ok", text=turns[-1], turns=tuple(turns))
            for one, turns in zip(items, SCRIPTS.values(), strict=False)
        ]
    }
    return study


def name_of(row: MeasureRow | ContrastRow) -> str:
    """Name a row by its measure, how it was asked and its items."""
    way = {"viewer": "own views", "direct": "chosen slices"}[row.strategy] if row.arm == "full" else "oracle slices"
    asked = f"{row.measure}, {way}" if row.measure == "pass1_patients" else row.measure
    return f"{asked}, of oracle items" if row.slice else asked


def rows_by_name(study: Any) -> dict[str, MeasureRow | ContrastRow]:
    return {name_of(row): row for row in viewer_rows(study)}


def test_rows_are_means_over_patients_and_what_is_undefined_is_counted_and_left_out() -> None:
    study = study_of_viewers()
    rows = rows_by_name(study)
    values = {name: (row.value, row.n_items, getattr(row, "left_out", 0)) for name, row in rows.items()}
    assert values == {
        "lesion_found": (pytest.approx(3 / 4), 4, 0),
        "views_on_lesion": (pytest.approx((1 / 4 + 1 / 4 + 1 / 2) / 3), 3, 1),
        "views_to_lesion": (pytest.approx((4 + 3 + 2) / 3), 3, 1),
        "wasted_views": (pytest.approx((1 / 4 + 1 / 4 + 0) / 3), 3, 1),
        "corrections": (pytest.approx((0 + 1 / 4 + 0) / 3), 3, 1),
        "views": (pytest.approx((4 + 0 + 4 + 2) / 4), 4, 0),
        "pass1_patients, own views": (pytest.approx(2 / 4), 4, 0),
        "pass1_patients, chosen slices": (pytest.approx(1 / 4), 4, 0),
        "pass1_difference": (pytest.approx(1 / 4), 4, 0),
    }
    assert all(row.low <= row.value <= row.high and row.n_patients == row.n_items for row in rows.values())


def test_chosen_slices_own_views_and_oracle_slices_stand_side_by_side_on_the_same_items() -> None:
    """Six patients: four answered in all three ways, one without an answer to the oracle slices, one whose lesion has no known place."""
    rows = rows_by_name(study_of_viewers(6, 2, 0, [True, True, True, True, None]))
    values = {name: row.value for name, row in rows.items() if "pass1" in name or "oracle" in name}
    assert values == pytest.approx(
        {
            "pass1_patients, own views": 2 / 6,
            "pass1_patients, chosen slices": 0.0,
            "pass1_difference": 2 / 6,
            "pass1_patients, own views, of oracle items": 2 / 4,
            "pass1_patients, chosen slices, of oracle items": 0.0,
            "pass1_patients, oracle slices, of oracle items": 1.0,
            "pass1_difference, of oracle items": 2 / 4,
            "oracle_difference, of oracle items": 2 / 4,
        },
        abs=1e-9,
    )
    placed = [row for row in rows.values() if row.slice]
    assert {(row.n_items, row.n_patients) for row in placed} == {(4, 4)}
    assert {(row.n_answers, row.left_out) for row in placed if isinstance(row, MeasureRow)} == {(4, 1), (4, 2)}
    assert all(row.low <= row.value <= row.high for row in placed)
    without = rows_by_name(study_of_viewers(6, 2, 0))
    assert without == {name: row for name, row in rows.items() if not row.slice}, "the arm changes no other row"


def test_of_items_that_no_model_answered_in_all_three_ways_the_differences_are_undefined_with_their_number() -> None:
    study = study_of_viewers(4, 2, 1, [None])
    rows = [row for row in viewer_rows(study) if row.slice]
    assert [name_of(row).removesuffix(", of oracle items") for row in rows] == [
        "pass1_patients, own views",
        "pass1_patients, chosen slices",
        "pass1_patients, oracle slices",
        "pass1_difference",
        "oracle_difference",
    ]
    assert {(row.value, row.low, row.n_items) for row in rows} == {(None, None, 0)}
    assert {row.left_out for row in rows if isinstance(row, MeasureRow)} == {1, 4}, (
        "of the one that is asked with oracle slices, and of all"
    )


def test_what_looking_and_what_the_place_are_worth_have_their_intervals() -> None:
    rows = {row.measure: row for row in viewer_rows(study_of_viewers(40, 30, 10, [place < 35 for place in range(40)])) if row.slice}
    whole = {row.measure: row for row in viewer_rows(study_of_viewers(40, 30, 10)) if not row.slice}
    assert whole["pass1_difference"].difference == pytest.approx(0.5)
    assert whole["pass1_difference"].low > 0
    assert rows["oracle_difference"].difference == pytest.approx(0.125)


def test_every_table_of_arms_calls_the_arm_an_upper_bound_which_uses_the_truth() -> None:
    study = study_of_viewers(6, 2, 0, [True] * 4)
    (row,) = arm_rows(study, {})
    assert (row.arm, row.difference, row.note) == ("oracle_slices", 1.0, "oracle slices: an upper bound, which uses the truth")
    (benchmark,) = study.benchmarks.values()
    assert oracle_arms(benchmark) == ["oracle_slices"]
