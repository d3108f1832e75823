"""Cells of a row: by column or dotted path, as text, and as statements."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from neuralmedbench.benchmarks.adapters.rows import cell_text
from neuralmedbench.errors import DataError

ABSENT = object()
"""A path that a row does not have."""

MAX_LITERAL = 10_000
"""Longer texts are read as JSON, or as a plain list of texts: Python's own reader is not made for what strangers write."""
PLAIN_LIST, PLAIN_TEXT = re.compile(r"\[\s*'[^'\\]*'(?:\s*,\s*'[^'\\]*')*\s*\]"), re.compile(r"'([^'\\]*)'")

NUMBER = re.compile(r"^[ \t]*\d{1,3}[.)][ \t]+", re.MULTILINE)


def at_path(row: Mapping[str, Any], path: str) -> Any:
    """Return the cell at a path, or `ABSENT`: a column, else keys of objects and numbers of list entries (from 0) joined by full stops.

    `*` takes all entries; a key of a list of objects is taken from each of them.

    Examples
    --------
    >>> row = {"a.b": 1, "case": {"notes": [{"text": "x"}, {"text": "y"}]}}
    >>> at_path(row, "a.b"), at_path(row, "case.notes.text"), at_path(row, "case.notes.-1.text"), at_path(row, "case.none") is ABSENT
    (1, ['x', 'y'], 'y', True)
    """
    if path in row:
        return row[path]
    value: Any = row
    for key in path.split("."):
        value = _step(listed(value), key)
        if value is ABSENT:
            return ABSENT
    return value


def _step(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return list(value.values()) if key == "*" else value.get(key, ABSENT)
    if not isinstance(value, list | tuple):
        return ABSENT
    if key == "*":
        return list(value)
    if re.fullmatch(r"-?\d{1,6}", key):
        place = int(key)
        return value[place] if -len(value) <= place < len(value) else ABSENT
    found = [one[key] for one in value if isinstance(one, Mapping) and key in one]
    return found if len(found) == len(value) and value else ABSENT


def listed(value: Any) -> Any:
    """Return the list or object that a text writes out, as JSON or as Python does; any other value as it is.

    Examples
    --------
    >>> listed('["a"]'), listed("['it', None]"), listed("[Name] is 40.")
    (['a'], ['it', None], '[Name] is 40.')
    """
    if not isinstance(value, str) or (value.strip()[:1], value.strip()[-1:]) not in {("[", "]"), ("{", "}")}:
        return value
    for read in (json.loads, ast.literal_eval) if len(value) < MAX_LITERAL else (json.loads,):
        try:
            found = read(value.strip())
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        return found if isinstance(found, list | tuple | Mapping) else value
    return PLAIN_TEXT.findall(value) if PLAIN_LIST.fullmatch(value.strip()) else value


def joined_text(row: Mapping[str, Any], column: str, join: str) -> str:
    """Return the text of a column, with the entries of a list joined; DataError, which does not quote it, if it holds anything else."""
    return join.join(_texts(column, row.get(column)))


def _texts(column: str, value: Any) -> list[str]:
    found = listed(value)
    # numbers in brackets are words of the set, such as an interval or a citation
    numbers = isinstance(value, str) and isinstance(found, list | tuple) and any(isinstance(one, int | float) for one in found)
    value = value if numbers else found
    if isinstance(value, Mapping):
        first = ", ".join(sorted(map(str, value))[:4])
        message = (
            f"the column {column!r} holds objects (keys {first}); name one of their keys, as in `{column}.<key>`, or all with `{column}.*`"
        )
        raise DataError(message)
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(column, one)]
    return [text] if (text := cell_text(value)) else []


def statements(value: Any) -> tuple[str, ...]:
    r"""Read statements: a list, or a text with numbered ones, each up to the next number at the start of a line.

    Examples
    --------
    >>> statements("1. Fever: '39 C'\n2. Neck\nstiffness"), statements(["1. Fever", "2. Cough"])
    (("Fever: '39 C'", 'Neck stiffness'), ('Fever', 'Cough'))
    """
    value = listed(value)
    pieces = _texts("statements", value) if isinstance(value, list | tuple) else NUMBER.split(cell_text(value))
    return tuple(" ".join(NUMBER.sub("", piece, count=1).split()) for piece in pieces if piece.strip())


def lines_or_statements(value: Any) -> tuple[str, ...]:
    """Read facts: a list, numbered statements, or the lines of a text."""
    value = listed(value)
    numbered = statements(value)
    if len(numbered) > 1:
        return numbered
    return statements(value if isinstance(value, list | tuple) else cell_text(value).splitlines())
