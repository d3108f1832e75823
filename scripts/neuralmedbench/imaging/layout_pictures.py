"""Pictures as an input layout shows them: CT windows on the colours of one picture, and squares of one size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from neuralmedbench.config.layouts import Layout
from neuralmedbench.errors import ConfigError
from neuralmedbench.imaging.pictures import to_grey
from neuralmedbench.imaging.windows import COMPUTED, CT_WINDOWS, VESSEL_WINDOW
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.items import ItemImage, slice_of

Picture = npt.NDArray[np.uint8]
BRAIN = "brain"
"""The window that the record of a picture does not name."""


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
        if image.sequence in COMPUTED and image.position_mm is not None:  # of other pictures the window is not known
            of_slice[slice_of(image)][image.window or BRAIN] = image
    if lacking := sorted({name for found in of_slice.values() for name in windows.names if name not in found}):
        message = (
            f"layout {layout.name}: it shows CT windows on red, green and blue, and {', '.join(lacking)} is not cut; set"
            f" `slices: ct_windows: [{', '.join(sorted({*windows.names, *(name for found in of_slice.values() for name in found)}))}]` and run again"
        )
        raise ConfigError(message)
    groups: list[tuple[ItemImage, ...]] = []
    for image in images:
        found = of_slice.get(slice_of(image), {})
        if image not in found.values():
            groups.append((image,))
        elif image is found[windows.red]:
            groups.append(tuple(found[name] for name in windows.names))
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
    return to_square(whole, layout.config.size.square_px) if layout.config.size else whole


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
