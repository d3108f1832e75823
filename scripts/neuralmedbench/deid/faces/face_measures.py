"""The region of the face in a scan, from the fitted template and the scan's own skin, and measures of what defacing left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.anatomy import face_regions
from neuralmedbench.atlas.fit import brain_depth, template_points
from neuralmedbench.deid.faces.skin import SHELL_MM

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
FEW = 50
"""Minimum voxels of a measure; with fewer it is absent."""
WINDOW_X, WINDOW_Y, WINDOW_Z = 50.0, -55.0, (-95.0, -35.0)
"""Surface of the face, from the bridge of the nose to the lower lip, in template mm (LPS+)."""
PROFILE_X, NOSE_Z, FOREHEAD_Z = 25.0, (-75.0, -40.0), (0.0, 40.0)


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
        Depth below the skin, 0 outside the head.
    """

    grid: sitk.Image
    x: Floats
    y: Floats
    z: Floats
    brain: Floats
    skin: Floats


def view_head(skin: sitk.Image, transform: sitk.Transform) -> HeadView:
    """Locate a scan's voxels relative to template and skin.

    `skin`: result of `skin_depth`. `transform`: from points of the scan to the template, as returned by `fit_template`.
    """
    import SimpleITK as sitk

    x, y, z = template_points(skin, transform)
    brain = sitk.GetArrayFromImage(brain_depth(skin, transform))
    return HeadView(skin, x, y, z, brain, sitk.GetArrayFromImage(skin))


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
    """Compute a level set, like `face_level`, of the outer layer of the face alone: as thick as `front_shell`, away from the fitted brain."""
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
    rim = head & (seen.skin <= seen.grid.GetSpacing()[0])
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
