"""Decode pictures and write them again as PNG with nothing but pixels, and the manifest of the pictures of cases without scans.

For a reviewer pictures are also small: 15 greys and one colour for outlines and letters.
"""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import digest_of_files
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.records.case import CaseRecord, PictureFate, PictureManifest, State
from neuralmedbench.runtime.atomic_write import atomic_file

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 64_000_000
MAX_BYTES = 50 * 10**6
"""A larger picture is refused: no provider accepts it, and no slice or figure is that large."""
TOO_LARGE = f"a file of more than {MAX_BYTES // 10**6} MB"
ROWS = 256
FORMATS = ("PNG", "JPEG", "BMP", "DIB", "GIF", "TIFF", "WEBP", "JPEG2000", "PPM")
"""Formats that are decoded; others are documents, or need an external program."""
MIME_AND_SUFFIX = {
    "PNG": ("image/png", "png"), "JPEG": ("image/jpeg", "jpg"), "MPO": ("image/jpeg", "jpg"), "BMP": ("image/bmp", "bmp"),
    "DIB": ("image/bmp", "bmp"), "GIF": ("image/gif", "gif"), "TIFF": ("image/tiff", "tif"), "WEBP": ("image/webp", "webp"),
    "JPEG2000": ("image/jp2", "jp2"), "PPM": ("image/x-portable-anymap", "img"),
}  # fmt: skip
"""MIME type and usual suffix by Pillow's name of a format."""
UNKNOWN_FORMAT = "", "img"
FEW_BYTES, PIXELS_OF_A_BYTE = 1_000, 8
"""A picture of one colour has fewer bytes: its head, and a byte for so many pixels."""
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
"""Letters, seven rows of five columns: without a font file, pixels are the same on all machines."""


def open_picture(content: bytes) -> Image:
    """Decode a picture.

    Parameters
    ----------
    content : bytes
        The file.

    Returns
    -------
    PIL.Image.Image
        Mode `L` (grey) or `RGB`, 8 bits, without metadata, palette, transparency and further frames.

    Raises
    ------
    DataError
        If it is not a picture, is damaged, has several frames (an animation, pages), or is larger than `MAX_PIXELS`.
    """
    from PIL import Image as Pillow
    from PIL import ImageOps

    try:
        with Pillow.open(io.BytesIO(content), formats=FORMATS) as picture:
            # the second picture in a telephone's file (MPO) is a stereo view of the same scene
            if getattr(picture, "n_frames", 1) > 1 and picture.format != "MPO":
                message = "several pictures in one file (an animation, or pages); store the one that is meant"
                raise DataError(message)
            if picture.width * picture.height > MAX_PIXELS:
                message = "the picture is too large"
                raise DataError(message)
            upright = ImageOps.exif_transpose(picture)
            return _plain(upright)
    except (DataError, MemoryError):
        raise
    except Exception:  # Pillow raises many classes for other files and damaged ones
        message = "not a picture, or a damaged one"
        raise DataError(message) from None


@dataclass(frozen=True)
class PictureHead:
    """Size of a picture in pixels, and the suffix of its format, from its first bytes."""

    width: int
    height: int
    suffix: str


def picture_head(content: bytes) -> PictureHead:
    """Read the head of a picture without decoding it.

    Parameters
    ----------
    content : bytes
        The file.

    Raises
    ------
    DataError
        If it is not a picture, or larger than `MAX_PIXELS`.
    """
    from PIL import Image as Pillow

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Pillow.DecompressionBombWarning)
            picture = Pillow.open(io.BytesIO(content), formats=FORMATS)
        with picture:
            head = PictureHead(picture.width, picture.height, MIME_AND_SUFFIX.get(picture.format or "", UNKNOWN_FORMAT)[1])
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning):
        raise DataError(_too_many_pixels()) from None
    except MemoryError:
        raise
    except Exception:  # as in `open_picture`
        message = "not a picture, or a damaged one"
        raise DataError(message) from None
    if head.width * head.height > MAX_PIXELS:
        raise DataError(_too_many_pixels())
    return head


def shows_nothing(content: bytes, head: PictureHead) -> bool:
    """Return True if all pixels of a picture are equal; only a file with few bytes for its pixels is decoded."""
    if len(content) > FEW_BYTES + head.width * head.height // PIXELS_OF_A_BYTE:
        return False
    try:
        return bool(open_picture(content).getcolors(maxcolors=1))
    except DataError:  # de-identification says what is wrong with it
        return False


