"""MedFrameQA: one question over two to five frames of a teaching video."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from neuralmedbench.benchmarks.adapters.options import letter_of, options_of
from neuralmedbench.benchmarks.adapters.rows import (
    PHYSICIAN,
    DataSet,
    QuestionEntry,
    cell,
    choice_gold,
    embedded_picture,
    entries_of,
    plain_id,
    tag,
)
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Axis, Family, Runner
from neuralmedbench.records.questions import ImportedQuestion, QuestionImage, Refusal

COLUMNS = ("question_id", "question", "options")
ANSWERS = ("correct_answer", "answer")
FRAMES = tuple(f"image_{number}" for number in range(1, 6))
"""The authors' release has one column per frame, a later upload one list (`image`), their code a list of files (`image_path`)."""


def read(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read all tables of the folder in the order of their names."""
    for table in source.find("*.parquet", "data/*.parquet", "*.jsonl", "*.json"):
        yield from entries_of(source, table, COLUMNS, lambda row, _: _entry(source, row))


def _entry(source: SourceFolder, row: Mapping[str, Any]) -> QuestionEntry:
    question_id = plain_id(cell(row, "question_id"))
    frames = _frames(source, row)
    video = cell(row, "video_id", needed=False)
    question = ImportedQuestion(
        question_id=question_id,
        runner=Runner.CHOICE,
        family=Family.QUESTION_ANSWERING,
        question=cell(row, "question"),
        case_id=plain_id(f"video-{video}") if video else "",
        options=options_of(row["options"]),
        images=tuple(QuestionImage(file=name) for name in frames),
        tags=(*(tag(name, row.get(name)) for name in ("system", "organ", "modality") if row.get(name)), f"frames:{len(frames)}"),
    )
    # the reasoning chain ends with the answer, so it is gold and no arm discloses it
    chain = cell(row, "reasoning_chain", needed=False)
    letter = letter_of(cell(row, *ANSWERS), question.options)
    gold = choice_gold(question, letter, established="key of the data set, generated from the video and reviewed", rationale=(chain,))
    return QuestionEntry(question=question, gold=gold, pictures=frames)


def _frames(source: SourceFolder, row: Mapping[str, Any]) -> dict[str, Any]:
    values = row.get("image") or [row[name] for name in FRAMES if row.get(name)] or row.get("image_path") or ()
    if not isinstance(values, list | tuple):
        message = "the column of the frames is not a list"
        raise DataError(message)
    frames = {f"frame-{place}": embedded_picture(source, value) for place, value in enumerate(values, start=1)}
    if not frames:
        message = f"no frames; expected the columns image, image_1 to image_5 or image_path, found {', '.join(sorted(row))}"
        raise DataError(message)
    return frames


DATA_SETS = (
    DataSet(
        name="medframeqa",
        title="MedFrameQA",
        home="https://huggingface.co/datasets/SuhaoYu1020/MedFrameQA",
        licence="CC BY 4.0 as its card says; the frames come from public videos whose owners keep their rights",
        files="the *.parquet files (frames are inside)",
        axis=Axis.BREADTH,
        expected=2851,
        read=read,
        persona=PHYSICIAN,
    ),
)
