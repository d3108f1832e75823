"""Lines of text: detected in a mask of thin marks as glyphs of one height on one base line, and extended to both sides."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Box2D = tuple[int, int, int, int]
"""First row, last row + 1, first column, last column + 1."""
MIN_GLYPH_PX = 4
MAX_GLYPH_PART = 0.14
"""Largest height of a letter, as a fraction of the longer side of a picture."""
MAX_MARKS = 4000
"""A mask with more components is texture."""
SAME_HEIGHT = (0.45, 2.2)
WIDEST_GAP = 1.3
"""Largest gap within a line, in letter heights: a space between words."""
INK = (0.12, 0.72)
"""Part of a line's box that is ink."""
THICKEST_STROKE = 0.3
"""Half of a stroke's width, in letter heights."""
AT_ONCE = 64
"""Number of marks whose neighbours are searched together."""
UNEVEN = 0.5
"""Largest spread of the ground over which a line is extended, as a fraction of the letters' contrast."""
REACH, GAP_TO_NEXT = 12.0, 2.0
"""How far a line is extended, and over which gap, in letter heights."""
SMALLEST = 0.4
"""Least height of what extends a line, in letter heights."""


@dataclass(frozen=True)
class TextLine:
    """A line of text.

    Attributes
    ----------
    box : Box2D
        Tight box.
    glyphs : int
        Number of separate marks as high as a letter of this line.
    strokes : float
        Mean number of strokes crossed by a row of pixels: about 1.5 per letter, even if letters touch.
    height : float
        Height of a letter in pixels.
    vertical : bool
        True if the line runs along the columns (rotated by 90 degrees).
    """

    box: Box2D
    glyphs: int
    strokes: float
    height: float
    vertical: bool


def find_lines(marks: Mask, *, min_glyphs: int = 3, min_strokes: float = 3.0) -> list[TextLine]:
    """Detect lines of text in a mask.

    `marks`: shape (rows, columns). `min_glyphs`: minimum number of separate marks; if letters touch, `min_strokes` + 2 suffice instead.
    Returns lines along rows and along columns, ordered by their box.
    """
    if not marks.any():
        return []
    from scipy import ndimage

    labels, count = ndimage.label(marks, structure=np.ones((3, 3)))
    if count > MAX_MARKS:
        return []
    boxes = _boxes(labels)
    # lines along the rows, then along the columns of the transposed mask
    lines = _along_rows(marks, boxes, min_glyphs, min_strokes)
    turned = _along_rows(marks.T, boxes[:, [2, 3, 0, 1]], min_glyphs, min_strokes)
    for line in turned:
        top, bottom, left, right = line.box
        lines.append(TextLine((left, right, top, bottom), line.glyphs, line.strokes, line.height, vertical=True))
    return sorted(lines, key=lambda line: line.box)


