"""JSON schemas of answers: of checklists, with a key for the steps, and in the words of a prompt; whole, or turn by turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.arms import View
from neuralmedbench.prompts.parts import labelled_images, render_message
from neuralmedbench.records.items import Item, ItemImage, Turn
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.scores import LONGEST_DIFFERENTIAL
from neuralmedbench.records.value_rules import RULES, part_of_schema

WORDS: dict[str, object] = {"type": "string"}
CANDIDATE: dict[str, object] = {
    "type": "object",
    "properties": {"name": WORDS, "for": WORDS, "against": WORDS},
    "required": ["name", "for", "against"],
    "additionalProperties": False,
}
"""A hypothesis with the evidence for and against it."""
SECTION_RULES: dict[str, dict[str, object]] = {
    "LESION": CANDIDATE,
    "SIDE": {"enum": ["left", "right", "bilateral", "midline", "none"]},
    "PICTURE": {"type": ["integer", "null"]},
    "BOX": {"type": ["array", "null"], "items": {"type": "number"}},
    "DIFFERENTIAL": {"type": "array", "items": CANDIDATE, "minItems": 1, "maxItems": LONGEST_DIFFERENTIAL},
    "CONFIDENCE": {"type": "number", "minimum": 0, "maximum": 1},
}
"""Schemas of the checklist sections that are not free text."""


def checklist_schema(sections: Sequence[str]) -> str:
    """Return the JSON schema of a checklist: one key per section, in order, in lower case."""
    properties = {name.lower(): SECTION_RULES.get(name, WORDS) for name in sections}
    return json.dumps({"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False})


def stepwise_schema(schema: str) -> str:
    """Return the JSON schema with a first key for the steps that lead to the answer."""
    value = json.loads(schema)
    properties = {"reasoning": {"type": "string"}, **value["properties"]}
    return json.dumps({**value, "properties": properties, "required": list(properties)})


def fields_in_words(schema: str) -> dict[str, str]:
    """Describe in words the allowed values of each field of a JSON schema."""
    return {name: _allowed(rule) for name, rule in json.loads(schema)["properties"].items()}


def _allowed(schema: dict[str, object]) -> str:
    """Describe in words the allowed values of one field."""
    labels = schema.get("enum")
    if isinstance(labels, list):
        return " | ".join("null" if label is None else json.dumps(label) for label in labels)
    rule = RULES.get(str(schema.get("title")))
    if rule is not None:
        return f"{schema.get('description') or rule.asked} | null"
    return "your steps, in a few sentences" if schema.get("type") == "string" else "a number from 0 to 1 | null"


def stage_turns(view: View, templates: Templates, *, stepwise: bool) -> tuple[RequestTurn, ...]:
    """Render a structured item whose values are asked for one after another; every turn asks for its own fields.

    What comes next never depends on an answer: which stages count is decided when the answers are scored.
    """
    item, shown_later = view.item, list(view.item.images)

    def fields(turn: Turn, _: bool) -> dict[str, object]:
        schema = part_of_schema(item.answer_schema, turn.asks)
        return {"fields": fields_in_words(stepwise_schema(schema) if stepwise else schema)}

    return rounds(view, templates, "stage", lambda turn: [_next_image(item, shown_later, image) for image in turn.image_ids], fields)


def rounds(
    view: View,
    templates: Templates,
    name: str,
    pictures: Callable[[Turn], Sequence[ItemImage]],
    values: Callable[[Turn, bool], Mapping[str, object]],
) -> tuple[RequestTurn, ...]:
    """Render the turns of an item by the template `name`; `values` of a turn depend on whether it is the last one."""
    messages: list[RequestTurn] = []
    before = 0  # pictures are numbered through the turns
    turns = view.item.turns
    for number, turn in enumerate(turns, start=1):
        images = labelled_images(view.item, pictures(turn), before=before, name=view.label_name)
        before += len(images)
        message = render_message(
            templates,
            name,
            "round",
            images,
            view.layout,
            turn=number,
            turns=len(turns),
            reveal=turn.reveal,
            question=templates.question(turn.question),
            pictures=bool(images),
            **values(turn, number == len(turns)),
        )
        messages.append(message)
    return tuple(messages)


def _next_image(item: Item, left: list[ItemImage], image_id: str) -> ItemImage:
    """Take a picture out of those that are left: one that is shown again may have another label there."""
    place = next((place for place, image in enumerate(left) if image.image_id == image_id), None)
    return next(image for image in item.images if image.image_id == image_id) if place is None else left.pop(place)
