"""Text that keeps its place and brightness over the slices, though not to the bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.lines import find_lines
from neuralmedbench.deid.burned_in.overlays import MIN_CONTRAST, MIN_PLANES, SURROUNDINGS_PX, Mark, Mask, Planes
from neuralmedbench.deid.burned_in.surroundings import closing, opening

STEADY, MIN_LETTER_PX, MAX_LETTER_PART = 0.15, 8, 0.01
"""A single letter is steadier than a line has to be, and small."""


def _is_small(values: npt.NDArray[np.float32], own: Mask, contrast: npt.NDArray[np.float32]) -> bool:
    """Whether a dark mark ends where it seems to: the tip of a large dark area is no letter (bright ones: with the sign turned)."""
    from scipy import ndimage

    labels, _ = ndimage.label(values < values[own].max() + 0.3 * float(contrast[own].min()))
    touched = np.unique(labels[own])
    area = np.isin(labels, touched[touched > 0])
    at_frame = area[0].any() or area[-1].any() or area[:, 0].any() or area[:, -1].any()
    return not at_frame and bool(area.mean() <= MAX_LETTER_PART)


def nearly_same(planes: Planes, span: float, skip: Mask | None = None) -> list[Mark]:
    """Find lines of text that keep their place and brightness over the slices, though not to the bit: lossy compression, resampling.

    Parameters
    ----------
    planes, span, skip
        As in `same_in_every_slice`.
    """
    from scipy import ndimage

    if len(planes) < 2 * MIN_PLANES:
        return []
    some = planes[np.unique(np.linspace(0, len(planes) - 1, 24).round().astype(int))]
    low, high = some.min(axis=0).astype(np.float32), some.max(axis=0).astype(np.float32)
    marks = []
    # letters stand out in every slice from the brightest (darkest) that their surroundings ever are
    bright, dark = low - opening(high, SURROUNDINGS_PX), closing(low, SURROUNDINGS_PX) - high
    for contrast, values in ((bright, -low), (dark, high)):
        steady = (contrast > 2 * MIN_CONTRAST * span) & (high - low < 0.5 * contrast)
        if skip is not None:
            steady &= ~skip.any(axis=0)
        marks += [Mark.of(line, range(len(planes))) for line in find_lines(steady, min_glyphs=4, min_strokes=4.0)]
        labels, _ = ndimage.label(steady & (high - low < STEADY * contrast), structure=np.ones((3, 3)))
        sizes = np.bincount(labels.ravel())
        for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
            if MIN_LETTER_PX <= sizes[number] <= MAX_LETTER_PART * low.size and _is_small(values, labels == number, contrast):
                box = (rows.start, rows.stop, columns.start, columns.stop)
                marks.append(Mark(box, tuple(range(len(planes))), float(rows.stop - rows.start), single=True))
    return marks
