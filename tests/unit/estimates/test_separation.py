"""Area under the ROC curve by ranks: the share of pairs of answers in the right order."""

from __future__ import annotations

import numpy as np
import pytest

from neuralmedbench.estimates.concordance import both_drawn, separation, wins
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, codes_of, resampling_weights


def answers(seed: int, size: int, clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    patients = codes_of([str(number) for number in rng.integers(0, clusters, size)])
    return rng.integers(-5, 6, size).astype(np.float64), rng.random(size) < 0.4, patients


def by_pairs(values: np.ndarray, same: np.ndarray, patients: np.ndarray) -> np.ndarray:
    """Count by looping over all pairs of answers."""
    found = np.zeros((int(patients.max()) + 1,) * 2)
    for one in np.flatnonzero(same):
        for other in np.flatnonzero(~same):
            found[patients[one], patients[other]] += (values[one] > values[other]) + 0.5 * (values[one] == values[other])
    return found


@pytest.mark.parametrize("seed", range(4))
def test_wins_by_rank_are_those_of_every_pair(seed: int) -> None:
    values, same, patients = answers(seed, 40, 9)
    assert np.array_equal(wins(values, same, patients, int(patients.max()) + 1), by_pairs(values, same, patients))


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_single_precision_is_used_only_where_it_is_exact(scale: float) -> None:
    between = by_pairs(*answers(5, 60, 8)) * scale
    weights = resampling_weights(len(between), 300, 3)
    assert np.array_equal(both_drawn(weights, between), [row @ between @ row for row in weights])


def test_the_area_is_the_share_of_pairs_in_order_and_lies_in_its_interval() -> None:
    values, same, patients = answers(7, 200, 40)
    area, low, high = separation(values + same, same, ByPatient(patients, IntervalSettings(resamples=500)))
    assert area is not None
    assert low is not None
    assert high is not None
    apart = (values + same)[same][:, None] - (values + same)[~same]
    assert area == pytest.approx(((apart > 0) + 0.5 * (apart == 0)).mean(), abs=1e-12)
    assert low < area < high


def test_answers_of_one_kind_have_no_area() -> None:
    values, same, patients = answers(0, 10, 3)
    assert separation(values, np.ones_like(same), ByPatient(patients, IntervalSettings(resamples=10))) == (None, None, None)
    assert separation(values, np.zeros_like(same), ByPatient(patients, IntervalSettings(resamples=10))) == (None, None, None)
