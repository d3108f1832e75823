"""Geometry of a raw series: spacing, gaps, tilt and plane from the positions of its slices, compared with the header."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.files import dicom
from neuralmedbench.records.case import PLANES_ACROSS, Plane

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

UIH_GRID = (0x0065, 0x1051)
"""UIH's private sequence with the positions of the tiles of a grid; the image itself has none."""
SAME_PLACE_MM = 0.02
UNEVEN = 0.25
"""Slices are uneven if one is further from an even grid than this fraction of the spacing."""
SAME_SPACING = 0.1
"""Steps of one block differ by no more than this fraction."""
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
        missing = missing_slices(steps, _instance_numbers(headers, first) if counts.max() == 1 else None)
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
    isotropic = float(sizes.max()) <= 1.1 * float(sizes.min())  # equal sides do not show how the slices were stacked: the shortest counts
    stack = int(np.argmin(shape[:3])) if isotropic else int(np.argmax(sizes))
    axis = int(np.argmax(np.abs(affine[:3, stack])))
    others = float(np.delete(sizes, stack).mean())
    quality = {"slices": float(shape[stack]), "pixel_mm": round(others, 4), "spacing_mm": round(float(sizes[stack]), 3)}
    plane = None if isotropic else _plane(axis, float(sizes[stack]), others)
    return Geometry(int(shape[stack]), 1, plane, quality=quality)


def is_mosaic(header: Dataset) -> bool:
    """Return whether an image holds all slices of a volume as tiles: a mosaic of Siemens, or a grid of UIH."""
    return "MOSAIC" in dicom.texts(header, "ImageType") or (UIH_GRID in header and not dicom.numbers(header, "ImagePositionPatient"))


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


def _instance_numbers(headers: SequenceOf[Dataset], first: Dataset) -> npt.NDArray[np.float64] | None:
    """Return the instance numbers of slices, ordered by position; None if one has none."""
    ordered = sorted(headers, key=lambda header: slice_position(header, first))
    numbers = [dicom.number(header, "InstanceNumber") for header in ordered]
    known = [number for number in numbers if number is not None]
    return np.array(known) if len(known) == len(numbers) else None


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


def missing_slices(steps: npt.NDArray[np.float64], numbers: npt.NDArray[np.float64] | None = None) -> int:
    """Count the slices that are missing between the others.

    Parameters
    ----------
    steps : ndarray, shape (Z - 1,)
        Distances between neighbouring slices in mm.
    numbers : ndarray, shape (Z,), optional
        Instance numbers of the slices: they show a slice that is missing where two blocks overlap.

    Returns
    -------
    int
        A sequential scan may be planned in blocks of different spacing, as in head CT; blocks may overlap.

    Examples
    --------
    >>> missing_slices(np.array([5.0, 5.0, 10.0, 5.0]))
    1
    >>> missing_slices(np.array([4.0, 4.0, 4.0, 1.1, 7.0, 7.0, 7.0]))
    0
    """
    blocks = _blocks(steps)
    spacings = np.array([block.spacing for block in blocks])
    covered = sum(block.stop - block.start for block in blocks)
    if len(blocks) < 2 or np.ptp(spacings) <= UNEVEN * spacings.min() or covered < 0.6 * len(steps):
        return 0 if _has_two_spacings(steps) else _skipped(steps, float(np.median(steps)))
    # wide blocks between finer steps are slices that are missing one after the other
    missing, planned = 0, []
    for block in blocks:
        finer = _spacing_around(steps, block, spacings)
        if finer:
            missing += _skipped(steps[block.start : block.stop], finer)
        else:
            planned.append(block)
    # steps in no block are gaps within one, or where two meet
    for place in sorted(set(range(len(steps))) - {place for block in blocks for place in range(block.start, block.stop)}):
        before = next((block for block in reversed(planned) if block.stop <= place), planned[0])
        after = next((block for block in planned if block.start > place), planned[-1])
        low, high = sorted((before.spacing, after.spacing))
        if high - low <= UNEVEN * low:
            missing += _skipped(steps[place], before.spacing)
        elif steps[place] > max((1 + UNEVEN) * (low + high) / 2, (1 + SAME_SPACING) * high):  # further apart than slices that touch
            missing += max(_skipped(steps[place], high), 1)
    return missing if numbers is None else max(missing, _skipped_numbers(numbers))


@dataclass(frozen=True)
class _Block:
    """Equal steps from `start` up to, not including, `stop`; spacing in mm."""

    start: int
    stop: int
    spacing: float


def _blocks(steps: npt.NDArray[np.float64]) -> list[_Block]:
    """Return the runs of at least two equal steps."""
    equal = np.abs(np.diff(steps)) <= SAME_SPACING * np.minimum(steps[1:], steps[:-1])
    ends = np.flatnonzero(~equal) + 1
    runs = zip([0, *ends], [*ends, len(steps)], strict=True)
    return [_Block(int(start), int(stop), float(np.median(steps[start:stop]))) for start, stop in runs if stop - start > 1]


def _spacing_around(steps: npt.NDArray[np.float64], block: _Block, spacings: npt.NDArray[np.float64]) -> float:
    """Return the finer spacing of which a block within finer steps is a multiple; 0 for a block that was planned as it is."""
    finer = spacings[spacings < (1 - SAME_SPACING) * block.spacing]
    beside = [*steps[max(block.start - 1, 0) : block.start], *steps[block.stop : block.stop + 1]]
    enclosed = len(beside) == 2 and all((np.abs(step - finer) <= SAME_SPACING * finer).any() for step in beside)
    ratios = block.spacing / finer
    multiples = finer[np.abs(ratios - np.round(ratios)) <= SAME_SPACING]
    return float(multiples.max()) if enclosed and len(multiples) else 0.0


def _skipped(steps: npt.NDArray[np.float64] | np.float64, spacing: float) -> int:
    """Return the number of slices of one spacing that steps leave out."""
    return int(np.maximum(np.round(steps / spacing) - 1, 0).sum())


def _skipped_numbers(numbers: npt.NDArray[np.float64]) -> int:
    """Return how many instance numbers are missing if the others follow each other but at a few places within; 0 for other numberings."""
    jumps = np.flatnonzero(np.abs(np.diff(numbers)) != 1)
    absent = int(np.ptp(numbers)) + 1 - len(numbers)
    within = len(jumps) > 0 and jumps[0] > 0 and jumps[-1] < len(numbers) - 2
    return absent if within and absent > 0 and max(absent, len(jumps)) <= len(numbers) // 4 else 0


def _has_two_spacings(steps: npt.NDArray[np.float64]) -> bool:
    """Return whether a series was planned with two spacings, whatever their scatter: one block of each, not single gaps."""
    wide = steps > 1.25 * steps.min()
    blocks = int(np.abs(np.diff(wide.astype(int))).sum()) + 1
    return blocks == 2 and 2 <= int(wide.sum()) <= len(steps) - 2


def _plane(axis: int | None, spacing: float, pixel: float) -> Plane | None:
    """Return the plane of a scan as it came in, None if it is isotropic; `imaging.quality.plane_of` decides anew after normalisation, and wins."""
    isotropic = spacing > 0 and pixel > 0 and spacing <= 1.5 * pixel and spacing <= 2.0
    return None if axis is None or isotropic else PLANES_ACROSS[axis]
