"""Imported questions: the common form into which every external data set is converted first."""

from __future__ import annotations

from dataclasses import dataclass, field

from neuralmedbench.records.items import DIAGNOSES, Disclosure, Family, Gold, Level, Runner

SCHEMA_VERSION = 2

LETTERS = "ABCDEFGHIJ"
"""Names of the options of a choice item, in order."""

QUESTIONS, ANSWERS, DISCLOSURES, IMAGES = QUESTION_FILES = ("questions.jsonl", "answers.jsonl", "disclosures.jsonl", "images.csv")
"""Files of an imported data set: questions, reference answers, disclosures, and pictures."""

IMPORT_RECORD = "import.json"
"""Record of the import, beside them; curated and hand-written sets have none."""

PICTURE = "Picture {number}"
"""Name of a picture in a label, and of its place in a question."""
IMAGE_COLUMNS = ("file_path", "sha256", "width", "height")
"""Columns of `images.csv`, one row per picture: path below the folder of imported pictures, digest of its bytes, size in pixels."""


@dataclass(frozen=True, kw_only=True)
class QuestionImage:
    """A picture of a question.

    Attributes
    ----------
    file : str
        Its path in `images.csv`.
    label : str
        Its name in the question (`Figure B`), or empty.
    sequence, plane : str
        As stated by the data set, else `unknown` and empty.
    role : str
        `picture`, `option` (an answer option: its label is the text of the option), or one of `items.NEEDED`.
    """

    file: str
    label: str = ""
    sequence: str = "unknown"
    plane: str = ""
    role: str = "picture"


@dataclass(frozen=True, kw_only=True)
class QuestionTurn:
    """One round: revealed text, question, and pictures (indices in `ImportedQuestion.images`, from 0); the others as in `items.Turn`."""

    reveal: str
    question: str
    images: tuple[int, ...] = ()
    asks: tuple[str, ...] = ()
    stage: str = ""
    retry: bool = False


@dataclass(frozen=True, kw_only=True)
class ImportedQuestion:
    """One question of a data set: a line of `questions.jsonl`. The reference answer is in `answers.jsonl` (lines of `Gold`).

    Attributes
    ----------
    question_id : str
        Its id in the data set, made of letters, digits, `.`, `-` and `_`.
    case_id, patient_id : str
        Its case and patient; empty if the data set does not state them: then every question counts as a separate patient.
    text, record : str
        Description of the case, and its health record.
    given : str
        As in `Item`.
    options : tuple of str
        2 to 10 for the runner `choice`. A picture option is represented by its label. Of an open question for a diagnosis, or of a dialogue:
        the names among which arms such as `choice-1` ask it, the reference among them, or none.
    exemplar : bool
        True for an example of few-shot prompts: shown with its answer, and never a question itself.
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
    """An imported data set.

    Attributes
    ----------
    questions : tuple of ImportedQuestion
        In the order of the set.
    gold, disclosures : tuple
        With the question's id in place of the item's.
    files : tuple of str
        Names of the pictures in the order of `images.csv`: row 7 became `img-000007`.
    """

    questions: tuple[ImportedQuestion, ...]
    gold: tuple[Gold, ...]
    disclosures: tuple[Disclosure, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def diagnoses(self) -> list[Gold]:
        """References of the questions that ask for a ranked differential in words."""
        asked = {row.question_id for row in self.questions if row.runner in (Runner.OPEN, Runner.DIALOGUE) and row.family in DIAGNOSES}
        return [row for row in self.gold if row.item_id in asked]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A refused row of a data set.

    Attributes
    ----------
    where : str
        Its place: a number or an id, never its words.
    reason : str
        The reason; rows with the same reason are counted together.
    question_id : str
        Id of its question; empty if it has none.
    found : str
        What the row has in the place of what was expected: a file name or a short value.
    """

    where: str
    reason: str
    question_id: str = ""
    found: str = ""


@dataclass(frozen=True, kw_only=True)
class ImportRecord:
    """Summary of an import (`import.json`).

    Attributes
    ----------
    benchmark, data_set : str
        Names of the benchmark and of the data set.
    licence, home : str
        Its licence, and its web page.
    sources : dict of str to str
        SHA-256 of every file that was read, by its name in the user's folder.
    expected, found, imported : int
        Number of published questions (0 if unknown), of rows in the files, and of imported rows.
    refused : tuple of Refusal
        The other rows.
    images : int
        Number of different pictures.
    without_answer : int
        Number of questions without an answer.
    empty : dict of str to int
        Number of empty values by field.
    long_questions : int
        Number of questions with more words than a question needs: they describe the case, where text budgets and arms have no effect.
    answer_in_text : dict of str to tuple of str
        Questions with a line of their text that is the answer, by id: the headings of these lines.
    marks : dict of str to tuple of str
        Questions whose texts held marks of models (`records.model_marks`), by id; the file has it only if there are any.
    flat : tuple of str
        Questions with a picture of one grey or colour, which no run asks; the file has it only if there are any.
    function : str
        SHA-256 of the Python file that made the questions; the file has it only if there is one.
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
    answer_in_text: dict[str, tuple[str, ...]] = field(default_factory=dict)
    marks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    flat: tuple[str, ...] = ()
    function: str = ""
