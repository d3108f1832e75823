"""Geometry of a raw series: spacing, gaps, tilt and plane from the positions of its slices, compared with the header."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.files import dicom
from neuralmedbench.records.case import Plane

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

PLANES = (Plane.SAGITTAL, Plane.CORONAL, Plane.AXIAL)
SAME_PLACE_MM = 0.02
UNEVEN = 0.25
"""Slices are uneven if one is further from an even grid than this fraction of the spacing."""
MAX_TILT_DEG = 0.5
"""Up to this tilt, slices of a stack that was rotated by hand are shifted by less than half a pixel."""


@dataclass(frozen=True)
class Geometry:
    """Geometry of a series.

    Attributes
    ----------
    slices : int
        Number of different positions.
    volumes : int
        Images per position; more than one in a series of volumes.
    plane : Plane or None
        Plane of acquisition; None for (nearly) isotropic 3-D scans.
    flags : tuple of str
        `positions_and_thickness_disagree`, `uneven_spacing`, `missing_slices`, `gantry_tilt`, `incomplete_volumes`.
    quality : dict of str to float
        `slices`, `spacing_mm`, `pixel_mm`, `missing_slices`, and `tilt_deg` of tilted series.
    """

    slices: int
    volumes: int
    plane: Plane | None
    flags: tuple[str, ...] = ()
    quality: dict[str, float] = field(default_factory=dict)


def measure_dicom(headers: SequenceOf[Dataset]) -> Geometry:
    """Measure a series by the headers of its images; spacing comes from positions, never from the slice thickness."""
    first = headers[0]
    # positions along the normal of the slices: several images at each mean several volumes
    places, counts = _places(np.array([slice_position(header, first) for header in headers]))
    pixel = dicom.number(first, "PixelSpacing") or 0.0
    quality = {"slices": float(len(places)), "pixel_mm": round(pixel, 4)}
    flags: list[str] = []
    spacing = 0.0
    if len(places) > 1:
        steps = np.diff(places)
        spacing = float(np.median(steps))
        missing = 0 if _has_two_spacings(steps) else missing_slices(steps)
        quality |= {"spacing_mm": round(spacing, 3), "missing_slices": float(missing)}
        # compare with the header, and look for what makes the stack no regular grid
        claimed, tolerance = _claimed_spacing(first)
        if claimed and abs(claimed - spacing) > tolerance * spacing:
            flags.append("positions_and_thickness_disagree")
        if _is_uneven(places):
            flags.append("uneven_spacing")
        if missing:
            flags.append("missing_slices")
        tilt = _tilt_deg(headers)
        if abs(tilt) > MAX_TILT_DEG:
            quality["tilt_deg"] = round(tilt, 2)
            flags.append("gantry_tilt")
    if counts.min() != counts.max():
        flags.append("incomplete_volumes")
    axis = main_axis(dicom.numbers(first, "ImageOrientationPatient"))
    return Geometry(len(places), int(counts.max()), _plane(axis, spacing, pixel), tuple(flags), quality)


def measure_affine(affine: npt.NDArray[np.float64], shape: SequenceOf[int]) -> Geometry:
    """Measure a NIfTI file by its affine, (4, 4), RAS+ in mm, and the shape of its voxels (x, y, z)."""
    sizes = np.linalg.norm(affine[:3, :3], axis=0)
    stack = int(np.argmax(sizes))
    axis = int(np.argmax(np.abs(affine[:3, stack])))
    others = float(np.delete(sizes, stack).mean())
    quality = {"slices": float(shape[stack]), "pixel_mm": round(others, 4), "spacing_mm": round(float(sizes[stack]), 3)}
    isotropic = float(sizes.max()) <= 1.1 * float(sizes.min())  # equal sides do not show how the slices were stacked
    plane = None if isotropic else _plane(axis, float(sizes[stack]), others)
    return Geometry(int(shape[stack]), 1, plane, quality=quality)


def slice_normal(orientation: SequenceOf[float]) -> tuple[float, float, float] | None:
    """Return the normal of a slice, LPS+, from its ImageOrientationPatient (six cosines); None without them."""
    if len(orientation) != 6:
        return None
    a, b = orientation[:3], orientation[3:]
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def main_axis(orientation: SequenceOf[float]) -> int | None:
    """Return the axis (0 left-right, 1 front-back, 2 feet-head) along which slices of an orientation are stacked; None if unknown."""
    normal = slice_normal(orientation)
    return None if normal is None else max(range(3), key=lambda axis: abs(normal[axis]))


def slice_position(header: Dataset, first: Dataset) -> float:
    """Return the position of a slice in mm along the normal of the series' first slice; 0 without positions."""
    normal = slice_normal(dicom.numbers(first, "ImageOrientationPatient"))
    origin = dicom.numbers(header, "ImagePositionPatient")
    if normal is None or len(origin) != 3:
        return 0.0
    return sum(cosine * place for cosine, place in zip(normal, origin, strict=True))


def _places(positions: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the different positions in mm, ascending, and the number of images at each."""
    ordered = np.sort(positions)
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > SAME_PLACE_MM)
    return ordered[starts], np.diff(np.append(starts, len(ordered)))


def _is_uneven(places: npt.NDArray[np.float64]) -> bool:
    """Return whether slices are off an even grid by more than rounding in the header."""
    even = np.linspace(places[0], places[-1], len(places))
    return bool(np.abs(places - even).max() > UNEVEN * (even[1] - even[0]))


def _tilt_deg(headers: SequenceOf[Dataset]) -> float:
    """Return the angle between the stacking direction and the slice normal in degrees: 0 unless the gantry was tilted."""
    origins = np.array([dicom.numbers(header, "ImagePositionPatient") for header in headers])
    cosines = np.array(dicom.numbers(headers[0], "ImageOrientationPatient"))
    row, column = cosines[:3], cosines[3:]
    stack = origins[-1] - origins[0]
    along = float(stack @ np.cross(row, column))
    across = max((float(stack @ row), float(stack @ column)), key=abs)
    return float(np.degrees(np.arctan2(across, abs(along)))) if along else 0.0


def _claimed_spacing(header: Dataset) -> tuple[float | None, float]:
    """Return the spacing stated in the header, and its tolerance as a fraction: larger for the thickness, which excludes the gap."""
    between = dicom.number(header, "SpacingBetweenSlices")
    return (abs(between), UNEVEN) if between else (dicom.number(header, "SliceThickness"), 0.35)


def missing_slices(steps: npt.NDArray[np.float64]) -> int:
    """Count the missing slices of an otherwise even series.

    Examples
    --------
    >>> missing_slices(np.array([5.0, 5.0, 10.0, 5.0]))
    1
    """
    return int(np.maximum(np.round(steps / np.median(steps)) - 1, 0).sum())


def _has_two_spacings(steps: npt.NDArray[np.float64]) -> bool:
    """Return whether a series was planned with two spacings, as in older head CT: one block of each, not single gaps."""
    wide = steps > 1.25 * steps.min()
    blocks = int(np.abs(np.diff(wide.astype(int))).sum()) + 1
    return blocks == 2 and 2 <= int(wide.sum()) <= len(steps) - 2


def _plane(axis: int | None, spacing: float, pixel: float) -> Plane | None:
    isotropic = spacing > 0 and pixel > 0 and spacing <= 1.5 * pixel and spacing <= 2.0
    return None if axis is None or isotropic else PLANES[axis]
