"""MediConfusion: one question asked of two pictures that look alike, with opposite answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from neuralmedbench.benchmarks.adapters.entry import DataSet, QuestionEntry
from neuralmedbench.benchmarks.adapters.rows import choice_gold, plain_id, refusal_of
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Axis, Family, Runner
from neuralmedbench.records.questions import Question, QuestionImage, Refusal

COLUMNS = ("im_1_local", "im_2_local", "question", "option_A", "option_B", "im_1_correct", "im_2_correct")
LETTERS = {"a": "A", "option_a": "A", "b": "B", "option_b": "B"}


def read(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read `dataset.json`; the pictures are `<im_1_local>.jpg`, as named by the authors' download script."""
    table = source.find("dataset.json", "*/dataset.json")[0]
    for row in source.rows(table, COLUMNS):
        pair = plain_id(str(row["_key"]))
        for place in ("1", "2"):
            where = f"pair {pair}, picture {place}"
            try:
                yield _entry(source, row, pair, place)
            except DataError as error:
                yield refusal_of(where, error)


def _entry(source: SourceFolder, row: Mapping[str, Any], pair: str, place: str) -> QuestionEntry:
    question_id = f"{pair}-{place}"
    name = f"{row[f'im_{place}_local']}.jpg"
    folder = next((folder for folder in ("images", "image", "") if source.has(f"{folder}/{name}".lstrip("/"))), "")
    # the letter is written as `A` or `option_A`
    letter = LETTERS.get(str(row[f"im_{place}_correct"]).strip().lower(), "")
    question = Question(
        question_id=question_id,
        runner=Runner.CHOICE,
        family=Family.QUESTION_ANSWERING,
        question=str(row["question"]).strip(),
        options=(str(row["option_A"]).strip(), str(row["option_B"]).strip()),
        images=(QuestionImage(file=question_id),),
        # two pictures of different people share one question, so the statistical unit is the pair
        case_id=pair,
        patient_id=pair,
        pair_id=pair,
        tags=tuple(f"category:{name}" for name in row.get(f"category_{place}") or ()),
    )
    return QuestionEntry(
        question=question,
        gold=choice_gold(question, letter, established="label of the data set"),
        pictures={question_id: source.picture(f"{folder}/{name}".lstrip("/"))},
    )


DATA_SETS = (
    DataSet(
        name="mediconfusion",
        title="MediConfusion",
        home="https://github.com/MShahabSepehri/MediConfusion (its script fetches the pictures from PubMed Central)",
        licence="as stated in its repository; the pictures under the licences of their articles",
        files="dataset.json and images/<id>.jpg",
        axis=Axis.CONTROL,
        expected=352,
        read=read,
    ),
)
