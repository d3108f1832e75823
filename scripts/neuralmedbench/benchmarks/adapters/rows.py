"""Helpers of the adapters (cells, ids, embedded pictures, right options, refusals of rows), and the entry that an adapter returns per row."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.source_folder import RowError, SourceFolder, decoded
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Axis, Disclosure, Gold
from neuralmedbench.records.questions import LETTERS, ImportedQuestion, Refusal
from neuralmedbench.records.words import LONGEST_ANSWER, quote

DAY = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
KANA = re.compile(r"[\u3040-\u30ff]")
HANGUL = re.compile(r"[\uac00-\ud7af]")
MAX_ID = 100
MAX_NAME = 1000
"""A cell with more characters is a base64 picture, not a file name."""
UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
PHYSICIAN = "You are a physician."
"""Persona of sets that are not about neurology."""


@dataclass(frozen=True, kw_only=True)
class QuestionEntry:
    """One question with its answer and pictures.

    Attributes
    ----------
    question : ImportedQuestion
        The question; `file` of its pictures is a key of `pictures`.
    gold : Gold or None
        The answer, with the question's id as `item_id`; None if the set has none.
    pictures : mapping of str to Path or bytes
        Each picture's file, or its bytes if the set embeds them in a table.
    disclosures : tuple of Disclosure
        Texts that an arm may show, with the question's id as `item_id`.
    repeated_options : bool
        True to ask the question though two of its options are equal, as the set does.
    where : str
        Its table and row, by which a refusal names it; empty: its number among all rows.
    answer_at : tuple of str
        Headings of the lines of its text that hold the answer and nothing else.
    """

    question: ImportedQuestion
    gold: Gold | None = None
    pictures: Mapping[str, Path | bytes] = field(default_factory=dict)
    disclosures: tuple[Disclosure, ...] = ()
    repeated_options: bool = False
    where: str = ""
    answer_at: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set that can be imported.

    Attributes
    ----------
    name, title : str
        Its name on the command line, and in the report.
    home : str
        Where to get it.
    licence : str
        As stated by its authors.
    files : str
        Files that the folder must contain.
    axis : Axis
        Side of the Two-Axis Framework.
    expected : int
        Number of questions of the published set; 0 if unknown.
    read : callable
        Reads a folder and yields an entry or a refusal per row.
    label_policy : str
        `none` if modality, sequence or plane are answers.
    samples : int
        Answers per request: 1 if one letter or label is right, 5 for open answers.
    persona : str
        First sentence of the system prompt; empty: that of a neurologist.
    asks : bool
        True if the model may ask for facts (strategy `ask`).
    function : Path or None
        Python file that makes its questions; the import records its digest.
    """

    name: str
    title: str
    home: str
    licence: str
    files: str
    axis: Axis
    expected: int
    read: Callable[[SourceFolder], Iterator[QuestionEntry | Refusal]]
    label_policy: str = "full"
    samples: int = 1
    persona: str = ""
    asks: bool = False
    function: Path | None = None


def entries_of(
    source: SourceFolder, table: Path, columns: Sequence[str], make: Callable[[Mapping[str, Any], int], QuestionEntry]
) -> Iterator[QuestionEntry | Refusal]:
    """Make an entry of every row of a table (passed with its index from 0); a DataError refuses the row."""
    for place, row in enumerate(source.rows(table, columns)):
        try:
            yield make(row, place)
        except DataError as error:
            yield refusal_of(f"{table.name}, row {place + 1}", error)


def refusal_of(where: str, error: DataError, question_id: str = "") -> Refusal:
    """Convert the error of one row to a refusal."""
    return Refusal(where=where, reason=str(error), question_id=question_id, found=error.found if isinstance(error, RowError) else "")


def cell(row: Mapping[str, Any], *names: str, needed: bool = True) -> str:
    """Return the text of the first of these columns that exists; DataError if it is not text, or is needed and missing."""
    for name in names:
        if name in row:
            if not isinstance(row[name], str | int | float | None):
                message = f"the column {name!r} is not text"
                raise DataError(message)
            return cell_text(row[name])
    if needed:
        message = f"none of the columns {', '.join(map(repr, names))} exists; found {', '.join(sorted(map(str, row)))}"
        raise DataError(message)
    return ""


