"""Remove the face from a scan in its native space without removing any brain.

The brain is outlined before anything is removed, and how much of it hidden text and the removal of the face take is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.faces.face_check import face_left_by_surface
from neuralmedbench.deid.faces.face_measures import (
    Floats,
    HeadView,
    face_level,
    face_shell,
    filled_in,
    on_grid,
    outer_shell,
    scalp_shows,
    skin_depth,
    what_is_left,
)
from neuralmedbench.deid.faces.locate import FaceLocation, Head, locate
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files.nifti import LPS_TO_RAS, Volume
from neuralmedbench.files.volumes import image_like, is_ct, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

Mask = npt.NDArray[np.bool_]
SKULL_MARGIN_MM = 9.0
"""Beyond this distance from the template's brain everything is skull and scalp."""
STRIPPED_OUTSIDE, STRIPPED_ZERO = 0.06, 0.35
"""A scan is skull-stripped if less than the first part of it lies outside the brain and more than the second part is exactly background."""
SPARSE, THIN_MM = 0.1, 15.0
"""A scan has no surface of a head, for example an angiogram after thresholding, if a smaller part of its voxels is above background and its
largest object is nowhere deeper: vessels reach 8 mm, the brain of a newborn 31 mm, and a head may fill 7 % of a large field of view."""
MAX_LEFT, MIN_RECESS_MM = 0.15, 10.0
"""Limits of `what_is_left`: at most this part of the face's skin may remain, and nose and mouth must end at least this far behind the forehead."""
MAX_LEFT_BY_SURFACE = 0.5
"""The same where the surface of the head shows a face: 0 to 0.15 in real heads whose face is gone (0.34 in one that arrived defaced), 0.7 and
more where the fit was wrong."""
NEXT_STEP = "look at the scan, and exclude the case or its series"
CORE_MM, REACH_MM, BELOW_SKIN_MM = 6.0, 9.0, 6.0
"""Tissue this deep in the fitted brain gives the greys of the brain; it is followed this far beyond the fitted surface, but not near the skin."""
CORE_GREYS = (3, 99)
"""Percentiles of these greys between which tissue is brain."""
BRIDGE_STEPS = 3
"""Connections of up to twice as many voxels, such as nerves and vessels, do not lead out of the brain."""
MAX_REMOVED, MAX_HIDDEN = 0.002, 0.02
"""Largest fractions of the brain in view that the removal of the face and hidden text may take: 3 and 27 ml of 1350 ml. In real and simulated
heads the first is 0; the second is the size of a large lesion."""
ERROR_ML = 1.0
"""Below this a loss is no finding: the outline itself is as uncertain (a slab of a phantom shows 0.7 ml and loses nothing)."""


class BrainLossError(DataError):
    """Raised for a series of whose brain too much would be hidden or removed."""


@dataclass(frozen=True)
class DefacedScan:
    """A scan without its face.

    Attributes
    ----------
    volume : Volume
        The scan; geometry as before, removed voxels at the scan's own background value.
    flags : tuple of str
        `no_head_outside_brain`, `no_surface` (nothing to remove), `outer_layer_removed` (no trusted fit, see `deface`),
        `face_fit_borrowed` (the scan shows too little of the head to be fitted, so the fit of another scan was used), `brain_hidden`
        (hidden text covers some of the brain, within the limit).
    quality : dict of str to float
        Absent is what cannot be measured in the scan.

        - `face_removed`, `head_removed`: fraction of all voxels, and of the head's, that were set to background.
        - `deface_scale`, `deface_covered`, `deface_overlap`, `deface_agreement`: see `atlas.fit.fit_quality`.
        - `deface_uneven_mm`: left-right or front-back difference of the distance from the fitted brain to the skin.
        - `deface_fit_series`: number of the series whose fit was used; absent if it is the scan's own.
        - `deface_rival`: agreement at the best other position, see `TransferredFit`; absent if the headers alone say the position.
        - `brain_ml`, `brain_removed_ml`, `brain_hidden_ml`: see `_brain_loss`.
        - `face_surface_left`, `face_recess_mm`: see `face_measures.what_is_left`.
    mask : ndarray of bool, shape (X, Y, Z)
        Removed voxels on the scan's own grid; all False if nothing was removed.
    head : Head or None
        Fit for other scans of the same head; None for a slab, a map, or a scan without a trusted fit.
    """

    volume: Volume
    flags: tuple[str, ...]
    quality: dict[str, float]
    mask: Mask
    head: Head | None = None


