"""Slices as they are displayed: framed around the brain, through a window, at the size that is sent; alone or side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuralmedbench.imaging.choose import SlicePolicy
from neuralmedbench.imaging.pictures import SLICE_AXIS, Floats, cut_plane, letterbox, montage, resize, square, to_grey
from neuralmedbench.imaging.scans import Scan, SlicePlace
from neuralmedbench.imaging.windows import Window
from neuralmedbench.records.case import Plane

Grey = npt.NDArray[np.uint8]
LETTERS = {
    "R": ("11110", "10001", "10001", "11110", "10100", "10010", "10001"),
    "L": ("10000", "10000", "10000", "10000", "10000", "10000", "11111"),
}
"""5 x 7 dots: no font file, so the same pixels everywhere."""
HEIGHT = 0.05
"""Height of a letter as a part of the picture's."""
PLACES = (0.04, 0.89, 0.475)
"""Upper ends of a letter as parts of the height that are tried in order: above, below, and in the middle of the edge."""
GAP_PX = 4
"""Black between the tiles of a montage."""
MIN_TILE_PX = 8


@dataclass(frozen=True)
class RenderedSlice:
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
    scan: Scan, voxels: Floats, plane: Plane, group: list[SlicePlace], policy: SlicePolicy, *, window: Window
) -> tuple[npt.NDArray[np.uint8], RenderedSlice]:
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
        one = render_slice(scan, voxels, plane, group[0], policy, window=window, side_px=policy.sent_px)
        return one.grey, one
    columns = int(np.ceil(np.sqrt(len(group))))
    side = max((policy.sent_px - (columns - 1) * GAP_PX) // columns, MIN_TILE_PX) if policy.sent_px else 0
    tiles = [render_slice(scan, voxels, plane, place, policy, window=window, side_px=side) for place in group]
    whole = montage([tile.grey for tile in tiles], gap_px=GAP_PX)
    of_all = RenderedSlice(tiles[0].grey, tiles[0].mm_per_px, marked=all(tile.marked for tile in tiles))
    return (letterbox(whole, max(policy.sent_px, *whole.shape)) if policy.sent_px else whole), of_all


def render_slice(
    scan: Scan, voxels: Floats, plane: Plane, place: SlicePlace, policy: SlicePolicy, *, window: Window, side_px: int
) -> RenderedSlice:
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
        return RenderedSlice(grey, mm_per_px, marked=False)
    brain, _ = framed(scan.brain.astype(np.float32), 0.0)
    marked, found = mark_sides(grey, brain > 0, plane)
    return RenderedSlice(marked, mm_per_px, marked=found)


def mark_sides(grey: Grey, brain: npt.NDArray[np.bool_], plane: Plane) -> tuple[Grey, bool]:
    """Draw R at the left edge and L at the right one (the patient's left is on the viewer's right).

    Parameters
    ----------
    grey : ndarray of uint8, shape (rows, columns)
        The picture.
    brain : ndarray of bool, shape (rows, columns)
        Where no letter may stand.
    plane : Plane
        A sagittal picture has no sides and is left alone.

    Returns
    -------
    tuple of ndarray and bool
        The picture, and whether both letters found a place; when one did not, none is drawn.
    """
    if plane is Plane.SAGITTAL:
        return grey, False
    rows, columns = grey.shape
    dot = max(1, round(HEIGHT * rows / 7))
    stamps = {name: np.kron(np.array([[int(bit) for bit in line] for line in lines], np.uint8), np.ones((dot, dot), np.uint8))
              for name, lines in LETTERS.items()}  # fmt: skip
    height, width = (side + 2 * dot for side in stamps["R"].shape)
    corners = {"R": dot, "L": columns - width - dot}
    for start in (round(part * rows) for part in PLACES):
        boxes = {name: (slice(start, start + height), slice(column, column + width)) for name, column in corners.items()}
        if start + height > rows or corners["L"] <= corners["R"] + width or any(brain[box].any() for box in boxes.values()):
            continue
        marked = grey.copy()
        for name, box in boxes.items():
            marked[box] = np.pad(stamps[name], dot) * np.uint8(255)  # on black: white hair or skin behind it must not hide it
        return marked, True
    return grey, False


def native_pixel(scan: Scan, plane: Plane) -> tuple[float, float]:
    """Size of a native pixel along rows and columns of a plane in mm."""
    rows, columns = (size for axis, size in enumerate(scan.image.GetSpacing()[::-1]) if axis != SLICE_AXIS[plane])
    return rows, columns
