"""Rules that compare one value of an answer with its reference without a model: numbers, dates, intervals, indices, letters, boxes, words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from neuralmedbench.records.items import Gold, ReferenceValue
from neuralmedbench.records.value_reading import (
    MAX_TEXT,
    NOTHING,
    WORD,
    keywords_of,
    read_box,
    read_date,
    read_index,
    read_interval,
    read_label,
    read_letter,
    read_letters,
    read_number,
    read_weeks_days,
    read_words,
)


@dataclass(frozen=True)
class ValueRule:
    """How values of one kind are asked for, read and compared.

    Attributes
    ----------
    asked : str
        What the prompt asks for, in words.
    json_type : str
        Type of the value in the JSON schema of an answer.
    read : callable
        Text to value; None if it cannot be read.
    share : callable
        Agreement of a value that was read with its reference, 0 to 1.
    problem : callable
        Why a reference cannot be used; empty if it can.
    at_least : float or None
        Share from which a value is right; None if the rule only describes, unless the reference sets one.
    degrees : bool
        True if agreement has degrees, so that its mean is reported too.
    write : callable
        Value to text that `read` reads as the same value.
    """

    asked: str
    json_type: str
    read: Callable[[str], Any]
    share: Callable[[Any, ReferenceValue], float]
    problem: Callable[[ReferenceValue], str]
    at_least: float | None = 1.0
    degrees: bool = False
    write: Callable[[Any], str] = str


def read_value(rule: str, text: str) -> Any:
    """Read a value by a rule of `RULES`.

    Parameters
    ----------
    rule : str
        Its name.
    text : str
        Any text; lists are written as JSON.

    Returns
    -------
    object
        The value; None if the text does not state exactly one of this kind. Never raises.

    Examples
    --------
    >>> read_value("number", "8.1 mL/min/1.73 m2"), read_value("weeks_and_days", "(34 weeks, 3 days)"), read_value("number", "3 or 4")
    (8.1, (34, 3), None)
    """
    return RULES[rule].read(text[:MAX_TEXT].replace("−", "-").strip())


def write_value(rule: str, value: Any) -> str:
    """Write a value that was read, so that equal values have equal texts.

    Examples
    --------
    >>> write_value("number", 67.0), write_value("weeks_and_days", (14, 1)), write_value("date", read_value("date", "1/9/2007"))
    ('67', '(14 weeks, 1 days)', '01/09/2007')
    """
    return RULES[rule].write(value)


def example_of(reference: ReferenceValue) -> Any:
    """Return a reference as the JSON value that the requested form has for it; None for an empty one."""
    if reference.rule == "keywords":
        return ", ".join(keywords_of(reference.value))
    value = read_value(reference.rule, right_text(reference))
    if value is None:
        return None
    written = write_value(reference.rule, value)
    return written if RULES[reference.rule].json_type == "string" else json.loads(written)


def right_text(reference: ReferenceValue) -> str:
    """Return a text that states a reference; where one of several letters is right, the first of them."""
    letters = read_letters(reference.value) if reference.rule == "letter" else None
    return letters[0] if letters else reference.value


def share_of(value: Any, reference: ReferenceValue) -> float:
    """Return the agreement of a value that was read with its reference, 0 to 1 (1 or 0 for rules without degrees)."""
    return RULES[reference.rule].share(value, reference)


def threshold(reference: ReferenceValue) -> float | None:
    """Return the share from which a value is right; None if its rule only describes."""
    return RULES[reference.rule].at_least if reference.at_least is None else reference.at_least


def is_right(value: Any, reference: ReferenceValue) -> bool | None:
    """Compare a value that was read (None: unread) with its reference; None if the rule only describes."""
    wanted = threshold(reference)
    if wanted is None:
        return None
    return value is not None and share_of(value, reference) >= wanted


def problem_of(reference: ReferenceValue) -> str:
    """Return why a reference value cannot be used, in one clause that does not quote it; empty if it can.

    Examples
    --------
    >>> problem_of(ReferenceValue(field="answer", rule="number", value="7.4"))
    'answer: a number needs both limits (`low` and `high`, or `within`)'
    """
    if reference.rule not in RULES:
        return f"{reference.field}: no rule is called {reference.rule!r}; known are {', '.join(RULES)}"
    if reference.at_least is not None and not 0 < reference.at_least <= 1:
        return f"{reference.field}: `at_least` is a share above 0 and at most 1"
    reason = RULES[reference.rule].problem(reference)
    return f"{reference.field}: {reason}" if reason else ""


def problem_of_values(schema: str, gold: Gold | None) -> str:
    """Return why the reference values of a question cannot be used with the fields that it asks for; empty if they can.

    Parameters
    ----------
    schema : str
        `answer_schema` of the question.
    gold : Gold or None
        Its reference; None and one without values have no problem.

    Returns
    -------
    str
        The first problem, in one clause.
    """
    asked, values = fields_of(schema), gold.values if gold is not None else ()
    for value in values:
        if value.field not in asked:
            return f"{value.field}: the question asks for no such field; found {', '.join(asked) or 'none'}"
        if reason := problem_of(value):
            return reason
        if value.rule != asked[value.field]:
            return f"{value.field}: the reference has the rule {value.rule}, the question asks for {asked[value.field]}"
    if len({value.field for value in values}) < len(values):
        return "a field has two references"
    return ""


def fields_of(schema: str) -> dict[str, str]:
    """Return the rule of each field that a JSON schema of values asks for (its `title`); empty for a schema of labels.

    Parameters
    ----------
    schema : str
        `answer_schema` of an item.
    """
    return dict(_fields_of(schema)) if schema else {}


@cache
def _fields_of(schema: str) -> tuple[tuple[str, str], ...]:
    properties: dict[str, dict[str, Any]] = json.loads(schema).get("properties", {})
    return tuple((name, rule["title"]) for name, rule in properties.items() if rule.get("title") in RULES)


def part_of_schema(schema: str, fields: Sequence[str]) -> str:
    """Return the JSON schema of an answer that is asked for some fields only, and a confidence.

    Parameters
    ----------
    schema : str
        `answer_schema` of an item, as `values_schema` writes it.
    fields : sequence of str
        Names of these fields.

    Returns
    -------
    str
        JSON; the fields in the order of the schema.
    """
    value = json.loads(schema)
    properties = {name: rule for name, rule in value["properties"].items() if name in fields or name == "confidence"}
    return json.dumps({**value, "properties": properties, "required": list(properties)})


def values_schema(fields: Sequence[tuple[str, str, str]]) -> str:
    """Return the JSON schema of an answer with values.

    Parameters
    ----------
    fields : sequence of (str, str, str)
        Name, rule, and words of each field for the prompt (empty: those of the rule).

    Returns
    -------
    str
        JSON: nullable fields in the given order, and a confidence. `title` is the rule, `description` the words of the prompt.
    """
    properties: dict[str, object] = {}
    for name, rule, words in fields:
        kind = RULES[rule]
        more: dict[str, object] = {"items": {"type": "number"}} if kind.json_type == "array" else {}
        properties[name] = {"type": [kind.json_type, "null"], **more, "title": rule, "description": words or kind.asked}
    properties["confidence"] = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    return json.dumps({"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False})


def _within(value: float, reference: ReferenceValue) -> float:
    return float((reference.low or 0.0) <= value <= (reference.high or 0.0))


def _same(rule: str) -> Callable[[Any, ReferenceValue], float]:
    return lambda value, reference: float(value == _reference(rule, reference.value))


def _rounded(value: float, reference: ReferenceValue) -> float:
    # half to even, as Python rounds and the authors of MedCalc-Bench do
    return float(round(value) == _reference("whole_number", reference.value))


@cache
def _reference(rule: str, text: str) -> Any:
    return read_value(rule, text)


def overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """Return intersection over union of two intervals (low, high) or boxes (x1, y1, x2, y2).

    0 where they do not meet, or a box has its corners exchanged; 1 for two equal points.

    Examples
    --------
    >>> overlap((0, 10), (5, 15)), overlap((0, 0, 2, 2), (1, 0, 3, 2))
    (0.3333333333333333, 0.3333333333333333)
    """
    half = len(first) // 2
    common = size = other = 1.0
    for low, high in zip(range(half), range(half, 2 * half), strict=True):
        shared = min(first[high], second[high]) - max(first[low], second[low])
        if shared < 0:
            return 0.0
        common *= shared
        size *= first[high] - first[low]
        other *= second[high] - second[low]
    union = size + other - common
    return common / union if union > 0 else float(tuple(first) == tuple(second))


def _overlap_with(rule: str) -> Callable[[Sequence[float], ReferenceValue], float]:
    return lambda value, reference: overlap(_reference(rule, reference.value), value)


def _found(text: str, reference: ReferenceValue) -> float:
    """Return the share of the keywords that occur as whole words, in this order of words; a negation before them is not noticed."""
    words = f" {' '.join(WORD.findall(text.casefold()))} "
    keywords = [" ".join(WORD.findall(keyword.casefold())) for keyword in keywords_of(reference.value)]
    return sum(f" {keyword} " in words for keyword in keywords) / len(keywords)


def _common_words(text: str, reference: ReferenceValue) -> float:
    """Return the F1 of the different words (ROUGE-1); 1 if both say that there is nothing to write, 0 if one does."""
    nothing = [part.strip().lower() in NOTHING for part in (text, reference.value)]
    if any(nothing):
        return float(all(nothing))
    given, wanted = (set(part.replace(".", " ").split()) for part in (text, reference.value))
    common = len(given & wanted)
    return 2 * common / max(len(given) + len(wanted), 1)


def _needs_limits(reference: ReferenceValue) -> str:
    if reference.low is None or reference.high is None:
        return "a number needs both limits (`low` and `high`, or `within`)"
    value = read_number(reference.value)
    if value is None:
        return "the reference is not a number"
    return "" if reference.low <= value <= reference.high else "the reference is not between its limits"


def _readable(rule: str) -> Callable[[ReferenceValue], str]:
    return lambda reference: "" if read_value(rule, reference.value) is not None else f"the reference cannot be read as {RULES[rule].asked}"


def _is_whole(reference: ReferenceValue) -> str:
    value = read_number(reference.value)
    return "" if value is not None and value.is_integer() else "the reference is not a whole number"


def _has_area(reference: ReferenceValue) -> str:
    value = read_value("box", reference.value)
    if value is None:
        return "the reference is not a box of four numbers"
    return "" if value[0] < value[2] and value[1] < value[3] else "the reference box has no area; expected x1 < x2 and y1 < y2"


def _is_right_letter(value: tuple[str, ...], reference: ReferenceValue) -> float:
    return float(value[0] in _reference("letters", reference.value))


def _has_letters(reference: ReferenceValue) -> str:
    return "" if read_letters(reference.value) else "the reference has no letter of an option"


def _has_keywords(reference: ReferenceValue) -> str:
    try:
        words = keywords_of(reference.value)
    except (ValueError, TypeError):
        words = ()
    texts = all(isinstance(word, str) and WORD.search(word) for word in words)
    return "" if words and texts else "the reference has no list of keywords"


def _short(value: float) -> str:
    return f"{value:.10g}"


def _anything(reference: ReferenceValue) -> str:
    """Accept every reference: an empty one is a note without an error."""
    return ""


RULES: dict[str, ValueRule] = {
    "number": ValueRule("a number", "number", read_number, _within, _needs_limits, write=_short),
    "whole_number": ValueRule("a whole number", "number", read_number, _rounded, _is_whole, write=_short),
    "index": ValueRule("an index (a whole number)", "integer", read_index, _same("index"), _readable("index")),
    "date": ValueRule("a date (MM/DD/YYYY)", "string", read_date, _same("date"), _readable("date"), write=lambda day: f"{day:%m/%d/%Y}"),
    "weeks_and_days": ValueRule(
        'weeks and days, for example "(4 weeks, 3 days)"',
        "string",
        read_weeks_days,
        _same("weeks_and_days"),
        _readable("weeks_and_days"),
        write=lambda age: f"({age[0]} weeks, {age[1]} days)",
    ),
    "interval": ValueRule(
        'an interval, for example "3 to 5"',
        "string",
        read_interval,
        _overlap_with("interval"),
        _readable("interval"),
        degrees=True,
        write=lambda ends: " to ".join(map(_short, ends)),
    ),
    "letter": ValueRule(
        'the letter of one option, for example "B"', "string", read_letter, _is_right_letter, _has_letters, write=", ".join
    ),
    "letters": ValueRule(
        'the letters of all options that apply, for example "B, D"', "string", read_letters, _same("letters"), _has_letters, write=", ".join
    ),
    "label": ValueRule("a label", "string", read_label, _same("label"), _readable("label")),
    "box": ValueRule(
        "a box [x1, y1, x2, y2] in fractions (0 to 1) of width and height, from the upper left corner",
        "array",
        read_box,
        _overlap_with("box"),
        _has_area,
        0.5,
        degrees=True,
        write=lambda corners: f"[{', '.join(map(_short, corners))}]",
    ),
    "keywords": ValueRule("your answer in words", "string", read_words, _found, _has_keywords, None, degrees=True),
    "words": ValueRule("a sentence", "string", read_words, _common_words, _anything, None, degrees=True),
}
"""The rules by name. `keywords` and `words` see no sense and no negation: they decide nothing unless a set's own rule does (`at_least`)."""
