"""Read a structured question: the values that it asks for, in one round or one after another, with their references and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.case_text import question_of_round, reveal_of_round, without_words
from neuralmedbench.benchmarks.adapters.paths import at_path, is_blank, listed
from neuralmedbench.benchmarks.adapters.pictures import mapped_pictures
from neuralmedbench.benchmarks.adapters.values import reference_values, rule_of
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.mapping_sections import FieldMapping, RoundMapping
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import ReferenceValue
from neuralmedbench.records.questions import QuestionImage, QuestionTurn
from neuralmedbench.records.value_rules import values_schema


@dataclass
class Stages:
    """A structured question as it is read; `turns` are none if all values are asked for at once.

    `fields` are the name, the rule and the words of every value.
    """

    images: tuple[QuestionImage, ...]
    pictures: dict[str, Path | bytes]
    turns: tuple[QuestionTurn, ...] = ()
    fields: tuple[tuple[str, str, str], ...] = ()
    values: tuple[ReferenceValue, ...] = ()

    @property
    def schema(self) -> str:
        """JSON schema of the whole answer."""
        return values_schema(self.fields)

    def ask(self, fields: Mapping[str, FieldMapping], cells: Mapping[str, Any], *, decides: bool = True) -> tuple[str, ...]:
        """Ask for the values of a round and return their names; one that is taken gets a number (`anatomy_2`)."""
        taken = {name for name, _, _ in self.fields}
        names = {name: _free(name, taken) for name in fields}
        self.fields += tuple((names[name], rule_of(name, one, cells), one.words) for name, one in fields.items())
        values = reference_values(fields, cells)
        self.values += tuple(replace(value, field=names[value.field], decides=decides) for value in values)
        return tuple(names.values())


def read_stages(
    mapping: MappingConfig,
    source: SourceFolder,
    row: Mapping[str, Any],
    table: Path,
    *,
    text: str,
    shown: tuple[tuple[QuestionImage, ...], dict[str, Path | bytes]],
) -> Stages:
    """Read the values that a row asks for: all at once (`fields`), or round by round.

    The text of the case and the pictures that are `shown` (with their files) stand in the first round. A round whose question is empty is left
    out if its column is `optional`. Values decide whether an answer passes in rounds of a ladder; those of other rounds and of a retry do not.
    """
    found = Stages(*shown)
    if mapping.fields:
        found.ask(mapping.fields, row)
    for one in mapping.rounds:
        for cells, pictured in _rounds(one, row):
            if one.question in mapping.optional and is_blank(cells, one.question):
                continue
            question = without_words(question_of_round(one, cells, mapping.join), mapping.drop)
            if not question:
                message = f"the question of a round is empty{f' (stage {one.stage})' if one.stage else ''}"
                raise DataError(message)
            start = len(found.images) if found.turns else 0
            if one.images and pictured:
                images, pictures = mapped_pictures(one.images, source, cells, table, before=len(found.images))
                found.images, found.pictures = (*found.images, *images), found.pictures | pictures
            reveal = reveal_of_round(one, cells, mapping.join)
            turn = QuestionTurn(
                reveal=reveal if found.turns else "\n\n".join(filter(None, (text, reveal))),
                question=question,
                images=tuple(range(start, len(found.images))),
                asks=found.ask(one.fields, cells, decides=bool(one.stage) and not one.retry),
                stage=one.stage,
                retry=one.retry,
            )
            found.turns = (*found.turns, turn)
    return found


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or with the first number from 2 that makes it a new one."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _rounds(one: RoundMapping, row: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield the cells of each round that an entry of `rounds` describes, and whether it shows pictures.

    A list of questions is a round for each of them; pictures that are not told apart are shown with the first.
    """
    questions = listed(at_path(row, one.question)) if one.question else None
    if not isinstance(questions, list | tuple):
        yield row, True
        return
    references = [column for entry in one.fields.values() for column in (entry.column, entry.low, entry.high) if column]
    for place, question in enumerate(questions):
        cells = {**row, one.question: question}
        for column in references:
            cells[column] = _entry(row, column, place, len(questions), one.question)
        told_apart = [column for column in (one.images.columns if one.images else ()) if _has_lists(row, column)]
        for column in told_apart:
            cells[column] = _entry(row, column, place, len(questions), one.question)
        yield cells, bool(told_apart) or place == 0


def _has_lists(row: Mapping[str, Any], column: str) -> bool:
    value = listed(at_path(row, column))
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, list | tuple) for one in value)


def _entry(row: Mapping[str, Any], column: str, place: int, number: int, questions: str) -> Any:
    """Return the entry of one question of a list; DataError if the lists are not of one length."""
    value = listed(at_path(row, column))
    if not isinstance(value, list | tuple) or len(value) != number:
        found = f"{len(value)} entries" if isinstance(value, list | tuple) else "no list"
        message = f"the column {questions!r} has {number} questions, {column!r} has {found}"
        raise DataError(message)
    return value[place]
