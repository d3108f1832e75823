"""What an unlabelled picture is: modality, sequence and plane, or None where that is unsure."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from neuralmedbench.models.builtin.picture import DISC, Grey, Mask
from neuralmedbench.records.case import Plane, Sequence


def is_ct(grey: Grey, head: Mask) -> bool:
    """Tell CT by its skull: a closed white ring around grey tissue.

    Parameters
    ----------
    grey : ndarray of float32, shape (Y, X)
        Grey values between 0 and 1.
    head : ndarray of bool, shape (Y, X)
        The head.

    Returns
    -------
    bool
        True when saturated white encloses most of the head.
    """
    bone = ndimage.binary_closing(grey > 0.95, DISC, iterations=1)
    inside = ndimage.binary_fill_holes(bone) & ~bone
    if not head.any() or inside.sum() < 0.35 * head.sum() or bone.sum() < 0.04 * head.sum():
        return False
    return bool(grey[inside].std() < 0.15 and np.median(grey[inside]) < 0.7)


def guess_sequence(grey: Grey, head: Mask, brain: Mask) -> Sequence | None:
    """Guess the sequence of an MRI picture from the brightness of fluid, brain and scalp.

    Parameters
    ----------
    grey : ndarray of float32, shape (Y, X)
        Grey values between 0 and 1.
    head, brain : ndarray of bool, shape (Y, X)
        The head, and the inside of its skull.

    Returns
    -------
    Sequence or None
        None when the picture fits no rule.
    """
    depth = ndimage.distance_transform_edt(brain)
    deep = depth > 0.35 * depth.max()
    level = max(0.02, float(np.median(grey[deep])))
    dark, bright = (float(np.percentile(grey[deep], q)) / level for q in (3, 97))
    rim = head & ~ndimage.binary_dilation(brain, DISC, iterations=2)
    scalp = float(np.percentile(grey[rim], 85)) / level if rim.sum() > 0.03 * head.sum() else None
    if scalp is None:
        return None
    if scalp < 0.3:
        # Diffusion takes away the fat of the scalp; fluid tells DWI (dark) from ADC (bright).
        return Sequence.ADC if bright > 2 and dark > 0.75 else Sequence.DWI
    if (bright > 1.6 and dark > 0.6) or (bright > 2.3 and dark > 0.45):
        return Sequence.ADC if scalp < 0.7 else Sequence.T2W
    t1 = _likeness_to_t1(grey, brain, depth, level, scalp)
    if dark > 0.75 or abs(t1) < 0.1:
        return None
    # Nothing within the brain is as bright as fat in T1, unless it takes up contrast.
    enhanced = float(np.percentile(grey[deep], 99.3)) > 1.6 * level
    return Sequence.FLAIR if t1 < 0 else Sequence.CE_T1W if enhanced else Sequence.T1W


def _likeness_to_t1(grey: Grey, brain: Mask, depth: Grey, level: float, scalp: float) -> float:
    """Above 0 for T1, below 0 for FLAIR: in T1 cortex is darker than white matter and the fat of the scalp brightest."""
    tissue = brain & (grey > 0.6 * level)
    outer = tissue & (depth > 2) & (depth < 0.18 * depth.max())
    inner = tissue & (depth > 0.3 * depth.max())
    if min(outer.sum(), inner.sum()) < 30:
        return 0.0
    cortex = float(np.median(grey[outer]) / np.median(grey[inner]))
    return 5 * (1 - cortex) + 2 * (min(scalp, 1.6) - 1.15)


def guess_plane(brain: Mask, ratio: Grey) -> Plane | None:
    """Guess the plane from the symmetry and the shape of the brain.

    Parameters
    ----------
    brain : ndarray of bool, shape (Y, X)
        The inside of the skull.
    ratio : ndarray of float32, shape (Y, X)
        Brightness relative to the brain.

    Returns
    -------
    Plane or None
        None when the shape is between two planes.
    """
    columns = np.flatnonzero(brain.any(axis=0))
    rows = np.flatnonzero(brain.any(axis=1))
    part = ratio[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    shape = brain[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    both = shape & shape[:, ::-1]
    overlap = both.sum() / max(1, (shape | shape[:, ::-1]).sum())
    smooth = ndimage.gaussian_filter(np.clip(part, 0, 2), 3)
    likeness = float(np.corrcoef(smooth[both], smooth[:, ::-1][both])[0, 1]) if both.sum() > 50 else 0.0
    # Seen from above a brain is a quarter longer than wide; from the front and from the side it is wider than high.
    shape_ratio = part.shape[0] / part.shape[1]
    if shape_ratio > 1.1 and overlap > 0.85:
        return Plane.AXIAL
    if shape_ratio > 1:
        return None
    if overlap < 0.85 or likeness < 0.3:
        return Plane.SAGITTAL
    return Plane.CORONAL if likeness > 0.45 else None
