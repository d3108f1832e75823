"""Measurements on one picture: brightness relative to brain, fluid, and patches that stand out.

Thresholds come from general knowledge of MR contrast (fluid is black in FLAIR, an acute infarct is roughly twice as bright as brain in
DWI, ...). They were not optimised, but several were set while looking at the demo's phantoms, so the score of this baseline on the demo
is not a held-out result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import ndimage

from neuralmedbench.demo.baselines.forms import PictureInput
from neuralmedbench.demo.baselines.pictures import (
    DISC,
    Grey,
    Mask,
    PictureLabel,
    brain_mask,
    decode,
    guess_plane,
    guess_sequence,
    head_mask,
    is_ct,
    read_label,
)
from neuralmedbench.records.case import CT_SEQUENCES, Plane, Sequence

DARK_FLUID = {
    Sequence.T1W: 0.62,
    Sequence.CE_T1W: 0.62,
    Sequence.FLAIR: 0.5,
    Sequence.DWI: 0.5,
    Sequence.CT: 0.6,
    Sequence.CE_CT: 0.6,
    Sequence.PDW: 0.6,
}
"""Fluid is darker than this, relative to the median of the brain."""

BRIGHT_FLUID = {Sequence.T2W: 1.6, Sequence.ADC: 1.7, Sequence.T2STARW: 1.6, Sequence.SWI: 1.6}
"""Fluid is brighter than this."""

BRIGHT_LESION = {
    Sequence.FLAIR: 1.3,
    Sequence.DWI: 1.45,
    Sequence.CT: 1.35,
    Sequence.CE_CT: 1.35,
    Sequence.CE_T1W: 1.4,
}
"""A patch brighter than this is abnormal in any location."""

MIRROR_GAIN = {Sequence.FLAIR: 0.16, Sequence.DWI: 0.22, Sequence.T2W: 0.2}
"""A patch brighter than its mirror position by this much is abnormal."""


@dataclass(frozen=True)
class Patch:
    """A connected patch that stands out.

    Attributes
    ----------
    mask : ndarray of bool, shape (GRID, GRID)
        Its pixels.
    area : float
        Fraction of the brain in the picture.
    x, y : float
        Centre, relative to the brain: x from -1 (patient's right) to +1 (patient's left), y from -1 (anterior) to +1.
    left : float
        Fraction of it on the patient's left.
    edge : float
        Fraction of its outline at the surface of the brain.
    gap : float
        Shortest distance to the ventricles, in radii of the brain; 1 if no ventricle is visible.
    elongation : float
        Ratio of its principal axes, at least 1.
    hole : float
        Fraction of its filled area that is hole, as in a ring.
    """

    mask: Mask
    area: float
    x: float
    y: float
    left: float
    edge: float
    gap: float
    elongation: float
    hole: float


@dataclass(frozen=True)
class Frame:
    """Measurements of one picture.

    Attributes
    ----------
    sequence, plane : Sequence or None, Plane or None
        From the label, or guessed from the picture.
    z_mm : float or None
        Position, if the label states it.
    ratio : ndarray of float32, shape (GRID, GRID)
        Brightness relative to the median of the brain, slightly smoothed.
    brain : ndarray of bool, shape (GRID, GRID)
        Inside of the skull.
    noise : float
        Robust spread of `ratio` from one pixel to the next.
    """

    sequence: Sequence | None
    plane: Plane | None
    z_mm: float | None
    ratio: Grey
    brain: Mask
    noise: float

    @cached_property
    def depth(self) -> Grey:
        """Depth below the surface of the brain, pixels."""
        return np.asarray(ndimage.distance_transform_edt(self.brain), dtype=np.float32)

    @cached_property
    def box(self) -> tuple[float, float, float, float]:
        """Centre row, centre column, half height and half width of the brain."""
        rows, columns = np.flatnonzero(self.brain.any(axis=1)), np.flatnonzero(self.brain.any(axis=0))
        middle = (rows[0] + rows[-1]) / 2, (columns[0] + columns[-1]) / 2
        return middle[0], middle[1], max(1.0, (rows[-1] - rows[0]) / 2), max(1.0, (columns[-1] - columns[0]) / 2)

    @cached_property
    def radius(self) -> float:
        """Radius in pixels of a disc with the area of the brain."""
        return float(np.sqrt(self.brain.sum() / np.pi))

    @cached_property
    def fluid(self) -> Mask:
        """Ventricles, sulci, cysts."""
        if self.sequence in DARK_FLUID:
            return self.brain & (self.ratio < DARK_FLUID[self.sequence])
        if self.sequence in BRIGHT_FLUID:
            # A window that clips the darkest tissue stretches ratios, so fluid must also be among the brightest pixels.
            top = 0.7 * float(np.percentile(self.ratio[self.brain], 99))
            return self.brain & (self.ratio > max(BRIGHT_FLUID[self.sequence], top))
        return np.zeros_like(self.brain)

    @cached_property
    def ventricles(self) -> Mask:
        """Fluid in the middle of the brain."""
        row, column, height, width = self.box
        y, x = np.indices(self.brain.shape)
        middle = (np.hypot((y - row) / (0.72 * height), (x - column) / (0.55 * width)) < 1) & (self.depth > 0.25 * self.radius)
        return np.asarray(ndimage.binary_opening(self.fluid & middle, DISC))

    @cached_property
    def cortex(self) -> float:
        """Upper brightness of normal grey matter in FLAIR and T2; a lesion is brighter."""
        return float(np.clip(1.1 * np.percentile(self.ratio[self.brain & ~self.fluid], 85), 1.15, 1.3))

    @cached_property
    def gain(self) -> Grey:
        """Brightness minus that of the mirror position on the other side, smoothed."""
        _, column, _, _ = self.box
        smooth = ndimage.gaussian_filter(self.ratio, 2.0)
        mirrored = mirror(smooth, column)
        both = self.brain & (mirror(self.brain.astype(np.float32), column) > 0.99)
        return np.where(both, smooth - mirrored, 0).astype(np.float32)


def mirror(picture: Grey, column: float) -> Grey:
    """Reflect a picture about a column (which may lie between two pixels); pixels from outside are 0."""
    columns = np.rint(2 * column - np.arange(picture.shape[1])).astype(int)
    valid = (columns >= 0) & (columns < picture.shape[1])
    return np.where(valid[None, :], picture[:, np.clip(columns, 0, picture.shape[1] - 1)], 0).astype(np.float32)


def measure(image: PictureInput) -> Frame | None:
    """Measure one picture.

    Returns
    -------
    Frame or None
        None if the bytes are not a picture, or no head is found.
    """
    grey = decode(image)
    if grey is None:
        return None
    label: PictureLabel = read_label(image.label)
    head = head_mask(grey)
    ct = is_ct(grey, head) if label.sequence is None else label.sequence in CT_SEQUENCES
    brain = brain_mask(grey, head, skull_is_bright=ct)
    if brain.sum() < 0.02 * brain.size:
        return None
    deep = grey[ndimage.binary_erosion(brain, DISC, iterations=3) & (grey > 0.02)]
    # brightness is relative to the median of the brain's interior
    level = float(np.median(deep)) if deep.size else 0.0
    if level <= 0.02:
        return None
    ratio = ndimage.gaussian_filter(grey, 0.6) / level
    # The residual of smoothing is noise, without the contrast of grey and white matter; 1.48 scales a MAD to a standard deviation.
    noise = float(np.median(np.abs(ratio - ndimage.gaussian_filter(ratio, 2.0))[brain])) * 1.48
    sequence = label.sequence or (Sequence.CT if ct else guess_sequence(grey, head, brain))
    plane = label.plane or guess_plane(brain, ratio)
    return Frame(sequence, plane, label.z_mm, ratio, brain, noise)


def patches(frame: Frame, mask: Mask, *, smallest: float = 0.0008) -> tuple[Patch, ...]:
    """Measure the connected patches of a mask, the largest first.

    Parameters
    ----------
    frame : Frame
        The picture of the mask.
    mask : ndarray of bool, shape (GRID, GRID)
        Pixels that stand out.
    smallest : float
        Smaller patches are dropped (fraction of the brain in the picture).
    """
    labels, parts = ndimage.label(mask, structure=np.ones((3, 3)))
    if parts == 0:
        return ()
    brain_area = float(frame.brain.sum())
    # distances to the ventricles only if these are more than a few pixels
    to_ventricle = ndimage.distance_transform_edt(~frame.ventricles) if frame.ventricles.sum() >= 8 else None
    row, column, height, width = frame.box
    found = []
    for number, where in enumerate(ndimage.find_objects(labels), start=1):
        part = labels[where] == number
        pixels = int(part.sum())
        if pixels < max(3, smallest * brain_area):
            continue
        rows, columns = np.nonzero(part)
        rows, columns = rows + where[0].start, columns + where[1].start
        whole = np.zeros_like(mask)
        whole[rows, columns] = True
        # 1/12 is the variance of a uniform pixel: without it a line of pixels would have an axis of length 0
        axes = np.sqrt(np.linalg.eigvalsh(np.cov(np.stack([rows, columns])) + np.eye(2) / 12)) if pixels > 3 else np.ones(2)
        # closing bridges gaps of a broken ring before it is filled
        filled = int(ndimage.binary_fill_holes(ndimage.binary_closing(np.pad(part, 3), DISC, iterations=2)).sum())
        outline = part & ~ndimage.binary_erosion(part)
        at_edge = frame.depth[where][outline] <= 0.06 * frame.radius + 1
        found.append(
            Patch(
                mask=whole,
                area=pixels / brain_area,
                x=float((columns.mean() - column) / width),
                y=float((rows.mean() - row) / height),
                left=float((columns > column).mean()),
                edge=float(at_edge.mean()),
                gap=float(to_ventricle[whole].min() / frame.radius) if to_ventricle is not None else 1.0,
                elongation=float(axes[1] / axes[0]),
                hole=1 - pixels / max(filled, pixels),
            )
        )
    return tuple(sorted(found, key=lambda patch: -patch.area))


def bright_mask(frame: Frame) -> Mask:
    """Mark what is brighter than normal brain in this sequence, except at the rim; nothing for sequences without a threshold.

    Returns
    -------
    ndarray of bool, shape (GRID, GRID)
        True where the picture stands out.
    """
    nothing = np.zeros_like(frame.brain)
    if frame.sequence is None:
        return nothing
    # without the rim of the brain, which is wider in CT
    rim = 0.09 if frame.sequence in CT_SEQUENCES else 0.04
    inside = frame.depth > rim * frame.radius + 1
    found = nothing
    if frame.sequence in BRIGHT_LESION:
        found = inside & (frame.ratio > max(BRIGHT_LESION[frame.sequence], 1 + 5 * frame.noise))
    if frame.sequence is Sequence.FLAIR:
        found = found | (inside & (frame.ratio > 1.06 * frame.cortex)) | small_bright_spots(frame)
    # compare with the other side; a sagittal plane has none
    if frame.sequence in MIRROR_GAIN and frame.plane is not Plane.SAGITTAL:
        gain = (
            inside
            & (frame.gain > max(MIRROR_GAIN[frame.sequence], 2.0 * frame.noise))
            & (frame.ratio > (frame.cortex if frame.sequence is not Sequence.DWI else 1.08))
        )
        # fluid is bright in T2: keep away from it
        if frame.sequence is Sequence.T2W:
            gain &= ndimage.gaussian_filter(frame.fluid.astype(np.float32), 2.0) < 0.3
        found = found | ndimage.binary_opening(gain, DISC, iterations=2)
    # If much of a slice is bright, the scalp was segmented as brain.
    return np.asarray(found) if found.sum() < 0.25 * frame.brain.sum() else nothing


def small_bright_spots(frame: Frame) -> Mask:
    """Mark spots below the cortex, up to about a fifteenth of the brain's width, that are brighter than their surroundings.

    They must also be brighter than the other side, which excludes insula and interhemispheric cortex.
    """
    deep = frame.depth > 0.16 * frame.radius
    hat = frame.ratio - ndimage.grey_opening(frame.ratio, size=(9, 9))
    around = ndimage.binary_dilation(frame.fluid, iterations=1)
    return np.asarray(
        ndimage.binary_opening(
            deep & ~around & (hat > max(0.17, 5 * frame.noise)) & (frame.ratio > frame.cortex) & (frame.gain > 0.07), DISC
        )
    )


def small_dark_spots(frame: Frame) -> Mask:
    """Mark spots below the cortex that are darker than their surroundings: microbleeds, and veins seen end-on."""
    deep = frame.depth > 0.1 * frame.radius
    hat = ndimage.grey_closing(frame.ratio, size=(7, 7)) - frame.ratio
    return np.asarray(deep & (hat > max(0.25, 8 * frame.noise)) & (frame.ratio < 0.7))


def dark_mask(frame: Frame) -> Mask:
    """Mark what is darker than the other side by 0.3 of the brain's brightness (0.12 in CT): a cavity, or fluid on one side only."""
    inside = frame.depth > 0.06 * frame.radius + 1
    limit = 0.12 if frame.sequence in CT_SEQUENCES else 0.3
    return np.asarray(ndimage.binary_opening(inside & (frame.gain < -limit) & (frame.ratio < 1 - limit), DISC, iterations=2))
