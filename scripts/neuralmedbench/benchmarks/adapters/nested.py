"""Objects of any depth as text: a line for every value below the readable names of its keys, without keys that are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from neuralmedbench.benchmarks.adapters.paths import listed
from neuralmedbench.benchmarks.adapters.rows import cell_text
from neuralmedbench.benchmarks.answer_leaks import LeakTerm, term_spans
from neuralmedbench.config.mapping_sections import TextMapping
from neuralmedbench.errors import DataError
from neuralmedbench.records.vocabulary import normal_form

MAX_DEPTH = 50
"""Deeper objects are refused: no person wrote them."""

CAMEL = re.compile(r"[a-z]{2,}(?:[A-Z][a-z]+)+")
"""Names such as `timeAtOnset`; `HbA1c` and `pH` are no such names."""


def object_text(entry: TextMapping, value: Any) -> str:
    r"""Write an object as text, in the order of the file; DataError if it holds bytes or is too deep.

    Empty values are left out, with keys that have no other. Keys lose their underscores; booleans are `yes` and `no`.

    Examples
    --------
    >>> tests = {"Chest_X-Ray": "Normal.", "Blood": {"WBC": 9, "CRP": None}, "Seen": ["Rash", {"Site": "arm"}], "Other": {}}
    >>> print(object_text(TextMapping(column="Tests", leave_out=("Blood.CRP",)), tests))
    Chest X-Ray: Normal.
    Blood:
      WBC: 9
    Seen:
      - Rash
      - Site: arm
    """
    return "\n".join(_lines(listed(value), entry, ()))


def readable(key: str) -> str:
    """Return the name of a key as words.

    Examples
    --------
    >>> readable("Chest_X-Ray"), readable("timeAtOnset"), readable("HbA1c")
    ('Chest X-Ray', 'time at onset', 'HbA1c')
    """
    if CAMEL.fullmatch(key):
        key = re.sub(r"(?=[A-Z])", " ", key).lower()
    return " ".join(key.replace("_", " ").split())


def object_parts(entry: TextMapping, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and the words of everything that is written: of each key, and of each value that is no object or list."""
    for path, one, keyed in _nodes(listed(value), ()):
        if not is_left_out(entry.leave_out, path) and _lines(one, entry, path):
            if keyed:
                yield ".".join(path), readable(path[-1])
            if not isinstance(one, Mapping | list | tuple):
                yield ".".join(path), _words(one)


def object_paths(value: Any) -> set[str]:
    """Return the paths of all keys of an object; entries of lists have the path of their list."""
    return {".".join(path) for path, _, keyed in _nodes(listed(value), ()) if keyed}


def is_left_out(leave_out: Sequence[str], path: Sequence[str]) -> bool:
    """Return True if `leave_out` has a key or one of those above it."""
    return any(_pattern(one).fullmatch(".".join(path[:end])) for one in leave_out for end in range(1, len(path) + 1))


def paths_with_answer(entry: TextMapping, value: Any, terms: Sequence[LeakTerm]) -> set[str]:
    """Return the paths where a written object has a term of the answer as whole words."""
    return {path for path, words in object_parts(entry, value) if term_spans(words, terms)}


def paths_of_copies(entry: TextMapping, value: Any, terms: Sequence[LeakTerm]) -> set[str]:
    """Return the paths where a written object has a term of the answer and nothing else."""
    names = {term.words for term in terms}
    return {path for path, words in object_parts(entry, value) if tuple(normal_form(words).split()) in names}


@cache
def _pattern(path: str) -> re.Pattern[str]:
    parts = ["(?:.+[.])?" if part == "**" else re.escape(part).replace(r"\*", "[^.]*") + "[.]" for part in path.split(".")]
    return re.compile("".join(parts).removesuffix("[.]"))


def _nodes(value: Any, path: tuple[str, ...], *, keyed: bool = False, depth: int = 0) -> Iterator[tuple[tuple[str, ...], Any, bool]]:
    """Yield the path and value of every key, and of every entry of a list, which has the path of the list and is not `keyed`."""
    yield path, value, keyed
    if depth > MAX_DEPTH:  # refused when it is written
        return
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _nodes(one, (*path, str(key)), keyed=True, depth=depth + 1)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _nodes(one, path, depth=depth + 1)


def _lines(value: Any, entry: TextMapping, path: tuple[str, ...], depth: int = 0) -> list[str]:
    if depth > MAX_DEPTH:
        message = f"the column {entry.column!r} has more than {MAX_DEPTH} levels of objects; leave out what is below {path[0]!r}"
        raise DataError(message)
    if isinstance(value, Mapping):
        lines = []
        for key, one in value.items():
            below = (*path, str(key))
            if not is_left_out(entry.leave_out, below):
                lines += _headed(readable(str(key)), one, _lines(one, entry, below, depth + 1))
        return lines
    if isinstance(value, list | tuple):
        blocks = [_lines(one, entry, path, depth + 1) for one in value]
        return [line for block in blocks if block for line in (f"- {block[0]}", *(f"  {line}" for line in block[1:]))]
    if isinstance(value, bytes):
        message = f"the column {entry.column!r}: {'.'.join(path)!r} holds bytes where text was expected; add it to `leave_out`"
        raise DataError(message)
    return [line.strip() for line in _words(value).splitlines() if line.strip()]


def _words(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else cell_text(value)


def _headed(name: str, value: Any, lines: Sequence[str]) -> list[str]:
    """Return lines below their heading, or one line of text behind it."""
    if not lines or not name:
        return list(lines)
    if len(lines) == 1 and not isinstance(value, Mapping | list | tuple):
        return [f"{name}: {lines[0]}"]
    return [f"{name}:", *(f"  {line}" for line in lines)]
