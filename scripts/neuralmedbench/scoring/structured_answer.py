"""Parse a structured answer: one JSON object, repaired where the intention is clear, with labels in their canonical spelling."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.records.items import GoldFields, gold_fields
from neuralmedbench.records.scores import ParseStatus, Prediction
from neuralmedbench.records.value_rules import RULES, fields_of, read_value, write_value
from neuralmedbench.scoring.sections import clean, read_sections

FIELDS = ("modality", "sequence", "plane", "class", "subtype")
ALIASES = Path(__file__).with_name("field_aliases.yaml")
MAX_CHARACTERS = 20_000
MAX_TRIES = 50
"""Most opening braces at which an object is looked for."""
REASONING = "reasoning"
"""Key for the steps before the answer, which some strategies ask for."""
MAX_LABEL = 80
"""A longer value cannot be a label and is cut."""
JSON_TYPES: dict[str, type | tuple[type, ...]] = {"number": (int, float), "integer": int, "string": str, "array": list}
"""Python types of the types of a JSON schema."""


def parse_structured(text: str, schema: str) -> Prediction:
    """Parse a structured answer by its JSON schema (empty: the five labels of NeuroVLM-Bench and a confidence).

    `strict`: the whole text is one object that fits the schema; `repaired`: the object was extracted or repaired, or a value is not an exact
    label; `failed`: there is no object. A null or absent field is an abstention; an unknown label is kept and is wrong.
    """
    if rules := fields_of(schema):
        return _parse_values(text, schema, rules)
    value, whole = find_answer_object(text)
    if value is None or not set(value) & set(FIELDS):
        return Prediction(parse_status=ParseStatus.FAILED)
    labels = {
        name: label(name, raw if isinstance(raw, str) or raw is None else str(raw)[:MAX_LABEL])
        for name, raw in value.items()
        if name in FIELDS
    }
    fields = {name: answered[:MAX_LABEL] for name, answered in labels.items() if answered is not None}
    return Prediction(
        parse_status=ParseStatus.STRICT if whole and _fits(value, schema) else ParseStatus.REPAIRED,
        differential=(fields["class"],) if "class" in fields else (),
        fields=fields,
        confidence=_confidence(value) if "class" in fields else None,
        abstained="class" not in fields,
    )


def _confidence(answer: dict[str, Any]) -> float | None:
    value = answer.get("confidence")
    return float(value) if is_share(value) else None


def is_share(value: object) -> TypeGuard[float]:
    """Return True if a value is a number from 0 to 1; booleans and NaN are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _parse_values(text: str, schema: str, rules: dict[str, str]) -> Prediction:
    """Parse an answer with values: each is read by the rule of its field, and written in one way.

    `failed`: no value can be read, and the answer does not abstain either. A value that cannot be read beside others is empty: its field is
    wrong. If one value is asked for, it may stand without an object, alone or after `ANSWER:`.
    """
    answer, whole = find_answer_object(text, rules)
    if answer is None or not set(answer) & set(rules):
        answer, whole = _bare_value(text, rules), False
    given = {name: text_of_value(answer[name]) for name in rules if answer.get(name) is not None}
    given = {name: words for name, words in given.items() if rules[name] == "words" or words.lower() not in _aliases()["null_words"]}
    read = {name: value for name, words in given.items() if (value := read_value(rules[name], words)) is not None}
    if not set(answer) & set(rules) or (given and not read):
        return Prediction(parse_status=ParseStatus.FAILED)
    fields = {name: write_value(rules[name], read[name]) if name in read else "" for name in given}
    decisive = {name: words for name, words in fields.items() if words and RULES[rules[name]].at_least is not None}
    stated = "; ".join(f"{name} {words}" if len(rules) > 1 else words for name, words in (decisive or fields).items())
    return Prediction(
        parse_status=ParseStatus.STRICT if whole and read.keys() == given.keys() and _fits(answer, schema) else ParseStatus.REPAIRED,
        differential=(stated,) if stated else (),
        fields=fields,
        confidence=_confidence(answer) if read else None,
        abstained=not read,
    )


def text_of_value(value: Any) -> str:
    """Return a decoded JSON value as the text that a rule reads."""
    return value if isinstance(value, str) else json.dumps(value)


def _bare_value(text: str, rules: dict[str, str]) -> dict[str, Any]:
    """Return the value of the only field of an answer that is no object: after `ANSWER:`, or a text of one line."""
    sections = read_sections(text, ("REASONING", "ANSWER", "CONFIDENCE"))
    lines = [line for line in text.splitlines() if line.strip()]
    bare = clean(sections.text("ANSWER")) or (lines[0].strip() if len(lines) == 1 and not sections.lines else "")
    return dict.fromkeys(rules, bare) if bare and len(rules) == 1 else {}


def find_answer_object(text: str, names: Collection[str] = FIELDS) -> tuple[dict[str, Any] | None, bool]:
    """Find the JSON object of an answer that has one of these keys; the second value is True if it is the whole text.

    None if there is none. Never raises.
    """
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
        if isinstance(value, dict) and set(value) & set(names):
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
    typed = all(
        value[name] is None or isinstance(value[name], JSON_TYPES[RULES[rule].json_type]) for name, rule in fields_of(schema).items()
    )
    confidence = value.get("confidence")
    return allowed and typed and (confidence is None or is_share(confidence))


def gold_labels(fields: GoldFields) -> dict[str, str]:
    """Return the reference labels of the fields that have one, by the names that answers use."""
    labels = {name: label(name, value) for name, value in gold_fields(fields).items()}
    return {name: value for name, value in labels.items() if value is not None}
