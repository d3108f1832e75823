"""Two finished runs compared: what is paired, what is counted, and how often an interval holds the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fixtures.scoring import vocabulary
from fixtures.tables import DEPTH, item, score
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.items import Family, Item, Level, Runner
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.changes import HEADLINE, QUESTIONS, REFERENCES, Side, paired_items
from neuralmedbench.tables.two_runs import PARTS, WHOLE, Audience, RunComparison, Sides, comparison_answer
from neuralmedbench.tables.two_runs import compare_runs as compare

SETTINGS = IntervalSettings(resamples=1000)
PATIENTS, PLANTED, SEED = 60, 0.15, 21
FAMILIES = (Family.DIFFERENTIAL_DIAGNOSIS, Family.RATIONALE_GENERATION)


def items_of(patients: int) -> list[Item]:
    """Return two items of every patient."""
    return [
        item(DEPTH, f"case{number:02d}", f"patient{number:02d}", family, level=Level.DIRECT, runner=Runner.OPEN)
        for number in range(patients)
        for family in FAMILIES
    ]


def scores_of(items: Sequence[Item], passed: Sequence[bool | None], words: str = "0", **changes: object) -> list[Score]:
    """Return one answer to each item; None is a missing one."""
    return [
        score(one, "alpha", passed=right, text_sha256=words * 64, missing=right is None, **changes)
        for one, right in zip(items, passed, strict=True)
    ]


def run_of(
    scores: Sequence[Score], requests: Mapping[str, str] | None = None, references: Mapping[str, str] | None = None
) -> dict[tuple[str, str], Side]:
    """Return a run of one model; requests and references are equal unless named."""
    asked = {(row.item_id, row.arm, row.strategy): (requests or {}).get(row.item_id, row.item_id) for row in scores}
    known = {row.item_id: ((references or {}).get(row.item_id, "glioma"),) for row in scores}
    return {(DEPTH, "alpha"): Side(scores[0].revision, scores, asked, known)}


def compare_runs(a: Sides, b: Sides, settings: IntervalSettings = SETTINGS, **options: Any) -> RunComparison:
    return compare(a, b, vocabulary(), settings, **options)


def whole(found: RunComparison) -> dict[str, object]:
    (row,) = (row for row in found.differences if row["comparisons"] == WHOLE)
    return row


def answer(found: RunComparison) -> str:
    return comparison_answer(found, {}, {})


def test_a_run_compared_with_itself_shows_no_difference_and_says_that_nothing_changed() -> None:
    items = items_of(12)
    run = run_of(scores_of(items, [number % 3 > 0 for number in range(len(items))]))
    found = compare_runs(run, run, SETTINGS)
    assert {(row["difference"], row["low"], row["high"], row["gained"], row["lost"], row["same_answers"]) for row in found.differences} == {
        (0, 0, 0, 0, 0, 1)
    }
    assert found.changed == []
    assert answer(found).startswith("Nothing changed: every answer is the same, word for word")
    assert f"{DEPTH}: 24 items of 12 patients in both" in answer(found)


def test_equal_outcomes_of_other_answers_are_not_certain() -> None:
    items = items_of(12)
    passed = [number % 3 > 0 for number in range(len(items))]
    found = compare_runs(run_of(scores_of(items, passed)), run_of(scores_of(items, passed, "1")), SETTINGS)
    row = whole(found)
    bound = 1 - 0.05 ** (1 / 12)  # an event that none of 12 patients had
    assert (row["low"], row["high"]) == pytest.approx((-bound, bound))
    assert answer(found).startswith("No outcome changed, though not every answer is the same")


def test_a_change_of_every_item_has_an_interval() -> None:
    items = items_of(12)
    none, every = (run_of(scores_of(items, [right] * len(items), words)) for right, words in ((False, "0"), (True, "1")))
    for pair, sign in (((none, every), 1), ((every, none), -1)):
        row = whole(compare_runs(*pair, SETTINGS))
        near, far = (row["low"], row["high"]) if sign > 0 else (row["high"], row["low"])
        assert (row["difference"], far) == (sign, sign)
        assert 0.65 < sign * near < 0.05 ** (1 / 12), "both rates are open by an event that no patient had"
        assert row["changed"]


def test_every_item_in_one_run_only_changed_or_unanswered_is_counted_and_not_paired() -> None:
    items = items_of(12)
    passed: list[bool | None] = [number % 2 > 0 for number in range(len(items))]
    only_a, only_b, asked, known, lost = (items[number].item_id for number in (1, 3, 5, 7, 9))
    a = run_of([row for row in scores_of(items, passed) if row.item_id != only_b])
    missing = [
        None if one.item_id == lost else not right if one.item_id in (asked, known) else right
        for one, right in zip(items, passed, strict=True)
    ]
    rows = [row for row in scores_of(items, missing) if row.item_id != only_a]
    b = run_of(rows, requests={asked: "other words"}, references={known: "meningioma"})
    row = whole(found := compare_runs(a, b, SETTINGS))
    assert {name: row[name] for name in ("only_a", "only_b", "other_question", "other_reference", "unanswered")} == dict.fromkeys(
        ("only_a", "only_b", "other_question", "other_reference", "unanswered"), 1
    )
    assert (row["n_items"], row["n_patients"]) == (19, 12)
    assert row["difference"] == 0
    assert "1 comparison leaves out items that were not the same or not answered in both" in answer(found)
    for despite, paired in (((QUESTIONS,), 20), ((REFERENCES,), 20), ((QUESTIONS, REFERENCES), 21)):
        again = whole(compare_runs(a, b, SETTINGS, despite=despite))
        assert (again["n_items"], again["lost"]) == (paired, paired - 19)


def test_the_difference_is_that_of_a_hand_count_and_its_items_are_listed() -> None:
    items = items_of(12)
    before = [False] * 24
    after = [number in (0, 1, 2, 3, 4) for number in range(24)]
    before[23] = True
    found = compare_runs(run_of(scores_of(items, before)), run_of(scores_of(items, after, "1")), SETTINGS)
    row = whole(found)
    assert (row["a"], row["b"], row["difference"]) == pytest.approx((1 / 24, 5 / 24, 4 / 24))
    assert (row["gained"], row["lost"]) == (5, 1)
    assert [(one["item_id"], one["change"]) for one in found.changed] == [
        (items[number].item_id, "lost" if number == 23 else "gained")
        for number in sorted((0, 1, 2, 3, 4, 23), key=lambda one: items[one].item_id)
    ]
    parts = {one["family"]: one for one in found.differences if one["comparisons"] == PARTS}
    assert parts.keys() == {str(family) for family in FAMILIES}
    assert parts["differential_diagnosis"]["difference"] == pytest.approx(3 / 12)


def test_holm_is_over_the_comparisons_of_a_family_and_the_answer_names_none_that_is_not_significant_there() -> None:
    items = items_of(30)
    rng = np.random.default_rng(SEED)
    before = rng.random(60) < 0.4
    after = before.copy()
    after[np.flatnonzero(~before)[:12:2]] = True
    one, other = run_of(scores_of(items, before.tolist())), run_of(scores_of(items, after.tolist(), "1"))
    alone = compare_runs(one, other, SETTINGS)
    assert whole(alone)["changed"]
    assert answer(alone).startswith("Yes, in the only test: pass@1 of alpha on demo changed by +10 points (")
    # the same change beside nine models that stay as they are
    names = [f"model{number}" for number in range(9)]
    for run in (one, other):
        run.update({(DEPTH, name): one[DEPTH, "alpha"] for name in names})
    beside = compare_runs(one, other, SETTINGS)
    row = next(row for row in beside.differences if (row["comparisons"], row["model"]) == (WHOLE, "alpha"))
    assert row["p_holm"] == pytest.approx(min(1.0, 10 * row["p_value"]))
    assert not row["changed"]
    assert answer(beside).startswith("No change was shown after Holm’s correction for 10 tests; the largest difference is")


def test_a_model_is_compared_with_its_partner_of_another_name() -> None:
    items = items_of(12)
    one, other = (run_of(scores_of(items, [right] * 24, words)) for right, words in ((False, "0"), (True, "1")))
    other[DEPTH, "newer"] = replace(other.pop((DEPTH, "alpha")), revision="2")
    assert compare_runs(one, other, SETTINGS).differences == []
    assert answer(compare_runs(one, other, SETTINGS)) == "Nothing can be compared: no model answered the same question in both runs."
    row = whole(compare_runs(one, other, SETTINGS, pairs={"alpha": "newer"}))
    assert (row["model"], row["model_b"], row["revision_a"], row["revision_b"], row["gained"]) == ("alpha", "newer", "1", "2", 24)


def test_a_public_page_shows_no_item_of_patients_and_no_number_of_few_or_that_gives_one_away() -> None:
    items = items_of(22)
    few = {one.item_id for one in items[:6]}  # three patients have no item of the second family
    scores = [row for row in scores_of(items, [False] * 44) if not (row.item_id in few and row.family == FAMILIES[1])]
    small = [replace(row, family=str(Family.LESION_RECOGNITION)) if row.item_id in few else row for row in scores]
    after = [replace(row, passed=True, text_sha256="1" * 64) for row in small]
    found = compare_runs(run_of(small), run_of(after), SETTINGS, audience=Audience(True, 10, frozenset([DEPTH])))
    marks = {row["family"]: row["mark"] for row in found.differences}
    assert found.changed == []
    assert marks["lesion_recognition"] == "<10"
    assert "(hidden)" in {marks["differential_diagnosis"], marks["rationale_generation"]}, "else the total gives the small family away"
    for row in found.differences:
        numbers = {name for name, cell in row.items() if isinstance(cell, int | float) and not isinstance(cell, bool)}
        assert not row["mark"] or not numbers
    assert found.hidden == sum(bool(mark) for mark in marks.values()) > 1
    internal = compare_runs(run_of(small), run_of(after), SETTINGS)
    assert (len(internal.changed), internal.hidden) == (len(small), 0)


def test_one_new_patient_cannot_be_told_from_the_difference_of_two_shown_rates() -> None:
    """The rate over all items of the second run, less that over the paired ones, would be the outcome of the one patient who is new."""
    items = items_of(21)
    before, after = scores_of(items[:40], [False] * 40), scores_of(items, [True] * 42, "1")
    found = compare_runs(run_of(before), run_of(after), SETTINGS, audience=Audience(True, 10, frozenset([DEPTH])))
    assert whole(found)["mark"] == "(hidden)"
    assert answer(found) == "Nothing can be compared: no number may be shown."


def drawn(rng: np.random.Generator, items: Sequence[Item], gain: float) -> tuple[Sides, Sides]:
    """Draw two runs: every patient has a chance of their own, and in the second run that much more."""
    chance = np.repeat(0.8 * rng.beta(1.2, 1.2, len(items) // 2), 2)
    a, b = rng.random(len(items)) < chance, rng.random(len(items)) < chance + gain
    return run_of(scores_of(items, a.tolist())), run_of(scores_of(items, b.tolist(), "1"))


@pytest.mark.parametrize("studies", [75, pytest.param(300, marks=pytest.mark.long)])
@pytest.mark.parametrize("gain", [0.0, PLANTED])
def test_the_interval_holds_a_known_difference_as_often_as_it_says(gain: float, studies: int) -> None:
    items, rng = items_of(PATIENTS), np.random.default_rng(SEED)
    held, found = [], []
    for _ in range(studies):
        a, b = (run[DEPTH, "alpha"] for run in drawn(rng, items, gain))
        row = dict(paired_items(a, b))[HEADLINE].pass_change(SETTINGS)[2]
        held.append(row.low <= gain <= row.high)
        found.append(row.p_value < 0.05)
    least, most = stats.binom.ppf([0.005, 0.995], studies, 0.95)
    assert least <= sum(held) <= most
    if gain:
        assert sum(found) > 0.6 * studies
    else:
        assert stats.binom.ppf(0.995, studies, 0.05) >= sum(found)


def test_a_planted_difference_of_fifteen_points_is_found() -> None:
    items = items_of(PATIENTS)
    a, b = drawn(np.random.default_rng(SEED), items, PLANTED)
    found = compare_runs(a, b, SETTINGS)
    row = whole(found)
    assert row["low"] < PLANTED < row["high"]
    assert row["changed"]
    assert answer(found).startswith("Yes, in the only test: pass@1 of alpha on demo changed by +")
    assert "120 items of 60 patients in both" in answer(found)


def test_the_same_answers_are_one_share() -> None:
    """Of three answers to each item one stays the same, word for word: one of three, not no item."""
    items = items_of(6)

    def answers(words: str) -> list[Score]:
        texts = ("0", words, words)
        return [
            score(one, "alpha", passed=True, repeat=repeat, text_sha256=text * 64, differential=("glioma",))
            for one in items
            for repeat, text in enumerate(texts)
        ]

    row = whole(compare_runs(run_of(answers("1")), run_of(answers("2"))))
    assert row["same_answers"] == pytest.approx(1 / 3)


def test_equal_answers_of_which_one_run_has_more_are_not_every_answer() -> None:
    items = items_of(12)
    two = [row for repeat in range(2) for row in scores_of(items, [True] * len(items), repeat=repeat)]
    found = compare_runs(run_of(scores_of(items, [True] * len(items))), run_of(two), SETTINGS)
    assert whole(found)["same_answers"] == 1
    assert not answer(found).startswith("Nothing changed")


def repeated(items: Sequence[Item], passed: Sequence[str], leader: str = "glioma") -> list[Score]:
    """Return one answer for each letter: `p` passes."""
    return [
        score(one, "alpha", passed=letter == "p", repeat=repeat, differential=(leader,), text_sha256=f"{letter}{leader}")
        for one, letters in zip(items, passed, strict=True)
        for repeat, letter in enumerate(letters)
    ]


def test_answers_that_change_beyond_the_noise_of_repeats_are_a_change_without_a_difference_of_pass1() -> None:
    items = items_of(12)
    before = run_of(repeated(items, ["ppppp", "fffff"] * 12))
    mirrored = run_of(repeated(items, ["fffff", "ppppp"] * 12))
    found = compare_runs(before, mirrored)
    row = whole(found)
    assert (row["difference"], row["p_holm"], row["changed"]) == (0, 1, True)
    assert row["p_passes"] < 0.01
    assert row["p_leaders"] == 1
    assert answer(found).startswith(
        "Yes, after Holm’s correction for 3 tests: answers of alpha on demo differ more than repeats do (pass@1 0 points)."
    )
    renamed = compare_runs(before, run_of(repeated(items, ["ppppp", "fffff"] * 12, "stroke")))
    row = whole(renamed)
    assert (row["difference"], row["p_passes"], row["changed"]) == (0, 1, True)
    assert row["p_leaders"] < 0.01


def test_all_tests_of_a_comparison_pay_for_each_other() -> None:
    items = items_of(12)
    before = run_of(repeated(items, ["ppppf", "pffff"] * 12))
    after = run_of(repeated(items, ["ppppf", "pffff"] * 11 + ["fffff", "ppppp"]))
    row = whole(compare_runs(before, after))
    tests = [row[name] for name in ("p_value", "p_passes", "p_leaders")]
    assert None not in tests
    assert row["changed"] == (min(tests) * 3 < 0.05)


def test_the_three_tests_together_seldom_call_noise_a_change() -> None:
    items, calls = items_of(3), 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a, b = (run_of(repeated(items, ["".join("pf"[int(draw >= 0.6)] for draw in rng.random(4)) for _ in items])) for _ in range(2))
        calls += bool(whole(compare_runs(a, b, IntervalSettings(resamples=400)))["changed"])
    assert calls <= 8  # 3 are expected at most, and 9 or more have a chance below 1 %


def test_an_item_without_a_reference_is_compared_by_its_leading_diagnosis_alone() -> None:
    items = items_of(12)
    before, after = (
        [replace(row, passed=None, scored=False) for row in repeated(items, ["ff"] * 24, leader)] for leader in ("glioma", "stroke")
    )
    found = compare_runs(run_of(before), run_of(after))
    row = whole(found)
    assert (row["n_items"], row["p_value"], row["p_passes"], row["changed"]) == (0, None, None, True)
    assert answer(found) == "Yes, in the only test: answers of alpha on demo differ more than repeats do."
    assert answer(compare_runs(run_of(before), run_of(before))).startswith("No change was shown in the only test.")


def test_a_run_that_lacks_answers_is_compared_on_the_items_of_both() -> None:
    items = items_of(12)
    passed: list[bool | None] = [True] * 6 + [False] * 6 + [None] * 12
    row = whole(compare_runs(run_of(scores_of(items, passed)), run_of(scores_of(items, [True] * 24))))
    assert (row["a"], row["b"], row["n_items"], row["unanswered"]) == (0.5, 1, 12, 12)
