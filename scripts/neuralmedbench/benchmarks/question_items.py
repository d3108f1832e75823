"""Items of an imported data set: its questions, with the pictures that passed de-identification."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.benchmarks.item_set import BenchmarkItems, exemplars_of
from neuralmedbench.benchmarks.neurovlm_labels import read_table
from neuralmedbench.benchmarks.sources import item_image
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.lines import read_lines
from neuralmedbench.records.case import PictureFate, PictureManifest, State
from neuralmedbench.records.items import OPTION, Disclosure, Gold, Item, ItemImage, Runner, Turn
from neuralmedbench.records.questions import ANSWERS, DISCLOSURES, IMAGES, LETTERS, QUESTIONS, Question, QuestionImage, QuestionSet


def option_name(place: int) -> str:
    """Text of an option that is a picture and has no other, by its place from 0: the label under which the picture is shown."""
    return f"Option {LETTERS[place]}"


def problem_of_options(question: Question) -> str:
    """Say why pictures cannot be options of a question; empty when they can, or there are none."""
    pictures = [image for image in question.images if image.role == OPTION]
    if not pictures:
        return ""
    if question.runner is not Runner.CHOICE:
        return "a picture is an option of a question that has none"
    if {image.label for image in pictures} - set(question.options):
        return "the label of a picture that is an option is no option's text"
    if len({image.label for image in pictures}) < len(pictures):
        return "two pictures are one option"
    if len({image.file for image in pictures}) < len(pictures):
        return "two options are the same picture"
    return ""


def in_letter_order(question: Question) -> Sequence[QuestionImage]:
    """Pictures of a question of choice: those that it is about, behind them those that are options, in the order of their letters."""
    places = {text: place for place, text in enumerate(question.options, start=1)}
    return sorted(question.images, key=lambda image: places[image.label] if image.role == OPTION else 0)


def read_questions(folder: Path) -> QuestionSet:
    """Read what `nmb benchmark import` wrote; DataError when a file is absent or a line does not fit."""
    with (folder / IMAGES).open(encoding="utf-8", newline="") as file:
        files = tuple(row["file_path"] for row in csv.DictReader(file))
    return QuestionSet(
        questions=tuple(read_lines(folder / QUESTIONS, Question)),
        gold=tuple(read_lines(folder / ANSWERS, Gold)),
        disclosures=tuple(read_lines(folder / DISCLOSURES, Disclosure)),
        files=files,
    )


def read_question_set(benchmark: str, config: BenchmarkConfig) -> QuestionSet:
    """Read the questions of a benchmark that has no scans: an imported data set, or the table of one picture a row; errors as theirs."""
    return read_questions(Path(config.questions)) if config.questions else read_table(config, benchmark)


def build_questions(benchmark: str, config: BenchmarkConfig, asked: QuestionSet, manifest: PictureManifest, folder: Path) -> BenchmarkItems:
    """Build the items of an imported data set.

    Parameters
    ----------
    benchmark : str
        Its name.
    config : BenchmarkConfig
        Its yaml.
    asked : QuestionSet
        Its questions.
    manifest : PictureManifest
        The de-identified pictures.
    folder : Path
        Folder of the manifest, relative to the repository.

    Returns
    -------
    Built
        One item a question all of whose pictures passed, and its gold; questions that are examples become examples for few-shot prompts.

    Raises
    ------
    DataError
        If no question is left, one has two answers, or pictures are options that it does not have.
    """
    passed = _passed(asked.files, manifest)
    built = {
        exemplar: [
            _item(benchmark, config, question, passed, folder)
            for question in asked.questions
            if question.exemplar is exemplar and all(image.file in passed for image in question.images)
        ]
        for exemplar in (False, True)
    }
    ids = {item.item_id for item in built[False]}
    gold = {f"{benchmark}/{row.item_id}": replace(row, item_id=f"{benchmark}/{row.item_id}") for row in asked.gold}
    if len(gold) < len(asked.gold):
        message = f"{benchmark}: {ANSWERS} has two lines for one question; keep one, or import the data set again"
        raise DataError(message)
    shown = [replace(row, item_id=f"{benchmark}/{row.item_id}") for row in asked.disclosures]
    return BenchmarkItems(
        items=tuple(built[False]),
        gold=tuple(row for item_id, row in gold.items() if item_id in ids),
        disclosures=tuple(row for row in shown if row.item_id in ids),
        exemplars=exemplars_of(built[True], gold),
    ).checked(benchmark)


def question_outcomes(asked: QuestionSet, pictures: Sequence[PictureFate]) -> list[tuple[str, str]]:
    """Say what becomes of every question when items are built of them.

    Parameters
    ----------
    asked : QuestionSet
        The questions.
    pictures : sequence of PictureFate
        The de-identified pictures; errors as in `build_questions`.

    Returns
    -------
    list of (str, str)
        Step and reason: `quarantined_picture` with why the first of its pictures that is lacking was quarantined, `example` for those that
        few-shot prompts show with their answers, else `used`.
    """
    fates = _fates(asked.files, pictures)
    found = []
    for question in asked.questions:
        lacking = [fates[image.file].reason for image in question.images if fates[image.file].state is not State.OK]
        kept = ("example", "shown with its answer by the strategy few_shot") if question.exemplar else ("used", "")
        found.append(("quarantined_picture", lacking[0]) if lacking else kept)
    return found


def _passed(files: Sequence[str], manifest: PictureManifest) -> dict[str, PictureFate]:
    """Give the pictures that passed by their name in the set."""
    return {name: fate for name, fate in _fates(files, manifest.pictures).items() if fate.state is State.OK}


def _fates(files: Sequence[str], pictures: Sequence[PictureFate]) -> dict[str, PictureFate]:
    """Give all pictures by their name in the set."""
    numbers = {picture.image_id: picture for picture in pictures}
    if len(numbers) != len(files):
        message = f"{IMAGES} lists {len(files)} pictures, {len(numbers)} were ingested; run ingest again"
        raise DataError(message)
    return {name: numbers[f"img-{place:06d}"] for place, name in enumerate(files, start=1)}


def _item(benchmark: str, config: BenchmarkConfig, question: Question, passed: Mapping[str, PictureFate], folder: Path) -> Item:
    if problem := problem_of_options(question):
        message = f"{benchmark}: question {question.question_id}: {problem}; correct it in {QUESTIONS}"
        raise DataError(message)
    images = [_image(image, passed[image.file], folder) for image in in_letter_order(question)]
    dialogue = question.runner is Runner.DIALOGUE
    return Item(
        item_id=f"{benchmark}/{question.question_id}",
        case_id=question.case_id or question.question_id,
        patient_id=question.patient_id or question.case_id or question.question_id,
        benchmark=benchmark,
        axis=config.axis,
        family=question.family,
        level=question.level,
        runner=question.runner,
        question=question.question,
        turns=tuple(
            Turn(reveal=turn.reveal, question=turn.question, image_ids=tuple(images[place].image_id for place in turn.images))
            for turn in question.turns
        ),
        options=question.options,
        images=tuple(images),
        label_policy=config.label_policy,
        notes="" if dialogue else question.text,
        record="" if dialogue else question.record,
        given=question.given,
        language=question.language,
        date=question.date,
        pair_id=question.pair_id,
        tags=question.tags,
        answer_schema=question.answer_schema,
    )


def _image(image: QuestionImage, fate: PictureFate, folder: Path) -> ItemImage:
    return replace(item_image(fate, folder), sequence=image.sequence, plane=image.plane, role=image.role, label=image.label)
