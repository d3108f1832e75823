"""What a mapping says and a record does not have: all faults of a mapping at once, each with its record, path and next step."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from neuralmedbench.benchmarks.adapters.case_text import (
    is_left_out,
    object_parts,
    object_paths,
    paths_of_copies,
    round_cells,
    shown_objects,
)
from neuralmedbench.benchmarks.adapters.paths import ABSENT, at_path, concrete_paths, joined_text, listed
from neuralmedbench.benchmarks.adapters.rows import cell_text, filled_texts
from neuralmedbench.benchmarks.answer_leaks import answer_terms
from neuralmedbench.config.mapping_sections import TextMapping, column_of
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Gold
from neuralmedbench.records.words import listing

SHOWN_KEYS = 12

COPY_SHARE, COPY_RECORDS = 0.5, 3
"""A key is a copy of the reference if it holds nothing but the answer in half of the records that have it, and in three."""


@dataclass(frozen=True)
class Fault:
    """One fault: what is counted as the same in other records, its words for this record, and the path of an answer that is shown."""

    same: tuple[str, str]
    text: str
    answer: str = ""


class Faults:
    """The faults of a mapping over all records: how many records have each, and the first."""

    def __init__(self, mapping: MappingConfig) -> None:
        self._mapping = mapping
        self._first: dict[tuple[str, str], tuple[str, Fault]] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._objects = _written_objects(mapping)
        self._unused = {(entry.column, path) for entry in self._objects for path in entry.leave_out}
        self._paths: dict[str, set[str]] = {}
        self._copies: dict[tuple[str, str], list[str]] = {}
        self._filled: Counter[tuple[str, str]] = Counter()
        self._records = self._faulty = 0

    def add(self, where: str, cells: Mapping[str, Any], faults: list[Fault]) -> None:
        """Count the faults of one record."""
        self._records += 1
        self._faulty += bool(faults)
        for fault in faults:
            self._first.setdefault(fault.same, (where, fault))
            self._counts[fault.same] = self._counts.get(fault.same, 0) + 1
        for entry in self._objects:
            value = at_path(cells, entry.column)
            if any(column == entry.column for column, _ in self._unused) and value is not ABSENT:
                paths = object_paths(value)
                self._paths.setdefault(entry.column, set()).update(paths)
                self._unused -= {(entry.column, one) for one in entry.leave_out if any(is_left_out((one,), p.split(".")) for p in paths)}

    def add_answer(self, where: str, cells: Mapping[str, Any], gold: Gold) -> None:
        """Count the keys of one record that are written, and those of them that hold nothing but the answer."""
        shown = shown_objects(self._mapping, cells) if self._objects else []
        terms = answer_terms(gold) if shown else []
        for entry, value in shown:
            self._filled.update({(entry.column, path) for path, _ in object_parts(entry, value)})
            for path in paths_of_copies(entry, value, terms):
                self._copies.setdefault((entry.column, path), []).append(where)

    def check(self) -> None:
        """Raise a DataError with all faults if the answer would be shown, a path of `leave_out` fits nothing, or no record is without one."""
        unused = [self._unused_text(column, path) for column, path in sorted(self._unused) if column in self._paths]
        unused += self._copy_texts()
        if not unused and self._faulty < self._records and not any(fault.answer for _, fault in self._first.values()):
            return
        lines = []
        for same, (where, fault) in self._first.items():
            others = self._counts[same] - 1
            lines.append(f"{where}: {fault.text}{f' (and {others} more of {self._records} records)' if others else ''}")
        if lines or unused:
            raise DataError(*lines, *unused)

    def _copy_texts(self) -> Iterator[str]:
        told = {fault.answer for _, fault in self._first.values()}
        for (column, path), records in sorted(self._copies.items()):
            number = self._filled[column, path]
            if f"{column}.{path}" not in told and len(records) >= max(COPY_RECORDS, COPY_SHARE * number):
                yield (
                    f"{records[0]}: the text {column!r} shows '{column}.{path}', which holds the answer and nothing else in {len(records)} of"
                    f" {number} records that have it; expected a text without it; add it to `leave_out: [{path}]`"
                )

    def _unused_text(self, column: str, path: str) -> str:
        known = sorted(self._paths[column])
        near = difflib.get_close_matches(path, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"its keys are {listing(list(_tops(known)), SHOWN_KEYS)}"
        return f"`leave_out` of {column!r}: no record has {path!r} below it; {hint}"


def faults_of(mapping: MappingConfig, cells: Mapping[str, Any], needed: list[str]) -> list[Fault]:
    """Return everything in which one question does not fit the mapping: missing columns, objects in place of text, an answer in a text."""
    found = [Fault(("missing", column), _missing(mapping, cells, column)) for column in needed if at_path(cells, column) is ABSENT]
    for use, column, read in _uses(mapping):
        value = at_path(cells, column) if column else ABSENT
        if value is ABSENT or _is_plain(value):
            continue
        try:
            read({column: value}, column)
        except DataError as error:
            said = str(error) if repr(column) in str(error) else f"the column {column!r}: {error}"
            if use == "text" and _depth(value) > 1:  # naming its keys one by one would be an error a level
                said = f"{said.partition(';')[0]}, which hold others; write it out as text with `text: [{{column: {column}}}]`"
            elif use == "text" and _depth(value):
                said += f"; or write it out as text with `text: [{{column: {column}}}]`"
            elif ";" not in said:
                said += f"; name one of its entries, as in `{column}.{'<key>' if _depth(value) else '0'}`"
            found.append(Fault((use, column), said))
    return [*found, *_shown_answers(mapping, cells)]


def _missing(mapping: MappingConfig, cells: Mapping[str, Any], column: str) -> str:
    name = column.partition(".")[0]
    if name in mapping.beside and not cells.get(name):
        return f"the column {column!r} is missing: no file or entry fits `beside.{name}`; add the file {mapping.beside[name].file}"
    return missing_text(cells, column)


def missing_text(cells: Mapping[str, Any], column: str) -> str:
    """Say that a path is missing, where it ends, and which keys are there."""
    keys, at, value = column.split("."), [], cells
    while keys and isinstance(value, Mapping) and keys[0] in value:
        at.append(keys.pop(0))
        value = listed(value[at[-1]])
    if not at:
        there = sorted(key for key in map(str, cells) if not key.startswith("_"))
        found, known = f"found {', '.join(there)}", there
    elif isinstance(value, Mapping):
        known = [".".join((*at, str(key))) for key in value]
        found = f"{'.'.join(at)!r} has {listing([str(key) for key in value], SHOWN_KEYS)}" if value else f"{'.'.join(at)!r} is empty"
    else:
        known, found = [], f"{'.'.join(at)!r} is {'a list without it' if isinstance(value, list | tuple) else 'no object'}"
    near = difflib.get_close_matches(column, known, n=1)
    within = [
        name
        for name, cell in cells.items()
        if isinstance(rows := listed(cell), list | tuple)
        and rows
        and isinstance(rows[0], Mapping)
        and at_path(rows[0], column) is not ABSENT
    ]
    hint = f"did you mean {near[0]!r}?" if near else "correct it, or name it in `optional` if records may lack it"
    if not at and within:
        hint = f"each entry of the list {within[0]!r} has it: if it is a question, write `each: {within[0]}`"
    return f"the column {column!r} is missing; {found}; {hint}"


def _written_objects(mapping: MappingConfig) -> list[TextMapping]:
    """Return the entries of the case that write objects as text."""
    texts = (*mapping.text, *(entry for one in mapping.rounds for entry in one.text))
    return [entry for entry in texts if isinstance(entry, TextMapping)]


def _uses(mapping: MappingConfig) -> Iterator[tuple[str, str, Callable[[Mapping[str, Any], str], object]]]:
    """Yield what a column is used for, the column, and how it is read."""

    def text(row: Mapping[str, Any], column: str) -> object:
        return joined_text(row, column, mapping.join)

    yield from (("text", entry, text) for entry in mapping.text if isinstance(entry, str))
    yield "question", mapping.question, text
    if mapping.answer and not mapping.options:
        yield "answer", mapping.answer.column, text
    groups = [group.column for group in (mapping.patient, mapping.pair) if group]
    for column in (*mapping.id, mapping.case, *groups, mapping.date, mapping.language_column):
        yield "name", column, lambda row, column: cell_text(row[column])
    yield from (("tag", column, lambda row, column: filled_texts(row[column])) for column in mapping.tags)


def _is_plain(value: Any) -> bool:
    """Return True for a cell that fits every use: a number, or a text that writes out no list or object."""
    return not value.lstrip().startswith(("[", "{")) if isinstance(value, str) else value is None or isinstance(value, int | float)


def _depth(value: Any) -> int:
    """Return the number of objects within each other."""
    value = listed(value)
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    return max(map(_depth, value), default=0) if isinstance(value, list | tuple) else 0


def _references(mapping: MappingConfig) -> Iterator[tuple[str, str]]:
    """Yield the key of the mapping and the column of everything by which an answer is scored.

    `findings` are not among them: they describe what is to be seen, and are checked not to name the answer.
    """
    if mapping.answer:
        yield from (("answer", mapping.answer.column), ("answer.aliases", mapping.answer.aliases))
    yield "options.right", mapping.options.right if mapping.options else ""
    yield "rubric", mapping.rubric.column if mapping.rubric else ""
    yield from (("reasons", mapping.reasons), ("must_not", mapping.must_not))
    values = [*mapping.fields.items(), *(entry for one in mapping.rounds for entry in one.fields.items())]
    for name, field in values:
        yield from ((f"fields.{name}", column) for column in (field.column, field.low, field.high))


def _shown_answers(mapping: MappingConfig, cells: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the references that stand within a text of the case, by their paths in this record."""
    shown: list[tuple[str, str | TextMapping, Mapping[str, Any], tuple[str | int, ...]]]
    shown = [("text", entry, cells, ()) for entry in mapping.text]
    shown += [("rounds.text", entry, one, at) for described, one, at in round_cells(mapping, cells) for entry in described.text]
    for key, column in _references(mapping):
        met = column and any(at or _may_meet(column_of(entry), column) for _, entry, _, at in shown)
        right = concrete_paths(cells, column) if met else []
        for use, entry, one, at in shown:
            if not at and not _may_meet(column_of(entry), column):
                continue
            texts = [(*at, *path) for path in concrete_paths(one, column_of(entry))]
            if answer := next((path for text in texts for path in right if _is_shown(entry, text, path)), None):
                name, inside = ".".join(map(str, answer)), [str(part) for part in answer[len(texts[0]) :] if isinstance(part, str)]
                leave = (
                    f"add it to `leave_out: [{'.'.join(inside)}]`" if isinstance(entry, TextMapping) and inside else "name other columns"
                )
                text = f"the {use} {column_of(entry)!r} shows {name!r}, which is the `{key}`; expected a text without it; {leave}"
                keys = ".".join(part for part in answer if isinstance(part, str))
                yield Fault((f"{use} {column_of(entry)}", key), text, answer=keys)


def _may_meet(one: str, other: str) -> bool:
    """Return False for paths that begin with different columns, so that most mappings are compared without looking at the record."""
    first, second = one.partition(".")[0], other.partition(".")[0]
    return first == second or "*" in (first, second)


def _is_shown(entry: str | TextMapping, text: tuple[str | int, ...], right: tuple[str | int, ...]) -> bool:
    if text[: len(right)] == right:
        return True
    below = [part for part in right[len(text) :] if isinstance(part, str)]
    return right[: len(text)] == text and not (isinstance(entry, TextMapping) and is_left_out(entry.leave_out, below))


def _tops(paths: list[str]) -> dict[str, None]:
    return dict.fromkeys(path.partition(".")[0] for path in paths)
