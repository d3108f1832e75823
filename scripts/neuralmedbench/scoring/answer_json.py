"""JSON that a model wrote: its escapes may hold what no file can, half of a surrogate pair."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def read_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Decode a text; None when it is no JSON, or `pairs`, which makes an object of its names and values, finds fault with it."""
    try:
        return valid_text(json.loads(text, object_pairs_hook=pairs))
    except (ValueError, RecursionError):
        return None


def valid_text(value: Any) -> Any:
    r"""Put a question mark for every half of a surrogate pair in a decoded value, as in the text of an answer.

    Escapes are decoded after an answer was made clean for the ledger, and a cut-off emoji leaves half of one.

    Examples
    --------
    >>> valid_text({"side": ["left \ud83d", 1, None]})
    {'side': ['left ?', 1, None]}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [valid_text(part) for part in value]
    if isinstance(value, dict):
        return {valid_text(name): valid_text(part) for name, part in value.items()}
    return value
