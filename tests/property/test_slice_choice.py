from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from neuralmedbench.imaging.choose import uniform_slices
from neuralmedbench.imaging.pictures import square, to_grey


@given(brain=arrays(np.bool_, st.tuples(st.integers(1, 30), st.just(3), st.just(3))), wanted=st.integers(1, 30))
def test_uniform_slices_are_ascending_different_and_show_enough_brain(brain: np.ndarray, wanted: int) -> None:
    area = brain.sum(axis=(1, 2))
    usable = np.flatnonzero(area >= 0.25 * area.max()) if area.any() else np.array([])
    if len(usable) < wanted:
        return
    picks = uniform_slices(brain, wanted)
    assert len(picks) == wanted == len(set(picks))
    assert picks == sorted(picks)
    assert set(picks) <= set(usable.tolist())
    if wanted > 1:
        assert (picks[0], picks[-1]) == (usable[0], usable[-1])


@settings(max_examples=60)
@given(
    shape=st.tuples(st.integers(2, 40), st.integers(2, 40)),
    spacing=st.tuples(st.floats(0.4, 6.0), st.floats(0.4, 6.0)),
    centre=st.tuples(st.floats(-20, 60), st.floats(-20, 60)),
    side_mm=st.floats(20, 120),
)
def test_a_picture_is_a_square_of_the_wanted_size_and_invents_no_grey(
    shape: tuple[int, int], spacing: tuple[float, float], centre: tuple[float, float], side_mm: float
) -> None:
    cut = np.random.default_rng(1).uniform(10, 20, shape).astype(np.float32)
    picture, mm_per_px = square(cut, centre, spacing, side_mm=side_mm, fill=5.0)
    assert picture.shape[0] == picture.shape[1]
    assert mm_per_px == min(spacing)
    assert abs(picture.shape[0] * mm_per_px - side_mm) <= max(mm_per_px, 8 * mm_per_px - side_mm)
    inside = picture[picture != 5.0]
    assert ((inside >= cut.min() - 1e-3) & (inside <= cut.max() + 1e-3)).all()


@given(values=arrays(np.float32, 20, elements=st.floats(-1e4, 1e4, width=32)), low=st.floats(-100, 100), width=st.floats(1, 1000))
def test_grey_never_turns_the_order_of_intensities_around(values: np.ndarray, low: float, width: float) -> None:
    grey = to_grey(np.sort(values)[None], (low, low + width))[0]
    assert (np.diff(grey.astype(int)) >= 0).all()
