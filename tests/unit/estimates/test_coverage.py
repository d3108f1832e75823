"""Coverage of the intervals, also with eight patients."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.coverage import QUANTITIES, coverage, truth
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings

STUDIES, SETTINGS = 200, IntervalSettings(resamples=400)
FRAGILE = [
    ("pass@1, one sample", "hard"),
    ("pass@5", "easy"),
    ("difference of two models", "large"),
    ("difference of two models", "few items differ"),
    ("perception share", "nearly all"),
    ("gap of breadth and depth", "large"),
    ("the same beyond other models", "large"),
]
"""Quantities for which a plain percentile bootstrap of eight patients covers the truth in 60 to 90 % of the studies."""


@pytest.mark.parametrize("kind", FRAGILE, ids=str)
def test_intervals_of_eight_patients_hold_the_truth_in_nine_of_ten_studies_at_least(kind: tuple[str, str]) -> None:
    held, _, number = coverage(kind, 8, STUDIES, SETTINGS)
    assert number > 0.9 * STUDIES
    assert held >= 0.90


@pytest.mark.parametrize("kind", [("pass@1, five samples", "hard"), ("pass@1, five samples", "easy")], ids=str)
def test_rates_of_few_events_hold_the_truth_where_patients_are_not_few(kind: tuple[str, str]) -> None:
    held, width, _ = coverage(kind, 30, STUDIES, SETTINGS)
    assert held >= 0.92
    assert width < 0.25


def test_errors_that_nothing_repairs_are_seldom_shown_as_repaired() -> None:
    """All studies count, also the half that comes out worse with the findings told."""
    held, _, number = coverage(("perception share", "none repaired"), 8, STUDIES, SETTINGS)
    assert number > 0.9 * STUDIES
    assert held >= 0.90


def test_a_plain_percentile_interval_of_eight_patients_would_not_hold_it() -> None:
    kind, held = ("perception share", "nearly all"), 0
    quantity = QUANTITIES[kind]
    for seed in range(1, STUDIES + 1):
        study = quantity.draw(np.random.default_rng(seed), 8)
        drawn = ByPatient(study.patients, SETTINGS).resampled_means(1 - np.stack(study.shares, axis=1))
        low, high = np.nanquantile(1 - drawn[:, 1] / drawn[:, 0], [0.025, 0.975])
        held += low <= truth(kind) <= high
    assert held / STUDIES < 0.85
