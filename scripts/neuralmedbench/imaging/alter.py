"""Make altered copies of the pictures of items, and measure how far they are from the originals.

For arms that show them, and for input layouts: CT windows on the colours of one picture, and squares of one size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.config.arms import ArmVariant
from neuralmedbench.config.layouts import Layout
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.digests import bytes_with_digest, sha256_of, sha256_of_value
from neuralmedbench.files.packs import write_pack
from neuralmedbench.files.plain_pictures import open_picture, write_grey
from neuralmedbench.imaging.degradation import degradation_named, degrade, seed_of
from neuralmedbench.imaging.pictures import tile_boxes, to_grey
from neuralmedbench.imaging.side_letters import find_letters
from neuralmedbench.imaging.windows import CT_WINDOWS, VESSEL_WINDOW
from neuralmedbench.records.arm_changes import AlteredPicture, altered_key
from neuralmedbench.records.case import CT_SEQUENCES, Plane
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.items import Item, ItemImage, evidence_images, slice_of

Picture = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.float64]
WHITE = 255.0
BRAIN = "brain"
"""The window that the record of a picture does not name."""


def quality_numbers(original: Picture, picture: Picture) -> dict[str, float]:
    """Measure a picture against its original.

    Parameters
    ----------
    original, picture : ndarray of uint8, shape (rows, columns) or (rows, columns, 3)
        Colour is measured by the mean of its channels.

    Returns
    -------
    dict of str to float
        `psnr_db` (peak signal-to-noise ratio; absent if both are equal), `ssim` (structural similarity, 1 if both are equal), and without a
        reference `entropy_focus` and `entropy_focus_original`: 0 if one pixel has all light, 1 if all have the same; ghosts, blur and noise
        raise it.
    """
    first, second = (one.mean(axis=-1).round().astype(np.uint8) if one.ndim == 3 else one for one in (original, picture))
    ratio = psnr(first, second)
    return ({} if ratio is None else {"psnr_db": ratio}) | {
        "ssim": ssim(first, second),
        "entropy_focus": entropy_focus(second),
        "entropy_focus_original": entropy_focus(first),
    }


def psnr(original: Picture, picture: Picture) -> float | None:
    """Return the peak signal-to-noise ratio in dB, of white against the root mean square error; None if the pictures are equal."""
    error = float(np.mean((original.astype(np.float64) - picture) ** 2))
    return 10 * float(np.log10(WHITE**2 / error)) if error else None


def ssim(original: Picture, picture: Picture) -> float:
    """Return the structural similarity (Wang et al., IEEE Trans Image Process 2004; 13: 600-612), mean over windows inside the picture."""
    first, second = original.astype(np.float64), picture.astype(np.float64)
    mean_1, mean_2 = _smooth(first), _smooth(second)
    spread_1, spread_2 = _smooth(first**2) - mean_1**2, _smooth(second**2) - mean_2**2
    together = _smooth(first * second) - mean_1 * mean_2
    stable_1, stable_2 = (0.01 * WHITE) ** 2, (0.03 * WHITE) ** 2
    likeness = (2 * mean_1 * mean_2 + stable_1) * (2 * together + stable_2)
    return float(np.mean(likeness / ((mean_1**2 + mean_2**2 + stable_1) * (spread_1 + spread_2 + stable_2))))


def _smooth(picture: Numbers) -> Numbers:
    """Average with a Gaussian window of 11 pixels and deviation 1.5, only where it is inside the picture; a smaller picture is one window."""
    for _axis in range(2):
        reach = min(5, (len(picture) - 1) // 2)
        weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / 1.5) ** 2)
        inside = len(picture) - 2 * reach
        parts = [weight * picture[start : start + inside] for start, weight in enumerate(weights / weights.sum())]
        picture = np.sum(parts, axis=0).T
    return picture


def entropy_focus(picture: Picture) -> float:
    """Return the entropy focus criterion (Atkinson et al., IEEE Trans Med Imaging 1997; 16: 903-910), scaled as MRIQC does; 1 for a black picture."""
    light = picture[picture > 0].astype(np.float64)
    if not light.size or picture.size == 1:
        return 1.0
    part = light / np.sqrt((light**2).sum())
    return float(-(part * np.log(part)).sum() / (np.sqrt(picture.size) * np.log(np.sqrt(picture.size))))


Operator = Callable[[Picture, ItemImage, Mapping[str, str]], Picture | None]
"""Makes the altered picture from a picture, shape (rows, columns) or (rows, columns, 3), its record, and the parameters of the arm.

