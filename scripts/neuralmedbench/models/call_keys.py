"""The key of a call in the ledger. Changing this recipe means paying for everything again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.records.items import Runner
from neuralmedbench.records.requests import Request, order_of_parts

SENT_KEYWORDS = ("type", "enum", "description", "anyOf")
"""Providers differ in which other keywords they accept (numeric limits, lengths, patterns); our own parser checks those."""
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Rewrite a schema as strict structured output wants it: every property required (or nullable), no other property allowed.

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
    strict = {name: schema[name] for name in SENT_KEYWORDS if name in schema}
    if "enum" in strict and "type" not in strict:  # add the type of the labels
        types = list(dict.fromkeys(TYPES[type(label)] for label in strict["enum"]))
        strict = {"type": types[0] if len(types) == 1 else types, **strict}
    if "anyOf" in strict:
        strict["anyOf"] = [strict_schema(rule) for rule in strict["anyOf"]]
    if "items" in schema:
        strict["items"] = strict_schema(schema["items"])
    return strict


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    # a property that is not required may be null instead of absent
    if "anyOf" in schema:
        return schema if {"type": "null"} in schema["anyOf"] else {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type", "string")]
    labels = {"enum": [*schema["enum"], None]} if "enum" in schema and None not in schema["enum"] else {}
    return {**schema, "type": kinds if "null" in kinds else [*kinds, "null"], **labels}


KEY_VERSION = 1


def sent_schema(request: Request, model: ModelConfig) -> str:
    """Return the JSON schema sent with a request; empty if the model's yaml asks for none or the answer is not JSON."""
    return request.answer_schema if model.structured_output != "none" and request.runner == Runner.STRUCTURED else ""


def request_key(request: Request, model: ModelConfig, messages: Sequence[PromptMessage], repeat: int, *, code: str = "") -> str:
    """Return the `call_key` of a call of this request."""
    return call_key(model, messages, repeat, code=code, schema=_as_sent(sent_schema(request, model)))


@lru_cache(maxsize=256)
def _as_sent(schema: str) -> str:
    return json.dumps(strict_schema(json.loads(schema)), sort_keys=True) if schema else ""


def call_key(model: ModelConfig, messages: Sequence[PromptMessage], repeat: int, *, code: str = "", schema: str = "") -> str:
    """Digest everything on which an answer depends.

    Notes
    -----
    What was added later (`parameters`, `logprobs`, `max_picture_px`, a schema that is sent, text after the pictures) enters the key only where it is used, so
    older keys stay valid.
    The name under which `max_tokens` is sent is no part of it: it is another spelling of the same question.
    """
    later: dict[str, object] = {
        **({"parameters": model.parameters} if model.parameters else {}),
        **({"logprobs": True} if model.logprobs else {}),
        **({"max_picture_px": model.max_picture_px} if model.max_picture_px and any(entry.images for entry in messages) else {}),
        **({"structured_output": [model.structured_output, schema]} if schema else {}),
    }
    return sha256_of_value(
        {
            "key_version": KEY_VERSION,
            "model": model.id,
            "revision": model.revision,
            "code": code,
            "sampling": {
                "temperature": model.temperature,
                "top_p": model.top_p,
                "seed": model.seed,
                "max_tokens": model.max_tokens,
                **later,
            },
            "repeat": repeat,
            "messages": [
                {"role": entry.role, "text": entry.text, "images": [[image.label, image.sha256] for image in entry.images]}
                | order_of_parts(entry)
                for entry in messages
            ],
        }
    )
