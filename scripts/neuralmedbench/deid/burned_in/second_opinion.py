"""What tesseract says about the planes of a series, and when it is believed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.lines import Box2D
from neuralmedbench.deid.burned_in.ocr import read_words
from neuralmedbench.deid.burned_in.overlays import Mark, Mask, Planes
from neuralmedbench.deid.burned_in.strokes import suspicious_lines

BORDER = 0.2
"""Outer part of a picture's height and width in which scanners write."""
READ_PLANES = 3
COVERED = 0.9
"""A line of which so much is hidden by another test is known."""


def words_in(planes: Planes, span: float, done: Mask | None) -> list[Mark]:
    """Let tesseract read some planes, and all of them when it finds something there.

    Parameters
    ----------
    planes : ndarray, shape (slices, rows, columns)
        One series, or one picture.
    span : float
        See `grey_range`.
    done : ndarray of bool, shape (slices, rows, columns), optional
        What is hidden already.

    Returns
    -------
    list of Mark
        Words at the border, and those that the plane beside or the search for strokes agrees with.
    """
    some = sorted({round(part * (len(planes) - 1)) for part in np.linspace(0, 1, READ_PLANES)})
    words = {index: read_words(_as_grey(planes[index], span)) for index in some}
    if any(words.values()):
        words |= {index: read_words(_as_grey(planes[index], span)) for index in range(len(planes)) if index not in words}
    marks = []
    for index, read in words.items():
        near = [word for other in (index - 1, index + 1) for word in words.get(other, [])]
        lines = [found.line.box for found in suspicious_lines(planes[index], span)] if read else []
        for word in read:
            agreed = any(_overlap(word.box, box) for box in [*(other.box for other in near), *lines])
            if (agreed or _at_border(word.box, planes.shape[1:])) and not mostly_hidden(done, index, word.box):
                marks.append(Mark(word.box, (index,), float(word.box[1] - word.box[0])))
    return marks


def _as_grey(plane: Planes, span: float) -> npt.NDArray[np.uint8]:
    values = plane.astype(np.float32)
    low = float(np.percentile(values, 0.5))
    return np.asarray(np.clip((values - low) / span, 0, 1) * 255, dtype=np.uint8)


def _overlap(one: Box2D, other: Box2D) -> bool:
    high = min(one[1], other[1]) - max(one[0], other[0])
    wide = min(one[3], other[3]) - max(one[2], other[2])
    return (
        high > 0
        and wide > 0
        and high * wide > 0.3 * min((one[1] - one[0]) * (one[3] - one[2]), (other[1] - other[0]) * (other[3] - other[2]))
    )


def _at_border(box: Box2D, shape: tuple[int, ...]) -> bool:
    middle = ((box[0] + box[1]) / 2 / shape[0], (box[2] + box[3]) / 2 / shape[1])
    return any(part < BORDER or part > 1 - BORDER for part in middle)


def mostly_hidden(done: Mask | None, index: int, box: Box2D) -> bool:
    """Whether a line is hidden already."""
    top, bottom, left, right = box
    return done is not None and bool(done[index, top:bottom, left:right].mean() > COVERED)