def cell_text(value: Any) -> str:
    """Convert a cell to text; empty for a missing value (None, NaN), DataError for a list, an object or bytes."""
    if isinstance(value, list | tuple | Mapping | bytes):
        kind = "an object" if isinstance(value, Mapping) else "bytes" if isinstance(value, bytes) else "a list"
        message = f"a cell holds {kind} where a text or a number was expected"
        raise DataError(message)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return (str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)).strip()


def column_text(row: Mapping[str, Any], column: str) -> str:
    """Return the text of a column; empty if the row does not have it, DataError if it is no text."""
    try:
        return cell_text(row.get(column))
    except DataError as error:
        message = f"the column {column!r}: {error}"
        raise DataError(message) from None


def list_entries(value: Any) -> list[Any]:
    """Return the entries of a list cell: a list, a JSON list, or text separated by `;`.

    Examples
    --------
    >>> list_entries('["a", "b"]'), list_entries("a; b"), list_entries(None)
    (['a', 'b'], ['a', 'b'], [])
    """
    if isinstance(value, list | tuple):
        return list(value)
    text = cell_text(value)
    if text.startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list):
            return found
    return [part.strip() for part in text.split(";") if part.strip()]


def filled_texts(value: Any) -> tuple[str, ...]:
    """Return the non-empty entries of a list cell as text."""
    return tuple(text for text in map(cell_text, list_entries(value)) if text)


def text_tuple(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a cell that is a list as texts; DataError if it is not a list."""
    value = row.get(name)
    if not isinstance(value, list | tuple):
        message = f"the column {name!r} is not a list"
        raise DataError(message)
    return tuple(map(cell_text, value))


def day_of(value: Any) -> str:
    """Return the date (or month, or year) at the start of a timestamp; empty if there is none.

    Examples
    --------
    >>> day_of("2023-04-16T00:00:00"), day_of("spring")
    ('2023-04-16', '')
    """
    found = DAY.match(cell_text(value))
    return found[0] if found else ""


def language_of(text: str, usual: str = "en") -> str:
    """Detect the language of a text by its script: `ja`, `ko`, `zh`, else `usual`."""
    # kana first: Japanese text also has Chinese characters
    for language, script in (("ja", KANA), ("ko", HANGUL), ("zh", CHINESE)):
        if script.search(text):
            return language
    return usual


def tag(name: str, value: Any) -> str:
    """Build a tag by which tables can group: `name:value`, with levels of a tree joined by ` > `."""
    levels = [" ".join(str(level).split()) for level in (value if isinstance(value, list | tuple) else [value])]
    return f"{name}:{' > '.join(level for level in levels if level)}"


def plain_id(text: str) -> str:
    """Convert an id of a data set to letters, digits, `.`, `-` and `_`; a changed id gets a digest, so that different ids stay different.

    Examples
    --------
    >>> plain_id("case_7"), plain_id("Fälle/7")
    ('case_7', 'F-lle-7-63c363de')
    """
    # the digest is of the original id
    plain = UNUSUAL.sub("-", text.strip()).strip("-._")[:MAX_ID]
    if plain == text.strip() and plain:
        return plain
    return f"{plain or 'row'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def choice_gold(question: ImportedQuestion, letter: str, *, established: str, rationale: tuple[str, ...] = ()) -> Gold:
    """Return the gold of a choice question by its letter; RowError, which quotes no more than a short value, if no option has it."""
    place = LETTERS.find(letter) if len(letter) == 1 else -1
    if not 0 <= place < len(question.options):
        message = (
            f"the right letter is not one of {LETTERS[0]} to {LETTERS[max(len(question.options) - 1, 0)]}; correct the answer of that row"
        )
        raise RowError(message, quote(letter, LONGEST_ANSWER))
    return Gold(
        item_id=question.question_id,
        answer=question.options[place],
        choice=letter,
        rationale=tuple(statement for statement in rationale if statement),
        established=established,
    )


def embedded_picture(source: SourceFolder, value: Any) -> Path | bytes:
    """Return the picture of a cell: bytes, a record of bytes and path (Parquet), base64, or a file name; DataError for anything else."""
    # a picture column of Parquet is a struct of bytes and path
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str) or not value:
        message = "the picture's cell has no picture"
        raise DataError(message)
    return decoded(value) if value.startswith("data:") or len(value) > MAX_NAME else source.picture(value)
