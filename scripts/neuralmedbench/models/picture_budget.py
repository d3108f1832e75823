"""Cut the pictures of a request to a model's budget: evenly spread, and never one of the pictures that are answer options."""

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
        The messages with the kept pictures: the item's options, then as many of its other pictures as the budget allows (with 2 or
        more always the first and the last), then pictures of the examples with the rest of the budget. `Response.images_sent` counts
        them. A question with too many options is never asked (`too_many_options`).
    """
    images = [image for turn in turns for image in turn.images]
    if max_images is None or len(images) <= max_images:
        return tuple(turns)
    options = [place for place, image in enumerate(images) if _is_option(image)]
    others = [place for place, image in enumerate(images) if not image.example and not image.option]
    of_item = evenly_spaced(others, max(0, max_images - len(options)))
    examples = [place for place, image in enumerate(images) if image.example]
    of_examples = evenly_spaced(examples, max(0, max_images - len(options) - len(of_item)))
    kept = {*options, *of_item, *of_examples}
    shortened, before = [], 0
    for turn in turns:
        chosen = tuple(image for number, image in enumerate(turn.images, start=before) if number in kept)
        shortened.append(replace(turn, images=chosen))
        before += len(turn.images)
    return tuple(shortened)


def too_many_options(request: Request, max_images: int | None) -> str:
    """Return why a request cannot be sent to a model; options are never cut, because a question without one is another question.

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
    options = sum(_is_option(image) for turn in request.turns for image in turn.images)
    if max_images is None or options <= max_images:
        return ""
    return f"{request.item_id}: {options} options are pictures, max_images is {max_images}"


def _is_option(image: RequestImage) -> bool:
    return image.option and not image.example
