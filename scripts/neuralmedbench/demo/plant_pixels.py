"""Text that a scanner burned into the pixels of a series: the same letters in the same corner of every slice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuralmedbench.demo.identity import PhantomIdentity
from neuralmedbench.records.answer_key import PixelBox

EDGE = 3
"""Pixels between the text and the border of the picture."""


def draw_text(lines: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Draw some lines of text.

    Returns
    -------
    ndarray of bool, shape (rows, columns)
        True where a letter is; no empty row or column at the edges.
    """
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (400, 12 * len(lines) + 4))
    for place, line in enumerate(lines):
        # the packaged bitmap font: outlines would be drawn differently from one version of the library to the next
        ImageDraw.Draw(picture).text((1, 1 + 12 * place), line, fill=255, font=ImageFont.load_default_imagefont())
    drawn = np.asarray(picture) > 127
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    return drawn[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def burn_in(stored: npt.NDArray[np.uint16], who: PhantomIdentity) -> tuple[npt.NDArray[np.uint16], PixelBox]:
    """Draw name and record number into the upper left corner of every slice, where there is air.

    Parameters
    ----------
    stored : ndarray of uint16, shape (slices, rows, columns)
        Stored values.
    who : PhantomIdentity
        The invented person.

    Returns
    -------
    stored : ndarray of uint16, shape (slices, rows, columns)
        A copy; the letters have the highest value of the scan, everything else is as it was.
    box : PixelBox
        Where the text stands.
    """
    lines = (who.family.upper(), who.mrn)
    text = draw_text(lines)
    box = PixelBox(top=EDGE, left=EDGE, bottom=EDGE + text.shape[0], right=EDGE + text.shape[1], text=lines)
    marked = stored.copy()
    marked[:, box.top : box.bottom, box.left : box.right][:, text] = stored.max()
    return marked, box
