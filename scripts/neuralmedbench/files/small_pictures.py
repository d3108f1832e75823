"""Small pictures for a reviewer: 15 greys and one colour for outlines and letters, as compact PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.runtime.atomic_write import atomic_file

Levels = npt.NDArray[np.uint8]
GREYS = 15
"""Grey levels; with the colour they fit into four bits per pixel, which halves the file."""
COLOUR = GREYS
"""Level of outlines and letters."""
YELLOW = (255, 214, 10)
GAP_PX = 4
LETTER_PX = 11
"""Width of the rim around a picture with letters."""
GLYPHS = {
    "R": "11110 10001 10001 11110 10100 10010 10001",
    "L": "10000 10000 10000 10000 10000 10000 11111",
    "A": "01110 10001 10001 11111 10001 10001 10001",
    "P": "11110 10001 10001 11110 10000 10000 10000",
    "S": "01111 10000 10000 01110 00001 00001 11110",
    "I": "01110 00100 00100 00100 00100 00100 01110",
}
"""Letters, seven rows of five columns."""


def to_levels(values: npt.NDArray[np.floating], low: float, high: float) -> Levels:
    """Map values to grey levels, `low` to black and `high` to white.

    Parameters
    ----------
    values : ndarray of float, shape (rows, columns)
        A picture.
    low, high : float
        Its window.

    Returns
    -------
    ndarray of uint8, shape (rows, columns)
        Levels 0 to `GREYS - 1`.
    """
    return np.asarray(np.clip((values - low) / max(high - low, 1e-9), 0, 1) * (GREYS - 1) + 0.5, dtype=np.uint8)


def outlined(levels: Levels, mask: npt.NDArray[np.bool_]) -> Levels:
    """Draw the outline of a mask of the same shape: its outermost pixels."""
    inside = np.pad(mask, 1)
    # pixels whose four neighbours are inside are not on the outline
    core = inside[1:-1, 1:-1] & inside[:-2, 1:-1] & inside[2:, 1:-1] & inside[1:-1, :-2] & inside[1:-1, 2:]
    return np.where(mask & ~core, np.uint8(COLOUR), levels)


def lettered(levels: Levels, letters: tuple[str, str, str, str]) -> Levels:
    """Add a rim to a picture, with letters at the left, right, upper and lower side (`R`, `L`, `A`, `P`, `S`, `I`)."""
    rows, columns = levels.shape
    sheet = np.zeros((rows + 2 * LETTER_PX, columns + 2 * LETTER_PX), dtype=np.uint8)
    sheet[LETTER_PX : LETTER_PX + rows, LETTER_PX : LETTER_PX + columns] = levels
    middle, centre = sheet.shape[0] // 2 - 3, sheet.shape[1] // 2 - 2
    places = ((middle, 2), (middle, sheet.shape[1] - 7), (2, centre), (sheet.shape[0] - 9, centre))
    for letter, (row, column) in zip(letters, places, strict=True):
        glyph = np.array([list(line) for line in GLYPHS[letter].split()]) == "1"
        sheet[row : row + 7, column : column + 5][glyph] = COLOUR
    return sheet


def side_by_side(pictures: Sequence[Levels]) -> Levels:
    """Arrange pictures in one row, vertically centred, on black."""
    height = max(picture.shape[0] for picture in pictures)
    width = sum(picture.shape[1] for picture in pictures) + GAP_PX * (len(pictures) - 1)
    sheet, column = np.zeros((height, width), dtype=np.uint8), 0
    for picture in pictures:
        row = (height - picture.shape[0]) // 2
        sheet[row : row + picture.shape[0], column : column + picture.shape[1]] = picture
        column += picture.shape[1] + GAP_PX
    return sheet


def write_levels(path: Path, levels: Levels) -> None:
    """Write levels as a PNG of four bits per pixel without text chunks; equal levels give equal bytes with the same version of Pillow."""
    from PIL import Image

    greys = [round(255 * level / (GREYS - 1)) for level in range(GREYS)]
    picture = Image.fromarray(levels)
    picture.putpalette([part for grey in greys for part in (grey, grey, grey)] + list(YELLOW))
    with atomic_file(path) as partial:
        picture.save(partial, format="PNG", optimize=True)
