"""Write everything that may be handed on of a run into one folder.

Before that, every byte is searched, inside ZIP and Parquet too: no id of a case, patient or item of a private benchmark may be in it.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from neuralmedbench.errors import DeidentificationError
from neuralmedbench.exports.archives import copy_workflow, description_of, write_crate, write_hub_files, write_zenodo
from neuralmedbench.exports.every_eval_ever import VERSION, write_every_eval_ever
from neuralmedbench.exports.inspect_log import write_inspect_logs
from neuralmedbench.exports.released import ReleasedRun, ReleasedScore, may_travel
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import write_records
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.recording.patient_traces import PARQUET, ZIP
from neuralmedbench.runtime.atomic_write import atomic_folder, write_text
from neuralmedbench.tables.study import Study

README = """# {title}

{description}

| file | for whom |
| --- | --- |
| `scores.parquet`, `codebook.json` | everybody who computes: every rate as a row, with n, interval, grader and tier; the codebook explains the columns |
| `every_eval_ever/` | the datastore of Every Eval Ever (schema {schema}): put its `data/` beside the `data/` there |
| `inspect/` | users of inspect_ai: `inspect view --log-dir inspect` |
| `hub/` | the Hugging Face hub: `eval.yaml` belongs into the repository of the data set, `<model>.yaml` into `.eval_results/` of the model's |
| `ro-crate-metadata.json` | archives and workflow registries: the whole folder is a Workflow Run RO-Crate |
| `zenodo.json` | Zenodo: the metadata of a deposit, without a licence, which you choose |
| `provenance.json`, `workflow/` | where the numbers come from: digests of inputs, models, prompts, packages; the workflow |
"""
Text = tuple[str, str]
"""Where a text stands in a file, and the text."""
SHORT_NUMBER = re.compile(r"\d{1,3}")
"""An id that is a number below 1,000 stands in every table as a count, so it is searched for only as part of an item's id."""
WORD = re.compile(r"[a-z0-9]+")
MOST_NAMED = 5


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
        if self._longest.keys().isdisjoint(WORD.findall(folded)):  # most texts: a quarter of the time
            return False
        words = [found.span() for found in WORD.finditer(folded)]
        return any(
            folded[start:last] in self._ids
            for place, (start, end) in enumerate(words)
            if (first := folded[start:end]) in self._longest
            for _, last in words[place : place + self._longest[first]]
        )


def write_exports(root: Path, folder: Path, run: ReleasedRun) -> None:
    """Write the exports of a run.

    Parameters
    ----------
    root : Path
        The repository root.
    folder : Path
        The exports; an old folder is replaced when the new one is complete.
    run : ReleasedRun
        What may be handed on.

    Raises
    ------
    DeidentificationError
        If a private id is in a file: then nothing is written.
    """
    with atomic_folder(folder) as new:
        write_json(new / "codebook.json", write_scores(new, run.scores))
        write_every_eval_ever(root, new / "every_eval_ever", run)
        write_inspect_logs(new / "inspect", run)
        write_hub_files(new / "hub", run)
        write_zenodo(new / "zenodo.json", run)
        copy_workflow(root, new, run)
        write_text(new / "README.md", README.format(title=run.title, description=description_of(run), schema=VERSION))
        write_crate(new, run)
        require_no_ids(new, private_ids(run.study))


def write_scores(folder: Path, scores: Sequence[ReleasedScore]) -> dict[str, Any]:
    """Write `scores.parquet` into a folder, and return its codebook."""
    names = [entry.name for entry in fields(ReleasedScore)]
    write_records(
        folder / "scores.parquet", ReleasedScore, scores, key=lambda row: [str(getattr(row, name)) for name in (*names[:4], *names[10:15])]
    )
    hints = get_type_hints(ReleasedScore)
    columns = [
        {
            "name": entry.name,
            "description": entry.metadata["about"],
            "type": next(kind.__name__ for kind in get_args(hints[entry.name]) if kind is not type(None)),
            "unit": entry.metadata["unit"],
            "levels": _levels(scores, entry.name),
            "empty": sum(getattr(row, entry.name) is None for row in scores),
        }
        for entry in fields(ReleasedScore)
    ]
    return {"file": "scores.parquet", "row": (ReleasedScore.__doc__ or "").strip(), "rows": len(scores), "columns": columns}


FREE_TEXT = frozenset({"note", "benchmark_title", "model_title", "model_id", "revision"})


def _levels(scores: Sequence[ReleasedScore], name: str) -> list[str]:
    """Return the values that a column of text takes; empty for numbers and free texts."""
    values = {getattr(row, name) for row in scores} - {None}
    return sorted(values) if name not in FREE_TEXT and values and all(isinstance(value, str) for value in values) else []


def private_ids(study: Study) -> set[str]:
    """Return the ids that may not be in the exports: cases, patients and items of benchmarks whose answers may not travel."""
    found: set[str] = set()
    for benchmark in study.benchmarks.values():
        if not may_travel(benchmark):
            found |= {name for item in benchmark.items for name in (item.item_id, item.case_id, item.patient_id)}
            found |= {str(case[name]) for case in benchmark.flow for name in ("case_id", "patient_id")}
    return {name for name in found if name and not SHORT_NUMBER.fullmatch(name)}


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
