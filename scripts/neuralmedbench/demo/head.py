"""Skull, scalp and face around the brain of a simulated patient, so that defacing has something to remove."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from neuralmedbench.demo.grid import BRAIN, HEAD, HEAD_COARSE, Grid, Point, Volume, ellipsoid, lps, resize

Labels = npt.NDArray[np.uint8]
"""Array (Z, Y, X), LPS+, one :class:`Tissue` per voxel."""


class Tissue(IntEnum):
    """Tissue of a voxel of the head."""

    AIR = 0
    CSF = 1
    GM = 2
    WM = 3
    BONE = 4
    MARROW = 5
    FAT = 6
    MUSCLE = 7
    SKIN = 8
    VITREOUS = 9
    LENS = 10
    MUCOSA = 11
    DURA = 12
    VESSEL = 13


FACE: tuple[tuple[Point, Point], ...] = (
    ((0, 22, -70), (66, 61, 60)),  # cheeks and upper jaw
    ((0, -8, -62), (72, 70, 42)),  # temples and the muscles below them
    ((0, 58, -104), (34, 30, 26)),  # lower jaw and chin
    ((0, 78, -72), (26, 16, 9)),  # upper lip
    ((0, 77, -84), (23, 15, 7)),  # lower lip
    ((0, 86, -24), (9, 14, 16)),  # bridge of the nose
    ((0, 91, -38), (11, 19, 17)),
    ((0, 97, -47), (13, 20, 12)),  # tip
    ((-12, 88, -51), (9, 14, 9)),  # wings
    ((12, 88, -51), (9, 14, 9)),
    ((-34, 80, -14), (19, 8, 6)),  # brows
    ((34, 80, -14), (19, 8, 6)),
    ((-42, 58, -54), (20, 21, 17)),  # cheek bones
    ((42, 58, -54), (20, 21, 17)),
    ((0, -25, -110), (56, 60, 62)),  # neck
)
"""Ellipsoids whose union with the scalp is the head's surface: centre (MNI, mm) and half axes (mm)."""

EARS: tuple[tuple[Point, Point], ...] = (((-84, -22, -34), (14, 16, 30)), ((84, -22, -34), (14, 16, 30)))
EAR_HOLLOWS: tuple[tuple[Point, Point], ...] = (((-96, -17, -36), (11, 9, 19)), ((96, -17, -36), (11, 9, 19)))
SINUSES: tuple[tuple[Point, Point], ...] = (
    ((-27, 56, -56), (13, 16, 15)),  # maxillary
    ((27, 56, -56), (13, 16, 15)),
    ((0, 26, -34), (11, 11, 9)),  # sphenoid
    ((-9, 56, -34), (6, 17, 9)),  # ethmoid
    ((9, 56, -34), (6, 17, 9)),
    ((0, 76, -12), (15, 5, 8)),  # frontal
)
MASTOIDS: tuple[tuple[Point, Point], ...] = (((-56, -34, -44), (13, 16, 17)), ((56, -34, -44), (13, 16, 17)))
SKULL_FROM_MM, MARROW_FROM_MM, MARROW_TO_MM, SKULL_TO_MM, SCALP_TO_MM = 3.0, 5.0, 7.5, 9.5, 15.5


