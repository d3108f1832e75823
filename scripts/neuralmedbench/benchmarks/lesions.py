"""Was the lesion among the slices that were shown, and how large? A lesion that nobody showed cannot be missed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

from neuralmedbench.records.case import Plane, SliceRow
from neuralmedbench.records.items import Lesion, ShownLesion

INVISIBLE = "isointense"


def lesion_shown(lesion: Lesion | None, slices: Sequence[SliceRow]) -> bool | None:
    """Say whether a slice goes through the lesion on a sequence that shows it.

    Parameters
    ----------
    lesion : Lesion or None
        Centre in mm (LPS+, space of the reference sequence) and largest diameter in mm.
    slices : sequence of SliceRow
        The pictures of the case; positions in mm along their slice axis, in the same space.

    Returns
    -------
    bool or None
        None when there is no lesion or its position is not known.
    """
    if lesion is None or lesion.position_mm is None:
        return None
    return any(row.shown for row in picture_lesions(lesion, slices))


def picture_lesions(lesion: Lesion | None, slices: Sequence[SliceRow]) -> list[ShownLesion]:
    """Say of every picture of a case whether it shows the lesion, and how wide.

    Parameters
    ----------
    lesion, slices
        As in `lesion_shown`.

    Returns
    -------
    list of ShownLesion
        One a picture, in their order; none when there is no lesion or its position is not known.

    Notes
    -----
    A slice goes through the lesion when its plane is at most half the lesion's diameter from the centre, or half the
    scan's own slice spacing where that is more (a slice is as thick as it is spaced). Pictures of a sequence on which
    the lesion is isointense do not count. The width is that of a ball of the lesion's diameter where the slice, with its
    thickness, comes nearest to the centre.
    """
    if lesion is None or lesion.position_mm is None:
        return []
    stacks: dict[tuple[str, str, str], list[SliceRow]] = defaultdict(list)
    for row in slices:
        stacks[row.sequence, row.plane, row.volume_sha256].append(row)
    spacing = {key: slice_spacing_mm(rows) for key, rows in stacks.items()}
    return [_of_picture(lesion, lesion.position_mm, row, spacing[row.sequence, row.plane, row.volume_sha256]) for row in slices]


def _of_picture(lesion: Lesion, position_mm: tuple[float, float, float], row: SliceRow, spacing_mm: float) -> ShownLesion:
    centre = position_mm["xyz".index(Plane(row.plane).axis)]
    size = lesion.size_mm or 0.0
    distance = min(abs(tile.position_mm - centre) for tile in row.tiles)
    shown = lesion.behaviour.get(row.sequence) != INVISIBLE and distance <= max(size, spacing_mm) / 2
    nearest = max(distance - spacing_mm / 2, 0.0)
    width = 2 * sqrt(max((size / 2) ** 2 - nearest**2, 0.0)) / row.mm_per_px
    return ShownLesion(case_id=row.case_id, image_id=row.image_id, shown=shown, width_px=round(width, 2) if shown and size else None)


def slice_spacing_mm(rows: Sequence[SliceRow]) -> float:
    """Spacing of a scan's native slices in mm, from two of those that are shown; 0 when there is only one."""
    ordered = sorted({(tile.index, tile.position_mm) for row in rows for tile in row.tiles})
    spacings = [abs((b - a) / (two - one)) for (one, a), (two, b) in pairwise(ordered) if two != one]
    return min(spacings, default=0.0)
