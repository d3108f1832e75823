"""The brain of a scan, outlined before anything is removed from it, and how much of it hidden text and the removal of the face take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.faces.face_measures import Floats, HeadView
from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import image_like, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

Mask = npt.NDArray[np.bool_]
CORE_MM, REACH_MM, BELOW_SKIN_MM = 6.0, 9.0, 6.0
"""Tissue this deep in the fitted brain gives the greys of the brain; it is followed this far beyond the fitted surface, but not near the skin."""
CORE_GREYS = (3, 99)
"""Percentiles of these greys between which tissue is brain."""
BRIDGE_STEPS = 3
"""Connections of up to twice as many voxels, such as nerves and vessels, do not lead out of the brain."""
MAX_REMOVED, MAX_HIDDEN = 0.002, 0.02
"""Largest fractions of the brain in view that the removal of the face and hidden text may take: 3 and 27 ml of 1350 ml. In real and simulated
heads the first is 0; the second is the size of a large lesion."""
ERROR_ML = 1.0
"""Below this a loss is no finding: the outline itself is as uncertain (a slab of a phantom shows 0.7 ml and loses nothing)."""


class BrainLossError(DataError):
    """Raised for a series of whose brain too much would be hidden or removed."""


def brain_tissue(image: sitk.Image, seen: HeadView, *, fitted: bool = True) -> Mask:
    """Outline the brain on the coarse grid of a scan, shape (Z, Y, X).

    `image`: the complete scan. `fitted`: False leaves out the fitted brain itself, which may be off by centimetres. The result is the fitted
    brain together with tissue of the greys of its core that continues it, which depends on this scan and not on the margins of the fit.
    """
    import SimpleITK as sitk
    from scipy import ndimage

    inside = seen.brain < 0
    core = seen.brain < -CORE_MM
    if not core.any():
        return inside
    voxels = sitk.GetArrayFromImage(resample_to(image, seen.grid))
    low, high = np.percentile(voxels[core], CORE_GREYS)
    like = (voxels >= low) & (voxels <= high) & (seen.brain < REACH_MM) & (seen.skin > BELOW_SKIN_MM)
    # opening cuts thin connections, then the part that holds the core grows back
    cross = ndimage.generate_binary_structure(3, 1)
    labels, count = ndimage.label(ndimage.binary_erosion(like, cross, iterations=BRIDGE_STEPS))
    if not count:
        return inside if fitted else core
    sizes = np.bincount(labels[core], minlength=count + 1)
    sizes[0] = 0
    grown = ndimage.binary_dilation(labels == sizes.argmax(), cross, iterations=BRIDGE_STEPS) & like
    return np.asarray(grown | inside if fitted else grown)


def spared(level: Floats, brain: Mask, seen: HeadView) -> Floats:
    """Exclude the brain and the voxels beside it from a level set, but not the skin; in distorted scans the brain comes close to it."""
    from scipy import ndimage

    near = ndimage.binary_dilation(brain, ndimage.generate_binary_structure(3, 3)) & (seen.skin > BELOW_SKIN_MM)
    return np.where(near, np.maximum(level, np.float32(1)), level)


def brain_loss(brain: Mask, seen: HeadView, *, level: Floats | None, hidden: sitk.Image | None) -> dict[str, float]:
    """Measure how much of the brain is removed with the face, and how much lies under hidden text.

    `brain`: result of `brain_tissue`. `level`: level set of what is removed, on the same grid; None if nothing is. `hidden`: mask of hidden
    voxels on the scan's own grid, uint8. Returns `brain_ml`, `brain_removed_ml` and `brain_hidden_ml`; empty if no brain is in view.
    """
    import SimpleITK as sitk

    if not brain.any():
        return {}
    voxel_ml = float(np.prod(seen.grid.GetSpacing())) / 1000
    removed = brain & (level <= 0) if level is not None else np.zeros_like(brain)
    under = np.zeros_like(brain)
    if hidden is not None:
        placed = sitk.Resample(hidden, seen.grid, sitk.Transform(), sitk.sitkNearestNeighbor, 0)
        under = brain & (sitk.GetArrayViewFromImage(placed) > 0)
    volumes = {"brain_ml": brain, "brain_removed_ml": removed, "brain_hidden_ml": under}
    return {name: round(float(part.sum()) * voxel_ml, 2) for name, part in volumes.items()}


def require_brain(loss: dict[str, float]) -> None:
    """Raise BrainLossError if more of the brain is hidden or removed than the limits allow; absent numbers pass."""
    whole = loss.get("brain_ml", 0.0)
    for name, most, words in (
        ("brain_hidden_ml", MAX_HIDDEN, "text that is burned into the pixels covers"),
        ("brain_removed_ml", MAX_REMOVED, "with the face would be removed"),
    ):
        if loss.get(name, 0.0) > max(most * whole, ERROR_ML):
            message = (
                f"{words} {loss[name]:.0f} ml ({loss[name] / whole:.1%}) of the brain, at most {most:.1%} may be lost: use another series"
            )
            raise BrainLossError(message)


def as_mask_image(mask: Mask, image: sitk.Image) -> sitk.Image:
    """Convert a mask, shape (X, Y, Z), to an image on the grid of a scan."""
    return image_like(np.ascontiguousarray(mask.T, dtype=np.uint8), image)
