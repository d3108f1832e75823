"""Import a data set: every row is accepted or refused with a reason, and nothing is written before all rows are read."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.benchmarks.adapters.rows import DataSet, QuestionEntry, refusal_of
from neuralmedbench.benchmarks.question_items import problem_of_options, problem_of_turns
from neuralmedbench.benchmarks.source_folder import RowError, SourceFolder
from neuralmedbench.config.load import read_yaml
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import write_json_record, write_lines
from neuralmedbench.files.plain_pictures import MAX_BYTES, picture_head, shows_nothing
from neuralmedbench.records.items import OPTION, Disclosure, Gold, Kind, Runner
from neuralmedbench.records.model_marks import marks_in, with_inert_texts, with_picture_names
from neuralmedbench.records.questions import (
    ANSWERS,
    DISCLOSURES,
    IMAGE_COLUMNS,
    IMAGES,
    IMPORT_RECORD,
    LETTERS,
    PICTURE,
    QUESTIONS,
    ImportedQuestion,
    ImportRecord,
    QuestionImage,
    Refusal,
)
from neuralmedbench.records.value_rules import problem_of_values
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.records.words import count_words, counted, listing
from neuralmedbench.runtime.atomic_write import atomic_file, atomic_folder, write_text

LONG_WORDS = 60
"""Longer questions are assumed to describe the case."""

QUESTION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
OPTIONS = range(2, len(LETTERS) + 1)
SHOWN_REASONS = 5
SHOWN_SOURCES = 20
"""Most files of a set whose digests are printed; some sets have a file for every question."""


@dataclass(frozen=True)
class ImportPaths:
    """Output folders of an import: its tables (shareable if its licence allows) and its pictures (never shared)."""

    tables: Path
    pictures: Path


class _Store:
    """Pictures by the digest of their bytes, each written once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, tuple[str, str, int, int]] = {}
        self.flat: set[str] = set()
        self._by_path: dict[Path, str] = {}

    def take(self, content: Path | bytes) -> str:
        """Write a picture and return its name; DataError if it is not a picture, damaged, or too large."""
        if isinstance(content, Path):
            if content not in self._by_path:
                if content.stat().st_size > MAX_BYTES:
                    raise DataError(_too_large(content.stat().st_size))
                self._by_path[content] = self._write(content.read_bytes())
            return self._by_path[content]
        if len(content) > MAX_BYTES:
            raise DataError(_too_large(len(content)))
        return self._write(content)

    def _write(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self.rows:
            head = picture_head(content)
            name = f"{digest[:24]}.{head.suffix}"
            (self.folder / name).write_bytes(content)
            if shows_nothing(content, head):
                self.flat.add(name)
            self.rows[digest] = (name, digest, head.width, head.height)
        return self.rows[digest][0]


def check_name(path: Path, places: ImportPaths) -> None:
    """Reject the name of another benchmark, because an import replaces the whole folder of raw files.

    Parameters
    ----------
    path : Path
        YAML file of the benchmark of this name.
    places : ImportPaths
        Output folders of an import of this name.

    Raises
    ------
    ConfigError
        If the YAML belongs to another benchmark, or the folder contains files that no import wrote.
    """
    values = read_yaml(path) if path.exists() else None
    other = isinstance(values, dict) and Path(values.get("questions") or "").as_posix() != places.tables.as_posix()
    if other or (places.pictures.exists() and not (places.tables / IMPORT_RECORD).exists()):
        message = f"{path.stem} is the name of another benchmark, whose raw files would be replaced; give another one with --name"
        raise ConfigError(message)


def import_set(data_set: DataSet, folder: Path, benchmark: str, places: ImportPaths, *, part: bool = False) -> ImportRecord:
    """Import a data set.

    Parameters
    ----------
    data_set : DataSet
        The data set.
    folder : Path
        Folder of its files.
    benchmark : str
        Its name as a benchmark.
    places : ImportPaths
        Output folders; their content is replaced.
    part : bool
        Whether the number of questions may differ from the published one.

    Returns
    -------
    ImportRecord
        Counts of rows found, imported and refused.

    Raises
    ------
    DataError
        If files or columns do not match the set, the number of questions is not the published one, or no row is accepted.
    """
    source = SourceFolder(folder)
    # the pictures replace earlier ones only if the whole block succeeds
    with atomic_folder(places.pictures) as pictures:
        store = _Store(pictures)
        accepted, refused, marks = _accept_rows(data_set.read(source), store)
        found = len(accepted) + len(refused)
        _check_number(data_set, found, part=part)
        if not found:
            message = f"{data_set.name}: the files have no row to import, or the mapping leaves out all of them"
            raise DataError(message)
        if not accepted:
            reasons = _first_of_each_reason(refused)
            message = f"{data_set.name}: none of {found} rows can be used; the first: {_told(reasons[0])}"
            others = [_told(row) for row in reasons[1:SHOWN_REASONS]]
            if len(reasons) > SHOWN_REASONS:
                others.append(f"{len(reasons) - SHOWN_REASONS} more reasons in other rows")
            raise DataError(message, *others)
        questions = [entry.question for entry in accepted]
        gold = [entry.gold for entry in accepted if entry.gold is not None]
        record = ImportRecord(
            benchmark=benchmark,
            data_set=data_set.name,
            licence=data_set.licence,
            home=data_set.home,
            sources={name: sha256_of(folder / name) for name in sorted(source.read)},
            expected=data_set.expected,
            found=found,
            imported=len(accepted),
            refused=tuple(refused),
            images=len(store.rows),
            without_answer=len(accepted) - len(gold),
            empty=_empty_fields(questions),
            long_questions=sum(count_words(question.question) > LONG_WORDS for question in questions),
            answer_in_text={entry.question.question_id: entry.answer_at for entry in accepted if entry.answer_at},
            marks=marks,
            flat=tuple(row.question_id for row in questions if store.flat & {image.file for image in row.images}),
            function=sha256_of(data_set.function) if data_set.function else "",
        )
        write_lines(places.tables / QUESTIONS, ImportedQuestion, questions)
        write_lines(places.tables / ANSWERS, Gold, gold)
        write_lines(places.tables / DISCLOSURES, Disclosure, [row for entry in accepted for row in entry.disclosures])
        _write_images(places.tables / IMAGES, store)
        write_json_record(
            places.tables / IMPORT_RECORD,
            record,
            without=frozenset(name for name in ("marks", "flat", "function") if not getattr(record, name)),
        )
    return record


def _with_inert_marks(row: QuestionEntry) -> tuple[QuestionEntry, tuple[str, ...]]:
    """Return a row whose texts hold no marks of a model's pictures or turns, and the marks that they held; names of files stay."""
    marks = marks_in(row.question.question)
    pictures = [image for image in row.question.images if image.role != OPTION]
    names = [image.label or PICTURE.replace("{number}", str(number)) for number, image in enumerate(pictures, start=1)]
    asked = replace(row.question, question=with_picture_names(row.question.question, names), images=())
    question, gold, disclosures = with_inert_texts((asked, row.gold, row.disclosures), marks)
    images = tuple(replace(image, label=with_inert_texts(image.label, marks)) for image in row.question.images)
    inert = replace(row, question=replace(question, images=images), gold=gold, disclosures=disclosures)
    return (inert if marks else row), tuple(dict.fromkeys(marks))


def _accept_rows(
    rows: Iterable[QuestionEntry | Refusal], store: _Store
) -> tuple[list[QuestionEntry], list[Refusal], dict[str, tuple[str, ...]]]:
    """Return the rows that can be asked, the others with their reason, and the marks of models in the former, by question."""
    marks: dict[str, tuple[str, ...]] = {}
    accepted: list[QuestionEntry] = []
    refused: list[Refusal] = []
    seen: dict[str, str] = {}
    for number, published in enumerate(rows, start=1):
        if isinstance(published, Refusal):
            refused.append(published)
            continue
        row, found = _with_inert_marks(published)
        where, named = row.where or f"row {number}", row.question.question_id
        # an invalid row is refused with its reason, and the import goes on
        try:
            _check_question(row.question, row.gold, repeated_options=row.repeated_options)
            if named in seen:
                message = "the id is repeated, and the first question with it was imported; give each question an id of its own"
                raise RowError(message, f"it in {seen[named]} too")
            accepted.append(_with_pictures(row, store))
            seen[named] = where
            marks |= {named: found} if found else {}
        except DataError as error:
            refused.append(refusal_of(where, error, named))
    return accepted, refused, marks


def _place(refusal: Refusal) -> str:
    return f"{refusal.where}, id {refusal.question_id}" if refusal.question_id else refusal.where


def _found(refusal: Refusal) -> str:
    return f"; found {refusal.found}" if refusal.found else ""


def _told(refusal: Refusal) -> str:
    return f"{_place(refusal)}: {refusal.reason}{_found(refusal)}"


def _first_of_each_reason(refused: Iterable[Refusal]) -> list[Refusal]:
    first: dict[str, Refusal] = {}
    for row in refused:
        first.setdefault(row.reason, row)
    return list(first.values())


def _check_question(question: ImportedQuestion, gold: Gold | None, *, repeated_options: bool = False) -> None:
    """Reject a question that cannot be asked or scored: invalid id, no text, unusable options or answer, or a turn with an unknown picture."""
    problem = _problem(question, gold, repeated_options=repeated_options)
    if problem:
        raise DataError(problem)


def _problem(question: ImportedQuestion, gold: Gold | None, *, repeated_options: bool) -> str:
    if not QUESTION_ID.fullmatch(question.question_id):
        return "the id has characters other than letters, digits, '.', '-' and '_', or is longer than 120"
    if not question.question.strip() and not question.turns:
        return "the question is empty"
    if any(place >= len(question.images) for turn in question.turns for place in turn.images):
        return "a turn names a picture that the question does not have"
    if gold is not None and gold.item_id != question.question_id:
        return "the answer belongs to another question"
    if question.runner is Runner.CHOICE:
        return problem_of_options(question) or _problem_of_choice(question, gold, repeated_options=repeated_options)
    problem = _problem_of_names(question, gold) or problem_of_options(question) or problem_of_turns(question)
    return problem or problem_of_values(question.answer_schema, gold)


def _problem_of_names(question: ImportedQuestion, gold: Gold | None) -> str:
    """Return why an open question cannot be asked as a choice among its options; empty if it can, or has none."""
    if not question.options:
        return ""
    names = {normal_form(name) for name in (gold.answer, *gold.aliases)} if gold else set()
    right = sum(normal_form(option) in names for option in question.options)
    if gold is not None and right != 1:
        return f"{right} of its options are the reference; expected one"
    return _problem_of_choice(question, None, repeated_options=False)


def _problem_of_choice(question: ImportedQuestion, gold: Gold | None, *, repeated_options: bool) -> str:
    options = [" ".join(option.split()).casefold() for option in question.options]
    if len(options) not in OPTIONS:
        return f"{len(options)} options; expected {OPTIONS[0]} to {OPTIONS[-1]}"
    if "" in options:
        return "an option is empty"
    if len(set(options)) < len(options) and not repeated_options:
        return "an option is repeated"
    if gold is not None and gold.choice not in tuple(LETTERS[: len(options)]):
        return f"the right letter is not one of {LETTERS[0]} to {LETTERS[len(options) - 1]}"
    return ""


def _with_pictures(entry: QuestionEntry, store: _Store) -> QuestionEntry:
    """Return the entry with its pictures under their names in the store."""

    def stored(image: QuestionImage) -> QuestionImage:
        return replace(image, file=store.take(entry.pictures[image.file]))

    question = replace(entry.question, images=tuple(stored(image) for image in entry.question.images))
    if problem := problem_of_options(question):  # the digests now show which pictures are the same
        raise DataError(problem)
    return replace(entry, question=question, pictures={})


def _check_number(data_set: DataSet, found: int, *, part: bool) -> None:
    if data_set.expected and found != data_set.expected and not part:
        message = (
            f"{data_set.name}: published with {data_set.expected} questions, found {found}; get the missing files, or give --part to import a"
            " part"
        )
        raise DataError(message)


def _empty_fields(questions: Iterable[ImportedQuestion]) -> dict[str, int]:
    """Count, by field, the questions that lack what other questions of the set have."""
    rows = list(questions)
    names = ("text", "record", "given", "images", "options", "date", "pair_id", "patient_id")
    lacking = {name: sum(not getattr(row, name) for row in rows) for name in names}
    return {name: number for name, number in lacking.items() if 0 < number < len(rows)}


def _write_images(path: Path, store: _Store) -> None:
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(IMAGE_COLUMNS)
        writer.writerows(store.rows.values())


def write_yaml(path: Path, data_set: DataSet, record: ImportRecord, places: ImportPaths) -> bool:
    """Write the YAML file of an imported benchmark, unless one exists: a user's settings are never replaced.

    Returns
    -------
    bool
        True if it was written.
    """
    values = {
        "title": data_set.title,
        "kind": (Kind.PICTURES if record.images else Kind.TEXT).value,
        "axis": data_set.axis.value,
        "source": places.pictures.as_posix(),
        "questions": places.tables.as_posix(),
        "private": True,
        "subjects": "public",
        "deidentification": {"burned_in": "keep"},
        "arms": ["full", "no_image"] if record.images else ["full"],
        "samples": data_set.samples,
        "label_policy": data_set.label_policy,
        **({"persona": data_set.persona} if data_set.persona else {}),
        **({"strategies": ["direct", "ask"]} if data_set.asks else {}),
    }
    head = (
        f"# Imported by nmb benchmark import. Licence: {data_set.licence}.\n# private: true keeps it out of what is recorded and shared.\n"
    )
    return write_new(path, head, values)


def write_new(path: Path, head: str, values: Mapping[str, Any]) -> bool:
    """Write a YAML file with comment lines on top, unless it exists; return True if it was written."""
    if path.exists():
        return False
    write_text(path, head + yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=120))
    return True


