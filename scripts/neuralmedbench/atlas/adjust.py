"""Adjust a fit of the template: improve it by small moves, or transfer it from another scan of the same head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.anatomy import template_head
from neuralmedbench.atlas.fit import BRAIN_CENTRE, GRID_MM, SEARCH_GRID_MM, SHOWN
from neuralmedbench.atlas.matching import Pose, Target, agreement, climb, make_target, rigid
from neuralmedbench.files.volumes import Matrix, as_matrix, as_transform, centre_of_grid, grid_over, homogeneous, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

STEPS = (0.04, 0.04, 0.04, 3.0, 3.0, 3.0, 0.03, 0.03, 0.03, 0.03)
"""First steps: three rotations in rad, three shifts in mm, logarithms of three stretches, shear of y along z."""
SHAPE = (6, 7, 8, 9)
"""Indices of the steps that change the shape of the head."""
NEIGHBOUR_MM = 10.0
LOOKS: tuple[tuple[float, Pose], ...] = (
    (SEARCH_GRID_MM, (0.1, 0.08, 0.08, 6.0, 6.0, 8.0)),
    (GRID_MM, (0.03, 0.03, 0.03, 2.0, 2.0, 2.0)),
)
"""Grid in mm and first steps (rotations in rad, shifts in mm) of the search, and of a finer one if the first is ambiguous."""
HEIGHTS_MM = (0.0, -12.0, 12.0, -24.0, 24.0)
"""Start heights of the search relative to the position in the headers."""
RIM_MM = 12.0
"""Rim of air around the head that is compared too."""
RIVAL_MM, MAX_RIVAL = 6.0, 0.83
"""A position is unambiguous if the best agreement at this distance is less than this part of its own: correct ones had up to 0.81, wrong ones
0.87 and more."""
MIN_THICK_MM = 20.0
"""Thinner slabs fit in many positions."""


def polish_fit(rough: sitk.Image, transform: sitk.Transform) -> sitk.AffineTransform:
    """Improve a fit.

    Parameters
    ----------
    rough : SimpleITK.Image
        The scan, as for `fit_template`.
    transform : SimpleITK.Transform
        Result of `fit_template` for it.

    Returns
    -------
    SimpleITK.AffineTransform
        Maps points of the scan to MNI152 space, like `transform`.

    Notes
    -----
    Heads differ in shape, so the fit is also stretched along each axis. Fits of the scans of one simulated patient differ by up to 11 mm
    (at the nose) before this step and by up to 5 mm after it.
    """
    head = template_head(GRID_MM)
    start = as_matrix(transform.GetInverse())
    best = climb(lambda pose: agreement(head, rough, as_transform(start @ _move(pose))), [(0.0,) * len(STEPS)], STEPS)
    return as_transform(np.asarray(np.linalg.inv(start @ _move(best)), dtype=np.float64))


def is_best_here(rough: sitk.Image, transform: sitk.Transform) -> bool:
    """Return True if a fit agrees better with the scan than the same fit shifted by `NEIGHBOUR_MM` along any axis."""
    shifts = [(0.0, 0.0, 0.0, *(sign * NEIGHBOUR_MM * axis).tolist(), 0.0, 0.0, 0.0, 0.0) for axis in np.eye(3) for sign in (-1, 1)]
    return _gain(rough, transform, shifts) < 1


def shape_gain(rough: sitk.Image, transform: sitk.Transform) -> float:
    """Measure how much better a scan agrees with another shape: one first step of `polish_fit` along each stretch and the shear.

    Parameters
    ----------
    rough, transform : SimpleITK.Image, SimpleITK.Transform
        As for `polish_fit`.

    Returns
    -------
    float
        Best agreement relative to that of the given fit; above 1 if another shape is better.
    """
    return _gain(rough, transform, [tuple((sign * STEPS[axis] * np.eye(len(STEPS))[axis]).tolist()) for axis in SHAPE for sign in (-1, 1)])


def _gain(rough: sitk.Image, transform: sitk.Transform, moves: list[Pose]) -> float:
    """Return the best agreement after one of the moves relative to the agreement before; infinite if that is 0."""
    head, start = template_head(GRID_MM), as_matrix(transform.GetInverse())
    here = agreement(head, rough, as_transform(start))
    best = max(agreement(head, rough, as_transform(start @ _move(move))) for move in moves)
    return best / here if here > 0 else float("inf")


def _move(pose: Pose) -> Matrix:
    """Return the matrix of a small move of the template about the brain's centre."""
    import SimpleITK as sitk

    turn = sitk.Euler3DTransform()
    turn.SetRotation(*pose[:3])
    shear = np.eye(3)
    shear[1, 2] = pose[9]
    linear = np.array(turn.GetMatrix()).reshape(3, 3) @ np.diag(np.exp(pose[6:9])) @ shear
    return homogeneous(linear, np.array(BRAIN_CENTRE) - linear @ np.array(BRAIN_CENTRE) + np.array(pose[3:6]))


