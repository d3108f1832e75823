"""Which pictures of a case show its known lesion, and where on them: by its place and size, or by its mask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import sqrt

import numpy as np

from neuralmedbench.files.known_lesions import LesionMask
from neuralmedbench.records.case import Plane, SliceRow, Tile
from neuralmedbench.records.coordinates import half_width_px, to_fractions, to_picture
from neuralmedbench.records.items import Lesion, LesionOnSlice, ShownLesion

INVISIBLE = "isointense"
Vector = tuple[float, float, float]


def lesion_shown(lesion: Lesion | None, mask: LesionMask | None, pictures: Iterable[ShownLesion]) -> bool | None:
    """Return whether a slice passes through the lesion on a sequence that shows it; None without a lesion or its place."""
    if lesion is None or (lesion.position_mm is None and mask is None):
        return None
    return any(row.shown for row in pictures)


def with_place(lesion: Lesion | None, mask: LesionMask | None) -> Lesion | None:
    """Return the lesion with the middle and the widths of its marked voxels, where the answers table gives no place."""
    if lesion is None or mask is None or lesion.position_mm is not None:
        return lesion
    place = mask.place
    return replace(lesion, position_mm=place.position_mm, extent_mm=place.extent_mm)


def picture_lesions(lesion: Lesion | None, slices: Sequence[SliceRow], mask: LesionMask | None = None) -> list[ShownLesion]:
    """Return for every picture of a case whether it shows the lesion, its width in pixels and its box; empty without a known place.

    With a mask, a slice shows the lesion where at least half of its thickness is marked (of a thinner lesion: half of the lesion), and the
    box is that of these pixels. Without one the lesion is taken as an ellipsoid about its centre: a slice shows the lesion if its plane is
    within half the lesion's width across it (its diameter, where only that is known) of the centre (mm, LPS+), or within half the scan's
    slice spacing if that is larger (slices are as thick as their spacing), unless the lesion is isointense on that sequence. The width in pixels is that of a sphere of the lesion's diameter, the box that of an ellipsoid of its
    extent, cut where the slice, with its thickness, is nearest to the centre. A diameter alone gives no box.
    """
    if lesion is None or (lesion.position_mm is None and mask is None):
        return []
    stacks: dict[tuple[str, str, str], list[SliceRow]] = defaultdict(list)
    for row in slices:
        stacks[row.sequence, row.plane, row.volume_sha256].append(row)
    spacing = {key: _slice_spacing_mm(rows) for key, rows in stacks.items()}
    shown = []
    for row in slices:
        apart = spacing[row.sequence, row.plane, row.volume_sha256]
        if mask is not None and row.size_px is not None and all(tile.corner_mm for tile in row.tiles):
            shown.append(_of_mask(lesion, mask, row, row.size_px, apart))
        elif lesion.position_mm is not None:
            shown.append(_of_picture(lesion, lesion.position_mm, row, apart))
    return shown


def _slice_spacing_mm(rows: Sequence[SliceRow]) -> float:
    """Return the spacing of a scan's native slices in mm, from two slices shown; 0 if there is only one."""
    ordered = sorted({(tile.index, tile.position_mm) for row in rows for tile in row.tiles})
    spacings = [abs((b - a) / (two - one)) for (one, a), (two, b) in pairwise(ordered) if two != one]
    return min(spacings, default=0.0)


def _of_picture(lesion: Lesion, centre_mm: Vector, row: SliceRow, spacing_mm: float) -> ShownLesion:
    axis, size = "xyz".index(Plane(row.plane).axis), lesion.size_mm or 0.0
    across = lesion.extent_mm[axis] if lesion.extent_mm else size
    distances = [abs(tile.position_mm - centre_mm[axis]) for tile in row.tiles]
    visible = lesion.behaviour.get(row.sequence) != INVISIBLE
    shown = [visible and distance <= max(across, spacing_mm) / 2 for distance in distances]
    # chord of a sphere at the nearest point of the slice, in pixels
    nearest = [max(distance - spacing_mm / 2, 0.0) for distance in distances]
    width = 2 * sqrt(max((size / 2) ** 2 - min(nearest) ** 2, 0.0)) / row.mm_per_px
    return ShownLesion(
        case_id=row.case_id,
        image_id=row.image_id,
        shown=any(shown),
        width_px=round(width, 2) if any(shown) and size else None,
        size_px=row.size_px,
        slices=tuple(
            LesionOnSlice(
                position_mm=tile.position_mm,
                frame=_frame(tile, row.size_px),
                shown=is_shown,
                box=_box(tile, row.size_px, centre_mm, lesion.extent_mm, off / across * 2) if is_shown and lesion.extent_mm else None,
            )
            for tile, is_shown, off in zip(row.tiles, shown, nearest, strict=True)
        )
        if row.size_px is not None and all(tile.corner_mm for tile in row.tiles)
        else (),
    )


