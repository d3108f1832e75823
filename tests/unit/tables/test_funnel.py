"""The funnel: every step is about the same items, shares are those that were put in, and nothing unknown is counted as met."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fixtures.agreement import rating
from fixtures.rating import form
from fixtures.tables import item, score
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.items import Family, Gold, Level, Runner
from neuralmedbench.tables.funnel import MEASURES, STEPS, funnel_rows
from neuralmedbench.tables.outcomes import gather_outcomes

DONOR, PRESSED = "image_of_another", "suggestion-wrong"
CHANCES = {"full": 0.8, "no_image": 0.3, DONOR: 0.2, PRESSED: 0.6}
ACCEPTED = 0.7


def items(number: int):
    """Give one item each of so many patients."""
    return [
        item("b", f"c{one:03}", f"p{one:03}", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN)
        for one in range(number)
    ]


def study_of(asked, rows, resamples: int = 500, ratings=()):
    """Give a run of one benchmark and the model m."""
    gold = [Gold(item_id=one.item_id, answer="glioblastoma") for one in asked]
    outcomes = gather_outcomes("b", "depth", asked, gold, scores={"m": rows}, sampled={"m": True})
    benchmark = SimpleNamespace(name="b", outcomes=outcomes, scores={"m": rows})
    return SimpleNamespace(
        benchmarks={"b": benchmark}, models={"m": SimpleNamespace(title="M")}, settings=IntervalSettings(resamples=resamples),
        ratings=list(ratings), form=form(),
    )  # fmt: skip


def drawn(seed: int, number: int, samples: int = 3):
    """Draw a study whose answers pass with `CHANCES` under each arm, and whose right answers are accepted with `ACCEPTED`."""
    rng, asked = np.random.default_rng(seed), items(number)
    rows = [
        score(one, "m", passed=bool(rng.random() < chance), arm=arm, repeat=repeat, rubric=float(rng.random() < ACCEPTED))
        for one in asked
        for arm, chance in CHANCES.items()
        for repeat in range(samples)
    ]
    return study_of(asked, rows)


def test_each_step_is_the_share_that_was_put_in_times_those_before_and_its_interval_covers_it() -> None:
    truth = np.cumprod([CHANCES["full"], 1 - CHANCES["no_image"], 1 - CHANCES[DONOR], CHANCES[PRESSED], ACCEPTED])
    found = [list(funnel_rows(drawn(seed, 60))) for seed in range(40)]
    assert [row.measure for row in found[0]] == ["right", "beyond_history", "from_picture", "stable", "accepted"]
    assert {(row.n_items, row.n_patients) for rows in found for row in rows} == {(60, 60)}
    shares = np.array([[row.value for row in rows] for rows in found])
    assert shares.mean(axis=0) == pytest.approx(truth, abs=0.02)
    covered = np.array([[row.low <= true <= row.high for row, true in zip(rows, truth, strict=True)] for rows in found])
    assert covered.mean() > 0.88


def test_a_later_step_is_never_larger() -> None:
    shares = [row.value for row in funnel_rows(drawn(1, 20))]
    assert shares == sorted(shares, reverse=True)


def by_hand(**passes: list[bool]):
    """Give a run of two items with one answer under each arm; `accepted` is about the answers under full."""
    asked, accepted = items(2), passes.pop("accepted", [True, True])
    rows = [
        score(one, "m", passed=passed, arm=arm, rubric=1.0 if good else 0.0)
        for arm, values in passes.items()
        for one, passed, good in zip(asked, values, accepted, strict=True)
    ]
    return {row.measure: row.value for row in funnel_rows(study_of(asked, rows))}


def test_an_answer_that_the_history_gives_away_or_that_is_not_accepted_is_gone() -> None:
    arms = {"full": [True, True], "no_image": [True, False], PRESSED: [True, True]}
    assert by_hand(**arms) == {"right": 1.0, "beyond_history": 0.5, "stable": 0.5, "accepted": 0.5}
    assert by_hand(**arms, accepted=[True, False])["accepted"] == 0.0


def test_shuffled_pictures_stand_in_where_no_donor_of_another_disease_was_asked() -> None:
    asked = items(2)
    rows = [score(one, "m", passed=arm == "full", arm=arm) for one in asked for arm in ("full", "shuffled_image")]
    found = {row.measure: row.arm for row in funnel_rows(study_of(asked, rows))}
    assert found == {"right": "full", "from_picture": "shuffled_image"}


def test_items_that_a_step_does_not_ask_are_in_none_of_them() -> None:
    asked = items(4)
    rows = [score(one, "m", passed=True) for one in asked] + [score(one, "m", passed=False, arm="no_image") for one in asked[:3]]
    assert {(row.n_items, row.value) for row in funnel_rows(study_of(asked, rows))} == {(3, 1.0)}


def test_a_right_answer_whose_acceptance_is_not_known_takes_its_item_out() -> None:
    asked = items(3)
    rows = [score(one, "m", passed=True, rubric=None if place == 0 else 1.0) for place, one in enumerate(asked)]
    found = funnel_rows(study_of(asked, rows))
    assert {(row.measure, row.n_items) for row in found} == {("right", 2), ("accepted", 2)}


def test_what_is_right_in_the_wrong_place_is_not_located_and_an_item_without_a_known_place_is_in_no_step() -> None:
    asked = items(4)
    places = [{"side": True, "region": True}, {"side": False, "region": True}, {"side": True, "region": True}, {}]
    rows = [score(one, "m", passed=place < 2, evidence=known) for place, (one, known) in enumerate(zip(asked, places, strict=True))]
    found = {row.measure: (row.value, row.n_items) for row in funnel_rows(study_of(asked, rows))}
    assert found == {"right": (pytest.approx(2 / 3), 3), "located": (pytest.approx(1 / 3), 3)}


def test_a_missing_answer_takes_its_item_out_and_without_a_second_step_there_is_no_funnel() -> None:
    asked = items(3)
    rows = [score(one, "m", passed=True) for one in asked]
    assert funnel_rows(study_of(asked, rows)) == []
    lost = score(asked[0], "m", passed=None, arm="no_image", missing=True, state="failed")
    rows += [lost, *(score(one, "m", passed=False, arm="no_image") for one in asked[1:])]
    assert {row.n_items for row in funnel_rows(study_of(asked, rows))} == {2}


def rated(place: int, value: float | None, rater: str = "r1", **changes):
    """Give a clinician's rating of the answer to an item; 3 and more is a pass."""
    return rating(0, rater, value, item_id=items(place + 1)[place].item_id, model="m", **changes)


