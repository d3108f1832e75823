"""Slices as they are displayed: framed around the brain, through a window, at the size that is sent; alone or side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuralmedbench.imaging.marks import mark_sides
from neuralmedbench.imaging.pictures import SLICE_AXIS, Floats, cut_plane, letterbox, montage, resize, square, to_grey
from neuralmedbench.imaging.policy import SlicePolicy
from neuralmedbench.imaging.scans import Place, Scan
from neuralmedbench.imaging.windows import Window
from neuralmedbench.records.case import Plane

GAP_PX = 4
"""Black between the tiles of a montage."""
MIN_TILE_PX = 8


@dataclass(frozen=True)
class Shown:
    """One slice as it is displayed.

    Attributes
    ----------
    grey : ndarray of uint8, shape (n, n)
        The picture.
    mm_per_px : float
        Size of its pixels.
    marked : bool
        Whether the sides are marked.
    """

    grey: npt.NDArray[np.uint8]
    mm_per_px: float
    marked: bool


def draw(
    scan: Scan, voxels: Floats, plane: Plane, group: list[Place], policy: SlicePolicy, *, window: Window
) -> tuple[npt.NDArray[np.uint8], Shown]:
    """Draw one picture.

    Parameters
    ----------
    scan : Scan
        The scan.
    voxels : ndarray of float32, shape (Z, Y, X)
        Its values.
    plane : Plane
        The plane that is cut.
    group : list of Place
        The slice, or those of a montage.
    policy : SlicePolicy
        How it is shown.
    window : tuple of float
        Black and white.

    Returns
    -------
    tuple of ndarray of uint8 and Shown
        The picture, and its (first) slice with what holds for each of them.
    """
    if policy.layout == "single":
        one = show(scan, voxels, plane, group[0], policy, window=window, side_px=policy.sent_px)
        return one.grey, one
    columns = int(np.ceil(np.sqrt(len(group))))
    side = max((policy.sent_px - (columns - 1) * GAP_PX) // columns, MIN_TILE_PX) if policy.sent_px else 0
    tiles = [show(scan, voxels, plane, place, policy, window=window, side_px=side) for place in group]
    whole = montage([tile.grey for tile in tiles], gap_px=GAP_PX)
    of_all = Shown(tiles[0].grey, tiles[0].mm_per_px, marked=all(tile.marked for tile in tiles))
    return (letterbox(whole, max(policy.sent_px, *whole.shape)) if policy.sent_px else whole), of_all


def show(scan: Scan, voxels: Floats, plane: Plane, place: Place, policy: SlicePolicy, *, window: Window, side_px: int) -> Shown:
    """Display one slice, its brain in the middle; `side_px` 0 keeps the native resolution."""

    def framed(values: Floats, fill: float) -> tuple[Floats, float]:
        cut = cut_plane(values, plane, place.index)
        picture, mm_per_px = square(cut, place.centre, native_pixel(scan, plane), side_mm=policy.field_of_view_mm, fill=fill)
        if not side_px:
            return picture, mm_per_px
        return resize(picture, side_px), mm_per_px * picture.shape[0] / side_px

    picture, mm_per_px = framed(voxels, float(voxels.min()))
    grey = to_grey(picture, window)
    if not policy.side_marker:
        return Shown(grey, mm_per_px, marked=False)
    brain, _ = framed(scan.brain.astype(np.float32), 0.0)
    marked, found = mark_sides(grey, brain > 0, plane)
    return Shown(marked, mm_per_px, marked=found)


def native_pixel(scan: Scan, plane: Plane) -> tuple[float, float]:
    """Size of a native pixel along rows and columns of a plane in mm."""
    rows, columns = (size for axis, size in enumerate(scan.image.GetSpacing()[::-1]) if axis != SLICE_AXIS[plane])
    return rows, columns
