"""Read a set whose rows are numbers of questions in other sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from neuralmedbench.benchmarks.adapters.mapping import entries_of_row, table_rows
from neuralmedbench.benchmarks.adapters.rows import QuestionEntry, column_text, plain_id
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.records.questions import Refusal

SPLIT = re.compile(r"\w[\w-]*")
"""Name of a split, which is part of the names of its files."""


def read_indexed(mapping: MappingConfig, others: Mapping[str, MappingConfig], source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read an index: the numbered rows of other sets, by their own mappings, from the subfolders of their names."""
    index = mapping.index
    assert index is not None
    for row in table_rows(mapping, source):
        published = column_text(row.cells, index.set)
        name = index.names.get(published, "")
        splits = row.cells[index.splits]
        if name and name not in others:
            message = f"{row.where}: no mapping is named {name}"
            raise DataError(message)
        if not isinstance(splits, Mapping) or not all(SPLIT.fullmatch(str(split)) for split in splits):
            message = f"{row.where}: the column {index.splits!r} is no object with names of splits"
            raise DataError(message)
        for split, numbered in splits.items():
            numbers = numbered.get(index.numbers) if isinstance(numbered, Mapping) else None
            wanted = [number for number in numbers if isinstance(number, int)] if isinstance(numbers, list) else []
            if name:
                yield from _numbered_rows(others[name], source, f"{name}/{split}", wanted, index.first)
            else:
                reason = f"`names` has no mapping for {published}"
                yield from (Refusal(where=f"{published}/{split}, row {number}", reason=reason) for number in wanted)


def _numbered_rows(
    other: MappingConfig, source: SourceFolder, place: str, wanted: Sequence[int], first: int
) -> Iterator[QuestionEntry | Refusal]:
    """Read rows of one split of another set, from all its tables in the order of their names; a row that is absent is refused."""
    name, _, split = place.partition("/")
    pattern = f"{name}/*{''.join(f'[{sign.lower()}{sign.upper()}]' if sign.isalpha() else sign for sign in split)}*"
    left = set(wanted)
    if any(path.is_file() for path in source.folder.glob(pattern)):
        # rows are numbered as published: nothing is left out before they are counted
        whole = other.model_copy(
            update={"files": (pattern,), "exclude": (), "skip_blank": (), "only_rows": {}, "skip_rows": {}, "one_file": False}
        )
        for number, row in enumerate(table_rows(whole, source), start=first):
            if number in left:
                left.remove(number)
                yield from (_renamed(entry, f"{name}-{split}-{number}", name) for entry in entries_of_row(whole, source, row))
    reason = f"this row of {place} is not in the subfolder {name}"
    for number in sorted(left):
        yield Refusal(where=f"{place}, row {number}", reason=reason, question_id=plain_id(f"{name}-{split}-{number}"))


def _renamed(entry: QuestionEntry | Refusal, name: str, source: str) -> QuestionEntry | Refusal:
    name = plain_id(name)
    if isinstance(entry, Refusal):
        return replace(entry, question_id=name)
    return replace(
        entry,
        question=replace(entry.question, question_id=name, case_id="", tags=(*entry.question.tags, f"source:{source}")),
        gold=replace(entry.gold, item_id=name) if entry.gold else None,
        disclosures=tuple(replace(shown, item_id=name) for shown in entry.disclosures),
    )
