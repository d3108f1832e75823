"""Locate brain and face in a scan by fitting the packaged MNI152 template, without downloads or trained weights; polish a fit, or transfer it.

The template is a skull-stripped brain. For the fit, shells that every head has (fluid, skull, scalp, air) are added around it. Mutual
information needs no common contrast, so T1, T2, FLAIR, DWI and CT are fitted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.anatomy import distance_to_brain, template_head
from neuralmedbench.atlas.matching import Floats, Pose, Target, agreement, climb, make_target, refine, rigid
from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import (
    Matrix,
    as_matrix,
    as_transform,
    centre_of_grid,
    grid_over,
    homogeneous,
    image_like,
    resample_to,
    use_one_thread,
)

if TYPE_CHECKING:
    import SimpleITK as sitk

BRAIN_CENTRE = (0.0, 17.0, 10.0)
SHOWN = 0.35
"""Threshold of the head as a fraction of mean plus SD of the grey values."""
GRID_MM, SEARCH_GRID_MM = 4.0, 6.0
"""Voxel size for refining and judging a fit, and for the search."""
BRAIN_GRID_MM, FAR_MM = 2.0, 999.0
HEIGHTS_MM = (95.0, 80.0, 65.0, 50.0, 35.0, 20.0, 5.0)
"""Start heights of the scan's top in the template: above the scalp, or anywhere in the brain if the scan is a slab."""
TILTS = (-0.3, 0.0, 0.3)
"""Start angles of nodding, in rad."""
STEPS = (0.16, 0.08, 0.08, 6.0, 6.0, 8.0, 0.06)
"""First steps: three rotations in rad, three shifts in mm, logarithm of the scale."""
LOG_SCALE, LOG_SCALE_SPREAD = -0.04, 0.09
"""Gaussian prior (mean, SD) of the logarithm of an adult brain's size relative to the template, which is larger than most; without it a fit may
take the scalp for the brain."""
MOVES = (0.04, 0.04, 0.04, 3.0, 3.0, 3.0, 0.03, 0.03, 0.03, 0.03)
"""First steps of polishing: three rotations in rad, three shifts in mm, logarithms of three stretches, shear of y along z."""
SHAPE = (6, 7, 8, 9)
"""Indices of the steps that change the shape of the head."""
NEIGHBOUR_MM = 10.0
LOOKS: tuple[tuple[float, Pose], ...] = (
    (SEARCH_GRID_MM, (0.1, 0.08, 0.08, 6.0, 6.0, 8.0)),
    (GRID_MM, (0.03, 0.03, 0.03, 2.0, 2.0, 2.0)),
)
"""Grid in mm and first steps (rotations in rad, shifts in mm) of the search for another scan of a head, and of a finer one if the first is ambiguous."""
LIFTS_MM = (0.0, -12.0, 12.0, -24.0, 24.0)
"""Its start heights, relative to the position in the headers."""
RIM_MM = 12.0
"""Rim of air around the head that is compared too."""
RIVAL_MM, MAX_RIVAL = 6.0, 0.83
"""A position is unambiguous if the best agreement at this distance is less than this part of its own: correct ones had up to 0.81, wrong ones
0.87 and more."""
MIN_THICK_MM = 20.0
"""Thinner slabs fit in many positions."""


def fit_template(rough: sitk.Image) -> sitk.Transform:
    """Fit the template's brain to a scan.

    Parameters
    ----------
    rough : SimpleITK.Image
        Result of `matching.coarse_head` on a grid of `GRID_MM`: a 3-D scan of a head or a brain, LPS+, any contrast, with or without face
        and neck; part of the head is enough.

    Returns
    -------
    SimpleITK.Transform
        Affine; maps physical points of the scan to MNI152 space, both LPS+ in mm.

    Raises
    ------
    DataError
        If the scan shows no head.

    Notes
    -----
    Deterministic: a fixed list of starts, regular sampling, one thread. A similarity transform is searched and an affine one
    refined from it; if the affine one is implausible or no better, the similarity is kept.
    """
    use_one_thread()
    similar = _search(template_head(SEARCH_GRID_MM), rough)
    head = template_head(GRID_MM)
    reached = agreement(head, rough, similar)
    if reached <= 0:
        message = "the template does not fit: the scan shows too little of a head"
        raise DataError(message)
    affine = _refine_affine(head, rough, similar)
    kept = _plausible(affine, similar) and agreement(head, rough, affine) > reached
    fitted: sitk.Transform = affine if kept else similar
    return fitted.GetInverse()


