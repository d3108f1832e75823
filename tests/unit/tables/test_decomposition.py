"""Perception or reasoning: what a study must show before a share of the errors is given."""

from __future__ import annotations

from dataclasses import replace
from inspect import unwrap
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fixtures.perception import EFFECTS, decompose, measure
from fixtures.tables import DEPTH, item, score
from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.estimates.intervals import ByPatient, Interval, IntervalSettings
from neuralmedbench.records.items import Arm, Family, Gold, Level, Runner
from neuralmedbench.tables.calibrated import GraderAccuracy
from neuralmedbench.tables.declare import ModelRows
from neuralmedbench.tables.decomposition import TOLD, decomposition_rows, share_beyond_grader
from neuralmedbench.tables.outcomes import gather_outcomes

FAST = IntervalSettings(resamples=1000)
RIGHT, WRONG = np.ones(40), np.zeros(40)
BY = ByPatient(np.arange(40), FAST)
SOME = (np.arange(40) % 4 == 0).astype(float)
MORE = (np.arange(40) % 4 != 3).astype(float)


FULL, DONOR, LEAK = Arm.FULL, Arm.FINDINGS_OF_ANOTHER, Arm.FINDINGS_ONLY


def test_the_share_is_of_the_errors_under_full_and_counts_what_was_spoilt() -> None:
    spoilt = np.where(np.arange(40) == 0, 0.0, MORE)
    _, share, note = decompose({FULL: SOME, TOLD: spoilt, DONOR: SOME, LEAK: WRONG}, BY)
    assert note == ""
    assert share.value == pytest.approx((spoilt.mean() - SOME.mean()) / (1 - SOME.mean()))
    assert share.low < share.value < share.high


@pytest.mark.parametrize(
    ("passed", "reason"),
    [
        ({FULL: SOME, TOLD: SOME, DONOR: WRONG, LEAK: WRONG}, "whether the findings help is inconclusive"),
        ({FULL: SOME, TOLD: MORE, DONOR: MORE, LEAK: WRONG}, "help more than another patient's is inconclusive"),
        ({FULL: SOME, TOLD: MORE, DONOR: SOME, LEAK: MORE}, "the findings alone may name the answer"),
        ({FULL: SOME, TOLD: MORE, LEAK: WRONG}, "not asked under findings_of_another"),
        ({FULL: SOME, TOLD: MORE, DONOR: SOME}, "not asked under findings_only"),
        ({FULL: MORE, TOLD: SOME, DONOR: WRONG, LEAK: WRONG}, "the findings made it worse"),
        ({FULL: RIGHT, TOLD: RIGHT, DONOR: WRONG, LEAK: WRONG}, "no error under full"),
        # a reference that looks up the words: it never looks at a picture, and names the disease of whoever the findings are
        ({FULL: WRONG, TOLD: RIGHT, DONOR: WRONG, LEAK: RIGHT}, "the findings alone may name the answer"),
    ],
)
def test_no_share_is_given_without_a_reason_in_words(passed: dict[str, np.ndarray], reason: str) -> None:
    _, share, note = decompose(passed, BY)
    assert reason in note
    assert share.value is None


def test_a_reference_that_sees_perfectly_and_never_reads_gets_zero_within_its_interval() -> None:
    """What it is told changes nothing: five samples of the same chances under every arm."""
    rng = np.random.default_rng(4)
    chances = rng.beta(3, 1, 40)
    contrasts, share, _ = decompose({arm: rng.binomial(5, chances) / 5 for arm in (FULL, TOLD, DONOR, LEAK)}, BY)
    assert contrasts["gain"].low <= 0 <= contrasts["gain"].high
    assert contrasts["effect"].low <= 0 <= contrasts["effect"].high
    assert share.value is None


def test_what_is_the_same_for_every_item_is_judged_by_its_p_value() -> None:
    _, share, _ = decompose({FULL: WRONG, TOLD: RIGHT, DONOR: WRONG, LEAK: WRONG}, BY)
    assert share.value == 1.0
    assert 0.9 < share.low < 1
    few = ByPatient(np.arange(3), FAST)
    assert decompose({FULL: WRONG[:3], TOLD: RIGHT[:3], DONOR: WRONG[:3], LEAK: WRONG[:3]}, few)[1].value is None


