"""Choose the requests for a model (in its layout), for a human reader (each question once, with all of the case), and of a limited run.

The pictures of a request are cut to a model's budget: evenly spread, and never an answer option or a picture that the question needs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import Arm, Item, Strategy, evenly_spaced
from neuralmedbench.records.requests import Request, RequestImage, RequestTurn

LIMIT_SEED = 20_261_123
"""Seed of the choice of a limited run: the same items, or patients, in every run, for every model that can be asked them."""


def requests_for(model: ModelConfig, requests: Iterable[Request]) -> list[Request]:
    """Return the requests for a model or a human reader.

    Parameters
    ----------
    model : ModelConfig
        The model's yaml.
    requests : iterable of Request
        The requests of a benchmark.

    Returns
    -------
    list of Request
        All requests for a model, but those in the layout of another family. For a human reader one sample per question, with the arm full
        and the strategy of the reader's round: people remember their first answer, and after the full case an arm that shows less of it measures nothing.
    """
    if model.reader is None:
        return [row for row in requests if fits_layout(row, model)]
    return [replace(row, samples=1) for row in requests if (row.arm, row.strategy) == (Arm.FULL, model.reader_strategy)]


def fits_layout(request: Request, model: ModelConfig) -> bool:
    """Return True unless a request is in the layout of another family of models.

    Parameters
    ----------
    request : Request
        The request.
    model : ModelConfig
        The model's yaml, whose `layout` names its family's.
    """
    return request.layout in ("", model.layout)


def limited_requests(model: ModelConfig, requests: Iterable[Request], limit: int, items: Path) -> list[Request]:
    """Return the requests of a limited run, as `spread_requests` chooses them among those that a model can be asked.

    Parameters
    ----------
    model : ModelConfig
        The model's yaml; requests with more option pictures than it takes are left out.
    requests : iterable of Request
        The requests of a benchmark for the model.
    limit : int
        Most requests; 0 for all, unchanged.
    items : Path
        Table of the items, for their families.

    Returns
    -------
    list of Request
        In the order of choice.

    Raises
    ------
    DataError
        If the table of the items is absent or has another schema.
    """
    if not limit:
        return list(requests)
    families = {row.item_id: str(row.family) for row in read_records(items, Item)}
    return spread_requests([row for row in requests if not too_many_pictures(row, model.max_images)], limit, families)


def spread_requests(requests: Iterable[Request], limit: int, families: Mapping[str, str]) -> list[Request]:
    """Return few requests: one sample each, with the arm full and the first strategy, spread over patients and families.

    Every further request is of a patient with the fewest requests so far, then of a family with the fewest, then the next in a fixed
    random order; so a smaller limit asks a part of what a larger one asks. Their call keys are those of the whole run, which asks the rest.

    Parameters
    ----------
    requests : iterable of Request
        The requests of a benchmark.
    limit : int
        Most requests.
    families : mapping of str to str
        Task family of each item.

    Returns
    -------
    list of Request
        In the order of choice.
    """
    left = [row for row in requests if row.arm == Arm.FULL]
    first = next((strategy for strategy in Strategy if any(row.strategy == strategy for row in left)), None)
    left = sorted((row for row in left if row.strategy == first), key=lambda row: _random_place(row.item_id))
    patients, of_family = Counter[str](), Counter[str]()
    chosen: list[Request] = []
    while left and len(chosen) < limit:
        row = min(left, key=lambda row: (patients[row.patient_id], of_family[families[row.item_id]]))
        left.remove(row)
        patients[row.patient_id] += 1
        of_family[families[row.item_id]] += 1
        chosen.append(replace(row, samples=1))
    return chosen


def _random_place(name: str) -> str:
    return hashlib.sha256(f"{LIMIT_SEED} {name}".encode()).hexdigest()


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
