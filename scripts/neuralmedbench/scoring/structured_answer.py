"""Parse a structured answer: one JSON object, repaired where the intention is clear, with labels in their canonical spelling."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.records.items import GoldFields, gold_fields
from neuralmedbench.records.scores import ParseStatus, Prediction

FIELDS = ("modality", "sequence", "plane", "class", "subtype")
ALIASES = Path(__file__).with_name("field_aliases.yaml")
MAX_CHARACTERS = 20_000
MAX_TRIES = 50
"""Most opening braces at which an object is looked for."""

REASONING = "reasoning"
"""Key for the steps before the answer, which some strategies ask for."""

MAX_LABEL = 80
"""A longer value cannot be a label and is cut."""


def parse_structured(text: str, schema: str) -> Prediction:
    """Parse a structured answer by its JSON schema (empty: the five fields and a confidence).

    `strict`: the whole text is one object that fits the schema; `repaired`: the object was extracted or repaired, or a value is not an exact
    label; `failed`: there is no object. A null or absent field is an abstention; an unknown label is kept and is wrong.
    """
    value, whole = find_answer_object(text)
    if value is None or not set(value) & set(FIELDS):
        return Prediction(parse_status=ParseStatus.FAILED)
    labels = {
        name: label(name, raw if isinstance(raw, str) or raw is None else str(raw)[:MAX_LABEL])
        for name, raw in value.items()
        if name in FIELDS
    }
    fields = {name: answered[:MAX_LABEL] for name, answered in labels.items() if answered is not None}
    confidence = value.get("confidence")
    number = (
        float(confidence) if isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1 else None
    )
    return Prediction(
        parse_status=ParseStatus.STRICT if whole and _fits(value, schema) else ParseStatus.REPAIRED,
        differential=(fields["class"],) if "class" in fields else (),
        fields=fields,
        confidence=number if "class" in fields else None,
        abstained="class" not in fields,
    )


def find_answer_object(text: str) -> tuple[dict[str, Any] | None, bool]:
    """Find the JSON object of an answer; the second value is True if it is the whole text. None if there is none. Never raises."""
    text = text[:MAX_CHARACTERS]
    value = read_json(text)
    if isinstance(value, dict):
        return value, True
    # otherwise the last object in the text that has a known field
    last: dict[str, Any] | None = None
    for match in list(re.finditer(r"\{", text))[:MAX_TRIES]:
        end = text.find("}", match.start())
        piece = text[match.start() : end + 1] if end > 0 else ""
        repaired = re.sub(r",\s*\}", "}", piece)  # a trailing comma
        value = read_json(piece) or read_json(repaired) or _literal(repaired)
        if isinstance(value, dict) and set(value) & set(FIELDS):
            last = value
    return last, False


def read_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Decode JSON; None if it is invalid, or if `pairs`, which builds an object from its (name, value) pairs, raises ValueError."""
    try:
        return valid_text(json.loads(text, object_pairs_hook=pairs))
    except (ValueError, RecursionError):
        return None


def valid_text(value: Any) -> Any:
    r"""Replace every half of a surrogate pair in a decoded value by a question mark, as in the text of an answer.

    The ledger cleans the text of an answer, but its JSON escapes are decoded only here; a cut-off emoji leaves half a pair.

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


def _literal(text: str) -> Any:
    """Decode an object in Python syntax (single quotes, None, True); None if it is invalid."""
    try:
        return valid_text(ast.literal_eval(re.sub(r"\bnull\b", "None", text)))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def label(field: str, value: str | None) -> str | None:
    """Return the label of one field in its canonical spelling; None for null and its synonyms, unknown labels in lower case.

    Examples
    --------
    >>> label("class", "Tumour"), label("subtype", "None"), label("sequence", "T1 C+")
    ('tumor', None, 'T1C+')
    """
    word = " ".join((value or "").replace("_", " ").lower().split())
    if word in _aliases()["null_words"]:
        return None
    spelled = _aliases()[field].get(word, word)
    return str(spelled)


@cache
def _aliases() -> dict[str, Any]:
    table: dict[str, Any] = load_yaml(ALIASES.read_text(encoding="utf-8"))
    return table


def _fits(value: dict[str, Any], schema: str) -> bool:
    if not schema:
        return set(value) == {*FIELDS, "confidence"}
    properties: dict[str, dict[str, Any]] = json.loads(schema).get("properties", {})
    if set(value) - {REASONING} != set(properties):
        return False
    allowed = all(value[name] in rule["enum"] for name, rule in properties.items() if "enum" in rule)
    confidence = value.get("confidence")
    number = confidence is None or (isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1)
    return allowed and number


def gold_labels(fields: GoldFields) -> dict[str, str]:
    """Return the reference labels of the fields that have one, by the names that answers use."""
    labels = {name: label(name, value) for name, value in gold_fields(fields).items()}
    return {name: value for name, value in labels.items() if value is not None}
