"""Read NIfTI files as arrays in their stored orientation, and write them with nothing but geometry in the header.

For ingest and de-identification, which must not resample or reorient anything; later stages read with `files.volumes`.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.runtime.atomic_write import atomic_file

FLAT = 0.1
"""Smallest volume of a voxel relative to a box with the same sides; a shear by 45 degrees leaves 0.7."""


@dataclass(frozen=True)
class Volume:
    """Voxels of a NIfTI file.

    Attributes
    ----------
    voxels : ndarray, shape (X, Y, Z) or (X, Y, Z, N)
        In stored orientation, with the header's scaling applied.
    affine : ndarray, shape (4, 4)
        RAS+, mm.
    """

    voxels: npt.NDArray[Any]
    affine: npt.NDArray[np.float64]


def read_nifti(path: Path) -> Volume:
    """Read a NIfTI file.

    Raises
    ------
    DataError
        If it is damaged, not a volume, or has no orientation.
    OSError
        If the disk cannot be read, which is no fault of the file.
    """
    import nibabel

    stored = path.read_bytes()
    try:
        image = nibabel.Nifti1Image.from_bytes(gzip.decompress(stored) if stored[:2] == b"\x1f\x8b" else stored)
        voxels, header = np.asanyarray(image.dataobj), image.header
    except (nibabel.filebasedimages.ImageFileError, nibabel.spatialimages.HeaderDataError, OSError, EOFError, ValueError, zlib.error):
        message = "damaged NIfTI file"
        raise DataError(message) from None
    if voxels.ndim > 3:  # axes beyond the third are volumes
        voxels = voxels.reshape(*voxels.shape[:3], -1)
        voxels = voxels[..., 0] if voxels.shape[3] == 1 else voxels
    if voxels.ndim < 3 or min(voxels.shape[:3]) < 2 or voxels.dtype.kind not in "iuf":
        message = "not a grey volume (a single picture, or colours)"
        raise DataError(message)
    if not int(header["qform_code"]) and not int(header["sform_code"]):
        message = "left and right cannot be known: the file says nothing about its orientation (qform and sform codes are 0)"
        raise DataError(message)
    affine = np.asarray(image.affine)
    sizes = np.linalg.norm(affine[:3, :3], axis=0)
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) <= FLAT * sizes.prod():
        message = "its header gives no volume: the voxels have no extent in one direction (sform, qform)"
        raise DataError(message)
    return Volume(voxels, affine)


def write_nifti(path: Path, volume: Volume) -> None:
    """Write a gz-compressed NIfTI file with nothing but geometry in the header; equal volumes give equal bytes.

    Parameters
    ----------
    path : Path
        `*.nii.gz`, written atomically.
    volume : Volume
        Voxels and affine; 64-bit floats are stored as 32-bit ones.
    """
    voxels = volume.voxels.astype(np.float32) if volume.voxels.dtype == np.float64 else volume.voxels
    image = nifti_image(Volume(voxels, volume.affine))
    for set_form in (image.set_qform, image.set_sform):
        set_form(volume.affine, code=1)  # 1: scanner coordinates
    image.header.set_xyzt_units("mm")
    with atomic_file(path) as partial:
        partial.write_bytes(gzip.compress(image.to_bytes(), compresslevel=1, mtime=0))  # no time, so that bytes are reproducible


def nifti_image(volume: Volume) -> Any:
    """Return a volume as a nibabel image with an empty header; the data type is kept."""
    import nibabel

    make: Any = nibabel.Nifti1Image
    return make(volume.voxels, volume.affine, dtype=volume.voxels.dtype)
