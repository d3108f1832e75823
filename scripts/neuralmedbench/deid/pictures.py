"""Loose pictures without identity: metadata stripped again, and a search for text that is burned into the border."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuralmedbench.errors import DataError
from neuralmedbench.io.files import sha256_of
from neuralmedbench.io.plain_pictures import open_picture, write_picture
from neuralmedbench.records.case import PictureFate, PictureManifest, State

if TYPE_CHECKING:
    from PIL.Image import Image

BORDER = 0.12
"""Part of a picture's height and width in which scanners write."""
BRIGHT = 0.85
MIN_MARKS, MAX_MARKS = 0.004, 0.2
"""Letters fill this part of a border strip; less is noise, more is anatomy."""


def deidentify_pictures(manifest: PictureManifest, source: Path, source_sha256: str, out: Path) -> PictureManifest:
    """Write every picture anew and count those that may carry text.

    Parameters
    ----------
    manifest : PictureManifest
        The ingested pictures.
    source : Path
        Folder of the ingested `pictures.json`.
    source_sha256 : str
        Digest of that file.
    out : Path
        Folder for `pictures/`.

    Returns
    -------
    PictureManifest
        Quarantined pictures are passed on. Checks: `pictures_rewritten`, `pictures_with_bright_border` (for a person to look at).
    """
    checks: Counter[str] = Counter({"pictures_rewritten": 0, "pictures_with_bright_border": 0})
    fates = [_clean(fate, source, out, checks) if fate.state is State.OK else fate for fate in manifest.pictures]
    return replace(manifest, stage="deidentify", source_sha256=source_sha256, pictures=tuple(fates), checks={**checks, "leaks": 0})


def _clean(fate: PictureFate, source: Path, out: Path, checks: Counter[str]) -> PictureFate:
    try:
        picture = open_picture((source / fate.path).read_bytes())
    except DataError as error:
        return PictureFate(image_id=fate.image_id, path="", sha256="", state=State.QUARANTINED, reason=str(error))
    checks["pictures_rewritten"] += 1
    checks["pictures_with_bright_border"] += has_bright_border(picture)
    write_picture(out / fate.path, picture)
    return replace(fate, sha256=sha256_of(out / fate.path))


def has_bright_border(picture: Image) -> bool:
    """Whether a corner of the picture holds small bright marks on a dark ground, as burned-in text does.

    Parameters
    ----------
    picture : PIL.Image.Image
        Mode L or RGB.
    """
    grey = np.asarray(picture.convert("L"), dtype=np.float32)
    top = float(grey.max())
    rows, columns = (max(1, round(BORDER * side)) for side in grey.shape)
    corners = [part for strip in (grey[:rows], grey[-rows:]) for part in (strip[:, : 3 * columns], strip[:, -3 * columns :])]
    shares = [float((corner > BRIGHT * top).mean()) for corner in corners if top > 0 and float(np.median(corner)) < 0.1 * top]
    return any(MIN_MARKS < share < MAX_MARKS for share in shares)
