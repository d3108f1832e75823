"""MedBookVQA: one figure of an open textbook and four options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.options import digest_order
from neuralmedbench.benchmarks.adapters.rows import (
    PHYSICIAN,
    DataSet,
    QuestionEntry,
    cell,
    choice_gold,
    entries_of,
    plain_id,
    tag,
    text_tuple,
)
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.records.items import Axis, Family, Runner
from neuralmedbench.records.questions import LETTERS, ImportedQuestion, QuestionImage, Refusal

COLUMNS = ("_id", "Question", "Answer", "Distractors")
TASKS = {"M": "modality", "A": "anatomy", "S": "symptom", "D": "disease", "SO": "surgery"}
TREES = {"modality": "Modality", "anatomy": "Anatomy", "department": "Department"}


def read(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read `data.json`; the figures are `figures/<_id>.jpg`, as unpacked from their archive."""
    table = source.find("data.json", "*/data.json")[0]
    yield from entries_of(source, table, COLUMNS, lambda row, _: _entry(source, row))


def _entry(source: SourceFolder, row: Mapping[str, Any]) -> QuestionEntry:
    identity = cell(row, "_id")
    question_id = plain_id(identity)
    options = shown_order(question_id, row)
    task = cell(row, "QAtype", needed=False)
    # classification trees of the authors, by which the report can group
    labels = row.get("LABEL") or {}
    question = ImportedQuestion(
        question_id=question_id,
        runner=Runner.CHOICE,
        family=Family.QUESTION_ANSWERING,
        question=cell(row, "Question"),
        options=options,
        images=(QuestionImage(file="figure"),),
        tags=(
            *((tag("task", TASKS.get(task, task)),) if task else ()),
            *(tag(name, value) for name, column in TREES.items() if (value := labels.get(column))),
        ),
    )
    letter = LETTERS[options.index(cell(row, "Answer"))]
    gold = choice_gold(question, letter, established="key of the data set, generated from the textbook")
    return QuestionEntry(
        question=question, gold=gold, pictures={"figure": _figure(source, identity, cell(row, "image_path", needed=False))}
    )


def shown_order(question_id: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options in the authors' printed order; if the letters give no order, by a digest of question and option."""
    options = (cell(row, "Answer"), *text_tuple(row, "Distractors"))
    letters = [str(row.get("correct_choice") or "").strip().upper(), *(str(one).strip().upper() for one in row.get("other_choices") or ())]
    if sorted(letters) == list(LETTERS[: len(options)]):
        return tuple(option for _, option in sorted(zip(letters, options, strict=True)))
    return digest_order(question_id, options)


def _figure(source: SourceFolder, identity: str, listed: str) -> Path:
    names = (f"figures/{identity}.jpg", f"{identity}.jpg", f"figures/{Path(listed).name}" if listed else "")
    return source.picture(next((name for name in names if name and source.has(name)), names[0]))


DATA_SETS = (
    DataSet(
        name="medbookvqa",
        title="MedBookVQA",
        home="https://huggingface.co/datasets/slyipae1/MedBookVQA",
        licence="MIT for the code as its repository says; for the data as its card says (figures of open-access textbooks)",
        files="data.json and figures/<_id>.jpg (unpack figures.zip)",
        axis=Axis.BREADTH,
        expected=5000,
        read=read,
        persona=PHYSICIAN,
        label_policy="none",
    ),
)
