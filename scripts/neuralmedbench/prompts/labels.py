"""The words that are shown before a picture."""

from __future__ import annotations

from neuralmedbench.records.case import Plane
from neuralmedbench.records.items import ItemImage


def picture_label(number: int, image: ItemImage, policy: str) -> str:
    """Words shown before a picture.

    Parameters
    ----------
    number : int
        Its place, from 1.
    image : ItemImage
        The picture; its position is in mm along its slice axis.
    policy : str
        `none` (its number only) or `full`.

    Returns
    -------
    str
        For example `Picture 3: FLAIR, axial, z = +12 mm`. Of a montage all positions; of CT the window, unless it is the brain's. The name
        by which the question speaks of it stands in the place of its number.
    """
    name = image.label or f"Picture {number}"
    if policy == "none":
        return name
    parts = [image.sequence if image.sequence != "unknown" else "", image.plane, f"{image.window} window" if image.window else ""]
    if image.tiles_mm and image.plane in tuple(Plane):
        positions = " ".join(f"{round(position):+d}" for position in image.tiles_mm)
        parts.append(f"slices at {Plane(image.plane).axis} {positions} mm, left to right and then top to bottom")
    elif image.position_mm is not None and image.plane in tuple(Plane):
        parts.append(f"{Plane(image.plane).axis} = {round(image.position_mm):+d} mm")
    told = ", ".join(part for part in parts if part)
    return f"{name}: {told}" if told else name
