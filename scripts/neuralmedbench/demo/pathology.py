"""Lesions: where a disease changes the signal of a simulated brain, and to what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuralmedbench.demo.anatomy import Brain
from neuralmedbench.demo.contrast import PROTOCOLS
from neuralmedbench.demo.grid import BRAIN, Grid, Point, Volume, ellipsoid, lps, ramp, smooth_noise
from neuralmedbench.demo.head import Tissue
from neuralmedbench.errors import DataError


@dataclass(frozen=True, kw_only=True)
class PhantomLesion:
    """One component of a disease; a later one is painted over an earlier one.

    Attributes
    ----------
    signal : dict of str to float
        Value by sequence, in the units of `contrast.PROTOCOLS`; a sequence that is absent does not show it.
    centres : tuple of (x, y, z)
        Centres of equal ellipsoids, MNI, mm; empty for a halo.
    radii : tuple of float
        Half axes, mm.
    halo_mm : float
        Instead of ellipsoids: white matter up to this distance from the lateral ventricles.
    tissue : str
        `brain` (grey and white matter), `white`, `inside` (fluid too) or `surface` (the outermost millimetres).
    rough : float
        Irregularity of the outline, as a share of the radius.
    form : int
        Components with the same form share their irregularity (a ring and its core).
    main : bool
        Whether it is what the answer speaks of; oedema around a tumour is not.
    texture : float
        How much of the contrast between the tissues below it shows through, 0 to 1.
    strength : float
        Largest share of a voxel that it takes.
    scale_mm : float
        Distance over which the outline changes.
    """

    signal: dict[str, float]
    centres: tuple[Point, ...] = ()
    radii: Point = (5, 5, 5)
    halo_mm: float = 0.0
    tissue: str = "brain"
    rough: float = 0.2
    form: int = 0
    main: bool = True
    texture: float = 0.0
    strength: float = 1.0
    scale_mm: float = 14.0


def lesion_mask(lesion: PhantomLesion, brain: Brain, seed: int) -> Volume:
    """Find how much of each voxel a lesion takes.

    Returns
    -------
    ndarray of float32, shape (Z, Y, X)
        From 0 to 1 on the grid `BRAIN`.
    """
    limits = {
        "brain": brain.gm + brain.wm,
        "white": brain.wm,
        "inside": brain.gm + brain.wm + brain.csf,
        "surface": ramp(brain.depth, 4, 1.5) * (brain.depth > 0),
    }
    if lesion.tissue not in limits:
        message = f"tissue {lesion.tissue!r} is not known; choose from {', '.join(limits)}"
        raise DataError(message)
    noise = smooth_noise(BRAIN, np.random.default_rng([seed, 7, lesion.form]), lesion.scale_mm)
    mask: Volume = np.zeros(BRAIN.shape, np.float32)
    if lesion.halo_mm:
        edge = lesion.halo_mm * (1 + lesion.rough * noise)
        mask = ramp(edge - brain.ventricle_distance, 0, 2) * ramp(brain.depth, 8, 12)
    for centre in lesion.centres:
        _add_ellipsoid(mask, centre, lesion, noise)
    return mask * np.float32(lesion.strength) * ramp(limits[lesion.tissue], 0.2, 0.7)


def _add_ellipsoid(mask: Volume, centre: Point, lesion: PhantomLesion, noise: Volume) -> None:
    reach = [1.8 * radius + 2 for radius in lesion.radii[::-1]]
    middle = lps(centre)[::-1]
    low = [max(first, int(at - size)) for first, at, size in zip(BRAIN.low, middle, reach, strict=True)]
    high = [min(first + count, int(at + size) + 1) for first, count, at, size in zip(BRAIN.low, BRAIN.shape, middle, reach, strict=True)]
    box = Grid((low[0], low[1], low[2]), (high[0] - low[0], high[1] - low[1], high[2] - low[2]))
    window = BRAIN.window(box)
    outline = (np.sqrt(ellipsoid(box, centre, lesion.radii)) + lesion.rough / 2 * noise[window]).astype(np.float32, copy=False)
    soft = 0.7 / min(lesion.radii)
    mask[window] = np.maximum(mask[window], ramp(outline, 1 + soft, 1 - soft))


def paint(ideal: Volume, masks: list[tuple[PhantomLesion, Volume]], sequence: str) -> Volume:
    """Put lesions into the signal of a brain.

    Parameters
    ----------
    ideal : ndarray of float32, shape (Z, Y, X)
        Signal on the grid `BRAIN`; it is not changed.
    masks : list of (PhantomLesion, ndarray)
        From :func:`lesion_mask`, in the order of painting.
    sequence : str
        Key of `contrast.PROTOCOLS`; a T1 at 1 mm shows what a T1 shows.

    Returns
    -------
    ndarray of float32, shape (Z, Y, X)
        The changed signal.
    """
    white_matter = PROTOCOLS[sequence].lookup()[Tissue.WM]
    for lesion, mask in masks:
        value = lesion.signal.get(sequence.removesuffix("-3D"))
        if value is not None:
            ideal = ideal + mask * (np.float32(value) + np.float32(lesion.texture) * (ideal - white_matter) - ideal)
    return ideal