def _of_mask(lesion: Lesion, mask: LesionMask, row: SliceRow, size_px: tuple[int, int], spacing_mm: float) -> ShownLesion:
    visible = lesion.behaviour.get(row.sequence) != INVISIBLE
    boxes = [_outline(tile, mask, spacing_mm) if visible else None for tile in row.tiles]
    widths = [max(right - left, bottom - top) for left, top, right, bottom in filter(None, boxes)]
    return ShownLesion(
        case_id=row.case_id,
        image_id=row.image_id,
        shown=bool(widths),
        width_px=max(widths, default=None),
        size_px=size_px,
        slices=tuple(
            LesionOnSlice(
                position_mm=tile.position_mm,
                frame=_frame(tile, size_px),
                shown=box is not None,
                box=_fractions(box, size_px) if box else None,
            )
            for tile, box in zip(row.tiles, boxes, strict=True)
        ),
    )


def _outline(tile: Tile, mask: LesionMask, thickness_mm: float) -> tuple[float, float, float, float] | None:
    """Return the box of the pixels of a slice that are marked through at least half of its thickness, or of the lesion; None if none is."""
    corner, right, down = (np.array(vector) for vector in (tile.corner_mm, tile.right_mm, tile.down_mm))
    normal = np.cross(right, down) / np.linalg.norm(np.cross(right, down))
    steps, offsets = mask.affine[:3, :3], mask.centres_mm - corner
    depths, reach = offsets @ normal, float(np.abs(normal @ steps).sum()) / 2
    if depths.min() - reach > thickness_mm / 2 or depths.max() + reach < -thickness_mm / 2:
        return None
    # pixels of the slice around the whole lesion
    ranges = []
    for axis in (down, right):
        along, half = offsets @ axis / (axis @ axis), float(np.abs(axis @ steps).sum() / (axis @ axis)) / 2
        ranges.append(np.arange(max(0, int(along.min() - half)), min(tile.side_px, int(along.max() + half) + 1)))
    rows, columns = ranges
    # the middles of layers through the thickness, about as far apart as voxels
    layers = max(1, round(thickness_mm / float(np.linalg.norm(steps, axis=0).min())))
    through = ((np.arange(layers) + 0.5) / layers - 0.5) * thickness_mm
    to_voxel, around = np.linalg.inv(steps), np.pad(mask.voxels, 1)
    nearest = []
    for row, voxels_along in zip(to_voxel, mask.voxels.shape, strict=True):
        start, beside, below, deeper = (float(row @ vector) for vector in (corner - mask.affine[:3, 3], right, down, normal))
        flat = start + np.add.outer((rows + 0.5) * below, (columns + 0.5) * beside)
        nearest.append(np.clip(np.rint(np.add.outer(flat, through * deeper)), -1, voxels_along).astype(np.intp) + 1)
    marked = around[nearest[0], nearest[1], nearest[2]]
    deep = float(depths.max() - depths.min()) + 2 * reach
    enough = marked.mean(axis=2) >= min(1.0, deep / thickness_mm if thickness_mm else 1.0) / 2
    if not enough.any():
        return None
    high, wide = np.flatnonzero(enough.any(axis=1)), np.flatnonzero(enough.any(axis=0))
    x, y = tile.left_px + int(columns[0]), tile.top_px + int(rows[0])
    return float(x + wide[0]), float(y + high[0]), float(x + wide[-1] + 1), float(y + high[-1] + 1)


def _frame(tile: Tile, size_px: tuple[int, int]) -> tuple[float, float, float, float]:
    left, top = tile.left_px, tile.top_px
    return _fractions((left, top, left + tile.side_px, top + tile.side_px), size_px)


def _box(
    tile: Tile, size_px: tuple[int, int], centre_mm: Vector, extent_mm: Vector, off: float
) -> tuple[float, float, float, float] | None:
    """Return the box of an ellipsoid on a slice that is `off` half axes away from its centre, cut at the edges of the slice; None if nothing is left."""
    x, y = to_picture(tile, centre_mm)
    part = sqrt(max(1 - off**2, 0.0))
    a, b, c = (width / 2 * part for width in extent_mm)
    wide, high = half_width_px(tile, (a, b, c))
    left, right = (min(max(value, tile.left_px), tile.left_px + tile.side_px) for value in (x - wide, x + wide))
    top, bottom = (min(max(value, tile.top_px), tile.top_px + tile.side_px) for value in (y - high, y + high))
    return _fractions((left, top, right, bottom), size_px) if left < right and top < bottom else None


def _fractions(box: tuple[float, float, float, float], size_px: tuple[int, int]) -> tuple[float, float, float, float]:
    x1, y1, x2, y2 = (round(value, 6) for value in to_fractions(box, size_px))
    return x1, y1, x2, y2
