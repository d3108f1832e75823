"""What a grader that asks a model is asked for: one task has its schema, its criteria and its reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from neuralmedbench.records.items import Gold, Item


@dataclass(frozen=True)
class Subject:
    """An answer as a grader has it before it, with what is known of its item.

    Attributes
    ----------
    text : str
        The answer.
    shown : str
        What a blind grader is shown of it (`candidate.blinded`), before it is escaped.
    """

    item: Item
    gold: Gold
    text: str
    shown: str


@dataclass(frozen=True)
class Word:
    """A grader's word on one criterion; without a value it has failed on this one alone."""

    criterion: str
    value: float | None
    explanation: str


@dataclass(frozen=True)
class GraderTask:
    """One task.

    Attributes
    ----------
    applies : callable
        Whether there is something to judge about an item.
    criteria : callable
        Criteria of an item with their points; what a grader that failed leaves missing.
    schema : callable
        JSON schema of the grader's answer.
    values : callable
        What its prompt template may use beside question, reference and candidate.
    read : callable
        From the grader's whole answer to its words; None when it is not in its form. It never raises. A criterion that cannot be told
        from this answer has no word.
    """

    applies: Callable[[Item, Gold], bool]
    criteria: Callable[[Item, Gold], Mapping[str, float]]
    schema: Callable[[Item, Gold], str]
    values: Callable[[Subject], Mapping[str, object]]
    read: Callable[[str, Subject], list[Word] | None]


def object_schema(properties: Mapping[str, object]) -> dict[str, Any]:
    """Give the schema of an object whose names are all required and the only ones."""
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def schema_text(properties: Mapping[str, object]) -> str:
    """Give such a schema as it is sent."""
    return json.dumps(object_schema(properties))
