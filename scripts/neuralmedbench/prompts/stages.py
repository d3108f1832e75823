"""Turns of a structured item whose values are asked for one after another."""

from __future__ import annotations

from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.answer_schemas import fields_in_words, stepwise_schema
from neuralmedbench.prompts.arms import View
from neuralmedbench.prompts.parts import labelled_images, render_message
from neuralmedbench.records.items import Item, ItemImage
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.value_rules import part_of_schema


def stage_turns(view: View, templates: Templates, *, stepwise: bool) -> tuple[RequestTurn, ...]:
    """Render a structured item whose values are asked for one after another; every turn asks for its own fields.

    What comes next never depends on an answer: which stages count is decided when the answers are scored.
    """
    item, name = view.item, view.layout.label_name if view.layout else ""
    left = list(item.images)
    turns: list[RequestTurn] = []
    before = 0  # pictures are numbered through the turns
    for number, turn in enumerate(item.turns, start=1):
        shown = [_next_image(item, left, image_id) for image_id in turn.image_ids]
        images = labelled_images(item, shown, before=before, name=name)
        before += len(images)
        schema = part_of_schema(item.answer_schema, turn.asks)
        message = render_message(
            templates,
            "stage",
            "round",
            images,
            view.layout,
            turn=number,
            turns=len(item.turns),
            reveal=turn.reveal,
            question=templates.question(turn.question),
            pictures=bool(images),
            fields=fields_in_words(stepwise_schema(schema) if stepwise else schema),
        )
        turns.append(message)
    return tuple(turns)


def _next_image(item: Item, left: list[ItemImage], image_id: str) -> ItemImage:
    """Take a picture out of those that are left: one that is shown again may have another label there."""
    place = next((place for place, image in enumerate(left) if image.image_id == image_id), None)
    return next(image for image in item.images if image.image_id == image_id) if place is None else left.pop(place)
