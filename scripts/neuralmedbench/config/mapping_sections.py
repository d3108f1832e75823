"""Sections of `config/mappings/<name>.yaml`: where pictures, options, answers, texts, rounds and values of a question are."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, StringConstraints, Tag, field_validator, model_validator

from neuralmedbench.config.section import Section

RuleName = Literal[
    "number", "whole_number", "index", "date", "weeks_and_days", "interval", "letter", "letters", "label", "box", "keywords", "words"
]
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
    aliases: str = Field(
        "",
        description="Column of equally right names: a list, a JSON list, or text separated by `;`. It may be `column` itself: the first is the answer.",
    )
    missing: tuple[str, ...] = Field(
        (), description="Texts that mark a missing answer, for example `NA`; upper and lower case are the same."
    )


class GroupMapping(Section):
    """What groups questions, or a further column: the text of a column, or a part of it."""

    column: str = Field(description="Column, which may be a path of a picture.")
    pattern: str = Field(
        "",
        description="Regular expression of the part that counts (its groups joined by `-`, else all of it), for example `BraTS2021_\\d+`; a row"
        " without it is in no group, and a further column is empty there.",
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


class BesideMapping(Section):
    """What another file says of a row: its object, or an entry of it."""

    file: str = Field(
        description="Its path in the folder, with names of columns in braces and `*` for any characters (`qa/{task}/*/{_file}.json`); several are refused."
    )
    at: str = Field("", description="Path of the entry in the file, in the same way (`{number}.questions`). Absent: all of it.")


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
        " `interval`, `letter` (of an option; one of those of the reference), `letters` (all of them), `label`, `box` (intersection over union),"
        " `keywords`, `words`.",
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
    same_as: str = Field(
        "",
        description="Column of the row numbers: a cell of at most 64 characters is the number of the row whose picture it is, as in VLMEvalKit's TSV.",
    )
    required: bool = Field(True, description="Whether a question without a picture is refused.")
    roles: tuple[Literal["picture", "prior", "current", "part"], ...] = Field(
        (),
        description="Role of the pictures of each column: `prior` and `current` are shown in this order as `Earlier image` and `Present image`,"
        " `part` as `Image 1`, `Image 2`... A model that takes fewer pictures than these is not asked. Absent: `picture`.",
    )

    @model_validator(mode="after")
    def _one_role_each(self) -> Self:
        if self.roles and len(self.roles) != len(self.columns):
            message = f"{len(self.columns)} columns and {len(self.roles)} roles; give each column of `columns` its role, in the same order"
            raise ValueError(message)
        if self.roles and (self.label or self.label_key):
            message = "`roles` name the pictures; leave `label` and `label_key` out"
            raise ValueError(message)
        return self


class RoundMapping(Section):
    """One round of a dialogue, or of a structured question whose values are asked for one after another."""

    text: tuple[TextEntry, ...] = Field((), description="Columns (with `rounds_in`: keys) of what is revealed, as in `text`.")
    question: str = Field(
        "", description="Column (or key) of the question; for `structured` also a list of questions, each in a round of its own."
    )
    ask: str = Field("", description="The question if there is none, or an addition to it.")
    images: ImagesMapping | None = Field(
        None,
        description="Runner `structured`: pictures of this round; a list of lists has those of each question of a list, else the first shows all.",
    )
    fields: dict[FieldName, FieldMapping] = Field(
        {}, description="Runner `structured`: the values that this round asks for; of a list of questions the references are a list too."
    )
    stage: str = Field(
        "",
        description="Stage of a ladder to which the round belongs: it counts only if the stages before it are right. Absent: asked beside the ladder.",
    )
    retry: bool = Field(False, description="The stage belongs to a guided retry, which follows the ladder and is a ladder of its own.")

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not self.question and not self.ask:
            message = "a round needs `question` (its column), `ask` (fixed words), or both"
            raise ValueError(message)
        if (self.stage or self.images) and not self.fields:
            message = "a round with `stage` or `images` asks for `fields`"
            raise ValueError(message)
        if self.retry and not self.stage:
            message = "`retry` belongs to a `stage`"
            raise ValueError(message)
        return self
