"""Decode a picture, segment head and brain, and read or guess modality, sequence and plane."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage

from neuralmedbench.demo.baselines.forms import PictureInput
from neuralmedbench.records.case import Plane, Sequence

Grey = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

GRID = 160
"""Side of the square on which pictures are measured, pixels; about 1.4 mm per pixel for a field of view of 230 mm."""

MAX_PIXELS = 40_000_000
"""Larger pictures are not decoded: a small file can expand to a huge picture (decompression bomb)."""

RAYS = 144
"""Number of directions in which the skull is searched."""

DISC = ndimage.generate_binary_structure(2, 1)


@dataclass(frozen=True)
class PictureLabel:
    """Content of the text before a picture; None where it is silent."""

    sequence: Sequence | None
    plane: Plane | None
    z_mm: float | None


def read_label(text: str) -> PictureLabel:
    """Read the label of a picture.

    Parameters
    ----------
    text : str
        For example `Picture 3: FLAIR, axial, z = +12 mm`, or `Picture 3`.
    """
    words = re.findall(r"[A-Za-z0-9]+", text)
    sequence = next((kind for word in words for kind in Sequence if word.lower() == kind.value.lower()), None)
    plane = next((plane for word in words for plane in Plane if word.lower() == plane.value), None)
    z = re.search(r"z\s*=\s*([+-]?\d+(?:\.\d+)?)", text)
    return PictureLabel(None if sequence is Sequence.UNKNOWN else sequence, plane, float(z.group(1)) if z else None)


def decode(image: PictureInput) -> Grey | None:
    """Turn the bytes of a picture into grey values.

    Returns
    -------
    ndarray of float32, shape (GRID, GRID), or None
        Grey values between 0 and 1, letterboxed to a square; row 0 anterior, column 0 patient right in an axial
        picture. None if the bytes are not a picture, or it is empty.
    """
    try:
        with Image.open(io.BytesIO(image.png)) as picture:
            if picture.width * picture.height > MAX_PIXELS or min(picture.size) < 8:
                return None
            scale = GRID / max(picture.size)
            size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
            small = picture.convert("L").resize(size, Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    square = Image.new("L", (GRID, GRID))
    square.paste(small, ((GRID - size[0]) // 2, (GRID - size[1]) // 2))
    grey = np.asarray(square, dtype=np.float32) / np.float32(255)
    return grey if grey.max() > 0.1 else None


def head_mask(grey: Grey) -> Mask:
    """Mark the head: the largest bright region, closed and filled.

    Parameters
    ----------
    grey : ndarray of float32, shape (Y, X)
        Grey values between 0 and 1.

    Returns
    -------
    ndarray of bool, shape (Y, X)
        The head; empty if nothing stands out from the background.
    """
    # 18 % of the brightness of the lit part separates head from background noise
    lit = grey[grey > 0.03]
    if lit.size < 0.02 * grey.size:
        return np.zeros(grey.shape, dtype=bool)
    bright = ndimage.gaussian_filter(grey, 1.0) > 0.18 * float(np.percentile(lit, 80))
    closed = ndimage.binary_closing(np.pad(bright, 4), DISC, iterations=3)[4:-4, 4:-4]
    return largest_part(ndimage.binary_opening(ndimage.binary_fill_holes(closed), DISC, iterations=2))


def brain_mask(grey: Grey, head: Mask, *, skull_is_bright: bool) -> Mask:
    """Mark the inside of the skull.

    Parameters
    ----------
    grey : ndarray of float32, shape (Y, X)
        Grey values between 0 and 1.
    head : ndarray of bool, shape (Y, X)
        The head.
    skull_is_bright : bool
        True for CT, where the skull is white; in MRI it is the dark ring under the scalp.

    Returns
    -------
    ndarray of bool, shape (Y, X)
        Brain with ventricles and sulci; empty if none is found.
    """
    if not head.any():
        return head
    if skull_is_bright:
        bone = ndimage.binary_closing(grey > 0.95, DISC, iterations=2)
        inside = ndimage.binary_fill_holes(bone) & ~bone
        return largest_part(ndimage.binary_opening(inside, DISC, iterations=2))
    # inside the skull: tissue brighter than 45 % of the interior's median, closed over the sulci
    core = _inside_dark_ring(grey, head)
    deep = grey[ndimage.binary_erosion(core, DISC, iterations=8)]
    if deep.size < 50:
        return np.zeros(head.shape, dtype=bool)
    tissue = ndimage.binary_opening(core & (grey > 0.45 * float(np.median(deep))), DISC, iterations=2)
    whole = ndimage.binary_closing(np.pad(largest_part(tissue), 8), DISC, iterations=6)[8:-8, 8:-8]
    return largest_part(ndimage.binary_fill_holes(whole) & core)


def _inside_dark_ring(grey: Grey, head: Mask) -> Mask:
    """Remove scalp and skull: keep what lies inside the darkest point under the scalp on rays from the centre.

    Returns the whole head if most rays find no such ring: the skull is stripped, or the scalp is dark (diffusion).
    """
    rows, columns = np.nonzero(head)
    middle_row, middle_column = float(rows.mean()), float(columns.mean())
    angles = np.linspace(-np.pi, np.pi, RAYS, endpoint=False)
    reach = np.arange(1.0, GRID)
    # distance from the centre to the edge of the head, per ray
    sample = np.stack([middle_row + np.outer(np.sin(angles), reach), middle_column + np.outer(np.cos(angles), reach)])
    inside = ndimage.map_coordinates(head.astype(np.float32), sample, order=0) > 0
    edge = np.maximum(np.where(inside, reach, 0).max(axis=1), 4)
    # brightness from the edge inwards, up to 32 % of the way to the centre
    steps = np.linspace(1.0, 0.68, 28)
    along = edge[:, None] * steps[None, :]
    points = np.stack([middle_row + np.sin(angles)[:, None] * along, middle_column + np.cos(angles)[:, None] * along])
    profile = ndimage.map_coordinates(ndimage.gaussian_filter(grey, 0.7), points, order=1)
    ring = 2 + np.argmin(profile[:, 2:], axis=1)
    floor = profile[np.arange(RAYS), ring]
    scalp = np.array([float(line[:stop].max()) for line, stop in zip(profile, ring, strict=True)])
    level = float(np.median(profile[:, -1]))
    found = (scalp > 1.5 * floor + 0.02) & (floor < 0.7 * level)
    if found.mean() < 0.55:
        return head
    # rays without a ring get the median depth; then the contour is smoothed around the head
    depth = np.where(found, 1.0 - steps[ring], float(np.median(1.0 - steps[ring[found]])))
    smooth = ndimage.median_filter(depth, size=13, mode="wrap")
    row, column = np.indices(head.shape)
    angle = np.arctan2(row - middle_row, column - middle_column)
    limit = np.interp(angle, angles, edge * (1.0 - smooth), period=2 * np.pi)
    return np.asarray(head & (np.hypot(row - middle_row, column - middle_column) < limit))


def largest_part(mask: Mask) -> Mask:
    """Keep the largest connected part of a mask."""
    labels, parts = ndimage.label(mask)
    if parts == 0:
        return mask
    return np.asarray(labels == 1 + int(np.argmax(np.bincount(labels.ravel())[1:])))


def is_ct(grey: Grey, head: Mask) -> bool:
    """Detect CT by its skull: a closed ring of saturated white around grey tissue.

    Parameters
    ----------
    grey : ndarray of float32, shape (Y, X)
        Grey values between 0 and 1.
    head : ndarray of bool, shape (Y, X)
        The head.
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
        None if no rule fits.
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
        # Diffusion suppresses the fat of the scalp; fluid is dark in DWI, bright in ADC.
        return Sequence.ADC if bright > 2 and dark > 0.75 else Sequence.DWI
    if (bright > 1.6 and dark > 0.6) or (bright > 2.3 and dark > 0.45):
        return Sequence.ADC if scalp < 0.7 else Sequence.T2W
    t1 = _likeness_to_t1(grey, brain, depth, level, scalp)
    if dark > 0.75 or abs(t1) < 0.1:
        return None
    # In T1 nothing within the brain is as bright as fat unless it enhances.
    enhanced = float(np.percentile(grey[deep], 99.3)) > 1.6 * level
    return Sequence.FLAIR if t1 < 0 else Sequence.CE_T1W if enhanced else Sequence.T1W


