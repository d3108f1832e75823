"""The region of the face in a scan, from the fitted template and the scan's own skin, and measures of what defacing left.

The skin, the surface of the head, is detected without a template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.anatomy import face_regions
from neuralmedbench.atlas.fit import SMALL_SCALE, brain_depth, scale_of, template_points
from neuralmedbench.files.volumes import grid_over, image_like, is_ct, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

Floats = npt.NDArray[np.float32]
FRONT_MARGIN_MM, DEEP_MARGIN_MM, DEEP_FROM, DEEPENS = 9.0, 13.0, -54.0, 0.4
"""Distance kept from the template's brain at the eyes, and its maximum behind them; it grows by `DEEPENS` per mm from template y `DEEP_FROM`."""
EAR_MARGIN_MM, UNSURE_MM = 7.5, 2.0
"""The same at the ears, and an addition for scans with a black scalp, which are fitted less well."""
SKIN_MM, SKIN_MARGIN_MM, SHELL_MARGIN_MM = 9.0, 7.0, 5.0
"""No brain lies within the first depth below the skin, so that the second distance from the template's brain suffices; the third is for slabs."""
SURE_SKIN_MM = 12.0
"""The skin is trusted if it lies at least this far from the fitted brain on every side (scalp and skull of adults: 13 to 17 mm)."""
ADULT_SCALE = 0.94
"""Usual size of an adult's brain relative to the template; in the small heads of children scalp and skull are thinner in proportion."""
FEW = 50
"""Minimum voxels of a measure; with fewer it is absent."""
WINDOW_X, WINDOW_Y, WINDOW_Z = 50.0, -55.0, (-95.0, -35.0)
"""Surface of the face, from the bridge of the nose to the lower lip, in template mm (LPS+)."""
PROFILE_X, NOSE_Z, FOREHEAD_Z = 25.0, (-75.0, -40.0), (0.0, 40.0)
Mask = npt.NDArray[np.bool_]
GRID_MM, EDGE = 2.0, 4
"""Voxel size for the surface, and the number of voxels by which the head is extended beyond the edge of the field of view."""
IN_PLANE = np.array([[[0, 0, 0]] * 3, [[0, 1, 0], [1, 1, 1], [0, 1, 0]], [[0, 0, 0]] * 3])
"""Structuring element: the four neighbours of a pixel in its plane."""
SHOWN = (0.05, 0.2)
"""Limits of the threshold between background and head, as fractions of the grey range; between them it follows the noise."""
OVER_HEAD = 0.01
"""Text lies over the head, and not beside it in air, if more than this part of its boxes would show tissue."""
THIN_STEPS = 2
"""Objects of up to twice as many voxels are thin."""
OVER_NOISE = 1.15
"""Threshold relative to the noise in the corners of the scan."""
CT_SKIN_HU = -400.0
"""In CT everything above is the patient (or the table)."""
LAYER_MM = 2.0
SCALP_LAYERS, SKULL_LAYERS, LAYERS = 5, 9, 13
"""Number of layers of `LAYER_MM` below the skin that may hold scalp, skull and brain, cumulative."""
DIP, RISE, CLEAR_DIP, CT_SKULL_HU = 1.25, 1.1, 1.9, 200.0
MIN_BONE = 0.1
"""Least part of a layer of a CT that is bone: 0.3 in a slab of the base of the skull, 0.9 in one of the vault, 0 without a skull."""
SHELL_MM = 10.0
"""Thickness of the outer layer."""


@dataclass(frozen=True)
class HeadView:
    """Position of every voxel of a coarse grid relative to template and skin; arrays of float32, shape (Z, Y, X), mm.

    Attributes
    ----------
    grid : SimpleITK.Image
        The coarse grid.
    x, y, z : ndarray
        Coordinates in the template, LPS+.
    brain : ndarray
        Distance to the template's brain, negative inside.
    skin : ndarray
        Depth below the skin, 0 outside the head; of a small head as in an adult's of the same shape.
    rim_mm : float
        Depth of the outermost voxels of the head on the same scale.
    """

    grid: sitk.Image
    x: Floats
    y: Floats
    z: Floats
    brain: Floats
    skin: Floats
    rim_mm: float = GRID_MM


