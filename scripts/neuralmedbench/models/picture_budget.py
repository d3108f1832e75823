"""How many pictures of a request a model gets: those that go are spread evenly, and options that are pictures always stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuralmedbench.records.requests import Request, RequestImage, RequestTurn


def within_budget(turns: Sequence[RequestTurn], max_images: int | None) -> tuple[RequestTurn, ...]:
    """Keep at most so many pictures of a request, spread evenly over all of them; answered examples lose theirs before the item does.

    Parameters
    ----------
    turns : sequence of RequestTurn
        The user messages.
    max_images : int or None
        The model's picture budget; None keeps all.

    Returns
    -------
    tuple of RequestTurn
        The messages with the pictures that are kept: the item's options, as many others of its own as the budget allows, first and last
        among them when it is 2 or more; what is then left of it is spread over the pictures of the examples. `Response.images_sent` counts
        them. A question whose options alone are too many is never asked (`too_many_options`).
    """
    images = [image for turn in turns for image in turn.images]
    if max_images is None or len(images) <= max_images:
        return tuple(turns)
    options = [place for place, image in enumerate(images) if _is_option(image)]
    own = [place for place, image in enumerate(images) if not image.example and not image.option]
    of_item = _spread(own, max(0, max_images - len(options)))
    examples = [place for place, image in enumerate(images) if image.example]
    of_examples = _spread(examples, max(0, max_images - len(options) - len(of_item)))
    kept = {*options, *of_item, *of_examples}
    shortened, before = [], 0
    for turn in turns:
        chosen = tuple(image for number, image in enumerate(turn.images, start=before) if number in kept)
        shortened.append(replace(turn, images=chosen))
        before += len(turn.images)
    return tuple(shortened)


def too_many_options(request: Request, max_images: int | None) -> str:
    """Say why a request cannot be asked of a model: without one of its options a question is another one, so none is ever cut.

    Parameters
    ----------
    request : Request
        What is asked.
    max_images : int or None
        The model's picture budget.

    Returns
    -------
    str
        The reason, with the item; empty when it can be asked.
    """
    options = sum(_is_option(image) for turn in request.turns for image in turn.images)
    if max_images is None or options <= max_images:
        return ""
    return f"{request.item_id}: {options} options are pictures, max_images is {max_images}"


def _is_option(image: RequestImage) -> bool:
    return image.option and not image.example


def _spread(places: Sequence[int], most: int) -> list[int]:
    """Choose at most so many places, evenly spread; of more than one the first and the last, of one the one in the middle."""
    if len(places) <= most:
        return list(places)
    if most < 2:
        return [places[len(places) // 2]] * most
    gap = (len(places) - 1) / (most - 1)
    return [places[round(number * gap)] for number in range(most)]
