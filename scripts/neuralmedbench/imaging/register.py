"""Rigid registration of the series of a case to its reference: patients move between series, and headers do not record it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.matching import Pose, Target, agreement, climb, coarse_head, make_target, refine, rigid
from neuralmedbench.files.volumes import as_matrix, centre_of

if TYPE_CHECKING:
    import SimpleITK as sitk

SEARCH_GRID_MM = 6.0
STEPS = (0.1, 0.08, 0.08, 6.0, 6.0, 8.0)
"""Initial step sizes of the search: rotations in rad, translations in mm."""
MARGIN_MM = 12.0
"""Width of the rim around the brain that is compared too: skull and scalp move with it, jaw and neck do not."""


@dataclass(frozen=True)
class RegistrationReference:
    """The series to which all others are registered.

    Attributes
    ----------
    coarse, fine : Target
        For the search (`SEARCH_GRID_MM`) and for the refinement.
    centre : tuple of float
        Centre of the brain, LPS+ in mm; the centre of rotation.
    """

    coarse: Target
    fine: Target
    centre: tuple[float, float, float]


def make_reference(image: sitk.Image, brain: sitk.Image, *, grid_mm: float) -> RegistrationReference:
    """Prepare the reference series.

    Parameters
    ----------
    image, brain : SimpleITK.Image
        The scan (float32) and its brain mask (uint8) on the same grid.
    grid_mm : float
        Voxel size of the refinement.
    """
    return RegistrationReference(brain_target(image, brain, SEARCH_GRID_MM), brain_target(image, brain, grid_mm), brain_centre(brain))


def brain_target(image: sitk.Image, brain: sitk.Image, grid_mm: float) -> Target:
    """Return the brain of a scan and a rim around it, on an isotropic grid, as a target; parameters as in `make_reference`."""
    import SimpleITK as sitk

    pattern = coarse_head(image, grid_mm)
    inside = sitk.Resample(brain, pattern, sitk.Transform(), sitk.sitkNearestNeighbor)
    near = sitk.BinaryDilate(inside, [max(1, round(MARGIN_MM / grid_mm))] * 3)
    return make_target(pattern, sitk.GetArrayFromImage(near) > 0)


def brain_centre(brain: sitk.Image) -> tuple[float, float, float]:
    """Return the centre of mass of a mask, LPS+ in mm."""
    import SimpleITK as sitk

    z, y, x = centre_of(sitk.GetArrayViewFromImage(brain) > 0)
    point = brain.TransformContinuousIndexToPhysicalPoint([x, y, z])
    return float(point[0]), float(point[1]), float(point[2])


@dataclass(frozen=True)
class Registration:
    """Rigid transform from the reference to another series.

    Attributes
    ----------
    matrix : ndarray of float, shape (4, 4)
        Maps points of the reference to points of the series, homogeneous LPS+ in mm, rounded to 1e-6.
    before, after : float
        Agreement (mutual information in nats times coverage) with the header's positions alone, and with the matrix.
    """

    matrix: npt.NDArray[np.float64]
    before: float
    after: float


def register(reference: RegistrationReference, image: sitk.Image) -> Registration:
    """Register another series of the same patient to the reference.

    Parameters
    ----------
    reference : RegistrationReference
        The reference.
    image : SimpleITK.Image
        The other series, float32, any contrast.

    Notes
    -----
    A hill climb over some centimetres starts from the header's positions and from aligned head centres; gradient descent then refines
    to tenths of a millimetre, and is kept only if it improves the agreement. Deterministic with one thread.
    """
    rough = coarse_head(image, reference.fine.pattern.GetSpacing()[0])

    def value(pose: Pose) -> float:
        return agreement(reference.coarse, rough, rigid(pose, reference.centre))

    # search on the coarse grid, from the header's positions and from aligned head centres
    header: Pose = (0.0,) * 6
    shift = np.subtract(_head_centre(rough), _head_centre(reference.fine.pattern))
    by_centre: Pose = (0.0, 0.0, 0.0, float(shift[0]), float(shift[1]), float(shift[2]))
    searched = rigid(climb(value, [header, by_centre], STEPS), reference.centre)
    # refine, and keep the better one
    refined = _refine(reference.fine, rough, searched)
    before = agreement(reference.fine, rough, rigid(header, reference.centre))
    after, best = max(((agreement(reference.fine, rough, way), way) for way in (searched, refined)), key=lambda pair: pair[0])
    return Registration(as_matrix(best).round(6), before, after)


def _head_centre(image: sitk.Image) -> npt.NDArray[np.float64]:
    """Return the centre of the voxels brighter than the mean, LPS+ in mm."""
    import SimpleITK as sitk

    voxels = sitk.GetArrayViewFromImage(image)
    return np.array(image.TransformContinuousIndexToPhysicalPoint(centre_of(voxels > voxels.mean())[::-1]))


def _refine(target: Target, moving: sitk.Image, start: sitk.Euler3DTransform) -> sitk.Euler3DTransform:
    import SimpleITK as sitk

    transform = sitk.Euler3DTransform(start)
    refined = refine(target, moving, transform, sampled=0.3, first_step=1.0, last_step=0.01, iterations=60)
    return transform if refined else start


def rotation_deg(matrix: npt.NDArray[np.float64]) -> float:
    """Return the rotation angle of a rigid matrix in degrees."""
    return float(np.degrees(np.arccos(np.clip((np.trace(matrix[:3, :3]) - 1) / 2, -1, 1))))
