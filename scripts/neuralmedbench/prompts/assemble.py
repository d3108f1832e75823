"""From items to the very words and pictures that a model is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from neuralmedbench.config.models import BenchmarkConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.io.files import sha256_of_value
from neuralmedbench.prompts.arms import View, views
from neuralmedbench.prompts.templates import Templates
from neuralmedbench.records.case import Plane
from neuralmedbench.records.items import Arm, Disclosure, Family, Item, ItemImage, Runner, Turn
from neuralmedbench.records.requests import Request, RequestImage, RequestTurn

STRATEGIES = ("direct",)

TEMPLATE_OF_FAMILY = {
    Family.DIFFERENTIAL_DIAGNOSIS: "open_differential",
    Family.LESION_RECOGNITION: "lesion",
    Family.RATIONALE_GENERATION: "rationale",
}


def assemble(items: Sequence[Item], disclosures: Iterable[Disclosure], config: BenchmarkConfig, templates: Templates) -> list[Request]:
    """Render every item in every arm and strategy of a benchmark.

    Parameters
    ----------
    items : sequence of Item
        What is asked.
    disclosures : iterable of Disclosure
        What arms may show beside it.
    config : BenchmarkConfig
        Arms, strategies and number of samples.
    templates : Templates
        The prompt templates.

    Returns
    -------
    list of Request
        Sorted by item, arm and strategy.

    Raises
    ------
    ConfigError
        If a strategy or a template is wrong.
    """
    for strategy in config.strategies:
        if strategy not in STRATEGIES:
            message = f"unknown strategy {strategy!r}; known strategies: {', '.join(STRATEGIES)}"
            raise ConfigError(message)
    disclosures = list(disclosures)
    requests = [
        render(view, arm, strategy, config.samples, templates)
        for arm in config.arms
        for view in views(items, arm, disclosures)
        for strategy in config.strategies
    ]
    return sorted(requests, key=lambda request: (request.item_id, request.arm, request.strategy))


def render(view: View, arm: Arm, strategy: str, samples: int, templates: Templates) -> Request:
    """Render one item as one arm shows it; parameters and errors as in `assemble`."""
    item = view.item
    system = templates.render("system", pictures=bool(item.images))
    turns = _dialogue(view, templates) if item.runner is Runner.DIALOGUE else (_single(view, templates),)
    return Request(
        item_id=item.item_id,
        case_id=item.case_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        arm=arm,
        strategy=strategy,
        request_id=request_digest(system, turns, item.answer_schema),
        runner=item.runner,
        system=system,
        turns=turns,
        answer_schema=item.answer_schema,
        samples=samples,
    )


def request_digest(system: str, turns: tuple[RequestTurn, ...], answer_schema: str) -> str:
    """SHA-256 over everything that is sent, pictures by their digest; equal words and pictures have equal digests."""
    said = [{"text": turn.text, "images": [[image.label, image.sha256] for image in turn.images]} for turn in turns]
    return sha256_of_value({"system": system, "turns": said, "answer_schema": answer_schema})


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
        For example `Picture 3: FLAIR, axial, z = +12 mm`. Of a montage all positions; of CT the window, unless it is the brain's.
    """
    if policy == "none":
        return f"Picture {number}"
    parts = [image.sequence, image.plane, f"{image.window} window" if image.window else ""]
    if image.tiles_mm and image.plane in tuple(Plane):
        positions = " ".join(f"{round(position):+d}" for position in image.tiles_mm)
        parts.append(f"slices at {Plane(image.plane).axis} {positions} mm, left to right and then top to bottom")
    elif image.position_mm is not None and image.plane in tuple(Plane):
        parts.append(f"{Plane(image.plane).axis} = {round(image.position_mm):+d} mm")
    return f"Picture {number}: {', '.join(part for part in parts if part)}"


def _single(view: View, templates: Templates) -> RequestTurn:
    item = view.item
    shared = {"question": item.question, "notes": item.notes, "record": item.record, "pictures": bool(item.images)}
    if item.runner is Runner.STRUCTURED:
        fields = json.loads(item.answer_schema)["properties"]
        words = {name: _allowed(schema) for name, schema in fields.items()}
        text = templates.render("structured", **shared, disclosed=view.disclosed, fields=words)
    else:
        text = templates.render(_template_of(item), **shared, disclosed=view.disclosed)
    return RequestTurn(text=text, images=_pictures(item, item.images, 0))


def _template_of(item: Item) -> str:
    if item.runner is not Runner.OPEN or item.family not in TEMPLATE_OF_FAMILY:
        message = f"{item.item_id}: there is no prompt template for runner {item.runner} and family {item.family}"
        raise ConfigError(message)
    return TEMPLATE_OF_FAMILY[item.family]


def _allowed(schema: dict[str, object]) -> str:
    """Say in words what a field of an answer may hold."""
    labels = schema.get("enum")
    if isinstance(labels, list):
        return " | ".join("null" if label is None else json.dumps(label) for label in labels)
    return "a number from 0 to 1 | null"


def _dialogue(view: View, templates: Templates) -> tuple[RequestTurn, ...]:
    turns: list[RequestTurn] = []
    shown = 0
    for number, turn in enumerate(view.item.turns, start=1):
        last = number == len(view.item.turns)
        images = _pictures(view.item, _images_of(view.item, turn), shown)
        shown += len(images)
        text = templates.render(
            "dialogue",
            turn=number,
            turns=len(view.item.turns),
            reveal=turn.reveal,
            question=turn.question,
            pictures=bool(images),
            disclosed=view.disclosed if last else "",
        )
        turns.append(RequestTurn(text=text, images=images))
    return tuple(turns)


def _images_of(item: Item, turn: Turn) -> tuple[ItemImage, ...]:
    return tuple(image for image in item.images if image.image_id in turn.image_ids)


def _pictures(item: Item, images: tuple[ItemImage, ...], before: int) -> tuple[RequestImage, ...]:
    return tuple(
        RequestImage(path=image.path, sha256=image.sha256, label=picture_label(number, image, item.label_policy))
        for number, image in enumerate(images, start=before + 1)
    )
