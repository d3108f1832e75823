"""Further columns of a row: parts of its cells, and what other files or other rows of the data set say of it."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.faults import missing_text
from neuralmedbench.benchmarks.adapters.paths import ABSENT, at_path, listed, part_of
from neuralmedbench.benchmarks.adapters.rows import cell_text
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.mapping_sections import BesideMapping, GroupMapping
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError

NAMED = re.compile(r"\{([^{}]+)\}")
"""The name of a column in a path of `beside`."""
LONGEST_NUMBER = 64
"""A cell with more characters is a picture, not the number of a row that has it (`vlmeval/dataset/image_base.py`)."""


class FurtherColumns:
    """The further columns of a mapping; the last file of each name is kept, because rows in a row often share it."""

    def __init__(self, mapping: MappingConfig, source: SourceFolder) -> None:
        self._mapping, self._source = mapping, source
        self._read: dict[str, tuple[Path, Any]] = {}
        self._pictures: tuple[Path | None, dict[str, str]] = (None, {})
        self._shared = mapping.images.columns if mapping.images and mapping.images.same_as else ()
        self.any = bool(mapping.parts or mapping.beside or self._shared)

    def added(self, cells: Mapping[str, Any], table: Path) -> Mapping[str, Any]:
        """Return a row with its further columns; a path may name parts, and a part may be of another file."""
        if names := {column: name for column in self._shared if (name := _number(cells.get(column)))}:
            pictures = self._pictures_of(table)
            cells = {**cells, **{column: pictures.get(name, name) for column, name in names.items()}}
        cells = with_parts(self._mapping.parts, cells)
        for name, beside in self._mapping.beside.items():
            cells = {**cells, name: self._entry(name, beside, cells)}
        return with_parts(self._mapping.parts, cells)

    def _pictures_of(self, table: Path) -> dict[str, str]:
        """Return the pictures of the rows of a table to which other rows refer, by the number of the row."""
        if self._pictures[0] != table and self._mapping.images:
            wanted = {_number(row.get(column)) for row in self._rows(table) for column in self._shared} - {""}
            own = ((cell_text(row.get(self._mapping.images.same_as)), row) for row in self._rows(table))
            found = {name: row[column] for name, row in own if name in wanted for column in self._shared if not _number(row.get(column))}
            self._pictures = table, found
        return self._pictures[1]

    def _rows(self, table: Path) -> Iterator[dict[str, Any]]:
        return self._source.rows(table, under=self._mapping.under)

    def _entry(self, name: str, beside: BesideMapping, cells: Mapping[str, Any]) -> Any:
        """Return the object of a row; an empty one if there is no such file or entry, which then lacks every column."""
        where = f"`beside.{name}`"
        path = self._source.one(_filled(beside.file, cells, where, escaped=True), where)
        if path is None:
            return {}
        if self._read.get(name, (None,))[0] != path:
            self._read[name] = (path, self._source.json(path))
        value = self._read[name][1]
        if not beside.at:
            return value
        entry = at_path({"": value}, f".{_filled(beside.at, cells, where)}")
        return {} if entry is ABSENT else entry


def _number(value: Any) -> str:
    """Return the number of the row that has the picture; empty if the cell is a picture, or none."""
    return value.strip() if isinstance(value, str) and len(value.strip()) <= LONGEST_NUMBER else ""


def _filled(pattern: str, cells: Mapping[str, Any], where: str, *, escaped: bool = False) -> str:
    """Put cells into a path, each as one name; DataError, which does not quote a cell, if one is missing or is no name."""

    def cell(found: re.Match[str]) -> str:
        value = at_path(cells, found[1])
        if value is ABSENT:
            message = f"{where}: {missing_text(cells, found[1])}"
            raise DataError(message)
        text = cell_text(value)
        if not text or "/" in text or "\\" in text or text in {".", ".."}:
            message = f"{where}: the column {found[1]!r} is no name of a file or of an entry"
            raise DataError(message)
        return glob.escape(text) if escaped else text

    return NAMED.sub(cell, pattern)


def with_parts(parts: Mapping[str, GroupMapping], cells: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with those parts as further columns whose column it has."""
    found = {name: at_path(cells, part.column) for name, part in parts.items() if name not in cells}
    return {**cells, **{name: _part(parts[name], value) for name, value in found.items() if value is not ABSENT}}


def _part(part: GroupMapping, value: Any) -> Any:
    value = listed(value)
    return [part_of(part, one) for one in value] if isinstance(value, list | tuple) else part_of(part, value)
