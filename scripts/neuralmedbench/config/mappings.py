"""Keys of `config/mappings/<name>.yaml` (how the columns of a data set become questions) and of `config/curation.yaml` (which of them stay)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from neuralmedbench.config.load import check, read_yaml, wildcard
from neuralmedbench.config.mapping_sections import (
    AnswerMapping,
    BesideMapping,
    ConversationMapping,
    FieldMapping,
    FieldName,
    GroupMapping,
    ImagesMapping,
    IndexMapping,
    OptionsMapping,
    RoundMapping,
    RubricMapping,
    TextEntry,
)
from neuralmedbench.config.section import Name, Section
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.items import Axis, Family

FOLDER = "mappings"
Stage = Literal["completeness", "experts", "ground_truth", "challenge"]
Need = Literal["text", "images", "answer"]
Part = Literal["answer", "differentials", "findings", "lesion", "findings_or_lesion", "rationale", "turn_leaders"]


class CurationConfig(Section):
    """`config/curation.yaml`: the four stages of a curation, in the order of Neural-MedBench; the thresholds are ours."""

    stages: tuple[Stage, ...] = Field(
        ("completeness", "experts", "ground_truth", "challenge"), min_length=1, description="Stages, in order."
    )
    needs: tuple[Need, ...] = Field(("text", "images", "answer"), description="`completeness`: fields that every question must have.")
    min_experts: int = Field(1, ge=1, description="`experts`: decisions that a case needs; it is kept if more than half are keep.")
    ground_truth: tuple[Part, ...] = Field(
        ("answer", "differentials", "findings_or_lesion", "rationale"),
        description="`ground_truth`: parts of the gold that must be filled; `turn_leaders` applies to dialogues.",
    )
    pool: tuple[Name, ...] = Field((), description="`challenge`: reference models whose scores decide, files in `config/models/`.")
    solved_from: float = Field(
        0.5, gt=0, le=1, description="`challenge`: fraction of a model's answers that must pass for a question to count as solved by it."
    )
    max_solved: float = Field(
        0.5, gt=0, le=1, description="`challenge`: questions that at least this fraction of the pool solves are removed."
    )


class MappingConfig(Section):
    """`config/mappings/<name>.yaml`: a data set that `nmb benchmark import` reads by its columns."""

    title: str = Field(description="Name shown in the report.")
    home: str = Field(description="Where to get it.")
    licence: str = Field(description="As stated by its authors.")
    axis: Axis = Field(description="`depth`, `breadth` or `control`.")
    expected: int = Field(0, ge=0, description="Questions of the published set; 0: unknown.")
    files: tuple[str, ...] = Field(
        min_length=1,
        description="Patterns of its tables in the folder (`*.parquet`, `data/*/test.jsonl`); the first pattern with a match counts, and"
        " all files that match it are read. CSV, TSV, JSON, JSON lines and Parquet.",
    )
    under: str = Field("", description="Key of the list of rows in a JSON file.")
    one_file: bool = Field(False, description="Whether several such files are refused, because they are releases of one set.")
    exclude: tuple[str, ...] = Field((), description="Patterns of files that are left out, for example `*/old/*`.")
    each: str = Field(
        "",
        description="Column with a list of objects, one per question: their keys become columns, in addition to those of the row; `_place` is"
        " the number within the row.",
    )
    skip_blank: tuple[str, ...] = Field(
        (), description="Columns of which none may be empty: other rows are padding, neither asked nor counted among the rows found."
    )
    optional: tuple[str, ...] = Field((), description="Columns that a table may lack; they are empty there.")
    parts: dict[str, GroupMapping] = Field(
        {}, description="Further columns, by name: the part of a column that a pattern finds; of a list, those of its entries."
    )
    beside: dict[str, BesideMapping] = Field(
        {}, description="Further columns, by name: what other JSON files say of the row. Without such a file the column is missing."
    )
    only_rows: dict[str, tuple[str, ...]] = Field(
        {}, description="Texts of a column by which rows are chosen, in upper or lower case; other rows are neither asked nor counted."
    )
    skip_rows: dict[str, tuple[str, ...]] = Field({}, description="Texts of a column by which rows are left out, in the same way.")
    limit: int = Field(
        0,
        ge=0,
        description="Most rows of a table, chosen by a digest (the same in every run, rows of one pair, patient or case together); 0: all.",
    )
    variants: tuple[dict[str, str], ...] = Field(
        (),
        description="Several questions of one row that share its other columns: per question, the column under each new name; `_place` is its number.",
    )
    index: IndexMapping | None = Field(None, description="The rows are numbers of questions in other sets, whose mappings read them.")
    runner: Literal["choice", "open", "structured", "dialogue"] = Field(
        description="How it is asked: with options, openly, for a JSON object with `fields`, or in rounds (`rounds` or `facts`)."
    )
    family: Family = Field(Family.QUESTION_ANSWERING, description="Task family; determines prompt and grading of open answers.")
    id: tuple[str, ...] = Field(
        (),
        description="Columns that together identify a question; `_file` and `_folder` are the names of its table and of the table's folder,"
        " `_path` its path in the folder, `_row` the number of the row over all tables. Absent: `_file` and the number of the row in it.",
    )
    case: str = Field(
        "", description="Column with the case; questions of one case are one patient. Absent: every question is its own case."
    )
    patient: GroupMapping | None = Field(None, description="The patient, where several cases have one.")
    pair: GroupMapping | None = Field(
        None, description="Questions that belong together, such as one question about two pictures; without `patient` a pair counts as one."
    )
    persona: str = Field(
        "",
        description="Who the model is, the first sentence of the system prompt, for example `You are a physician.` Absent: a neurologist.",
    )
    question: str = Field("", description="Column of the question.")
    ask: str = Field("", description="The question if the set has none, or an addition to it.")
    drop: tuple[str, ...] = Field((), description="Texts that are removed from questions, for example marks of one model's tokenizer.")
    boxes_in_question: str = Field(
        "",
        description="Questions name boxes in pixels, `(x1,y1),(x2,y2)`: they are written as fractions, as answers are, by the size of this field.",
    )
    case_in_question: bool = Field(
        False,
        description="The question begins with the case, as in an examination: everything before the lead-in becomes text of the case (after"
        " `text`), so that the text budget and the arms apply to it.",
    )
    text: tuple[TextEntry, ...] = Field(
        (),
        description="Columns with the text of the case, in order. Lists of texts are joined by `join`; an object is written out where its entry is"
        " a section (`{column: Examination, leave_out: [Diagnosis]}`), and refused otherwise.",
    )
    join: str = Field("\n", description="What joins the entries of a list in a text.")
    headings: bool = Field(
        False, description="Whether each column of `text` is headed by its name; that of a section by its last key in readable form."
    )
    conversation: ConversationMapping | None = Field(None, description="Question and text are the messages of a conversation.")
    rounds: tuple[RoundMapping, ...] = Field(
        (),
        description="Rounds of a dialogue, or of a structured question whose values are asked for one after another, in order; `images` are shown in"
        " the first.",
    )
    rounds_in: str = Field("", description="Column with a list of objects, one per round, which the only entry of `rounds` describes.")
    facts: str = Field(
        "",
        description="Column with the list of facts after `text`, which the strategy `ask` reveals one by one: of a dialogue of one round, or of a question"
        " with options, whose `text` is then the start.",
    )
    options: OptionsMapping | None = Field(
        None,
        description="Options; required by the runner `choice`. With `runner: open` and `family: differential_diagnosis` the question is asked"
        " openly, and among its options by the arms `choice-1` to `choice-4`.",
    )
    fields: dict[FieldName, FieldMapping] = Field(
        {},
        description="Values of the answer, by key; required by the runner `structured`, unless `rounds` have them. An answer passes if all that can"
        " be right are right.",
    )
    answer: AnswerMapping | None = Field(None, description="The right answer; absent: the set has none, or it is `options.right`.")
    rubric: RubricMapping | None = Field(None, description="Criteria of an open answer, with points.")
    reasons: str = Field("", description="Column with the reasons for the answer: a list, or numbered statements.")
    findings: str = Field("", description="Column with the visible findings, in words that do not name the diagnosis: a list, or numbered.")
    must_not: str = Field("", description="Column with statements that would be wrong or dangerous: a list, or numbered.")
    images: ImagesMapping | None = Field(None, description="Pictures; absent: the set has none.")
    tags: tuple[str, ...] = Field((), description="Columns by which tables may group: each becomes a tag `<column>:<value>`.")
    date: str = Field("", description="Column of the day of a question (`YYYY-MM-DD...`).")
    language: str = Field(
        "en",
        pattern=r"^([a-z]{2}|script)$",
        description="Language (ISO 639-1); `script`: Japanese, Korean or Chinese by the letters of case and question, else English.",
    )
    language_column: str = Field("", description="Column of the language, where it differs.")
    established: str = Field("label of the data set", description="How the answers are known.")
    label_policy: Literal["full", "none"] = Field("full", description="`none` where modality, sequence or plane are answers.")
    samples: int = Field(1, ge=1, le=100, description="Answers per request; 5 is usual for open answers.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.conversation and (self.question or self.case_in_question):
            message = "`conversation` has the question; leave `question` and `case_in_question` out"
            raise ValueError(message)
        if not (self.question or self.ask or self.conversation or self.rounds or self.index):
            message = "set `question` (its column), `ask` (fixed words), or both"
            raise ValueError(message)
        self._check_rounds()
        if self.case_in_question and not self.question:
            message = "`case_in_question` needs `question`, the column that holds both"
            raise ValueError(message)
        self._check_options()
        fields = [*self.fields, *(name for one in self.rounds for name in one.fields)]
        if (self.runner == "structured") != bool(fields) or (fields and self.answer):
            message = "the runner structured needs `fields` and no `answer`, the other runners have no `fields`"
            raise ValueError(message)
        if taken := {"confidence", "reasoning"} & set(fields):
            message = f"every answer has the key {min(taken)} of its own; give the field another name"
            raise ValueError(message)
        if self.boxes_in_question and self.boxes_in_question not in self.fields:
            message = f"`boxes_in_question` names {self.boxes_in_question!r}, which is none of the `fields`"
            raise ValueError(message)
        if fields and self.family is not Family.QUESTION_ANSWERING:
            message = "`fields` are asked for by the family question_answering"
            raise ValueError(message)
        if self.answer and self.runner in {"open", "dialogue"} and self.answer.form != "text" and not self.options:
            message = "open answers need `form: text`"
            raise ValueError(message)
        if self.runner not in {"open", "dialogue"} and (self.rubric or self.reasons or self.findings or self.must_not):
            message = "`rubric`, `reasons`, `findings` and `must_not` are for open answers and dialogues"
            raise ValueError(message)
        if self.each and self.variants:
            message = "several questions of a row come from `each` or from `variants`, not from both"
            raise ValueError(message)
        return self

    def _check_options(self) -> None:
        if not self.index and self.runner == "choice" and self.options is None:
            message = "the runner choice needs `options`"
            raise ValueError(message)
        asks_diagnosis = self.runner == "open" and self.family is Family.DIFFERENTIAL_DIAGNOSIS
        if self.options and not (self.index or self.runner == "choice" or asks_diagnosis):
            message = "`options` are for the runner choice, or for open questions of the family differential_diagnosis"
            raise ValueError(message)
        if self.answer and self.options and self.options.right:
            message = "`options.right` is the answer; leave `answer` out"
            raise ValueError(message)

    def _check_rounds(self) -> None:
        if self.runner == "structured" and self.rounds:
            self._check_stages()
        elif self.runner == "choice" and self.facts and not self.rounds:
            if not self.text:
                message = "`facts` of a question with options need `text`, with which the case starts"
                raise ValueError(message)
        elif (self.runner == "dialogue") != bool(self.rounds or self.facts) or (self.rounds and self.facts):
            message = "the runner dialogue needs `rounds` or `facts`, the other runners have none, except structured questions in `rounds`"
            raise ValueError(message)
        if self.rounds_in and len(self.rounds) != 1:
            message = "`rounds_in` needs one entry in `rounds`, which has the keys of its objects"
            raise ValueError(message)
        if self.runner == "dialogue" and self.family is not Family.DIFFERENTIAL_DIAGNOSIS:
            message = "a dialogue ends in a diagnosis; set `family: differential_diagnosis`"
            raise ValueError(message)

    def _check_stages(self) -> None:
        names = [name for one in self.rounds for name in one.fields]
        if self.fields or self.rounds_in or not all(one.fields for one in self.rounds):
            message = "in `rounds` of a structured question every round has its own `fields`; leave `fields` and `rounds_in` out"
            raise ValueError(message)
        if len(set(names)) < len(names):
            message = "two rounds ask for a field of the same name"
            raise ValueError(message)
        retried = [one.retry for one in self.rounds]
        if retried != sorted(retried) or (any(retried) and not any(one.stage and not one.retry for one in self.rounds)):
            message = "the rounds of the retry follow all others, among which there are stages"
            raise ValueError(message)


def load_mappings(config: Path, wanted: str = "") -> dict[str, MappingConfig]:
    """Read the mappings of `<config>/mappings/`, sorted by name.

    Parameters
    ----------
    config : Path
        The folder `config/`.
    wanted : str
        The mapping that is needed: mistakes in other files leave these out. Empty: all are needed.

    Raises
    ------
    ConfigError
        If a name is not valid, or a file does not fit; as in `config.load`.
    """
    found = {}
    for path in sorted((config / FOLDER).glob("*.yaml")):
        try:
            found[wildcard(path.stem)] = check(MappingConfig, read_yaml(path), path.as_posix())
        except ConfigError:
            if wanted in {"", path.stem}:
                raise
    return found


def load_curation(path: Path) -> CurationConfig:
    """Read the settings of a curation; ConfigError as in `config.load`."""
    return check(CurationConfig, read_yaml(path), path.as_posix())
