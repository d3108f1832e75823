"""Make the question of a row from the columns that a mapping names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from neuralmedbench.benchmarks.adapters.options import options_at, picture_cells, without_empty_end
from neuralmedbench.benchmarks.adapters.paths import ABSENT, at_path, joined_text, lines_or_statements, listed, statements
from neuralmedbench.benchmarks.adapters.rows import cell_text, day_of, filled_texts
from neuralmedbench.benchmarks.case_text import vignette_and_lead_in
from neuralmedbench.benchmarks.question import Picture, Question, Value
from neuralmedbench.config.mappings import FieldMapping, ImagesMapping, MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.records.value_rules import read_value
from neuralmedbench.records.words import listing

MOST_KEYS = 12
"""Most columns that an error names."""


def question_by_columns(mapping: MappingConfig, row: Mapping[str, Any]) -> Question:
    """Return the question that a mapping describes.

    Raises
    ------
    DataError
        With every column that the row lacks, or the first cell that cannot be read.
    """
    absent = [column for column in mapping.columns() if at_path(row, column) is ABSENT]
    if absent:
        raise DataError("; ".join(missing_text(row, column) for column in absent))
    question = _text(row, mapping.question)
    texts = [(column, _text(row, column)) for column in mapping.text]
    text = "\n\n".join(f"{column}:\n{words}" if mapping.headings else words for column, words in texts if words)
    if mapping.case_in_question:
        vignette, question = vignette_and_lead_in(question)
        text = "\n\n".join(filter(None, (text, vignette)))
    if mapping.text and not text and not mapping.question:
        message = "the text of the case is empty"
        raise DataError(message)
    facts = lines_or_statements(_cell(row, mapping.facts)) if mapping.facts else ()
    if mapping.facts and not facts:
        message = "the dialogue has no facts"
        raise DataError(message)
    several = filled_texts(_cell(row, mapping.aliases)) if mapping.aliases else ()
    answer = several[0] if several and mapping.aliases == mapping.answer else _text(row, mapping.answer)
    rubric = listed(_cell(row, mapping.rubric)) if mapping.rubric else ()
    if not isinstance(rubric, list | tuple):
        message = f"the column {mapping.rubric!r} is not a list"
        raise DataError(message)
    return Question(
        id=_id(mapping, row),
        case=_word(row, mapping.case),
        patient=_word(row, mapping.patient),
        question=question,
        text=text,
        facts=facts,
        options=_options(mapping, row),
        distractors=tuple(text for column in mapping.distractors for text in _texts(_cell(row, column)) if text),
        answer=answer,
        aliases=tuple(name for name in several if name != answer),
        pictures=_pictures(mapping, mapping.images, row) if mapping.images else (),
        values=tuple(_value(name, field, _cell(row, field.column)) for name, field in mapping.fields.items()),
        rubric=tuple(rubric),
        reasons=statements(_cell(row, mapping.reasons)) if mapping.reasons else (),
        tags=tuple(f"{column.lstrip('_')}:{text}" for column in mapping.tags for text in _texts(_cell(row, column)) if text),
        date=day_of(_cell(row, mapping.date)) if mapping.date else "",
    )


def missing_text(row: Mapping[str, Any], column: str) -> str:
    """Say that a column or path is missing, which are there, and which was perhaps meant."""
    names = sorted(name for name in map(str, row) if not name.startswith("_"))
    near = difflib.get_close_matches(column, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "correct it, or name it in `optional` if rows may lack it"
    top = column.partition(".")[0]
    shown = f"{top!r} is there without it" if top in row and top != column else f"found {listing(names, MOST_KEYS)}"
    return f"the column {column!r} is missing; {shown}; {hint}"


def _cell(row: Mapping[str, Any], column: str) -> Any:
    value = at_path(row, column) if column else ABSENT
    return None if value is ABSENT else value


def _text(row: Mapping[str, Any], column: str) -> str:
    """Return the text of a column, the entries of a list a line each."""
    return joined_text({column: _cell(row, column)}, column, "\n") if column else ""


def _word(row: Mapping[str, Any], column: str) -> str:
    """Return the text of a column that is no list."""
    try:
        return cell_text(_cell(row, column))
    except DataError as error:
        message = f"the column {column!r}: {error}"
        raise DataError(message) from None


def _texts(value: Any) -> list[str]:
    """Return a cell as texts; a text is one, whatever it contains."""
    value = listed(value)
    return [cell_text(entry) for entry in value] if isinstance(value, list | tuple) else [cell_text(value)]


def _id(mapping: MappingConfig, row: Mapping[str, Any]) -> str:
    words = {column: _word(row, column) for column in mapping.id}
    for column, word in words.items():
        if not word and column not in mapping.optional:
            message = f"the column {column!r}, which names the question, is empty"
            raise DataError(message)
    return "-".join(filter(None, words.values()))


def _options(mapping: MappingConfig, row: Mapping[str, Any]) -> tuple[str, ...]:
    if mapping.fixed_options or not mapping.options:
        return mapping.fixed_options
    if isinstance(mapping.options, str):
        options = options_at(row, mapping.options)
    else:
        options = tuple(_word(row, column) for column in mapping.options)
    return tuple(without_empty_end(options))


def _pictures(mapping: MappingConfig, images: ImagesMapping, row: Mapping[str, Any]) -> tuple[Picture, ...]:
    roles = images.roles or ("picture",) * len(images.columns)
    pictures = []
    for column, role in zip(images.columns, roles, strict=True):
        top = column.partition(".")[0]
        if at_path(row, column) is ABSENT and row.get(top):  # one of several pictures without its key is no missing picture
            raise DataError(missing_text(row, column))
        pictures += [Picture(file=file, role=role) for file in picture_cells(_cell(row, column), images.folder)]
    if not pictures and not set(images.columns) <= set(mapping.optional):
        message = "the question has no picture"
        raise DataError(message)
    return tuple(pictures)


def _value(name: str, field: FieldMapping, reference: Any) -> Value:
    number = read_value("number", cell_text(reference)) if field.within is not None else None
    share = abs(number) * field.within if number is not None and field.within is not None else None
    return Value(
        name=name,
        rule=field.rule,
        reference=reference or None if isinstance(reference, str) else reference,
        words=field.words,
        low=None if number is None or share is None else number - share,
        high=None if number is None or share is None else number + share,
    )
