"""Detectors of text in a single plane: letters of about one grey on an even ground, and lines drawn in exactly one value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.constancy import MIN_CONTRAST, MIN_PLANES, Mark, Mask, Planes, closing, opening
from neuralmedbench.deid.burned_in.lines import GAP_TO_NEXT, MIN_GLYPH_PX, REACH, Box2D, TextLine, find_lines, is_thin

Plane = npt.NDArray[Any]
THRESHOLDS = (0.45, 0.12)
"""Contrast of the strokes as fractions of the grey range: first strong ones, then all."""
MIN_GLYPHS, MIN_STROKES = 4, 5.0
SURE_EVENNESS, SURE_COLOUR = 0.3, 0.3
"""Largest spread of the ground and of the letters' grey, as fractions of their contrast. Anatomy that looks like a line of text starts
at 0.44 (1628 planes of phantoms and real scans)."""
AIR = 0.06
"""Greys up to this part of the range above the dark end are air."""
STEM_PX, MIN_EXCESS_PX = 6, 25
TOUCHING_EVENNESS = 0.1
"""Stricter limit of the ground's spread if letters touch so much that fewer than three are separate."""
MIN_COLOUR_PX = 20
MAX_COLOUR_PART = 0.08
COLOUR_EXCESS = 5.0
MAX_COLOURS = 300
EVEN = 0.35
"""Largest spread of the ground between letters of one value, as a fraction of their contrast."""
FEW_COLOURS_EVEN = 0.1
"""The same for pictures of 8 bits clipped at white, which have so few values that anatomy has the same."""
MIN_TYPED, ON_BASE_LINE, TOUCHING_STROKES = 6, 0.7, 18.0
"""Minimum for a line of white letters on any ground in such a picture: letters, fraction of them on one base line, or strokes if letters touch.
Lines of a value between the darkest and the brightest are text in any case: none of 972 pictures without text has either. Not used for
series, whose slices can be compared."""


@dataclass(frozen=True)
class SuspiciousLine:
    """A line that looks like text.

    Attributes
    ----------
    line : TextLine
        Its position.
    sure : bool
        True if its letters have one grey and its ground is even, unlike any anatomy.
    """

    line: TextLine
    sure: bool


