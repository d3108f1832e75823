"""The brain of the reference series: the template's brain, trimmed to what the scan shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.fit import brain_depth
from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import grid_over, image_like, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

WORK_MM = 2.0
RIM_MM = 5.0
"""Depth below the template's surface from which on a voxel is brain whatever it looks like."""
REACH_MM, REACH_STRIPPED_MM = 0.5, 10.0
"""How far the brain may reach beyond the template's: little where scalp and orbits look alike, far where the skull was taken off."""
CT_BRAIN_HU = (0.0, 90.0)


def find_brain(image: sitk.Image, fit: sitk.Transform, *, is_ct: bool) -> sitk.Image:
    """Outline the brain.

    Parameters
    ----------
    image : SimpleITK.Image
        The scan, float32 (CT in HU).
    fit : SimpleITK.Transform
        From points of the scan to the template, by `fit_template`.
    is_ct : bool
        In CT the brain is what lies in `CT_BRAIN_HU`; elsewhere it is what is about as bright as the inner brain.

    Returns
    -------
    SimpleITK.Image
        uint8 on the grid of the scan, 1 in the brain.

    Raises
    ------
    DataError
        If nothing of the scan lies where the template has its brain.
    """
    import SimpleITK as sitk

    work = grid_over(image, WORK_MM)
    depth = sitk.GetArrayFromImage(brain_depth(work, fit))
    inner = depth <= -RIM_MM
    if inner.sum() < 100:
        message = "the scan shows no brain where the template has it; look at it and exclude the case or the series"
        raise DataError(message)
    voxels = sitk.GetArrayFromImage(sitk.DiscreteGaussian(resample_to(image, work), [1.0] * 3))
    low, high = CT_BRAIN_HU if is_ct else _brightness(voxels[inner])
    around = voxels[(depth > RIM_MM) & (depth <= REACH_STRIPPED_MM)]
    stripped = not is_ct and float((around > low / 4).mean()) < 0.35
    like_brain = (depth <= REACH_STRIPPED_MM) & (voxels > low / 4) if stripped else (depth <= REACH_MM) & (voxels > low) & (voxels < high)
    opened = sitk.BinaryMorphologicalOpening(image_like((like_brain | inner).astype(np.uint8), work), [1, 1, 1])
    largest = sitk.RelabelComponent(sitk.ConnectedComponent(opened)) == 1
    closed = sitk.BinaryFillhole(sitk.BinaryMorphologicalClosing(largest, [2, 2, 2]))
    smooth = sitk.Resample(sitk.ZeroFluxNeumannPad(sitk.Cast(closed, sitk.sitkFloat32), [1] * 3, [1] * 3), image)
    return sitk.Cast(smooth >= 0.5, sitk.sitkUInt8)


def _brightness(inner: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Range of the brain's grey values; dark fluid in the rim is left to the closing."""
    median = float(np.median(inner))
    return 0.4 * median, max(float(np.percentile(inner, 98)), 1.8 * median)
