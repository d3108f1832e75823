"""GMAI-MMBench: one picture, embedded in the table, and two to five options per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from neuralmedbench.benchmarks.adapters.rows import PHYSICIAN, DataSet, QuestionEntry, cell, choice_gold, entries_of, plain_id, tag
from neuralmedbench.benchmarks.source_folder import SourceFolder, decoded
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Axis, Family, Gold, Runner
from neuralmedbench.records.questions import LETTERS, ImportedQuestion, QuestionImage, Refusal

COLUMNS = ("index", "image", "question", "A", "B")
PRINTED = "ABCDE"
TAGS = {
    "task": ("clinical vqa task", "task"),
    "department": ("department",),
    "granularity": ("perceptual granularity", "granularity"),
    "modality": ("modality",),
}
"""Columns by tag; the report groups by tags."""
SHORTEST = 100
"""Shorter cells are not pictures: some tables of this form refer to another row instead."""


def read(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read the VAL table, whose answers are public, if it is present, else every table of the folder."""
    for table in source.find("*VAL*.tsv", "*.tsv"):
        yield from entries_of(source, table, COLUMNS, lambda row, _: _entry(row))


def _entry(row: Mapping[str, Any]) -> QuestionEntry:
    question_id = plain_id(cell(row, "index"))
    offered = {letter: text for letter in PRINTED if (text := cell(row, letter, needed=False))}
    picture = cell(row, "image")
    if len(picture) < SHORTEST:
        message = "the picture's cell has no picture"
        raise DataError(message)
    question = ImportedQuestion(
        question_id=question_id,
        runner=Runner.CHOICE,
        family=Family.QUESTION_ANSWERING,
        question=cell(row, "question"),
        text=cell(row, "hint", needed=False),
        options=tuple(offered.values()),
        images=(QuestionImage(file="picture"),),
        tags=tuple(tag(name, value) for name, columns in TAGS.items() if (value := cell(row, *columns, needed=False))),
    )
    return QuestionEntry(
        question=question, gold=_gold(question, offered, cell(row, "answer", needed=False)), pictures={"picture": decoded(picture)}
    )


def _gold(question: ImportedQuestion, offered: Mapping[str, str], printed: str) -> Gold | None:
    """Return the answer by its position among the non-empty options; TEST rows have none."""
    if not printed:
        return None
    # printed letters may skip an empty option; ours do not
    places = dict(zip(offered, LETTERS, strict=False))
    return choice_gold(question, places.get(printed.upper(), ""), established="label of the source data set")


DATA_SETS = (
    DataSet(
        name="gmai-mmbench",
        title="GMAI-MMBench",
        home="https://huggingface.co/datasets/OpenGVLab/GMAI-MMBench (a form), VAL also https://huggingface.co/datasets/VLMEval/GMAI-MMBench",
        licence="as its form says; the pictures under the licences of about 285 source data sets",
        files="GMAI-MMBench_VAL.tsv (pictures are inside); the TEST tables have no answers",
        axis=Axis.BREADTH,
        expected=0,
        read=read,
        persona=PHYSICIAN,
        label_policy="none",
    ),
)
