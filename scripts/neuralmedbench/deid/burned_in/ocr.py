"""Words that tesseract reads in a picture: a second opinion, where the program is installed."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.lines import Box2D

PROGRAM = "tesseract"
MIN_CONFIDENCE = 60.0
MIN_LENGTH = 4
WANTED_SIDE_PX = 1024
"""Letters of a scanner are small: pictures are enlarged to this."""
MARGIN_PX = 16
TIMEOUT_S = 60


@dataclass(frozen=True)
class Word:
    """A word, without its letters: what it says is nobody's business.

    Attributes
    ----------
    box : Box2D
        In the pixels of the picture.
    confidence : float
        0 to 100.
    length : int
        Letters and digits.
    """

    box: Box2D
    confidence: float
    length: int


@cache
def ocr_available() -> bool:
    """Whether tesseract with its English data is installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        return False
    done = subprocess.run([program, "--list-langs"], capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    return "eng" in done.stdout.split()


def read_words(grey: npt.NDArray[np.uint8], *, wanted_side: int = WANTED_SIDE_PX) -> list[Word]:
    """Read the words of a picture.

    Parameters
    ----------
    grey : ndarray of uint8, shape (rows, columns)
        The picture; bright letters on a dark ground are read as well as dark ones on a bright ground.
    wanted_side : int
        Longer side that the picture is enlarged to, in pixels.

    Returns
    -------
    list of Word
        Words of at least `MIN_LENGTH` letters and digits that tesseract is sure of; empty without tesseract.
    """
    if not ocr_available() or not grey.size:
        return []
    from PIL import Image

    scale = max(1.0, wanted_side / max(grey.shape))
    picture = Image.fromarray(grey).resize((round(grey.shape[1] * scale), round(grey.shape[0] * scale)), Image.Resampling.BICUBIC)
    ground = float(np.median(grey))
    values = np.asarray(picture)
    values = 255 - values if ground < 128 else values  # tesseract expects ink on paper
    padded = np.pad(values, MARGIN_PX, constant_values=round(255 - ground if ground < 128 else ground))
    content = io.BytesIO()
    Image.fromarray(padded).save(content, format="PNG", compress_level=1)
    done = subprocess.run(
        [PROGRAM, "stdin", "stdout", "--psm", "11", "-l", "eng", "tsv"],
        input=content.getvalue(),
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"},
    )
    rows = csv.DictReader(io.StringIO(done.stdout.decode("utf-8", "replace")), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [word for word in (_as_word(row, scale) for row in rows) if word is not None]


def _as_word(row: dict[str, str], scale: float) -> Word | None:
    letters = sum(character.isalnum() for character in row.get("text") or "")
    confidence = float(row.get("conf") or -1)
    if letters < MIN_LENGTH or confidence < MIN_CONFIDENCE:
        return None
    left, top, width, height = (float(row[name]) for name in ("left", "top", "width", "height"))
    left, top = left - MARGIN_PX, top - MARGIN_PX
    box = (int(top / scale), int((top + height) / scale) + 1, int(left / scale), int((left + width) / scale) + 1)
    return Word((max(box[0], 0), box[1], max(box[2], 0), box[3]), confidence, letters)