def import_summary(record: ImportRecord, *, written: bool) -> str:
    """Summarise an import: expected and imported counts, refusals by reason, empty fields, and digests of the sources."""
    expected = f"{record.expected} published, " if record.expected else ""
    counts = f"{expected}{record.found} found, {record.imported} imported, {len(record.refused)} refused, {record.images} pictures"
    lines = [f"{record.benchmark}: {counts}, {record.without_answer} without an answer"]
    # the most frequent reasons with their first row
    reasons = Counter(refusal.reason for refusal in record.refused).most_common()
    for reason, number in reasons[:SHOWN_REASONS]:
        first = next(refusal for refusal in record.refused if refusal.reason == reason)
        lines.append(f"  refused {number}: {reason} (first: {_place(first)}{_found(first)})")
    if others := sum(number for _, number in reasons[SHOWN_REASONS:]):
        lines.append(f"  refused {others} more, for other reasons: import.json has every row")
    lines += [f"  empty in {number} questions: {name}" for name, number in sorted(record.empty.items())]
    if record.long_questions:
        lines.append(
            f"  {record.long_questions} questions of more than {LONG_WORDS} words: neither max_case_words nor the arms reach a case described in the"
            " question; `case_in_question: true` in a mapping moves it into the text of the case"
        )
    if record.images:
        lines.append(
            "  words in pictures (names of uploaders, of hospitals, of patients) are sent as they are: look at some; `deidentification:"
            " {burned_in: hide}` in the benchmark's yaml hides them, and letters that a question needs"
        )
    if record.answer_in_text:
        lines.append(_answer_in_text(record))
    if record.marks:
        lines.append(_marks(record))
    if record.flat:
        lines.append(
            f"  a picture of one grey or colour in {counted(len(record.flat), 'question')} (first: {record.flat[0]}): it shows nothing, and a run"
            " leaves these questions out"
        )
    lines += [f"  sha256 {digest}  {name}" for name, digest in list(record.sources.items())[:SHOWN_SOURCES]]
    if (more := len(record.sources) - SHOWN_SOURCES) > 0:
        lines.append(f"  sha256 of {more} more files: import.json")
    kept = "written" if written else "exists and is unchanged"
    lines.append(f"config/benchmarks/{record.benchmark}.yaml {kept}; add {record.benchmark} to `benchmarks` of your configuration")
    return "\n".join(lines)


