"""Loose pictures without identity: metadata stripped again, and text that is burned in hidden, or its picture dropped."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.find import BurnedIn
from neuralmedbench.deid.burned_in.hide import count_text, hide_text
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.io.files import sha256_of, whole_file
from neuralmedbench.io.plain_pictures import open_picture, write_picture
from neuralmedbench.records.case import PictureFate, PictureManifest, State

if TYPE_CHECKING:
    from PIL.Image import Image

PicturePolicy = Literal["hide", "drop", "keep"]

COLOURED = 48
"""Difference of the colour channels (of 255) above which a pixel of a grey scan was drawn by a program."""
MAX_COLOURED_PART = 0.1
"""A picture with more colour is no grey scan: a map, or a photograph."""


def deidentify_pictures(
    manifest: PictureManifest, source: Path, source_sha256: str, out: Path, *, burned_in: PicturePolicy = "hide"
) -> PictureManifest:
    """Write every picture anew, without text that is burned in.

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
    burned_in : str
        `hide` the text, or `drop` the picture: it is quarantined then, as one is whose text cannot be hidden. `keep` it in pictures that
        are public as they are: the letters of a published figure belong to the question.

    Returns
    -------
    PictureManifest
        Quarantined pictures are passed on. Checks: `pictures_rewritten`, and those of `hidden_text.count_text`.
    """
    checks: Counter[str] = Counter({"pictures_rewritten": 0})
    fates = [_clean(fate, source, out, checks, burned_in) if fate.state is State.OK else fate for fate in manifest.pictures]
    return replace(manifest, stage="deidentify", source_sha256=source_sha256, pictures=tuple(fates), checks={**checks, "leaks": 0})


def _clean(fate: PictureFate, source: Path, out: Path, checks: Counter[str], policy: PicturePolicy) -> PictureFate:
    if policy == "keep":
        with whole_file(out / fate.path) as partial:
            shutil.copyfile(source / fate.path, partial)  # ingest wrote pixels and nothing else
        checks["pictures_kept"] += 1
        return fate
    try:
        picture, found = without_text(open_picture((source / fate.path).read_bytes()))
        count_text(checks, found, policy, "pictures")
        if found and policy == "drop":
            message = "text is burned into the picture, and `deidentification: burned_in` says drop"
            raise DeidentificationError(message)
    except (DataError, DeidentificationError) as error:
        return PictureFate(image_id=fate.image_id, path="", sha256="", state=State.QUARANTINED, reason=str(error))
    checks["pictures_rewritten"] += 1
    write_picture(out / fate.path, picture)
    return replace(fate, sha256=sha256_of(out / fate.path))


def without_text(picture: Image) -> tuple[Image, BurnedIn]:
    """Hide the text of one picture.

    Parameters
    ----------
    picture : PIL.Image.Image
        Mode L or RGB.

    Returns
    -------
    picture : PIL.Image.Image
        The same picture when nothing was found.
    found : BurnedIn
        What is hidden; one plane (rows, columns, 1).

    Raises
    ------
    DeidentificationError
        If text is left after it was hidden.
    """
    from PIL import Image as Pillow

    pixels = np.asarray(picture)
    hidden = hide_text(_grey(pixels)[:, :, np.newaxis])
    if not hidden.found:
        return picture, hidden.found
    mask = hidden.found.mask[:, :, 0]
    clean = pixels.copy()
    clean[mask] = pixels[~mask].min(axis=0) if not mask.all() else 0
    return Pillow.fromarray(clean), hidden.found


def _grey(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Give the brightest channel, and what is drawn in colour as white: letters on a grey scan stand out in it."""
    if pixels.ndim == 2:
        return pixels
    brightest = pixels.max(axis=2)
    coloured = brightest.astype(np.int16) - pixels.min(axis=2) > COLOURED
    if coloured.mean() > MAX_COLOURED_PART:
        return brightest
    return np.where(coloured, np.uint8(255), brightest)
