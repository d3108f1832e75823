"""Scan a simulated head: pose, slice thickness, bias field and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from neuralmedbench.demo.contrast import Protocol
from neuralmedbench.demo.grid import BRAIN, HEAD, Grid, Point, Volume, smooth_noise

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pose:
    """Position of the head in the scanner: scanner = rotation * size * head + shift.

    Attributes
    ----------
    angles_deg : tuple of float
        Rotations about x, y and z, in this order.
    shift_mm : tuple of float
        (x, y, z), LPS+.
    size : tuple of float
        Scale along x, y and z, dimensionless.
    """

    angles_deg: Point
    shift_mm: Point
    size: Point

    def moved(self, angles_deg: Point, shift_mm: Point) -> Pose:
        """Return the pose after a small movement of the head."""
        angles = tuple(old + change for old, change in zip(self.angles_deg, angles_deg, strict=True))
        shift = tuple(old + change for old, change in zip(self.shift_mm, shift_mm, strict=True))
        return Pose(angles, shift, self.size)  # type: ignore[arg-type]

    def matrix(self) -> Matrix:
        """Return the 3 x 3 matrix from head to scanner, both (x, y, z) in LPS+ mm."""
        # multiplied out in plain Python: matrix products of numpy round differently from processor to processor
        rotation = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        for axis, angle in enumerate(self.angles_deg):
            c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            turn = [[1.0 if row == column else 0.0 for column in range(3)] for row in range(3)]
            one, two = (axis + 1) % 3, (axis + 2) % 3
            turn[one][one], turn[one][two], turn[two][one], turn[two][two] = c, -s, s, c
            rotation = [[sum(turn[i][k] * rotation[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
        return np.array([[rotation[i][j] * self.size[j] for j in range(3)] for i in range(3)])

    def place(self, point: Point) -> Point:
        """Map a point of the head (LPS+ mm) to the scanner (LPS+ mm)."""
        matrix = self.matrix()
        x, y, z = (sum(float(matrix[i][j]) * point[j] for j in range(3)) + self.shift_mm[i] for i in range(3))
        return x, y, z


@dataclass(frozen=True)
class ScanGrid:
    """Voxel grid of a scan, parallel to the scanner's axes.

    Attributes
    ----------
    origin : tuple of float
        Centre of the first voxel, (x, y, z), LPS+ mm.
    shape : tuple of int
        Number of voxels, (Z, Y, X).
    spacing : tuple of float
        (x, y, z), mm.
    """

    origin: Point
    shape: tuple[int, int, int]
    spacing: Point


AXIAL = ScanGrid((-103.5, -121.5, -66.0), (30, 240, 208), (1.0, 1.0, 5.0))
ISOTROPIC = ScanGrid((-95.5, -121.5, -84.0), (180, 240, 192), (1.0, 1.0, 1.0))


@dataclass(frozen=True)
class SliceStack:
    """One scan.

    Attributes
    ----------
    grid : ScanGrid
        Positions of its voxels.
    voxels : ndarray of int16, shape (Z, Y, X), LPS+
        MR: four times the signal. ADC: 1e-6 mm2/s. CT: Hounsfield units.
    """

    grid: ScanGrid
    voxels: npt.NDArray[np.int16]


def resample(field: Volume, pose: Pose, grid: ScanGrid, *, outside: float = 0.0) -> Volume:
    """Sample a field of the head on a scan's voxels, averaging over the thickness of thick slices.

    Parameters
    ----------
    field : ndarray of float32, shape (Z, Y, X)
        On the grid `HEAD`, or on `BRAIN`.
    pose : Pose
        Position of the head.
    grid : ScanGrid
        The scan's voxels.
    outside : float
        Value outside the field.

    Returns
    -------
    ndarray of float32, shape (Z, Y, X)
        The field as the scanner sees it.
    """
    space = HEAD if field.shape == HEAD.shape else BRAIN
    thickness = round(grid.spacing[2])
    if thickness > 1:
        field = ndimage.uniform_filter1d(field, thickness, axis=0, mode="nearest")
    back = _inverse(pose.matrix())[::-1, ::-1]  # head from scanner, in the arrays' order z, y, x
    start = [origin - shift for origin, shift in zip(grid.origin[::-1], pose.shift_mm[::-1], strict=True)]
    offset = [sum(float(back[i][j]) * start[j] for j in range(3)) - space.low[i] for i in range(3)]
    step = np.array(grid.spacing[::-1])[None, :]
    return ndimage.affine_transform(field, back * step, offset, output_shape=grid.shape, order=1, mode="constant", cval=outside)


def _inverse(matrix: Matrix) -> Matrix:
    """Invert a 3 x 3 matrix by cofactors: linear algebra libraries round differently from processor to processor."""
    m = matrix.tolist()
    ring = (0, 1, 2, 0, 1)
    minors = [
        [
            m[ring[i + 1]][ring[j + 1]] * m[ring[i + 2]][ring[j + 2]] - m[ring[i + 1]][ring[j + 2]] * m[ring[i + 2]][ring[j + 1]]
            for j in range(3)
        ]
        for i in range(3)
    ]
    determinant = sum(m[0][j] * minors[0][j] for j in range(3))
    return np.array([[minors[j][i] / determinant for j in range(3)] for i in range(3)])


def acquire(ideal: Volume, protocol: Protocol, pose: Pose, rng: np.random.Generator, *, isotropic: bool = False) -> SliceStack:
    """Scan a head, with Rician noise in MR images and Gaussian noise in maps and CT.

    Parameters
    ----------
    ideal : ndarray of float32, shape (Z, Y, X)
        Signal on the grid `HEAD`, in the units of the protocol.
    protocol : Protocol
        Noise, bias field and blur.
    pose : Pose
        Position of the head during this series.
    rng : numpy.random.Generator
        Random numbers.
    isotropic : bool
        1 mm in all directions instead of 1 x 1 x 5 mm.
    """
    grid = ISOTROPIC if isotropic else AXIAL
    signal = resample(ideal, pose, grid, outside=protocol.air)
    if protocol.blur > 1:
        signal = ndimage.uniform_filter(signal, (1, protocol.blur, protocol.blur), mode="nearest")
    # only magnitude images have a bias field; ADC maps and CT have none
    if protocol.bias:
        return SliceStack(grid, _magnitude(signal, protocol, grid, rng))
    noise = np.float32(protocol.noise) * rng.standard_normal(grid.shape, dtype=np.float32) * (signal != 0)
    low, high = (-1024, 3071) if protocol.is_ct else (0, 4095)
    return SliceStack(grid, np.clip(np.rint(signal + noise), low, high).astype(np.int16))


def _magnitude(signal: Volume, protocol: Protocol, grid: ScanGrid, rng: np.random.Generator) -> npt.NDArray[np.int16]:
    """Add a smooth bias field and Rician noise: the magnitude of a signal with noise in both channels, times four."""
    thickness = round(grid.spacing[2])
    depth, height, width = grid.shape
    field = smooth_noise(Grid((0, 0, 0), (depth * thickness, height, width)), rng, 110)[::thickness]
    signal = signal * (1 + np.float32(protocol.bias) * np.clip(field / 2.5, -1, 1))
    real, imaginary = (np.float32(protocol.noise) * rng.standard_normal(grid.shape, dtype=np.float32) for _ in range(2))
    magnitude = 4 * np.sqrt((signal + real) ** 2 + imaginary**2)
    return np.clip(np.rint(magnitude), 0, 4095).astype(np.int16)