def view_head(skin: sitk.Image, transform: sitk.Transform) -> HeadView:
    """Locate a scan's voxels relative to template and skin.

    `skin`: result of `skin_depth`. `transform`: from points of the scan to the template, as returned by `fit_template`.
    """
    import SimpleITK as sitk

    x, y, z = template_points(skin, transform)
    brain = sitk.GetArrayFromImage(brain_depth(skin, transform))
    scale = scale_of(transform)
    stretch = np.float32(ADULT_SCALE / scale if scale < SMALL_SCALE else 1)
    return HeadView(skin, x, y, z, brain, stretch * sitk.GetArrayFromImage(skin), float(stretch) * GRID_MM)


def skin_distances(seen: HeadView) -> dict[str, float]:
    """Measure the distance between skin and fitted brain on each side.

    Returns the median depth of the upper brain's surface below the skin in mm, for `front`, `back`, `left`, `right`; sides out of view are
    absent.
    """
    # within 2 mm of the surface of the fitted brain, above the skull base
    rim = (np.abs(seen.brain) < 2) & (seen.z > -10)
    sides = {"front": seen.y < -40, "back": seen.y > 70, "left": seen.x > 45, "right": seen.x < -45}
    depths = {side: seen.skin[rim & part] for side, part in sides.items()}
    return {side: float(np.median(depth)) for side, depth in depths.items() if len(depth) > FEW}


def face_level(seen: HeadView, distances: dict[str, float]) -> Floats:
    """Compute a level set of the face.

    `distances`: result of `skin_distances`. Returns float32, shape (Z, Y, X), approximate mm: 0 or less in nose, orbits, mouth, jaw and
    ears and in everything in front of and below them, positive near the brain.
    """
    front, ears = face_regions(seen.x, seen.y, seen.z)
    sure = bool(distances) and min(distances.values()) >= SURE_SKIN_MM
    deep = np.clip(FRONT_MARGIN_MM + DEEPENS * (seen.y - DEEP_FROM), FRONT_MARGIN_MM, DEEP_MARGIN_MM)
    beside = EAR_MARGIN_MM + (0.0 if sure else UNSURE_MM)
    level = np.minimum(np.maximum(front, deep - seen.brain), np.maximum(ears, beside - seen.brain))
    if sure:
        level = np.minimum(level, np.maximum(front, np.maximum(SKIN_MARGIN_MM - seen.brain, seen.skin - SKIN_MM)))
    return np.asarray(level, dtype=np.float32)


def face_shell(seen: HeadView) -> Floats:
    """Compute a level set, like `face_level`, of the outer layer of the face alone: as thick as `outer_shell`, away from the fitted brain."""
    front, ears = face_regions(seen.x, seen.y, seen.z)
    shell = np.maximum(np.minimum(front, ears), np.maximum(SHELL_MARGIN_MM - seen.brain, seen.skin - SHELL_MM))
    return np.asarray(shell, dtype=np.float32)


def on_grid(level: Floats, seen: HeadView, image: sitk.Image) -> npt.NDArray[np.bool_]:
    """Interpolate a level set on the scan's own grid, whose axes are parallel to the coarse one; returns the mask, shape (X, Y, Z)."""
    # position of each voxel of the scan on the coarse grid, axis by axis
    start = seen.grid.TransformPhysicalPointToContinuousIndex(image.GetOrigin())
    x, y, z = (
        _between(first + step / coarse * np.arange(side), number)
        for first, step, coarse, side, number in zip(
            start, image.GetSpacing(), seen.grid.GetSpacing(), image.GetSize(), seen.grid.GetSize(), strict=True
        )
    )
    # linear in x, then y; z plane by plane, so that no float copy of the whole scan is made
    field = level[:, :, x[0]] * (1 - x[1]) + level[:, :, x[0] + 1] * x[1]
    field = field[:, y[0]] * (1 - y[1])[:, None] + field[:, y[0] + 1] * y[1][:, None]
    planes = (field[below] * (1 - part) + field[below + 1] * part <= 0 for below, part in zip(*z, strict=True))
    return np.array(list(planes)).T


