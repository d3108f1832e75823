"""Remove the face from a scan in its own space, and never a voxel of the brain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.faces.face_measures import Floats, HeadView, face_level, face_shell, on_grid, what_is_left
from neuralmedbench.deid.faces.locate import FaceLocation, Head, locate
from neuralmedbench.deid.faces.skin import front_shell, scalp_shows
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files.nifti import Volume
from neuralmedbench.files.volumes import image_like

if TYPE_CHECKING:
    import SimpleITK as sitk

Mask = npt.NDArray[np.bool_]
SKULL_MARGIN_MM = 9.0
"""What lies farther from the template's brain than this is skull and scalp."""
STRIPPED_OUTSIDE, STRIPPED_ZERO = 0.06, 0.35
"""A scan is without its head when little of it lies outside the brain and much of it is exactly background."""
VESSELS_ONLY = 0.1
"""A scan with less than this part of its voxels above the background shows no surface: vessels over a threshold."""
MAX_LEFT, MIN_RECESS_MM = 0.15, 10.0
"""Of the face's skin no more may stand, and at nose and mouth nothing may reach as far forward as this behind the forehead."""
NEXT_STEP = "look at the scan, and exclude the case or its series"


@dataclass(frozen=True)
class DefacedScan:
    """A scan without its face.

    Attributes
    ----------
    volume : Volume
        The scan; geometry as before, removed voxels at the scan's own background value.
    flags : tuple of str
        `no_head_outside_brain`, `no_surface` (nothing to remove), `front_surface_removed` (the fit is not trusted, see below),
        `face_fit_borrowed` (the scan shows too little of the head for a fit of its own: another scan gave it).
    quality : dict of str to float
        `face_removed` (part of all voxels that was set to background), `head_removed` (the same of the head's voxels),
        `deface_scale`, `deface_covered`, `deface_overlap`, `deface_agreement` (see atlas.fit.fit_quality), `deface_uneven_mm` (how much
        farther the skin lies from the fitted brain on one side than on the other), `deface_fit_series` (number in the name of the scan
        that gave the fit, absent when it is the scan's own), `deface_rival` (how sure its place is, see `atlas.adjust`; absent when
        positions alone told it), `face_surface_left`, `face_recess_mm` (see `face_measures.what_is_left`); numbers that the scan does not
        allow are absent.
    mask : ndarray of bool, shape (X, Y, Z)
        Where voxels were removed, on the scan's own grid; all False where nothing was.
    head : Head or None
        What other scans of the same head may go by; None for a slab, a map, and where no fit was trusted.
    """

    volume: Volume
    flags: tuple[str, ...]
    quality: dict[str, float]
    mask: Mask
    head: Head | None = None


def deface(volume: Volume, *, is_map: bool = False, heads: Sequence[Head] = (), name: str = "", frame: str = "") -> DefacedScan:
    """Remove the face from a scan.

    `name`, `frame`: what the scan is called (`series-01`...), and the frame of reference of its positions, for those that come after it.
    Returns: The scan without nose, orbits, mouth, jaw and ears. Raises DeidentificationError if the template does not fit and the scan
    shows no scalp to go by, or if a face still stands out, so that one may be left.

    The packaged average brain is fitted to the scan; its face region is carried back to the native grid and cleared, except near the fitted
    brain, where only an outer layer below the scan's own skin goes. The scans of a case show one head: where an earlier one was located for
    sure, the next ones follow its fit, as far as they agree with it. So does a slab, which shows too little for a fit of its own. Where no
    other scan tells, the skin of its front part goes instead, to a depth at which no brain lies. Brains without a head are recognised and
    left as they are.
    """
    image = _as_image(volume)
    if _is_sparse(volume.voxels):
        return _untouched(volume, "no_surface", {})
    try:
        found = locate(image, heads, frame)
    except DataError:
        message = f"the face could not be located (the template does not fit the scan): {NEXT_STEP}"
        raise DeidentificationError(message) from None
    if not found.trusted:
        return _without_front(volume, image, found, is_map=is_map)
    if _is_stripped(volume.voxels, image, found.seen):
        return _untouched(volume, "no_head_outside_brain", found.quality)
    level = face_level(found.seen, found.distances)
    if not found.whole:
        return _slab(volume, image, found, level, is_map=is_map)
    left = what_is_left(level, found.seen)
    if left.get("face_surface_left", 0.0) > MAX_LEFT or left.get("face_recess_mm", np.inf) < MIN_RECESS_MM:
        if found.lender:  # a fit of its own may do better
            return deface(volume, is_map=is_map, name=name, frame=frame)
        message = f"a face still stands out after defacing (face_surface_left and face_recess_mm are out of limits): {NEXT_STEP}"
        raise DeidentificationError(message)
    cleared = _cleared(volume, on_grid(level, found.seen, image), (), _measured(found, level, left))
    return replace(cleared, head=None if is_map else Head(name, frame, found.rough, found.transform))


