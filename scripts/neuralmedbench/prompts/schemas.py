"""The JSON schema of an answer: of a checklist, with steps before it, and in words."""

from __future__ import annotations

import json
from collections.abc import Sequence

MAX_CANDIDATES = 5
WORDS: dict[str, object] = {"type": "string"}
CANDIDATE: dict[str, object] = {
    "type": "object",
    "properties": {"name": WORDS, "for": WORDS, "against": WORDS},
    "required": ["name", "for", "against"],
    "additionalProperties": False,
}
"""A hypothesis with what speaks for it and against it."""
RULES: dict[str, dict[str, object]] = {
    "LESION": CANDIDATE,
    "SIDE": {"enum": ["left", "right", "bilateral", "midline", "none"]},
    "DIFFERENTIAL": {"type": "array", "items": CANDIDATE, "minItems": 1, "maxItems": MAX_CANDIDATES},
    "CONFIDENCE": {"type": "number", "minimum": 0, "maximum": 1},
}
"""Sections of a checklist that are more than words."""


def checklist_schema(sections: Sequence[str]) -> str:
    """Give the JSON schema of a checklist: a key for each of its sections, in their order, by its name in small letters."""
    properties = {name.lower(): RULES.get(name, WORDS) for name in sections}
    return json.dumps({"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False})


def stepwise_schema(schema: str) -> str:
    """Give a JSON schema whose first key holds the steps that lead to the answer."""
    value = json.loads(schema)
    properties = {"reasoning": {"type": "string"}, **value["properties"]}
    return json.dumps({**value, "properties": properties, "required": list(properties)})


def fields_in_words(schema: str) -> dict[str, str]:
    """Say in words what each field of a JSON schema may hold."""
    return {name: _allowed(rule) for name, rule in json.loads(schema)["properties"].items()}


def _allowed(schema: dict[str, object]) -> str:
    """Say in words what a field of an answer may hold."""
    labels = schema.get("enum")
    if isinstance(labels, list):
        return " | ".join("null" if label is None else json.dumps(label) for label in labels)
    return "your steps, in a few sentences" if schema.get("type") == "string" else "a number from 0 to 1 | null"
