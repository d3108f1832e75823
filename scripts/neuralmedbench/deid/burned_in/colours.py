"""Lines of text that are drawn in one exact colour, whatever they say in the other slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.constancy import MIN_CONTRAST, MIN_PLANES, Mark, Mask, Planes
from neuralmedbench.deid.burned_in.lines import GAP_TO_NEXT, MIN_GLYPH_PX, REACH, Box2D, TextLine, find_lines

MIN_COLOUR_PX = 20
MAX_COLOUR_PART = 0.08
COLOUR_EXCESS = 5.0
MAX_COLOURS = 300
EVEN = 0.35
"""Largest spread of the ground between letters, as a part of their contrast."""
FEW_COLOURS_EVEN = 0.1
"""The same where a picture has so few colours that anatomy has them too: eight bits, cut off at white."""
MIN_TYPED, ON_BASE_LINE, TOUCHING_STROKES = 6, 0.7, 18.0
"""What makes a line of white letters in such a picture, whatever they stand on: letters, the part of them on one base line, or strokes where
letters touch. Lines of a colour between its darkest and its brightest are text in any case: of 972 pictures without text none has either. Series
have their slices to tell text by."""


def one_colour(planes: Planes, span: float, skip: Mask | None = None) -> list[Mark]:
    """Find lines of text that one exact value draws, whatever they say in the other slices.

    `planes`: shape (slices, rows, columns). `span`, `skip`: as in `same_in_every_slice`.

    A value that is several times as frequent in one plane as its neighbours in the histogram is a colour. Only values that the series holds
    at all count as neighbours, so that a stretched histogram with holes in it is no set of colours.
    """
    marks = []
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
    """Planes, the values that stick out of their histograms and the width of a bin, the strongest first."""
    from scipy import ndimage

    codes, values, tolerance = _codes(planes)
    counts = np.stack([np.bincount(plane.ravel(), minlength=len(values)) for plane in codes]).astype(np.float32)
    used = np.flatnonzero(counts.any(axis=0))
    counts = counts[:, used]
    near = (ndimage.uniform_filter1d(counts, 9, axis=1, mode="constant") * 9 - counts) / 8
    excess = counts / np.maximum(near, 1.0)
    sticks_out = (counts >= MIN_COLOUR_PX) & (excess >= COLOUR_EXCESS) & (counts <= MAX_COLOUR_PART * planes[0].size)
    where = np.argwhere(sticks_out)
    order = np.argsort(-excess[sticks_out], kind="stable")[:MAX_COLOURS]
    for index, column in where[order]:
        code = used[column]
        yield int(index), values[code], tolerance


def _codes(planes: Planes) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[Any], float]:
    """Whole numbers that stand for the values of a series, the values, and how far a voxel may lie from one."""
    low, high = planes.min(), planes.max()
    if planes.dtype.kind in "iub" and int(high) - int(low) < 65536:
        return planes.astype(np.int32) - int(low), np.arange(int(low), int(high) + 1), 0.0
    steps = 4096
    scale = (float(high) - float(low)) / (steps - 1) or 1.0
    return ((planes.astype(np.float64) - float(low)) / scale).astype(np.int32), float(low) + np.arange(steps) * scale, scale


@dataclass(frozen=True)
class _Limits:
    """How many letters a line needs, how even its ground has to be, and whether a typed line may stand on any ground."""

    least: int
    even: float
    any_ground: bool = False


def _lines_of(plane: Planes, value: float, core: Mask, span: float, limits: _Limits) -> list[TextLine]:
    """Find lines drawn in one colour, soft edges included: a pixel belongs to a letter when it is nearer to the colour than to the ground."""
    from scipy import ndimage

    labels, _ = ndimage.label(
        ndimage.binary_dilation(core, structure=np.ones((5, 11))) | ndimage.binary_dilation(core, structure=np.ones((11, 5)))
    )
    low, high = np.percentile(plane[::2, ::2], (1, 99.5))
    unusual = not low - MIN_CONTRAST * span < value < high + MIN_CONTRAST * span
    extreme = limits.any_ground and value in (plane.min(), plane.max())
    lines = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        own = core[rows, columns] & (labels[rows, columns] == number)
        if own.sum() < MIN_COLOUR_PX or min(own.shape) < MIN_GLYPH_PX:
            continue
        part = plane[rows, columns].astype(np.float32)
        ground = float(np.median(part[~own]))
        contrast = abs(value - ground)
        if contrast < MIN_CONTRAST * span:
            continue
        soft = np.abs(part - value) < 0.5 * contrast
        for line in find_lines(own) or find_lines(soft):
            moved = _moved(line, rows.start, columns.start)
            known = line.glyphs >= limits.least and (unusual or _is_even(part, soft | own, line.box, limits.even * contrast))
            if known or (limits.any_ground and _is_typed(own, line, extreme=extreme)):
                lines.append(_followed(core, moved) if limits.any_ground else moved)
    return lines


def _is_typed(core: Mask, line: TextLine, *, extreme: bool) -> bool:
    """Whether a line is text whatever it stands on, by the number of its letters and the line that they stand on."""
    if line.vertical:
        return False
    if not extreme or line.strokes >= TOUCHING_STROKES:
        return True
    if line.glyphs < MIN_TYPED:
        return False
    from scipy import ndimage

    top, bottom, left, right = line.box
    labels, _ = ndimage.label(core[top:bottom, left:right], structure=np.ones((3, 3)))
    feet = np.array([rows.stop for rows, _ in ndimage.find_objects(labels) if rows.stop - rows.start >= 0.6 * line.height])
    near = np.abs(feet[:, np.newaxis] - feet) <= max(1.0, 0.1 * line.height)
    return len(feet) > 2 and bool(near.mean(axis=0).max() >= ON_BASE_LINE)


def _followed(core: Mask, line: TextLine) -> TextLine:
    """Follow a line on both sides by its colour: what lies around its letters says nothing about where it ends."""
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
    """Whether what lies between the letters of a line has about one value."""
    from scipy import ndimage

    area = (slice(max(box[0] - 2, 0), box[1] + 2), slice(max(box[2] - 2, 0), box[3] + 2))
    ground = part[area][~ndimage.binary_dilation(letters[area])]
    return ground.size >= MIN_COLOUR_PX and float(np.ptp(np.percentile(ground, (5, 95)))) <= spread


def _moved(line: TextLine, row: int, column: int) -> TextLine:
    top, bottom, left, right = line.box
    return replace(line, box=(top + row, bottom + row, left + column, right + column))
