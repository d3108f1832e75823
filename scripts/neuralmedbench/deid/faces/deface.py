"""Remove the face from a scan in its own space, and never a voxel of the brain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.fit import fit_quality, fit_template
from neuralmedbench.atlas.polish import is_best_here, polish_fit
from neuralmedbench.deid.faces.skin import front_shell, scalp_shows, skin_depth
from neuralmedbench.deid.faces.survey import Survey, face_level, on_grid, skin_distances, survey, what_is_left
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.io.nifti import Volume
from neuralmedbench.io.volumes import image_like

if TYPE_CHECKING:
    import SimpleITK as sitk

Mask = npt.NDArray[np.bool_]
SKULL_MARGIN_MM = 9.0
"""What lies farther from the template's brain than this is skull and scalp."""
STRIPPED_OUTSIDE, STRIPPED_ZERO = 0.06, 0.35
"""A scan is without its head when little of it lies outside the brain and much of it is exactly background."""
PLAUSIBLE_SCALE = (0.75, 1.3)
WHOLE_HEAD, MIN_OVERLAP, MIN_AGREEMENT = 0.8, 0.9, 0.2
"""A fit is trusted when this part of the template's brain is in view, shows something, and agrees with the scan."""
UNEVEN_MM = 12.0
"""The skin must lie about as far from the fitted brain on one side as on the other."""
VESSELS_ONLY = 0.1
"""A scan with less than this part of its voxels above the background shows no surface: vessels over a threshold."""
MAX_LEFT, MIN_RECESS_MM = 0.15, 10.0
"""Of the face's skin no more may stand, and at nose and mouth nothing may reach as far forward as this behind the forehead."""
NEXT_STEP = "look at the scan, and exclude the case or its series"


@dataclass(frozen=True)
class Defaced:
    """A scan without its face.

    Attributes
    ----------
    volume : Volume
        The scan; geometry as before, removed voxels at the scan's own background value.
    flags : tuple of str
        `no_head_outside_brain`, `no_surface` (nothing to remove), `front_surface_removed` (the fit is not trusted, see below).
    quality : dict of str to float
        `face_removed` (part of all voxels that was set to background), `head_removed` (the same of the head's voxels),
        `deface_scale`, `deface_covered`, `deface_overlap`, `deface_agreement` (see atlas.fit.fit_quality), `deface_uneven_mm` (how much
        farther the skin lies from the fitted brain on one side than on the other), `face_surface_left`, `face_recess_mm` (see
        deid.face.what_is_left); numbers that the scan does not allow are absent.
    mask : ndarray of bool, shape (X, Y, Z)
        Where voxels were removed, on the scan's own grid; all False where nothing was.
    """

    volume: Volume
    flags: tuple[str, ...]
    quality: dict[str, float]
    mask: Mask


