"""Diffusion series turned into the one picture that is read: the trace of the strongest weighting."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.dcm2niix import convert
from neuralmedbench.files.nifti import Volume, read_nifti
from neuralmedbench.ingest.pixels import copy_dicom
from neuralmedbench.ingest.raw_files import RawScan
from neuralmedbench.runtime.atomic_write import partial_folder

B0 = 50.0
"""Below this b-value in s/mm2 an image is not diffusion weighted."""
TILES = ((0x0029, 0x1010), (0x0019, 0x100A))
"""Siemens' private elements that tell how the tiles of a mosaic lie."""


def trace_image(voxels: npt.NDArray[Any], b_values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float32], float]:
    """Turn a diffusion series into the picture that is read: the trace of the strongest weighting.

    `voxels`: shape (X, Y, Z, N). `b_values`: shape (N,); diffusion weighting in s/mm2. Returns: Geometric mean over the gradients of the
    strongest weighting, which does not depend on the direction of fibres, and its b-value. Raises DataError if b-values and volumes do not
    fit, or nothing is weighted.
    """
    if voxels.ndim != 4 or voxels.shape[3] != len(b_values):
        message = f"{len(b_values)} b-values do not fit the volumes of a diffusion series"
        raise DataError(message)
    strongest = float(b_values.max())
    if strongest < B0:
        message = "a diffusion series without diffusion weighting (all b-values near 0)"
        raise DataError(message)
    chosen = np.abs(b_values - strongest) <= _tolerance(strongest)
    logs = np.log(np.maximum(voxels[..., chosen].astype(np.float32), 1e-3)).mean(axis=3)
    return np.exp(logs).astype(np.float32), strongest


def _tolerance(strongest: float) -> float:
    """Scanners write b-values that differ by a few from gradient to gradient."""
    return max(0.05 * strongest, 20)


def read_b_values(path: Path) -> npt.NDArray[np.float64]:
    """Read a `.bval` file; DataError when it does not hold numbers."""
    try:
        return np.array([float(part) for part in path.read_text(encoding="ascii").split()])
    except (ValueError, UnicodeDecodeError):
        message = "the b-values beside a diffusion series are not numbers"
        raise DataError(message) from None


def strongest_weighting(scans: tuple[RawScan, ...], weights: SequenceOf[float | None]) -> tuple[tuple[RawScan, ...], float | None]:
    """Choose the images of the strongest weighting of a series.

    `weights`: their b-values in s/mm2. Returns: The images and their b-value; all images and None where a header does not tell its own.
    """
    known = [weight for weight in weights if weight is not None]
    if not known or len(known) != len(scans):
        return scans, max(known, default=None) if len(set(known)) == 1 else None
    strongest = max(known)
    chosen = tuple(scan for scan, weight in zip(scans, known, strict=True) if strongest - weight <= _tolerance(strongest))
    return chosen, strongest


def weighted_volume(scans: tuple[RawScan, ...], folder: Path, b_value: float | None) -> tuple[Volume, float | None]:
    """Convert diffusion while the vendor's headers, which hold gradients and tiles, are still there.

    Returns: The trace image and its b-value; of a single volume (a map) the volume. Raises DataError if weights or tiles are not in the
    headers.
    """
    header = scans[0].header
    if header is not None and "MOSAIC" in dicom.texts(header, "ImageType") and not any(place in header for place in TILES):
        message = "a mosaic without the vendor's private header, which tells how its tiles lie; export it again with private elements"
        raise DataError(message)
    folder.mkdir(parents=True, exist_ok=True)
    with partial_folder(folder) as work:  # not in the system's folder: raw headers stay in the private zone
        copy_dicom(scans, work / "in")
        results = convert(work / "in", work / "out")
        volumes = [read_nifti(result.image) for result in results]
        sizes = [volume.voxels.size for volume in volumes]
        best = sizes.index(max(sizes))
        volume, bval = volumes[best], results[best].bval
        if volume.voxels.ndim == 3:
            known = read_b_values(bval) if bval is not None and b_value is None else np.array([])
            return volume, float(known[0]) if len(known) == 1 else b_value
        if b_value is not None:
            voxels, b_value = trace_image(volume.voxels, np.full(volume.voxels.shape[3], b_value))
        elif bval is None:
            message = "diffusion weighting of a series of volumes is not in its headers"
            raise DataError(message)
        else:
            voxels, b_value = trace_image(volume.voxels, read_b_values(bval))
        return Volume(voxels, volume.affine), b_value
