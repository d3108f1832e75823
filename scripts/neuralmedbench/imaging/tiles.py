"""Where the pixels of a picture lie in the patient: the geometry of each slice in it."""

from __future__ import annotations

import numpy as np

from neuralmedbench.imaging.pictures import SLICE_AXIS, square_grid
from neuralmedbench.imaging.scans import Points, Scan, SlicePlace, transform_points
from neuralmedbench.records.case import Plane, Tile


def native_pixel(scan: Scan, plane: Plane) -> tuple[float, float]:
    """Return the size of a native pixel along rows and columns of a plane in mm."""
    rows, columns = (size for axis, size in enumerate(scan.image.GetSpacing()[::-1]) if axis != SLICE_AXIS[plane])
    return rows, columns


def place_tile(scan: Scan, plane: Plane, place: SlicePlace, *, field_of_view_mm: float, top_px: int, left_px: int, side_px: int) -> Tile:
    """Describe one slice of a picture, drawn with its upper left corner at a pixel and a side of `side_px` pixels."""
    grid = square_grid(place.centre, native_pixel(scan, plane), field_of_view_mm)
    # upper left corner of the first pixel, and those of its neighbours below and to the right, in pixels of the square before resizing
    ends = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) * grid.number / side_px - 0.5
    corner, below, beside = _patient_points(scan, plane, place.index, np.array(grid.start) + ends * np.array(grid.step))
    return Tile(
        index=place.index,
        position_mm=round(place.position_mm, 2),
        left_px=left_px,
        top_px=top_px,
        side_px=side_px,
        corner_mm=_vector(corner, 3),
        right_mm=_vector(beside - corner, 6),
        down_mm=_vector(below - corner, 6),
    )


def _patient_points(scan: Scan, plane: Plane, index: int, cells: Points) -> Points:
    """Return the places, in the space of the reference, of rows and columns of a slice in display orientation, shape (N, 2)."""
    rows, columns = (axis for axis in range(3) if axis != SLICE_AXIS[plane])
    where = np.zeros((len(cells), 3))
    where[:, SLICE_AXIS[plane]] = index
    where[:, rows] = cells[:, 0] if plane is Plane.AXIAL else scan.brain.shape[rows] - 1 - cells[:, 0]  # flipped by cut_plane
    where[:, columns] = cells[:, 1]
    native = np.array([scan.image.TransformContinuousIndexToPhysicalPoint(point[::-1].tolist()) for point in where])
    return transform_points(native, np.asarray(np.linalg.inv(scan.rigid), dtype=np.float64))


def _vector(values: Points, digits: int) -> tuple[float, float, float]:
    x, y, z = (round(float(value), digits) for value in values)
    return x, y, z
