"""A data set that is imported by a mapping of its columns, without code of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from neuralmedbench.benchmarks.adapters.cells import day, texts, words, written
from neuralmedbench.benchmarks.adapters.entry import DataSet, Entry
from neuralmedbench.benchmarks.adapters.mapped_pictures import mapped_pictures, option_pictures
from neuralmedbench.benchmarks.adapters.options import filled, letter_of, numbered_letter, options_of, spread
from neuralmedbench.benchmarks.adapters.rows import choice_gold, plain_id, refused
from neuralmedbench.benchmarks.adapters.stems import told_and_asked
from neuralmedbench.benchmarks.rubric import criteria
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.mappings import AnswerMapping, MappingConfig, OptionsMapping
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Gold, Runner
from neuralmedbench.records.questions import Question, Refusal

FILE, FOLDER, PLACE = OWN = ("_file", "_folder", "_place")
"""Columns that every row has: names of its table, and of the folder of that, and the place of a question among those of its row."""


def mapped(name: str, mapping: MappingConfig) -> DataSet:
    """Give the data set that a mapping describes."""
    return DataSet(
        name=name,
        title=mapping.title,
        home=mapping.home,
        licence=mapping.licence,
        files=" or ".join(mapping.files),
        axis=mapping.axis,
        expected=mapping.expected,
        read=partial(read, mapping),
        label_policy=mapping.label_policy,
        samples=mapping.samples,
    )


def read(mapping: MappingConfig, source: SourceFolder) -> Iterator[Entry | Refusal]:
    """Read every table that fits the mapping's pattern."""
    needed = columns_of(mapping)
    for table in source.find(*mapping.files):
        own = {FILE: table.stem, FOLDER: table.parent.name}
        for number, row in enumerate(source.rows(table, [mapping.each] if mapping.each else needed, under=mapping.under), start=1):
            where = f"{table.relative_to(source.folder).as_posix()}, row {number}"
            for place, question in enumerate(_asked(mapping.each, row), start=1):
                try:
                    yield _entry(mapping, source, _whole({**question, **own, PLACE: place}, needed), number)
                except DataError as error:
                    yield refused(f"{where}, question {place}" if mapping.each else where, error)


