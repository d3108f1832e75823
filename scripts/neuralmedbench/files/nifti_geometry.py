"""Read from a NIfTI header where its voxels lie: its two transforms and its voxel sizes have to agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.records.case import VoxelSizes

Matrix = npt.NDArray[np.float64]

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


def affine_of(header: Any, pixdim: Matrix, chosen: VoxelSizes | None = None) -> Matrix:
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
    sizes = np.where(pixdim > 0, pixdim * mm, used.lengths)
    if sform is None or not _differ(sform, sizes):
        return used.affine
    if chosen is None:
        message = (
            f"voxel sizes disagree: {_in_words(sform.lengths)} mm by the {sform}, {_in_words(sizes)} mm by pixdim"
            f" ({qform or 'no qform'}); {AGAIN}, or say which counts for all scans (voxel_sizes)"
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
    box = float(np.linalg.norm(affine[:3, :3], axis=0).prod())
    if not np.isfinite(affine).all() or not abs(np.linalg.det(affine[:3, :3])) > FLAT * box:
        message = f"its header gives no volume: the voxels have no extent in one direction ({name}); {AGAIN}"
        raise DataError(message)
    return _Form(name, code, affine)


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
