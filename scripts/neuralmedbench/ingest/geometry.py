"""Where the slices of a raw series lie: measured from their positions, compared with what the header claims."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.ingest.orientation import main_axis, slice_position
from neuralmedbench.ingest.raw_series import RawSeries
from neuralmedbench.io import dicom
from neuralmedbench.records.case import Plane

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

PLANES = (Plane.SAGITTAL, Plane.CORONAL, Plane.AXIAL)
SAME_PLACE_MM = 0.01
UNEVEN = 0.05
"""Distances between slices that differ by more than this part of their median are uneven."""


@dataclass(frozen=True)
class Geometry:
    """What positions say about a series.

    Attributes
    ----------
    slices : int
        Different positions.
    volumes : int
        Images at each position; more than one is a series of volumes.
    plane : Plane or None
        Plane of acquisition; None for (nearly) isotropic 3-D scans.
    flags : tuple of str
        `positions_and_thickness_disagree`, `uneven_spacing`, `missing_slices`.
    quality : dict of str to float
        `slices`, `spacing_mm`, `pixel_mm`, `missing_slices`.
    """

    slices: int
    volumes: int
    plane: Plane | None
    flags: tuple[str, ...] = ()
    quality: dict[str, float] = field(default_factory=dict)


def measure_dicom(series: RawSeries) -> Geometry:
    """Measure a DICOM series; the distance between slices comes from their positions, never from the thickness."""
    first = series.scans[0].header
    if first is None:
        return Geometry(0, 0, None)
    positions = np.array([slice_position(scan.header, first) for scan in series.scans if scan.header is not None])
    frames = int(dicom.number(first, "NumberOfFrames") or 1)
    if len(positions) == 1 and frames > 1:
        return Geometry(frames, 1, _plane(main_axis(dicom.numbers(first, "ImageOrientationPatient")), 0.0, 0.0), quality={"slices": frames})
    places = np.unique(np.round(positions / SAME_PLACE_MM)) * SAME_PLACE_MM
    pixel = dicom.number(first, "PixelSpacing") or 0.0
    quality = {"slices": float(len(places)), "pixel_mm": round(pixel, 4)}
    flags: list[str] = []
    spacing = 0.0
    if len(places) > 1:
        steps = np.diff(places)
        spacing = float(np.median(steps))
        missing = missing_slices(steps)
        quality |= {"spacing_mm": round(spacing, 3), "missing_slices": float(missing)}
        claimed, tolerance = _claimed_spacing(first)
        if claimed and abs(claimed - spacing) > tolerance * spacing:
            flags.append("positions_and_thickness_disagree")
        if float(np.ptp(steps)) > UNEVEN * spacing:
            flags.append("uneven_spacing")
        if missing:
            flags.append("missing_slices")
    axis = main_axis(dicom.numbers(first, "ImageOrientationPatient"))
    return Geometry(len(places), round(len(positions) / len(places)), _plane(axis, spacing, pixel), tuple(flags), quality)


def _claimed_spacing(header: Dataset) -> tuple[float | None, float]:
    """Spacing that the header claims, and the part by which it may be wrong: thickness leaves the gap between slices out."""
    between = dicom.number(header, "SpacingBetweenSlices")
    return (abs(between), UNEVEN) if between else (dicom.number(header, "SliceThickness"), 0.35)


def missing_slices(steps: npt.NDArray[np.float64]) -> int:
    """Slices that lack in an otherwise even series.

    Examples
    --------
    >>> missing_slices(np.array([5.0, 5.0, 10.0, 5.0]))
    1
    """
    return int(np.maximum(np.round(steps / np.median(steps)) - 1, 0).sum())


def measure_affine(affine: npt.NDArray[np.float64], shape: SequenceOf[int]) -> Geometry:
    """Measure a NIfTI file by its affine, (4, 4), RAS+ in mm, and the shape of its voxels (x, y, z)."""
    sizes = np.linalg.norm(affine[:3, :3], axis=0)
    stack = int(np.argmax(sizes))
    axis = int(np.argmax(np.abs(affine[:3, stack])))
    others = float(np.delete(sizes, stack).mean())
    quality = {"slices": float(shape[stack]), "pixel_mm": round(others, 4), "spacing_mm": round(float(sizes[stack]), 3)}
    even = float(sizes.max()) <= 1.1 * float(sizes.min())  # equal sides do not tell how the slices were stacked
    plane = None if even else _plane(axis, float(sizes[stack]), others)
    return Geometry(int(shape[stack]), 1, plane, quality=quality)


def _plane(axis: int | None, spacing: float, pixel: float) -> Plane | None:
    isotropic = spacing > 0 and pixel > 0 and spacing <= 1.5 * pixel and spacing <= 2.0
    return None if axis is None or isotropic else PLANES[axis]
