"""The last check of the exports: no id of a case, patient or item of a private benchmark in any file, inside ZIP and Parquet too."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DeidentificationError
from neuralmedbench.exports.released import may_travel
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.recording.patient_traces import PARQUET, ZIP
from neuralmedbench.tables.study import Study

Text = tuple[str, str]
"""Where a text stands in a file, and the text."""

SHORT_NUMBER = re.compile(r"\d{1,3}")
"""An id that is a number below 1,000 stands in every table as a count, so it is searched for only as part of an item's id."""
WORD = re.compile(r"[a-z0-9]+")
MOST_NAMED = 5


def private_ids(study: Study) -> set[str]:
    """Return the ids that may not be in the exports: cases, patients and items of benchmarks whose answers may not travel."""
    found: set[str] = set()
    for benchmark in study.benchmarks.values():
        if not may_travel(benchmark):
            found |= {name for item in benchmark.items for name in (item.item_id, item.case_id, item.patient_id)}
            found |= {str(case[name]) for case in benchmark.flow for name in ("case_id", "patient_id")}
    return {name for name in found if name and not SHORT_NUMBER.fullmatch(name)}


class IdSearch:
    """Search for ids as whole words: `case1` is not in `case12`. The time does not grow with the number of ids."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._longest: dict[str, int] = defaultdict(int)
        """By the first word of an id: most words of the ids that begin with it."""
        self._ids = set[str]()
        for name in ids:
            words = [found.span() for found in WORD.finditer(name.casefold())]
            if words:
                known = name.casefold()[words[0][0] : words[-1][1]]
                self._ids.add(known)
                first = known[: words[0][1] - words[0][0]]
                self._longest[first] = max(self._longest[first], len(words))

    def finds(self, text: str) -> bool:
        """Return True if an id stands in a text, in whatever case."""
        folded = text.casefold()
        words = [found.span() for found in WORD.finditer(folded)]
        return any(
            folded[start:last] in self._ids
            for place, (start, end) in enumerate(words)
            if (first := folded[start:end]) in self._longest
            for _, last in words[place : place + self._longest[first]]
        )


def require_no_ids(folder: Path, ids: set[str]) -> None:
    """Refuse exports that contain an id.

    Parameters
    ----------
    folder : Path
        The exports.
    ids : set of str
        As `private_ids` returns them.

    Raises
    ------
    DeidentificationError
        With file and field of each, and never the id.
    """
    search = IdSearch(ids)
    paths = sorted(path for path in folder.rglob("*") if path.is_file()) if ids else []
    found: list[str] = []
    for number, path in enumerate(paths, start=1):
        name = path.relative_to(folder).as_posix()
        shown = f"file {number} of {len(paths)}" if search.finds(name) else name
        found += [f"{shown}, its name"] if shown != name else []
        places = (place for place, text in texts_in(path.name, path.read_bytes()) if search.finds(text))
        found += [f"{shown}, {'a field whose name holds one' if search.finds(place) else place}" for place in places]
    if found:
        more = f"; and {len(found) - MOST_NAMED} more places" if len(found) > MOST_NAMED else ""
        message = (
            f"nothing was exported: an id of a private case, patient or item stands in {'; '.join(found[:MOST_NAMED])}{more}. Take it out"
            " of the text that it comes from (a title, a card, a model's name, CITATION.cff), and export again"
        )
        raise DeidentificationError(message)


def texts_in(name: str, content: bytes) -> Iterator[Text]:
    """Yield every text in a file with its place: fields of JSON and YAML, cells of Parquet, lines of other text, members of a ZIP."""
    if content.startswith(ZIP):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for number, member in enumerate(archive.namelist(), start=1):
                yield f"name of member {number}", member
                yield from ((f"member {number}, {place}", text) for place, text in texts_in(member, archive.read(member)))
    elif content.startswith(PARQUET):
        yield from _cells(content)
    elif name.endswith(".json"):
        yield from _values(json.loads(content))
    elif name.endswith(".jsonl"):
        for number, line in enumerate(content.decode().splitlines(), start=1):
            yield from ((f"line {number}, {place}", text) for place, text in _values(json.loads(line)))
    elif name.endswith(".yaml"):
        yield from _values(load_yaml(content.decode()))
    else:
        yield from ((f"line {number}", line) for number, line in enumerate(content.decode(errors="replace").splitlines(), start=1))


def _values(value: Any, place: str = "") -> Iterator[Text]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield f"a key of {place or 'the file'}", str(key)
            yield from _values(entry, f"{place}.{key}" if place else f"field {key}")
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _values(entry, f"{place}[{number}]" if place else f"entry {number}")
    elif isinstance(value, str):
        yield place, value


def _cells(content: bytes) -> Iterator[Text]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(content))
    yield "its metadata", repr(table.schema.metadata)
    for name, cells in zip(table.schema.names, table.columns, strict=True):
        yield "a column's name", name
        yield from (
            (f"row {number}, column {name}", repr(cell))
            for number, cell in enumerate(cells.to_pylist())
            if isinstance(cell, str | list | dict)
        )
