"""JSON objects that stand in a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

MOST_BRACES = 100
"""Opening braces of a text at which an object is looked for."""


def json_value(text: str | bytes, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Decode JSON; None if it is invalid, or if `pairs`, which builds an object from its (name, value) pairs, raises ValueError."""
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None


def objects_in(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a text that are in no other one; `pairs` builds them as in `json.loads`, and may refuse one by ValueError."""
    decoder, place = json.JSONDecoder(object_pairs_hook=pairs), 0
    for _ in range(MOST_BRACES):
        if (place := text.find("{", place)) < 0:
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
            continue
        yield value
