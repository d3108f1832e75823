"""Reading a grader's answer: one JSON object and nothing beside it, or nothing at all."""

from __future__ import annotations

from typing import Any

from neuralmedbench.scoring.answer_json import read_json


def read_object(text: str) -> dict[str, Any] | None:
    """Read a text that is one JSON object.

    Parameters
    ----------
    text : str
        The whole answer.

    Returns
    -------
    dict or None
        None for anything else: words before or behind it, a fence, a name that stands twice (which of the two counts?), no object.
    """
    value = read_json(text, _once)
    return value if isinstance(value, dict) else None


def has_exactly(value: object, *names: str) -> bool:
    """Whether a value is an object with these names and no others."""
    return isinstance(value, dict) and set(value) == set(names)


def is_one_of(value: object, *allowed: int) -> bool:
    """Whether a value is one of some whole numbers; true and false are none."""
    return not isinstance(value, bool) and isinstance(value, int | float) and value in allowed


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        message = "a name stands twice"
        raise ValueError(message)
    return found
