"""Read and write volumes as SimpleITK images (LPS+, mm), resample them, and convert transforms to homogeneous matrices."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.runtime.atomic_write import atomic_file
from neuralmedbench.runtime.storage import disk_full

if TYPE_CHECKING:
    import SimpleITK as sitk

Matrix = npt.NDArray[np.float64]
ORIENTATION = "LPS"
NIFTI_HEADER_BYTES = 352
INT16 = np.iinfo(np.int16)
CT_AIR_HU = -500.0
"""Air is darker than this in CT, and tissue of a head brighter."""
AIR_HU, FAT_HU, SOFT_HU = (-1100.0, -700.0), -200.0, 150.0
"""Air and lung in CT; fat is brighter than the second value, soft tissue within the third of 0."""
MIN_AIR, MIN_SOFT = 0.01, 0.2
"""Smallest parts of air in a CT, and of soft tissue in the rest of it."""
MIN_STEPS = 256
"""Range of grey values from which a volume is rounded to integers; an ADC map in mm2/s stays below."""


def is_ct(voxels: npt.NDArray[np.number]) -> bool:
    """Return whether the greys of a volume are those of CT, in HU.

    In CT the dark voxels are air or padding, hardly any lie between air and fat, and much of the rest is soft tissue near 0. Single negative
    voxels of MR (interpolation, filters), phase images and z-scores do not look like this. CT whose air was clipped cannot be recognised.
    """
    dark = voxels < CT_AIR_HU
    air = dark & ((voxels > AIR_HU[0]) & (voxels < AIR_HU[1]) | (voxels == voxels.min()))
    if air.mean() < MIN_AIR or air.sum() < 0.5 * dark.sum():
        return False
    between = np.count_nonzero(voxels < FAT_HU) - np.count_nonzero(dark)
    soft = np.count_nonzero(np.abs(voxels) <= SOFT_HU)
    return bool(between < air.sum() and soft >= MIN_SOFT * np.count_nonzero(~dark))


def homogeneous(linear: npt.NDArray[np.floating], shift: npt.NDArray[np.floating]) -> Matrix:
    """Combine a linear part, shape (3, 3), and a translation, shape (3,), to a homogeneous matrix, shape (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = linear, shift
    return matrix


def as_matrix(transform: sitk.Transform) -> Matrix:
    """Return the homogeneous matrix, shape (4, 4), of a rigid, similarity or affine transform with any centre."""
    # images of the unit vectors are the columns of the linear part
    linear = np.array([transform.TransformVector(axis, (0.0, 0.0, 0.0)) for axis in np.eye(3).tolist()]).T
    return homogeneous(linear, np.array(transform.TransformPoint((0.0, 0.0, 0.0))))


def as_transform(matrix: npt.NDArray[np.floating]) -> sitk.AffineTransform:
    """Return the affine transform of a homogeneous matrix, shape (4, 4)."""
    import SimpleITK as sitk

    transform = sitk.AffineTransform(3)
    transform.SetMatrix(matrix[:3, :3].ravel().tolist())
    transform.SetTranslation(matrix[:3, 3].tolist())
    return transform


def read_volume(path: Path) -> sitk.Image:
    """Read a scan in the orientation of the pipeline, LPS+.

    Parameters
    ----------
    path : Path
        A NIfTI file. Of a 4-D file the first volume is read.

    Returns
    -------
    SimpleITK.Image
        3-D, float32, LPS+: as an array (Z, Y, X) it runs from feet to head, front to back and the patient's right to left.
        Oblique scans keep their direction cosines; axes are only swapped and flipped. Non-finite voxels are 0.

    Raises
    ------
    DataError
        If the file cannot be read, is not a grey volume of at least two slices, or has equal voxels only.
    """
    import SimpleITK as sitk

    try:
        image = sitk.ReadImage(path.as_posix())
    except RuntimeError:
        message = (
            f"{path.name}: not a volume that can be read (absent, damaged, or its axes are not at right angles); convert the series again"
        )
        raise DataError(message) from None
    if image.GetDimension() == 4:
        image = image[:, :, :, 0]
    if image.GetDimension() != 3 or image.GetNumberOfComponentsPerPixel() != 1 or min(image.GetSize()) < 2:
        size = "x".join(str(side) for side in image.GetSize())
        message = f"{path.name}: expected a grey volume of at least two slices, found {size}; a localizer or a screenshot is no scan"
        raise DataError(message)
    image = sitk.Cast(image, sitk.sitkFloat32)
    # only permutes and flips axes
    if sitk.DICOMOrientImageFilter.GetOrientationFromDirectionCosines(image.GetDirection()) != ORIENTATION:
        image = sitk.DICOMOrient(image, ORIENTATION)
    voxels = sitk.GetArrayViewFromImage(image)
    low, high = float(voxels.min()), float(voxels.max())
    if not math.isfinite(low) or not math.isfinite(high):  # a single NaN makes both NaN
        image = image_like(np.nan_to_num(voxels, nan=0.0, posinf=0.0, neginf=0.0), image)
        voxels = sitk.GetArrayViewFromImage(image)
        low, high = float(voxels.min()), float(voxels.max())
    if low == high:
        message = f"{path.name}: all voxels are equal; the scan shows nothing"
        raise DataError(message)
    return image


def image_like(voxels: np.ndarray, like: sitk.Image) -> sitk.Image:
    """Return an array (Z, Y, X) as an image with the geometry of another volume of the same size."""
    import SimpleITK as sitk

    image = sitk.GetImageFromArray(voxels)
    image.CopyInformation(like)
    return image


def centre_of(mask: npt.NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the centre of mass of a mask (Z, Y, X) in voxels, (z, y, x); NaN for an empty mask."""
    total = np.count_nonzero(mask)
    by_axis = (np.count_nonzero(mask, axis=others) for others in ((1, 2), (0, 2), (0, 1)))
    z, y, x = (float(np.divide(np.dot(counts, np.arange(len(counts))), total)) for counts in by_axis)
    return z, y, x


def grid_over(image: sitk.Image, size_mm: float) -> sitk.Image:
    """Return an empty isotropic grid over the field of view of a volume, including the outer halves of its end slices.

    Parameters
    ----------
    image : SimpleITK.Image
        3-D.
    size_mm : float
        Voxel size of the grid.

    Returns
    -------
    SimpleITK.Image
        float32 zeros, with the direction and the centre of the volume.
    """
    import SimpleITK as sitk

    size = [max(2, round(side * step / size_mm)) for side, step in zip(image.GetSize(), image.GetSpacing(), strict=True)]
    grid = sitk.Image(size, sitk.sitkFloat32)
    grid.SetDirection(image.GetDirection())
    grid.SetSpacing([size_mm] * 3)
    # move the origin so that both centres agree
    grid.SetOrigin(np.subtract(centre_of_grid(image), centre_of_grid(grid)).tolist())
    return grid


def centre_of_grid(image: sitk.Image) -> tuple[float, float, float]:
    """Return the point in the middle of a volume, LPS+ in mm."""
    x, y, z = image.TransformContinuousIndexToPhysicalPoint([(side - 1) / 2 for side in image.GetSize()])
    return float(x), float(y), float(z)


def use_one_thread() -> None:
    """Let SimpleITK work in one thread: with two the last bits of the results differ."""
    import SimpleITK as sitk

    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)


def resample_to(image: sitk.Image, grid: sitk.Image) -> sitk.Image:
    """Resample a volume to a coarser grid: averaged first against aliasing, and extrapolated over the outer half of end slices."""
    import SimpleITK as sitk

    # average blocks of voxels along each axis that is finer than the grid
    wanted = [max(1, int(wide / fine)) for wide, fine in zip(grid.GetSpacing(), image.GetSpacing(), strict=True)]
    factors = [min(factor, side) for factor, side in zip(wanted, image.GetSize(), strict=True)]
    small = sitk.BinShrink(image, factors) if max(factors) > 1 else image
    return sitk.Resample(sitk.ZeroFluxNeumannPad(small, [1] * 3, [1] * 3), grid)


def as_stored(image: sitk.Image) -> sitk.Image:
    """Return a volume in the type in which `write_volume` stores it, so that measurements agree with those of the file."""
    import SimpleITK as sitk

    if image.GetPixelID() not in {sitk.sitkUInt8, sitk.sitkInt16}:
        voxels = sitk.GetArrayViewFromImage(image)
        low, high = float(voxels.min()), float(voxels.max())
        if low >= INT16.min and high <= INT16.max and high - low >= MIN_STEPS:
            return image_like(np.rint(voxels).astype(np.int16), image)
    return image


def write_volume(path: Path, image: sitk.Image) -> None:
    """Write a volume; equal voxels give equal bytes.

    Parameters
    ----------
    path : Path
        `*.nii` (fast, for temporary files) or `*.nii.gz`, written atomically.
    image : SimpleITK.Image
        The volume. Masks (uint8) and integers (int16) are written unchanged. Other values are rounded to int16, which halves the file, if
        no visible difference is lost: they are in the range of int16 and span at least `MIN_STEPS`. Otherwise float32 is kept.

    Raises
    ------
    OSError
        If the disk is full.
    """
    import SimpleITK as sitk

    image = as_stored(image)
    for key in image.GetMetaDataKeys():  # nothing but geometry goes into the header
        image.EraseMetaData(key)
    voxel_bytes = sitk.GetArrayViewFromImage(image).nbytes
    with atomic_file(path) as partial:
        sitk.WriteImage(image, partial.as_posix())
        if _stored_bytes(partial) < NIFTI_HEADER_BYTES + voxel_bytes:  # ITK does not report a full disk
            raise disk_full()


def _stored_bytes(path: Path) -> int:
    """Return the uncompressed size of a file; 0 if a compressed one is truncated."""
    if path.suffix != ".gz":
        return path.stat().st_size
    try:
        with gzip.open(path) as file:
            return sum(len(block) for block in iter(lambda: file.read(2**20), b""))
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return 0
