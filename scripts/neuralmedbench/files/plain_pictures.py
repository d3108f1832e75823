"""Decode pictures and write them again as PNG with nothing but pixels."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.runtime.atomic_write import atomic_file

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 64_000_000
MAX_BYTES = 50 * 10**6
"""A larger picture is refused: no provider accepts it, and no slice or figure is that large."""
ROWS = 256
FORMATS = ("PNG", "JPEG", "BMP", "DIB", "GIF", "TIFF", "WEBP", "JPEG2000", "PPM")
"""Formats that are decoded; others are documents, or need an external program."""
MIME_TYPES = {
    "PNG": "image/png", "JPEG": "image/jpeg", "MPO": "image/jpeg", "BMP": "image/bmp", "DIB": "image/bmp", "GIF": "image/gif",
    "TIFF": "image/tiff", "WEBP": "image/webp", "JPEG2000": "image/jp2", "PPM": "image/x-portable-anymap",
}  # fmt: skip

SUFFIX_OF_FORMAT = {
    "PNG": "png",
    "JPEG": "jpg",
    "MPO": "jpg",
    "BMP": "bmp",
    "DIB": "bmp",
    "GIF": "gif",
    "TIFF": "tif",
    "WEBP": "webp",
    "JPEG2000": "jp2",
}


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
    from PIL import ImageOps, UnidentifiedImageError

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
    except (UnidentifiedImageError, OSError, EOFError, SyntaxError, ValueError, Pillow.DecompressionBombError):
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
    from PIL import UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Pillow.DecompressionBombWarning)
            picture = Pillow.open(io.BytesIO(content), formats=FORMATS)
        with picture:
            head = PictureHead(picture.width, picture.height, SUFFIX_OF_FORMAT.get(picture.format or "", "img"))
    except (UnidentifiedImageError, OSError, EOFError, SyntaxError, ValueError):
        message = "not a picture, or a damaged one"
        raise DataError(message) from None
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning):
        raise DataError(_too_many_pixels()) from None
    if head.width * head.height > MAX_PIXELS:
        raise DataError(_too_many_pixels())
    return head


def _too_many_pixels() -> str:
    return f"a picture of more than {MAX_PIXELS // 10**6} million pixels"


def mime_type(content: bytes) -> str:
    """Return the MIME type of a picture by its bytes; empty if they are not a picture."""
    from PIL import Image as Pillow

    try:
        with Pillow.open(io.BytesIO(content), formats=FORMATS) as picture:
            return MIME_TYPES.get(picture.format or "", "")
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
