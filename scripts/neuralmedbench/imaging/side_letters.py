"""The letters R and L beside the brain: drawn into pictures, and found again in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neuralmedbench.files.plain_pictures import GLYPHS
from neuralmedbench.records.case import Plane

Grey = npt.NDArray[np.uint8]
Box = tuple[slice, slice]
LETTERS = {name: [[int(bit) for bit in line] for line in GLYPHS[name].split()] for name in "RL"}
HEIGHT = 0.05
"""Height of a letter as a fraction of the picture's height."""
PLACES = (0.04, 0.89, 0.475)
"""Upper ends of a letter as fractions of the picture's height, tried in this order: top, bottom and middle of the edge."""


def mark_sides(grey: Grey, brain: npt.NDArray[np.bool_], plane: Plane) -> tuple[Grey, bool]:
    """Draw R at the left edge and L at the right one (the patient's left is on the viewer's right).

    Parameters
    ----------
    grey : ndarray of uint8, shape (rows, columns)
        The picture.
    brain : ndarray of bool, shape (rows, columns)
        Brain mask; letters never cover it.
    plane : Plane
        Sagittal pictures have no sides and are not marked.

    Returns
    -------
    tuple of ndarray and bool
        The picture, and whether it is marked; without room for both letters, none is drawn.
    """
    if plane is Plane.SAGITTAL:
        return grey, False
    for stamps in _places(*grey.shape):
        if any(brain[box].any() for box, _ in stamps):
            continue
        marked = grey.copy()
        for box, stamp in stamps:
            marked[box] = stamp
        return marked, True
    return grey, False


def find_letters(grey: Grey) -> list[Box]:
    """Return the boxes of the letters that `mark_sides` drew into a picture, shape (rows, columns): two, or none."""
    found = (stamps for stamps in _places(*grey.shape) if all(np.array_equal(grey[box], stamp) for box, stamp in stamps))
    return [box for box, _ in next(found, ())]


def _places(rows: int, columns: int) -> Iterator[tuple[tuple[Box, Grey], ...]]:
    """Yield the boxes of R and L, and what is drawn there, for each of `PLACES` with room for both."""
    dot = max(1, round(HEIGHT * rows / 7))  # pixels per dot of a letter
    # on black, so that bright scalp does not hide them
    stamps = {
        name: np.pad(np.kron(np.array(dots, np.uint8), np.ones((dot, dot), np.uint8)), dot) * np.uint8(255)
        for name, dots in LETTERS.items()
    }
    height, width = stamps["R"].shape
    corners = {"R": dot, "L": columns - width - dot}
    for start in (round(part * rows) for part in PLACES):
        if start + height <= rows and corners["L"] > corners["R"] + width:
            yield tuple(((slice(start, start + height), slice(corner, corner + width)), stamps[name]) for name, corner in corners.items())