def _refine_affine(head: Target, moving: sitk.Image, start: sitk.Similarity3DTransform) -> sitk.AffineTransform:
    transform = _as_affine(start)
    refined = refine(head, moving, transform, sampled=0.25, first_step=4.0, last_step=0.1, iterations=40)
    return transform if refined else _as_affine(start)


def _as_affine(similar: sitk.Similarity3DTransform) -> sitk.AffineTransform:
    import SimpleITK as sitk

    transform = sitk.AffineTransform(3)
    transform.SetMatrix(similar.GetMatrix())
    transform.SetTranslation(similar.GetTranslation())
    transform.SetCenter(similar.GetCenter())
    return transform


def _similarity(pose: Pose) -> sitk.Similarity3DTransform:
    """Build the transform from template to scan: rotations in rad, shift of the brain's centre in mm, natural logarithm of the scale."""
    import SimpleITK as sitk

    turn = sitk.Euler3DTransform()
    turn.SetRotation(*pose[:3])
    transform = sitk.Similarity3DTransform()
    transform.SetCenter(BRAIN_CENTRE)
    transform.SetMatrix((np.exp(pose[6]) * np.array(turn.GetMatrix())).tolist())
    transform.SetTranslation(pose[3:6])
    return transform


def _search(head: Target, moving: sitk.Image) -> sitk.Similarity3DTransform:
    """Search for the best pose from a fixed list of heights and tilts (a slab may lie anywhere, and heads nod) with decreasing steps.

    The search is derivative-free because the agreement is weighted by the part of the head that is covered. Gradient descent on mutual
    information alone moves a slab out of the head and hardly rotates it.
    """
    # starts: the head's upper part lies above the template's brain, centred in x and y
    points = _foreground_points(moving)
    top = float(np.percentile(points[:, 2], 99.5))
    upper = points[points[:, 2] > top - 110]
    x, y = (float(np.percentile(upper[:, axis], [2, 98]).mean()) for axis in (0, 1))

    def value(pose: Pose) -> float:
        unusual = (pose[6] - LOG_SCALE) / LOG_SCALE_SPREAD
        return agreement(head, moving, _similarity(pose)) * float(np.exp(-0.5 * unusual**2))

    middle = (x, y - BRAIN_CENTRE[1])
    starts: list[Pose] = [(tilt, 0.0, 0.0, *middle, top - height, LOG_SCALE) for height in HEIGHTS_MM for tilt in TILTS]
    return _similarity(climb(value, starts, STEPS))


def _foreground_points(moving: sitk.Image) -> npt.NDArray[np.float64]:
    """Return the physical points of the largest bright object, shape (N, 3), (x, y, z) in mm."""
    import SimpleITK as sitk

    voxels = sitk.GetArrayViewFromImage(moving)
    bright = image_like((voxels > SHOWN * float(voxels.mean() + voxels.std())).astype(np.uint8), moving)
    largest = sitk.RelabelComponent(sitk.ConnectedComponent(bright)) == 1
    indices = np.argwhere(sitk.GetArrayFromImage(largest))[:, ::-1]
    if len(indices) < 100:
        message = "the scan shows no head: its brightest object is smaller than a fist"
        raise DataError(message)
    matrix = np.array(moving.GetDirection()).reshape(3, 3) * moving.GetSpacing()[0]
    return np.asarray(indices @ matrix.T + np.array(moving.GetOrigin()))


def _plausible(affine: sitk.AffineTransform, similar: sitk.Similarity3DTransform) -> bool:
    """Return True if an affine fit differs little from the similarity: little stretch, about the same volume and position."""
    trim = np.array(affine.GetMatrix()).reshape(3, 3) @ np.linalg.inv(np.array(similar.GetMatrix()).reshape(3, 3))
    stretch = np.linalg.svd(trim, compute_uv=False)
    shift = np.linalg.norm(np.array(affine.TransformPoint(BRAIN_CENTRE)) - np.array(similar.TransformPoint(BRAIN_CENTRE)))
    return bool(stretch.max() < 1.15 and stretch.min() > 0.85 and 0.88 < stretch.prod() < 1.14 and shift < 12)


