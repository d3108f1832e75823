"""A line of text followed to both sides: what a test found of it may be a part."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.lines import Box2D

UNEVEN = 0.5
REACH, GAP_TO_NEXT = 12.0, 2.0
"""How far a line is followed, and over which gap, in heights of a letter."""


def extended(plane: npt.NDArray[Any], box: Box2D, height: float, *, vertical: bool) -> Box2D:
    """Grow a box along its line: words behind a wide gap, digits that change, letters that a test missed.

    Parameters
    ----------
    plane : ndarray, shape (rows, columns)
        The picture.
    box : Box2D
        Tight box of a line or a part of it.
    height : float
        Of its letters.
    vertical : bool
        The line runs along the columns.

    Returns
    -------
    Box2D
        The box with what continues the line on either side: marks of the same brightness, no higher than the line.
    """
    top, bottom, left, right = box
    if vertical:
        turned = extended(plane.T, (left, right, top, bottom), height, vertical=False)
        return turned[2], turned[3], turned[0], turned[1]
    from scipy import ndimage

    reach, margin = round(REACH * height), max(4, round(0.6 * height))
    first, last = max(left - reach, 0), min(right + reach, plane.shape[1])
    upper, lower = max(top - margin, 0), min(bottom + margin, plane.shape[0])
    part = plane[upper:lower, first:last].astype(np.float32)
    inside = plane[top:bottom, left:right].astype(np.float32)
    ground = float(np.median(np.concatenate([part[: top - upper].ravel(), part[bottom - upper :].ravel(), inside.ravel()])))
    low, high = np.percentile(inside, (3, 97))
    sign = 1.0 if high - ground >= ground - low else -1.0
    contrast = max(high - ground, ground - low)
    between = inside[sign * (inside - ground) <= 0.4 * contrast]
    if between.size and float(np.ptp(np.percentile(between, (5, 95)))) > UNEVEN * contrast:
        return box  # over anatomy, where other things would be followed
    labels, _ = ndimage.label(sign * (part - ground) > 0.4 * contrast, structure=np.ones((3, 3)))
    pieces = []
    for rows, columns in ndimage.find_objects(labels):
        whole = (rows.start > 0 or upper == 0) and (rows.stop < part.shape[0] or lower == plane.shape[0])
        if whole and columns.start > 0 and columns.stop < part.shape[1]:
            pieces.append((columns.start + first, columns.stop + first, rows.start + upper, rows.stop + upper))
    for one, other, high_row, low_row in sorted(pieces):
        if other > right and one - right <= GAP_TO_NEXT * height:
            right, top, bottom = other, min(top, high_row), max(bottom, low_row)
    for one, other, high_row, low_row in sorted(pieces, key=lambda piece: -piece[1]):
        if one < left and left - other <= GAP_TO_NEXT * height:
            left, top, bottom = one, min(top, high_row), max(bottom, low_row)
    return top, bottom, left, right
