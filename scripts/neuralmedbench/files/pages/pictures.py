"""Pictures inside a page: PNG files as they are, or reduced."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

THUMBNAIL_PX = 128
WIDTH_AT, HEIGHT_AT = 16, 20
"""Offsets in the header of a PNG."""


@dataclass(frozen=True, kw_only=True)
class PagePicture:
    """A picture of a page: caption, PNG in base64 (empty if the file is absent), size in CSS pixels, and the link to the full picture."""

    caption: str
    png: str = ""
    width: int = 0
    height: int = 0
    link: str = ""


def picture_of(path: Path, caption: str, *, scale: float = 1.0) -> PagePicture:
    """Return the picture of a PNG file, which may be absent."""
    if not path.exists():
        return PagePicture(caption=caption)
    return _picture(path.read_bytes(), caption, scale=scale)


def reduced_picture(path: Path, caption: str, *, px: int = THUMBNAIL_PX, link: str = "") -> PagePicture:
    """Return a picture file at most `px` high and wide, in 16 grey levels."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("L")
        small.thumbnail((px, px), Image.Resampling.BOX)
        content = BytesIO()
        small.quantize(16).save(content, format="PNG", optimize=True)
    return _picture(content.getvalue(), caption, link=link)


def _picture(png: bytes, caption: str, *, scale: float = 1.0, link: str = "") -> PagePicture:
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (WIDTH_AT, HEIGHT_AT))
    return PagePicture(
        caption=caption,
        png=b64encode(png).decode("ascii"),
        width=round(width * scale),
        height=round(height * scale),
        link=link,
    )
