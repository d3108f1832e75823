"""Convert DICOM series to volumes at ingest: diffusion to its trace image, tilted or unevenly spaced series to a regular grid.

Both need headers that de-identification removes. dcm2niix corrects gantry tilt too, but displaces the volume by a few millimetres for
one sign of the tilt, and does not correct unsigned 16-bit images.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.dcm2niix import convert_largest
from neuralmedbench.files.nifti import LPS_TO_RAS, Volume
from neuralmedbench.ingest.geometry import is_mosaic, slice_normal
from neuralmedbench.ingest.pixels import copy_dicom
from neuralmedbench.ingest.raw_files import TILES, RawScan
from neuralmedbench.runtime.atomic_write import partial_folder

B0 = 50.0
"""Below this b-value in s/mm2 an image is not diffusion weighted."""


def trace_image(voxels: npt.NDArray[Any], b_values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float32], float]:
    """Compute the trace image of a diffusion series, shape (X, Y, Z, N), and return it with its b-value.

    It is the geometric mean over the gradient directions of the strongest weighting, independent of the direction of fibres. `b_values`
    has shape (N,), in s/mm2. DataError if b-values and volumes do not match, or nothing is weighted.
    """
    if voxels.ndim != 4 or voxels.shape[3] != len(b_values):
        message = f"{len(b_values)} b-values do not fit the volumes of a diffusion series"
        raise DataError(message)
    strongest = float(b_values.max())
    if strongest < B0:
        message = "a diffusion series without diffusion weighting (all b-values near 0)"
        raise DataError(message)
    chosen = np.flatnonzero(np.abs(b_values - strongest) <= _tolerance(strongest))
    logs = np.zeros(voxels.shape[:3], np.float32)
    for volume in chosen:  # one after another, so that no second copy of the series is held
        logs += np.log(np.maximum(voxels[..., volume].astype(np.float32), 1e-3))
    return np.exp(logs / np.float32(len(chosen))).astype(np.float32), strongest


def _tolerance(strongest: float) -> float:
    """Return the tolerance of one b-value: nominally equal ones differ slightly between gradients."""
    return max(0.05 * strongest, 20)


def read_b_values(path: Path) -> npt.NDArray[np.float64]:
    """Read a `.bval` file; DataError if it does not hold numbers."""
    try:
        return np.array([float(part) for part in path.read_text(encoding="ascii").split()])
    except (ValueError, UnicodeDecodeError):
        message = "the b-values beside a diffusion series are not numbers"
        raise DataError(message) from None


def strongest_weighting(scans: tuple[RawScan, ...], weights: SequenceOf[float | None]) -> tuple[tuple[RawScan, ...], float | None]:
    """Select the images of the strongest weighting, and return them with their b-value; `weights` are b-values in s/mm2.

    If a header has no b-value, all images are returned; the b-value is then the only one known, or None.
    """
    known = [weight for weight in weights if weight is not None]
    if not known or len(known) != len(scans):
        return scans, max(known, default=None) if len(set(known)) == 1 else None
    strongest = max(known)
    chosen = tuple(scan for scan, weight in zip(scans, known, strict=True) if strongest - weight <= _tolerance(strongest))
    return chosen, strongest


def weighted_volume(scans: tuple[RawScan, ...], folder: Path, b_value: float | None) -> tuple[Volume, float | None]:
    """Convert a diffusion series, and return its trace image (a single volume as it is) and b-value.

    `b_value` is that of all images, or None if only the converter can find the weights. Done before the vendor's private headers, which hold
    gradients and tiles, are removed. DataError if they lack either.
    """
    header = scans[0].header
    if header is not None and is_mosaic(header) and not any(place in header for place in TILES):
        message = "a mosaic without the vendor's private header, which tells how its tiles lie; export it again with private elements"
        raise DataError(message)
    folder.mkdir(parents=True, exist_ok=True)
    with partial_folder(folder) as work:  # not in the system's temporary folder: raw headers stay in the private zone
        copy_dicom(scans, work / "in")
        volume, files = convert_largest(work / "in", work / "out")
        bval = files.bval
        if volume.voxels.ndim == 3:
            known = read_b_values(bval) if bval is not None and b_value is None else np.array([])
            return volume, float(known[0]) if len(known) == 1 else b_value
        if b_value is not None:  # several gradients of one weighting
            voxels, b_value = trace_image(volume.voxels, np.full(volume.voxels.shape[3], b_value))
        elif bval is None:
            message = "diffusion weighting of a series of volumes is not in its headers"
            raise DataError(message)
        else:
            voxels, b_value = trace_image(volume.voxels, read_b_values(bval))
        return Volume(voxels, volume.affine), b_value


SAME_DIRECTION = 0.999
"""Smallest cosine between two directions that count as equal."""


def regrid_series(scans: SequenceOf[RawScan], folder: Path) -> Volume:
    """Convert a tilted or uneven DICOM series, and resample its slices to a regular grid by their positions."""
    folder.mkdir(parents=True, exist_ok=True)
    headers = [scan.header for scan in scans if scan.header is not None]
    positions = np.array([dicom.numbers(header, "ImagePositionPatient") for header in headers])
    normal = slice_normal(dicom.numbers(headers[0], "ImageOrientationPatient")) or (0.0, 0.0, 0.0)
    with partial_folder(folder) as work:
        copy_dicom(scans, work / "in")
        stack, _ = convert_largest(work / "in", work / "out", as_stacked=True)
        return regrid(stack, positions, normal)


def regrid(stack: Volume, positions: npt.NDArray[np.float64], slice_normal: SequenceOf[float]) -> Volume:
    """Resample a stack of slices to an orthogonal grid with even spacing: float32, linear interpolation.

    `positions` has shape (Z, 3): first voxel of every slice, LPS+ in mm, in the order of the slices or reversed. `slice_normal` is that of
    the headers, LPS+, of either sign. The new spacing is the median of the old ones; the grid grows where slices are shifted, and is filled
    with the darkest value. DataError if positions and slices do not match, as in a stack that the converter reoriented.
    """
    affine = stack.affine
    sides = affine[:3, :2] / np.linalg.norm(affine[:3, :2], axis=0)
    normal = np.cross(sides[:, 0], sides[:, 1])
    normal = normal * np.sign(normal @ affine[:3, 2])
    # check that the positions are those of the slices
    corners = _corners(stack, positions)
    along = corners @ normal
    turned = abs(normal @ (np.asarray(slice_normal) * LPS_TO_RAS)) < SAME_DIRECTION
    if turned or len(along) != stack.voxels.shape[2] or not (np.diff(along) > 0).all():
        message = "slices and their positions do not fit: the series cannot be straightened"
        raise DataError(message)
    # undo the shear within the slices
    pixel = np.linalg.norm(affine[:3, :2], axis=0)
    shifts = np.round((corners - corners[0]) @ sides / pixel, 6)  # in pixels, shape (Z, 2)
    voxels = stack.voxels.astype(np.float32)
    voxels, before = _shift_slices(voxels, shifts)
    # even spacing along the normal
    spacing = float(np.median(np.diff(along)))
    even = along[0] + spacing * np.arange(round((along[-1] - along[0]) / spacing) + 1)
    straight = affine.copy()
    straight[:3, 2] = normal * spacing
    straight[:3, 3] = affine[:3, 3] - affine[:3, :2] @ before
    return Volume(_between(voxels, along, np.minimum(even, along[-1])), straight)


def _corners(stack: Volume, positions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the positions of the slices' first voxels, RAS+ in mm, relative to the first slice of the stack and in its order."""
    ras = positions * LPS_TO_RAS
    ordered = ras if (ras[-1] - ras[0]) @ stack.affine[:3, 2] > 0 else ras[::-1]
    return np.asarray(ordered - ordered[0])


def _shift_slices(
    voxels: npt.NDArray[np.float32], shifts: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Shift each slice in its plane by `shifts` (pixels, shape (Z, 2)); return the padded voxels and the padding before the first pixel."""
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
    """Interpolate linearly between slices at positions `old` to positions `new`."""
    upper = np.clip(np.searchsorted(old, new, side="left"), 1, len(old) - 1)
    part = ((new - old[upper - 1]) / (old[upper] - old[upper - 1])).astype(np.float32)
    return np.asarray((1 - part) * voxels[..., upper - 1] + part * voxels[..., upper], dtype=np.float32)