def suspicious_lines(plane: Plane, span: float) -> list[SuspiciousLine]:
    """Detect lines that look like text.

    `plane`: shape (rows, columns). `span`: see `grey_range`. Returns lines ordered by threshold and box; a line may occur twice.
    """
    values = plane.astype(np.float32)
    side = max(7, 2 * (max(plane.shape) // 90) + 1)
    # contrast of structures thinner than the square: white and black top-hat
    bright = values - opening(values, side)
    dark = closing(values, side) - values
    suspicious = []
    for contrast in (bright, dark):
        for threshold in THRESHOLDS:
            marks = contrast > threshold * span
            lines = find_lines(marks, min_glyphs=MIN_GLYPHS, min_strokes=MIN_STROKES)
            suspicious += [SuspiciousLine(line, _is_sure(values, marks, line)) for line in lines]
    return suspicious


def suspicious_planes(planes: Plane, span: float, count: int) -> list[int]:
    """Pick up to `count` planes with more thin bright marks on dark ground than a neighbour: text in one slice, or the first slice with text.

    `planes`: shape (slices, rows, columns). `span`: see `grey_range`.
    """
    air = float(np.percentile(planes.reshape(-1)[:: max(1, planes.size // 100_000)], 10)) + AIR * span
    marks = np.array([_thin_marks(plane, air, THRESHOLDS[1] * span) for plane in planes])
    # increase over the previous plane and decrease to the next one
    excess = np.zeros(len(planes))
    excess[1:] = np.diff(marks)
    excess[:-1] = np.maximum(excess[:-1], -np.diff(marks))
    largest = np.argsort(-excess, kind="stable")[:count]
    return sorted(int(index) for index in largest if excess[index] >= MIN_EXCESS_PX)


def _thin_marks(plane: Plane, air: float, contrast: float) -> int:
    """Count pixels that are bright between two dark ones in the same row, `STEM_PX` to either side at most."""
    if plane.shape[1] <= 2 * STEM_PX:
        return 0
    below: npt.NDArray[np.bool_] = np.less_equal(plane, air)
    pairs = below[:, :-1] | below[:, 1:]
    last = pairs.shape[1] - STEM_PX + 2  # a window of `STEM_PX` pixels holds one pair fewer
    dark = np.logical_or.reduce([pairs[:, first : first + last] for first in range(0, STEM_PX - 1, 2)])
    return int((dark[:, : -STEM_PX - 1] & dark[:, STEM_PX + 1 :] & np.greater(plane[:, STEM_PX:-STEM_PX], air + contrast)).sum())


def _is_sure(values: npt.NDArray[np.float32], marks: npt.NDArray[np.bool_], line: TextLine) -> bool:
    """Return True if the line's ground and the greys of its letters are even compared with their contrast."""
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
    # spread of the ground and of the letters, relative to their contrast
    contrast = abs(float(np.median(extremes)) - level)
    low, high = np.percentile(ground, (5, 95))
    first, last = np.percentile(extremes, (15, 85))
    evenness = SURE_EVENNESS if line.glyphs >= MIN_GLYPHS - 1 else TOUCHING_EVENNESS
    return bool(high - low <= evenness * contrast and last - first <= SURE_COLOUR * contrast)


def one_colour(planes: Planes, span: float, skip: Mask | None = None) -> list[Mark]:
    """Detect lines of text drawn in exactly one value, whether or not other slices show the same text.

    `planes`: shape (slices, rows, columns). `span`, `skip`: as in `same_in_every_slice`.

    A colour is a value several times as frequent in one plane as its neighbours in the histogram. Only values that occur in the series count
    as neighbours, so the gaps of a stretched histogram do not make its values colours.
    """
    marks = []
    # signed, so that differences do not overflow
    whole = planes.dtype.kind in "iub"
    signed = planes.astype(np.int64 if whole and planes.dtype.itemsize > 2 else np.int32 if whole else np.float32, copy=False)
    many = len(planes) > MIN_PLANES and planes.dtype.itemsize > 1
    limits = _Limits(3, EVEN) if many else _Limits(5, FEW_COLOURS_EVEN, any_ground=len(planes) <= MIN_PLANES)
    for index, value, tolerance in _colours(planes):
        core = np.abs(signed[index] - value) <= tolerance
        if skip is not None:
            core &= ~skip[index]
        marks += [Mark.of(line, [index]) for line in _lines_of(signed[index], float(value), core, span, limits)]
    return marks


def _colours(planes: Planes) -> Iterator[tuple[int, Any, float]]:
    """Yield index of the plane, value that stands out of its histogram, and width of a bin; the most prominent first."""
    from scipy import ndimage

    codes, values, tolerance = _codes(planes)
    counts = np.stack([np.bincount(plane.ravel(), minlength=len(values)) for plane in codes]).astype(np.float32)
    used = np.flatnonzero(counts.any(axis=0))
    counts = counts[:, used]
    # mean count of the four values on each side
    near = (ndimage.uniform_filter1d(counts, 9, axis=1, mode="constant") * 9 - counts) / 8
    excess = counts / np.maximum(near, 1.0)
    prominent = (counts >= MIN_COLOUR_PX) & (excess >= COLOUR_EXCESS) & (counts <= MAX_COLOUR_PART * planes[0].size)
    where = np.argwhere(prominent)
    order = np.argsort(-excess[prominent], kind="stable")[:MAX_COLOURS]
    for index, column in where[order]:
        code = used[column]
        yield int(index), values[code], tolerance


def _codes(planes: Planes) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[Any], float]:
    """Return integer codes of the voxels, the value of each code, and the tolerance of a value (0 for integer scans)."""
    low, high = planes.min(), planes.max()
    if planes.dtype.kind in "iub" and int(high) - int(low) < 65536:
        return planes.astype(np.int32) - int(low), np.arange(int(low), int(high) + 1), 0.0
    # floating-point or wide-range scans: bins instead of exact values
    steps = 4096
    scale = (float(high) - float(low)) / (steps - 1) or 1.0
    return ((planes.astype(np.float64) - float(low)) / scale).astype(np.int32), float(low) + np.arange(steps) * scale, scale


@dataclass(frozen=True)
class _Limits:
    """Minimum letters of a line, largest spread of its ground, and True if typed lines count on any ground."""

    least: int
    even: float
    any_ground: bool = False


def _lines_of(plane: Planes, value: float, core: Mask, span: float, limits: _Limits) -> list[TextLine]:
    """Detect lines drawn in one value, soft edges included: a pixel belongs to a letter if it is closer to the value than to the ground."""
    from scipy import ndimage

    labels, _ = ndimage.label(
        ndimage.binary_dilation(core, structure=np.ones((5, 11))) | ndimage.binary_dilation(core, structure=np.ones((11, 5)))
    )
    low, high = np.percentile(plane[::2, ::2], (1, 99.5))
    unusual = not low - MIN_CONTRAST * span < value < high + MIN_CONTRAST * span
    extreme = limits.any_ground and value in (plane.min(), plane.max())
    lines = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        drawn = core[rows, columns] & (labels[rows, columns] == number)
        if drawn.sum() < MIN_COLOUR_PX or min(drawn.shape) < MIN_GLYPH_PX:
            continue
        part = plane[rows, columns].astype(np.float32)
        ground = float(np.median(part[~drawn]))
        contrast = abs(value - ground)
        if contrast < MIN_CONTRAST * span:
            continue
        soft = np.abs(part - value) < 0.5 * contrast
        for line in find_lines(drawn) or find_lines(soft):
            moved = _moved(line, rows.start, columns.start)
            known = line.glyphs >= limits.least and is_thin(soft | drawn, line.box, line.height)
            known = known and (unusual or _is_even(part, soft | drawn, line.box, limits.even * contrast))
            if known or (limits.any_ground and _is_typed(drawn, line, extreme=extreme)):
                lines.append(_extended(core, moved) if limits.any_ground else moved)
    return lines


def _is_typed(core: Mask, line: TextLine, *, extreme: bool) -> bool:
    """Return True if a line is text on any ground, by the number of its letters and their common base line."""
    if line.vertical:
        return False
    if not extreme or line.strokes >= TOUCHING_STROKES:
        return True
    if line.glyphs < MIN_TYPED:
        return False
    from scipy import ndimage

    # lower edges of the letters, without parts such as dots
    top, bottom, left, right = line.box
    labels, _ = ndimage.label(core[top:bottom, left:right], structure=np.ones((3, 3)))
    feet = np.array([rows.stop for rows, _ in ndimage.find_objects(labels) if rows.stop - rows.start >= 0.6 * line.height])
    near = np.abs(feet[:, np.newaxis] - feet) <= max(1.0, 0.1 * line.height)
    return len(feet) > 2 and bool(near.mean(axis=0).max() >= ON_BASE_LINE)


def _extended(core: Mask, line: TextLine) -> TextLine:
    """Extend a line to both sides by its colour alone, as the ground around its letters does not show where it ends."""
    top, bottom, left, right = line.box
    if line.vertical:
        return line
    reach, gap = round(REACH * line.height), GAP_TO_NEXT * line.height
    first = max(left - reach, 0)
    inked = first + np.flatnonzero(core[top:bottom, first : right + reach].any(axis=0))
    for column in inked[inked >= right]:
        right = int(column) + 1 if column - right <= gap else right
    for column in inked[inked < left][::-1]:
        left = int(column) if left - column <= gap else left
    return replace(line, box=(top, bottom, left, right))


def _is_even(part: npt.NDArray[np.float32], letters: Mask, box: Box2D, spread: float) -> bool:
    """Return True if the ground between the letters of a line has about one value."""
    from scipy import ndimage

    area = (slice(max(box[0] - 2, 0), box[1] + 2), slice(max(box[2] - 2, 0), box[3] + 2))
    ground = part[area][~ndimage.binary_dilation(letters[area])]
    return ground.size >= MIN_COLOUR_PX and float(np.ptp(np.percentile(ground, (5, 95)))) <= spread


def _moved(line: TextLine, row: int, column: int) -> TextLine:
    top, bottom, left, right = line.box
    return replace(line, box=(top + row, bottom + row, left + column, right + column))
