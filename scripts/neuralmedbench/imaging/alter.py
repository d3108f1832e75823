"""Make altered copies of the pictures of items, for the arms that show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.config.arms import ArmVariant
from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import bytes_with_digest, sha256_of, sha256_of_value
from neuralmedbench.files.packs import write_pack
from neuralmedbench.files.plain_pictures import open_picture, write_grey
from neuralmedbench.imaging.degradation import degradation_named, degrade, seed_of
from neuralmedbench.imaging.layout_pictures import as_named, compose, pictures_together
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
        Folder for the pictures; each case has a folder and a pack in it.

    Returns
    -------
    list of AlteredPicture
        One per case, arm and picture (or pictures that a layout shows as one) to which it applies, sorted by `altered_key`.

    Raises
    ------
    DataError
        If a picture is absent, or is not the one of the items.
    ConfigError
        If the layout of an arm shows CT windows on colours that were not cut.
    """
    cases: dict[str, dict[tuple[str, str], ItemImage]] = defaultdict(dict)
    for item in items:
        cases[item.case_id] |= {(image.sha256, image.volume_sha256): image for image in evidence_images(item)}
    rows = []
    for case, images in sorted(cases.items()):
        drawn = {image.sha256: _read(image) for image in images.values()}
        for arm in arms:
            for group in pictures_together(images.values(), arm.layout):
                if row := _altered([drawn[image.sha256] for image in group], group, arm, case, out):
                    rows.append(row)
        write_pack(out / f"sub-{case}")
    return sorted(rows, key=altered_key)


def _read(image: ItemImage) -> Picture:
    content = bytes_with_digest(Path(image.path), image.sha256)
    if content is None:
        message = f"{image.path}: the picture is absent, or not the one of the items; run slices and items again"
        raise DataError(message)
    return np.asarray(open_picture(content))


def _altered(pictures: Sequence[Picture], images: Sequence[ItemImage], arm: ArmVariant, case: str, out: Path) -> AlteredPicture | None:
    """Write the picture that an arm shows instead of one picture, or of those that its layout shows as one; None if it is the same."""
    operator, windows = OPERATORS.get(arm.config.pictures), arm.layout.config.windows if arm.layout else None
    made = [operator(picture, image, arm.values) if operator else None for picture, image in zip(pictures, images, strict=True)]
    new = made[0]
    if arm.layout and arm.layout.alters:
        shown = [picture if other is None else other for picture, other in zip(pictures, made, strict=True)]
        whole = compose(shown if len(images) == 1 else list(map(as_named, shown, images)), arm.layout)
        new = None if np.array_equal(whole, pictures[0]) else whole
    if new is None:
        return None
    sources, volume = tuple(image.sha256 for image in images), images[0].volume_sha256
    path = out / f"sub-{case}" / f"{sha256_of_value([arm.name, *sources, volume])[:24]}.png"
    write_grey(path, new)
    return AlteredPicture(
        case_id=case,
        arm=arm.name,
        sources=sources,
        volume_sha256=volume,
        path=path.as_posix(),
        sha256=sha256_of(path),
        window=windows.words if windows and len(images) > 1 else "",
        quality=quality_numbers(pictures[0], made[0]) if arm.config.pictures == "degraded" and made[0] is not None else {},
    )
