"""Remove the face from a scan in its own space, and never a voxel of the brain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.fit import brain_depth, face_mask, fit_quality, fit_template
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.io.nifti import Volume

if TYPE_CHECKING:
    import SimpleITK as sitk

Mask = npt.NDArray[np.bool_]
BRAIN_MARGIN_MM = 4.0
"""Around the template's brain nothing is removed: the fit may be wrong by this much."""
SKULL_MARGIN_MM = 9.0
"""What lies farther from the template's brain than this is skull and scalp."""
STRIPPED_OUTSIDE, STRIPPED_ZERO = 0.06, 0.35
"""A scan is without its head when little of it lies outside the brain and much of it is exactly background."""
PLAUSIBLE_SCALE = (0.75, 1.3)
MIN_COVERED, MIN_OVERLAP = 0.2, 0.9
WHOLE_HEAD, MIN_AGREEMENT = 0.8, 0.2
"""A fit is trusted when this part of the template's brain is in view and it agrees with the scan."""
SHELL_MM, SHELL_GRID_MM, FRONT_PART = 10.0, 2.0, 0.62
"""The ears end at about 60 % of the way from nose to back."""
VESSELS_ONLY = 0.1
"""A scan with less than this part of its voxels above the background shows no surface: vessels over a threshold."""


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
        `face_removed` (part of all voxels that was set to background), `deface_scale`, `deface_covered`, `deface_overlap`,
        `deface_agreement` (see atlas.fit.fit_quality).
    """

    volume: Volume
    flags: tuple[str, ...]
    quality: dict[str, float]


def deface(volume: Volume) -> Defaced:
    """Remove the face from a scan.

    Parameters
    ----------
    volume : Volume
        3-D scan of a head or a brain, any contrast; a slab will do.

    Returns
    -------
    Defaced
        The scan without nose, orbits, mouth, jaw and ears.

    Raises
    ------
    DeidentificationError
        If the template does not fit, so that a face may be left.

    Notes
    -----
    The packaged average brain is fitted to the scan; its face region is carried back to the native grid and cleared, except where the
    fitted brain with a margin lies. A slab shows too little for a sure fit: there the skin of the front part goes instead, to a depth at
    which no brain lies. Brains without a head are recognised and left as they are.
    """
    image = _as_image(volume)
    if _is_sparse(volume.voxels):
        return Defaced(volume, ("no_surface",), {"face_removed": 0.0})
    try:
        transform = fit_template(image)
    except DataError:
        message = "the face could not be located (the template does not fit the scan): look at the scan, and exclude the case or its series"
        raise DeidentificationError(message) from None
    fit = fit_quality(image, transform)
    quality = {f"deface_{name}": fit[name] for name in ("scale", "covered", "overlap", "agreement")}
    near, skull = _around_brain(image, transform)
    if _is_stripped(volume.voxels, skull):
        return Defaced(volume, ("no_head_outside_brain",), {**quality, "face_removed": 0.0})
    low, high = PLAUSIBLE_SCALE
    plausible = low < fit["scale"] < high and fit["covered"] >= MIN_COVERED and fit["overlap"] >= MIN_OVERLAP
    trusted = plausible and fit["covered"] >= WHOLE_HEAD and fit["agreement"] >= MIN_AGREEMENT
    # a fit that is off by centimetres would take brain away: without a sure fit only what is surely no brain goes
    face = _array(face_mask(image, transform)) & ~near if trusted else _front_shell(image, volume.voxels)
    if not face.any():
        message = "the face could not be located (implausible fit of the template): look at the scan, and exclude the case or its series"
        raise DeidentificationError(message)
    voxels = volume.voxels.copy()
    voxels[face] = voxels.min()
    quality["face_removed"] = round(float(face.mean()), 4)
    return Defaced(Volume(voxels, volume.affine), () if trusted else ("front_surface_removed",), quality)


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


def _array(mask: sitk.Image) -> Mask:
    """Mask as an array (X, Y, Z), like the voxels of a volume."""
    import SimpleITK as sitk

    return np.asarray(sitk.GetArrayFromImage(mask).T > 0)


def _around_brain(image: sitk.Image, transform: sitk.Transform) -> tuple[Mask, Mask]:
    """Where the brain with its margin lies, and where the brain with the skull lies."""
    depth = brain_depth(image, transform)
    return _array(depth <= BRAIN_MARGIN_MM), _array(depth <= SKULL_MARGIN_MM)


def _is_stripped(voxels: npt.NDArray[Any], skull: Mask) -> bool:
    background = voxels.min()
    shown = voxels != background
    if not shown.any() or float(1 - shown.mean()) < STRIPPED_ZERO:
        return False
    return float((shown & ~skull).sum() / shown.sum()) < STRIPPED_OUTSIDE


def _front_shell(image: sitk.Image, voxels: npt.NDArray[Any]) -> Mask:
    """Give the outer layer of the front part of the head, slice by slice: skin, nose and ears, whatever the height of the slab.

    The brain begins deeper than `SHELL_MM` below the skin, so that no fit is needed to spare it.
    """
    from scipy import ndimage

    axes = np.abs(np.array(image.GetDirection()).reshape(3, 3))
    front, up = int(np.argmax(axes[1])), int(np.argmax(axes[2]))
    steps = [max(1, int(SHELL_GRID_MM / spacing)) for spacing in image.GetSpacing()]
    steps[up] = 1
    coarse = voxels[:: steps[0], :: steps[1], :: steps[2]].astype(np.float32)
    low = float(coarse.min())
    shown = coarse > low + 0.12 * (float(np.percentile(coarse, 99)) - low)
    spacing = [step * size for axis, (step, size) in enumerate(zip(steps, image.GetSpacing(), strict=True)) if axis != up]
    slices = []
    for plane in np.moveaxis(shown, up, 0):
        head = ndimage.binary_fill_holes(ndimage.binary_closing(plane, iterations=2))
        slices.append(head & (ndimage.distance_transform_edt(np.pad(head, 1), sampling=spacing)[1:-1, 1:-1] < SHELL_MM))
    outside_in = np.moveaxis(np.array(slices), 0, up)
    profile = np.flatnonzero(shown.any(axis=tuple(axis for axis in range(3) if axis != front)))
    first, last = (int(profile[0]), int(profile[-1])) if len(profile) else (0, 0)
    if np.array(image.GetDirection()).reshape(3, 3)[1, front] > 0:  # rows run from front to back
        back = slice(first + round(FRONT_PART * (last - first)), None)
    else:
        back = slice(0, last - round(FRONT_PART * (last - first)))
    np.moveaxis(outside_in, front, 0)[back] = False
    full = outside_in
    for axis, (step, side) in enumerate(zip(steps, voxels.shape, strict=True)):
        full = np.take(full, np.minimum(np.arange(side) // step, full.shape[axis] - 1), axis=axis)
    return np.asarray(full)