def _too_many_pixels() -> str:
    return f"a picture of more than {MAX_PIXELS // 10**6} million pixels"


def mime_type(content: bytes) -> str:
    """Return the MIME type of a picture by its bytes; empty if they are not a picture."""
    from PIL import Image as Pillow

    try:
        with Pillow.open(io.BytesIO(content), formats=FORMATS) as picture:
            return MIME_AND_SUFFIX.get(picture.format or "", UNKNOWN_FORMAT)[0]
    except Exception:  # Pillow raises many classes for other files
        return ""


def _plain(picture: Image) -> Image:
    """Convert a picture to 8-bit grey or RGB."""
    from PIL import Image as Pillow

    if picture.mode.startswith(("I", "F")):
        return Pillow.fromarray(_scaled(np.asarray(picture)))
    if picture.mode in {"1", "L"}:
        return picture.convert("L")
    if "A" in picture.getbands() or "transparency" in picture.info:  # transparent pixels become black
        rgba = picture.convert("RGBA")
        black = Pillow.new("RGBA", rgba.size, (0, 0, 0, 255))
        picture = Pillow.alpha_composite(black, rgba)
    return _grey_if_grey(picture.convert("RGB"))


def _scaled(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Scale 16-bit or real greys, shape (rows, columns), to 8 bits, which Pillow would clip; some rows at a time, to need little memory."""
    parts = [values[row : row + ROWS] for row in range(0, len(values), ROWS)]
    low, high = min(float(_finite(part).min()) for part in parts), max(float(_finite(part).max()) for part in parts)
    factor = 255.0 / ((high - low) or 1.0)
    return np.concatenate([np.rint((_finite(part) - low) * factor).astype(np.uint8) for part in parts])


def _finite(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _grey_if_grey(picture: Image) -> Image:
    """Return a picture with three equal channels as grey, any other unchanged."""
    red, green, blue = picture.split()
    return red if red.tobytes() == green.tobytes() == blue.tobytes() else picture


def write_grey(path: Path, grey: npt.NDArray[np.uint8]) -> None:
    """Write grey values, shape (rows, columns), with `write_picture`."""
    from PIL import Image as Pillow

    write_picture(path, Pillow.fromarray(grey))


def write_picture(path: Path, picture: Image) -> None:
    """Write a PNG without text chunks; equal pixels give equal bytes with the same version of Pillow."""
    from PIL import Image as Pillow

    bare = Pillow.frombytes(picture.mode, picture.size, picture.tobytes())  # without `info`, which would be saved too
    with atomic_file(path) as partial:
        bare.save(partial, format="PNG", compress_level=6)


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


def picture_manifest(benchmark: str, stage: str, folder: Path, cases: Sequence[CaseRecord]) -> PictureManifest:
    """Gather the pictures of cases without scans.

    Parameters
    ----------
    benchmark, stage : str
        Names of the benchmark and the stage.
    folder : Path
        Folder of the manifest, with `sub-<case>/case.json` of each case.
    cases : sequence of CaseRecord
        The cases after this stage.

    Returns
    -------
    PictureManifest
        Their pictures, with paths relative to `folder`, the sums of their checks, and the digests of their records.
    """
    digests = {case.case_id: sha256_of(folder / f"sub-{case.case_id}" / "case.json") for case in cases}
    pictures = (picture for case in cases for picture in case.pictures)
    checks: Counter[str] = Counter()
    for case in cases:
        checks.update(case.checks)
    return PictureManifest(
        benchmark=benchmark,
        stage=stage,
        source_sha256=digest_of_files([case.source_sha256 for case in cases]),
        pictures=tuple(replace(one, path=f"sub-{one.case_id}/{one.path}") if one.path else one for one in pictures),
        checks={name: checks[name] for name in sorted(checks)},
        cases=digests,
    )


def count_pictures(pictures: Iterable[PictureFate]) -> dict[str, int]:
    """Count the pictures of a case for `CaseRecord.raw_files`: used ones, and the others by reason."""
    counts = Counter("used" if picture.state is State.OK else picture.reason for picture in pictures)
    return dict(sorted(counts.items()))