def _likeness_to_t1(grey: Grey, brain: Mask, depth: Grey, level: float, scalp: float) -> float:
    """Return a value above 0 for T1, below 0 for FLAIR: in T1 cortex is darker than white matter and the scalp's fat is brightest."""
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
        None if the shape is ambiguous.
    """
    columns = np.flatnonzero(brain.any(axis=0))
    rows = np.flatnonzero(brain.any(axis=1))
    part = ratio[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    shape = brain[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    # left-right symmetry of outline and brightness
    both = shape & shape[:, ::-1]
    overlap = both.sum() / max(1, (shape | shape[:, ::-1]).sum())
    smooth = ndimage.gaussian_filter(np.clip(part, 0, 2), 3)
    likeness = float(np.corrcoef(smooth[both], smooth[:, ::-1][both])[0, 1]) if both.sum() > 50 else 0.0
    # In axial planes a brain is a quarter longer than wide; in coronal and sagittal ones it is wider than high.
    shape_ratio = part.shape[0] / part.shape[1]
    if shape_ratio > 1.1 and overlap > 0.85:
        return Plane.AXIAL
    if shape_ratio > 1:
        return None
    if overlap < 0.85 or likeness < 0.3:
        return Plane.SAGITTAL
    return Plane.CORONAL if likeness > 0.45 else None
