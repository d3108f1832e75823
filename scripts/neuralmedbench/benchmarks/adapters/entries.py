"""Turn the question of a row into what the import stores: question, gold and pictures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.options import digest_order, letter_of, numbered_letter, options_of, picture_content
from neuralmedbench.benchmarks.adapters.rows import QuestionEntry, cell_text, choice_gold, language_of, list_entries, plain_id
from neuralmedbench.benchmarks.gold import criteria
from neuralmedbench.benchmarks.question import Picture, Question, Value
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.records.arm_changes import option_name
from neuralmedbench.records.items import CURRENT_SCAN, OPTION, PART, PRIOR_SCAN, Criterion, Gold, ReferenceValue, Runner
from neuralmedbench.records.questions import LETTERS, ImportedQuestion, QuestionImage, QuestionTurn
from neuralmedbench.records.value_rules import values_schema

NAMES = {PRIOR_SCAN: "Earlier image", CURRENT_SCAN: "Present image", PART: "Image"}
"""Labels by role; numbered where a question has several. No date is known."""


@dataclass
class Shown:
    """Pictures that were read: their places in the question, and their files or bytes by the name there."""

    source: SourceFolder
    table: Path
    images: tuple[QuestionImage, ...] = ()
    contents: dict[str, Path | bytes] = field(default_factory=dict)

    def add(self, pictures: Sequence[Picture]) -> None:
        """Read pictures; those of an earlier examination come before those of the present one."""
        shown = sorted((picture for picture in pictures if picture.role != OPTION), key=lambda picture: picture.role != PRIOR_SCAN)
        several = {role for role, count in Counter(picture.role for picture in shown).items() if count > 1} | {PART}
        number = Counter[str]()
        for picture in shown:
            number[picture.role] += 1
            label = NAMES.get(picture.role, "")
            numbered = f"{label} {number[picture.role]}" if label and picture.role in several else label
            self._read(f"{len(self.images) + 1:03d}", numbered, picture)

    def add_options(self, pictures: Sequence[Picture]) -> tuple[str, ...]:
        """Read pictures that are options, one a letter, and return the names by which an answer may call them."""
        options = [picture for picture in pictures if picture.role == OPTION]
        if not all(picture.file for picture in options):
            message = "an option is empty"
            raise DataError(message)
        if len(options) > len(LETTERS):
            message = f"{len(options)} options; expected 2 to {len(LETTERS)}"
            raise DataError(message)
        for place, picture in enumerate(options):
            self._read(f"option-{place}", option_name(place), picture)
        return tuple(picture.file if isinstance(picture.file, str) else option_name(place) for place, picture in enumerate(options))

    def _read(self, name: str, label: str, picture: Picture) -> None:
        self.contents[name] = picture_content(picture.file, self.source, self.table)
        self.images = (*self.images, QuestionImage(file=name, label=label, role=picture.role))


def entry_of(question: Question, mapping: MappingConfig, name: str, source: SourceFolder, table: Path) -> QuestionEntry:
    """Return the entry of a question.

    Parameters
    ----------
    question : Question
        The question in the words of its set.
    mapping : MappingConfig
        What all questions of the set have in common.
    name : str
        Id of a question without one.
    source : SourceFolder
        Folder of its pictures.
    table : Path
        Table of its row; pictures may lie beside it.

    Raises
    ------
    DataError
        If its answer fits no option, a picture is not there, or its values or rounds cannot be asked.
    """
    question_id = plain_id(question.id) if question.id else name
    pictures = Shown(source, table)
    pictures.add(question.pictures)
    names = pictures.add_options(question.pictures)
    offered = question.options if isinstance(question.options, tuple) else options_of(question.options)
    options = tuple(option_name(place) for place in range(len(names))) or offered
    if question.distractors or mapping.distractors:
        options = digest_order(question_id, (question.answer, *question.distractors))
    words = "\n".join(filter(None, (question.question, mapping.ask)))
    text = _with_facts(question) if mapping.runner == "choice" and question.facts else question.text
    turns, fields, references = _turns(question, mapping, words, pictures)
    pair = plain_id(question.pair) if question.pair else ""
    imported = ImportedQuestion(
        question_id=question_id,
        runner=Runner(mapping.runner),
        family=mapping.family,
        question=turns[-1].question if turns else words,
        case_id=plain_id(question.case) if question.case else "",
        patient_id=plain_id(question.patient) if question.patient else pair,
        pair_id=pair,
        text="" if turns else text,
        options=options,
        images=pictures.images,
        turns=turns,
        language=question.language or (language_of(f"{text} {words}") if mapping.language == "script" else mapping.language),
        date=question.date,
        tags=question.tags,
        answer_schema=values_schema(fields) if fields else "",
    )
    return QuestionEntry(
        question=imported,
        gold=value_gold(question_id, references, mapping.established) if fields else _gold(question, mapping, imported, names or options),
        pictures=pictures.contents,
        repeated_options=mapping.keep_repeated,
    )


def _with_facts(question: Question) -> str:
    """Return the start of a case in one line, and its facts, a line each."""
    return "\n\n".join((" ".join(question.text.split()), "\n".join(" ".join(fact.split()) for fact in question.facts)))


def _turns(
    question: Question, mapping: MappingConfig, words: str, pictures: Shown
) -> tuple[tuple[QuestionTurn, ...], tuple[tuple[str, str, str], ...], tuple[ReferenceValue, ...]]:
    """Return the rounds of a question, the values that it asks for (name, rule, words), and their references.

    Values decide whether an answer passes in rounds of a ladder; those of other rounds and of a retry do not.
    """
    if mapping.runner == "dialogue" and question.facts:
        reveal = "\n".join(filter(None, (question.text, *question.facts)))
        return (QuestionTurn(reveal=reveal, question=words, images=tuple(range(len(pictures.images)))),), (), ()
    problem = _problem_of_rounds(question, mapping)
    if problem:
        raise DataError(problem)
    turns: list[QuestionTurn] = []
    values = [(value, True) for value in question.values]
    for entry in question.rounds:
        start = len(pictures.images) if turns else 0
        pictures.add(entry.pictures)
        turns.append(
            QuestionTurn(
                reveal=entry.text if turns else "\n\n".join(filter(None, (question.text, entry.text))),
                question=entry.question,
                images=tuple(range(start, len(pictures.images))),
                asks=tuple(value.name for value in entry.values),
                stage=entry.stage,
                retry=entry.retry,
            )
        )
        values += [(value, bool(entry.stage) and not entry.retry) for value in entry.values]
    fields = tuple((value.name, value.rule, value.words) for value, _ in values)
    references = [_reference(value, decides=decides) for value, decides in values]
    return tuple(turns), fields, tuple(reference for reference in references if reference)


def _problem_of_rounds(question: Question, mapping: MappingConfig) -> str:
    """Return why a question cannot be asked in its rounds, or without any; empty if it can."""
    names = [value.name for value in question.values] + [value.name for entry in question.rounds for value in entry.values]
    retried = [entry.retry for entry in question.rounds]
    structured = mapping.runner == "structured"
    empty = [entry.stage or "beside the ladder" for entry in question.rounds if not entry.question]
    problems = {
        "rounds are for the runners dialogue and structured": question.rounds and not structured and mapping.runner != "dialogue",
        "the dialogue has no facts and no rounds": mapping.runner == "dialogue" and not question.rounds,
        "values are asked for by the runner structured, and by no other": structured != bool(names),
        "two values have one name": len(set(names)) < len(names),
        "every answer has the keys confidence and reasoning; name the value otherwise": {"confidence", "reasoning"} & set(names),
        "rounds of the retry stand before others": retried != sorted(retried),
        f"the question of a round is empty (stage {', '.join(empty)})": empty,
    }
    return next((text for text, holds in problems.items() if holds), "")


def _reference(value: Value, *, decides: bool) -> ReferenceValue | None:
    """Return the reference of a value; None if it is not scored."""
    if value.reference is None:
        return None
    if value.rule == "keywords":
        words = [text for text in map(cell_text, list_entries(value.reference)) if text]
        text = json.dumps(words, ensure_ascii=False) if words else ""
    else:
        text = json.dumps(value.reference) if isinstance(value.reference, list | tuple) else cell_text(value.reference)
    if not text and value.rule != "words":
        return None
    return ReferenceValue(
        field=value.name, rule=value.rule, value=text, low=value.low, high=value.high, at_least=value.at_least, decides=decides
    )


def value_gold(question_id: str, values: Sequence[ReferenceValue], established: str) -> Gold | None:
    """Return the gold of a question that asks for values; None without any reference."""
    if not values:
        return None
    decisive = [value for value in values if value.decides] or values
    shown = [f"{value.field}: {value.value}" if len(values) > 1 else value.value for value in decisive]
    return Gold(item_id=question_id, answer="; ".join(shown), established=established, values=tuple(values))


def _gold(question: Question, mapping: MappingConfig, imported: ImportedQuestion, names: tuple[str, ...]) -> Gold | None:
    """Return the gold of a question; `names` are the texts of the options, or the paths of their pictures."""
    if not imported.options:
        return _open_gold(question, mapping, imported, question.answer)
    if not question.answer:
        return None
    chosen = choice_gold(imported, _letter(question.answer, mapping, names), established=mapping.established)
    return chosen if mapping.runner == "choice" else _open_gold(question, mapping, imported, chosen.answer)


def _letter(answer: str, mapping: MappingConfig, names: tuple[str, ...]) -> str:
    if mapping.first_number is not None:
        return numbered_letter(answer, names, first=mapping.first_number)
    # the answer may be the name of the column of its option
    columns = () if isinstance(mapping.options, str) else mapping.options[: len(names)]
    return LETTERS[columns.index(answer)] if answer in columns else letter_of(answer, names)


def _open_gold(question: Question, mapping: MappingConfig, imported: ImportedQuestion, answer: str) -> Gold | None:
    stated = _criteria(question.rubric)
    if not answer and not stated:
        return None
    penalties = tuple(criterion.text for criterion in stated if criterion.points < 0)
    gold = Gold(
        item_id=imported.question_id, answer=answer, aliases=question.aliases, rationale=question.reasons, established=mapping.established
    )
    return replace(gold, rubric=(*criteria(imported.family, gold), *stated), must_not=penalties)


def _criteria(rubric: Sequence[str | Mapping[str, Any]]) -> tuple[Criterion, ...]:
    """Read criteria with their published points; those that cost points are named `harm_<n>`, the others `meets_<n>`.

    DataError if one lacks its words or points, or none earns points.
    """
    rows = []
    for number, entry in enumerate(rubric, start=1):
        stated = entry if isinstance(entry, Mapping) else {"criterion": entry}
        points, words = stated.get("points", 1.0), cell_text(stated.get("criterion"))
        # `bool` is an `int` in Python, so it is rejected separately
        if isinstance(points, bool) or not isinstance(points, int | float) or not words:
            message = f"criterion {number}: expected the keys 'criterion' and 'points'"
            raise DataError(message)
        name = f"{'harm' if points < 0 else 'meets'}_{number}"
        rows.append(Criterion(criterion=name, text=words, points=float(points), cap=stated.get("cap") is True))
    if rows and not any(criterion.points > 0 for criterion in rows):
        message = "no criterion earns points, so a score has no denominator"
        raise DataError(message)
    return tuple(rows)