def deface(
    volume: Volume, *, is_map: bool = False, heads: Sequence[Head] = (), name: str = "", frame: str = "", hidden: Mask | None = None
) -> DefacedScan:
    """Remove the face from a scan.

    `is_map`: True for a map computed from other scans (ADC), in which the scalp is noise and cannot guide the removal. `heads`: results of
    earlier calls for other scans of the same case. `name`, `frame`: name of the series (`series-01`...) and its FrameOfReferenceUID, for
    the scans that follow. `hidden`: mask of the scan's voxels that were hidden before; head and face are located as if they showed what is
    beside them. Returns the scan without nose, orbits, mouth, jaw and ears. Raises DeidentificationError if the template does not fit and
    the scan shows no scalp, or if part of a face is still detected afterwards; BrainLossError if too much of the brain is hidden or would
    be removed.

    The packaged average brain is fitted to the scan. Its face region is mapped to the native grid and cleared; near the fitted brain only
    an outer layer below the scan's own skin is cleared. All scans of a case show the same head, so a trusted fit of one scan is tried on
    the next, and a slab, which shows too little to be fitted, always borrows one. If no fit is trusted, the outer layer of the head is
    removed instead, on all sides, which is thinner than the distance to the brain. Skull-stripped scans are recognised and left unchanged.
    """
    import SimpleITK as sitk

    # 1. is there a head, and where?
    image = _as_image(volume if hidden is None else Volume(filled_in(volume.voxels, hidden), volume.affine))
    skin = skin_depth(image)
    sparse = float((volume.voxels != volume.voxels.min()).mean()) < SPARSE
    if sparse and float(sitk.GetArrayViewFromImage(skin).max()) < THIN_MM:
        return _untouched(volume, "no_surface", {})
    try:
        found = locate(image, skin, heads, frame)
    except DataError:
        message = f"the face could not be located (the template does not fit the scan): {NEXT_STEP}"
        raise DeidentificationError(message) from None
    under = None if hidden is None or not hidden.any() else as_mask_image(hidden, image)
    if not found.trusted:
        return _without_skin(volume, image, found, under, is_map=is_map)
    if _is_stripped(volume.voxels, image, found.seen):
        return _untouched(volume, "no_head_outside_brain", found.quality | _brain_loss(image, found, None, under))
    # 2. the face is where the level set is <= 0
    level = face_level(found.seen, found.distances)
    if not found.whole:
        return _slab(volume, image, found, level, under, is_map=is_map)
    # 3. check what would remain before anything is removed
    left = what_is_left(level, found.seen)
    if left.get("face_surface_left", 0.0) > MAX_LEFT or left.get("face_recess_mm", np.inf) < MIN_RECESS_MM:
        if found.source_series:  # a fit of its own may do better
            return deface(volume, is_map=is_map, name=name, frame=frame, hidden=hidden)
        message = f"a face still stands out after defacing (face_surface_left and face_recess_mm are out of limits): {NEXT_STEP}"
        raise DeidentificationError(message)
    # 4. look for a face again, by the surface of the head alone
    by_surface = 0.0 if is_map else face_left_by_surface(skin, level, upright=bool(found.source_series))
    if by_surface > MAX_LEFT_BY_SURFACE:
        message = f"the surface of the head still shows a face after defacing ({by_surface:.0%} of it remains): {NEXT_STEP}"
        raise DeidentificationError(message)
    measured = _measured(found, level, left) | _brain_loss(image, found, level, under)
    cleared = _cleared(volume, on_grid(level, found.seen, image), (), measured)
    return replace(cleared, head=None if is_map else Head(name, frame, found.rough, found.transform))


def _slab(volume: Volume, image: sitk.Image, found: FaceLocation, level: Floats, under: sitk.Image | None, *, is_map: bool) -> DefacedScan:
    """Remove the face of a slab by another scan's fit; if a face would remain, or none is in view, remove its skin."""
    if not is_map and scalp_shows(image, found.seen.grid):
        level = np.minimum(level, face_shell(found.seen))
    left = what_is_left(level, found.seen)
    left.pop("face_recess_mm", None)  # the forehead against which it is measured may be out of view
    face = on_grid(level, found.seen, image)
    if left.get("face_surface_left", 0.0) > MAX_LEFT or not face.any():
        return _without_skin(volume, image, found, under, is_map=is_map)
    measured = _measured(found, level, left) | _brain_loss(image, found, level, under)
    return _cleared(volume, face, ("face_fit_borrowed",), measured)


