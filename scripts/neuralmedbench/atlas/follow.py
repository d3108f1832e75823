"""A fit of the template carried from one scan of a head to another scan of the same head: between them it only moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.fit import GRID_MM, SEARCH_GRID_MM
from neuralmedbench.atlas.matching import Pose, Target, agreement, climb, make_target
from neuralmedbench.files.volumes import as_matrix, as_transform, grid_over, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

LOOKS: tuple[tuple[float, Pose], ...] = (
    (SEARCH_GRID_MM, (0.1, 0.08, 0.08, 6.0, 6.0, 8.0)),
    (GRID_MM, (0.03, 0.03, 0.03, 2.0, 2.0, 2.0)),
)
"""Grid in mm and first steps (turns in rad, shifts in mm) of the search, and of a closer look where the first one leaves doubts."""
HEIGHTS_MM = (0.0, -12.0, 12.0, -24.0, 24.0)
"""Where the search looks first, up and down of the place that the headers tell."""
SHOWN, RIM_MM = 0.35, 12.0
"""What counts as head, in parts of the mean and the spread of the grey values, and the rim of air around it that takes part."""
RIVAL_MM, MAX_RIVAL = 6.0, 0.83
"""A place is sure when the best one this far beside it agrees less than this part as well: right ones reached 0.81, wrong ones began at 0.87."""
MIN_THICK_MM = 20.0
"""A thinner slab fits in many places."""


@dataclass(frozen=True)
class Followed:
    """A fit that came from another scan.

    Attributes
    ----------
    transform : SimpleITK.AffineTransform
        Maps points of the scan to MNI152 space.
    rival : float
        How well the best place beside it agrees, in parts of the agreement here; 1 when nothing could be compared.
    sure : bool
        Whether the scan lies clearly here and nowhere beside.
    """

    transform: sitk.AffineTransform
    rival: float
    sure: bool


def follow(rough: sitk.Image, other: sitk.Image, fit: sitk.Transform, guess: sitk.Transform | None = None) -> Followed:
    """Carry a fit over to another scan of the same head.

    Parameters
    ----------
    rough, other : SimpleITK.Image
        The scan, and the one that has a fit, as `coarse_head` gives them; the scan may be a slab.
    fit : SimpleITK.Transform
        From points of the other scan to the template.
    guess : SimpleITK.Transform, optional
        A fit of the scan itself, from which the search starts beside the places that the headers tell.

    Returns
    -------
    Followed
        The fit.

    Notes
    -----
    Rigid registration by mutual information over the head of the scan and a rim of air. The scan is the target, so that a slab is not
    drawn to where more of it would be covered. Deterministic.
    """
    import SimpleITK as sitk

    starts: list[Pose] = [(0.0, 0.0, 0.0, 0.0, 0.0, height) for height in HEIGHTS_MM]
    centre = rough.TransformContinuousIndexToPhysicalPoint([(side - 1) / 2 for side in rough.GetSize()])
    if guess is not None:
        starts = [_rigid_part(np.linalg.inv(as_matrix(fit)) @ as_matrix(guess), np.array(centre))]
    if min(side * step for side, step in zip(rough.GetSize(), rough.GetSpacing(), strict=True)) < MIN_THICK_MM:
        return Followed(as_transform(as_matrix(fit)), 1.0, sure=False)

    def way(pose: Pose) -> sitk.Euler3DTransform:
        return sitk.Euler3DTransform(centre, *pose[:3], pose[3:6])

    def agreement_on(target: Target) -> Callable[[Pose], float]:
        return lambda pose: agreement(target, other, way(pose))

    best, rival = starts[0], 1.0
    for grid_mm, steps in LOOKS:
        target = _head_target(resample_to(rough, grid_over(rough, grid_mm)), grid_mm)
        best, rival = _place(agreement_on(target), starts, steps)
        if rival <= MAX_RIVAL:
            break
        starts = [best]
    return Followed(as_transform(as_matrix(fit) @ as_matrix(way(best))), round(rival, 4), rival <= MAX_RIVAL)


def _place(value: Callable[[Pose], float], starts: list[Pose], steps: Pose) -> tuple[Pose, float]:
    """Climb to the best pose; gives it with the agreement of the best one beside it, in parts of its own."""
    best = climb(value, starts, steps)
    here = value(best)
    beside = [np.add(best[3:6], sign * RIVAL_MM * axis).tolist() for axis in np.eye(3) for sign in (-1, 1)]
    return best, max(value((*best[:3], *shift)) for shift in beside) / here if here > 0 else 1.0


def _head_target(image: sitk.Image, grid_mm: float) -> Target:
    """Take the head of a scan, held on beyond the edge of the field of view, with a rim of air."""
    import SimpleITK as sitk
    from scipy import ndimage

    voxels = sitk.GetArrayViewFromImage(image)
    rim = max(1, round(RIM_MM / grid_mm))
    shown = np.pad(voxels > SHOWN * float(voxels.mean() + voxels.std()), rim, mode="edge")
    return make_target(image, ndimage.binary_dilation(shown, iterations=rim)[rim:-rim, rim:-rim, rim:-rim])


def _rigid_part(matrix: npt.NDArray[np.float64], centre: npt.NDArray[np.float64]) -> Pose:
    """Give the pose, about a centre, of the rigid movement nearest to an affine one: turns of SimpleITK's Euler3DTransform, shifts in mm."""
    left, _, right = np.linalg.svd(matrix[:3, :3])
    turn = left @ right
    shift = matrix[:3, :3] @ centre + matrix[:3, 3] - centre
    angles = (np.arcsin(turn[2, 1]), np.arctan2(-turn[2, 0], turn[2, 2]), np.arctan2(-turn[0, 1], turn[1, 1]))
    return (*(float(angle) for angle in angles), *shift.tolist())
