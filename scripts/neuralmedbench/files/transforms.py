"""Affine transforms of SimpleITK and their homogeneous matrices, LPS+ in mm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import SimpleITK as sitk

Matrix = npt.NDArray[np.float64]


def homogeneous(linear: npt.NDArray[np.floating], shift: npt.NDArray[np.floating]) -> Matrix:
    """Put the linear part, shape (3, 3), and the shift, shape (3,), into one matrix, shape (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = linear, shift
    return matrix


def as_matrix(transform: sitk.Transform) -> Matrix:
    """Give the homogeneous matrix, shape (4, 4), of a rigid, similarity or affine transform, whatever its centre."""
    linear = np.array([transform.TransformVector(axis, (0.0, 0.0, 0.0)) for axis in np.eye(3).tolist()]).T
    return homogeneous(linear, np.array(transform.TransformPoint((0.0, 0.0, 0.0))))


def as_transform(matrix: npt.NDArray[np.floating]) -> sitk.AffineTransform:
    """Turn a homogeneous matrix, shape (4, 4), into a transform."""
    import SimpleITK as sitk

    transform = sitk.AffineTransform(3)
    transform.SetMatrix(matrix[:3, :3].ravel().tolist())
    transform.SetTranslation(matrix[:3, 3].tolist())
    return transform
