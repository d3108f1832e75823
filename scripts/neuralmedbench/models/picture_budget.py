"""Cut the pictures of a request to a model's budget: evenly spread, and never an answer option or a picture that the question needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuralmedbench.records.items import evenly_spaced
from neuralmedbench.records.requests import Request, RequestImage, RequestTurn


def within_budget(turns: Sequence[RequestTurn], max_images: int | None) -> tuple[RequestTurn, ...]:
    """Keep at most `max_images` pictures of a request, spread evenly; few-shot examples lose theirs before the item does.

    Parameters
    ----------
    turns : sequence of RequestTurn
        The user messages.
    max_images : int or None
        The model's picture budget; None keeps all.

    Returns
    -------
    tuple of RequestTurn
        The messages with the kept pictures: the item's options and the pictures that it needs together, then as many of its other
        pictures as the budget allows (with 2 or more always the first and the last), then pictures of the examples with the rest of the
        budget. `Response.images_sent` counts them. A question with too many pictures that cannot be cut is never asked
        (`too_many_pictures`).
    """
    images = [image for turn in turns for image in turn.images]
    if max_images is None or len(images) <= max_images:
        return tuple(turns)
    uncut = [place for place, image in enumerate(images) if _is_uncut(image)]
    others = [place for place, image in enumerate(images) if not image.example and not _is_uncut(image)]
    of_item = evenly_spaced(others, max(0, max_images - len(uncut)))
    examples = [place for place, image in enumerate(images) if image.example]
    of_examples = evenly_spaced(examples, max(0, max_images - len(uncut) - len(of_item)))
    kept = {*uncut, *of_item, *of_examples}
    shortened, before = [], 0
    for turn in turns:
        chosen = tuple(image for number, image in enumerate(turn.images, start=before) if number in kept)
        shortened.append(replace(turn, images=chosen))
        before += len(turn.images)
    return tuple(shortened)


def too_many_pictures(request: Request, max_images: int | None) -> str:
    """Return why a request cannot be sent to a model: a question without one of its options or needed pictures is another question.

    Parameters
    ----------
    request : Request
        The request.
    max_images : int or None
        The model's picture budget.

    Returns
    -------
    str
        The reason, with the item; empty if the request can be sent.
    """
    images = [image for turn in request.turns for image in turn.images if _is_uncut(image)]
    if max_images is None or len(images) <= max_images:
        return ""
    if all(image.option for image in images):
        return f"{request.item_id}: {len(images)} options are pictures, max_images is {max_images}"
    return f"{request.item_id}: the question needs all of its {len(images)} pictures, max_images is {max_images}"


def _is_uncut(image: RequestImage) -> bool:
    return (image.option or image.needed) and not image.example