def rows_of(full: list[bool | None], told: list[bool | None]) -> dict[tuple[str, str], Any]:
    """Return the rows of one answer to an item of each patient under both arms; None is a missing answer."""
    one = item(DEPTH, "case", "p", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN)
    items = [replace(one, item_id=f"{DEPTH}/{place}", patient_id=f"p{place}") for place in range(len(full))]
    scores = [
        score(of, "m", arm=arm, passed=right)
        for arm, rights in ((FULL, full), (TOLD, told))
        for of, right in zip(items, rights, strict=True)
    ]
    gold = [Gold(item_id=of.item_id, answer="stroke") for of in items]
    outcomes = gather_outcomes(DEPTH, "depth", items, gold, scores={"m": scores}, sampled={"m": True})
    made = ModelRows("decomposition", SimpleNamespace(settings=FAST), SimpleNamespace(name=DEPTH, outcomes=outcomes), "m")  # type: ignore[arg-type]
    return {(row.measure, row.arm): row for row in unwrap(decomposition_rows)(made, None)}


def test_only_items_that_are_answered_under_both_arms_count() -> None:
    rows = rows_of([True, False, False, None], [True, True, None, True])
    assert [rows["pass1_patients", arm].value for arm in (FULL, TOLD)] == [0.5, 1.0]
    assert {row.n_items for row in rows.values()} == {2}
    assert (rows["gain", TOLD].difference, rows["repaired", TOLD].value, rows["made", TOLD].value) == (0.5, 0.5, 0.0)
    (row,) = rows_of([True, None], [None, True]).values()
    assert (row.measure, row.value, row.note) == ("share", None, "no item was asked under both arms")


@pytest.mark.parametrize(("studies", "many"), [(100, 10), pytest.param(200, 15, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [pytest.param("no effect", marks=pytest.mark.long), "no effect, misled by another's findings"])
def test_without_an_effect_a_share_is_seldom_headlined(name: str, studies: int, many: int) -> None:
    """A slice of `perf/perception_split.py`: with a chance of 2.5 %, 10 of 100 or 15 of 200 or more come once in 4,000."""
    found = measure(30, 0.6, EFFECTS[name], studies, seed=3)
    assert found["headlined"] is not None
    assert found["headlined"] < many / studies


@pytest.mark.parametrize(("studies", "few"), [(100, 85), pytest.param(200, 176, marks=pytest.mark.long)])
def test_findings_that_spoil_answers_are_covered(studies: int, few: int) -> None:
    """Of intervals that hold the truth 93 % of the time, 85 of 100 or 176 of 200 or fewer do so once in 140."""
    found = measure(12, 0.85, EFFECTS["spoils 24 %"], studies, seed=3)
    assert found["difference_covered"] is not None
    assert found["difference_covered"] > few / studies


def test_the_range_beyond_the_graders_errors_holds_the_true_share() -> None:
    """True rates 0.60 and 0.90: the findings repair 75 % and leave 25 %. A grader that misses a quarter of the right answers shows 41 %."""
    accuracy = GraderAccuracy(
        Interval(0.75, *clopper_pearson(75, 100, 0.95), "exact"), Interval(1.0, *clopper_pearson(60, 60, 0.95), "exact"), "made up"
    )
    low, high = share_beyond_grader(0.75 * 0.60, 0.75 * 0.90, accuracy)
    assert low <= 0.75 <= high
    perfect = GraderAccuracy(Interval(1.0, 1.0, 1.0, "exact"), Interval(1.0, 1.0, 1.0, "exact"), "made up")
    assert share_beyond_grader(0.60, 0.90, perfect) == (pytest.approx(0.75), pytest.approx(0.75))
    chance = GraderAccuracy(Interval(0.5, 0.4, 0.5, "exact"), Interval(0.5, 0.4, 0.5, "exact"), "made up")
    assert share_beyond_grader(0.60, 0.90, chance) is None
