"""Scan a simulated head: signal of each tissue in each sequence, pose, slice thickness, bias field and noise, and the parameters for the header."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from neuralmedbench.demo.grid import BRAIN, HEAD, Grid, Point, Volume, smooth_noise
from neuralmedbench.demo.head import Tissue


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One sequence of a study.

    Attributes
    ----------
    description : str
        SeriesDescription and ProtocolName.
    signal : dict of Tissue to float
        Intensity of each tissue, white matter about 100 in T1 (CT: Hounsfield units, ADC: 1e-6 mm2/s); 0 if absent.
    noise : float
        Standard deviation of the noise in each channel, in units of `signal`.
    bias : float
        Largest relative deviation of the bias field; 0 for maps and CT, which have none.
    blur : int
        Side of the box filter, in voxels, that blurs a slice within its plane (1: no blur).
    tags : dict
        DICOM keywords and their values.
    image_type : tuple of str
        DICOM ImageType.
    """

    description: str
    signal: dict[Tissue, float]
    noise: float
    bias: float = 0.15
    blur: int = 1
    tags: dict[str, object] = field(default_factory=dict)
    image_type: tuple[str, ...] = ("ORIGINAL", "PRIMARY", "M", "ND", "NORM")

    @property
    def is_ct(self) -> bool:
        """True if this is computed tomography."""
        return "KVP" in self.tags

    @property
    def air(self) -> float:
        """Signal of air."""
        return self.signal[Tissue.AIR]

    def lookup(self) -> Volume:
        """Return the intensities indexed by tissue number."""
        table = np.zeros(len(Tissue), np.float32)
        for tissue, value in self.signal.items():
            table[tissue] = value
        return table


def _signal(*values: float) -> dict[Tissue, float]:
    return dict(zip(Tissue, values, strict=True))


#                   air csf  gm  wm bone marrow fat muscle skin vitreous lens mucosa dura vessel
_T1 = _signal(0, 22, 63, 94, 8, 78, 150, 55, 62, 20, 48, 60, 40, 35)
_T1C = _signal(0, 22, 66, 95, 8, 82, 150, 60, 66, 20, 48, 125, 75, 170)
_SPIN = {"ScanningSequence": "SE", "SequenceVariant": ["SK", "SP", "OSP"], "MRAcquisitionType": "2D"}
PROTOCOLS: dict[str, Protocol] = {
    "T1": Protocol(
        description="T1_SE_TRA",
        signal=_T1,
        noise=2.2,
        tags=_SPIN | {"SequenceName": "*se2d1", "RepetitionTime": 500.0, "EchoTime": 9.0, "FlipAngle": 90.0},
    ),
    "T1-3D": Protocol(
        description="T1_MPRAGE_SAG_ISO",
        signal=_T1,
        noise=3.2,
        tags={
            "ScanningSequence": ["GR", "IR"],
            "SequenceVariant": ["SK", "SP", "MP"],
            "MRAcquisitionType": "3D",
            "SequenceName": "*tfl3d1_16ns",
            "RepetitionTime": 2300.0,
            "EchoTime": 2.98,
            "InversionTime": 900.0,
            "FlipAngle": 9.0,
        },
    ),
    "T1C+": Protocol(
        description="T1_SE_TRA_KM",
        signal=_T1C,
        noise=2.2,
        tags=_SPIN
        | {
            "SequenceName": "*se2d1",
            "RepetitionTime": 500.0,
            "EchoTime": 9.0,
            "FlipAngle": 90.0,
            "ContrastBolusAgent": "Gadobutrol",
            "ContrastBolusRoute": "IV",
            "ContrastBolusVolume": 7.5,
        },
    ),
    "T2": Protocol(
        description="T2_TSE_TRA",
        signal=_signal(0, 225, 108, 76, 6, 62, 118, 36, 55, 230, 42, 150, 45, 12),
        noise=3.5,
        tags=_SPIN | {"SequenceName": "*tse2d1_15", "RepetitionTime": 4800.0, "EchoTime": 98.0, "FlipAngle": 150.0, "EchoTrainLength": 15},
    ),
    "FLAIR": Protocol(
        description="T2_TIRM_TRA_DARK-FLUID",
        signal=_signal(0, 12, 94, 70, 5, 38, 84, 34, 42, 14, 34, 95, 38, 12),
        noise=3.0,
        tags={
            "ScanningSequence": ["SE", "IR"],
            "SequenceVariant": ["SK", "SP", "MP"],
            "MRAcquisitionType": "2D",
            "SequenceName": "*tir2d1_16",
            "RepetitionTime": 9000.0,
            "EchoTime": 88.0,
            "InversionTime": 2500.0,
            "FlipAngle": 150.0,
            "EchoTrainLength": 16,
        },
    ),
    "DWI": Protocol(
        description="EP2D_DIFF_TRA_TRACEW",
        signal=_signal(0, 10, 62, 54, 2, 5, 9, 14, 16, 8, 16, 22, 8, 4),
        noise=3.0,
        blur=3,
        tags={
            "ScanningSequence": "EP",
            "SequenceVariant": ["SK", "SP"],
            "MRAcquisitionType": "2D",
            "SequenceName": "*ep_b1000t",
            "RepetitionTime": 5600.0,
            "EchoTime": 92.0,
            "FlipAngle": 90.0,
            "DiffusionBValue": 1000.0,
            "DiffusionDirectionality": "ISOTROPIC",
        },
        image_type=("DERIVED", "PRIMARY", "DIFFUSION", "TRACEW", "ND", "NORM"),
    ),
    "ADC": Protocol(
        description="EP2D_DIFF_TRA_ADC",
        signal=_signal(0, 3000, 840, 740, 0, 0, 0, 1200, 900, 2900, 800, 1500, 500, 300),
        noise=35,
        bias=0,
        blur=3,
        tags={
            "ScanningSequence": "EP",
            "SequenceVariant": ["SK", "SP"],
            "MRAcquisitionType": "2D",
            "SequenceName": "*ep_b0_1000",
            "RepetitionTime": 5600.0,
            "EchoTime": 92.0,
            "FlipAngle": 90.0,
        },
        image_type=("DERIVED", "PRIMARY", "DIFFUSION", "ADC", "ND", "NORM"),
    ),
    "SWI": Protocol(
        description="SWI_TRA",
        signal=_signal(0, 112, 98, 86, 4, 30, 62, 55, 58, 118, 40, 50, 40, 10),
        noise=3.0,
        tags={
            "ScanningSequence": "GR",
            "SequenceVariant": ["SP", "OSP"],
            "MRAcquisitionType": "2D",
            "SequenceName": "*fl2d1_swi",
            "RepetitionTime": 650.0,
            "EchoTime": 20.0,
            "FlipAngle": 20.0,
        },
        image_type=("ORIGINAL", "PRIMARY", "M", "SWI", "NORM"),
    ),
    "CT": Protocol(
        description="CCT NATIVE HEAD 5.0",
        signal=_signal(-1000, 7, 38, 28, 1150, 480, -95, 52, 30, 8, 75, 40, 52, 50),
        noise=3.5,
        bias=0,
        tags={
            "KVP": 120.0,
            "XRayTubeCurrent": 280,
            "ExposureTime": 1000,
            "Exposure": 280,
            "ConvolutionKernel": "J40s",
            "GantryDetectorTilt": 0.0,
            "FilterType": "0",
            "RescaleType": "HU",
        },
        image_type=("ORIGINAL", "PRIMARY", "AXIAL"),
    ),
}
"""The sequences, by the names of NeuroVLM-Bench (`T1-3D` is a T1 at 1 mm)."""
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
