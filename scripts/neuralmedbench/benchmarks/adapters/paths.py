"""Cells of a row: by column or dotted path, as text, and the choice of rows by their cells."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from neuralmedbench.benchmarks.adapters.rows import cell_text, plain_id
from neuralmedbench.config.mapping_sections import GroupMapping
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


def concrete_paths(row: Mapping[str, Any], path: str) -> list[tuple[str | int, ...]]:
    """Return the places of a record that a path names, each as keys and numbers of list entries; none if it is absent.

    Examples
    --------
    >>> concrete_paths({"notes": [{"text": "x"}, {"text": "y"}]}, "notes.text")
    [('notes', 0, 'text'), ('notes', 1, 'text')]
    """
    if path in row:
        return [(path,)]
    found: list[tuple[tuple[str | int, ...], Any]] = [((), row)]
    for key in path.split("."):
        found = [one for at, value in found for one in _steps(at, listed(value), key)]
    return [at for at, _ in found]


def _steps(at: tuple[str | int, ...], value: Any, key: str) -> list[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, Mapping):
        return [((*at, name), one) for name, one in value.items() if key in ("*", name)]
    if not isinstance(value, list | tuple):
        return []
    entries = [((*at, place), one) for place, one in enumerate(value)]
    if key == "*":
        return entries
    if re.fullmatch(r"-?\d{1,6}", key):
        return entries[int(key) :][:1] if -len(entries) <= int(key) < len(entries) else []
    return [((*place, key), one[key]) for place, one in entries if isinstance(one, Mapping) and key in one]


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


def with_paths(row: Mapping[str, Any], paths: Iterable[str]) -> Mapping[str, Any]:
    """Return a row with the cells at these paths as further columns, as far as it has them."""
    found = {path: at_path(row, path) for path in paths if path not in row}
    return {**row, **{path: cell for path, cell in found.items() if cell is not ABSENT}}


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


def is_blank(row: Mapping[str, Any], column: str) -> bool:
    """Return True if a row has nothing in a column, or does not have it."""
    value = at_path(row, column)
    return value is ABSENT or value in ([], (), {}) or (not isinstance(value, list | tuple | Mapping) and not cell_text(value))


def is_chosen(row: Mapping[str, Any], only: Mapping[str, Sequence[str]], skip: Mapping[str, Sequence[str]]) -> bool:
    """Return True for a row with one of the texts in every column of `only`, and none in the columns of `skip`; case does not matter."""
    return all(_has(row, column, texts) for column, texts in only.items()) and not any(
        _has(row, column, texts) for column, texts in skip.items()
    )


def _has(row: Mapping[str, Any], column: str, texts: Sequence[str]) -> bool:
    value = at_path(row, column)
    found = {text.casefold() for text in _texts(column, None if value is ABSENT else value)} or {""}
    return bool(found & {text.strip().casefold() for text in texts})


def group_of(mapping: GroupMapping | None, row: Mapping[str, Any]) -> str:
    """Return the group of a row, as an id; empty if it has none."""
    if mapping is None:
        return ""
    value = at_path(row, mapping.column)
    text = "" if value is ABSENT else part_of(mapping, value)
    return plain_id(text) if text else ""


def part_of(mapping: GroupMapping, value: Any) -> str:
    r"""Return the part of a cell that a pattern finds: its groups, joined by `-`, or all of it; the whole cell without a pattern.

    Examples
    --------
    >>> part_of(GroupMapping(column="c", pattern=r"([^_]+)_.*case_(\d+)"), "lung_ct_case_7_slice_2")
    'lung-7'
    """
    text = cell_text(value)
    if not mapping.pattern:
        return text
    found = re.search(mapping.pattern, text)
    return ("-".join(filter(None, found.groups())) or found[0]) if found else ""


def sample(groups: Sequence[str], limit: int) -> frozenset[str]:
    """Choose whole groups by the digest of their names, the same in every run, with at most `limit` rows (or one group)."""
    counts = Counter(groups)
    chosen: list[str] = []
    for group in sorted(counts, key=lambda group: hashlib.sha256(group.encode()).hexdigest()):
        if chosen and sum(counts[one] for one in chosen) + counts[group] > limit:
            break
        chosen.append(group)
    return frozenset(chosen)