def _asked(each: str, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the questions of a row: itself, or one for each object of a list that it holds, with the columns of the row beside."""
    if not each:
        return [row]
    value = row[each] if isinstance(row[each], list) and row[each] else [None]
    around = {name: cell for name, cell in row.items() if name != each}
    return [{**around, **one} if isinstance(one, Mapping) else around for one in value]


def _whole(question: Mapping[str, Any], needed: Sequence[str]) -> Mapping[str, Any]:
    if missing := [column for column in needed if column not in question]:
        message = f"the column {missing[0]!r} is missing; found {', '.join(sorted(set(question) - set(OWN)))}"
        raise DataError(message)
    return question


def columns_of(mapping: MappingConfig) -> list[str]:
    """Columns that every row needs; of separate options only the first two, because sets leave the others out of short rows."""
    options, images = mapping.options, mapping.images
    named = [mapping.case, mapping.question, *mapping.text, mapping.date, mapping.language_column, *mapping.tags]
    named += mapping.id
    if options:
        named += [options.column, *options.columns[:2], options.right, *(column for column in options.wrong if "*" not in column)]
    if mapping.answer:
        named += [mapping.answer.column, mapping.answer.aliases]
    if images:
        named += images.columns
    return list(dict.fromkeys(column for column in named if column and column not in OWN))


def _entry(mapping: MappingConfig, source: SourceFolder, row: Mapping[str, Any], number: int) -> Entry:
    question_id = _id(mapping, row, number)
    images, pictures = mapped_pictures(mapping.images, source, row) if mapping.images else ((), {})
    if mapping.options and mapping.options.pictures:
        shown, contents, names = option_pictures(mapping.options, mapping.options.pictures, source, row)
        images, pictures, options = (*images, *shown), pictures | contents, tuple(image.label for image in shown)
    else:
        options = names = _options(mapping.options, row, question_id) if mapping.options else ()
    asked, told = words(row, mapping.question) if mapping.question else mapping.ask, ""
    if mapping.case_in_question:
        told, asked = told_and_asked(asked)
    if asked and mapping.question and mapping.ask:
        asked = f"{asked}\n{mapping.ask}"
    question = Question(
        question_id=question_id,
        runner=Runner(mapping.runner),
        family=mapping.family,
        question=asked,
        case_id=plain_id(words(row, mapping.case)) if mapping.case and words(row, mapping.case) else "",
        text="\n\n".join(filter(None, (*(words(row, column) for column in mapping.text), told))),
        options=options,
        images=images,
        language=words(row, mapping.language_column)[:2].lower() or mapping.language,
        date=day(row.get(mapping.date)) if mapping.date else "",
        tags=tuple(f"{column.lstrip('_')}:{value}" for column in mapping.tags for value in texts(_listed(row[column]))),
    )
    return Entry(question=question, gold=_gold(mapping, question, names, row), pictures=pictures)


def _id(mapping: MappingConfig, row: Mapping[str, Any], number: int) -> str:
    if not mapping.id:
        return f"{plain_id(row[FILE])}-{number:05d}" + (f"-{row[PLACE]}" if mapping.each else "")
    named = [words(row, column) for column in mapping.id]
    if not all(named):
        message = f"the column {mapping.id[named.index('')]!r}, which names the question, is empty"
        raise DataError(message)
    return plain_id("-".join(named))


def _options(mapping: OptionsMapping, row: Mapping[str, Any], question_id: str) -> tuple[str, ...]:
    """Read the options; those whose text says that there is none are empty, and left out at the end."""
    found = ["" if option in mapping.missing else option for option in _all_options(mapping, row, question_id)]
    return tuple(filled(found))


def _all_options(mapping: OptionsMapping, row: Mapping[str, Any], question_id: str) -> tuple[str, ...]:
    if mapping.column:
        return options_of(row[mapping.column])
    if mapping.fixed:
        return mapping.fixed
    if mapping.columns:
        return tuple(words(row, column) for column in mapping.columns)
    wrong = [words(row, column) for column in sorted(row) if any(fnmatchcase(column, pattern) for pattern in mapping.wrong)]
    if not wrong:
        message = f"no column fits {' or '.join(mapping.wrong)}; found {', '.join(sorted(set(row) - set(OWN)))}"
        raise DataError(message)
    return spread(question_id, (words(row, mapping.right), *wrong))


def _gold(mapping: MappingConfig, question: Question, names: tuple[str, ...], row: Mapping[str, Any]) -> Gold | None:
    """Read the answer; the right option may be named by its words, or by the path of its picture (`names`)."""
    answer = mapping.answer
    if mapping.options and mapping.options.right:
        return choice_gold(question, letter_of(row[mapping.options.right], names), established=mapping.established)
    if answer is None or not written(row[answer.column]):
        return None
    if mapping.options:
        return choice_gold(question, _letter(answer, row[answer.column], names), established=mapping.established)
    aliases = texts(row[answer.aliases]) if answer.aliases else ()
    gold = Gold(item_id=question.question_id, answer=words(row, answer.column), aliases=aliases, established=mapping.established)
    return replace(gold, rubric=criteria(question.family, gold))


def _letter(answer: AnswerMapping, value: Any, options: tuple[str, ...]) -> str:
    if answer.form.startswith("number"):
        return numbered_letter(value, options, first=int(answer.form[-1]))
    return letter_of(value, options)


def _listed(value: Any) -> Any:
    """Give a cell as a list of tags: text is one tag, whatever it holds."""
    return value if isinstance(value, list | tuple) else [written(value)]
