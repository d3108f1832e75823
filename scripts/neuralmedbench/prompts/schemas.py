"""The JSON schema of an answer: with steps before it, and in words."""

from __future__ import annotations

import json


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
