"""Contrasts corrected together keep one error for all of them, and cost a stated one nothing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fixtures.families import Cell, broken, grid, measure
from neuralmedbench.estimates.contrasts import Parts, flip_test
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings
from neuralmedbench.estimates.step_down import FEWEST_DIFFERING, corrected_together

SETTINGS = IntervalSettings(resamples=999)


def by_hand(groups: list[np.ndarray]) -> list[list[float]]:
    """Correct the p values by every joint pattern of both groups."""
    columns = [(group, column) for group, parts in enumerate(groups) for column in range(parts.shape[1])]

    def statistics(flips: list[np.ndarray]) -> dict[tuple[int, int], float]:
        scaled = [np.abs(sign @ parts) / np.sqrt((parts**2).sum(axis=0)) for sign, parts in zip(flips, groups, strict=True)]
        return {(group, column): scaled[group][column] for group, column in columns}

    observed = statistics([np.ones(len(parts)) for parts in groups])
    patterns = [[np.array(sign) for sign in product((1, -1), repeat=len(parts))] for parts in groups]
    flipped = [statistics(list(flips)) for flips in product(*patterns)]
    order = sorted(columns, key=lambda place: -observed[place])
    corrected, running = {}, 0.0
    for number, place in enumerate(order):
        rest = order[number:]
        hits = np.mean([max(one[other] for other in rest) >= observed[place] - 1e-9 for one in flipped])
        running = max(running, float(hits))
        corrected[place] = running
    return [[corrected[group, column] for column in range(parts.shape[1])] for group, parts in enumerate(groups)]


def test_the_corrected_p_values_are_those_of_all_joint_patterns() -> None:
    rng = np.random.default_rng(3)
    groups = [rng.normal(0.4, 1, (7, 3)), rng.normal(0.6, 1, (6, 2))]
    corrected = corrected_together(groups, SETTINGS)
    for p_values, expected in zip(corrected, by_hand(groups), strict=True):
        assert p_values == pytest.approx(expected)


def test_a_single_contrast_has_the_p_value_of_its_own_test() -> None:
    rng = np.random.default_rng(4)
    for clusters in (8, 12, 40):
        parts = rng.normal(0.5, 1, clusters)
        by = ByPatient(np.arange(clusters), SETTINGS)
        alone = flip_test(Parts(parts, np.full(clusters, 1 / clusters)), by).p_value()
        assert corrected_together([parts[:, None]], SETTINGS)[0][0] == pytest.approx(alone)


def test_too_few_patients_that_differ_are_not_tested_and_cost_the_others_nothing() -> None:
    clear = np.ones(10)
    few = np.where(np.arange(10) < FEWEST_DIFFERING - 1, 1.0, 0.0)
    alone = corrected_together([clear[:, None]], SETTINGS)[0][0]
    together = corrected_together([np.stack([clear, few], axis=1)], SETTINGS)[0]
    assert together[0] == alone
    assert np.isnan(together[1])


def test_nothing_else_is_tested_where_the_stated_contrast_is_missed() -> None:
    parts = np.ones((10, 1))
    assert np.isnan(corrected_together([parts], SETTINGS, primary=0.06)[0]).all()
    assert corrected_together([parts], SETTINGS, primary=0.04)[0][0] < 0.01


@pytest.mark.parametrize("cell", [cell for cell in grid() if cell.patients == 12 and cell.sizes == "even"], ids=str)
def test_a_slice_of_the_series_breaks_no_rule(cell: Cell) -> None:
    assert broken(cell, measure(cell, 20, 1)) == []


def test_a_stated_difference_is_found_and_few_patients_are_enough_for_a_large_one() -> None:
    stated = Cell("first above second", "even", 30, 9, True)
    assert measure(stated, 30, 1)["first"] >= 0.9
    few = Cell("one far above", "even", 8, 9, False)
    assert measure(few, 30, 1)["first"] > 0.3


def test_the_rules_of_the_series_notice_what_breaks_them() -> None:
    measured = {"false": 0.2, "first": 0.5, "claims": 1.0, "studies": 200}
    assert broken(Cell("first above second", "even", 30, 9, True), measured) == ["error", "stated 20 points"]
    assert broken(Cell("one far above", "even", 8, 5, False), measured | {"false": 0.0, "first": 0.0}) == ["8 patients"]
