"""Normalised scans in memory, and points carried from one to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.volumes import centre_of, read_volume
from neuralmedbench.imaging.pictures import SLICE_AXIS
from neuralmedbench.records.case import Plane, Series
from neuralmedbench.records.views import Vector

if TYPE_CHECKING:
    import SimpleITK as sitk

Points = npt.NDArray[np.float64]
VOLUMES = "volumes"
"""Folder of the files of a normalised case: the volume of each series, and beside it those that the following functions name."""


def brain_path(volume: Path) -> Path:
    """Return the path of the brain mask of a series."""
    return volume.with_name(f"{volume.stem}_brain.nii")


def rigid_path(volume: Path) -> Path:
    """Return the path of the transform of a series, which maps points of the reference to points of the series, LPS+ in mm."""
    return volume.with_name(f"{volume.stem}_rigid.json")


def copy_path(volume: Path) -> Path:
    """Return the path of the copy of a series in the space of the reference."""
    return volume.with_name(f"{volume.stem}_space-ref.nii")


@dataclass(frozen=True)
class Scan:
    """One normalised series in memory.

    Attributes
    ----------
    series : Series
        Its record.
    image : SimpleITK.Image
        The volume, LPS+.
    brain : ndarray of bool, shape (Z, Y, X)
        Brain mask.
    rigid : ndarray of float, shape (4, 4)
        Maps points of the reference to points of this series, LPS+ in mm.
    window : tuple of float
        Intensities of black and white.
    """

    series: Series
    image: sitk.Image
    brain: npt.NDArray[np.bool_]
    rigid: Points
    window: tuple[float, float]

    @property
    def plane(self) -> Plane:
        """Default plane to cut: that of acquisition, axial for isotropic scans."""
        return self.series.plane or Plane.AXIAL

    def stack(self, plane: Plane) -> npt.NDArray[np.bool_]:
        """Return its brain mask with the slices of a plane along axis 0."""
        return np.moveaxis(self.brain, SLICE_AXIS[plane], 0)


@dataclass(frozen=True)
class SlicePlace:
    """One native slice and its centre.

    Attributes
    ----------
    index : int
        Index along the slice axis of the LPS+ array.
    centre : tuple of float
        Row and column, in display orientation, of the point in the middle of the picture.
    position_mm : float
        Position of that point along the slice axis, in the space of the reference.
    """

    index: int
    centre: tuple[float, float]
    position_mm: float


def load_scan(series: Series, source: Path) -> Scan:
    """Read one series of a normalised case; DataError if a file is absent or it has no window."""
    import SimpleITK as sitk

    if series.window is None:
        message = f"{series.series_id}: the normalised case has no windows; run its stage again"
        raise DataError(message)
    path = source / series.path
    mask = sitk.GetArrayFromImage(read_volume(brain_path(path))) > 0
    return Scan(series, read_volume(path), mask, read_rigid(source, series), series.window)


def read_rigid(folder: Path, series: Series) -> npt.NDArray[np.float64]:
    """Read the transform of a series from the folder of its normalised case.

    Returns
    -------
    ndarray of float, shape (4, 4)
        Maps points of the reference to points of the series, LPS+ in mm.
    """
    return np.array(read_json(rigid_path(folder / series.path)))


def centre_points(scan: Scan, plane: Plane, indices: Iterable[int]) -> Points:
    """Return a point per slice, on the line through the centre of the brain along the slice axis, shape (N, 3), LPS+ in mm."""
    axis = SLICE_AXIS[plane]
    middle = centre_of(scan.brain)
    centres = [[*middle[:axis], float(index), *middle[axis + 1 :]] for index in indices]
    return np.array([scan.image.TransformContinuousIndexToPhysicalPoint(centre[::-1]) for centre in centres])


def vector(values: Points, digits: int) -> Vector:
    """Return a point or a step as it is written, x, y and z rounded."""
    x, y, z = (round(float(value), digits) for value in values)
    return x, y, z


def transform_points(points: Points, matrix: Points) -> Points:
    """Transform points, shape (N, 3), by a homogeneous matrix."""
    return np.asarray(points @ matrix[:3, :3].T + matrix[:3, 3])


def slice_index(scan: Scan, plane: Plane, point: npt.NDArray[np.floating]) -> float:
    """Return the continuous index along the slice axis of a point in the space of the scan."""
    return float(scan.image.TransformPhysicalPointToContinuousIndex(point.tolist())[::-1][SLICE_AXIS[plane]])


def nearest_slices(scan: Scan, plane: Plane, points: Points) -> list[SlicePlace]:
    """Return the native slices nearest to points in the space of the scan, without repetition and points outside."""
    axis = SLICE_AXIS[plane]
    rows, columns = (entry for entry in range(3) if entry != axis)
    shape = scan.brain.shape
    by_index: dict[int, SlicePlace] = {}
    for point in points:
        where = list(scan.image.TransformPhysicalPointToContinuousIndex(point.tolist())[::-1])
        index = round(where[axis])
        if not 0 <= index < shape[axis] or index in by_index:
            continue
        row = where[rows] if plane is Plane.AXIAL else shape[rows] - 1 - where[rows]  # flipped by cut_plane
        where[axis] = float(index)
        centre = np.array([scan.image.TransformContinuousIndexToPhysicalPoint(where[::-1])])
        position = transform_points(centre, np.asarray(np.linalg.inv(scan.rigid), dtype=np.float64))[0, 2 - axis]
        by_index[index] = SlicePlace(index, (row, where[columns]), float(position))
    return list(by_index.values())
