"""The letters R and L, drawn beside the brain of an axial or coronal picture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