def deface(volume: Volume, *, is_map: bool = False) -> Defaced:
    """Remove the face from a scan.

    Parameters
    ----------
    volume : Volume
        3-D scan of a head or a brain, any contrast; a slab will do.
    is_map : bool
        Whether it is computed from other scans (ADC): its scalp is noise, so that it gives no skin to go by.

    Returns
    -------
    Defaced
        The scan without nose, orbits, mouth, jaw and ears.

    Raises
    ------
    DeidentificationError
        If the template does not fit and the scan shows no scalp to go by, or if a face still stands out, so that one may be left.

    Notes
    -----
    The packaged average brain is fitted to the scan; its face region is carried back to the native grid and cleared, except near the
    fitted brain, where only an outer layer below the scan's own skin goes. A slab shows too little for a sure fit: there the skin of the
    front part goes instead, to a depth at which no brain lies. Brains without a head are recognised and left as they are.
    """
    image = _as_image(volume)
    if _is_sparse(volume.voxels):
        return _untouched(volume, "no_surface", {})
    try:
        transform = polish_fit(image, fit_template(image))
    except DataError:
        message = f"the face could not be located (the template does not fit the scan): {NEXT_STEP}"
        raise DeidentificationError(message) from None
    fit = fit_quality(image, transform)
    quality = {f"deface_{name}": fit[name] for name in ("scale", "covered", "overlap", "agreement")}
    seen = survey(skin_depth(image), transform)
    distances = skin_distances(seen)
    quality["deface_uneven_mm"] = round(_uneven(distances), 1)
    if not _is_trusted(fit, quality["deface_uneven_mm"]) or not is_best_here(image, transform):
        return _without_front(volume, image, seen, quality, is_map=is_map)
    if _is_stripped(volume.voxels, image, seen):
        return _untouched(volume, "no_head_outside_brain", quality)
    level = face_level(seen, distances)
    quality |= what_is_left(level, seen)
    if quality.get("face_surface_left", 0.0) > MAX_LEFT or quality.get("face_recess_mm", np.inf) < MIN_RECESS_MM:
        message = f"a face still stands out after defacing (face_surface_left and face_recess_mm are out of limits): {NEXT_STEP}"
        raise DeidentificationError(message)
    quality["head_removed"] = round(float((level <= 0)[seen.skin > 0].mean()), 4)
    return _cleared(volume, on_grid(level, seen, image), (), quality)


def _untouched(volume: Volume, flag: str, quality: dict[str, float]) -> Defaced:
    return Defaced(volume, (flag,), {**quality, "face_removed": 0.0}, np.zeros(volume.voxels.shape, bool))


def _cleared(volume: Volume, face: Mask, flags: tuple[str, ...], quality: dict[str, float]) -> Defaced:
    if not face.any():
        message = f"the face could not be located (nothing of the scan lies in its region): {NEXT_STEP}"
        raise DeidentificationError(message)
    voxels = volume.voxels.copy()
    voxels[face] = voxels.min()
    return Defaced(Volume(voxels, volume.affine), flags, {**quality, "face_removed": round(float(face.mean()), 4)}, face)


def _without_front(volume: Volume, image: sitk.Image, seen: Survey, quality: dict[str, float], *, is_map: bool) -> Defaced:
    """Take only what is surely no brain: a fit that is off by centimetres would take brain away."""
    if is_map or not scalp_shows(image, seen.grid):
        message = f"the face could not be located (implausible fit of the template, and no scalp to go by): {NEXT_STEP}"
        raise DeidentificationError(message)
    return _cleared(volume, on_grid(front_shell(seen.grid), seen, image), ("front_surface_removed",), quality)


def _is_trusted(fit: dict[str, float], uneven_mm: float) -> bool:
    low, high = PLAUSIBLE_SCALE
    agrees = fit["covered"] >= WHOLE_HEAD and fit["overlap"] >= MIN_OVERLAP and fit["agreement"] >= MIN_AGREEMENT
    return agrees and low < fit["scale"] < high and uneven_mm <= UNEVEN_MM


def _uneven(distances: dict[str, float]) -> float:
    pairs = [
        (distances[one], distances[other]) for one, other in (("front", "back"), ("left", "right")) if {one, other} <= distances.keys()
    ]
    return max((abs(one - other) for one, other in pairs), default=0.0)


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


def _is_stripped(voxels: npt.NDArray[Any], image: sitk.Image, seen: Survey) -> bool:
    import SimpleITK as sitk

    shown = voxels != voxels.min()
    if float(1 - shown.mean()) < STRIPPED_ZERO:
        return False
    there = image_like(np.ascontiguousarray(shown.T, dtype=np.uint8), image)
    coarse = sitk.GetArrayFromImage(sitk.Resample(there, seen.grid, sitk.Transform(), sitk.sitkNearestNeighbor)) > 0
    return float((coarse & (seen.brain > SKULL_MARGIN_MM)).sum() / max(coarse.sum(), 1)) < STRIPPED_OUTSIDE
