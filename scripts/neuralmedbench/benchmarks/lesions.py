"""Was the lesion among the slices that were shown? A lesion that nobody showed cannot be missed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from neuralmedbench.records.case import Plane, SliceRow
from neuralmedbench.records.items import Lesion

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

    Notes
    -----
    A slice goes through the lesion when its plane is at most half the lesion's diameter from the centre, or half the
    scan's own slice spacing where that is more (a slice is as thick as it is spaced). Pictures of a sequence on which
    the lesion is isointense do not count.
    """
    if lesion is None or lesion.position_mm is None:
        return None
    for sequence, plane in {(row.sequence, row.plane) for row in slices}:
        if lesion.behaviour.get(sequence) == INVISIBLE:
            continue
        rows = [row for row in slices if (row.sequence, row.plane) == (sequence, plane)]
        reach = max(lesion.size_mm or 0.0, slice_spacing_mm(rows)) / 2
        centre = lesion.position_mm["xyz".index(Plane(plane).axis)]
        if any(abs(row.position_mm - centre) <= reach for row in rows):
            return True
    return False


def slice_spacing_mm(rows: Sequence[SliceRow]) -> float:
    """Spacing of a scan's native slices in mm, from two of its pictures; 0 when there is only one."""
    ordered = sorted(rows, key=lambda row: row.index)
    spacings = [abs((b.position_mm - a.position_mm) / (b.index - a.index)) for a, b in pairwise(ordered) if b.index != a.index]
    return min(spacings, default=0.0)
