"""Coordinate space of the head: a 1 mm grid in MNI millimetres, stored LPS+ as (Z, Y, X).

Positions are written in MNI coordinates (x > 0 is the patient's right, y > 0 anterior, z > 0 superior), as in anatomical atlases;
:func:`lps` is the only place that converts them to the LPS+ millimetres of the arrays.

All phantom modules use only operations that round the same on every processor (no exp, sin or matrix products over arrays), so that a
phantom has the same bytes on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

Volume = npt.NDArray[np.float32]
"""Array (Z, Y, X), LPS+, float32."""

Point = tuple[float, float, float]
"""(x, y, z) in mm."""


@dataclass(frozen=True)
class Grid:
    """A regular LPS+ grid.

    Attributes
    ----------
    low : tuple of int
        Centre of the first voxel, (z, y, x), LPS+ mm.
    shape : tuple of int
        Voxels, (Z, Y, X).
    step : int
        Side of a voxel in mm.
    """

    low: tuple[int, int, int]
    shape: tuple[int, int, int]
    step: int = 1

    def axes(self) -> tuple[Volume, Volume, Volume]:
        """Return the coordinates z, y, x of the voxels in LPS+ mm, shaped for broadcasting."""
        lines = [low + self.step * np.arange(count, dtype=np.float32) for low, count in zip(self.low, self.shape, strict=True)]
        return lines[0][:, None, None], lines[1][None, :, None], lines[2][None, None, :]

    def window(self, inner: Grid) -> tuple[slice, slice, slice]:
        """Return the slices (Z, Y, X) of this grid that a smaller grid of the same step covers."""
        starts = [(inside - outside) // self.step for inside, outside in zip(inner.low, self.low, strict=True)]
        z, y, x = (slice(start, start + count) for start, count in zip(starts, inner.shape, strict=True))
        return z, y, x


HEAD = Grid((-100, -126, -100), (201, 251, 201))
HEAD_COARSE = Grid((-100, -126, -100), (101, 126, 101), step=2)
BRAIN = Grid((-72, -74, -74), (157, 183, 149))


def lps(point: Point) -> Point:
    """Convert MNI coordinates (x, y, z) to LPS+ millimetres."""
    x, y, z = point
    return -x, -y, z


def ellipsoid(grid: Grid, centre: Point, radii: Point) -> Volume:
    """Compute the squared distance from an ellipsoid's centre in units of its radii (below 1 inside).

    Parameters
    ----------
    grid : Grid
        Voxels at which it is computed.
    centre : tuple of float
        MNI coordinates (x, y, z), mm.
    radii : tuple of float
        Half axes along x, y, z, mm.

    Returns
    -------
    ndarray of float32, shape (Z, Y, X)
        The squared distance, dimensionless.
    """
    z, y, x = grid.axes()
    cx, cy, cz = lps(centre)
    return ((x - cx) / radii[0]) ** 2 + ((y - cy) / radii[1]) ** 2 + ((z - cz) / radii[2]) ** 2


def ramp(values: Volume, low: float, high: float) -> Volume:
    """Apply a linear ramp: 0 up to `low`, 1 from `high` on (descending if `high` < `low`)."""
    return np.clip((values - np.float32(low)) / np.float32(high - low), 0, 1)


def smooth_noise(grid: Grid, rng: np.random.Generator, scale_mm: float) -> Volume:
    """Draw a smooth random field with zero mean and unit standard deviation.

    Parameters
    ----------
    grid : Grid
        Voxels of the field.
    rng : numpy.random.Generator
        Random numbers.
    scale_mm : float
        Distance over which the field varies, mm.

    Returns
    -------
    ndarray of float32, shape (Z, Y, X)
        The field.
    """
    # drawn on a coarse grid of half the scale, blurred, then enlarged
    stride = max(1, int(scale_mm // (2 * grid.step)))
    coarse = [count // stride + 4 for count in grid.shape]
    field = rng.standard_normal(coarse, dtype=np.float32)
    for _ in range(2):
        field = ndimage.uniform_filter(field, 3, mode="wrap")
    field = (field - field.mean()) / field.std()
    return resize(field, stride, grid.shape)


def resize(field: Volume, factor: int, shape: tuple[int, int, int]) -> Volume:
    """Enlarge an array by an integer factor with linear interpolation, axis by axis, and crop it to `shape`."""
    for axis, count in enumerate(shape):
        place = np.arange(count, dtype=np.float32) / np.float32(factor)
        low = np.minimum(place.astype(np.intp), field.shape[axis] - 2)
        weight = np.expand_dims(place - low, [other for other in range(3) if other != axis]).astype(np.float32)
        lower = np.take(field, low, axis)
        field = lower + weight * (np.take(field, low + 1, axis) - lower)
    return field