def _marks(record: ImportRecord) -> str:
    """Say how many questions hold marks by which models know a picture's place or a turn, and which."""
    marks = [mark for mark, _ in Counter(mark for found in record.marks.values() for mark in found).most_common()]
    return (
        f"  marks of models in {counted(len(record.marks), 'question')} ({listing(marks, SHOWN_REASONS)}; first: {next(iter(record.marks))}):"
        " they would bind a picture or end the question, so a line of picture marks alone is left out, a mark in a sentence becomes the name of its picture"
        " where there are as many marks as pictures, and the others are written as words, `(image 1)`"
    )


def _answer_in_text(record: ImportRecord) -> str:
    """Say how many questions have a line of their text that is the answer, and below which headings."""
    headings = Counter(heading for entry in record.answer_in_text.values() for heading in set(entry))
    named = listing([f"{heading} ({count})" for heading, count in sorted(headings.items())], SHOWN_REASONS)
    first = next(iter(record.answer_in_text))
    return (
        f"  a line of the text is the answer in {len(record.answer_in_text)} of {record.imported} questions: {named}; first: {first}."
        f" A history may name it honestly: read them (answer_in_text in import.json; data/leaks/{record.benchmark}.html after the first run)"
    )


def _too_large(size: int) -> str:
    return f"a picture of {size / 10**6:.0f} MB; at most {MAX_BYTES // 10**6} MB"
