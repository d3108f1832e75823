"""Locate brain and face in a scan by fitting the packaged MNI152 template, without downloads or trained weights.

The template is a skull-stripped brain. For the fit, shells that every head has (fluid, skull, scalp, air) are added around it. Mutual
information needs no common contrast, so T1, T2, FLAIR, DWI and CT are fitted in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.anatomy import distance_to_brain, template_head
from neuralmedbench.atlas.matching import Floats, Pose, Target, agreement, climb, refine
from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import as_matrix, image_like, use_one_thread

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
