"""JSON schemas of answers: of checklists, with a key for the steps, and in the words of a prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence

from neuralmedbench.records.value_rules import RULES

MAX_CANDIDATES = 5

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
    "DIFFERENTIAL": {"type": "array", "items": CANDIDATE, "minItems": 1, "maxItems": MAX_CANDIDATES},
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
