"""Words that tesseract reads in pictures, if it is installed, and the conditions under which this second opinion counts."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.constancy import Mark, Mask, Planes, grey_range
from neuralmedbench.deid.burned_in.lines import Box2D
from neuralmedbench.deid.burned_in.single_plane import suspicious_lines
from neuralmedbench.errors import DeidentificationError

Grey = npt.NDArray[np.uint8]
PROGRAM = "tesseract"
MIN_CONFIDENCE = 60.0
MIN_LENGTH = 4
WANTED_SIDE_PX = 1024
"""Pictures are enlarged to this side, because the letters of scanners are small."""
MARGIN_PX = 16
TIMEOUT_S = 60
PIXELS_AT_ONCE = 32 * 1024 * 1024
PAGE_LEVEL = "1"
"""Level of the rows of tesseract's table that describe a page."""
BORDER = 0.2
"""Outer part of a picture's height and width in which a word counts without confirmation: scanners write there."""
READ_PLANES = 3
"""Planes read first; if they show text, all planes are read."""
COVERED = 0.9
"""A line counts as detected if at least this part of it is hidden by another test."""


@dataclass(frozen=True)
class OcrWord:
    """A word without its text, which may identify a patient.

    Attributes
    ----------
    box : Box2D
        Position in pixels of the original picture.
    confidence : float
        0 to 100.
    length : int
        Number of letters and digits.
    """

    box: Box2D
    confidence: float
    length: int


