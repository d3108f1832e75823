"""Points and boxes on a picture: the four conventions of answers, pixels of the picture, and patient space in mm.

A picture has x to the right and y down from its upper left corner; pixel number i covers i to i + 1. A point is (x, y), a box (x1, y1, x2, y2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from neuralmedbench.records.case import Tile

Size = tuple[int, int]
"""Width and height in pixels."""

Vector = tuple[float, float, float]


class Convention(StrEnum):
    """Unit of the coordinates of an answer.

    `fraction` and `thousandths` of width and height (0 to 1, 0 to 1000), `pixels` of the picture as it is sent, or `shrunk_pixels` of the
    picture as the provider scales it down.
    """

    FRACTION = "fraction"
    THOUSANDTHS = "thousandths"
    PIXELS = "pixels"
    SHRUNK_PIXELS = "shrunk_pixels"


def full_scale(convention: Convention, size: Size, shrunk: Size | None = None) -> tuple[float, float]:
    """Return the coordinates of the lower right corner of a picture: its width and height in the unit of a convention.

    Parameters
    ----------
    convention : Convention
        The unit.
    size : tuple of int
        Width and height of the picture as sent.
    shrunk : tuple of int or None
        Those after the provider's shrinking; None: it shrinks nothing.
    """
    if convention is Convention.FRACTION:
        return 1.0, 1.0
    if convention is Convention.THOUSANDTHS:
        return 1000.0, 1000.0
    width, height = shrunk if shrunk is not None and convention is Convention.SHRUNK_PIXELS else size
    return float(width), float(height)


def to_fractions(values: Sequence[float], scale: tuple[float, float]) -> tuple[float, ...]:
    """Return a point or a box in fractions of width and height.

    Parameters
    ----------
    values : sequence of float
        The point (2 numbers) or the box (4 numbers).
    scale : tuple of float
        `full_scale` of the convention in which it is stated.

    Examples
    --------
    >>> to_fractions((128, 64, 256, 128), full_scale(Convention.PIXELS, (512, 256)))
    (0.25, 0.25, 0.5, 0.5)
    """
    return tuple(value / scale[place % 2] for place, value in enumerate(values))


def from_fractions(values: Sequence[float], scale: tuple[float, float]) -> tuple[float, ...]:
    """Return a point or a box, given in fractions of width and height, in the unit of a convention (`full_scale`).

    Examples
    --------
    >>> from_fractions((0.25, 0.5), full_scale(Convention.THOUSANDTHS, (512, 256)))
    (250.0, 500.0)
    """
    return tuple(value * scale[place % 2] for place, value in enumerate(values))


def to_patient(tile: Tile, x: float, y: float) -> Vector:
    """Return where a point of a picture lies in the patient.

    Parameters
    ----------
    tile : Tile
        The slice on which the point lies; its geometry must be known (`corner_mm`).
    x, y : float
        The point in pixels of the picture.

    Returns
    -------
    tuple of float
        (x, y, z) in mm, LPS+, in the space of the reference sequence.

    Raises
    ------
    ValueError
        If the geometry of the slice is not known: it was cut by an earlier version.
    """
    corner, right, down = _axes(tile)
    columns, rows = x - tile.left_px, y - tile.top_px
    a, b, c = (start + columns * across + rows * along for start, across, along in zip(corner, right, down, strict=True))
    return a, b, c


def to_picture(tile: Tile, point_mm: Vector) -> tuple[float, float]:
    """Return the pixel coordinates at which a slice shows a point of the patient, projected onto the slice along its normal.

    The inverse of `to_patient`; ValueError as there. The result may lie outside the slice.
    """
    corner, right, down = _axes(tile)
    offset = [value - start for value, start in zip(point_mm, corner, strict=True)]
    # rows and columns of a picture are at right angles
    columns, rows = (_dot(offset, axis) / _dot(axis, axis) for axis in (right, down))
    return tile.left_px + columns, tile.top_px + rows


def half_width_px(tile: Tile, half_axes_mm: Vector) -> tuple[float, float]:
    """Return half the width and half the height in pixels of an ellipsoid on a slice through its middle.

    Parameters
    ----------
    tile : Tile
        The slice; ValueError as in `to_patient`.
    half_axes_mm : tuple of float
        Half its extent along the patient's x, y and z.
    """
    _, right, down = _axes(tile)
    x, y = (
        sum((half * part / _dot(axis, axis)) ** 2 for half, part in zip(half_axes_mm, axis, strict=True)) ** 0.5 for axis in (right, down)
    )
    return x, y


def mirrored(tile: Tile, width_px: int) -> Tile:
    """Return the geometry of a slice in the picture with left and right exchanged; `width_px` is the picture's width."""
    left = width_px - tile.left_px - tile.side_px
    if tile.corner_mm is None or tile.right_mm is None:
        return replace(tile, left_px=left)
    a, b, c = (start + tile.side_px * step for start, step in zip(tile.corner_mm, tile.right_mm, strict=True))
    x, y, z = tile.right_mm
    return replace(tile, left_px=left, corner_mm=(a, b, c), right_mm=(-x, -y, -z))


def _axes(tile: Tile) -> tuple[Vector, Vector, Vector]:
    if tile.corner_mm is None or tile.right_mm is None or tile.down_mm is None:
        message = "the geometry of this slice is not known: it was cut by an earlier version"
        raise ValueError(message)
    return tile.corner_mm, tile.right_mm, tile.down_mm


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))
