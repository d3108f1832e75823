"""Choose which slices of a case a reader gets to see, and cut them.

Every picture is a native slice: nothing is interpolated through the plane. The same anatomy is looked up in every sequence by the
rigid transforms of the normalise stage, and stands in the middle of every picture.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.imaging.normalise import read_rigid
from neuralmedbench.imaging.pictures import SLICE_AXIS, Floats, cut_plane, square, to_grey, window_of
from neuralmedbench.io.files import sha256_of, whole_folder
from neuralmedbench.io.plain_pictures import write_grey
from neuralmedbench.io.volumes import read_volume
from neuralmedbench.records.case import CaseRecord, Plane, Series, Slice

if TYPE_CHECKING:
    import SimpleITK as sitk

Points = npt.NDArray[np.float64]
POLICIES = ("uniform",)


@dataclass(frozen=True, kw_only=True)
class SlicePolicy:
    """Which slices are shown, and how much of them.

    Attributes
    ----------
    policy : str
        One of `POLICIES`.
    per_sequence : int
        Pictures per sequence.
    field_of_view_mm : float
        Side of a picture.
    """

    policy: str
    per_sequence: int
    field_of_view_mm: float


@dataclass(frozen=True)
class Scan:
    """One normalised series in memory.

    Attributes
    ----------
    series : Series
        Its record.
    plane : Plane
        The plane in which it is cut.
    image : SimpleITK.Image
        The volume, LPS+.
    brain : ndarray of bool, shape (Z, Y, X)
        Where its brain is.
    rigid : ndarray of float, shape (4, 4)
        From points of the reference to points of this series, LPS+ in mm.
    """

    series: Series
    plane: Plane
    image: sitk.Image
    brain: npt.NDArray[np.bool_]
    rigid: Points


@dataclass(frozen=True)
class Place:
    """One native slice and what stands in its middle.

    Attributes
    ----------
    index : int
        Index along the slice axis of the LPS+ array.
    centre : tuple of float
        Row and column of the slice, as a reader sees it, that shall be in the middle of the picture.
    position_mm : float
        Position of that point along the slice axis, in the space of the reference.
    """

    index: int
    centre: tuple[float, float]
    position_mm: float


def usable_slices(brain: npt.NDArray[np.bool_], *, min_area: float = 0.25) -> npt.NDArray[np.intp]:
    """Find the slices along axis 0 that show enough brain; parameters as in `uniform_slices`."""
    area = brain.sum(axis=(1, 2))
    return np.flatnonzero((area > 0) & (area >= min_area * area.max()))


def uniform_slices(brain: npt.NDArray[np.bool_], count: int, *, min_area: float = 0.25) -> list[int]:
    """Spread slices evenly over the part of the head that shows enough brain.

    Parameters
    ----------
    brain : ndarray of bool, shape (N, rows, columns)
        Brain mask; the slices follow each other along axis 0.
    count : int
        Number of slices, at least 1.
    min_area : float
        Smallest brain area of a slice, as a fraction of the largest one.

    Returns
    -------
    list of int
        Indices along axis 0, ascending, all different.

    Raises
    ------
    DataError
        If the mask is empty, or fewer than `count` slices show enough brain.

    Examples
    --------
    >>> uniform_slices(np.ones((9, 4, 4), dtype=bool), 3)
    [0, 4, 8]
    """
    usable = usable_slices(brain, min_area=min_area)
    if len(usable) < count:
        message = f"{len(usable)} slices show at least {min_area:.0%} of the largest brain area, {count} were asked for: lower slices.per_sequence"
        raise DataError(message)
    picks = np.linspace(0, len(usable) - 1, count).round().astype(int)
    return [int(index) for index in usable[picks]]


def cut_slices(case: CaseRecord, source: Path, pictures: Path, policy: SlicePolicy) -> tuple[Slice, ...]:
    """Cut the pictures of a case.

    Parameters
    ----------
    case : CaseRecord
        The normalised case, the reference first.
    source : Path
        Its folder.
    pictures : Path
        Folder of the PNG files; it is replaced. Paths in the result are relative to the folder above it.
    policy : SlicePolicy
        Which slices.

    Returns
    -------
    tuple of Slice
        In the order of the series, each from feet to head (right to left, front to back).

    Raises
    ------
    DataError
        If a series shows too little brain.

    Notes
    -----
    Series of one plane share their positions: those of the first of them. A series that does not reach a position lacks that
    picture; a position that falls on a slice which is already shown is not repeated. A slab in another plane than the
    reference's shows as many slices as it has.
    """
    import SimpleITK as sitk

    leaders: dict[Plane, tuple[Scan, Points]] = {}
    slices: dict[str, Slice] = {}
    with whole_folder(pictures) as folder:
        for series in case.series:
            scan = _load(series, source)
            if scan.plane not in leaders:
                leaders[scan.plane] = (scan, _positions(scan, policy.per_sequence, is_reference=not leaders))
            leader, points = leaders[scan.plane]
            voxels = sitk.GetArrayViewFromImage(scan.image)
            window = window_of(series.sequence, voxels, scan.brain)
            for place in _places(scan, _carry(points, scan.rigid @ np.linalg.inv(leader.rigid))):
                picture, mm_per_px = _picture(scan, voxels, place, policy.field_of_view_mm)
                image_id = _image_id(scan, place.position_mm, slices)
                path = folder / f"{image_id}.png"
                write_grey(path, to_grey(picture, window))
                slices[image_id] = Slice(
                    image_id=image_id,
                    path=f"{pictures.name}/{path.name}",
                    sha256=sha256_of(path),
                    volume_sha256=series.volume_sha256,
                    sequence=series.sequence,
                    plane=scan.plane,
                    index=place.index,
                    position_mm=round(place.position_mm, 2),
                    mm_per_px=round(mm_per_px, 5),
                    window=window,
                )
    return tuple(slices.values())


def _load(series: Series, source: Path) -> Scan:
    import SimpleITK as sitk

    path = source / series.path
    mask = sitk.GetArrayFromImage(read_volume(path.with_name(f"{series.series_id}_brain.nii"))) > 0
    return Scan(series, series.plane or Plane.AXIAL, read_volume(path), mask, read_rigid(source, series))


def _positions(scan: Scan, count: int, *, is_reference: bool) -> Points:
    """Points on the line through the centre of the brain along the slice axis, shape (count, 3), LPS+ in mm."""
    axis = SLICE_AXIS[scan.plane]
    brain = np.moveaxis(scan.brain, axis, 0)
    indices = uniform_slices(brain, count if is_reference else min(count, len(usable_slices(brain))))
    middle = [float(along.mean()) for along in np.nonzero(scan.brain)]
    centres = [[*middle[:axis], float(index), *middle[axis + 1 :]] for index in indices]
    return np.array([scan.image.TransformContinuousIndexToPhysicalPoint(centre[::-1]) for centre in centres])


def _carry(points: Points, matrix: npt.NDArray[np.floating]) -> Points:
    return np.asarray(points @ matrix[:3, :3].T + matrix[:3, 3])


def _places(scan: Scan, points: Points) -> list[Place]:
    """Find the native slices that lie nearest to points of the scan's own space; none twice, none outside."""
    axis = SLICE_AXIS[scan.plane]
    rows, columns = (entry for entry in range(3) if entry != axis)
    shape = scan.brain.shape
    found: dict[int, Place] = {}
    for point in points:
        where = list(scan.image.TransformPhysicalPointToContinuousIndex(point.tolist())[::-1])
        index = round(where[axis])
        if not 0 <= index < shape[axis] or index in found:
            continue
        row = where[rows] if scan.plane is Plane.AXIAL else shape[rows] - 1 - where[rows]  # see cut_plane
        where[axis] = float(index)
        shown = np.array([scan.image.TransformContinuousIndexToPhysicalPoint(where[::-1])])
        position = _carry(shown, np.linalg.inv(scan.rigid))[0, 2 - axis]
        found[index] = Place(index, (row, where[columns]), float(position))
    return list(found.values())


def _picture(scan: Scan, voxels: Floats, place: Place, side_mm: float) -> tuple[Floats, float]:
    spacing = scan.image.GetSpacing()[::-1]
    rows, columns = (size for axis, size in enumerate(spacing) if axis != SLICE_AXIS[scan.plane])
    cut = cut_plane(voxels, scan.plane, place.index)
    return square(cut, place.centre, (rows, columns), side_mm=side_mm, fill=float(voxels.min()))


def _image_id(scan: Scan, position_mm: float, taken: Container[str]) -> str:
    """Sequence, axis and position; the second series of a kind, and slices nearer than 1 mm, get a letter."""
    name = f"{scan.series.sequence.value.lower()}-{scan.plane.axis}{round(position_mm):+04d}"
    return next(f"{name}{letter}" for letter in ("", *"bcdefghijklmnopqrstuvwxyz") if f"{name}{letter}" not in taken)
