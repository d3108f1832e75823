"""Items of an imported data set: its questions, with the pictures that passed de-identification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.benchmarks.gold import add_findings_of_others
from neuralmedbench.benchmarks.item_set import BenchmarkItems, exemplars_of
from neuralmedbench.benchmarks.neurovlm_labels import read_table
from neuralmedbench.benchmarks.sources import item_image
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.external_files import delimited_rows
from neuralmedbench.files.json_files import read_lines
from neuralmedbench.records.case import PictureFate, PictureManifest, State
from neuralmedbench.records.items import OPTION, Disclosure, Gold, Item, ItemImage, Runner, Turn
from neuralmedbench.records.questions import ANSWERS, DISCLOSURES, IMAGES, QUESTIONS, ImportedQuestion, QuestionImage, QuestionSet
from neuralmedbench.records.value_rules import fields_of
from neuralmedbench.records.vocabulary import Vocabulary


def problem_of_options(question: ImportedQuestion) -> str:
    """Return why pictures cannot be options of a question; empty if they can, or if none are."""
    pictures = [image for image in question.images if image.role == OPTION]
    if not pictures:
        return ""
    if question.runner is not Runner.CHOICE:
        return "a picture is an option of a question without options"
    if {image.label for image in pictures} - set(question.options):
        return "the label of an option picture is not the text of an option"
    if len({image.label for image in pictures}) < len(pictures):
        return "two pictures have the same option"
    if len({image.file for image in pictures}) < len(pictures):
        return "two options are the same picture"
    return ""


def problem_of_turns(question: ImportedQuestion) -> str:
    """Return why a structured question cannot be asked in its turns; empty if it can, or has none."""
    asked = [name for turn in question.turns for name in turn.asks]
    if question.runner is not Runner.STRUCTURED:
        return "only turns of a structured question ask for fields" if asked else ""
    if question.turns and sorted(asked) != sorted(fields_of(question.answer_schema)):
        return "the turns do not ask for each field of the answer once"
    return ""


def _in_letter_order(question: ImportedQuestion) -> Sequence[QuestionImage]:
    """Return the pictures of a question: those of the question first, then the option pictures in letter order."""
    places = {text: place for place, text in enumerate(question.options, start=1)}
    return sorted(question.images, key=lambda image: places[image.label] if image.role == OPTION else 0)


def read_questions(folder: Path) -> QuestionSet:
    """Read the files of `nmb benchmark import`; DataError if a file is missing or a line does not fit."""
    try:
        files = tuple(row.get("file_path") or "" for _, row in delimited_rows(folder / IMAGES))
    except OSError:
        message = f"{IMAGES} of the imported set is not there or cannot be read; `nmb benchmark import` writes it"
        raise DataError(message) from None
    if "" in files:
        message = f"{IMAGES}: row {files.index('') + 1} has no file_path; `nmb benchmark import` writes it anew"
        raise DataError(message)
    return QuestionSet(
        questions=tuple(read_lines(folder / QUESTIONS, ImportedQuestion)),
        gold=tuple(read_lines(folder / ANSWERS, Gold)),
        disclosures=tuple(read_lines(folder / DISCLOSURES, Disclosure)),
        files=files,
    )


def read_question_set(benchmark: str, config: BenchmarkConfig) -> QuestionSet:
    """Read the questions of a benchmark without scans: an imported data set (`read_questions`), or a table with one picture per row (`read_table`)."""
    return read_questions(Path(config.questions)) if config.questions else read_table(config, benchmark)


def build_questions(
    benchmark: str,
    config: BenchmarkConfig,
    asked: QuestionSet,
    manifest: PictureManifest,
    folder: Path,
    *,
    vocabulary: Vocabulary | None = None,
) -> BenchmarkItems:
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
    vocabulary : Vocabulary or None
        Tells which diseases are related, for the arm `findings_of_another`; without it the arm applies to no item.

    Returns
    -------
    BenchmarkItems
        One item, with gold, per question whose pictures all passed; exemplar questions become few-shot examples.

    Raises
    ------
    DataError
        If no question is left, one has two answers, or its option pictures do not fit its options.
    """
    # only questions whose pictures all passed, few-shot examples apart
    passed = _passed(asked.files, manifest)
    built = {
        exemplar: [
            _item(benchmark, config, question, passed, folder)
            for question in asked.questions
            if question.exemplar is exemplar and all(image.file in passed for image in question.images)
        ]
        for exemplar in (False, True)
    }
    reasons = Counter(reason for step, reason in question_outcomes(asked, manifest.pictures) if step == "quarantined_picture")
    if reasons and not built[False]:
        reason, number = reasons.most_common(1)[0]
        message = f"{benchmark}: no item: a picture of {number} of {len(asked.questions)} questions was kept back: {reason}"
        raise DataError(message)
    ids = {item.item_id for item in built[False]}
    # ids of items have the benchmark as prefix
    gold = {f"{benchmark}/{row.item_id}": replace(row, item_id=f"{benchmark}/{row.item_id}") for row in asked.gold}
    if len(gold) < len(asked.gold):
        message = f"{benchmark}: {ANSWERS} has two lines for one question; keep one, or import the data set again"
        raise DataError(message)
    shown = [replace(row, item_id=f"{benchmark}/{row.item_id}") for row in asked.disclosures]
    complete = BenchmarkItems(
        items=tuple(built[False]),
        gold=tuple(row for item_id, row in gold.items() if item_id in ids),
        disclosures=tuple(row for row in shown if row.item_id in ids),
        exemplars=exemplars_of(built[True], gold),
    )
    if vocabulary is not None:
        complete = add_findings_of_others(complete, config.arms, vocabulary)
    return complete.checked(benchmark)


