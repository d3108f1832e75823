"""Questions as they come from outside: the one form into which every data set is imported before anything else sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from neuralmedbench.records.items import Disclosure, Family, Gold, Level, Runner

SCHEMA_VERSION = 1

LETTERS = "ABCDEFGHIJ"
"""Names of the options of an item of choice, in their order."""

QUESTIONS, ANSWERS, DISCLOSURES, IMAGES = QUESTION_FILES = ("questions.jsonl", "answers.jsonl", "disclosures.jsonl", "images.csv")
"""Files of an imported data set: what is asked, what is right, what arms may show, and its pictures."""

IMPORT_RECORD = "import.json"
"""What an import found, beside them; a set that was curated or written by hand has none."""

IMAGE_COLUMNS = ("file_path", "sha256", "width", "height")
"""Columns of `images.csv`: one row a picture, its path below the folder of the imported pictures, the digest of its bytes, and its size."""


@dataclass(frozen=True, kw_only=True)
class QuestionImage:
    """A picture of a question.

    Attributes
    ----------
    file : str
        Its path in `images.csv`.
    label : str
        The name by which the question speaks of it (`Figure B`); empty when there is none.
    sequence, plane : str
        As the data set says; `unknown` and empty when it does not.
    role : str
        `picture`, `option` (the picture is an answer that can be chosen: its label is the text of its option), `prior` or `current`.
    """

    file: str
    label: str = ""
    sequence: str = "unknown"
    plane: str = ""
    role: str = "picture"


@dataclass(frozen=True, kw_only=True)
class QuestionTurn:
    """One round of a dialogue: what is revealed, what is asked, and which pictures are shown (places in `Question.images`, from 0)."""

    reveal: str
    question: str
    images: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of a data set: a line of `questions.jsonl`. What is right stands elsewhere (`answers.jsonl`, lines of `Gold`).

    Attributes
    ----------
    question_id : str
        Its id in the data set, made of letters, digits, `.`, `-` and `_`.
    case_id, patient_id : str
        Whose; empty when the data set does not say: then every question is a patient of its own.
    text, record : str
        What is told of the case beside the question.
    given : str
        As in `Item`.
    options : tuple of str
        2 to 10 for the runner `choice`, else none. An option that is a picture has its label here.
    exemplar : bool
        Whether it is an example for few-shot prompts: it is shown with its answer and never asked.
    """

    question_id: str
    runner: Runner
    family: Family
    question: str
    case_id: str = ""
    patient_id: str = ""
    level: Level = Level.NONE
    text: str = ""
    record: str = ""
    given: str = ""
    options: tuple[str, ...] = ()
    images: tuple[QuestionImage, ...] = ()
    turns: tuple[QuestionTurn, ...] = ()
    language: str = "en"
    date: str = ""
    pair_id: str = ""
    tags: tuple[str, ...] = ()
    answer_schema: str = ""
    exemplar: bool = False


@dataclass(frozen=True)
class QuestionSet:
    """An imported data set as it lies in its folder.

    Attributes
    ----------
    questions : tuple of Question
        In the order of the set.
    gold, disclosures : tuple
        With the question's id in the place of the item's.
    files : tuple of str
        Names of the pictures in the order of `images.csv`: row 7 became `img-000007`.
    """

    questions: tuple[Question, ...]
    gold: tuple[Gold, ...]
    disclosures: tuple[Disclosure, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A row of a data set that was not taken: where it stands (a number or an id, never its words), and why."""

    where: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ImportRecord:
    """What an import found (`import.json`).

    Attributes
    ----------
    benchmark, data_set : str
        Name here, and name of the set.
    licence, home : str
        Under which licence, and where it is to be had.
    sources : dict of str to str
        SHA-256 of every file that was read, by its name in the user's folder.
    expected, found, imported : int
        Questions: as published (0 when not known), rows found, rows taken.
    refused : tuple of Refusal
        The others.
    images : int
        Different pictures.
    without_answer : int
        Questions that have none.
    empty : dict of str to int
        Fields that stand in the set and are empty, by name.
    long_questions : int
        Questions of more words than a question needs: they tell of the case, where neither text budgets nor arms reach it.
    """

    benchmark: str
    data_set: str
    licence: str
    home: str
    sources: dict[str, str]
    expected: int
    found: int
    imported: int
    refused: tuple[Refusal, ...] = ()
    images: int = 0
    without_answer: int = 0
    empty: dict[str, int] = field(default_factory=dict)
    long_questions: int = 0
