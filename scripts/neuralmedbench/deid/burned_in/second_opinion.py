"""What tesseract says about the planes of a series, and when it is believed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.lines import Box2D
from neuralmedbench.deid.burned_in.ocr import Word, read_pages
from neuralmedbench.deid.burned_in.overlays import Mark, Mask, Planes, grey_range
from neuralmedbench.deid.burned_in.strokes import suspicious_lines
from neuralmedbench.errors import DeidentificationError

BORDER = 0.2
"""Outer part of a picture's height and width in which scanners write."""
READ_PLANES = 3
COVERED = 0.9
"""A line of which so much is hidden by another test is known."""


def read_pictures(pictures: Iterable[Planes]) -> list[list[Word] | None]:
    """Let tesseract read single pictures, many at once: to start it takes longer than to read one.

    Parameters
    ----------
    pictures : iterable of ndarray, shape (rows, columns)
        Each a picture of its own.

    Returns
    -------
    list of (list of Word or None)
        As `read_pages`; for `find_burned_in`.
    """
    return read_pages(_as_grey(picture, grey_range(picture)) for picture in pictures)


def words_in(planes: Planes, span: float, done: Mask | None, read: Sequence[list[Word] | None] | None = None) -> list[Mark]:
    """Believe the words that tesseract reads in some planes, and in all of them when it finds something there.

    Parameters
    ----------
    planes : ndarray, shape (slices, rows, columns)
        One series, or one picture.
    span : float
        See `grey_range`.
    done : ndarray of bool, shape (slices, rows, columns), optional
        What is hidden already.
    read : sequence of (list of Word or None), optional
        What `read_pictures` gave for the planes.

    Returns
    -------
    list of Mark
        Words at the border, and those that the plane beside or the search for strokes agrees with.

    Raises
    ------
    DeidentificationError
        If tesseract fails.
    """
    if read is not None:
        words = {index: _known(one) for index, one in enumerate(read)}
    else:
        some = sorted({round(part * (len(planes) - 1)) for part in np.linspace(0, 1, READ_PLANES)})
        words = _read(planes, some, span)
        if any(words.values()):
            words |= _read(planes, [index for index in range(len(planes)) if index not in words], span)
    marks = []
    for index, own in words.items():
        near = [word for other in (index - 1, index + 1) for word in words.get(other, [])]
        lines = [found.line.box for found in suspicious_lines(planes[index], span)] if own else []
        for word in own:
            agreed = any(_overlap(word.box, box) for box in [*(other.box for other in near), *lines])
            if (agreed or _at_border(word.box, planes.shape[1:])) and not mostly_hidden(done, index, word.box):
                marks.append(Mark(word.box, (index,), float(word.box[1] - word.box[0])))
    return marks


def _read(planes: Planes, indices: Sequence[int], span: float) -> dict[int, list[Word]]:
    pages = read_pages(_as_grey(planes[index], span) for index in indices)
    return {index: _known(words) for index, words in zip(indices, pages, strict=True)}


def _known(words: list[Word] | None) -> list[Word]:
    """Refuse to go on where tesseract failed: a search that was not made finds nothing."""
    if words is None:
        message = "tesseract failed in the search for burned-in text: see whether it reads the picture by hand, or take the picture out"
        raise DeidentificationError(message)
    return words


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
