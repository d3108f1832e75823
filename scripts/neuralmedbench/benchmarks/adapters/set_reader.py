"""Read a data set by its mapping and, where its data are odd, by `question(row)` of the Python file beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

from neuralmedbench.benchmarks.adapters.columns import missing_text, question_by_columns
from neuralmedbench.benchmarks.adapters.entries import entry_of
from neuralmedbench.benchmarks.adapters.paths import ABSENT, at_path
from neuralmedbench.benchmarks.adapters.rows import DataSet, QuestionEntry, plain_id, refusal_of
from neuralmedbench.benchmarks.adapters.set_function import Asked, SetFunction
from neuralmedbench.benchmarks.answer_leaks import answer_terms
from neuralmedbench.benchmarks.question import Question
from neuralmedbench.benchmarks.source_folder import RowError, SourceFolder
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.inside import file_inside
from neuralmedbench.records.questions import Refusal
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.records.words import LONGEST_NAME, counted, listing, quote

COPY_SHARE, COPY_RECORDS = 0.5, 3
"""The text copies the answer if a line of it holds nothing else in half of the questions, and in three."""

KEPT_FILES = 16
"""Most JSON files of a set in memory: rows in a row often share one."""


@dataclass(frozen=True)
class MappedSet:
    """A data set of `config/mappings/`: its mapping, and the file of its function if it has one."""

    mapping: MappingConfig
    function: Path | None


class SetRow(dict[str, Any]):
    """A row of a table: `row["column"]`, or a path into nested cells, `row["case.notes.0.text"]`.

    Besides its columns it has `_file`, `_folder` and `_path` of its table, `_row` (its number over all tables) and, in a JSON object of
    objects, `_key`. A column or path that is missing refuses the row.
    """

    def __init__(self, cells: Mapping[str, Any], reader: _SetReader, table: Path, number: int) -> None:
        super().__init__(cells)
        self._reader, self._table = reader, table
        self.where = f"{cells['_path']}, row {number}"
        self.id = f"{plain_id(table.stem)}-{number:05d}"

    def __missing__(self, path: str) -> Any:
        value = at_path(self, path) if "." in path else ABSENT
        if value is ABSENT:
            raise DataError(missing_text(self, path))
        return value

    def json(self, path: str) -> Any:
        """Return the content of a JSON file of the folder (`*` for any characters); DataError unless one file fits."""
        return self._reader.json(path)

    def has(self, path: str) -> bool:
        """Return True if the folder has a file of this path (`*` for any characters)."""
        return bool(self._reader.fitting(path))

    def others(self, name: str, pattern: str) -> Iterator[SetRow]:
        """Yield the rows of another set, by its own mapping, from the files that fit a pattern; none if there is no such file."""
        return _SetReader(name, self._reader.sets, self._reader.source).rows(pattern) if self.has(pattern) else iter(())

    def by_columns(self) -> Question:
        """Return the question that the mapping describes."""
        return question_by_columns(self._reader.mapping, self)

    def entries(self) -> list[QuestionEntry | Refusal]:
        """Return the questions of the row as they are imported; each that cannot be asked is refused with its reason."""
        try:
            questions = self._reader.questions(self)
        except DataError as error:
            return [refusal_of(self.where, error, self._known_id())]
        return [self._entry(question, place, len(questions)) for place, question in enumerate(questions, start=1)]

    def _entry(self, question: Asked, place: int, count: int) -> QuestionEntry | Refusal:
        if not isinstance(question, Question):
            return question
        where, name = (self.where, self.id) if count == 1 else (f"{self.where}, question {place}", f"{self.id}-{place}")
        try:
            entry = entry_of(question, self._reader.mapping, name, self._reader.source, self._table)
        except DataError as error:
            return refusal_of(where, error, plain_id(question.id) if question.id else name)
        return replace(entry, where=where, answer_at=tuple(lines_with_answer(entry)))

    def _known_id(self) -> str:
        """Return the id of a row that is refused; empty if it names none."""
        columns = self._reader.mapping.id
        words = [str(value) for column in columns if (value := at_path(self, column)) not in (ABSENT, None, "")]
        return self.id if not columns else plain_id("-".join(words)) if len(words) == len(columns) else ""


class _SetReader:
    """Reads the rows of one set; its function is loaded here, never for a list of sets or a plan."""

    def __init__(self, name: str, sets: Mapping[str, MappedSet], source: SourceFolder) -> None:
        if name not in sets:
            message = f"no mapping is named {name}"
            raise DataError(message)
        self.sets, self.source, self.mapping = sets, source, sets[name].mapping
        path = sets[name].function
        self._function = SetFunction(path) if path else None
        self._needed = () if path else tuple(self.mapping.columns())
        self.json = lru_cache(maxsize=KEPT_FILES)(self._json)

    def rows(self, *patterns: str) -> Iterator[SetRow]:
        """Yield the rows of the tables of the first pattern with a match; DataError if a mapping without a function names a missing column."""
        options, before = self.mapping.options, 0
        # a short row may lack the last options, but a column that no row has is misspelt
        unseen = set() if isinstance(options, str) or self._function else set(options) - set(self.mapping.optional)
        for table in self.source.find(*patterns):
            number = 0
            for number, cells in enumerate(self.source.rows(table, under=self.mapping.under), start=1):
                row = self._row(cells, table, number, before)
                unseen = {column for column in unseen if at_path(row, column) is ABSENT}
                yield row
            before += number
        if unseen and before:
            message = f"{listing(patterns)}: no row has the column {min(unseen)!r} of `options`; correct it, or name it in `optional`"
            raise DataError(message)

    def _row(self, cells: Mapping[str, Any], table: Path, number: int, before: int) -> SetRow:
        """Return a row with its built-in columns; `before` is the number of rows of the tables before."""
        added = {"_file": table.stem, "_folder": table.parent.name, "_path": table.relative_to(self.source.folder).as_posix()}
        row = SetRow({**cells, **added, "_row": f"{before + number:05d}"}, self, table, number)
        absent = [name for name in self._needed if name not in row and name.partition(".")[0] not in row]
        if absent:
            raise DataError(*(f"{row.where}: {missing_text(row, column)}" for column in absent))
        return row

    def questions(self, row: SetRow) -> list[Asked]:
        """Return the questions of a row, by the function or by the columns; DataError if that fails."""
        return self._function(row) if self._function else [row.by_columns()]

    def fitting(self, path: str) -> list[Path]:
        """Return the files of the folder that fit a path; DataError for a path that leaves the folder."""
        if PurePath(path).is_absolute() or ".." in PurePath(path).parts:
            message = "the path of a file that belongs to the row leaves the folder"
            raise DataError(message)
        return sorted(file for file in self.source.folder.glob(path) if file.is_file())

    def _json(self, path: str) -> Any:
        files = self.fitting(path)
        if len(files) != 1:
            message = f"{counted(len(files), 'file')} of this row; expected one; add the missing file to the folder, or name one"
            raise RowError(message, quote(path, LONGEST_NAME))
        return self.source.json(file_inside(self.source.folder, files[0].relative_to(self.source.folder).as_posix(), "a file of the row"))


def mapped_data_set(name: str, sets: Mapping[str, MappedSet]) -> DataSet:
    """Return the data set of a mapping; `sets` has all of them, because a set may refer to others."""
    mapping = sets[name].mapping
    return DataSet(
        name=name,
        title=mapping.title,
        home=mapping.home,
        licence=mapping.licence,
        files=" or ".join(mapping.files),
        axis=mapping.axis,
        expected=mapping.expected,
        read=lambda source: _read(name, sets, source),
        label_policy=mapping.label_policy,
        samples=mapping.samples,
        persona=mapping.persona,
        asks=bool(mapping.facts),
        function=sets[name].function,
    )


def _read(name: str, sets: Mapping[str, MappedSet], source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read every row; DataError at the end if the texts copy the answers."""
    copies: list[QuestionEntry] = []
    number = 0
    for row in _SetReader(name, sets, source).rows(*sets[name].mapping.files):
        for entry in row.entries():
            number += isinstance(entry, QuestionEntry)
            copies += [entry] if isinstance(entry, QuestionEntry) and entry.answer_at else []
            yield entry
    if len(copies) >= max(COPY_RECORDS, COPY_SHARE * number):
        message = (
            f"{copies[0].where}: a line of the text ({copies[0].answer_at[0]}) holds the answer and nothing else, in {len(copies)} of {number}"
            " questions; expected a text without it; leave that column or key out"
        )
        raise DataError(message)


def lines_with_answer(entry: QuestionEntry) -> list[str]:
    """Return the headings of the lines of a text that hold the answer and nothing else; `line <n>` for a line without a heading."""
    names = {term.words for term in answer_terms(entry.gold)} if entry.gold and not entry.gold.values else set()
    headings = []
    for number, line in enumerate(entry.question.text.splitlines() if names else (), start=1):
        heading, _, value = line.strip().removeprefix("- ").partition(": ")
        if names & {_words(line), _words(value)}:
            headings.append(heading if value else f"line {number}")
    return headings


def _words(text: str) -> tuple[str, ...]:
    return tuple(normal_form(text).split())
