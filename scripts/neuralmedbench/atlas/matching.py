"""How well two scans agree, whatever their contrast: mutual information, a search that climbs it, and the last refinement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.files.volumes import grid_over, image_like, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

Floats = npt.NDArray[np.float32]
Pose = tuple[float, ...]
BINS = 24
"""Bins of the histograms of mutual information."""
SEED = 1
MIN_COVERED = 0.05
"""Part of a target that a scan must cover to be compared with it."""


@dataclass(frozen=True)
class Target:
    """What a scan is matched to.

    Attributes
    ----------
    pattern : SimpleITK.Image
        float32, 0 to 255.
    region : SimpleITK.Image
        uint8, 1 where the pattern means something.
    sampler : SimpleITK.ResampleImageFilter
        Brings a scan to the part of the pattern that holds the region, once it is told the transform; -1 beyond the scan.
    inside : ndarray of int, shape (N,)
        Places of the region's voxels in what the sampler gives, read line by line.
    rows : ndarray of int, shape (N,)
        First cell of each of these voxels in a joint histogram: its bin times `BINS`.
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
    bins = (np.clip(values, 0, 255) * (BINS / 256)).astype(np.intp)
    sides = [np.flatnonzero(region.any(axis=others)) for others in ((1, 2), (0, 2), (0, 1))]
    z, y, x = (slice(int(side[0]), int(side[-1]) + 1) if len(side) else slice(0, 1) for side in sides)
    sampler = sitk.ResampleImageFilter()
    sampler.SetReferenceImage(pattern[x, y, z])
    sampler.SetInterpolator(sitk.sitkLinear)
    sampler.SetDefaultPixelValue(-1.0)
    return Target(pattern, image_like(region.astype(np.uint8), pattern), sampler, np.flatnonzero(region[z, y, x]), bins * BINS)


def coarse_head(image: sitk.Image, grid_mm: float) -> sitk.Image:
    """Bring a scan to an isotropic coarse grid, with the brightest and darkest ends cut off.

    Parameters
    ----------
    image : SimpleITK.Image
        3-D, float32.
    grid_mm : float
        Size of a voxel of the result.

    Returns
    -------
    SimpleITK.Image
        float32, 0 to 255. CT (air below -500 HU) is windowed to -150..250 HU.
    """
    import SimpleITK as sitk

    coarse = resample_to(image, grid_over(image, grid_mm))
    voxels = sitk.GetArrayViewFromImage(coarse)
    low, high = (-150.0, 250.0) if float(voxels.min()) < -500 else (float(np.percentile(voxels, 1)), _bright(voxels))
    return sitk.Cast(sitk.IntensityWindowing(coarse, low, max(high, low + 1e-6), 0.0, 255.0), sitk.sitkFloat32)


def _bright(voxels: Floats) -> float:
    """Upper end of the window: the 99th percentile of what is not background."""
    signal = voxels[voxels > voxels.mean()]
    return float(np.percentile(signal, 99))


def agreement(target: Target, moving: sitk.Image, transform: sitk.Transform) -> float:
    """Tell how well a scan matches a target.

    Parameters
    ----------
    target : Target
        What it is matched to.
    moving : SimpleITK.Image
        The scan, float32, 0 to 255.
    transform : SimpleITK.Transform
        From points of the target to points of the scan.

    Returns
    -------
    float
        Mutual information in nats where both are seen, times the part of the target that the scan covers; 0 when that is less than
        `MIN_COVERED`.
    """
    import SimpleITK as sitk

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
    joint = np.bincount(cells, minlength=BINS * BINS).reshape(BINS, BINS) / len(cells)
    expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    filled = joint > 0
    return float((joint[filled] * np.log(joint[filled] / expected[filled])).sum() * covered)


def climb(value: Callable[[Pose], float], starts: list[Pose], steps: Pose) -> Pose:
    """Search the pose of the highest value, one axis at a time with ever smaller steps.

    Parameters
    ----------
    value : callable
        What is climbed; it is asked once per pose.
    starts : list of tuple of float
        Poses of which the best one is the start.
    steps : tuple of float
        First step along each axis.

    Returns
    -------
    tuple of float
        The best pose that was asked.
    """
    value = cache(value)
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
        What the scan is matched to.
    moving : SimpleITK.Image
        The scan, float32, 0 to 255.
    transform : SimpleITK.Transform
        From points of the target to points of the scan, near the best one already; changed in place.
    sampled : float
        Part of the target's voxels that is looked at.
    first_step, last_step : float
        Length of the first step, and of the one at which the descent ends.
    iterations : int
        Steps at most.

    Returns
    -------
    bool
        False when the scan leaves too few samples (a thin slab); the transform is then of no use.
    """
    import SimpleITK as sitk

    method = sitk.ImageRegistrationMethod()
    method.SetMetricAsMattesMutualInformation(BINS)
    method.SetMetricFixedMask(target.region)
    method.SetMetricSamplingStrategy(method.REGULAR)
    method.SetMetricSamplingPercentage(sampled, SEED)  # regular samples are jittered
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