@dataclass(frozen=True)
class TransferredFit:
    """A fit transferred from another scan.

    Attributes
    ----------
    transform : SimpleITK.AffineTransform
        Maps points of the scan to MNI152 space.
    rival : float
        Agreement at the best position `RIVAL_MM` away relative to the agreement here; 1 if nothing could be compared.
    sure : bool
        True if the position is unambiguous.
    """

    transform: sitk.AffineTransform
    rival: float
    sure: bool


def transfer_fit(rough: sitk.Image, other: sitk.Image, fit: sitk.Transform, guess: sitk.Transform | None = None) -> TransferredFit:
    """Transfer a fit to another scan of the same head.

    Parameters
    ----------
    rough, other : SimpleITK.Image
        The scan, and the one that has a fit, as returned by `coarse_head`; the scan may be a slab.
    fit : SimpleITK.Transform
        From points of the other scan to the template.
    guess : SimpleITK.Transform, optional
        A fit of the scan itself, from which the search starts in place of the position in the headers.

    Returns
    -------
    TransferredFit
        The fit.

    Notes
    -----
    Rigid registration by mutual information over the head of the scan and a rim of air. The scan is the target, so a slab is not drawn to
    where more of it would be covered. Deterministic.
    """
    starts: list[Pose] = [(0.0, 0.0, 0.0, 0.0, 0.0, height) for height in HEIGHTS_MM]
    centre = centre_of_grid(rough)
    if guess is not None:
        starts = [_rigid_part(np.linalg.inv(as_matrix(fit)) @ as_matrix(guess), np.array(centre))]
    if min(side * step for side, step in zip(rough.GetSize(), rough.GetSpacing(), strict=True)) < MIN_THICK_MM:
        return TransferredFit(as_transform(as_matrix(fit)), 1.0, sure=False)

    def agreement_on(target: Target) -> Callable[[Pose], float]:
        return lambda pose: agreement(target, other, rigid(pose, centre))

    # coarse search, then a finer one only if the position is ambiguous
    best, rival = starts[0], 1.0
    for grid_mm, steps in LOOKS:
        target = _head_target(resample_to(rough, grid_over(rough, grid_mm)), grid_mm)
        best, rival = _place(agreement_on(target), starts, steps)
        if rival <= MAX_RIVAL:
            break
        starts = [best]
    return TransferredFit(as_transform(as_matrix(fit) @ as_matrix(rigid(best, centre))), round(rival, 4), rival <= MAX_RIVAL)


def _place(value: Callable[[Pose], float], starts: list[Pose], steps: Pose) -> tuple[Pose, float]:
    """Search for the best pose; returns it with the best agreement `RIVAL_MM` away relative to its own."""
    best = climb(value, starts, steps)
    here = value(best)
    rivals = [np.add(best[3:6], sign * RIVAL_MM * axis).tolist() for axis in np.eye(3) for sign in (-1, 1)]
    return best, max(value((*best[:3], *shift)) for shift in rivals) / here if here > 0 else 1.0


def _head_target(image: sitk.Image, grid_mm: float) -> Target:
    """Build a target from the head of a scan, continued beyond the edge of the field of view, with a rim of air."""
    import SimpleITK as sitk
    from scipy import ndimage

    voxels = sitk.GetArrayViewFromImage(image)
    rim = max(1, round(RIM_MM / grid_mm))
    shown = np.pad(voxels > SHOWN * float(voxels.mean() + voxels.std()), rim, mode="edge")
    return make_target(image, ndimage.binary_dilation(shown, iterations=rim)[rim:-rim, rim:-rim, rim:-rim])


def _rigid_part(matrix: npt.NDArray[np.float64], centre: npt.NDArray[np.float64]) -> Pose:
    """Return the pose of the rigid movement closest to an affine one, about a centre: angles of SimpleITK's Euler3DTransform, shifts in mm."""
    # polar decomposition: the rotation closest to the linear part
    left, _, right = np.linalg.svd(matrix[:3, :3])
    turn = left @ right
    shift = matrix[:3, :3] @ centre + matrix[:3, 3] - centre
    angles = (np.arcsin(turn[2, 1]), np.arctan2(-turn[2, 0], turn[2, 2]), np.arctan2(-turn[0, 1], turn[1, 1]))
    return (*(float(angle) for angle in angles), *shift.tolist())