def _slab(volume: Volume, image: sitk.Image, found: FaceLocation, level: Floats, *, is_map: bool) -> DefacedScan:
    """Take the face of a slab by another scan's fit; where that would leave one, or shows none, the skin of its front part."""
    if not is_map and scalp_shows(image, found.seen.grid):
        level = np.minimum(level, face_shell(found.seen))
    left = what_is_left(level, found.seen)
    left.pop("face_recess_mm", None)  # the forehead against which it is measured may be out of view
    face = on_grid(level, found.seen, image)
    if left.get("face_surface_left", 0.0) > MAX_LEFT or not face.any():
        return _without_front(volume, image, found, is_map=is_map)
    return _cleared(volume, face, ("face_fit_borrowed",), _measured(found, level, left))


def _measured(found: FaceLocation, level: Floats, left: dict[str, float]) -> dict[str, float]:
    lent = {"deface_fit_series": float(found.lender.rpartition("-")[2])} if found.lender else {}
    return found.quality | lent | left | {"head_removed": round(float((level <= 0)[found.seen.skin > 0].mean()), 4)}


def _untouched(volume: Volume, flag: str, quality: dict[str, float]) -> DefacedScan:
    return DefacedScan(volume, (flag,), {**quality, "face_removed": 0.0}, np.zeros(volume.voxels.shape, bool))


def _cleared(volume: Volume, face: Mask, flags: tuple[str, ...], quality: dict[str, float]) -> DefacedScan:
    if not face.any():
        message = f"the face could not be located (nothing of the scan lies in its region): {NEXT_STEP}"
        raise DeidentificationError(message)
    voxels = volume.voxels.copy(order="K")
    np.copyto(voxels, voxels.min(), where=face)
    return DefacedScan(Volume(voxels, volume.affine), flags, {**quality, "face_removed": round(float(face.mean()), 4)}, face)


def _without_front(volume: Volume, image: sitk.Image, found: FaceLocation, *, is_map: bool) -> DefacedScan:
    """Take only what is surely no brain: a fit that is off by centimetres would take brain away."""
    if is_map or not scalp_shows(image, found.seen.grid):
        message = f"the face could not be located (implausible fit of the template, and no scalp to go by): {NEXT_STEP}"
        raise DeidentificationError(message)
    face = on_grid(front_shell(found.seen.grid), found.seen, image)
    return _cleared(volume, face, ("front_surface_removed",), found.quality)


def _is_sparse(voxels: npt.NDArray[Any]) -> bool:
    return float((voxels != voxels.min()).mean()) < VESSELS_ONLY


def _as_image(volume: Volume) -> sitk.Image:
    """Give a volume to SimpleITK on its own grid: RAS+ becomes LPS+, and the nearest right-angled axes are taken."""
    import SimpleITK as sitk

    matrix = np.diag([-1.0, -1.0, 1.0]) @ volume.affine[:3, :3]
    spacing = np.linalg.norm(matrix, axis=0)
    left, _, right = np.linalg.svd(matrix / spacing)
    image = sitk.GetImageFromArray(np.ascontiguousarray(volume.voxels.T, dtype=np.float32))
    image.SetSpacing(spacing.tolist())
    image.SetDirection((left @ right).ravel().tolist())
    image.SetOrigin((np.diag([-1.0, -1.0, 1.0]) @ volume.affine[:3, 3]).tolist())
    return image


def _is_stripped(voxels: npt.NDArray[Any], image: sitk.Image, seen: HeadView) -> bool:
    import SimpleITK as sitk

    shown = voxels != voxels.min()
    if float(1 - shown.mean()) < STRIPPED_ZERO:
        return False
    there = image_like(np.ascontiguousarray(shown.T, dtype=np.uint8), image)
    coarse = sitk.GetArrayFromImage(sitk.Resample(there, seen.grid, sitk.Transform(), sitk.sitkNearestNeighbor)) > 0
    return float((coarse & (seen.brain > SKULL_MARGIN_MM)).sum() / max(coarse.sum(), 1)) < STRIPPED_OUTSIDE