def accepted(study):
    """Give the row of the last step; None if acceptance was not measured."""
    return next((row for row in funnel_rows(study) if row.measure == "accepted"), None)


def test_a_clinician_decides_where_one_rated_and_the_grader_elsewhere_and_the_row_says_who() -> None:
    asked = items(4)
    rows = [score(one, "m", passed=True, rubric=rubric) for one, rubric in zip(asked, (1.0, 1.0, 0.0, 0.0), strict=True)]
    assert (accepted(study_of(asked, rows)).value, accepted(study_of(asked, rows)).source) == (0.5, "a grader")
    one = accepted(study_of(asked, rows, ratings=[rated(0, 2)]))
    assert (one.value, one.source) == (0.25, "clinicians and a grader")
    # the mean of two raters passes
    both = accepted(study_of(asked, rows, ratings=[rated(2, 2), rated(2, 4, "r2")]))
    assert (both.value, both.source) == (0.75, "clinicians and a grader")
    everyone = accepted(study_of(asked, rows, ratings=[rated(place, 4) for place in range(4)]))
    assert (everyone.value, everyone.source) == (1.0, "clinicians")


@pytest.mark.parametrize("changes", [{"simulated": True}, {"stale": True}, {"value": None}, {"axis": "reasoning"}])
def test_programs_outdated_ratings_and_other_axes_accept_nothing(changes) -> None:
    asked = items(2)
    rows = [score(one, "m", passed=True, rubric=1.0) for one in asked]
    row = accepted(study_of(asked, rows, ratings=[rated(0, **{"value": 0, **changes})]))
    assert (row.value, row.source) == (1.0, "a grader")


def test_without_a_grader_ratings_of_few_items_are_no_step_and_take_no_item_out() -> None:
    asked = items(4)
    rows = [score(one, "m", passed=True) for one in asked] + [score(one, "m", passed=False, arm="no_image") for one in asked]
    few = funnel_rows(study_of(asked, rows, ratings=[rated(0, 4)]))
    assert [(row.measure, row.n_items) for row in few] == [("right", 4), ("beyond_history", 4)]
    half = funnel_rows(study_of(asked, rows, ratings=[rated(0, 4), rated(1, 0)]))
    assert {row.n_items for row in half} == {2}
    assert (half[-1].measure, half[-1].value, half[-1].source) == ("accepted", 0.5, "clinicians")


def test_every_step_has_words_of_its_own() -> None:
    assert len({step.words for step in STEPS}) == len(STEPS)
    assert [step.name for step in STEPS] == [measure.name for measure in MEASURES], "the page defines every step"