None: the operator does not apply to this picture, which is then shown as it is.
"""


def blank(picture: Picture, image: ItemImage, values: Mapping[str, str]) -> Picture:
    """Return a black picture of the same size."""
    return np.zeros_like(picture)


def degraded(picture: Picture, image: ItemImage, values: Mapping[str, str]) -> Picture | None:
    """Return a picture with the artefact and at the level of the arm; None where the scanner of this picture has no such artefact."""
    degradation = degradation_named(values["operator"])
    if not degradation.applies_to(image.sequence):
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
    operator = OPERATORS.get(arm.config.pictures)
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
        window=arm.layout.config.colours if arm.layout and len(images) > 1 else "",
        quality=quality_numbers(pictures[0], made[0]) if arm.config.pictures == "degraded" and made[0] is not None else {},
    )


def pictures_together(images: Iterable[ItemImage], layout: Layout | None) -> list[tuple[ItemImage, ...]]:
    """Group the pictures that a layout makes into one: the windows of a CT slice for red, green and blue; every other picture alone.

    Parameters
    ----------
    images : iterable of ItemImage
        Pictures of one case.
    layout : Layout or None
        The layout; None: every picture alone.

    Returns
    -------
    list of tuple of ItemImage
        In the order of the first picture of each. Other windows of a slice on colours are left out.

    Raises
    ------
    ConfigError
        If CT slices that this pipeline cut lack one of the windows.
    """
    images = list(images)
    windows = layout.config.windows if layout else None
    if windows is None or layout is None:
        return [(image,) for image in images]
    of_slice = defaultdict[object, dict[str, ItemImage]](dict)
    for image in images:
        if image.sequence in CT_SEQUENCES and image.position_mm is not None:  # of other pictures the window is not known
            of_slice[slice_of(image)][image.window or BRAIN] = image
    if lacking := sorted({name for found in of_slice.values() for name in windows if name not in found}):
        message = (
            f"layout {layout.name}: it shows CT windows on red, green and blue, and {', '.join(lacking)} is not cut; set"
            f" `slices: ct_windows: [{', '.join(sorted({*windows, *(name for found in of_slice.values() for name in found)}))}]` and run again"
        )
        raise ConfigError(message)
    groups: list[tuple[ItemImage, ...]] = []
    for image in images:
        found = of_slice.get(slice_of(image), {})
        if image not in found.values():
            groups.append((image,))
        elif image is found[windows[0]]:
            groups.append(tuple(found[name] for name in windows))
    return groups


def as_named(picture: Picture, image: ItemImage) -> Picture:
    """Return a picture in the window that its name means in a layout, within one grey value.

    CT with contrast agent is cut with a brain window twice as wide, while makers document one window for all CT.
    """
    if image.sequence != Kind.CE_CT or image.window:
        return picture
    low, high = VESSEL_WINDOW
    hu = low + picture.astype(np.float32) / np.float32(255) * np.float32(high - low)
    return to_grey(hu.astype(np.float32), CT_WINDOWS[BRAIN])


def compose(pictures: Sequence[Picture], layout: Layout) -> Picture:
    """Make the picture that a layout shows from one picture, or from those for red, green and blue.

    Parameters
    ----------
    pictures : sequence of ndarray of uint8, shape (rows, columns) or (rows, columns, 3)
        One picture, or three grey ones of one size.
    layout : Layout
        The layout.

    Returns
    -------
    ndarray of uint8, shape (rows, columns) or (rows, columns, 3)
        The picture.
    """
    whole = pictures[0] if len(pictures) == 1 else np.stack(pictures, axis=-1)
    return to_square(whole, layout.config.square_px) if layout.config.square_px else whole


def to_square(picture: Picture, side_px: int) -> Picture:
    """Pad a picture with black to a square, the picture in the middle, and scale it (bilinear; a larger one is averaged)."""
    from PIL import Image

    rows, columns = picture.shape[:2]
    side = max(rows, columns)
    top, left = (side - rows) // 2, (side - columns) // 2
    square = np.zeros((side, side, *picture.shape[2:]), dtype=np.uint8)
    square[top : top + rows, left : left + columns] = picture
    if side == side_px:
        return square
    return np.asarray(Image.fromarray(square).resize((side_px, side_px), Image.Resampling.BILINEAR))
