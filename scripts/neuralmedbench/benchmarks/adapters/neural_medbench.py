"""Neural-MedBench: the released files, and an answer key beside them when somebody has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from neuralmedbench.benchmarks.adapters.cells import language_of, words
from neuralmedbench.benchmarks.adapters.entry import DataSet, Entry
from neuralmedbench.benchmarks.adapters.rows import plain_id, refused
from neuralmedbench.benchmarks.release_key import ReleaseKey, key_gold, read_release_key
from neuralmedbench.benchmarks.source_folder import SourceFolder, decoded
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Axis, Family, Level, Runner
from neuralmedbench.records.questions import Question, QuestionImage, QuestionTurn, Refusal

FILES = {
    "direct-diagnosis.json": Level.DIRECT,
    "complex-diseases.json": Level.COMPLEX,
    "multi-round-dialogue.json": Level.DIALOGUE,
}
"""Released files by their names, which their authors keep fixed. Only the form of the first one was ever seen."""
ANSWER_KEY = "answer-key.csv"
CASE_KEYS = ("case_id", "text", "images", "questions")
QUESTION_KEYS = ("question_number", "question_text")
FAMILY = Family.DIFFERENTIAL_DIAGNOSIS
"""Of questions about which the key says nothing."""


def read(source: SourceFolder) -> Iterator[Entry | Refusal]:
    """Read those of the three files that are there, and `answer-key.csv`."""
    there = [name for name in FILES if source.has(name)] or [path.name for path in source.find(*FILES)]
    key = read_release_key(source.file(ANSWER_KEY)) if source.has(ANSWER_KEY) else ReleaseKey({})
    for name in there:
        for number, case in enumerate(source.rows(source.folder / name), start=1):
            where = f"{name}, case {number}"
            try:
                yield from _entries(case, FILES[name], key)
            except DataError as error:
                key.pass_over(FILES[name], words(case, "case_id"))
                yield refused(where, error)
    key.check_used()


def _entries(case: Mapping[str, Any], level: Level, key: ReleaseKey) -> list[Entry]:
    _check_keys(case, CASE_KEYS, "case")
    text, images, asked = words(case, "text"), _list(case, "images"), _list(case, "questions")
    if not text and not images:
        message = "an empty placeholder of the release: neither text nor pictures"
        raise DataError(message)
    for question in asked:
        if not isinstance(question, dict):
            message = "a question is not an object"
            raise DataError(message)
        _check_keys(question, QUESTION_KEYS, "question")
    if not asked:
        message = "no question"
        raise DataError(message)
    pictures = {f"{place:03d}": decoded(str(image)) for place, image in enumerate(images, start=1)}
    questions = [_dialogue(case, level, asked)] if level is Level.DIALOGUE and len(asked) > 1 else _single(case, level, asked)
    return [_entry(question, number, words(case, "case_id"), key, pictures) for question, number in questions]


def _entry(question: Question, number: str, case_id: str, key: ReleaseKey, pictures: Mapping[str, bytes]) -> Entry:
    row = key.find(question.level, case_id, number)
    if row is None:
        return Entry(question=question, pictures=pictures)
    if question.runner is not Runner.DIALOGUE:
        question = replace(question, family=row.family)
    elif row.family is not FAMILY:
        message = f"line {row.line} of the answer key: a dialogue is of the family {FAMILY}"
        raise DataError(message)
    gold, disclosures = key_gold(question, row)
    return Entry(question=question, gold=gold, pictures=pictures, disclosures=disclosures)


def _single(case: Mapping[str, Any], level: Level, asked: Sequence[Mapping[str, Any]]) -> list[tuple[Question, str]]:
    return [(_question(case, level, question), words(question, "question_number")) for question in asked]


def _question(case: Mapping[str, Any], level: Level, asked: Mapping[str, Any]) -> Question:
    question = words(asked, "question_text")
    return Question(
        question_id=f"{_case(case, level)}-q{plain_id(words(asked, 'question_number'))}",
        runner=Runner.OPEN,
        family=FAMILY,
        question=question,
        case_id=_case(case, level),
        level=level,
        text=words(case, "text"),
        images=_images(case),
        language=language_of(question),
        tags=_tags(case, question),
    )


def _dialogue(case: Mapping[str, Any], level: Level, asked: Sequence[Mapping[str, Any]]) -> tuple[Question, str]:
    """Give several questions of one case as the rounds of a dialogue: text and pictures stand before the first one."""
    images = _images(case)
    rounds = [words(question, "question_text") for question in asked]
    turns = [
        QuestionTurn(reveal=words(case, "text") if not place else "", question=text, images=tuple(range(len(images))) if not place else ())
        for place, text in enumerate(rounds)
    ]
    if not all(rounds):
        message = "the question of a round is empty"
        raise DataError(message)
    question = Question(
        question_id=_case(case, level),
        runner=Runner.DIALOGUE,
        family=FAMILY,
        question=rounds[-1],
        case_id=_case(case, level),
        level=level,
        images=images,
        turns=tuple(turns),
        language=language_of(" ".join(rounds)),
        tags=_tags(case, " ".join(rounds)),
    )
    return question, ""


def _case(case: Mapping[str, Any], level: Level) -> str:
    """Name of the case; the three files number their cases on their own."""
    return f"{level}-{plain_id(words(case, 'case_id'))}"


def _images(case: Mapping[str, Any]) -> tuple[QuestionImage, ...]:
    return tuple(QuestionImage(file=f"{place:03d}") for place in range(1, len(_list(case, "images")) + 1))


def _tags(case: Mapping[str, Any], question: str) -> tuple[str, ...]:
    """Say in which language the case is told when it is not the question's."""
    told = language_of(words(case, "text"))
    return (f"text_language:{told}",) if words(case, "text") and told != language_of(question) else ()


def _list(case: Mapping[str, Any], key: str) -> list[Any]:
    value = case[key]
    if not isinstance(value, list):
        message = f"the key {key!r} holds no list"
        raise DataError(message)
    return value


def _check_keys(value: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    if sorted(value) != sorted(known):
        message = f"the keys of the {what} are not those of the release that is known; expected {', '.join(known)}, found {', '.join(sorted(value))}"
        raise DataError(message)


DATA_SETS = (
    DataSet(
        name="neural-medbench",
        title="Neural-MedBench",
        home="https://github.com/Neuromedbench/Neuromedbench.github.io (folder datasets), or huggingface.co/datasets/Reisen301/Neural-MedBench",
        licence="MIT, as its page states",
        files="direct-diagnosis.json, complex-diseases.json, multi-round-dialogue.json (those you have); answer-key.csv, see docs/benchmarks.md",
        axis=Axis.DEPTH,
        expected=0,
        read=read,
        samples=5,
    ),
)
