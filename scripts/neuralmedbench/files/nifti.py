"""Read NIfTI files as arrays in their stored orientation, and write them with nothing but geometry in the header.

For ingest and de-identification, which must not resample or reorient anything; later stages read with `files.volumes`.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files.nifti_geometry import affine_of
from neuralmedbench.records.case import NoHead, VoxelSizes
from neuralmedbench.runtime.atomic_write import atomic_file

MAX_VOXELS = 300_000_000
"""Voxels of the largest scan that is read, over all its volumes: a head of 0.4 mm has 130 to 200 million. Values of 8 bytes count twice."""
MAX_HEADER_BYTES = 100_000_000
"""Largest offset of the voxels; extensions of a header are seldom more than some kilobytes."""
BLOCK = 2**21
"""Voxels that are decompressed, scaled or compressed at a time."""
LPS_TO_RAS = np.array([-1.0, -1.0, 1.0])
"""Signs of x, y and z by which DICOM's coordinates become those of NIfTI, and back."""
NIFTI_1, NIFTI_2 = b"n+1\0", b"n+2\0"
"""Magic words of one-file NIfTI: at byte 344 of version 1, at byte 4 of version 2."""


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


class TooManyVoxelsError(DataError):
    """A volume has more than `MAX_VOXELS`."""


def read_nifti(path: Path, what: str = "the file", sizes: VoxelSizes | None = None) -> Volume:
    """Read a NIfTI file; `what` names it where it is larger than `MAX_VOXELS`, by its header, before more of it is decompressed.

    `sizes`: statement of the header that counts where its voxel sizes differ.

    Raises
    ------
    DataError
        If it is damaged, too large, not a volume, or its header does not say where it lies (`nifti_geometry.affine_of`).
    OSError
        If the disk cannot be read, which is no fault of the file.
    """
    import nibabel

    try:
        with path.open("rb") as stored, _unpacked(stored) as file:
            header = _read_header(file)
            pixdim = np.abs(np.asarray(header["pixdim"][1:4], dtype=np.float64))
            header.check_fix()  # replaces sizes of 0
            _check_size(header, what)
            voxels = _voxels(header, file)
            _check_volume(voxels)
            affine = affine_of(header, pixdim, sizes)
    except (nibabel.spatialimages.HeaderDataError, nibabel.wrapstruct.WrapStructError, EOFError, ValueError, zlib.error):
        message = "damaged NIfTI file"
        raise DataError(message) from None
    if voxels.ndim > 3:  # axes beyond the third are volumes
        voxels = voxels.reshape(*voxels.shape[:3], -1)
        voxels = voxels[..., 0] if voxels.shape[3] == 1 else voxels
    return Volume(voxels, affine)


def _read_header(file: BinaryIO) -> Any:
    """Read the header of a NIfTI file of either version, as stored."""
    import nibabel

    kind: Any = nibabel.Nifti1Header
    start = file.read(kind.sizeof_hdr)
    if start[4:8] == NIFTI_2:
        kind = nibabel.Nifti2Header
        start += file.read(kind.sizeof_hdr - len(start))
    return kind(start, check=False)


def _check_volume(voxels: npt.NDArray[Any]) -> None:
    """Refuse what is no volume of grey values."""
    if voxels.dtype.kind == "c":
        raise DataError(NoHead.COMPLEX)
    if voxels.ndim < 3 or min(voxels.shape[:3]) < 2 or voxels.dtype.kind not in "iuf":
        raise DataError(NoHead.NOT_A_VOLUME)


@contextmanager
def _unpacked(stored: BinaryIO) -> Iterator[BinaryIO]:
    """Decompress a file while it is read, if it is compressed."""
    zipped = stored.read(2) == b"\x1f\x8b"
    stored.seek(0)
    try:
        yield cast("BinaryIO", gzip.GzipFile(fileobj=stored)) if zipped else stored
    except gzip.BadGzipFile as error:  # an OSError, but no fault of the disk
        raise EOFError from error


def _check_size(header: Any, what: str) -> None:
    bytes_each, shape = header.get_data_dtype().itemsize, header.get_data_shape()
    if math.prod(shape) * max(1, bytes_each // 4) > MAX_VOXELS:
        sides = " x ".join(str(side) for side in shape)
        message = (
            f"{what} has {sides} voxels of {bytes_each} bytes; at most {MAX_VOXELS // 10**6} million are read, of 8 bytes half as many:"
            " store it with larger voxels or fewer volumes, and list the cases again"
        )
        raise TooManyVoxelsError(message)
    if header.get_data_offset() > MAX_HEADER_BYTES:
        raise EOFError


def _voxels(header: Any, file: BinaryIO) -> npt.NDArray[Any]:
    """Read and scale the voxels block by block, so that they are held once; floats of more than 32 bits become 32-bit ones."""
    from nibabel.volumeutils import apply_read_scaling

    stored, shape = header.get_data_dtype(), header.get_data_shape()
    slope, inter = header.get_slope_inter()
    file.seek(header.get_data_offset())
    voxels = np.zeros(0)
    for start in range(0, total := math.prod(shape), BLOCK):
        wanted = min(BLOCK, total - start)
        block = np.frombuffer(file.read(wanted * stored.itemsize), stored)
        if block.size < wanted:
            raise EOFError
        block = apply_read_scaling(block, slope, inter)
        if not start:
            kind = np.dtype(np.float32) if block.dtype.kind == "f" else block.dtype.newbyteorder("=")
            voxels = np.empty(total, kind)
        voxels[start : start + wanted] = block
    file.read(MAX_HEADER_BYTES)  # the checksum of a compressed file stands after its last byte
    return voxels.reshape(shape, order="F") if total else voxels


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
    with atomic_file(path) as partial, partial.open("wb") as file:
        packed = _Packed(file)
        image.to_stream(packed)
        packed.finish()


class _Packed(io.RawIOBase):
    """Compress what is written to a file, with no time in the gzip header, so that bytes are reproducible."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._packer, self._written = file, zlib.compressobj(1, wbits=31), 0

    def write(self, part: Any) -> int:
        self._file.write(self._packer.compress(part))
        self._written += len(part)
        return len(part)

    def tell(self) -> int:
        return self._written

    def seek(self, offset: int, whence: int = 0) -> int:
        if (offset, whence) != (self._written, 0):
            raise io.UnsupportedOperation
        return offset

    def finish(self) -> None:
        self._file.write(self._packer.flush())


def nifti_image(volume: Volume) -> Any:
    """Return a volume as a nibabel image with an empty header; the data type is kept."""
    import nibabel

    make: Any = nibabel.Nifti1Image
    return make(volume.voxels, volume.affine, dtype=volume.voxels.dtype)
