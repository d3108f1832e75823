"""Statistics of items and a slice of their simulation."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.item_analysis import (
    TUNING_SEED,
    BenchmarkCell,
    WrongKeyCell,
    benchmark_grid,
    broken_benchmark,
    broken_keys,
    measure_benchmark,
    measure_keys,
    wrong_key_grid,
)
from neuralmedbench.estimates.over_models import FEWEST_MODELS, Discrimination, guessing_p, is_shared, item_discriminations


def test_discrimination_of_an_item_by_hand_leaves_out_items_of_its_patient() -> None:
    ability = np.arange(8) / 8
    shares = np.column_stack([ability, 1 - ability, ability, np.full(8, 0.5), ability])
    rising, falling, *_, flat, last = item_discriminations(shares, np.array([0, 1, 2, 3, 4]), 0.95)
    assert rising.value == pytest.approx(1, abs=1e-6)
    assert falling.value == pytest.approx(-1, abs=1e-6)
    assert [one.is_reversed for one in (rising, falling, flat)] == [False, True, False]
    assert flat.value is None
    assert last.value == pytest.approx(1, abs=1e-6)
    # the last item has but one other patient, whose item falls
    (*_, alone) = item_discriminations(shares[:, [0, 1, 2]], np.array([0, 1, 0]), 0.95)
    assert alone.value == pytest.approx(-1, abs=1e-6)


def test_fewer_than_eight_models_have_no_discrimination() -> None:
    shares = np.random.default_rng(1).random((FEWEST_MODELS, 6))
    shares[0, 2] = np.nan
    found = item_discriminations(shares, np.arange(6), 0.95)
    assert [one.value is None for one in found] == [False, False, True, False, False, False]
    assert all(one.value is None for one in item_discriminations(shares[1:], np.arange(6), 0.95))


@pytest.mark.parametrize(
    ("solving", "models", "chance", "samples", "p"), [(3, 3, 0.25, 1, 1 / 64), (1, 2, 0.5, 5, 0.75), (0, 4, 0.2, 5, 1.0)]
)
def test_the_chance_that_guessing_models_solve_an_item(solving: int, models: int, chance: float, samples: int, p: float) -> None:
    assert guessing_p(solving, models, chance, samples) == pytest.approx(p)


def test_a_habit_that_models_may_share_explains_everything() -> None:
    assert guessing_p(8, 8, 1.0) == 1.0


def test_an_item_is_reversed_where_its_interval_lies_below_zero() -> None:
    assert Discrimination(-0.8, -0.96, -0.2).is_reversed
    assert not Discrimination(-0.6, -0.92, 0.1).is_reversed


def test_a_wrong_answer_is_shared_by_two_thirds_of_at_least_eight_models() -> None:
    assert [is_shared(number, 12) for number in (7, 8)] == [False, True]
    assert [is_shared(number, 8) for number in (5, 6)] == [False, True]
    assert not is_shared(7, 7)


def test_the_grid_has_every_kind() -> None:
    assert (len(list(benchmark_grid())), len(list(wrong_key_grid()))) == (15, 48)


def test_a_slice_of_the_benchmarks_keeps_what_is_promised() -> None:
    measured = measure_benchmark(BenchmarkCell(12, 0.25, 5), 10, TUNING_SEED)
    assert broken_benchmark(measured, 10) == []
    assert measured["share_rank"] > 0.8


@pytest.mark.parametrize("models", [8, 12, 30])
@pytest.mark.parametrize(("form", "samples"), [("four options", 1), ("four options", 5), ("open", 5)])
def test_a_slice_of_the_benchmarks_with_wrong_keys_keeps_what_is_promised(models: int, form: str, samples: int) -> None:
    """At least 30 % of wrong keys are flagged at 2.5 % of sound items."""
    cell = WrongKeyCell(models, form, samples, "middle", "differ")
    measured = measure_keys(cell, 30, TUNING_SEED)
    assert broken_keys(cell, measured) == []
    assert measured["false"] < 0.025
    assert measured["caught"] > 0.3
