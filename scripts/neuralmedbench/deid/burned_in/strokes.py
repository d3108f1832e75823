"""Text in a single plane, which has no neighbours to compare it with: letters of one colour on an even ground."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.constancy import closing, opening
from neuralmedbench.deid.burned_in.lines import TextLine, find_lines

Plane = npt.NDArray[Any]
THRESHOLDS = (0.45, 0.12)
"""Contrast of the strokes, as parts of the range: first the strong ones, then all."""
MIN_GLYPHS, MIN_STROKES = 4, 5.0
SURE_EVENNESS, SURE_COLOUR = 0.3, 0.3
"""Largest spread of the ground, and of the letters' colour, as parts of their contrast. Anatomy that looks like a line of text starts
at 0.44 (1628 planes of phantoms and real scans)."""
AIR = 0.06
"""What lies this little above the dark end is air, as a part of the range."""
STEM_PX, MIN_EXCESS_PX = 6, 25
TOUCHING_EVENNESS = 0.1
"""Where letters touch so much that less than three can be told apart."""


@dataclass(frozen=True)
class Suspicion:
    """A line that looks like text.

    Attributes
    ----------
    line : Line
        Where it is.
    sure : bool
        Its letters have one colour and its ground is even, as no anatomy has.
    """

    line: TextLine
    sure: bool


def suspicious_lines(plane: Plane, span: float) -> list[Suspicion]:
    """Find lines that look like text.

    `plane`: shape (rows, columns). Returns: Ordered by threshold and box; lines may be named twice.
    """
    values = plane.astype(np.float32)
    side = max(7, 2 * (max(plane.shape) // 90) + 1)
    bright = values - opening(values, side)
    dark = closing(values, side) - values
    found = []
    for contrast in (bright, dark):
        for threshold in THRESHOLDS:
            marks = contrast > threshold * span
            lines = find_lines(marks, min_glyphs=MIN_GLYPHS, min_strokes=MIN_STROKES)
            found += [Suspicion(line, _is_sure(values, marks, line)) for line in lines]
    return found


def suspicious_planes(planes: Plane, span: float, count: int) -> list[int]:
    """Pick the planes with more thin bright marks on dark ground than a plane beside them: text in one slice, or where it begins.

    `planes`: shape (slices, rows, columns). `span`: see `suspicious_lines`.
    """
    air = float(np.percentile(planes.reshape(-1)[:: max(1, planes.size // 100_000)], 10)) + AIR * span
    marks = np.array([_thin_marks(plane, air, THRESHOLDS[1] * span) for plane in planes])
    excess = np.zeros(len(planes))
    excess[1:] = np.diff(marks)
    excess[:-1] = np.maximum(excess[:-1], -np.diff(marks))
    oddest = np.argsort(-excess, kind="stable")[:count]
    return sorted(int(index) for index in oddest if excess[index] >= MIN_EXCESS_PX)


def _thin_marks(plane: Plane, air: float, contrast: float) -> int:
    """Count pixels that are bright between two dark ones on the same row, a few pixels apart."""
    if plane.shape[1] <= 2 * STEM_PX:
        return 0
    below: npt.NDArray[np.bool_] = np.less_equal(plane, air)
    pairs = below[:, :-1] | below[:, 1:]
    last = pairs.shape[1] - STEM_PX + 2  # a window of `STEM_PX` pixels is as many pairs less one
    dark = np.logical_or.reduce([pairs[:, first : first + last] for first in range(0, STEM_PX - 1, 2)])
    return int((dark[:, : -STEM_PX - 1] & dark[:, STEM_PX + 1 :] & np.greater(plane[:, STEM_PX:-STEM_PX], air + contrast)).sum())


def _is_sure(values: npt.NDArray[np.float32], marks: npt.NDArray[np.bool_], line: TextLine) -> bool:
    from scipy import ndimage

    top, bottom, left, right = line.box
    area = (slice(max(top - 1, 0), bottom + 1), slice(max(left - 1, 0), right + 1))
    letters = marks[area]
    ground = values[area][~ndimage.binary_dilation(letters, structure=np.ones((3, 3)))]
    labels, count = ndimage.label(letters, structure=np.ones((3, 3)))
    if ground.size < 20 or not count:
        return False
    sizes = np.bincount(labels.ravel())[1:]
    level = float(np.median(ground))
    bright = float(np.median(values[area][letters])) > level
    extremes = (ndimage.maximum if bright else ndimage.minimum)(values[area], labels, np.arange(1, count + 1)[sizes >= 5])
    if len(extremes) < MIN_GLYPHS - 1:
        return False
    contrast = abs(float(np.median(extremes)) - level)
    low, high = np.percentile(ground, (5, 95))
    first, last = np.percentile(extremes, (15, 85))
    evenness = SURE_EVENNESS if line.glyphs >= MIN_GLYPHS - 1 else TOUCHING_EVENNESS
    return bool(high - low <= evenness * contrast and last - first <= SURE_COLOUR * contrast)
