"""Does a series fit its reference better as its own mirror image? A converter that swaps left and right leaves no other trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralmedbench.atlas.matching import Pose, Target, agreement, climb, coarse_head, make_target
from neuralmedbench.files.volumes import image_like
from neuralmedbench.imaging.register import brain_centre

if TYPE_CHECKING:
    import SimpleITK as sitk

SEARCH_GRID_MM = 5.0
STEPS = (0.1, 0.1, 0.1, 6.0, 6.0, 6.0)
"""First steps of the search: turns in rad, shifts in mm; a head is never quite upright, and its mirror image leans the other way."""
MARGIN_MM = 12.0
"""Rim around the brain that takes part."""


@dataclass(frozen=True)
class Side:
    """The reference as a series and its mirror image are compared with it.

    Attributes
    ----------
    target : Target
        The brain with a rim around it.
    centre : tuple of float
        Centre of the brain, LPS+ in mm.
    """

    target: Target
    centre: tuple[float, float, float]


def make_side(reference: sitk.Image, brain: sitk.Image) -> Side:
    """Prepare the reference (float32) with its brain mask (uint8), LPS+, on one grid."""
    import SimpleITK as sitk

    pattern = coarse_head(reference, SEARCH_GRID_MM)
    near = sitk.BinaryDilate(
        sitk.Resample(brain, pattern, sitk.Transform(), sitk.sitkNearestNeighbor), [round(MARGIN_MM / SEARCH_GRID_MM)] * 3
    )
    return Side(make_target(pattern, sitk.GetArrayFromImage(near) > 0), brain_centre(brain))


def mirrored_margin(reference: Side, image: sitk.Image) -> float:
    """Compare a registered series with its mirror image.

    Parameters
    ----------
    reference : Side
        The reference.
    image : SimpleITK.Image
        The series (float32) in the space of the reference, on the same grid.

    Returns
    -------
    float
        Agreement with the reference (mutual information in nats) less that of its mirror image, both after a search over small turns and
        shifts. Below 0 the mirror image fits better: left and right may be swapped in one of both. Heads are nearly symmetric, so that a
        value near 0 tells nothing.
    """
    import SimpleITK as sitk

    target, centre = reference.target, reference.centre
    rough = coarse_head(image, SEARCH_GRID_MM)
    swapped = _mirror(rough, centre)

    def best(moving: sitk.Image) -> float:
        def value(pose: Pose) -> float:
            return agreement(target, moving, sitk.Euler3DTransform(centre, *pose[:3], pose[3:6]))

        return value(climb(value, [(0.0,) * 6], STEPS))

    return round(best(rough) - best(swapped), 4)


def _mirror(image: sitk.Image, centre: tuple[float, float, float]) -> sitk.Image:
    """Mirror a volume in the sagittal plane through a point; its grid stays where it is."""
    import SimpleITK as sitk

    flipped = image_like(sitk.GetArrayFromImage(image)[:, :, ::-1], image)
    across = np.array(image.GetDirection()).reshape(3, 3)[:, 0]
    middle = image.TransformContinuousIndexToPhysicalPoint([(side - 1) / 2 for side in image.GetSize()])
    offset = 2 * float(np.dot(np.subtract(centre, middle), across))
    flipped.SetOrigin((np.array(image.GetOrigin()) + offset * across).tolist())
    return flipped
