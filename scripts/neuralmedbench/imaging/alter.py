"""Make altered copies of the pictures of items, for the arms that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.config.arms import ArmVariant
from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import bytes_with_digest, sha256_of, sha256_of_value
from neuralmedbench.files.plain_pictures import open_picture, write_grey
from neuralmedbench.imaging.degradation import degradation_named, degrade, seed_of
from neuralmedbench.imaging.picture_quality import quality_numbers
from neuralmedbench.imaging.pictures import tile_boxes
from neuralmedbench.imaging.side_letters import find_letters
from neuralmedbench.records.altered import AlteredPicture, altered_key
from neuralmedbench.records.case import Plane
from neuralmedbench.records.items import Item, ItemImage, evidence_images

Picture = npt.NDArray[np.uint8]
Operator = Callable[[Picture, ItemImage, Mapping[str, str]], Picture | None]
"""Makes the altered picture from a picture, shape (rows, columns) or (rows, columns, 3), its record, and the parameters of the arm.

None: the operator does not apply to this picture, which is then shown as it is.
"""


def blank(picture: Picture, image: ItemImage, values: Mapping[str, str]) -> Picture:
    """Return a black picture of the same size."""
    return np.zeros_like(picture)


def degraded(picture: Picture, image: ItemImage, values: Mapping[str, str]) -> Picture | None:
    """Return a picture with the artefact and at the level of the arm; None where the scanner of this picture has no such artefact."""
    operator = degradation_named(values["operator"])
    if not operator.applies_to(image.sequence):
        return None
    seed = seed_of(image.sha256, values["operator"])
    return degrade(picture, values["operator"], int(values["level"]), seed=seed, tiles=max(1, len(image.tiles_mm)))


def mirrored(picture: Picture, image: ItemImage, values: Mapping[str, str]) -> Picture | None:
    """Return the picture of the mirrored patient, in the same display convention; letters at the edges and the order of tiles stay.

    None for a sagittal picture, which shows the same of the mirrored patient, and for one of unknown orientation.
    """
    if image.position_mm is None or image.plane not in (Plane.AXIAL, Plane.CORONAL):
        return None
    flipped = picture.copy()
    for box in tile_boxes(picture.shape[:2], max(1, len(image.tiles_mm))):
        tile = picture[box]
        flipped[box] = tile[:, ::-1]
        # R and L stand at the same two places of every picture
        for letter in find_letters(tile):
            flipped[box][letter] = tile[letter]
    return flipped


OPERATORS: dict[str, Operator] = {"blank": blank, "degraded": degraded, "mirrored": mirrored}
"""By the value of `pictures` in the file of an arm."""


def alter_pictures(items: Iterable[Item], arms: Sequence[ArmVariant], out: Path) -> list[AlteredPicture]:
    """Write the altered pictures of a benchmark.

    Parameters
    ----------
    items : iterable of Item
        The items; their answer options are never altered.
    arms : sequence of ArmVariant
        The benchmark's arms that alter pictures.
    out : Path
        Folder for the pictures; each case has a folder in it.

    Returns
    -------
    list of AlteredPicture
        One per case, arm and picture to which it applies, sorted by `altered_key`.

    Raises
    ------
    DataError
        If a picture is absent, or is not the one of the items.
    """
    pictures = {(item.case_id, image.sha256, image.volume_sha256): image for item in items for image in evidence_images(item)}
    rows = []
    for (case, sha256, volume_sha256), image in sorted(pictures.items(), key=lambda entry: entry[0]):
        content = bytes_with_digest(Path(image.path), sha256)
        if content is None:
            message = f"{image.path}: the picture is absent, or not the one of the items; run slices and items again"
            raise DataError(message)
        picture = np.asarray(open_picture(content))
        for arm in arms:
            altered = OPERATORS[arm.config.pictures](picture, image, arm.values)
            if altered is None:
                continue
            path = out / f"sub-{case}" / f"{sha256_of_value([arm.name, sha256, volume_sha256])[:24]}.png"
            write_grey(path, altered)
            rows.append(
                AlteredPicture(
                    case_id=case,
                    arm=arm.name,
                    sources=(sha256,),
                    volume_sha256=volume_sha256,
                    path=path.as_posix(),
                    sha256=sha256_of(path),
                    quality=quality_numbers(picture, altered) if arm.config.pictures == "degraded" else {},
                )
            )
    return sorted(rows, key=altered_key)
