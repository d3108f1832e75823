"""Statistics of items and a slice of their simulation."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.item_analysis import TUNING_SEED, BenchmarkCell, benchmark_grid, broken_benchmark, measure_benchmark
from neuralmedbench.estimates.over_models import FEWEST_MODELS, guessing_p, item_discriminations


def test_discrimination_of_an_item_by_hand_leaves_out_items_of_its_patient() -> None:
    ability = np.arange(8) / 8
    shares = np.column_stack([ability, 1 - ability, ability, np.full(8, 0.5), ability])
    rising, falling, *_, flat, last = item_discriminations(shares, np.array([0, 1, 2, 3, 4]), 0.95)
    assert rising.value == pytest.approx(1, abs=1e-6)
    assert falling.value == pytest.approx(-1, abs=1e-6)
    assert falling.p_reversed is not None
    assert falling.p_reversed < 1e-6
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


def test_the_grid_has_every_kind() -> None:
    assert len(list(benchmark_grid())) == 15


def test_a_slice_of_the_benchmarks_keeps_what_is_promised() -> None:
    cell = BenchmarkCell(12, 0.25, 5)
    found = measure_benchmark(cell, 10, TUNING_SEED)
    assert broken_benchmark(cell, found, 10) == []
    assert found["share_rank"] > 0.8