def make_head(brain: npt.NDArray[np.bool_], rng: np.random.Generator) -> Labels:
    """Build everything in the head except the brain.

    Parameters
    ----------
    brain : ndarray of bool, shape (Z, Y, X)
        The brain with its fluid, on the grid `BRAIN`.
    rng : numpy.random.Generator
        Random numbers for the patient's individual features.

    Returns
    -------
    ndarray of uint8, shape (Z, Y, X)
        Tissues on the grid `HEAD`; the brain is filled with CSF, over which its tissue fractions are painted later.
    """
    # thresholds are mm below the skin (depth) and mm outside the brain's hull (distance); later layers overwrite earlier ones
    distance, gap, depth = (resize(field, 2, HEAD.shape) for field in _distances(brain, rng))
    labels = np.full(HEAD.shape, Tissue.AIR, np.uint8)
    labels[depth > 0] = Tissue.SKIN
    labels[depth > 2.2] = Tissue.FAT
    labels[depth > 6.5] = Tissue.MUSCLE
    for low, tissue in (
        (SKULL_TO_MM, Tissue.BONE),
        (MARROW_TO_MM, Tissue.MARROW),
        (MARROW_FROM_MM, Tissue.BONE),
        (SKULL_FROM_MM, Tissue.DURA),
        (SKULL_FROM_MM - 1, Tissue.CSF),
    ):
        labels[distance < low] = tissue
    labels[(distance < SKULL_FROM_MM - 1) & (gap > 5)] = Tissue.MARROW  # skull base between the lobes and the brain stem
    _paint_midline_vessel(labels, distance)
    outside = distance > SKULL_FROM_MM + 2
    _paint_orbits(labels, outside)
    _paint_air_spaces(labels, outside & (depth > 3), rng)
    _paint_spinal_canal(labels)
    window = HEAD.window(BRAIN)
    labels[window][brain] = Tissue.CSF
    return labels


