"""Agreement of two scans of any contrast: mutual information, a derivative-free search for its maximum, and a gradient refinement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.files.volumes import grid_over, image_like, is_ct, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

Floats = npt.NDArray[np.float32]
Pose = tuple[float, ...]
BINS = 24
"""Bins per axis of the joint histogram of mutual information."""
SEED = 1
MIN_COVERED = 0.05
"""Minimum part of a target that a scan must cover for a comparison."""


@dataclass(frozen=True)
class Target:
    """An image to which scans are matched.

    Attributes
    ----------
    pattern : SimpleITK.Image
        float32, 0 to 255.
    region : SimpleITK.Image
        uint8, 1 where the pattern is valid.
    sampler : SimpleITK.ResampleImageFilter
        Resamples a scan to the bounding box of the region after its transform is set; -1 beyond the scan.
    inside : ndarray of int, shape (N,)
        Flat indices of the region's voxels in the sampler's output.
    rows : ndarray of int, shape (N,)
        First cell of each of these voxels in the flattened joint histogram: its bin times `BINS`.
    """

    pattern: sitk.Image
    region: sitk.Image
    sampler: sitk.ResampleImageFilter
    inside: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]


def make_target(pattern: sitk.Image, region: npt.NDArray[np.bool_]) -> Target:
    """Prepare a pattern (float32, 0 to 255) and its region (Z, Y, X) for matching."""
    import SimpleITK as sitk

    values = sitk.GetArrayFromImage(pattern)[region]
    # the target does not change during a search: bins and bounding box are computed once
    bins = (np.clip(values, 0, 255) * (BINS / 256)).astype(np.intp)
    sides = [np.flatnonzero(region.any(axis=others)) for others in ((1, 2), (0, 2), (0, 1))]
    z, y, x = (slice(int(side[0]), int(side[-1]) + 1) if len(side) else slice(0, 1) for side in sides)
    sampler = sitk.ResampleImageFilter()
    sampler.SetReferenceImage(pattern[x, y, z])
    sampler.SetInterpolator(sitk.sitkLinear)
    sampler.SetDefaultPixelValue(-1.0)
    return Target(pattern, image_like(region.astype(np.uint8), pattern), sampler, np.flatnonzero(region[z, y, x]), bins * BINS)


def coarse_head(image: sitk.Image, grid_mm: float) -> sitk.Image:
    """Resample a scan to an isotropic coarse grid and clip its brightest and darkest values.

    Parameters
    ----------
    image : SimpleITK.Image
        3-D, float32.
    grid_mm : float
        Voxel size of the result.

    Returns
    -------
    SimpleITK.Image
        float32, 0 to 255. CT is windowed to -150..250 HU.
    """
    import SimpleITK as sitk

    coarse = resample_to(image, grid_over(image, grid_mm))
    voxels = sitk.GetArrayViewFromImage(coarse)
    low, high = (-150.0, 250.0) if is_ct(voxels) else (float(np.percentile(voxels, 1)), _bright(voxels))
    return sitk.Cast(sitk.IntensityWindowing(coarse, low, max(high, low + 1e-6), 0.0, 255.0), sitk.sitkFloat32)


def _bright(voxels: Floats) -> float:
    """Return the upper end of the window: the 99th percentile of everything brighter than the mean, which excludes the background."""
    signal = voxels[voxels > voxels.mean()]
    return float(np.percentile(signal, 99))


def rigid(pose: Pose, centre: Pose) -> sitk.Euler3DTransform:
    """Return the rigid transform of a pose: rotations about a centre in rad, then shifts in mm."""
    import SimpleITK as sitk

    return sitk.Euler3DTransform(centre, *pose[:3], pose[3:6])


def agreement(target: Target, moving: sitk.Image, transform: sitk.Transform) -> float:
    """Measure how well a scan matches a target.

    Parameters
    ----------
    target : Target
        The image it is compared with.
    moving : SimpleITK.Image
        The scan, float32, 0 to 255.
    transform : SimpleITK.Transform
        From points of the target to points of the scan.

    Returns
    -------
    float
        Mutual information in nats over their overlap, times the part of the target that the scan covers; 0 if that part is at most
        `MIN_COVERED`.
    """
    import SimpleITK as sitk

    # 1. values of the scan at the region's voxels
    target.sampler.SetTransform(transform)
    sampled = target.sampler.Execute(moving)
    values, rows = sitk.GetArrayViewFromImage(sampled).ravel().take(target.inside), target.rows
    seen = values > -0.5
    covered = np.count_nonzero(seen) / max(len(seen), 1)
    if covered <= MIN_COVERED:
        return 0.0
    if covered < 1:
        values, rows = values[seen], rows[seen]
    cells = rows + (values * (BINS / 256)).astype(np.intp)
    # 2. joint histogram, and the one expected if both were independent
    joint = np.bincount(cells, minlength=BINS * BINS).reshape(BINS, BINS) / len(cells)
    expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    filled = joint > 0
    return float((joint[filled] * np.log(joint[filled] / expected[filled])).sum() * covered)


def climb(value: Callable[[Pose], float], starts: list[Pose], steps: Pose) -> Pose:
    """Search for the pose of the highest value by coordinate ascent with decreasing steps.

    Parameters
    ----------
    value : callable
        Function to maximise; evaluated once per pose.
    starts : list of tuple of float
        Poses; the search starts from the best of them.
    steps : tuple of float
        First step along each axis.

    Returns
    -------
    tuple of float
        The best pose evaluated.
    """
    value = cache(value)  # neighbouring poses are visited repeatedly
    best = max(starts, key=value)
    for fraction in (1.0, 0.5, 0.25):
        for _ in range(3):
            before = best
            for axis, step in enumerate(steps):
                moves = [(*best[:axis], best[axis] + sign * fraction * step, *best[axis + 1 :]) for sign in (-1, 1)]
                best = max([best, *moves], key=value)
            if best == before:
                break
    return best


def refine(
    target: Target, moving: sitk.Image, transform: sitk.Transform, *, sampled: float, first_step: float, last_step: float, iterations: int
) -> bool:
    """Improve a transform by gradient descent on mutual information.

    Parameters
    ----------
    target : Target
        The image the scan is matched to.
    moving : SimpleITK.Image
        The scan, float32, 0 to 255.
    transform : SimpleITK.Transform
        From points of the target to points of the scan, close to the optimum; changed in place.
    sampled : float
        Part of the target's voxels that is sampled.
    first_step, last_step : float
        Length of the first step, and the length at which the descent ends.
    iterations : int
        Maximum number of steps.

    Returns
    -------
    bool
        False if the scan leaves too few samples (a thin slab); the transform must then be discarded.
    """
    import SimpleITK as sitk

    method = sitk.ImageRegistrationMethod()
    method.SetMetricAsMattesMutualInformation(BINS)
    method.SetMetricFixedMask(target.region)
    method.SetMetricSamplingStrategy(method.REGULAR)
    method.SetMetricSamplingPercentage(sampled, SEED)  # regular samples are jittered, hence the seed
    method.SetInterpolator(sitk.sitkLinear)
    method.SetOptimizerAsRegularStepGradientDescent(
        first_step, last_step, iterations, relaxationFactor=0.6, gradientMagnitudeTolerance=1e-6
    )
    method.SetOptimizerScalesFromPhysicalShift()
    method.SetInitialTransform(transform, inPlace=True)
    try:
        method.Execute(target.pattern, moving)
    except RuntimeError:
        return False
    return True
