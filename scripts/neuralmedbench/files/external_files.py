"""Read files of other tools: rows of CSV, TSV and JSON-lines tables, and model answers from tables, Inspect and lmms-eval."""

from __future__ import annotations

import csv
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.records.words import LONGEST_ANSWER, quote

MAX_CELL = 256 * 2**20
"""Longest cell of a table, and largest sample of an archive: some contain pictures as base64."""


@contextmanager
def long_cells() -> Iterator[None]:
    """Let `csv` read cells of up to `MAX_CELL` bytes for a while."""
    before = csv.field_size_limit(MAX_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def delimited_rows(path: Path) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Read a CSV or TSV file row by row.

    Parameters
    ----------
    path : Path
        The file; `.tsv` is separated by tabs, any other by commas.

    Yields
    ------
    tuple of int and dict of str to (str or None)
        The last line of the row, and its cells by column; None for missing cells of a short row.

    Raises
    ------
    DataError
        If it is not a UTF-8 table, a column name is repeated, or a row has more cells than columns.
    """
    try:
        with long_cells(), path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            if len(reader.fieldnames or ()) == 1 and reader.fieldnames and ";" in reader.fieldnames[0]:
                message = f"{path.name}: the cells are separated by semicolons; expected commas (or tabs in a .tsv): save the table as CSV with commas"
                raise DataError(message)
            if double := [name for name, number in Counter(reader.fieldnames or ()).items() if number > 1]:
                message = f"{path.name}: the column {double[0]!r} is repeated"
                raise DataError(message)
            for row in reader:
                if None in row:
                    message = f"{path.name}: a row has more cells than the first line has names (line {reader.line_num})"
                    raise DataError(message)
                yield reader.line_num, row
    except (UnicodeDecodeError, csv.Error):
        message = f"{path.name}: not a table in UTF-8, or a cell of more than {MAX_CELL // 2**20} MiB"
        raise DataError(message) from None


def json_line_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read lines of JSON objects.

    Parameters
    ----------
    path : Path
        The file; empty lines are skipped.

    Yields
    ------
    tuple of int and dict of str to object
        Number of the line, and its object.

    Raises
    ------
    DataError
        If the file is not UTF-8 or a line is not a JSON object.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    row = _json(line, f"{path.name}, line {number}")
                    if not isinstance(row, dict):
                        message = f"{path.name}, line {number}: expected an object"
                        raise DataError(message)
                    yield number, row
    except (ValueError, RecursionError):  # a wrong encoding is a ValueError too
        message = f"{path.name}: not lines of JSON in UTF-8"
        raise DataError(message) from None


def _json(text: str, where: str) -> Any:
    """Read JSON; DataError with the place of the fault, `where` and the position in it, without any of the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if "line" in where else f"line {error.lineno}, column {error.colno}"
        message = f"{where}, {place}: not JSON ({error.msg[:1].lower()}{error.msg[1:]})"
        raise DataError(message) from None


GIVEN_COLUMNS = ("item", "sample", "arm", "strategy", "text", "turns")
"""Columns of a table of given answers: `item`, and `text` or `turns`, are required."""


@dataclass(frozen=True, kw_only=True)
class GivenAnswer:
    """One answer from another tool's run.

    Attributes
    ----------
    where : str
        Its place in the file, for messages.
    item : str
        Id of the item, with or without the prefix of the benchmark.
    sample : int
        Number of the answer to this item, from 0.
    turns : tuple of str
        One text; in a dialogue, the text of every turn.
    seconds : tuple of float
        Duration of each turn; empty if unknown.
    """

    where: str
    item: str
    sample: int
    turns: tuple[str, ...]
    arm: str = "full"
    strategy: str = "direct"
    seconds: tuple[float, ...] = ()


def read_given(path: Path, form: str, item_key: str = "") -> list[GivenAnswer]:
    """Read a file of answers.

    Parameters
    ----------
    path : Path
        The file.
    form : str
        `table` (.csv or .jsonl with `GIVEN_COLUMNS`), `inspect` (.json, or .eval) or `lmms-eval` (samples, .jsonl).
    item_key : str
        lmms-eval: key of the item's id in `doc`; by default `doc_id` is the id.

    Returns
    -------
    list of GivenAnswer
        In the order of the file.

    Raises
    ------
    DataError
        If the file is absent or not of this form; the message names row and key, never a text.
    """
    readers: dict[str, Callable[[Path, str], Iterator[GivenAnswer]]] = {"table": _table, "inspect": _inspect, "lmms-eval": _lmms_eval}
    if not path.is_file():
        message = "the file of answers is not there"
        raise DataError(message)
    try:
        return list(readers[form](path, item_key))
    except (
        ValueError,
        OSError,
        RuntimeError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
    ):  # RuntimeError: packed in another way, or encrypted
        message = (
            f"{path.name}: cannot be read as {form}; expected UTF-8, and of inspect a .json log or an .eval file that is not zstd-packed"
        )
        raise DataError(message) from None
    except (LookupError, TypeError, AttributeError, OverflowError) as error:
        message = f"{path.name}: not a file of the form {form}: {type(error).__name__} at {error}"
        raise DataError(message) from None


def _table(path: Path, _: str) -> Iterator[GivenAnswer]:
    seen: Counter[tuple[str, str, str]] = Counter()
    for line, row in _rows(path):
        where = f"{path.name}, line {line}"
        if unknown := sorted(set(row) - set(GIVEN_COLUMNS)):
            message = f"{where}: unknown column {unknown[0]!r}; known: {', '.join(GIVEN_COLUMNS)}"
            raise DataError(message)
        if not row.get("item") or not (row.get("text") is not None or row.get("turns")):
            message = f"{where}: `item` and `text` (or `turns`) are needed"
            raise DataError(message)
        turns = row.get("turns") or [row["text"]]
        turns = _json(turns, where) if isinstance(turns, str) else turns
        target = (str(row["item"]), row.get("arm") or "full", row.get("strategy") or "direct")
        sample = row.get("sample")
        if sample not in (None, "") and not str(sample).isdecimal():
            message = f"{where}: `sample` is the number of the answer to its item, from 0; found {quote(str(sample), LONGEST_ANSWER)}"
            raise DataError(message)
        number = seen[target] if sample in (None, "") else int(str(sample))
        seen[target] += 1
        yield GivenAnswer(
            where=where, item=target[0], sample=number, turns=tuple(str(turn) for turn in turns), arm=target[1], strategy=target[2]
        )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    return delimited_rows(path) if path.suffix.lower() == ".csv" else json_line_rows(path)


def _inspect(path: Path, _: str) -> Iterator[GivenAnswer]:
    samples = _packed_samples(path) if zipfile.is_zipfile(path) else _json(path.read_text(encoding="utf-8"), path.name)["samples"]
    for number, sample in enumerate(samples, start=1):
        output = sample.get("output") or {}
        text = output.get("completion")
        if text is None:
            text = _words(output["choices"][0]["message"]["content"])
        yield GivenAnswer(
            where=f"{path.name}, sample {number}", item=str(sample["id"]), sample=int(sample.get("epoch", 1)) - 1, turns=(text,)
        )


def _packed_samples(path: Path) -> Iterator[Any]:
    """Read the samples of an archive one by one; DataError for one that unpacks to more than `MAX_CELL`."""
    with zipfile.ZipFile(path) as archive:
        parts = {part.filename: part for part in archive.infolist() if part.filename.startswith("samples/")}
        for number, name in enumerate(sorted(name for name in parts if name.endswith(".json")), start=1):
            if parts[name].file_size > MAX_CELL:  # no more than this is ever unpacked, whatever is in the archive
                message = f"{path.name}, sample {number}: unpacks to more than {MAX_CELL // 2**20} MiB; log the run again without pictures"
                raise DataError(message)
            yield json.loads(archive.read(name))


def _words(content: Any) -> str:
    """Return the text of a message, whose content is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part.get("type") == "text")


def _lmms_eval(path: Path, item_key: str) -> Iterator[GivenAnswer]:
    for line, row in json_line_rows(path):
        item = row["doc"][item_key] if item_key else row["doc_id"]
        texts = row.get("resps") or row["filtered_resps"]
        flat = [text for entry in texts for text in (entry if isinstance(entry, list) else [entry])]
        for sample, text in enumerate(flat):
            yield GivenAnswer(where=f"{path.name}, line {line}", item=str(item), sample=sample, turns=(str(text),))
