"""Import a data set by a mapping of its columns, without code of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.case_text import (
    columns_of_value,
    conversation_of,
    facts_of,
    paths_of_case,
    paths_with_answer,
    rounds_of,
    shown_objects,
    text_of,
    vignette_and_lead_in,
    without_words,
)
from neuralmedbench.benchmarks.adapters.faults import Fault, Faults, faults_of, missing_text
from neuralmedbench.benchmarks.adapters.further import FurtherColumns, with_parts
from neuralmedbench.benchmarks.adapters.options import (
    digest_order,
    is_missing,
    letter_of,
    mapped_pictures,
    numbered_letter,
    option_pictures,
    options_at,
    without_empty_end,
)
from neuralmedbench.benchmarks.adapters.paths import (
    ABSENT,
    at_path,
    group_of,
    is_blank,
    is_chosen,
    joined_text,
    listed,
    sample,
    statements,
    with_paths,
)
from neuralmedbench.benchmarks.adapters.rows import (
    DataSet,
    QuestionEntry,
    cell_text,
    choice_gold,
    column_text,
    day_of,
    filled_texts,
    language_of,
    plain_id,
    refusal_of,
)
from neuralmedbench.benchmarks.adapters.values import answer_text, boxes_in_fractions, criteria_of, equal_answers, read_stages, value_gold
from neuralmedbench.benchmarks.answer_leaks import answer_terms
from neuralmedbench.benchmarks.gold import AS_WRITTEN, check_findings, criteria, disclosure
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.mapping_sections import OptionsMapping, column_of
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Gold, Runner
from neuralmedbench.records.questions import LETTERS, Question, Refusal
from neuralmedbench.records.words import listing

FILE, FOLDER, PATH, PLACE, ROW = BUILT_IN = ("_file", "_folder", "_path", "_place", "_row")
"""Columns added to every row: the names of its table and of the table's folder, the table's path in the data set's folder, the number of a
question within its row, and that of the row over all tables."""


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its cells, its number from 1, and its place in words."""

    table: Path
    number: int
    where: str
    cells: Mapping[str, Any]


def mapped_data_set(name: str, mapping: MappingConfig) -> DataSet:
    """Return the data set that a mapping describes."""
    return DataSet(
        name=name,
        title=f"{mapping.title} (sample of at most {mapping.limit} rows)" if mapping.limit else mapping.title,
        home=mapping.home,
        licence=mapping.licence,
        files=" or ".join(mapping.files),
        axis=mapping.axis,
        expected=0 if mapping.limit else mapping.expected,
        read=partial(read, mapping),
        label_policy=mapping.label_policy,
        samples=mapping.samples,
        persona=mapping.persona,
        asks=bool(mapping.facts),
    )