def _measured(found: FaceLocation, level: Floats, left: dict[str, float]) -> dict[str, float]:
    source = {"deface_fit_series": float(found.source_series.rpartition("-")[2])} if found.source_series else {}
    return found.quality | source | left | {"head_removed": round(float((level <= 0)[found.seen.skin > 0].mean()), 4)}


def _brain_loss(image: sitk.Image, found: FaceLocation, level: Floats | None, under: sitk.Image | None) -> dict[str, float]:
    """Measure what is removed and hidden of the brain; raises BrainLossError if that is too much."""
    brain = brain_tissue(image, found.seen, fitted=found.trusted)
    loss = brain_loss(brain, found.seen, level=level, hidden=under)
    require_brain(loss)
    return loss


def _untouched(volume: Volume, flag: str, quality: dict[str, float]) -> DefacedScan:
    return DefacedScan(volume, (flag, *_under_text(quality)), {**quality, "face_removed": 0.0}, np.zeros(volume.voxels.shape, bool))


def _under_text(quality: dict[str, float]) -> tuple[str, ...]:
    return ("brain_hidden",) if quality.get("brain_hidden_ml") else ()


def _cleared(volume: Volume, face: Mask, flags: tuple[str, ...], quality: dict[str, float]) -> DefacedScan:
    if not face.any():
        message = f"the face could not be located (nothing of the scan lies in its region): {NEXT_STEP}"
        raise DeidentificationError(message)
    voxels = volume.voxels.copy(order="K")
    np.copyto(voxels, voxels.min(), where=face)
    return DefacedScan(
        Volume(voxels, volume.affine), (*flags, *_under_text(quality)), {**quality, "face_removed": round(float(face.mean()), 4)}, face
    )


def _without_skin(volume: Volume, image: sitk.Image, found: FaceLocation, under: sitk.Image | None, *, is_map: bool) -> DefacedScan:
    """Remove only the outer layer, which contains no brain: a fit that is off by centimetres would remove some."""
    if is_map or not scalp_shows(image, found.seen.grid):
        message = f"the face could not be located (implausible fit of the template, and no scalp to go by): {NEXT_STEP}"
        raise DeidentificationError(message)
    skin = skin_depth(image, bulk=True) if is_ct(volume.voxels) else found.seen.grid  # head holders show in CT
    level = spared(outer_shell(skin), brain_tissue(image, found.seen, fitted=False), found.seen)
    measured = found.quality | _brain_loss(image, found, level, under)
    return _cleared(volume, on_grid(level, found.seen, image), ("outer_layer_removed",), measured)


def _as_image(volume: Volume) -> sitk.Image:
    """Convert a volume to a SimpleITK image on its own grid: RAS+ becomes LPS+, and oblique axes become the nearest orthogonal ones."""
    import SimpleITK as sitk

    matrix = np.diag(LPS_TO_RAS) @ volume.affine[:3, :3]
    spacing = np.linalg.norm(matrix, axis=0)
    left, _, right = np.linalg.svd(matrix / spacing)
    image = sitk.GetImageFromArray(np.ascontiguousarray(volume.voxels.T, dtype=np.float32))
    image.SetSpacing(spacing.tolist())
    image.SetDirection((left @ right).ravel().tolist())
    image.SetOrigin((np.diag(LPS_TO_RAS) @ volume.affine[:3, 3]).tolist())
    return image


def _is_stripped(voxels: npt.NDArray[Any], image: sitk.Image, seen: HeadView) -> bool:
    import SimpleITK as sitk

    shown = voxels != voxels.min()
    if float(1 - shown.mean()) < STRIPPED_ZERO:
        return False
    there = image_like(np.ascontiguousarray(shown.T, dtype=np.uint8), image)
    coarse = sitk.GetArrayFromImage(sitk.Resample(there, seen.grid, sitk.Transform(), sitk.sitkNearestNeighbor)) > 0
    return float((coarse & (seen.brain > SKULL_MARGIN_MM)).sum() / max(coarse.sum(), 1)) < STRIPPED_OUTSIDE


