"""JSON schemas in the form that providers accept for strict answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEPT = ("type", "enum", "description", "anyOf")
"""Of everything else providers accept different parts (limits of numbers, lengths, patterns); our own parser holds all of it."""
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write a schema so that strict structured output accepts it.

    Parameters
    ----------
    schema : mapping
        JSON schema of an answer: objects, arrays, labels, words and numbers.

    Returns
    -------
    dict
        The same with a type in every place, no key that is not named, and every key required; one that could be left out may be null.

    Examples
    --------
    >>> strict_schema({"properties": {"side": {"enum": ["left", None]}}})["properties"]
    {'side': {'type': ['string', 'null'], 'enum': ['left', None]}}
    """
    if "properties" in schema:
        required = schema.get("required", ())
        properties = {
            name: strict_schema(rule) if name in required else _nullable(strict_schema(rule)) for name, rule in schema["properties"].items()
        }
        strict = {"type": schema.get("type", "object"), "properties": properties}
        return strict | {"required": list(properties), "additionalProperties": False}
    strict = {name: schema[name] for name in KEPT if name in schema}
    if "enum" in strict and "type" not in strict:
        types = list(dict.fromkeys(TYPES[type(label)] for label in strict["enum"]))
        strict = {"type": types[0] if len(types) == 1 else types, **strict}
    if "anyOf" in strict:
        strict["anyOf"] = [strict_schema(rule) for rule in strict["anyOf"]]
    if "items" in schema:
        strict["items"] = strict_schema(schema["items"])
    return strict


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return schema if {"type": "null"} in schema["anyOf"] else {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type", "string")]
    labels = {"enum": [*schema["enum"], None]} if "enum" in schema and None not in schema["enum"] else {}
    return {**schema, "type": kinds if "null" in kinds else [*kinds, "null"], **labels}
