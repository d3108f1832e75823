"""Regrid a tilted (gantry tilt) or unevenly spaced series: a straight, even grid at the places that its headers give.

The converter straightens tilted CT too, but then puts the volume a few millimetres beside its place for one sign of the tilt, and
leaves unsigned 16-bit images as they are.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.dcm2niix import convert
from neuralmedbench.files.nifti import Volume, read_nifti
from neuralmedbench.ingest.geometry import slice_normal
from neuralmedbench.ingest.pixels import copy_dicom
from neuralmedbench.ingest.raw_files import RawScan
from neuralmedbench.runtime.atomic_write import partial_folder

LPS_TO_RAS = np.array([-1.0, -1.0, 1.0])
SAME_DIRECTION = 0.999
"""Least cosine between two directions that are one."""


def regrid_series(scans: SequenceOf[RawScan], folder: Path) -> Volume:
    """Convert a tilted or uneven DICOM series in `folder` and put its slices where their positions say."""
    folder.mkdir(parents=True, exist_ok=True)
    headers = [scan.header for scan in scans if scan.header is not None]
    positions = np.array([dicom.numbers(header, "ImagePositionPatient") for header in headers])
    normal = slice_normal(dicom.numbers(headers[0], "ImageOrientationPatient")) or (0.0, 0.0, 0.0)
    with partial_folder(folder) as work:
        copy_dicom(scans, work / "in")
        results = convert(work / "in", work / "out", as_stacked=True)
        stack = max((read_nifti(result.image) for result in results), key=lambda volume: volume.voxels.size)
        return regrid(stack, positions, normal)


def regrid(stack: Volume, positions: npt.NDArray[np.float64], slice_normal: SequenceOf[float]) -> Volume:
    """Resample a stack of slices onto a grid at right angles with even spacing.

    `positions`: shape (Z, 3); position of the first voxel of every slice, LPS+, mm, in the order of the slices or reversed. `slice_normal`:
    normal of the slices by their headers, LPS+, of either sign. Returns: float32; linear between neighbouring pixels and slices; what lies
    outside the scan has its darkest value. Raises DataError if positions and slices do not fit, as when the stack was turned before.

    The distance of the new slices is the median of the old ones. The grid grows where slices stick out.
    """
    affine = stack.affine
    sides = affine[:3, :2] / np.linalg.norm(affine[:3, :2], axis=0)
    normal = np.cross(sides[:, 0], sides[:, 1])
    normal = normal * np.sign(normal @ affine[:3, 2])
    corners = _corners(stack, positions)
    along = corners @ normal
    turned = abs(normal @ (np.asarray(slice_normal) * LPS_TO_RAS)) < SAME_DIRECTION
    if turned or len(along) != stack.voxels.shape[2] or not (np.diff(along) > 0).all():
        message = "slices and their positions do not fit: the series cannot be straightened"
        raise DataError(message)
    pixel = np.linalg.norm(affine[:3, :2], axis=0)
    shifts = np.round((corners - corners[0]) @ sides / pixel, 6)  # in pixels, shape (Z, 2)
    voxels = stack.voxels.astype(np.float32)
    voxels, before = _shift_slices(voxels, shifts)
    spacing = float(np.median(np.diff(along)))
    even = along[0] + spacing * np.arange(round((along[-1] - along[0]) / spacing) + 1)
    straight = affine.copy()
    straight[:3, 2] = normal * spacing
    straight[:3, 3] = affine[:3, 3] - affine[:3, :2] @ before
    return Volume(_between(voxels, along, np.minimum(even, along[-1])), straight)


def _corners(stack: Volume, positions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Places of the slices' first voxels, RAS+, relative to the first slice of the stack and in its order."""
    ras = positions * LPS_TO_RAS
    ordered = ras if (ras[-1] - ras[0]) @ stack.affine[:3, 2] > 0 else ras[::-1]
    return np.asarray(ordered - ordered[0])


def _shift_slices(
    voxels: npt.NDArray[np.float32], shifts: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Move each slice by a part of a pixel within a plane that is made large enough; gives how many pixels were put before the first."""
    before = np.ceil(np.maximum(-shifts.min(axis=0), 0))
    after = np.ceil(np.maximum(shifts.max(axis=0), 0))
    padding = [(int(low), int(high)) for low, high in zip(before, after, strict=True)]
    wide = np.pad(voxels, [*padding, (0, 0)], constant_values=float(voxels.min()))
    for number, shift in enumerate(shifts):
        for axis in (0, 1):
            whole = int(np.floor(shift[axis]))
            part = np.float32(shift[axis] - whole)
            plane = wide[..., number]
            wide[..., number] = (1 - part) * np.roll(plane, whole, axis=axis) + part * np.roll(plane, whole + 1, axis=axis)
    return wide, before


def _between(voxels: npt.NDArray[np.float32], old: npt.NDArray[np.float64], new: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    upper = np.clip(np.searchsorted(old, new, side="left"), 1, len(old) - 1)
    part = ((new - old[upper - 1]) / (old[upper] - old[upper - 1])).astype(np.float32)
    return np.asarray((1 - part) * voxels[..., upper - 1] + part * voxels[..., upper], dtype=np.float32)