def read(mapping: MappingConfig, source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read every table that fits the mapping's pattern."""
    chosen = table_rows(mapping, source)
    if mapping.limit:
        # whole groups are drawn in a first pass, so that pairs and patients stay complete
        drawn = sample([_group(mapping, row) for row in table_rows(mapping, source)], mapping.limit)
        chosen = (row for row in chosen if _group(mapping, row) in drawn)
    faults = Faults(mapping)
    for row in chosen:
        yield from entries_of_row(mapping, source, row, faults)
    faults.check()


def table_rows(mapping: MappingConfig, source: SourceFolder) -> Iterator[TableRow]:
    """Read the rows of all tables that the mapping chooses; DataError if a column is missing."""
    needed, tables, before = columns_of(mapping), source.find(*mapping.files, exclude=mapping.exclude), 0
    # a short row may lack the last options, but a column that no row has is misspelt
    options = set(mapping.options.columns if mapping.options and not mapping.each else ()) - set(mapping.optional)
    further = FurtherColumns(mapping, source)
    if mapping.one_file and len(tables) > 1:
        message = f"{len(tables)} releases in the folder ({', '.join(table.name for table in tables)}); keep only the one to import"
        raise DataError(message)
    for table in tables:
        relative = table.relative_to(source.folder).as_posix()
        number, added = 0, {FILE: table.stem, FOLDER: table.parent.name, PATH: relative}
        unseen = {*mapping.skip_blank, *mapping.only_rows, *mapping.skip_rows}
        for number, published in enumerate(source.rows(table, under=mapping.under), start=1):
            where = f"{relative}, row {number}"
            cells = further.added({**published, **added, ROW: f"{before + number:05d}"}, table) if further.any else published
            unseen = {column for column in unseen if at_path(cells, column) is ABSENT}
            options = {column for column in options if at_path(cells, column) is ABSENT}
            if any(is_blank(cells, column) for column in mapping.skip_blank) or not is_chosen(cells, mapping.only_rows, mapping.skip_rows):
                continue
            for column in [mapping.each] if mapping.each else needed:
                # the end of a path may be missing in a row, which is then refused; a missing column stops the import, with all other faults
                if column not in cells and (column.partition(".")[0] not in cells or column == mapping.each):
                    raise DataError(*(f"{where}: {fault.text}" for fault in _faults_of_row(mapping, cells)))
            yield TableRow(table, number, where, {**cells, **added, ROW: f"{before + number:05d}"})
        if number and unseen:  # a misspelt filter would choose all rows or none
            message = f"{relative}: no row has the column {min(unseen)!r}, by which rows are chosen"
            raise DataError(message)
        before += number
    if options and before:
        message = f"{listing(mapping.files)}: no row has the column {min(options)!r} of `options`; correct it, or name it in `optional`"
        raise DataError(message)


def _group(mapping: MappingConfig, row: TableRow) -> str:
    """Return what a row is drawn with: its pair, patient or case, else itself."""
    case = "" if not mapping.case or is_blank(row.cells, mapping.case) else f"case {cell_text(at_path(row.cells, mapping.case))}"
    return group_of(mapping.pair, row.cells) or group_of(mapping.patient, row.cells) or case or row.where


def _faults_of_row(mapping: MappingConfig, cells: Mapping[str, Any]) -> list[Fault]:
    if mapping.each and mapping.each not in cells:
        return [Fault(("missing", mapping.each), missing_text(cells, mapping.each))]
    questions = _questions_of_row(mapping, cells)
    return list(dict.fromkeys(fault for one in questions for fault in faults_of(mapping, one, columns_of(mapping))))


def entries_of_row(
    mapping: MappingConfig, source: SourceFolder, row: TableRow, faults: Faults | None = None
) -> Iterator[QuestionEntry | Refusal]:
    """Make the entries of one row; one that does not fit the mapping is refused with all its faults, which are counted in `faults`."""
    needed, others = columns_of(mapping), _optional_columns(mapping)
    several = bool(mapping.each or mapping.variants)
    for place, one in enumerate(_questions_of_row(mapping, row.cells), start=1):
        cells = with_parts(mapping.parts, one) if mapping.parts else one
        where = f"{row.where}, question {place}" if several else row.where
        found = faults_of(mapping, cells, needed)
        if faults:
            faults.add(where, cells, found)
        named = _known_id(mapping, replace(row, cells=with_paths({**cells, PLACE: place}, mapping.id)))
        refusal = Refusal(where=where, reason="; ".join(fault.text for fault in found), question_id=named) if found else None
        if refusal and not all(fault.answer for fault in found):
            yield refusal
            continue
        try:
            known = {**dict.fromkeys(mapping.optional), **with_paths({**cells, PLACE: place}, (*needed, *others))}
            entry = _entry(mapping, source, replace(row, where=where, cells=known))
            # further keys with the answer are told together with the one that the mapping names
            if faults and entry.gold:
                faults.add_answer(where, known, entry.gold)
            yield refusal or entry
        except DataError as error:
            yield refusal_of(where, error, named)


def columns_of(mapping: MappingConfig) -> list[str]:
    """Return the columns that every row needs; of one column per option only the first two, because short rows may lack the others."""
    options, images = mapping.options, mapping.images
    named = [mapping.case, mapping.question, *map(column_of, mapping.text), mapping.date, mapping.language_column, *mapping.tags]
    named += mapping.id
    named += [group.column for group in (mapping.patient, mapping.pair) if group]
    if options:
        named += [
            options.column,
            *options.columns[:2],
            options.right,
            *(column for column in options.wrong if not set(column) & set("*?[")),
        ]
    if mapping.answer:
        named += [mapping.answer.column, mapping.answer.aliases]
    named += [mapping.index.set, mapping.index.splits] if mapping.index else []
    named += [mapping.rubric.column if mapping.rubric else "", mapping.reasons, mapping.findings, mapping.must_not]
    for value in mapping.fields.values():
        named += columns_of_value(value)
    named += [part.column for part in mapping.parts.values()]
    if images:
        named += images.columns
    named += paths_of_case(mapping)
    given = {*BUILT_IN, *mapping.parts, *(name for variant in mapping.variants for name in variant)}
    named += [column for variant in mapping.variants for column in variant.values()]
    return list(dict.fromkeys(column for column in named if column and column not in given and column not in mapping.optional))


def _optional_columns(mapping: MappingConfig) -> list[str]:
    """Return the columns that a row may lack."""
    values = [*mapping.fields.values(), *(value for one in mapping.rounds for value in one.fields.values())]
    sizes = [value.size_column for value in values if value.size_column]
    return [*(mapping.options.columns[2:] if mapping.options else ()), *sizes, *mapping.optional]


def _questions_of_row(mapping: MappingConfig, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the questions of a row: the row, one per variant, or one per object of its list column, with the other columns of the row."""
    if mapping.variants:
        return [{**row, **{name: at_path(row, column) for name, column in variant.items()}} for variant in mapping.variants]
    if not mapping.each:
        return [row]
    value = listed(row[mapping.each])
    around = {name: cell for name, cell in row.items() if name != mapping.each}
    return [{**around, **one} if isinstance(one, Mapping) else around for one in (value if isinstance(value, list) and value else [None])]


def _entry(mapping: MappingConfig, source: SourceFolder, place: TableRow) -> QuestionEntry:
    row = place.cells
    question_id = _id(mapping, place)
    images, pictures = mapped_pictures(mapping.images, source, row, place.table) if mapping.images else ((), {})
    # options that are pictures are named by their labels
    if mapping.options and mapping.options.pictures:
        shown, contents, names = option_pictures(mapping.options, mapping.options.pictures, source, row, place.table)
        images, pictures, options = (*images, *shown), pictures | contents, tuple(image.label for image in shown)
    else:
        options = names = _options(mapping.options, row, question_id) if mapping.options else ()
    asked, text = _asked(mapping, row)
    if mapping.runner == "choice" and mapping.facts:
        # the start, then one fact a line
        text = "\n\n".join((" ".join(text.split()), "\n".join(" ".join(fact.split()) for fact in facts_of(mapping, row))))
    if mapping.runner == "structured":
        staged = read_stages(mapping, source, row, place.table, text=text, shown=(images, pictures))
        images, pictures, turns = staged.images, staged.pictures, staged.turns
    else:
        staged, turns = None, rounds_of(mapping, row, text, asked, pictures=len(images))
    pair = group_of(mapping.pair, row)
    language = language_of(f"{text} {asked}") if mapping.language == "script" else mapping.language
    question = Question(
        question_id=question_id,
        runner=Runner(mapping.runner),
        family=mapping.family,
        question=turns[-1].question if turns else asked,
        case_id=plain_id(column_text(row, mapping.case)) if mapping.case and column_text(row, mapping.case) else "",
        patient_id=group_of(mapping.patient, row) or pair,
        pair_id=pair,
        text="" if turns else text,
        options=options,
        images=images,
        turns=turns,
        language=column_text(row, mapping.language_column)[:2].lower() or language,
        date=day_of(row.get(mapping.date)) if mapping.date else "",
        tags=tuple(f"{column.lstrip('_')}:{value}" for column in mapping.tags for value in filled_texts(_tag_values(row[column]))),
        answer_schema=staged.schema if staged else "",
    )
    gold = value_gold(question_id, staged.values, mapping.established) if staged else _gold(mapping, question, names, row)
    return QuestionEntry(
        question=question,
        gold=gold,
        pictures=pictures,
        disclosures=(disclosure(gold),) if gold and gold.findings else (),
        repeated_options=bool(mapping.options and mapping.options.repeated == "keep"),
        where=place.where,
        answer_at=_paths_with_answer(mapping, row, gold) if gold else (),
    )


def _paths_with_answer(mapping: MappingConfig, row: Mapping[str, Any], gold: Gold) -> tuple[str, ...]:
    shown = shown_objects(mapping, row)
    terms = answer_terms(gold) if shown else []
    return tuple(sorted({f"{entry.column}.{path}" for entry, value in shown for path in paths_with_answer(entry, value, terms)}))


def _id(mapping: MappingConfig, place: TableRow) -> str:
    row = place.cells
    if not mapping.id:
        return f"{plain_id(row[FILE])}-{place.number:05d}" + (f"-{row[PLACE]}" if mapping.each or mapping.variants else "")
    named = {column: column_text(row, column) for column in mapping.id}
    if empty := [column for column, text in named.items() if not text and column not in mapping.optional]:
        message = f"the column {empty[0]!r}, which names the question, is empty"
        raise DataError(message)
    return plain_id("-".join(filter(None, named.values())))


def _known_id(mapping: MappingConfig, place: TableRow) -> str:
    """Return the id of a question that may be refused; empty if the row does not name one."""
    try:
        return _id(mapping, place)
    except DataError:
        return ""


def _asked(mapping: MappingConfig, row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the question and the text of the case."""
    text = text_of(mapping, row)
    if mapping.conversation:
        asked, before = conversation_of(mapping.conversation, row)
        text = "\n\n".join(filter(None, (text, before)))
    else:
        asked = joined_text(row, mapping.question, mapping.join) if mapping.question else mapping.ask
    if mapping.case_in_question:
        vignette, asked = vignette_and_lead_in(asked)
        text = "\n\n".join(filter(None, (text, vignette)))
    asked = without_words(asked, mapping.drop)
    if mapping.boxes_in_question:
        asked = boxes_in_fractions(mapping.boxes_in_question, mapping.fields[mapping.boxes_in_question], asked, row)
    if asked and mapping.ask and (mapping.question or mapping.conversation):
        asked = f"{asked}\n{mapping.ask}"
    if mapping.text and not text and not mapping.question:
        # fixed words ask nothing without the case
        message = "the text of the case is empty"
        raise DataError(message)
    return asked, text


def _options(mapping: OptionsMapping, row: Mapping[str, Any], question_id: str) -> tuple[str, ...]:
    """Read the options; texts that stand for a missing option become empty, and are dropped at the end."""
    if mapping.right:
        return _by_digest(mapping, row, question_id)
    if mapping.fixed:
        return mapping.fixed
    found = options_at(row, mapping.column) if mapping.column else tuple(column_text(row, column) for column in mapping.columns)
    return tuple(without_empty_end(["" if is_missing(option, mapping.missing) else option for option in found]))


def _by_digest(mapping: OptionsMapping, row: Mapping[str, Any], question_id: str) -> tuple[str, ...]:
    """Order options whose right and wrong ones are in separate columns, without those that are missing."""
    columns = [column for column in sorted(row) if any(fnmatchcase(column, pattern) for pattern in mapping.wrong)]
    if not columns:
        message = f"no column fits {' or '.join(mapping.wrong)}; found {', '.join(sorted(set(row) - set(BUILT_IN)))}"
        raise DataError(message)
    wrong = [text for column in columns for text in _option_texts(row[column])]
    right = column_text(row, mapping.right)
    if is_missing(right, mapping.missing):
        message = "the right option is missing"
        raise DataError(message)
    return digest_order(question_id, (right, *(text for text in wrong if not is_missing(text, mapping.missing))))


def _option_texts(value: Any) -> list[str]:
    value = listed(value)
    return [cell_text(one) for one in value] if isinstance(value, list | tuple) else [cell_text(value)]


def _tag_values(value: Any) -> Any:
    """Return a cell as a list of tags; text is a single tag, whatever it contains."""
    return value if isinstance(value, list | tuple) else [cell_text(value)]


def _gold(mapping: MappingConfig, question: Question, names: tuple[str, ...], row: Mapping[str, Any]) -> Gold | None:
    """Read the answer; `names` are the texts of the options, or the paths of their pictures."""
    answer = mapping.answer
    text = answer_text(row, answer, mapping.join) if answer else ""
    if mapping.options and (mapping.options.right or text):
        letter = letter_of(row[mapping.options.right], names) if mapping.options.right else _letter(mapping, text, names)
        chosen = choice_gold(question, letter, established=mapping.established)
        return chosen if mapping.runner == "choice" else _open_gold(mapping, question, chosen.answer, row)
    return None if mapping.options else _open_gold(mapping, question, text, row)


def _open_gold(mapping: MappingConfig, question: Question, text: str, row: Mapping[str, Any]) -> Gold | None:
    stated = criteria_of(row[mapping.rubric.column], mapping.rubric) if mapping.rubric else ()
    if not text and not stated:
        return None
    gold = Gold(
        item_id=question.question_id,
        answer=text,
        aliases=equal_answers(row, mapping.answer, text),
        rationale=statements(row[mapping.reasons]) if mapping.reasons else (),
        findings=statements(row[mapping.findings]) if mapping.findings else (),
        must_not=statements(row[mapping.must_not]) if mapping.must_not else (),
        established=mapping.established,
    )
    check_findings(gold, AS_WRITTEN)
    penalties = tuple(criterion.text for criterion in stated if criterion.points < 0)
    return replace(gold, rubric=(*criteria(question.family, gold), *stated), must_not=(*gold.must_not, *penalties))


def _letter(mapping: MappingConfig, text: str, options: tuple[str, ...]) -> str:
    assert mapping.answer is not None
    assert mapping.options is not None
    if mapping.answer.form.startswith("number"):
        return numbered_letter(text, options, first=int(mapping.answer.form[-1]))
    # the answer may be the name of the column of its option
    if text in mapping.options.columns[: len(options)] and mapping.answer.form == "letter":
        return LETTERS[mapping.options.columns.index(text)]
    return letter_of(text, options)
