"""The brain of one simulated patient: nilearn's packaged MNI152 tissue maps, deformed, with lesions painted in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from neuralmedbench.atlas.anatomy import template_file
from neuralmedbench.demo.grid import BRAIN, Grid, Point, Volume, ellipsoid, lps, ramp, resize, smooth_noise
from neuralmedbench.demo.head import Tissue
from neuralmedbench.demo.scanner import PROTOCOLS
from neuralmedbench.errors import DataError

TEMPLATE_LOW = (-72, -98, -98)
"""First voxel of the packaged templates after reorientation to LPS+, (z, y, x) in mm."""


@dataclass(frozen=True, kw_only=True)
class BrainShape:
    """Difference of a brain from the average.

    Attributes
    ----------
    ventricles_mm : float
        Outward displacement of the ventricles' walls.
    temporal_horns_mm : float
        The same for the temporal horns, which widen at the expense of the hippocampi.
    sulci : float
        Width of the sulci: 1 average, above 1 atrophy, below 1 crowding.
    convexity_sulci : float
        The same for the high convexity, where normal pressure hydrocephalus differs from atrophy.
    push : tuple of (centre, radius_mm, shift_mm)
        Masses: tissue within twice the radius of the centre (MNI, mm) is pushed away from it.
    """

    ventricles_mm: float = 0.0
    temporal_horns_mm: float = 0.0
    sulci: float = 1.0
    convexity_sulci: float = 1.0
    push: tuple[tuple[Point, float, float], ...] = ()


@dataclass(frozen=True)
class Brain:
    """Tissue fractions on the grid `BRAIN`, each from 0 to 1, with a sum of at most 1.

    Attributes
    ----------
    gm, wm, csf : ndarray of float32, shape (Z, Y, X)
        Grey matter, white matter, cerebrospinal fluid.
    depth : ndarray of float32, shape (Z, Y, X)
        Distance from the brain's surface, mm; 0 outside.
    ventricle_distance : ndarray of float32, shape (Z, Y, X)
        Distance from the lateral ventricles, mm; 0 inside them.
    """

    gm: Volume
    wm: Volume
    csf: Volume
    depth: Volume
    ventricle_distance: Volume


def make_brain(shape: BrainShape, rng: np.random.Generator) -> Brain:
    """Deform the average brain into that of one patient.

    Parameters
    ----------
    shape : BrainShape
        Intended differences.
    rng : numpy.random.Generator
        Random numbers for the patient's individual shape.

    Returns
    -------
    Brain
        The patient's tissue fractions.

    Raises
    ------
    DataError
        If nilearn's packaged templates are missing.
    """
    gm, wm, inside = (_template(name) for name in ("gm", "wm", "t1"))
    inside = (inside > 0).astype(np.float32)
    ventricles = _ventricles(inside - gm - wm)
    warp, cavity = _deformation(shape, ventricles, rng)
    gm, wm, inside = (ndimage.map_coordinates(part, warp, order=1, mode="constant") for part in (gm, wm, inside))
    # widened cavities become fluid; interpolation blurred the edges, so they are sharpened again
    gm, wm = gm * (1 - cavity), wm * (1 - cavity)
    gm, wm = ramp(gm, 0.12, 0.88), ramp(wm, 0.12, 0.88)
    gm = np.minimum(gm, 1 - wm)
    depth = _distance(inside > 0.5)
    gm = _with_sulci(gm, wm, depth, shape)
    # the rest inside the skull is fluid; the fractions of a voxel are scaled to sum to at most 1
    csf = inside - np.minimum(gm + wm, inside)
    total = np.maximum(gm + wm + csf, 1e-6)
    scale = inside / np.maximum(total, inside)
    return Brain(gm * scale, wm * scale, csf * scale, depth, _distance(~_ventricles(csf)))


def _template(name: str) -> Volume:
    import nibabel as nib

    ras = np.asarray(nib.load(template_file(name)).dataobj)  # type: ignore[attr-defined]
    turned = ras[::-1, ::-1].transpose(2, 1, 0)
    start = [low - first for low, first in zip(BRAIN.low, TEMPLATE_LOW, strict=True)]
    z, y, x = (slice(low, low + count) for low, count in zip(start, BRAIN.shape, strict=True))
    return turned[z, y, x].astype(np.float32) / np.float32(255)


def _ventricles(csf: Volume) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Mark the lateral and third ventricles: fluid connected with the frontal horns and atria."""
    reach = (ellipsoid(BRAIN, (0, -8, 12), (40, 60, 26)) < 1) & (csf > 0.5)
    labels, _ = ndimage.label(ndimage.binary_erosion(reach))
    seeds = [_index(point) for point in ((-10, 15, 8), (10, 15, 8), (-10, 0, 22), (10, 0, 22), (-25, -42, 12), (25, -42, 12))]
    near = {int(labels[tuple(slice(max(0, place - 3), place + 4) for place in seed)].max()) for seed in seeds} - {0}
    return ndimage.binary_dilation(np.isin(labels, sorted(near)), iterations=1) & reach


def _index(point: Point) -> tuple[int, int, int]:
    x, y, z = lps(point)
    return int(z - BRAIN.low[0]), int(y - BRAIN.low[1]), int(x - BRAIN.low[2])


