"""How the slices of a DICOM series are turned and stacked, by their headers."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING

from neuralmedbench.files import dicom

if TYPE_CHECKING:
    from pydicom.dataset import Dataset


def slice_normal(orientation: SequenceOf[float]) -> tuple[float, float, float] | None:
    """Give the normal of a slice, LPS+, from its ImageOrientationPatient (six cosines); None when they are not there."""
    if len(orientation) != 6:
        return None
    a, b = orientation[:3], orientation[3:]
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def main_axis(orientation: SequenceOf[float]) -> int | None:
    """Axis (0 left-right, 1 front-back, 2 feet-head) that the slices of an orientation are stacked along; None when unknown."""
    normal = slice_normal(orientation)
    return None if normal is None else max(range(3), key=lambda axis: abs(normal[axis]))


def slice_position(header: Dataset, first: Dataset) -> float:
    """Position of a slice in mm along the normal of the series' first slice; 0 without positions."""
    normal = slice_normal(dicom.numbers(first, "ImageOrientationPatient"))
    origin = dicom.numbers(header, "ImagePositionPatient")
    if normal is None or len(origin) != 3:
        return 0.0
    return sum(cosine * place for cosine, place in zip(normal, origin, strict=True))