def _between(places: npt.NDArray[np.float64], number: int) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the grid point below each position on an axis, and the fraction of the way to the next one."""
    held = np.clip(places, 0, number - 1)
    below = np.minimum(held.astype(np.intp), number - 2)
    return below, (held - below).astype(np.float32)


def what_is_left(level: Floats, seen: HeadView) -> dict[str, float]:
    """Measure what remains of the face after its removal.

    `level`: result of `face_level`, shape (Z, Y, X). Returns `face_surface_left` (remaining fraction of the skin from the bridge of the nose
    to the lower lip) and `face_recess_mm` (distance of the foremost remaining point at the height of nose and mouth behind the forehead).
    A value is absent if the scan does not show these heights.
    """
    left: dict[str, float] = {}
    head, stands = seen.skin > 0, level > 0
    rim = head & (seen.skin <= seen.rim_mm)
    low, high = WINDOW_Z
    window = rim & (np.abs(seen.x) < WINDOW_X) & (seen.y < WINDOW_Y) & (seen.z > low) & (seen.z < high)
    # share of the face's skin that remains
    if window.sum() > FEW:
        left["face_surface_left"] = round(float(stands[window].mean()), 4)
    # foremost remaining points near the midline; y grows to the back
    middle = head & stands & (np.abs(seen.x) < PROFILE_X)
    nose, forehead = (seen.y[middle & (seen.z > low) & (seen.z < high)] for low, high in (NOSE_Z, FOREHEAD_Z))
    if len(nose) > FEW and len(forehead) > FEW:
        left["face_recess_mm"] = round(float(nose.min() - forehead.min()), 1)
    return left


def skin_depth(image: sitk.Image, *, bulk: bool = False) -> sitk.Image:
    """Measure the depth of each voxel below the skin.

    `bulk`: leave out everything thinner than about 8 mm, so that a head holder does not join the head (nor do the ears). Returns float32 on a
    grid of `GRID_MM`, mm; 0 outside the head. The edge of the field of view does not count as skin.
    """
    import SimpleITK as sitk

    coarse = resample_to(image, grid_over(image, GRID_MM))
    head = _head(coarse, bulk=bulk)
    air = sitk.GetImageFromArray((~np.pad(head, EDGE, mode="edge")).astype(np.uint8))
    far = sitk.SignedMaurerDistanceMap(air, insideIsPositive=False, squaredDistance=False, useImageSpacing=False)
    depth = sitk.GetArrayViewFromImage(far)[EDGE:-EDGE, EDGE:-EDGE, EDGE:-EDGE]
    return image_like(np.where(head, np.float32(GRID_MM) * depth, np.float32(0)), coarse)


def filled_in(voxels: npt.NDArray[Any], hidden: Mask) -> npt.NDArray[Any]:
    """Replace hidden voxels by the nearest ones that show: a box over the head would otherwise be air, and cut it in two.

    `voxels`, `hidden`: shape (X, Y, Z). Returns a copy, for measuring only: it shows what was never acquired. Boxes in air stay as they are.
    """
    from scipy import ndimage

    sides = ndimage.find_objects(hidden.astype(np.uint8))
    if not sides or hidden.all():
        return voxels
    done = voxels.copy()
    area = tuple(slice(max(side.start - 1, 0), side.stop + 1) for side in sides[0])
    nearest = ndimage.distance_transform_edt(hidden[area], return_distances=False, return_indices=True)
    done[area] = voxels[area][tuple(nearest)]
    low = float(voxels.min())
    bright = CT_SKIN_HU if is_ct(voxels) else low + SHOWN[1] * (float(np.percentile(voxels, 99)) - low)
    return done if float((done[hidden] > bright).mean()) > OVER_HEAD else voxels


def _head(coarse: sitk.Image, *, bulk: bool) -> Mask:
    """Segment the largest object of a scan, filled slice by slice; axes as in the grid."""
    import SimpleITK as sitk
    from scipy import ndimage

    voxels = sitk.GetArrayViewFromImage(coarse)
    shown = voxels > _darkest_shown(voxels)
    if bulk:
        cross = ndimage.generate_binary_structure(3, 1)
        whole = np.pad(shown, THIN_STEPS, mode="edge")  # a slab goes on beyond its first and last slice
        opened = ndimage.binary_opening(whole, cross, iterations=THIN_STEPS)
        thick = _largest(opened[(slice(THIN_STEPS, -THIN_STEPS),) * 3])
        shown = shown & ndimage.binary_dilation(thick, cross, iterations=THIN_STEPS)
    up = 2 - _axis(coarse, 2)
    return _largest(np.moveaxis(_filled(np.moveaxis(shown, up, 0)), 0, up))


def _largest(mask: Mask) -> Mask:
    from scipy import ndimage

    parts, _ = ndimage.label(mask)
    sizes = np.bincount(parts.ravel())[1:]
    return np.asarray(parts == 1 + int(np.argmax(sizes))) if len(sizes) else mask


def _darkest_shown(voxels: npt.NDArray[Any]) -> float:
    """Return the threshold between background and head; the corners of the scan serve as a sample of the noise."""
    low = float(voxels.min())
    if is_ct(voxels):
        return CT_SKIN_HU
    reach = float(np.percentile(voxels, 99)) - low
    sides = [max(1, side // 12) for side in voxels.shape]
    corners = voxels[np.ix_(*(np.r_[0:side, -side:0] for side in sides))]
    return low + float(np.clip(OVER_NOISE * (np.percentile(corners, 99) - low), SHOWN[0] * reach, SHOWN[1] * reach))


def _filled(planes: Mask) -> Mask:
    """Close gaps in each plane of a stack, shape (planes, rows, columns), and fill holes."""
    from scipy import ndimage

    closed = np.pad(planes, ((0, 0), (3, 3), (3, 3)), mode="edge")
    for joined in (np.logical_or, np.logical_or, np.logical_and, np.logical_and):
        closed = _with_neighbours(closed, joined)
    closed = np.pad(closed[:, 3:-3, 3:-3], ((0, 0), (1, 1), (1, 1)))
    parts, _ = ndimage.label(~closed, structure=IN_PLANE)
    return np.asarray(parts != parts[:, :1, :1])[:, 1:-1, 1:-1]  # everything connected to the rim is outside


def _with_neighbours(planes: Mask, joined: np.ufunc) -> Mask:
    """Combine each pixel with its four neighbours in the plane: `or` dilates, `and` erodes."""
    result = planes.copy()
    for here, there in ((np.s_[:, 1:], np.s_[:, :-1]), (np.s_[:, :, 1:], np.s_[:, :, :-1])):
        joined(result[here], planes[there], out=result[here])
        joined(result[there], planes[here], out=result[there])
    return result


def _axis(image: sitk.Image, direction: int) -> int:
    """Return the image axis closest to left-right (0), front-back (1) or up-down (2)."""
    return int(np.argmax(np.abs(np.array(image.GetDirection()).reshape(3, 3)[direction])))


def scalp_shows(image: sitk.Image, depth: sitk.Image) -> bool:
    """Return True if the surface of the scan is a scalp, with a skull between it and the brain.

    `depth`: result of `skin_depth` for the scan. False for a skull-stripped brain, and for a diffusion scan in which the scalp is black.
    """
    import SimpleITK as sitk

    voxels, below = sitk.GetArrayFromImage(resample_to(image, depth)), sitk.GetArrayViewFromImage(depth)
    layer = np.where(below > 0, np.ceil(below / LAYER_MM), 0).astype(np.intp)
    greys = [voxels[layer == number + 1] for number in range(LAYERS)]
    if min(len(grey) for grey in greys) == 0:
        return False
    low = float(voxels.min())
    medians = np.array([float(np.median(grey)) for grey in greys])
    if is_ct(voxels):
        # at the base of the skull and below, bone lies under part of the surface only
        bone = [float((grey > CT_SKULL_HU).mean()) for grey in greys[:SKULL_LAYERS]]
        return max(bone) >= MIN_BONE
    # MR: bright scalp, dark skull, bright brain
    medians -= low
    scalp = int(np.argmax(medians[:SCALP_LAYERS]))
    skull = scalp + int(np.argmin(medians[scalp:SKULL_LAYERS]))
    dark = max(float(medians[skull]), 1e-6)
    return bool(medians[scalp] > CLEAR_DIP * dark or (medians[scalp] > DIP * dark and medians[skull:].max() > RISE * dark))


def outer_shell(depth: sitk.Image) -> npt.NDArray[np.float32]:
    """Compute a level set of the outer layer of the head on all sides, with nose and ears: no fit and no header must say where its front is.

    `depth`: result of `skin_depth` for a scan that shows the scalp. Returns float32, shape (Z, Y, X), on the same grid, mm: 0 or less in the
    layer and in the air around it. The brain lies deeper than `SHELL_MM` below the skin.
    """
    import SimpleITK as sitk

    return np.asarray(sitk.GetArrayFromImage(depth) - np.float32(SHELL_MM))
