"""Perception or reasoning: what a study must show before a share of the errors is given."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.perception import EFFECTS, measure
from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.estimates.intervals import ByPatient, Interval, IntervalSettings
from neuralmedbench.tables.calibrated import GraderAccuracy
from neuralmedbench.tables.decomposition import CONTRASTS, decompose, share_beyond_grader

FAST = IntervalSettings(resamples=1000)
RIGHT, WRONG = np.ones(40), np.zeros(40)
BY = ByPatient(np.arange(40), FAST)
SOME = (np.arange(40) % 4 == 0).astype(float)
MORE = (np.arange(40) % 4 != 3).astype(float)


def test_the_share_is_of_the_errors_under_full_and_counts_what_was_spoilt() -> None:
    spoilt = np.where(np.arange(40) == 0, 0.0, MORE)
    found = decompose({"f": SOME, "d": spoilt, "donor": SOME, "leak": WRONG}, lambda *_: BY)
    assert found["shown"], found["note"]
    assert found["share"] == pytest.approx((spoilt.mean() - SOME.mean()) / (1 - SOME.mean()))
    assert found["share_low"] < found["share"] < found["share_high"]
    assert (found["repaired"], found["made"]) == (pytest.approx(20 / 40), pytest.approx(1 / 40))
    assert found["gain"] == pytest.approx(found["repaired"] - found["made"])


@pytest.mark.parametrize(
    ("passed", "reason"),
    [
        ({"f": SOME, "d": SOME, "donor": WRONG, "leak": WRONG}, "telling the findings was not shown to help"),
        ({"f": SOME, "d": MORE, "donor": MORE, "leak": WRONG}, "not shown to help more than another patient's"),
        ({"f": SOME, "d": MORE, "donor": SOME, "leak": MORE}, "the findings alone may name the answer"),
        ({"f": SOME, "d": MORE, "leak": WRONG}, "not asked under findings_of_another"),
        ({"f": SOME, "d": MORE, "donor": SOME}, "not asked under findings_only"),
        ({"f": MORE, "d": SOME, "donor": WRONG, "leak": WRONG}, "the findings made it worse"),
        ({"f": RIGHT, "d": RIGHT, "donor": WRONG, "leak": WRONG}, "no error under full"),
        ({"f": np.full(40, np.nan), "d": RIGHT}, "no item was asked under both arms"),
    ],
)
def test_no_share_is_given_without_a_reason_in_words(passed: dict[str, np.ndarray], reason: str) -> None:
    found = decompose(passed, lambda *_: BY)
    assert not found["shown"]
    assert reason in found["note"]
    assert found.get("share") is None


def test_a_reference_that_looks_the_told_words_up_leaks_and_gets_no_share() -> None:
    """It never looks at a picture: without findings it fails, and with those of another patient it names that patient's disease."""
    found = decompose({"f": WRONG, "d": RIGHT, "donor": WRONG, "leak": RIGHT}, lambda *_: BY)
    assert found["leak"] > 0.8
    assert not found["shown"]


def test_a_reference_that_sees_perfectly_and_never_reads_gets_zero_within_its_interval() -> None:
    """What it is told changes nothing: five samples of the same chances under every arm."""
    rng = np.random.default_rng(4)
    chances = rng.beta(3, 1, 40)
    found = decompose({name: rng.binomial(5, chances) / 5 for name in ("f", "d", "donor", "leak")}, lambda *_: BY)
    assert found["gain_low"] <= 0 <= found["gain_high"]
    assert found["effect_low"] <= 0 <= found["effect_high"]
    assert not found["shown"]


def test_what_is_the_same_for_every_item_is_judged_by_its_p_value() -> None:
    found = decompose({"f": WRONG, "d": RIGHT, "donor": WRONG, "leak": WRONG}, lambda *_: BY)
    assert (found["shown"], found["share"]) == (True, 1.0)
    assert 0.9 < found["share_low"] < 1
    few = ByPatient(np.arange(3), FAST)
    assert not decompose({"f": WRONG[:3], "d": RIGHT[:3], "donor": WRONG[:3], "leak": WRONG[:3]}, lambda *_: few)["shown"]


def test_every_contrast_is_against_the_told_findings_of_the_patient() -> None:
    assert {first for first, _ in CONTRASTS.values()} == {"d"}


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
    found = share_beyond_grader(0.75 * 0.60, 0.75 * 0.90, accuracy)
    assert found["share_beyond_grader_low"] <= 0.75 <= found["share_beyond_grader_high"]
    perfect = GraderAccuracy(Interval(1.0, 1.0, 1.0, "exact"), Interval(1.0, 1.0, 1.0, "exact"), "made up")
    exact = share_beyond_grader(0.60, 0.90, perfect)
    assert exact["share_beyond_grader_low"] == exact["share_beyond_grader_high"] == pytest.approx(0.75)
    chance = GraderAccuracy(Interval(0.5, 0.4, 0.5, "exact"), Interval(0.5, 0.4, 0.5, "exact"), "made up")
    assert "share_beyond_grader_low" not in share_beyond_grader(0.60, 0.90, chance)
