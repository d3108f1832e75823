"""Turn voxels into grey pictures: cut in display orientation, square pixels, windowed, resized, as montage or letterboxed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neuralmedbench.records.case import Plane

Floats = npt.NDArray[np.float32]
T = TypeVar("T", bound=np.generic)
SLICE_AXIS = {plane: "zyx".index(plane.axis) for plane in Plane}
"""Slice axis of a plane in an LPS+ array (Z, Y, X)."""
GAP_PX = 4
"""Black between the tiles of a montage."""


def cut_plane(voxels: npt.NDArray[T], plane: Plane, index: int) -> npt.NDArray[T]:
    """Take one slice out of a volume, in radiological display orientation.

    Parameters
    ----------
    voxels : ndarray, shape (Z, Y, X), LPS+
        The volume.
    plane : Plane
        The plane to cut.
    index : int
        Index along the axis of the plane.

    Returns
    -------
    ndarray, shape (rows, columns)
        Axial: row 0 anterior, column 0 the patient's right. Coronal: row 0 superior, column 0 the patient's right.
        Sagittal: row 0 superior, column 0 anterior.
    """
    cut = np.take(voxels, index, axis=SLICE_AXIS[plane])
    return cut if plane is Plane.AXIAL else cut[::-1]


@dataclass(frozen=True)
class SquareGrid:
    """Where the pixels of a square picture lie in the slice that it is cut from.

    Attributes
    ----------
    number : int
        Pixels along each side.
    size_mm : float
        Side of a pixel.
    start, step : tuple of float
        Row and column of the slice (continuous) at the middle of the first pixel, and their change from one pixel to the next.
    copied : bool
        True if the pixels are those of the slice, False if they are interpolated.
    """

    number: int
    size_mm: float
    start: tuple[float, float]
    step: tuple[float, float]
    copied: bool


def square_grid(centre: tuple[float, float], spacing: tuple[float, float], side_mm: float) -> SquareGrid:
    """Lay a square with square pixels over a slice; parameters as in `square`."""
    size = min(spacing)
    number = max(8, round(side_mm / size))
    reach = (number - 1) / 2
    if abs(spacing[0] - spacing[1]) <= 1e-3 * size:
        row, column = (float(round(middle - reach)) for middle in centre)
        return SquareGrid(number, size, (row, column), (1.0, 1.0), copied=True)
    rows, columns = (size / along for along in spacing)
    return SquareGrid(number, size, (centre[0] - reach * rows, centre[1] - reach * columns), (rows, columns), copied=False)


def square(cut: Floats, centre: tuple[float, float], spacing: tuple[float, float], *, side_mm: float, fill: float) -> tuple[Floats, float]:
    """Cut a square with square pixels out of a slice.

    Parameters
    ----------
    cut : ndarray, shape (rows, columns)
        The slice.
    centre : tuple of float
        Row and column (continuous) of the middle of the square.
    spacing : tuple of float
        Size of a pixel along rows and columns in mm.
    side_mm : float
        Side of the square.
    fill : float
        Value outside the slice.

    Returns
    -------
    tuple of ndarray and float
        The picture, shape (n, n), and the size of its pixels in mm: the smaller side of the slice's pixels.

    Notes
    -----
    Square pixels are only shifted by whole pixels, never interpolated. Others are interpolated linearly along the coarser axis.
    """
    grid = square_grid(centre, spacing, side_mm)
    number, size = grid.number, grid.size_mm
    if grid.copied:
        # square pixels: copy the part of the slice that is inside the square
        corner = [int(start) for start in grid.start]
        picture = np.full((number, number), fill, dtype=cut.dtype)
        low = [max(0, -start) for start in corner]
        high = [min(number, side - start) for start, side in zip(corner, cut.shape, strict=True)]
        if high[0] > low[0] and high[1] > low[1]:
            rows, columns = (slice(start + a, start + b) for start, a, b in zip(corner, low, high, strict=True))
            picture[low[0] : high[0], low[1] : high[1]] = cut[rows, columns]
        return picture, size
    # other pixels: interpolate; positions of the new pixels in mm from the centre
    steps = (np.arange(number) - (number - 1) / 2) * size
    picture = _interpolate(cut, centre[0] + steps / spacing[0], fill)
    return _interpolate(picture.T, centre[1] + steps / spacing[1], fill).T.astype(cut.dtype), size


def _interpolate(values: Floats, positions: npt.NDArray[np.floating], fill: float) -> Floats:
    """Interpolate linearly along axis 0; `fill` outside."""
    floor = np.floor(positions).astype(int)
    weight = (positions - floor)[:, None]
    last = len(values) - 1
    mixed = values[np.clip(floor, 0, last)] * (1 - weight) + values[np.clip(floor + 1, 0, last)] * weight
    outside = (positions < -0.5) | (positions > last + 0.5)  # beyond the outer edges of the end pixels
    mixed[outside] = fill
    return np.asarray(mixed, dtype=np.float32)


def to_grey(picture: Floats, window: tuple[float, float]) -> npt.NDArray[np.uint8]:
    """Map a window of intensities to 0 (black) to 255 (white)."""
    low, high = window
    return np.asarray(np.clip((picture - low) / (high - low) * 255.0, 0, 255).round(), dtype=np.uint8)


def resize(picture: Floats, side_px: int) -> Floats:
    """Resize a square picture; a smaller one is averaged (Pillow's antialiasing), so that no small structure is lost."""
    from PIL import Image

    return np.asarray(Image.fromarray(picture.astype(np.float32)).resize((side_px, side_px), Image.Resampling.BILINEAR))


def montage(tiles: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    """Arrange pictures of one size in a grid, left to right and then top to bottom.

    Parameters
    ----------
    tiles : sequence of ndarray of uint8, shape (n, n)
        At least one.

    Returns
    -------
    ndarray of uint8, shape (rows, columns)
        As many columns as rows, or one more; empty cells are black.
    """
    columns = montage_columns(len(tiles))
    rows = -(-len(tiles) // columns)
    side = tiles[0].shape[0]
    whole = np.zeros((rows * (side + GAP_PX) - GAP_PX, columns * (side + GAP_PX) - GAP_PX), dtype=np.uint8)
    for (top, left), tile in zip(montage_corners(len(tiles), side), tiles, strict=True):
        whole[top : top + side, left : left + side] = tile
    return whole


def montage_columns(number: int) -> int:
    """Return the number of columns of a montage of so many pictures: as square as possible."""
    return int(np.ceil(np.sqrt(number)))


def montage_corners(number: int, side_px: int) -> list[tuple[int, int]]:
    """Return the top and left pixel of each picture of a montage."""
    columns = montage_columns(number)
    return [(row * (side_px + GAP_PX), column * (side_px + GAP_PX)) for row, column in (divmod(place, columns) for place in range(number))]


def letterbox(picture: npt.NDArray[np.uint8], side_px: int) -> npt.NDArray[np.uint8]:
    """Put a picture in the middle of a black square of at least its size, without scaling."""
    whole = np.zeros((side_px, side_px), dtype=np.uint8)
    top, left = letterbox_corner(picture.shape, side_px)
    whole[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    return whole


def letterbox_corner(shape: tuple[int, ...], side_px: int) -> tuple[int, int]:
    """Return the top and left pixel of a picture of (rows, columns) in its letterbox."""
    top, left = ((side_px - side) // 2 for side in shape)
    return top, left


def tile_boxes(shape: tuple[int, int], tiles: int) -> list[tuple[slice, slice]]:
    """Return where the tiles of a picture are.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the picture.
    tiles : int
        1 for a single slice, whose box is the picture; else the tiles of a `montage`, with or without `letterbox`.

    Returns
    -------
    list of tuple of slice
        Rows and columns of each tile, in its order.
    """
    if tiles <= 1:
        return [(slice(0, shape[0]), slice(0, shape[1]))]
    columns = montage_columns(tiles)
    side = (shape[1] - (columns - 1) * GAP_PX) // columns
    corners = montage_corners(tiles, side)
    above, before = (
        (whole - last - side) // 2 for whole, last in zip(shape, (corners[-1][0], (columns - 1) * (side + GAP_PX)), strict=True)
    )
    return [(slice(above + top, above + top + side), slice(before + left, before + left + side)) for top, left in corners]