def fit_quality(rough: sitk.Image, transform: sitk.Transform) -> dict[str, float]:
    """Measure how plausible a fit is.

    Parameters
    ----------
    rough : SimpleITK.Image
        The scan, as for `fit_template`.
    transform : SimpleITK.Transform
        Result of `fit_template` for it.

    Returns
    -------
    dict of str to float
        `scale` (size of the brain relative to the template, 0.8 to 1.25 in adults), `covered` (part of the template's brain in the
        scan's field of view), `overlap` (part of that which is not background), `agreement` (see `matching.agreement`, nats).
    """
    import SimpleITK as sitk

    # sample the scan at the template's voxels; -1 marks places out of view
    head = template_head(GRID_MM)
    back = transform.GetInverse()
    values = sitk.GetArrayFromImage(sitk.Resample(rough, head.pattern, back, sitk.sitkLinear, -1.0))
    brain = sitk.GetArrayFromImage(distance_to_brain(GRID_MM)) <= 0
    seen = brain & (values > -0.5)
    bright = 0.2 * float(np.median(values[seen])) if seen.any() else 0.0
    return {
        "scale": round(float(np.cbrt(abs(np.linalg.det(as_matrix(back)[:3, :3])))), 4),
        "covered": round(float(seen.sum() / brain.sum()), 4),
        "overlap": round(float((values[seen] > bright).mean()) if seen.any() else 0.0, 4),
        "agreement": round(agreement(head, rough, back), 4),
    }


def brain_depth(like: sitk.Image, transform: sitk.Transform) -> sitk.Image:
    """Sample the distance to the surface of the template's brain on the grid of a scan.

    Parameters
    ----------
    like : SimpleITK.Image
        The scan that defines the grid.
    transform : SimpleITK.Transform
        From points of the scan to the template, as returned by `fit_template`.

    Returns
    -------
    SimpleITK.Image
        float32, mm of the template, negative inside the brain and its fluid; `FAR_MM` beyond the template.
    """
    import SimpleITK as sitk

    return sitk.Resample(distance_to_brain(BRAIN_GRID_MM), like, transform, sitk.sitkLinear, FAR_MM)


def template_points(like: sitk.Image, transform: sitk.Transform) -> tuple[Floats, Floats, Floats]:
    """Compute the template coordinates of every voxel of a scan.

    Parameters
    ----------
    like, transform : SimpleITK.Image, SimpleITK.Transform
        As for `brain_depth`.

    Returns
    -------
    x, y, z : ndarray of float32, shape (Z, Y, X)
        MNI152, LPS+, mm.
    """
    # an affine transform is linear in the voxel indices: origin plus three steps
    start = np.array(transform.TransformPoint(like.GetOrigin()))
    columns = (np.array(like.GetDirection()).reshape(3, 3) * like.GetSpacing()).T
    steps = np.array([transform.TransformVector(column.tolist(), (0.0, 0.0, 0.0)) for column in columns])
    i, j, k = np.ogrid[tuple(slice(0, side) for side in like.GetSize())]
    x, y, z = (np.asarray((start[axis] + i * steps[0, axis] + j * steps[1, axis] + k * steps[2, axis]).T, np.float32) for axis in range(3))
    return x, y, z


def polish_fit(rough: sitk.Image, transform: sitk.Transform) -> sitk.AffineTransform:
    """Improve a fit.

    Parameters
    ----------
    rough, transform : SimpleITK.Image, SimpleITK.Transform
        As for `fit_quality`.

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
    best = climb(lambda pose: agreement(head, rough, as_transform(start @ _move(pose))), [(0.0,) * len(MOVES)], MOVES)
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
    return _gain(rough, transform, [tuple((sign * MOVES[axis] * np.eye(len(MOVES))[axis]).tolist()) for axis in SHAPE for sign in (-1, 1)])


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
    starts: list[Pose] = [(0.0, 0.0, 0.0, 0.0, 0.0, height) for height in LIFTS_MM]
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
