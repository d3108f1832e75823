"""Read NIfTI files as arrays in their stored orientation, and write them with nothing but geometry in the header.

For ingest and de-identification, which must not resample or reorient anything; later stages read with `files.volumes`.
"""

from __future__ import annotations

import gzip
import io
import logging
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
from neuralmedbench.records.case import NoHead, VoxelSizes
from neuralmedbench.runtime.atomic_write import atomic_file

MAX_VOXELS = 300_000_000
"""Voxels of the largest scan that is read, over all its volumes: a head of 0.4 mm has 130 to 200 million. Values of 8 bytes count twice."""
MAX_HEADER_BYTES = 100_000_000
"""Largest offset of the voxels; extensions of a header are seldom more than some kilobytes."""
BLOCK = 2**21
"""Voxels that are decompressed, scaled or compressed at a time."""
Matrix = npt.NDArray[np.float64]
LPS_TO_RAS = np.array([-1.0, -1.0, 1.0])
"""Signs of x, y and z by which DICOM's coordinates become those of NIfTI, and back."""
MAX_TURN_DEG = 10.0
"""Largest angle between sform and qform: a head that is nodded by 8 degrees loses its face like an upright one, by 30 degrees it keeps a part."""
SAME_SIZE = 0.02
"""Sizes that differ by no more than this fraction are equal: headers round them."""
FLAT = 0.1
"""Smallest volume of a voxel relative to a box with the same sides; a shear by 45 degrees leaves 0.7."""
MM_OF_UNIT = {1: 1000.0, 3: 0.001}
"""Length of metres and micrometres (xyzt_units) in mm; all other codes are mm."""
SCANNER, TEMPLATES = 1, range(3, 6)
"""Codes of transforms: to the scanner's coordinates, or to those of an average head."""
AGAIN = "convert the scan again from its DICOM files"
NO_EXTENT = f"its header gives no volume: the voxels have no extent in one direction ({{}}); {AGAIN}"
QUIET = logging.Logger(__name__, logging.CRITICAL + 1)
"""Takes what nibabel says about headers that it corrects."""
NIFTI_2 = b"n+2\0"
"""Magic word of one-file NIfTI-2, at byte 4."""


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
    affine: Matrix


class TooManyVoxelsError(DataError):
    """A volume has more than `MAX_VOXELS`."""


def read_nifti(path: Path, what: str = "the file", sizes: VoxelSizes | None = None) -> Volume:
    """Read a NIfTI file; `what` names it where it is larger than `MAX_VOXELS`, by its header, before more of it is decompressed.

    `sizes`: statement of the header that counts where its voxel sizes differ.

    Raises
    ------
    DataError
        If it is damaged, too large, not a volume, or its header does not say where it lies (`_affine_of`).
    OSError
        If the disk cannot be read, which is no fault of the file.
    """
    import nibabel

    try:
        with path.open("rb") as stored, _unpacked(stored) as file:
            header = _read_header(file)
            pixdim = np.abs(np.asarray(header["pixdim"][1:4], dtype=np.float64))
            header.check_fix(QUIET)  # replaces sizes of 0
            _check_size(header, what)
            voxels = _voxels(header, file)
            _check_volume(voxels)
            affine = _affine_of(header, pixdim, sizes)
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


@dataclass(frozen=True)
class _Form:
    """A transform with its code; affine to RAS+ in mm."""

    name: str
    code: int
    affine: Matrix

    @property
    def lengths(self) -> Matrix:
        """Distances of neighbouring voxels along the three axes in mm."""
        return np.asarray(np.linalg.norm(self.affine[:3, :3], axis=0))

    @property
    def heights(self) -> Matrix:
        """Distances of neighbouring planes of voxels in mm: shorter than `lengths` if the axes are sheared."""
        return np.asarray(1 / np.linalg.norm(np.linalg.inv(self.affine[:3, :3]), axis=1))

    @property
    def directions(self) -> Matrix:
        """Unit vectors along the three axes, one a column."""
        return np.asarray(self.affine[:3, :3] / self.lengths)

    @property
    def rotation(self) -> Matrix:
        """Rotation, or rotation and reflection, that is nearest to `directions`; a qform holds it where the sform is sheared."""
        first, _, last = np.linalg.svd(self.directions)
        return np.asarray(first @ last)

    def __str__(self) -> str:
        return f"{self.name} (code {self.code})"


