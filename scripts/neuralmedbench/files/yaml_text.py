"""Read YAML with libyaml if it is installed: ten times faster than the reader in Python, with the same result."""

from __future__ import annotations

from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MOST_VALUES = 100_000
"""Values that a document with aliases may have when every alias is written out; nine aliases of nine aliases, nine levels deep, are 10^9."""


OPENINGS = ("[", "{", "- ", "? ")
SAFE_DEPTH = 5_000


class NestingError(yaml.YAMLError):
    """A document that nests too deeply, or is unbounded when its aliases are written out; the message says which."""


def load_yaml(text: str) -> Any:
    """Read one YAML document of plain values.

    Raises
    ------
    NestingError
        If it nests too deeply, or its aliases contain themselves or repeat one another without measure.
    yaml.YAMLError
        If it is not YAML.
    """
    # libyaml reads by recursion and would crash the process far beyond this depth; few files have so many openings at all
    if sum(map(text.count, OPENINGS)) > SAFE_DEPTH and _depth(text) > SAFE_DEPTH:
        message = "nested too deeply"
        raise NestingError(message)
    try:
        value = _value(text)
        if "&" in text and "*" in text and _written_out(value, {}) > MOST_VALUES:
            message = "its aliases repeat more than can be read"
            raise NestingError(message)
    except RecursionError:
        message = "nested too deeply"
        raise NestingError(message) from None
    return value


class _Locating(LOADER):  # type: ignore[misc, valid-type]
    """Names the line of a value that PyYAML recognises and cannot read: a day that no month has, a number of thousands of digits."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, LookupError, AttributeError):
            raise yaml.constructor.ConstructorError(None, None, "no such value", node.start_mark) from None


def _value(text: str) -> Any:
    try:
        return yaml.load(text, Loader=LOADER)
    except (ValueError, LookupError, AttributeError):
        return yaml.load(text, Loader=_Locating)  # slower, and only for the message


OPENED_ABOVE = {
    "while scanning a simple key": "expected `key: value`",
    "while scanning a quoted scalar": "its quotation mark is not closed",
}
"""Faults that libyaml notices only below the line that holds them, and what is wrong there."""
NOTICED = {
    "mapping values": "a second `: ` in a value needs quotation marks, or the line is indented too far",
    "cannot start any token": "a tab does not indent (use spaces), and a value that begins with a sign such as @ needs quotation marks",
    "no such value": "a date or number that does not exist; correct it, or put a text in quotation marks",
    "expected": "its indentation does not fit the lines above, or a quotation mark is closed too early",
}


def yaml_fault(error: Exception) -> tuple[int, str]:
    """Return the number of the faulty line of a text that is not YAML, and what is wrong in it; 0 and nothing where neither is known."""
    if isinstance(error, UnicodeDecodeError):
        return 0, "it is not in UTF-8; save it as UTF-8"
    noticed, opened = (getattr(error, name, None) for name in ("problem_mark", "context_mark"))
    context, problem = (str(getattr(error, name, None) or "") for name in ("context", "problem"))
    if opened and context in OPENED_ABOVE:
        return opened.line + 1, OPENED_ABOVE[context]
    if noticed is None:
        return 0, ""
    if opened and context.startswith("while parsing a flow"):
        return noticed.line + 1, f"the bracket that opens in line {opened.line + 1} is not closed before it"
    return noticed.line + 1, next((words for start, words in NOTICED.items() if start in problem), "")


def _depth(text: str) -> int:
    depth = deepest = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > SAFE_DEPTH:
            break
    return deepest


def _written_out(value: Any, known: dict[int, int | None]) -> int:
    """Count the values of a document with every alias written out, visiting each value once."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) in known:
        size = known[id(value)]
        if size is None:  # its parts are being counted
            message = "an alias contains itself"
            raise NestingError(message)
        return size
    known[id(value)] = None
    parts = value.values() if isinstance(value, dict) else value
    size = known[id(value)] = 1 + sum(_written_out(part, known) for part in parts)
    return size
