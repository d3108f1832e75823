"""The noise floor: against brute force, and its error rates over many seeds."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.estimates.repeats import compare_answers

FAST = IntervalSettings(resamples=199)


def test_a_small_example_can_be_worked_out_by_hand() -> None:
    # old: A A B, of whose 3 pairs 2 disagree; new: A A A, none; of the 9 pairs of old and new 3 disagree
    found = compare_answers([["A", "A", "B"]], [["A", "A", "A"]], FAST)
    assert (found.disagreement, found.floor) == (pytest.approx(1 / 3), pytest.approx((2 / 3 + 0) / 2))
    assert (found.excess, found.repeated) == (pytest.approx(0), 1)
    # a second item on which all disagree counts as much as the first
    found = compare_answers([["A", "A", "B"], ["A", "A"]], [["A", "A", "A"], ["B", "B"]], FAST)
    assert (found.disagreement, found.floor) == (pytest.approx((1 / 3 + 1) / 2), pytest.approx(1 / 6))


def test_the_disagreements_are_those_of_all_pairs_of_answers() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        old, new = ([str(name) for name in rng.integers(0, 3, rng.integers(2, 6))] for _ in range(2))
        found = compare_answers([old], [new], FAST)
        assert found.disagreement == pytest.approx(np.mean([first != second for first in old for second in new]))
        repeats = [np.mean([first != second for first, second in combinations(side, 2)]) for side in (old, new)]
        assert found.floor == pytest.approx(np.mean(repeats))


@pytest.mark.parametrize(("p", "q"), [((0.5, 0.5, 0), (0.5, 0.5, 0)), ((0.7, 0.2, 0.1), (0.1, 0.3, 0.6)), ((1, 0, 0), (0, 0, 1))])
def test_the_excess_is_on_average_half_the_squared_distance_of_the_two_distributions(p: tuple[float, ...], q: tuple[float, ...]) -> None:
    none = IntervalSettings(resamples=1)
    expected = 0.0
    for old in product("ABC", repeat=2):
        for new in product("ABC", repeat=3):
            chance = np.prod([p["ABC".index(name)] for name in old]) * np.prod([q["ABC".index(name)] for name in new])
            found = compare_answers([list(old)], [list(new)], none)
            assert found.excess is not None
            expected += chance * found.excess
    assert expected == pytest.approx(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) / 2)


def test_the_p_value_is_the_share_of_all_shuffles_within_items() -> None:
    old, new = [["A", "A", "B"], ["A", "B"]], [["B", "B"], ["B", "B", "C"]]

    def excess(first: list[list[str]], second: list[list[str]]) -> float:
        found = compare_answers(first, second, IntervalSettings(resamples=1)).excess
        assert found is not None
        return found

    shuffles = []
    for one, other in product(combinations(range(5), 3), combinations(range(5), 2)):
        sides: tuple[list[list[str]], list[list[str]]] = ([], [])
        for pooled, chosen in zip(([*old[0], *new[0]], [*old[1], *new[1]]), (one, other), strict=True):
            sides[0].append([pooled[place] for place in chosen])
            sides[1].append([pooled[place] for place in range(5) if place not in chosen])
        shuffles.append(excess(*sides))
    exact = np.mean(np.array(shuffles) >= excess(old, new) - 1e-9)
    assert 0.05 < exact < 0.95
    # 20,000 draws: the standard error is below 0.0036
    assert compare_answers(old, new, IntervalSettings(resamples=20_000)).p_value == pytest.approx(exact, abs=0.015)


def drawn(rng: np.random.Generator, chances: np.ndarray, samples: int) -> list[list[str]]:
    return [[str(name) for name in rng.choice(len(row), samples, p=row)] for row in chances]


def test_without_a_change_every_p_value_is_as_likely_as_any_other() -> None:
    p_values = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        chances = rng.dirichlet([1, 1, 1], 12)
        p_values.append(compare_answers(drawn(rng, chances, 5), drawn(rng, chances, 5), FAST).p_value)
    below = {level: np.mean([value is not None and value <= level for value in p_values]) for level in (0.05, 0.25, 0.5, 0.75)}
    # three standard errors of a share over 300 runs
    for level, share in below.items():
        assert abs(share - level) < 3 * np.sqrt(level * (1 - level) / 300), below


def test_a_change_of_some_items_is_found_in_all_the_noise() -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        before = np.tile([0.6, 0.3, 0.1], (20, 1))
        after = before.copy()
        after[:8] = [0.1, 0.3, 0.6]
        change = compare_answers(drawn(rng, before, 5), drawn(rng, after, 5), FAST)
        found += change.p_value is not None and change.p_value < 0.05
    assert found >= 32


def test_the_same_samples_under_the_same_seeds_are_no_change() -> None:
    answers = [["A", "B", "C"], ["A", "A", "B"]]
    found = compare_answers(answers, answers, FAST)
    assert found.p_value == 1
    assert found.excess is not None
    assert found.excess < 0


def test_one_answer_a_revision_has_no_floor_and_no_test() -> None:
    found = compare_answers([["A"], ["A"], ["B"]], [["A"], ["B"], ["A"]], FAST)
    assert found.disagreement == pytest.approx(2 / 3)
    assert (found.floor, found.excess, found.p_value, found.repeated) == (None, None, None, 0)


def test_items_without_repeats_do_not_count_beside_items_with_them() -> None:
    found = compare_answers([["A"], ["A", "A"]], [["B", "B"], ["A", "A"]], FAST)
    assert (found.disagreement, found.floor, found.repeated) == (0, 0, 1)


def test_answers_that_never_vary_have_a_floor_of_zero_and_a_change_is_seen_at_once() -> None:
    steady = compare_answers([["A"] * 5] * 10, [["A"] * 5] * 10, FAST)
    assert (steady.floor, steady.excess, steady.p_value) == (0, 0, 1)
    moved = compare_answers([["A"] * 5] * 10, [["A"] * 5] * 7 + [["B"] * 5] * 3, FAST)
    assert (moved.floor, moved.excess) == (0, pytest.approx(0.3))
    assert moved.p_value == 1 / 200


def test_no_item_in_common_says_nothing() -> None:
    assert compare_answers([], [], FAST) == (None, None, None, None, 0)
