"""Properties of the estimates for arbitrary scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralmedbench.estimates.contrasts import paired_difference
from neuralmedbench.estimates.exact import holm
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, rate_interval
from neuralmedbench.estimates.repeats import pass_at_k

FAST = IntervalSettings(resamples=200)
VALUES = st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 1.0, float("nan")]), st.integers(0, 40)), min_size=1, max_size=80)


@given(VALUES)
@settings(max_examples=60)
def test_an_interval_holds_its_value_and_stays_between_0_and_1(rows: list[tuple[float, int]]) -> None:
    values, patients = np.array([value for value, _ in rows]), np.array([patient for _, patient in rows])
    found = rate_interval(values, ByPatient(patients, FAST))
    if found.value is not None and found.low is not None and found.high is not None:
        assert -1e-9 <= found.low <= found.value + 1e-9
        assert found.value - 1e-9 <= found.high <= 1 + 1e-9


@given(VALUES)
@settings(max_examples=40)
def test_swapping_two_models_turns_the_sign_and_keeps_the_p_value(rows: list[tuple[float, int]]) -> None:
    first, patients = np.array([value for value, _ in rows]), np.array([patient for _, patient in rows])
    second = np.roll(first, 1)
    there, back = paired_difference(first, second, ByPatient(patients, FAST)), paired_difference(second, first, ByPatient(patients, FAST))
    assert there.p_value == back.p_value
    if there.value is not None and back.value is not None:
        assert abs(there.value + back.value) < 1e-12


@given(st.lists(st.floats(0, 1), max_size=12))
def test_corrected_p_values_are_larger_and_keep_the_order(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(after >= before for before, after in zip(p_values, corrected, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert all(np.diff(np.array(corrected)[order]) >= 0)


@given(st.integers(1, 20), st.data())
def test_pass_at_k_grows_with_k_and_with_the_passes(samples: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, samples))
    curve = pass_at_k(np.full(samples + 1, samples), np.arange(samples + 1), k)
    assert (np.diff(curve) >= -1e-12).all()
    assert (curve >= pass_at_k(np.full(samples + 1, samples), np.arange(samples + 1), 1) - 1e-12).all()