def question_outcomes(asked: QuestionSet, pictures: Sequence[PictureFate]) -> list[tuple[str, str]]:
    """Report the outcome of every question when items are built.

    Parameters
    ----------
    asked : QuestionSet
        The questions.
    pictures : sequence of PictureFate
        The de-identified pictures; errors as in `build_questions`.

    Returns
    -------
    list of (str, str)
        Step and reason per question: `quarantined_picture` with the reason for its first missing picture, `example` for few-shot examples,
        else `used`.
    """
    fates = _fates(asked.files, pictures)
    outcomes = []
    for question in asked.questions:
        missing = [fates[image.file].reason for image in question.images if fates[image.file].state is not State.OK]
        kept = ("example", "shown with its answer by the strategy few_shot") if question.exemplar else ("used", "")
        outcomes.append(("quarantined_picture", missing[0]) if missing else kept)
    return outcomes


def _passed(files: Sequence[str], manifest: PictureManifest) -> dict[str, PictureFate]:
    """Return the pictures that passed, by name in the set."""
    return {name: fate for name, fate in _fates(files, manifest.pictures).items() if fate.state is State.OK}


def _fates(files: Sequence[str], pictures: Sequence[PictureFate]) -> dict[str, PictureFate]:
    """Return all pictures by name in the set."""
    # ingest numbers the pictures in the order of the table
    numbers = {picture.image_id: picture for picture in pictures}
    if len(numbers) != len(files):
        message = f"{IMAGES} lists {len(files)} pictures, {len(numbers)} were ingested; run ingest again"
        raise DataError(message)
    return {name: numbers[f"img-{place:06d}"] for place, name in enumerate(files, start=1)}


def _item(benchmark: str, config: BenchmarkConfig, question: ImportedQuestion, passed: Mapping[str, PictureFate], folder: Path) -> Item:
    if problem := problem_of_options(question) or problem_of_turns(question):
        message = f"{benchmark}: question {question.question_id}: {problem}; correct it in {QUESTIONS}"
        raise DataError(message)
    images = [_image(image, passed[image.file], folder) for image in _in_letter_order(question)]
    # turns reveal text and record
    dialogue = question.runner is Runner.DIALOGUE or bool(question.turns)
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
            Turn(
                reveal=turn.reveal,
                question=turn.question,
                image_ids=tuple(images[place].image_id for place in turn.images),
                asks=turn.asks,
                stage=turn.stage,
                retry=turn.retry,
            )
            for turn in question.turns
        ),
        options=question.options if question.runner is Runner.CHOICE else (),
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
        rivals=() if question.runner is Runner.CHOICE else tuple(sorted(question.options)),
    )


def _image(image: QuestionImage, fate: PictureFate, folder: Path) -> ItemImage:
    return replace(item_image(fate, folder), sequence=image.sequence, plane=image.plane, role=image.role, label=image.label)
