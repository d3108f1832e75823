"""Keys of `config/mappings/<name>.yaml`: how the columns of a data set become questions, so that importing it needs no code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, StringConstraints, Tag, field_validator, model_validator

from neuralmedbench.config.load import check, read_yaml, wildcard
from neuralmedbench.config.section import Section
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.items import Axis, Family

FOLDER = "mappings"

RuleName = Literal["number", "whole_number", "index", "date", "weeks_and_days", "interval", "label", "box", "keywords", "words"]
"""Names of `records.value_rules.RULES`; a test compares them."""

FieldName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""Key of a value in an answer."""


class PictureForm(Section):
    """Form of a picture in a cell."""

    form: Literal["path", "base64"] = Field(description="`path`: a file in the folder; `base64`: the picture itself, also as a data URI.")
    key: str = Field("", description="If a picture is an object: the key of its path or content (for example `bytes` in Parquet).")
    folder: str = Field(
        "", description="Subfolder to which paths are relative, of the data set's folder or of the folder of the table; absent: these two."
    )
    suffix: str = Field("", description="Ending that the cells lack, for example `.jpg`.")


class OptionsMapping(Section):
    """Where the options of a choice are: exactly one of the ways."""

    column: str = Field("", description="One column with all options: a list, letters with texts, JSON of these, or lines `A. ...`.")
    columns: tuple[str, ...] = Field((), description="One column per option, in order; empty ones at the end are dropped.")
    fixed: tuple[str, ...] = Field(
        (), description='The same options for every question, for example `["Yes", "No"]` (YAML reads bare ones as true and false).'
    )
    right: str = Field("", description="Column of the right option, if the wrong ones are in other columns (`wrong`).")
    wrong: tuple[str, ...] = Field(
        (),
        description="Columns of the wrong options; `*` matches any characters, `[2-4]` one of them. Options are ordered by a digest, the same in every run.",
    )

    missing: tuple[str, ...] = Field(
        (), description="Texts that mark a missing option, for example `N/A`; upper and lower case are the same."
    )
    repeated: Literal["refuse", "keep"] = Field(
        "refuse",
        description="Questions with two equal options: `keep` asks them as published; they need a letter or number as answer, which alone counts.",
    )
    pictures: PictureForm | None = Field(
        None,
        description="The options of `column` or `columns` are pictures; each is shown under its letter (`Option A`), whatever `label_policy` says.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        # exactly one way to give the options
        ways = [bool(self.column), bool(self.columns), bool(self.fixed), bool(self.right or self.wrong)]
        if sum(ways) != 1 or bool(self.right) != bool(self.wrong):
            message = "set one of `column`, `columns`, `fixed`, or `right` together with `wrong`"
            raise ValueError(message)
        if self.pictures and not (self.column or self.columns):
            message = "options that are pictures need `column` or `columns`"
            raise ValueError(message)
        return self


class AnswerMapping(Section):
    """Where the right answer is."""

    column: str = Field(description="Its column. A question with an empty cell has no answer.")
    form: Literal["letter", "number_from_0", "number_from_1", "text"] = Field(
        "letter",
        description="Its form: the letter of an option (or its text), its number, its text; also `text` for open answers.",
    )
    aliases: str = Field("", description="Column of equally right names: a list, a JSON list, or text separated by `;`.")
    missing: tuple[str, ...] = Field(
        (), description="Texts that mark a missing answer, for example `NA`; upper and lower case are the same."
    )


class GroupMapping(Section):
    """What groups questions: the text of a column, or a part of it."""

    column: str = Field(description="Column, which may be a path of a picture.")
    pattern: str = Field(
        "",
        description="Regular expression of the part that counts (its first group, else all of it), for example `BraTS2021_\\d+`; a row without it"
        " is in no group.",
    )

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            message = f"not a regular expression: {error}"
            raise ValueError(message) from None
        return value


class ConversationMapping(Section):
    """A conversation that the model continues: its last message is the question, the others are the text of the case."""

    column: str = Field(description="Column with the list of messages.")
    role: str = Field("role", description="Key of the speaker.")
    content: str = Field("content", description="Key of the words.")


class RubricMapping(Section):
    """Criteria with points, from which an open answer is scored."""

    column: str = Field(description="Column with the list of criteria: objects, or statements that earn `points_each`.")
    text: str = Field("criterion", description="Key of the statement.")
    points: str = Field("points", description="Key of its points; negative ones are a penalty.")
    cap: str = Field("cap", description="Key that is true for a criterion whose fulfilment is harmful and leaves no points at all.")
    points_each: float = Field(1.0, description="Points of a criterion without `points`.")


class TextMapping(Section):
    """An object of any depth, written out as text: a line for every value, below the names of its keys."""

    column: str = Field(description="Its column or path.")
    leave_out: tuple[str, ...] = Field(
        (),
        description="Keys that are not written, as paths below the object (`Tests.Biopsy`): `*` is any part of a key, `**.` any depth."
        " A path that no record has is refused.",
    )

    @field_validator("leave_out")
    @classmethod
    def _are_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            if not all(path.split(".")) or path.endswith("**"):
                message = f"{path!r} is no path: keys joined by full stops, with a key at its end"
                raise ValueError(message)
        return value


def _kind_of_text(value: object) -> str:
    return "object" if isinstance(value, dict | TextMapping) else "column"


TextEntry = Annotated[Annotated[str, Tag("column")] | Annotated[TextMapping, Tag("object")], Discriminator(_kind_of_text)]
"""A text of the case: the name of its column, or an object that is written out."""


def column_of(entry: str | TextMapping) -> str:
    """Return the column of a text of the case."""
    return entry if isinstance(entry, str) else entry.column


class RoundMapping(Section):
    """One round of a dialogue."""

    text: tuple[TextEntry, ...] = Field((), description="Columns (with `rounds_in`: keys) of what is revealed, as in `text`.")
    question: str = Field("", description="Column (or key) of the question.")
    ask: str = Field("", description="The question if there is none, or an addition to it.")

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not self.question and not self.ask:
            message = "a round needs `question` (its column), `ask` (fixed words), or both"
            raise ValueError(message)
        return self


class IndexMapping(Section):
    """Rows that are numbers of questions in other sets: those are read from subfolders by their own mappings."""

    set: str = Field(description="Column with the name of the other set.")
    splits: str = Field(description="Column with an object of its splits.")
    numbers: str = Field(description="Key of the row numbers in a split.")
    first: int = Field(0, ge=0, le=1, description="Number of the first row.")
    names: dict[str, str] = Field(
        min_length=1, description="Mapping of each other set, a file in `config/mappings/`; its files are in the subfolder of this name."
    )


class RulesMapping(Section):
    """The rule of a field where it differs between rows: the first of these columns whose cell is a key of `names` decides."""

    columns: tuple[str, ...] = Field(min_length=1, description="Columns, in this order.")
    names: dict[str, RuleName] = Field(min_length=1, description="Rule by the text of the cell.")


class FieldMapping(Section):
    """One field of a structured answer: a value that is compared with its reference by a rule, without a grader."""

    column: str = Field(description="Column of the reference. An empty cell is no reference: the field is not scored in this row.")
    rule: RuleName | None = Field(
        None,
        description="Its rule: `number` (between limits), `whole_number` (equal after rounding), `index`, `date` (MM/DD/YYYY), `weeks_and_days`,"
        " `interval`, `label`, `box` (intersection over union), `keywords`, `words`.",
    )
    rules: RulesMapping | None = Field(None, description="The rule by row, in place of `rule`.")
    words: str = Field("", description="What the prompt says of it; absent: the words of the rule.")
    low: str = Field("", description="Column of the lower limit of a number.")
    high: str = Field("", description="Column of the upper limit.")
    within: float | None = Field(
        None, ge=0, lt=1, description="Limits as a share of the reference, in place of `low` and `high`: 0.05 is 5 %."
    )
    at_least: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Share of agreement from which a value is right (`box` 0.5, `interval` 1). `keywords` and `words` only describe where it is"
        " absent.",
    )
    size: tuple[float, float] | None = Field(
        None, description="Boxes in pixels: width and height of every picture. Answers are asked for as fractions."
    )
    size_column: str = Field(
        "", description="Boxes in pixels: column of the width and height of the picture, where a row has it; else `size`."
    )
    missing: tuple[str, ...] = Field(
        (), description="Texts that mark an empty cell, for example `NA`, in upper or lower case; `words` then expects nothing."
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if (self.rule is None) == (self.rules is None):
            message = "set one of `rule` and `rules`"
            raise ValueError(message)
        if bool(self.low) != bool(self.high) or (self.low and self.within is not None):
            message = "limits are `low` together with `high`, or `within`"
            raise ValueError(message)
        if self.rule == "number" and not self.low and self.within is None:
            message = "a number needs both limits: `low` and `high`, or `within`"
            raise ValueError(message)
        return self


class ImagesMapping(PictureForm):
    """Where the pictures of a question are."""

    columns: tuple[str, ...] = Field(min_length=1, description="Columns with a picture or a list of pictures each, in order.")
    label_key: str = Field("", description="If a picture is an object: the key of the name that the question uses for it.")
    label: str = Field("", description="Prefix of that name, for example `Figure`.")
    required: bool = Field(True, description="Whether a question without a picture is refused.")


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
        " `_row` the number of the row over all tables. Absent: `_file` and the number of the row in it.",
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
    rounds: tuple[RoundMapping, ...] = Field((), description="Rounds of a dialogue, in order; pictures are shown in the first.")
    rounds_in: str = Field("", description="Column with a list of objects, one per round, which the only entry of `rounds` describes.")
    facts: str = Field(
        "",
        description="Column with the list of facts of a dialogue of one round after `text`, which the strategy `ask` reveals one by one.",
    )
    options: OptionsMapping | None = Field(None, description="Options; required by the runner `choice`.")
    fields: dict[FieldName, FieldMapping] = Field(
        {},
        description="Values of the answer, by key; required by the runner `structured`. An answer passes if all that can be right are right.",
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
        if not self.index and (self.runner == "choice") != (self.options is not None):
            message = f"the runner choice needs `options`, the runner {'open' if self.runner == 'choice' else self.runner} has none"
            raise ValueError(message)
        if (self.runner == "structured") != bool(self.fields) or (self.fields and self.answer):
            message = "the runner structured needs `fields` and no `answer`, the other runners have no `fields`"
            raise ValueError(message)
        if taken := {"confidence", "reasoning"} & set(self.fields):
            message = f"every answer has the key {min(taken)} of its own; give the field another name"
            raise ValueError(message)
        if self.fields and self.family is not Family.QUESTION_ANSWERING:
            message = "`fields` are asked for by the family question_answering"
            raise ValueError(message)
        if self.answer and self.options and self.options.right:
            message = "`options.right` is the answer; leave `answer` out"
            raise ValueError(message)
        if self.answer and self.runner in {"open", "dialogue"} and self.answer.form != "text":
            message = "open answers need `form: text`"
            raise ValueError(message)
        if self.runner not in {"open", "dialogue"} and (self.rubric or self.reasons or self.findings or self.must_not):
            message = "`rubric`, `reasons`, `findings` and `must_not` are for open answers and dialogues"
            raise ValueError(message)
        if self.each and self.variants:
            message = "several questions of a row come from `each` or from `variants`, not from both"
            raise ValueError(message)
        return self

    def _check_rounds(self) -> None:
        if (self.runner == "dialogue") != bool(self.rounds or self.facts) or (self.rounds and self.facts):
            message = "the runner dialogue needs `rounds` or `facts`, the other runners have none"
            raise ValueError(message)
        if self.rounds_in and len(self.rounds) != 1:
            message = "`rounds_in` needs one entry in `rounds`, which has the keys of its objects"
            raise ValueError(message)
        if self.runner == "dialogue" and self.family is not Family.DIFFERENTIAL_DIAGNOSIS:
            message = "a dialogue ends in a diagnosis; set `family: differential_diagnosis`"
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