@cache
def ocr_available() -> bool:
    """Return True if tesseract with its English data is installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        return False
    done = subprocess.run([program, "--list-langs"], capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    return "eng" in done.stdout.split()


def read_pictures(pictures: Iterable[Planes]) -> list[list[OcrWord] | None]:
    """Read single pictures with tesseract, for `find_burned_in`.

    `pictures`: arrays of shape (rows, columns). Returns as `read_pages`.
    """
    return read_pages(_as_grey(picture, grey_range(picture)) for picture in pictures)


def words_in(planes: Planes, span: float, done: Mask | None, read: Sequence[list[OcrWord] | None] | None = None) -> list[Mark]:
    """Detect words by OCR in `READ_PLANES` planes, and in all planes if one of them shows any.

    `planes`: shape (slices, rows, columns). `span`: see `grey_range`. `done`: mask of the same shape of text already hidden. `read`: result
    of `read_pictures` for the planes. Returns words at the border, and those confirmed by a neighbouring plane or by `suspicious_lines`.
    Raises DeidentificationError if tesseract fails.
    """
    if read is not None:
        words = {index: _known(one) for index, one in enumerate(read)}
    else:
        some = sorted({round(part * (len(planes) - 1)) for part in np.linspace(0, 1, READ_PLANES)})
        words = _read_planes(planes, some, span)
        if any(words.values()):
            words |= _read_planes(planes, [index for index in range(len(planes)) if index not in words], span)
    # a word counts at the border, or if a neighbouring plane or the search for strokes confirms it
    marks = []
    for index, of_plane in words.items():
        near = [word for other in (index - 1, index + 1) for word in words.get(other, [])]
        lines = [suspicious.line.box for suspicious in suspicious_lines(planes[index], span)] if of_plane else []
        for word in of_plane:
            agreed = any(_overlap(word.box, box) for box in [*(other.box for other in near), *lines])
            if (agreed or _at_border(word.box, planes.shape[1:])) and not mostly_hidden(done, index, word.box):
                marks.append(Mark(word.box, (index,), float(word.box[1] - word.box[0])))
    return marks


def read_pages(pages: Iterable[Grey]) -> list[list[OcrWord] | None]:
    """Read the words of many pictures per call, because starting tesseract takes longer than reading a picture.

    `pages`: uint8 arrays of shape (rows, columns). Returns per picture the words with at least `MIN_LENGTH` letters and digits and `MIN_CONFIDENCE`; empty without tesseract, None where tesseract failed.
    """
    words: list[list[OcrWord] | None] = []
    waiting: list[_Page] = []
    for grey in pages:
        if not ocr_available():
            words.append([])
            continue
        waiting.append(_as_page(grey))
        if sum(page.values.size for page in waiting) >= PIXELS_AT_ONCE:
            words += _read_page_batch(waiting)
            waiting = []
    return words + (_read_page_batch(waiting) if waiting else [])


@dataclass(frozen=True)
class _Page:
    """A picture prepared for tesseract, and its enlargement."""

    values: Grey
    scale: float


def _as_page(grey: Grey) -> _Page:
    from PIL import Image

    scale = max(1.0, WANTED_SIDE_PX / max(grey.shape))
    picture = Image.fromarray(grey).resize((round(grey.shape[1] * scale), round(grey.shape[0] * scale)), Image.Resampling.BICUBIC)
    ground = float(np.median(grey))
    values = np.asarray(picture)
    values = 255 - values if ground < 128 else values  # tesseract expects ink on paper
    return _Page(np.pad(values, MARGIN_PX, constant_values=round(255 - ground if ground < 128 else ground)), scale)


def _read_page_batch(pages: list[_Page]) -> list[list[OcrWord] | None]:
    """Read pages in one call; if that fails, one by one, so that an unreadable page does not affect the others."""
    rows = _rows_of(pages)
    if sum(row["level"] == PAGE_LEVEL for row in rows) != len(pages):
        return [None] if len(pages) == 1 else [words for page in pages for words in _read_page_batch([page])]
    by_page: list[list[OcrWord] | None] = []
    for number, page in enumerate(pages, start=1):
        words = (_as_word(row, page.scale) for row in rows if row["page_num"] == str(number))
        by_page.append([word for word in words if word is not None])
    return by_page


def _rows_of(pages: list[_Page]) -> list[dict[str, str]]:
    """Return the rows of tesseract's table; empty if it failed or timed out. No picture is written to disk."""
    from PIL import Image

    first, *others = (Image.fromarray(page.values) for page in pages)
    content = io.BytesIO()
    first.save(content, format="TIFF", save_all=True, append_images=others)
    try:
        done = subprocess.run(
            [PROGRAM, "stdin", "stdout", "--psm", "11", "-l", "eng", "tsv"],
            input=content.getvalue(),
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S + len(pages),
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},  # one thread per job, as the workflow declares
        )
    except subprocess.TimeoutExpired:
        return []
    table = done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
    return list(csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE))


def _as_word(row: dict[str, str], scale: float) -> OcrWord | None:
    letters = sum(character.isalnum() for character in row.get("text") or "")
    confidence = float(row.get("conf") or -1)
    if letters < MIN_LENGTH or confidence < MIN_CONFIDENCE:
        return None
    left, top, width, height = (float(row[name]) for name in ("left", "top", "width", "height"))
    left, top = left - MARGIN_PX, top - MARGIN_PX  # back to the original picture
    box = (int(top / scale), int((top + height) / scale) + 1, int(left / scale), int((left + width) / scale) + 1)
    return OcrWord((max(box[0], 0), box[1], max(box[2], 0), box[3]), confidence, letters)


def _read_planes(planes: Planes, indices: Sequence[int], span: float) -> dict[int, list[OcrWord]]:
    pages = read_pages(_as_grey(planes[index], span) for index in indices)
    return {index: _known(words) for index, words in zip(indices, pages, strict=True)}


def _known(words: list[OcrWord] | None) -> list[OcrWord]:
    """Return the words, or raise if tesseract failed: without a search, text would be missed."""
    if words is None:
        message = "tesseract failed in the search for burned-in text: check by hand whether it reads the picture, or take the picture out"
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
    """Return True if a line is already hidden."""
    top, bottom, left, right = box
    return done is not None and bool(done[index, top:bottom, left:right].mean() > COVERED)
