"""Neural-MedBench: the released files, and an optional answer key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.rows import DataSet, QuestionEntry, column_text, language_of, plain_id, refusal_of
from neuralmedbench.benchmarks.answers_table import AnswerRow, answer_row, read_cells
from neuralmedbench.benchmarks.gold import AS_WRITTEN, check_findings, disclosure, gold_for
from neuralmedbench.benchmarks.source_folder import SourceFolder, decoded
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.columns import ANSWER_KEY_COLUMNS
from neuralmedbench.records.items import NO_LESION, Axis, Disclosure, Family, Gold, Level, Runner
from neuralmedbench.records.questions import ImportedQuestion, QuestionImage, QuestionTurn, Refusal
from neuralmedbench.records.vocabulary import normal_form

FAMILIES = (Family.DIFFERENTIAL_DIAGNOSIS, Family.LESION_RECOGNITION, Family.RATIONALE_GENERATION)

KeyPlace = tuple[Level, str, str]
"""Level, case and question number of a row; level and number may be empty."""

FILES = {
    "direct-diagnosis.json": Level.DIRECT,
    "complex-diseases.json": Level.COMPLEX,
    "multi-round-dialogue.json": Level.DIALOGUE,
}
"""Level of each released file, by its fixed name. Only the format of the first file has been seen."""

ANSWER_KEY = "answer-key.csv"
CASE_KEYS = ("case_id", "text", "images", "questions")
QUESTION_KEYS = ("question_number", "question_text")

FAMILY = Family.DIFFERENTIAL_DIAGNOSIS
"""Family of questions without a family in the key."""


@dataclass(frozen=True)
class KeyRow:
    """One row of the key: line, answer, and family of its question."""

    line: int
    answer: AnswerRow
    family: Family


class ReleaseKey:
    """The rows of an answer key, each for one question or one dialogue."""

    def __init__(self, rows: Mapping[KeyPlace, KeyRow]) -> None:
        self.rows = rows
        self._used: set[int] = set()

    def find(self, level: Level, case_id: str, number: str) -> KeyRow | None:
        """Return the row of a question, None if the key has none; `number` is empty for a dialogue.

        ConfigError if another question already has the row, which then lacks the level or number that distinguishes them.
        """
        # the most specific row first: with number and level, then without level, then without number
        places = [(known, case_id, part) for part in dict.fromkeys((number, "")) for known in (level, Level.NONE)]
        row = next((self.rows[place] for place in places if place in self.rows), None)
        if row is not None and row.line in self._used:
            message = f"answer key, line {row.line}: fits several questions; fill in level and question_number"
            raise ConfigError(message)
        if row is not None:
            self._used.add(row.line)
        return row

    def pass_over(self, level: Level, case_id: str) -> None:
        """Mark the rows of a refused case as used."""
        self._used |= {row.line for (of, case, _), row in self.rows.items() if case == case_id and of in {level, Level.NONE}}

    def check_used(self) -> None:
        """Raise DataError, with the first such line, if rows of the key fit no question."""
        if left := sorted(row.line for row in self.rows.values() if row.line not in self._used):
            message = (
                f"answer key, line {left[0]}: fits no question of the released files ({len(left)} such rows); compare case_id, level and"
                " question_number (a dialogue has no question_number)"
            )
            raise DataError(message)


def read(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read those of the three files that exist, and `answer-key.csv`."""
    names = [name for name in FILES if source.has(name)] or [path.name for path in source.find(*FILES)]
    key = _read_release_key(source.file(ANSWER_KEY)) if source.has(ANSWER_KEY) else ReleaseKey({})
    for name in names:
        for number, case in enumerate(source.rows(source.folder / name), start=1):
            where = f"{name}, case {number}"
            try:
                yield from _entries(case, FILES[name], key)
            except DataError as error:
                key.pass_over(FILES[name], column_text(case, "case_id"))
                yield refusal_of(where, error)
    key.check_used()


def _read_release_key(path: Path) -> ReleaseKey:
    """Read an answer key, a CSV with `ANSWER_KEY_COLUMNS`, of which `case_id` and `diagnosis` are required.

    ConfigError for other columns; DataError for an invalid cell or two rows for one question.
    """
    rows: dict[KeyPlace, KeyRow] = {}
    for line, cells in read_cells(path, ANSWER_KEY_COLUMNS):
        where = f"{path.name}, line {line}"
        answer = answer_row(where, cells)
        place = (answer.level, answer.case_id, cells.get("question_number", "").strip())
        if place in rows:
            message = f"{where}: line {rows[place].line} is for the same question; keep one"
            raise DataError(message)
        rows[place] = KeyRow(line, answer, _key_family(where, cells.get("family", "")))
    return ReleaseKey(rows)


def _key_family(where: str, text: str) -> Family:
    name = text.strip().lower() or FAMILIES[0]
    if name not in FAMILIES:
        message = f"{where}, column family: expected one of {', '.join(FAMILIES)}, or nothing"
        raise DataError(message)
    return Family(name)


