"""From voxels to a grey picture: one window a volume, square pixels, bytes that are equal when the picture is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.records.case import Plane, Sequence

Floats = npt.NDArray[np.float32]
WINDOW_HU = {Sequence.CT: (0.0, 80.0), Sequence.CE_CT: (0.0, 160.0)}
"""CT is shown in fixed windows: brain, and brain with vessels."""
PERCENTILES = (0.5, 99.5)
BRIGHT_PERCENTILES = (1.0, 99.8)
"""For sequences in which the finding is the brightest spot of the brain."""
BRIGHT = (Sequence.DWI, Sequence.CE_T1W)
DWI_MEDIANS = 4.0
"""Brightest value that a diffusion picture distinguishes, in medians of the brain: more would turn the brain around it black."""
ADC_MEDIANS = 2.5
"""Brightest value of an ADC map, which starts at 0: with the fluid as white the brain, and what is dark in it, would drown."""
SLICE_AXIS = {plane: "zyx".index(plane.axis) for plane in Plane}
"""Axis of an LPS+ array (Z, Y, X) along which the slices of a plane follow each other."""


def window_of(sequence: Sequence, voxels: Floats, brain: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Choose the intensities that are shown as black and white.

    Parameters
    ----------
    sequence : Sequence
        Kind of scan; CT gets a fixed window in HU.
    voxels : ndarray of float32, shape (Z, Y, X)
        The volume.
    brain : ndarray of bool, shape (Z, Y, X)
        Where the percentiles are taken: with the scalp, fat would set the scale.

    Returns
    -------
    tuple of float
        Black and white, in the volume's own units, rounded to four digits.

    Raises
    ------
    DataError
        If the brain is empty or of one value.
    """
    if sequence in WINDOW_HU:
        return WINDOW_HU[sequence]
    inside = voxels[brain]
    if not inside.size:
        message = f"the {sequence.value} scan shows no brain, so that no window can be chosen; exclude the series"
        raise DataError(message)
    low, high = (float(value) for value in np.percentile(inside, BRIGHT_PERCENTILES if sequence in BRIGHT else PERCENTILES))
    median = float(np.median(inside))
    if sequence is Sequence.DWI:
        high = min(high, DWI_MEDIANS * median)
    if sequence is Sequence.ADC:
        low, high = 0.0, min(high, ADC_MEDIANS * median)
    low, high = float(f"{low:.4g}"), float(f"{high:.4g}")
    if high <= low:
        message = f"the brain of the {sequence.value} scan has one grey value only; exclude the series"
        raise DataError(message)
    return low, high


def cut_plane(voxels: Floats, plane: Plane, index: int) -> Floats:
    """Take one slice out of a volume, as a reader expects it.

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


def square(cut: Floats, centre: tuple[float, float], spacing: tuple[float, float], *, side_mm: float, fill: float) -> tuple[Floats, float]:
    """Cut a square with square pixels out of a slice.

    Parameters
    ----------
    cut : ndarray, shape (rows, columns)
        The slice.
    centre : tuple of float
        Row and column (continuous) that shall be in the middle.
    spacing : tuple of float
        Size of a pixel along rows and columns in mm.
    side_mm : float
        Side of the square.
    fill : float
        Value outside the slice.

    Returns
    -------
    tuple of ndarray and float
        The picture, shape (n, n), and the size of its pixels in mm: the smaller one of the slice.

    Notes
    -----
    Pixels that are square already are only moved by whole pixels, never interpolated. Others are interpolated linearly along
    the coarser axis.
    """
    size = min(spacing)
    number = max(8, round(side_mm / size))
    if abs(spacing[0] - spacing[1]) <= 1e-3 * size:
        corner = [round(middle - (number - 1) / 2) for middle in centre]
        picture = np.full((number, number), fill, dtype=cut.dtype)
        low = [max(0, -start) for start in corner]
        high = [min(number, side - start) for start, side in zip(corner, cut.shape, strict=True)]
        if high[0] > low[0] and high[1] > low[1]:
            rows, columns = (slice(start + a, start + b) for start, a, b in zip(corner, low, high, strict=True))
            picture[low[0] : high[0], low[1] : high[1]] = cut[rows, columns]
        return picture, size
    steps = (np.arange(number) - (number - 1) / 2) * size
    picture = _interpolate(cut, centre[0] + steps / spacing[0], fill)
    return _interpolate(picture.T, centre[1] + steps / spacing[1], fill).T.astype(cut.dtype), size


def _interpolate(values: Floats, positions: npt.NDArray[np.floating], fill: float) -> Floats:
    """Linear interpolation along axis 0."""
    floor = np.floor(positions).astype(int)
    weight = (positions - floor)[:, None]
    last = len(values) - 1
    mixed = values[np.clip(floor, 0, last)] * (1 - weight) + values[np.clip(floor + 1, 0, last)] * weight
    outside = (positions < -0.5) | (positions > last + 0.5)
    mixed[outside] = fill
    return np.asarray(mixed, dtype=np.float32)


def to_grey(picture: Floats, window: tuple[float, float]) -> npt.NDArray[np.uint8]:
    """Show a window of intensities as 0 (black) to 255 (white)."""
    low, high = window
    return np.asarray(np.clip((picture - low) / (high - low) * 255.0, 0, 255).round(), dtype=np.uint8)