def brain_tissue(image: sitk.Image, seen: HeadView, *, fitted: bool = True) -> Mask:
    """Outline the brain on the coarse grid of a scan, shape (Z, Y, X).

    `image`: the complete scan. `fitted`: False leaves out the fitted brain itself, which may be off by centimetres. The result is the fitted
    brain together with tissue of the greys of its core that continues it, which depends on this scan and not on the margins of the fit.
    """
    import SimpleITK as sitk
    from scipy import ndimage

    inside = seen.brain < 0
    core = seen.brain < -CORE_MM
    if not core.any():
        return inside
    voxels = sitk.GetArrayFromImage(resample_to(image, seen.grid))
    low, high = np.percentile(voxels[core], CORE_GREYS)
    like = (voxels >= low) & (voxels <= high) & (seen.brain < REACH_MM) & (seen.skin > BELOW_SKIN_MM)
    # opening cuts thin connections, then the part that holds the core grows back
    cross = ndimage.generate_binary_structure(3, 1)
    labels, count = ndimage.label(ndimage.binary_erosion(like, cross, iterations=BRIDGE_STEPS))
    if not count:
        return inside if fitted else core & (seen.skin > BELOW_SKIN_MM)
    sizes = np.bincount(labels[core], minlength=count + 1)
    sizes[0] = 0
    grown = ndimage.binary_dilation(labels == sizes.argmax(), cross, iterations=BRIDGE_STEPS) & like
    return np.asarray(grown | inside if fitted else grown)


def spared(level: Floats, brain: Mask, seen: HeadView) -> Floats:
    """Exclude the brain and two voxels beside it from a level set, but not the skin; in distorted scans the brain comes close to it."""
    from scipy import ndimage

    near = ndimage.binary_dilation(brain, ndimage.generate_binary_structure(3, 3), iterations=2) & (seen.skin > BELOW_SKIN_MM)
    return np.where(near, np.maximum(level, np.float32(1)), level)


def brain_loss(brain: Mask, seen: HeadView, *, level: Floats | None, hidden: sitk.Image | None) -> dict[str, float]:
    """Measure how much of the brain is removed with the face, and how much lies under hidden text.

    `brain`: result of `brain_tissue`. `level`: level set of what is removed, on the same grid; None if nothing is. `hidden`: mask of hidden
    voxels on the scan's own grid, uint8. Returns `brain_ml`, `brain_removed_ml` and `brain_hidden_ml`; empty if no brain is in view.
    """
    import SimpleITK as sitk

    if not brain.any():
        return {}
    voxel_ml = float(np.prod(seen.grid.GetSpacing())) / 1000
    removed = brain & (level <= 0) if level is not None else np.zeros_like(brain)
    under = np.zeros_like(brain)
    if hidden is not None:
        placed = sitk.Resample(hidden, seen.grid, sitk.Transform(), sitk.sitkNearestNeighbor, 0)
        under = brain & (sitk.GetArrayViewFromImage(placed) > 0)
    volumes = {"brain_ml": brain, "brain_removed_ml": removed, "brain_hidden_ml": under}
    return {name: round(float(part.sum()) * voxel_ml, 2) for name, part in volumes.items()}


def require_brain(loss: dict[str, float]) -> None:
    """Raise BrainLossError if more of the brain is hidden or removed than the limits allow; absent numbers pass."""
    whole = loss.get("brain_ml", 0.0)
    for name, most, words in (
        ("brain_hidden_ml", MAX_HIDDEN, "text that is burned into the pixels covers"),
        ("brain_removed_ml", MAX_REMOVED, "with the face would be removed"),
    ):
        if loss.get(name, 0.0) > max(most * whole, ERROR_ML):
            message = (
                f"{words} {loss[name]:.0f} ml ({loss[name] / whole:.1%}) of the brain, at most {most:.1%} may be lost: use another series"
            )
            raise BrainLossError(message)


def as_mask_image(mask: Mask, image: sitk.Image) -> sitk.Image:
    """Convert a mask, shape (X, Y, Z), to an image on the grid of a scan."""
    return image_like(np.ascontiguousarray(mask.T, dtype=np.uint8), image)