def _entries(case: Mapping[str, Any], level: Level, key: ReleaseKey) -> list[QuestionEntry]:
    _check_keys(case, CASE_KEYS, "case")
    text, images, asked = column_text(case, "text"), _list(case, "images"), _list(case, "questions")
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
    # several questions of a dialogue case are its rounds; otherwise each question is an item
    questions = [_dialogue(case, level, asked)] if level is Level.DIALOGUE and len(asked) > 1 else _single(case, level, asked)
    return [_entry(question, number, column_text(case, "case_id"), key, pictures) for question, number in questions]


def _check_keys(value: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    if sorted(value) != sorted(known):
        message = (
            f"the keys of the {what} are not those of the known release; expected {', '.join(known)}, found {', '.join(sorted(value))}"
        )
        raise DataError(message)


def _list(case: Mapping[str, Any], key: str) -> list[Any]:
    value = case[key]
    if not isinstance(value, list):
        message = f"the key {key!r} is not a list"
        raise DataError(message)
    return value


def _dialogue(case: Mapping[str, Any], level: Level, asked: Sequence[Mapping[str, Any]]) -> tuple[ImportedQuestion, str]:
    """Convert several questions of one case to the rounds of a dialogue; text and pictures are shown in the first."""
    images = _images(case)
    rounds = [column_text(question, "question_text") for question in asked]
    turns = [
        QuestionTurn(
            reveal=column_text(case, "text") if not place else "", question=text, images=tuple(range(len(images))) if not place else ()
        )
        for place, text in enumerate(rounds)
    ]
    if not all(rounds):
        message = "the question of a round is empty"
        raise DataError(message)
    question = ImportedQuestion(
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


def _images(case: Mapping[str, Any]) -> tuple[QuestionImage, ...]:
    return tuple(QuestionImage(file=f"{place:03d}") for place in range(1, len(_list(case, "images")) + 1))


def _case(case: Mapping[str, Any], level: Level) -> str:
    """Return the id of the case; each of the three files has its own numbering."""
    return f"{level}-{plain_id(column_text(case, 'case_id'))}"


def _tags(case: Mapping[str, Any], question: str) -> tuple[str, ...]:
    """Tag the language of the case text if it differs from the question's."""
    language = language_of(column_text(case, "text"))
    return (f"text_language:{language}",) if column_text(case, "text") and language != language_of(question) else ()


def _single(case: Mapping[str, Any], level: Level, asked: Sequence[Mapping[str, Any]]) -> list[tuple[ImportedQuestion, str]]:
    return [(_question(case, level, question), column_text(question, "question_number")) for question in asked]


def _question(case: Mapping[str, Any], level: Level, asked: Mapping[str, Any]) -> ImportedQuestion:
    question = column_text(asked, "question_text")
    return ImportedQuestion(
        question_id=f"{_case(case, level)}-q{plain_id(column_text(asked, 'question_number'))}",
        runner=Runner.OPEN,
        family=FAMILY,
        question=question,
        case_id=_case(case, level),
        level=level,
        text=column_text(case, "text"),
        images=_images(case),
        language=language_of(question),
        tags=_tags(case, question),
    )


def _entry(question: ImportedQuestion, number: str, case_id: str, key: ReleaseKey, pictures: Mapping[str, bytes]) -> QuestionEntry:
    row = key.find(question.level, case_id, number)
    if row is None:
        return QuestionEntry(question=question, pictures=pictures)
    if question.runner is not Runner.DIALOGUE:
        question = replace(question, family=row.family)
    elif row.family is not FAMILY:
        message = f"line {row.line} of the answer key: a dialogue is of the family {FAMILY}"
        raise DataError(message)
    gold, disclosures = _key_gold(question, row)
    return QuestionEntry(question=question, gold=gold, pictures=pictures, disclosures=disclosures)


def _key_gold(question: ImportedQuestion, row: KeyRow) -> tuple[Gold, tuple[Disclosure, ...]]:
    """Return the gold of a question, and its findings for the arm that discloses them.

    DataError if the findings name the diagnosis, a lesion question has no lesion, or there is not one leader per round.
    """
    where = f"line {row.line} of the answer key"
    gold = gold_for(question.question_id, row.family, row.answer, AS_WRITTEN)
    if row.family is Family.LESION_RECOGNITION and gold.lesion is None and normal_form(gold.answer) != NO_LESION:
        message = f"{where}: a question on a lesion needs lesion_location, or the diagnosis '{NO_LESION}'"
        raise DataError(message)
    if gold.turn_leaders and len(gold.turn_leaders) != len(question.turns):
        message = f"{where}: {len(gold.turn_leaders)} turn_leaders for {len(question.turns)} rounds"
        raise DataError(message)
    if row.family is not Family.LESION_RECOGNITION:
        check_findings(gold, AS_WRITTEN)
    gold = replace(gold, established=gold.established or "answer key")
    return gold, (disclosure(gold),) if gold.findings else ()


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
