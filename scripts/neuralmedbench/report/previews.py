"""Small copies of the pictures that models were sent, each on the page once."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import bytes_with_digest
from neuralmedbench.records.bundle import BundleImage, CaseBundle

PREVIEW_PX = 256
PREVIEW_QUALITY = 62


def add_previews(known: dict[str, str], bundles: Iterable[CaseBundle], root: Path) -> None:
    """Add the previews of all pictures of some items that are not known yet.

    Parameters
    ----------
    known : dict of str to str
        Previews by the digest of the picture that was sent, as `preview` gives them; benchmarks may share pictures.
    bundles : iterable of CaseBundle
        The items.
    root : Path
        Repository root: the pictures' paths are relative to it. A picture that is not on this machine has no preview.

    Raises
    ------
    DataError
        If a picture is not the one that was sent.
    """
    for bundle in bundles:
        for image in bundle.images:
            if image.sha256 not in known and (text := preview(image, root)):
                known[image.sha256] = text


def preview(image: BundleImage, root: Path) -> str:
    """Give a small WebP copy of a picture in base64; empty when the picture is not on this machine.

    Raises
    ------
    DataError
        If the file is not the picture that was sent.
    """
    from PIL import Image

    path = root / image.path
    if not path.is_file():
        return ""
    content = bytes_with_digest(path, image.sha256)
    if content is None:
        message = f"picture {image.sha256[:12]} of the case browser is not the one that was sent; run `cut_slices` and what follows again"
        raise DataError(message)
    small = Image.open(io.BytesIO(content)).convert("RGB")
    small.thumbnail((PREVIEW_PX, PREVIEW_PX), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=PREVIEW_QUALITY, method=4)
    return base64.b64encode(buffer.getvalue()).decode()