def _boxes(labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    from scipy import ndimage

    objects = ndimage.find_objects(labels)
    return np.array([(rows.start, rows.stop, columns.start, columns.stop) for rows, columns in objects], dtype=np.int64)


def _along_rows(marks: Mask, boxes: npt.NDArray[np.int64], min_glyphs: int, min_strokes: float) -> list[TextLine]:
    heights, widths = boxes[:, 1] - boxes[:, 0], boxes[:, 3] - boxes[:, 2]
    tallest = max(24.0, MAX_GLYPH_PART * max(marks.shape))
    kept = boxes[(heights >= MIN_GLYPH_PX) & (heights <= tallest) & (widths <= 40 * heights)]
    kept = kept[np.lexsort((kept[:, 0], kept[:, 2]))]
    return [line for group in _chains(kept) if (line := _as_line(marks, kept[group], min_glyphs, min_strokes)) is not None]


def _chains(boxes: npt.NDArray[np.int64]) -> list[list[int]]:
    """Group adjacent marks of similar height with small gaps (union-find); the boxes are ordered by their left side."""
    parent = list(range(len(boxes)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for index, other in _neighbours(boxes):
        parent[root(other)] = root(index)
    groups: dict[int, list[int]] = {}
    for index in range(len(boxes)):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def _neighbours(boxes: npt.NDArray[np.int64]) -> list[list[int]]:
    """Return pairs of marks that may be neighbours in a line, the left one first."""
    pairs: list[list[int]] = []
    top, bottom, left, right = boxes.T if len(boxes) else np.zeros((4, 0), dtype=np.int64)
    height = bottom - top
    reach = right + WIDEST_GAP / SAME_HEIGHT[0] * height + 1
    for first in range(0, len(boxes), AT_ONCE):
        these = np.arange(first, min(first + AT_ONCE, len(boxes)))[:, np.newaxis]
        later = np.arange(first + 1, np.searchsorted(left, reach[these].max(), side="right"))
        tall, low = np.maximum(height[these], height[later]), np.minimum(height[these], height[later])
        overlap = np.minimum(bottom[these], bottom[later]) - np.maximum(top[these], top[later])
        base = np.minimum(np.abs(bottom[these] - bottom[later]), np.abs(top[these] - top[later]))
        near = (overlap >= 0.6 * low) & (left[later] - right[these] <= WIDEST_GAP * tall) & (later > these)
        near &= (low >= SAME_HEIGHT[0] * tall) & (base <= 0.2 * tall + 1)
        pairs += (np.argwhere(near) + np.array([first, first + 1])).tolist()
    return pairs


def _as_line(marks: Mask, boxes: npt.NDArray[np.int64], min_glyphs: int, min_strokes: float) -> TextLine | None:
    """Check whether a group of marks is a line of text, from the cheapest test to the most expensive."""
    tops, bottoms, lefts, rights = boxes.T.tolist()
    top, bottom, left, right = min(tops), max(bottoms), min(lefts), max(rights)
    most = (right - left + 1) // 2  # strokes that a row can cross at most
    if most < min_strokes + (2 if len(tops) < min_glyphs else 0):
        return None
    heights = [last - first for first, last in zip(tops, bottoms, strict=True)]
    height = float(median(heights))
    if right - left < 1.2 * height or bottom - top > 1.9 * height + 2:
        return None
    # strokes crossed by the rows, without the top and bottom fifth
    part = marks[top:bottom, left:right]
    inner = part[part.shape[0] // 5 : max(part.shape[0] - part.shape[0] // 5, 1)]
    starts = np.count_nonzero(inner[:, 0]) + np.count_nonzero(inner[:, 1:] & ~inner[:, :-1])
    strokes = starts / len(inner)
    glyphs = sum(one >= 0.6 * height for one in heights)
    enough = glyphs >= min_glyphs and strokes >= min_strokes
    touching = strokes >= min_strokes + 2
    if not (enough or touching) or not INK[0] <= np.count_nonzero(part) / part.size <= INK[1]:
        return None
    box = (top, bottom, left, right)
    return TextLine(box, glyphs, strokes, height, vertical=False) if is_thin(marks, box, height) else None


def is_thin(marks: Mask, box: Box2D, height: float, thickest: float = THICKEST_STROKE) -> bool:
    """Return True if the marks in a box are thin as strokes of letters of a height are; `thickest` as `THICKEST_STROKE`."""
    from scipy import ndimage

    top, bottom, left, right = box
    part = marks[top:bottom, left:right]
    depth = ndimage.distance_transform_edt(np.pad(part, 1))  # distance to the edge of a stroke
    return float(np.percentile(depth[1:-1, 1:-1][part], 95)) <= max(1.5, thickest * height)


def grow_line(plane: npt.NDArray[Any], box: Box2D, height: float, *, vertical: bool) -> Box2D:
    """Extend a box along its line to words after a wide gap, digits that change, and letters that a test missed.

    `plane`: shape (rows, columns). `height`: letter height in pixels. Returns the box extended to both sides by marks of the same brightness
    that are no higher than the line.
    """
    top, bottom, left, right = box
    if vertical:
        turned = grow_line(plane.T, (left, right, top, bottom), height, vertical=False)
        return turned[2], turned[3], turned[0], turned[1]
    from scipy import ndimage

    reach, margin = round(REACH * height), max(4, round(0.6 * height))
    first, last = max(left - reach, 0), min(right + reach, plane.shape[1])
    upper, lower = max(top - margin, 0), min(bottom + margin, plane.shape[0])
    part = plane[upper:lower, first:last].astype(np.float32)
    inside = plane[top:bottom, left:right].astype(np.float32)
    # threshold halfway between the ground and the letters, which may be brighter or darker
    ground = float(np.median(np.concatenate([part[: top - upper].ravel(), part[bottom - upper :].ravel(), inside.ravel()])))
    low, high = np.percentile(inside, (3, 97))
    sign = 1.0 if high - ground >= ground - low else -1.0
    contrast = max(high - ground, ground - low)
    between = inside[sign * (inside - ground) <= 0.4 * contrast]
    if between.size and float(np.ptp(np.percentile(between, (5, 95)))) > UNEVEN * contrast:
        return box  # over anatomy, where other structures would be taken for letters
    labels, _ = ndimage.label(sign * (part - ground) > 0.4 * contrast, structure=np.ones((3, 3)))
    # marks that lie wholly within the strip around the line; specks of noise lead to nothing
    pieces = []
    for rows, columns in ndimage.find_objects(labels):
        if rows.stop - rows.start < SMALLEST * height:
            continue
        whole = (rows.start > 0 or upper == 0) and (rows.stop < part.shape[0] or lower == plane.shape[0])
        if whole and columns.start > 0 and columns.stop < part.shape[1]:
            pieces.append((columns.start + first, columns.stop + first, rows.start + upper, rows.stop + upper))
    # join marks to the right, then to the left, as long as the gap is small
    for one, other, high_row, low_row in sorted(pieces):
        if other > right and one - right <= GAP_TO_NEXT * height:
            right, top, bottom = other, min(top, high_row), max(bottom, low_row)
    for one, other, high_row, low_row in sorted(pieces, key=lambda piece: -piece[1]):
        if one < left and left - other <= GAP_TO_NEXT * height:
            left, top, bottom = one, min(top, high_row), max(bottom, low_row)
    return top, bottom, left, right
