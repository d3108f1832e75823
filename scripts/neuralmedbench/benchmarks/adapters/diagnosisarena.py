"""DiagnosisArena: journal cases in three sections, asked as open questions or with four options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from neuralmedbench.benchmarks.adapters.entry import DataSet, QuestionEntry
from neuralmedbench.benchmarks.adapters.options import letter_of, options_of
from neuralmedbench.benchmarks.adapters.rows import choice_gold, column_text, entries_of, plain_id
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Axis, Family, Gold, Runner
from neuralmedbench.records.questions import Question, Refusal

FILES = ("data/test*.parquet", "test*.parquet", "*.parquet", "*.jsonl", "*.json")
SECTIONS = ("Case Information", "Physical Examination", "Diagnostic Tests")
ANSWER, OPTIONS, RIGHT = "Final Diagnosis", "Options", "Right Option"
ASK_OPEN = "What are the five most likely diagnoses, the most likely one first?"
ASK_CHOICE = "Which of the options is the most likely diagnosis?"


def read_open(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read the test split for open answers."""
    return _read(source, ("id", *SECTIONS, ANSWER), _open)


def read_choice(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read the test split with its options."""
    return _read(source, ("id", *SECTIONS, OPTIONS, RIGHT), _choice)


def _read(
    source: SourceFolder, columns: tuple[str, ...], make: Callable[[Mapping[str, Any]], QuestionEntry]
) -> Iterator[QuestionEntry | Refusal]:
    for table in source.find(*FILES):
        yield from entries_of(source, table, columns, lambda row, _: make(row))


def _text(row: Mapping[str, Any]) -> str:
    # sections with their headings, without empty ones
    text = "\n\n".join(f"{section}:\n{column_text(row, section)}" for section in SECTIONS if column_text(row, section))
    if not text:
        message = "all sections of the case are empty"
        raise DataError(message)
    return text


def _open(row: Mapping[str, Any]) -> QuestionEntry:
    question = Question(
        question_id=plain_id(column_text(row, "id")),
        runner=Runner.OPEN,
        family=Family.DIFFERENTIAL_DIAGNOSIS,
        question=ASK_OPEN,
        text=_text(row),
    )
    gold = Gold(item_id=question.question_id, answer=column_text(row, ANSWER), established="published case report")
    return QuestionEntry(question=question, gold=gold if gold.answer else None)


def _choice(row: Mapping[str, Any]) -> QuestionEntry:
    options = options_of(row[OPTIONS])
    question = Question(
        question_id=plain_id(column_text(row, "id")),
        runner=Runner.CHOICE,
        family=Family.DIFFERENTIAL_DIAGNOSIS,
        question=ASK_CHOICE,
        text=_text(row),
        options=options,
    )
    return QuestionEntry(question=question, gold=choice_gold(question, letter_of(row[RIGHT], options), established="published case report"))


HOME = "https://huggingface.co/datasets/SII-SPIRAL-MED/DiagnosisArena"
LICENCE = "as stated on its page; for research and evaluation, not for clinical use"
DATA_SETS = (
    DataSet(
        name="diagnosisarena",
        title="DiagnosisArena",
        home=HOME,
        licence=LICENCE,
        files="the test split (Parquet or JSON lines)",
        axis=Axis.DEPTH,
        expected=1000,
        read=read_open,
        samples=5,
    ),
    DataSet(
        name="diagnosisarena-choice",
        title="DiagnosisArena, four options",
        home=HOME,
        licence=LICENCE,
        files="the test split (Parquet or JSON lines)",
        axis=Axis.DEPTH,
        expected=1000,
        read=read_choice,
    ),
)
