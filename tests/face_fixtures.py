"""Where the face and the brain of a simulated patient lie in his scans: the truth for defacing, which the library never sees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import ndimage

from neuralmedbench.demo.cohort import read_cohort
from neuralmedbench.demo.contrast import PROTOCOLS
from neuralmedbench.demo.grid import BRAIN, HEAD, Point, ellipsoid
from neuralmedbench.demo.head import EARS, FACE, Tissue
from neuralmedbench.demo.phantom import Phantom, make_phantom
from neuralmedbench.demo.scanner import Pose, ScanGrid, Stack, acquire, resample
from neuralmedbench.files.nifti import Volume

MOUTH, NOSE = FACE[2:5], FACE[5:10]
LIDS: tuple[tuple[Point, Point], ...] = (((31, 80, -33), (17, 8, 13)), ((-31, 80, -33), (17, 8, 13)))
SKIN_DEEP_MM, BROW_Z, TEMPLE_Y, CANAL_Z = 5, -5, 40, -70
"""The outer layer of the face: its depth, below the brows, before the temples (MNI). Below the last height fluid lies in the spine."""


@dataclass(frozen=True)
class Head:
    """A simulated patient with the truth: fields on the grid `HEAD`, shape (Z, Y, X), from 0 to 1.

    Attributes
    ----------
    phantom : Phantom
        The patient.
    fields : dict of str to ndarray of float32
        `nose`, `eyes` (globes and lids), `mouth` (lips and chin), `ears` (their soft tissue), `skin` (outer 5 mm from brow to chin),
        `face` (all of these), `brain` (grey and white matter, and all fluid inside the skull).
    """

    phantom: Phantom
    fields: dict[str, np.ndarray]


@dataclass(frozen=True)
class Scanned:
    """A scan of a head."""

    volume: Volume
    head: Head
    pose: Pose
    grid: ScanGrid
    slices: slice

    def true(self, field: str) -> np.ndarray:
        """Where a field of the head lies, (X, Y, Z) on the scan's own grid."""
        return (resample(self.head.fields[field], self.pose, self.grid) > 0.5).T[:, :, self.slices]


def make_head(phantom: Phantom) -> Head:
    """Find the truth of a patient."""
    parts = face_parts(phantom)
    fields = {name: part.astype(np.float32) for name, part in parts.items()}
    face = np.any(list(parts.values()), axis=0).astype(np.float32)
    return Head(phantom, fields | {"face": face, "brain": inside_skull(phantom)})


@cache
def first_head() -> Head:
    """The first demo patient, made once for all tests of a run."""
    return make_head(make_phantom(read_cohort()[0]))


def face_parts(phantom: Phantom) -> dict[str, np.ndarray]:
    """What shows the face, on the grid `HEAD`, shape (Z, Y, X)."""
    labels = phantom.labels
    head = labels != Tissue.AIR
    soft = np.isin(labels, [Tissue.SKIN, Tissue.FAT, Tissue.MUSCLE])
    z, y, _ = HEAD.axes()
    solid = ndimage.binary_fill_holes(head)
    skin = solid & ~ndimage.binary_erosion(solid, iterations=SKIN_DEEP_MM, border_value=1)
    globes = (labels == Tissue.VITREOUS) | (labels == Tissue.LENS)
    return {
        "nose": head & _union(NOSE),
        "eyes": globes | ((labels == Tissue.SKIN) & _union(LIDS)),
        "mouth": head & _union(MOUTH),
        "ears": soft & _union(EARS),
        "skin": skin & (-y > TEMPLE_Y) & (z < BROW_Z),
    }


def inside_skull(phantom: Phantom) -> np.ndarray:
    """Brain and fluid, from 0 to 1, on the grid `HEAD`."""
    z, _, _ = HEAD.axes()
    inside = ((phantom.labels == Tissue.CSF) & (z >= CANAL_Z)).astype(np.float32)
    window = HEAD.window(BRAIN)
    inside[window] = np.maximum(inside[window], phantom.inside())
    return inside


def scan(head: Head, sequence: str, *, turn_deg: Point = (0.0, 0.0, 0.0), slices: slice = slice(None)) -> Scanned:
    """Scan a head: `T1-3D` in 1 mm, all else in slices of 5 mm.

    A turn tilts the slices (the head is turned in the scanner, and the scan back in the room); `slices` cuts a slab.
    """
    pose = head.phantom.pose.moved(turn_deg, (0.0, 0.0, 0.0))
    rng = np.random.default_rng(1)
    stack = acquire(head.phantom.ideal(sequence), PROTOCOLS[sequence], pose, rng, isotropic=sequence.endswith("-3D"))
    return placed(head, stack, pose, turn_deg=turn_deg, slices=slices)


def scan_moved(head: Head, sequence: str, turn_deg: Point, shift_mm: Point, slices: slice = slice(None)) -> Scanned:
    """Scan a head that lies otherwise in the scanner than `scan` finds it."""
    pose = head.phantom.pose.moved(turn_deg, shift_mm)
    stack = acquire(head.phantom.ideal(sequence), PROTOCOLS[sequence], pose, np.random.default_rng(1), isotropic=sequence.endswith("-3D"))
    return placed(head, stack, pose, slices=slices)


def placed(head: Head, stack: Stack, pose: Pose, *, turn_deg: Point = (0.0, 0.0, 0.0), slices: slice = slice(None)) -> Scanned:
    """Give a scan of a head its place in space."""
    affine = _affine(stack.grid, turn_deg)
    affine[:3, 3] += affine[:3, 2] * (slices.start or 0)
    return Scanned(Volume(stack.voxels.T[:, :, slices], affine), head, pose, stack.grid, slices)


def _affine(grid: ScanGrid, turn_deg: Point) -> np.ndarray:
    place, back = np.eye(4), np.eye(4)
    place[:3, :3], place[:3, 3] = np.diag(grid.spacing), grid.origin
    back[:3, :3] = Pose(turn_deg, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)).matrix().T
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ back @ place


def _union(features: tuple[tuple[Point, Point], ...]) -> np.ndarray:
    return np.any([ellipsoid(HEAD, centre, radii) < 1 for centre, radii in features], axis=0)
