"""A fit of the template made better by small moves, and the test that it is better than its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralmedbench.atlas.anatomy import template_head
from neuralmedbench.atlas.fit import BRAIN_CENTRE, GRID_MM
from neuralmedbench.atlas.matching import Pose, agreement, climb
from neuralmedbench.files.volumes import Matrix, as_matrix, as_transform, homogeneous

if TYPE_CHECKING:
    import SimpleITK as sitk

STEPS = (0.04, 0.04, 0.04, 3.0, 3.0, 3.0, 0.03, 0.03, 0.03, 0.03)
"""First steps: three turns in rad, three shifts in mm, logarithms of three stretches, shear of y along z."""
SHAPE = (6, 7, 8, 9)
"""Which of them change the shape of the head."""
NEIGHBOUR_MM = 10.0


def polish_fit(rough: sitk.Image, transform: sitk.Transform) -> sitk.AffineTransform:
    """Improve a fit.

    Parameters
    ----------
    rough : SimpleITK.Image
        The scan, as for `fit_template`.
    transform : SimpleITK.Transform
        What `fit_template` gave for it.

    Returns
    -------
    SimpleITK.AffineTransform
        Maps points of the scan to MNI152 space, like `transform`.

    Notes
    -----
    Heads are not all of one shape: what `fit_template` finds is stretched along each axis. It differs by up to 11 mm between the scans of
    one simulated patient (at the nose), after the polish by up to 5 mm.
    """
    head = template_head(GRID_MM)
    start = as_matrix(transform.GetInverse())
    best = climb(lambda pose: agreement(head, rough, as_transform(start @ _move(pose))), [(0.0,) * len(STEPS)], STEPS)
    return as_transform(np.asarray(np.linalg.inv(start @ _move(best)), dtype=np.float64))


def is_best_here(rough: sitk.Image, transform: sitk.Transform) -> bool:
    """Tell whether a fit agrees better with the scan than the same fit shifted by `NEIGHBOUR_MM` in any direction."""
    shifts = [(0.0, 0.0, 0.0, *(sign * NEIGHBOUR_MM * axis).tolist(), 0.0, 0.0, 0.0, 0.0) for axis in np.eye(3) for sign in (-1, 1)]
    return _gain(rough, transform, shifts) < 1


def shape_gain(rough: sitk.Image, transform: sitk.Transform) -> float:
    """Tell how much better a scan would agree with a fit of another shape: one first step of `polish_fit` along each stretch and the shear.

    Parameters
    ----------
    rough, transform : SimpleITK.Image, SimpleITK.Transform
        As for `polish_fit`.

    Returns
    -------
    float
        Best agreement in parts of that of the fit as it is; above 1 where another shape is better.
    """
    return _gain(rough, transform, [tuple((sign * STEPS[axis] * np.eye(len(STEPS))[axis]).tolist()) for axis in SHAPE for sign in (-1, 1)])


def _gain(rough: sitk.Image, transform: sitk.Transform, moves: list[Pose]) -> float:
    """Best agreement after one of some moves, in parts of the agreement before it; infinite when that is nothing."""
    head, start = template_head(GRID_MM), as_matrix(transform.GetInverse())
    here = agreement(head, rough, as_transform(start))
    best = max(agreement(head, rough, as_transform(start @ _move(move))) for move in moves)
    return best / here if here > 0 else float("inf")


def _move(pose: Pose) -> Matrix:
    """Give a small move of the template about the brain's centre."""
    import SimpleITK as sitk

    turn = sitk.Euler3DTransform()
    turn.SetRotation(*pose[:3])
    shear = np.eye(3)
    shear[1, 2] = pose[9]
    linear = np.array(turn.GetMatrix()).reshape(3, 3) @ np.diag(np.exp(pose[6:9])) @ shear
    return homogeneous(linear, np.array(BRAIN_CENTRE) - linear @ np.array(BRAIN_CENTRE) + np.array(pose[3:6]))