def _distances(brain: npt.NDArray[np.bool_], rng: np.random.Generator) -> tuple[Volume, Volume, Volume]:
    """Return the distance from the brain's smooth hull, the distance from the brain, and the signed depth below the skin, mm, on `HEAD_COARSE`."""
    # the brain mask on the coarse grid
    grid = HEAD_COARSE
    mask = np.zeros(grid.shape, bool)
    z, y, x = (slice(-(-(inside - outside) // 2), None) for inside, outside in zip(BRAIN.low, grid.low, strict=True))
    part = brain[::2, ::2, ::2]
    mask[z, y, x][: part.shape[0], : part.shape[1], : part.shape[2]] = part
    # closing by 14 mm gives a hull without sulci, from which skull and scalp are measured
    gap = _outside(mask)
    hull = ndimage.distance_transform_edt(gap < 14, sampling=2) >= 13
    distance = _outside(hull | mask)
    # the head's surface: scalp, face with individual proportions (5 % SD), ears
    surface = distance < SCALP_TO_MM
    size = 1 + 0.05 * rng.standard_normal(len(FACE))
    for (centre, radii), scale in zip(FACE, size, strict=True):
        surface |= ellipsoid(grid, centre, (radii[0] * scale, radii[1] * scale, radii[2] * scale)) < 1
    surface = _rounded(surface)
    for (ear, ear_radii), (hollow, hollow_radii) in zip(EARS, EAR_HOLLOWS, strict=True):
        surface |= (ellipsoid(grid, ear, ear_radii) < 1) & (ellipsoid(grid, hollow, hollow_radii) > 1)
    depth = ndimage.distance_transform_edt(surface, sampling=2).astype(np.float32) - _outside(surface)
    return distance, gap, ndimage.uniform_filter(depth, 3)


def _outside(mask: npt.NDArray[np.bool_]) -> Volume:
    return ndimage.distance_transform_edt(~mask, sampling=2).astype(np.float32)


def _rounded(surface: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Smooth the creases where ellipsoids meet."""
    soft = surface.astype(np.float32)
    for _ in range(2):
        soft = ndimage.uniform_filter(soft, 5, mode="nearest")
    return soft > 0.5


def _paint(labels: Labels, where: tuple[Point, Point], tissue: Tissue, allowed: npt.NDArray[np.bool_]) -> None:
    """Paint an ellipsoid, computing only its bounding box."""
    box, window = _box(*where)
    chosen = (ellipsoid(box, *where) < 1) & allowed[window]
    labels[window][chosen] = tissue


def _box(centre: Point, radii: Point) -> tuple[Grid, tuple[slice, slice, slice]]:
    middle, reach = lps(centre)[::-1], radii[::-1]
    low = [max(first, int(at - size) - 1) for first, at, size in zip(HEAD.low, middle, reach, strict=True)]
    high = [min(first + count - 1, int(at + size) + 1) for first, count, at, size in zip(HEAD.low, HEAD.shape, middle, reach, strict=True)]
    box = Grid((low[0], low[1], low[2]), (high[0] - low[0] + 1, high[1] - low[1] + 1, high[2] - low[2] + 1))
    return box, HEAD.window(box)


def _paint_orbits(labels: Labels, outside: npt.NDArray[np.bool_]) -> None:
    # orbit, fat, lid, eye muscles, optic nerve, eyeball, lens
    for side in (-1, 1):
        _paint(labels, ((side * 31, 52, -33), (20, 27, 20)), Tissue.BONE, outside)
        _paint(labels, ((side * 31, 54, -33), (18, 28, 18)), Tissue.FAT, outside)
        _paint(labels, ((side * 31, 80, -33), (17, 8, 13)), Tissue.SKIN, outside & (labels != Tissue.AIR))
        for offset, height in ((-9, -33), (9, -33), (0, -24), (0, -42)):
            _paint(labels, ((side * 29 + offset * 0.8, 48, height), (2.2, 20, 2.2)), Tissue.MUSCLE, outside)
        _paint(labels, ((side * 27, 42, -33), (2.2, 18, 2.2)), Tissue.WM, outside)
        _paint(labels, ((side * 32, 66, -33), (12.6, 12.6, 12.6)), Tissue.MUSCLE, outside)
        _paint(labels, ((side * 32, 66, -33), (11.4, 11.4, 11.4)), Tissue.VITREOUS, outside)
        _paint(labels, ((side * 32, 74, -33), (4.6, 2.4, 4.6)), Tissue.LENS, outside)


def _paint_air_spaces(labels: Labels, outside: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    # sinuses with a wall of bone and mucosa, then the nasal cavity and its airways
    for centre, radii in SINUSES:
        for margin, tissue in ((2.0, Tissue.BONE), (0.8, Tissue.MUCOSA), (0.0, Tissue.AIR)):
            _paint(labels, (centre, (radii[0] + margin, radii[1] + margin, radii[2] + margin)), tissue, outside)
    _paint(labels, ((0, 62, -56), (14, 27, 17)), Tissue.MUCOSA, outside)
    for side in (-1, 1):
        _paint(labels, ((side * 4, 64, -52), (2.4, 27, 15)), Tissue.AIR, outside)
        _paint(labels, ((side * 10, 60, -60), (2.2, 20, 9)), Tissue.AIR, outside)
        _paint(labels, ((side * 6, 92, -56), (3.4, 8, 5)), Tissue.AIR, outside)
    _paint(labels, ((0, 45, -76), (30, 30, 3)), Tissue.BONE, outside)  # hard palate
    _paint(labels, ((0, 8, -72), (12, 9, 26)), Tissue.AIR, outside)  # pharynx
    # mastoids: bone with random air cells of 2 mm
    for centre, radii in MASTOIDS:
        box, window = _box(centre, radii)
        cells = (ellipsoid(box, centre, radii) < 1) & outside[window]
        labels[window][cells] = Tissue.BONE
        coarse = rng.random([count // 2 + 1 for count in box.shape]) > 0.45
        fine = coarse.repeat(2, 0).repeat(2, 1).repeat(2, 2)[: box.shape[0], : box.shape[1], : box.shape[2]]
        labels[window][cells & fine] = Tissue.AIR


def _paint_midline_vessel(labels: Labels, distance: Volume) -> None:
    """Paint the superior sagittal sinus, between skull and brain along the midline."""
    z, y, x = HEAD.axes()
    rim = (distance > 0) & (distance < SKULL_FROM_MM + 1.5)
    labels[rim & (x > -4 + distance) & (x < 4 - distance + 1.5) & ((z > 20) | ((y > 60) & (z > -10)))] = Tissue.VESSEL


def _paint_spinal_canal(labels: Labels) -> None:
    """Paint the spinal canal and cord below the template's lower end."""
    below = HEAD.window(Grid((-100, -126, -100), (30, 251, 201)))
    z, y, x = HEAD.axes()
    radius = ((x / 9) ** 2 + ((y - 44) / 8) ** 2) * np.ones_like(z[:30])
    labels[below][radius < 2.2] = Tissue.MARROW
    labels[below][radius < 1] = Tissue.CSF
    labels[below][radius < 0.4] = Tissue.WM