def _distance(inside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Volume:
    """Compute the distance in mm to the outside of a mask on every second voxel: smooth enough and eight times faster."""
    coarse = ndimage.distance_transform_edt(inside[::2, ::2, ::2], sampling=2).astype(np.float32)
    return resize(coarse, 2, BRAIN.shape)


def _deformation(
    shape: BrainShape, ventricles: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], rng: np.random.Generator
) -> tuple[Volume, Volume]:
    """Return the position in the average brain of each voxel of the patient's, as (3, Z, Y, X) in voxels, and the widened cavities."""
    # individual variation of about 2 mm, then ventricles, temporal horns and masses
    shift = [2.2 * smooth_noise(BRAIN, rng, 56) for _ in range(3)]
    cavity = np.zeros(BRAIN.shape, np.float32)
    if shape.ventricles_mm:
        _, _, x = BRAIN.axes()
        cavity = _widen(shift, ventricles, shape.ventricles_mm, 14) * ramp(np.abs(x), 0.2, 1.4)  # a trace of the septum stays
    if shape.temporal_horns_mm:
        horns = (ellipsoid(BRAIN, (-31, -18, -15), (4, 16, 3)) < 1) | (ellipsoid(BRAIN, (31, -18, -15), (4, 16, 3)) < 1)
        cavity = np.maximum(cavity, _widen(shift, horns, shape.temporal_horns_mm, 7))
    for centre, radius, amount in shape.push:
        z, y, x = BRAIN.axes()
        cx, cy, cz = lps(centre)
        away = np.sqrt((x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2) + 1
        strength = amount * ramp(away, 2.4 * radius, 0.6 * radius)
        for axis, offset in enumerate((z - cz, y - cy, x - cx)):
            shift[axis] = shift[axis] - strength * offset / away
    index = np.meshgrid(*(np.arange(count, dtype=np.float32) for count in BRAIN.shape), indexing="ij", sparse=True)
    return np.stack([line + part for line, part in zip(index, shift, strict=True)]), cavity


def _widen(shift: list[Volume], cavity: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], amount: float, reach: float) -> Volume:
    """Push the surroundings of a cavity outwards, changing `shift` in place, and return the widened cavity, 0 to 1."""
    signed = _distance(~cavity) - _distance(cavity)
    for _ in range(2):
        signed = ndimage.uniform_filter(signed, 3)
    strength = amount * ramp(signed, amount + reach, amount)
    for axis, slope in enumerate(np.gradient(signed)):
        shift[axis] = shift[axis] - strength * slope
    return ramp(signed, amount + 0.5, amount - 0.5)


def _with_sulci(gm: Volume, wm: Volume, depth: Volume, shape: BrainShape) -> Volume:
    """Thin or thicken the cortex where grey matter shares a voxel with fluid: less grey matter (atrophy) or more (crowding)."""
    # a separate width above z = 38 to 52 mm, the high convexity
    z, _, _ = BRAIN.axes()
    high = ramp(z, 38, 52)
    width = shape.sulci * (1 - high) + shape.convexity_sulci * high
    outer = ramp(depth, 26, 18)
    room = 1 - wm
    share = np.clip(gm / np.maximum(room, 0.05), 0, 1)
    wider = np.clip(1 - (1 - share) * width - 0.16 * (width - 1) * (share > 0), 0, 1)
    return (gm + outer * (wider * room - gm)).astype(np.float32, copy=False)


@dataclass(frozen=True, kw_only=True)
class PhantomLesion:
    """One component of a disease; a later one is painted over an earlier one.

    Attributes
    ----------
    signal : dict of str to float
        Value by sequence, in the units of `contrast.PROTOCOLS`; the lesion is invisible on absent sequences.
    centres : tuple of (x, y, z)
        Centres of equal ellipsoids, MNI, mm; empty for a halo.
    radii : tuple of float
        Half axes, mm.
    halo_mm : float
        Instead of ellipsoids: white matter up to this distance from the lateral ventricles.
    tissue : str
        `brain` (grey and white matter), `white`, `inside` (fluid too) or `surface` (the outermost millimetres).
    rough : float
        Irregularity of the outline, as a fraction of the radius.
    form : int
        Components with the same form have the same irregularity (a ring and its core).
    main : bool
        Whether the answer is about it; false for oedema around a tumour.
    texture : float
        Fraction of the contrast between the underlying tissues that shows through, 0 to 1.
    strength : float
        Largest fraction of a voxel that it replaces.
    scale_mm : float
        Distance over which the outline varies.
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
    """Compute the fraction of each voxel that a lesion replaces.

    Returns
    -------
    ndarray of float32, shape (Z, Y, X)
        From 0 to 1 on the grid `BRAIN`.

    Raises
    ------
    DataError
        If the lesion's tissue is unknown.
    """
    limits = {
        "brain": brain.gm + brain.wm,
        "white": brain.wm,
        "inside": brain.gm + brain.wm + brain.csf,
        "surface": ramp(brain.depth, 4, 1.5) * (brain.depth > 0),
    }
    if lesion.tissue not in limits:
        message = f"unknown tissue {lesion.tissue!r}; choose from {', '.join(limits)}"
        raise DataError(message)
    # the same noise for all components of one form, so that ring and core fit
    noise = smooth_noise(BRAIN, np.random.default_rng([seed, 7, lesion.form]), lesion.scale_mm)
    mask: Volume = np.zeros(BRAIN.shape, np.float32)
    # a halo around the ventricles, away from the cortex
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
        Signal on the grid `BRAIN`, not modified.
    masks : list of (PhantomLesion, ndarray)
        From :func:`lesion_mask`, in the order of painting.
    sequence : str
        Key of `contrast.PROTOCOLS`; a T1 at 1 mm uses the values of T1.

    Returns
    -------
    ndarray of float32, shape (Z, Y, X)
        The signal with lesions.
    """
    white_matter = PROTOCOLS[sequence].lookup()[Tissue.WM]
    for lesion, mask in masks:
        value = lesion.signal.get(sequence.removesuffix("-3D"))
        if value is not None:
            ideal = ideal + mask * (np.float32(value) + np.float32(lesion.texture) * (ideal - white_matter) - ideal)
    return ideal
