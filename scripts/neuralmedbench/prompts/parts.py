"""Render a message with its parts (case, pictures with their labels, question) in the order of an input layout."""

from __future__ import annotations

from collections.abc import Sequence

from neuralmedbench.config.layouts import CASE, COMMON_ORDER, PICTURES, QUESTION, Layout
from neuralmedbench.files.templates import Templates
from neuralmedbench.records.case import Plane
from neuralmedbench.records.items import NEEDED, OPTION, Item, ItemImage
from neuralmedbench.records.questions import LETTERS, PICTURE
from neuralmedbench.records.requests import RequestImage, RequestTurn


def labelled_images(item: Item, images: Sequence[ItemImage], *, before: int = 0, name: str = "") -> tuple[RequestImage, ...]:
    """Return pictures of an item as they are sent, each with its label.

    `before` pictures were shown earlier; `name` calls a picture by its `{number}`, empty: as `picture_label` does.
    """
    # an option has its letter alone under every policy: what it shows may be the question
    return tuple(
        RequestImage(
            path=image.path,
            sha256=image.sha256,
            volume_sha256=image.volume_sha256,
            label=_option_label(item, image) if image.role == OPTION else picture_label(number, image, item.label_policy, name or PICTURE),
            option=image.role == OPTION,
            needed=image.role in NEEDED,
        )
        for number, image in enumerate(images, start=before + 1)
    )


def _option_label(item: Item, image: ItemImage) -> str:
    """Return the label of an option: its letter, and its name in the question if that differs (`Option B (Figure 2)`)."""
    label = f"Option {LETTERS[item.options.index(image.label)]}"
    return label if image.label == label else f"{label} ({image.label})"


def picture_label(number: int, image: ItemImage, policy: str, called: str = PICTURE) -> str:
    """Return the label of a picture.

    Parameters
    ----------
    number : int
        Number of the picture, from 1.
    image : ItemImage
        The picture; its position is in mm along its slice axis.
    policy : str
        `none` (number only) or `full`.
    called : str
        Name of a picture, with `{number}`.

    Returns
    -------
    str
        For example `Picture 3: FLAIR, axial, z = +12 mm`; for a montage all positions; for CT the window, unless it is the brain window.
        A name that the question uses replaces the number.
    """
    name = image.label or called.replace("{number}", str(number))
    if policy == "none":
        return name
    parts = [image.sequence if image.sequence != "unknown" else "", image.plane, f"{image.window} window" if image.window else ""]
    # position in mm along the axis of the plane, for slices that were cut from a scan
    if image.tiles_mm and image.plane in tuple(Plane):
        positions = " ".join(f"{round(position):+d}" for position in image.tiles_mm)
        parts.append(f"slices at {Plane(image.plane).axis} {positions} mm, left to right and then top to bottom")
    elif image.position_mm is not None and image.plane in tuple(Plane):
        parts.append(f"{Plane(image.plane).axis} = {round(image.position_mm):+d} mm")
    details = ", ".join(part for part in parts if part)
    return f"{name}: {details}" if details else name


def render_message(
    templates: Templates, name: str, case: str, images: tuple[RequestImage, ...], layout: Layout | None, **values: object
) -> RequestTurn:
    """Render a message.

    Parameters
    ----------
    templates : Templates
        The prompt templates.
    name, case : str
        Template of the whole text, and that of the part about the case, which the first one includes unless `apart`.
    images : tuple of RequestImage
        Its pictures.
    layout : Layout or None
        The input layout; None: `common`.
    **values : object
        Values of the templates.

    Returns
    -------
    RequestTurn
        Without pictures, or with pictures last, the whole text; else the text before them and the text after them. The words are the same:
        the sentence that announces the pictures always stands directly before them, what an arm adds to the case (`given`, `disclosed`)
        belongs to the question, so that all questions of a case begin alike.
    """
    order = layout.config.order if layout else COMMON_ORDER
    labels_after = layout is not None and layout.config.label_after and bool(images)
    values |= {"labels_after": labels_after}
    if not images or order[-1] == PICTURES:
        return RequestTurn(text=templates.render(name, **values, apart=False), images=images, labels_after=labels_after)
    parts = {
        CASE: templates.render(case, **values),
        PICTURES: templates.render("pictures_follow", **values),
        QUESTION: templates.render(name, **values, apart=True),
    }
    place = order.index(PICTURES) + 1
    before, after = ("\n\n".join(parts[part] for part in some if parts[part]) for some in (order[:place], order[place:]))
    return RequestTurn(text=before, images=images, after=after, labels_after=labels_after)
