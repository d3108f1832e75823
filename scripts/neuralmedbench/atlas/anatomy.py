"""Anatomy of the MNI152 template packaged with nilearn: its files, the average brain, shells of a head around it, and the region of the face."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuralmedbench.atlas.matching import Floats, Target, make_target
from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import image_like, read_volume, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk


def template_file(kind: str) -> Path:
    """Return the path of a packaged template.

    Parameters
    ----------
    kind : str
        `t1` (skull-stripped), `gm` or `wm` (tissue probabilities): 1 mm, 0 to 255.

    Returns
    -------
    Path
        A gz-compressed NIfTI file.

    Raises
    ------
    DataError
        If the package is not installed or does not contain the file.
    """
    spec = find_spec("nilearn")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "datasets" / "data" / f"mni_icbm152_{kind}_tal_nlin_sym_09a_converted.nii.gz"
        if path.exists():
            return path
    message = f"nilearn's packaged template {kind} is missing; install the version of nilearn that requirements.lock names"
    raise DataError(message)


SHELLS = ((3.0, 70.0), (8.0, 15.0), (14.0, 230.0), (22.0, 0.0))
"""Outer distance from the brain in mm and grey value of fluid, skull, scalp and air, on the scale of the packaged T1 (0 to 255)."""
SHELL_FLOOR_MM = -25.0
"""Below this height (template z) there are no shells but neck and face, which differ between persons."""


@cache
def packaged_brain() -> sitk.Image:
    """Read the packaged T1 of the MNI152 average brain: float32, LPS+, 1 mm, 0 outside the brain.

    Raises DataError if the package `nilearn`, which contains it, is not installed.
    """
    return read_volume(template_file("t1"))


@cache
def template_head(grid_mm: float) -> Target:
    """Build the target of a fit: the average brain and its shells on a coarse grid."""
    import SimpleITK as sitk

    distance = distance_to_brain(grid_mm)
    mm = sitk.GetArrayFromImage(distance)
    pattern = sitk.GetArrayFromImage(resample_to(packaged_brain(), distance))
    height = _coordinates(distance)[0]
    # paint the shells from the inside out
    inner = 0.0
    for outer, grey in SHELLS:
        pattern[(mm > inner) & (mm <= outer)] = grey
        inner = outer
    region = (mm <= 0) | ((mm <= inner) & (height > SHELL_FLOOR_MM))
    return make_target(image_like(pattern, distance), region)


@cache
def distance_to_brain(grid_mm: float) -> sitk.Image:
    """Compute the distance to the brain's surface in mm, negative inside, on a grid from the neck to above the scalp."""
    import SimpleITK as sitk

    low, high = np.array([-100.0, -104.0, -104.0]), np.array([104.0, 140.0, 112.0])  # x, y, z in template mm, LPS+
    grid = sitk.Image([int(side) for side in (high - low) / grid_mm], sitk.sitkFloat32)
    grid.SetSpacing([grid_mm] * 3)
    grid.SetOrigin(low.tolist())
    inside = sitk.Resample(packaged_brain(), grid, sitk.Transform(), sitk.sitkLinear, 0.0) > 20
    return sitk.SignedMaurerDistanceMap(inside, insideIsPositive=False, squaredDistance=False, useImageSpacing=True)


def _coordinates(image: sitk.Image) -> tuple[Floats, Floats, Floats]:
    """Return LPS+ coordinates (z, y, x) in mm of an axis-aligned grid, each shaped to broadcast over (Z, Y, X)."""
    axes = [
        np.asarray(start + step * np.arange(number), dtype=np.float32)
        for start, step, number in zip(image.GetOrigin(), image.GetSpacing(), image.GetSize(), strict=True)
    ]
    return axes[2][:, None, None], axes[1][None, :, None], axes[0][None, None, :]


def face_regions(x: Floats, y: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Compute level sets of the face: regions bounded by planes, which overlap the brain, so callers must exclude it.

    Parameters
    ----------
    x, y, z : ndarray of float32
        Coordinates in MNI152, LPS+, mm (y to the back, z upwards): the nasion lies near y = -85, z = -25, the ears near
        x = +-75, z = -40, in children as low as z = -95, the chin near z = -110.

    Returns
    -------
    front, ears : ndarray of float32
        Approximate mm, negative inside. Front: everything below a line from the angle of the jaw up to the forehead.
    """
    # intersection of half-spaces: maximum of their signed distances
    front = np.maximum(z - 5.0, y + 20.0 + 0.45 * (z + 20.0))
    beside = np.abs(y - 25.0) - 45.0
    ears = np.maximum(np.maximum(68.0 - np.abs(x), np.abs(z + 37.5) - 45.0), beside)
    # lobes hang lower in children, whose face is small for their brain; a scan that ends above -92 shows none whole
    if z.min() < -92:
        lobes = np.maximum(np.maximum(63.0 - np.abs(x), np.abs(z + 81.0) - 21.0), beside)
        ears = np.minimum(ears, lobes)
    return front, ears
