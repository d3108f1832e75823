"""Read the answer of a row: its text and equally right names, its values by the `fields` of a mapping, its criteria by the `rubric`.

The values of a structured question are asked for in one round or one after another, with their references and pictures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.case_text import question_of_round, reveal_of_round, without_words
from neuralmedbench.benchmarks.adapters.options import is_missing, mapped_pictures
from neuralmedbench.benchmarks.adapters.paths import at_path, is_blank, joined_text, listed
from neuralmedbench.benchmarks.adapters.rows import cell_text, column_text, filled_texts, list_entries
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.mapping_sections import AnswerMapping, FieldMapping, RoundMapping, RubricMapping
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Criterion, Gold, ReferenceValue
from neuralmedbench.records.questions import QuestionImage, QuestionTurn
from neuralmedbench.records.value_reading import BOX
from neuralmedbench.records.value_rules import read_value, values_schema


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
        values = _reference_values(fields, cells)
        self.values += tuple(replace(value, field=names[value.field], decides=decides) for value in values)
        return tuple(names.values())


def _reference_values(fields: Mapping[str, FieldMapping], row: Mapping[str, Any]) -> tuple[ReferenceValue, ...]:
    """Return the references of a row, without those of empty cells; DataError, which does not quote a cell, if one cannot be read."""
    values = []
    for name, field in fields.items():
        rule = rule_of(name, field, row)
        text = _text_of(name, field, rule, row)
        if text or (rule == "words" and field.missing):
            low, high = _limits(name, field, rule, text, row)
            values.append(ReferenceValue(field=name, rule=rule, value=text, low=low, high=high, at_least=field.at_least))
    return tuple(values)


def value_gold(question_id: str, values: Sequence[ReferenceValue], established: str) -> Gold | None:
    """Return the gold of a question that asks for values; None without any reference."""
    if not values:
        return None
    decisive = [value for value in values if value.decides] or values
    shown = [f"{value.field}: {value.value}" if len(values) > 1 else value.value for value in decisive]
    return Gold(item_id=question_id, answer="; ".join(shown), established=established, values=tuple(values))


def rule_of(name: str, field: FieldMapping, row: Mapping[str, Any]) -> str:
    """Return the rule of a field in a row; DataError if no column decides it."""
    if field.rule:
        return field.rule
    assert field.rules is not None
    found = [field.rules.names[key] for column in field.rules.columns if (key := column_text(row, column)) in field.rules.names]
    if not found:
        message = f"{name}: no rule for this row; {' and '.join(field.rules.columns)} have none of {', '.join(field.rules.names)}"
        raise DataError(message)
    return found[0]


def _text_of(name: str, field: FieldMapping, rule: str, row: Mapping[str, Any]) -> str:
    """Return the reference as text; lists are JSON, boxes in fractions of the picture."""
    cell = row[field.column]
    if rule == "keywords":
        words = [text for text in map(cell_text, list_entries(cell)) if not is_missing(text, field.missing)]
        return json.dumps(words, ensure_ascii=False) if words else ""
    text = json.dumps(cell) if isinstance(cell, list | tuple) else cell_text(cell)
    if is_missing(text, field.missing):
        return ""
    return _in_fractions(f"{name}: the reference box", field, text, row) if rule == "box" else text


def boxes_in_fractions(name: str, field: FieldMapping, text: str, row: Mapping[str, Any]) -> str:
    """Write the boxes of a question, which are in pixels, as answers write them; DataError if one is not within its picture."""
    return BOX.sub(lambda found: _rounded(_in_fractions(f"{name}: a box of the question", field, found[0], row)), text)


def _rounded(box: str) -> str:
    return json.dumps([round(edge, 3) for edge in json.loads(box)])


def _in_fractions(what: str, field: FieldMapping, text: str, row: Mapping[str, Any]) -> str:
    box = read_value("box", text)
    if box is None:
        return text  # refused with its reason when the question is checked
    size = tuple(_numbers(row.get(field.size_column)))[:2] or field.size or (1.0, 1.0)
    fractions = [edge / size[place % 2] for place, edge in enumerate(box)] if len(size) == 2 and min(size) > 0 else []
    if not fractions or max(fractions) > 1 or min(fractions) < 0:
        message = f"{what} is not within its picture; boxes in pixels need `size` or `size_column`"
        raise DataError(message)
    return json.dumps(fractions)


def _numbers(cell: Any) -> list[float]:
    return [value for entry in list_entries(cell) if (value := read_value("number", cell_text(entry))) is not None]


def _limits(name: str, field: FieldMapping, rule: str, text: str, row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    if rule != "number":
        return None, None
    value = read_value("number", text)
    if field.within is not None and value is not None:
        return value - field.within * abs(value), value + field.within * abs(value)
    limits = [read_value("number", column_text(row, column)) if column else None for column in (field.low, field.high)]
    if None in limits:
        message = (
            f"{name}: a limit of this number is missing or is no number; expected both {field.low or '`low`'} and {field.high or '`high`'}"
        )
        raise DataError(message)
    return limits[0], limits[1]


def criteria_of(value: Any, mapping: RubricMapping) -> tuple[Criterion, ...]:
    """Read criteria with their published points; those that cost points are named `harm_<n>`, the others `meets_<n>`.

    DataError if one lacks its words or points, or none earns points.
    """
    value = listed(value)
    if not isinstance(value, list | tuple):
        message = f"{mapping.column} is not a list"
        raise DataError(message)
    rubric = []
    for number, one in enumerate(value, start=1):
        item = one if isinstance(one, Mapping) else {mapping.text: one}
        points = item.get(mapping.points, mapping.points_each)
        # `bool` is an `int` in Python, so it is rejected separately
        if isinstance(points, bool) or not isinstance(points, int | float) or not column_text(item, mapping.text):
            message = f"criterion {number}: expected the keys {mapping.text!r} and {mapping.points!r}"
            raise DataError(message)
        name, words = f"{'harm' if points < 0 else 'meets'}_{number}", column_text(item, mapping.text)
        rubric.append(Criterion(criterion=name, text=words, points=float(points), cap=item.get(mapping.cap) is True))
    if rubric and not any(criterion.points > 0 for criterion in rubric):
        message = "no criterion earns points, so a score has no denominator"
        raise DataError(message)
    return tuple(rubric)


def answer_text(row: Mapping[str, Any], answer: AnswerMapping, join: str) -> str:
    """Return the text of an answer, empty if it is missing; of several in its cell that are equally right the first."""
    equal = filled_texts(row[answer.column]) if answer.aliases == answer.column else ()
    text = equal[0] if equal else joined_text(row, answer.column, join)
    return "" if is_missing(text, answer.missing) else text


def equal_answers(row: Mapping[str, Any], answer: AnswerMapping | None, text: str) -> tuple[str, ...]:
    """Return the names that are as right as this answer."""
    names = filled_texts(row[answer.aliases]) if answer and answer.aliases else ()
    return tuple(name for name in names if name != text)


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