def _affine_of(header: Any, pixdim: Matrix, chosen: VoxelSizes | None = None) -> Matrix:
    """Return the affine of a NIfTI header, shape (4, 4), RAS+ in mm.

    Parameters
    ----------
    header : nibabel.Nifti1Header or nibabel.Nifti2Header
        The header, after nibabel's corrections.
    pixdim : ndarray, shape (3,)
        Voxel sizes as stored; one that is not positive states nothing.
    chosen : VoxelSizes, optional
        Statement that counts where the sizes differ.

    Returns
    -------
    ndarray
        The sform; without one, or if it leads to an average head while the qform is the scanner's, the qform.

    Raises
    ------
    DataError
        If a transform is absent or gives no volume, if the two mirror each other or are turned by more than `MAX_TURN_DEG`, or if voxel sizes
        differ by more than `SAME_SIZE` and none is chosen.
    """
    mm = MM_OF_UNIT.get(int(header["xyzt_units"]) & 7, 1.0)
    sform, qform = (_form(header, name, mm) for name in ("sform", "qform"))
    if sform is None and qform is None:
        message = "left and right cannot be known: the file says nothing about its orientation (qform and sform codes are 0)"
        raise DataError(message)
    if sform is None or qform is None:
        used = sform or qform
    else:
        _check_sides(sform, qform)
        used = qform if sform.code in TEMPLATES and qform.code == SCANNER else sform
    assert used is not None
    if sform is None and not (pixdim > 0).all():
        raise DataError(NO_EXTENT.format("pixdim"))
    sizes = np.where(pixdim > 0, pixdim * mm, used.lengths)
    if sform is None or not _differ(sform, sizes):
        return used.affine
    if chosen is None:
        other = f"pixdim and the {qform}" if qform else "pixdim"
        message = (
            f"voxel sizes disagree: {_in_words(sform.lengths)} mm by the {sform}, {_in_words(sizes)} mm by {other};"
            f" {AGAIN}, or say which counts for all scans (voxel_sizes)"
        )
        raise DataError(message)
    if chosen == "sform":
        return sform.affine
    return sform.affine @ np.diag([*(sizes / sform.lengths), 1.0]) if qform is None else qform.affine


def _form(header: Any, name: str, mm: float) -> _Form | None:
    """Return one transform of a header; None if its code is 0, DataError if it gives no volume."""
    code = int(header[f"{name}_code"])
    if not code:
        return None
    affine = np.asarray(getattr(header, f"get_{name}")(), dtype=np.float64)
    affine[:3] *= mm
    if not (np.isfinite(affine).all() and _volume(affine) > FLAT * np.linalg.norm(affine[:3, :3], axis=0).prod()):
        raise DataError(NO_EXTENT.format(name))
    return _Form(name, code, affine)


def _volume(affine: Matrix) -> float:
    """Return the volume of a voxel."""
    return float(abs(np.linalg.det(affine[:3, :3])))


def _check_sides(sform: _Form, qform: _Form) -> None:
    """Refuse transforms that exchange left and right, or that lay the head in different directions."""
    between = sform.rotation.T @ qform.rotation
    whole = (np.trace(between) - 1) / 2
    # where two axes agree, the third is sheared: a tilted gantry
    axes = np.sort((sform.directions * qform.directions).sum(axis=0))
    turn = float(np.degrees(np.arccos(np.clip(max(whole, axes[1]), -1, 1))))
    problem = ""
    if np.linalg.det(between) < 0:
        problem = "mirror each other"
    elif turn > MAX_TURN_DEG:
        problem = f"are turned against each other by {turn:.0f} degrees"
    if problem:
        message = f"left and right cannot be known: {sform} and {qform} {problem}; {AGAIN}"
        raise DataError(message)


def _differ(sform: _Form, sizes: Matrix) -> bool:
    """Return whether a size is neither the length nor the height of a voxel by the sform."""

    def ratio(other: Matrix) -> Matrix:
        return np.maximum(sizes / other, other / sizes) - 1

    return bool((np.minimum(ratio(sform.lengths), ratio(sform.heights)) > SAME_SIZE).any())


def _in_words(sizes: Matrix) -> str:
    return " x ".join(f"{size:.3g}" for size in sizes)


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
