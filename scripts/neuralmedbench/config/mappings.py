"""`config/mappings/<name>.yaml`: how the columns of a data set become questions, so that it is imported without code."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from neuralmedbench.config.load import check, read_yaml, wildcard
from neuralmedbench.config.section import Section
from neuralmedbench.records.items import Axis, Family

FOLDER = "mappings"


class PictureForm(Section):
    """How a picture stands in a cell."""

    form: Literal["path", "base64"] = Field(
        description="`path`: a file below the folder; `base64`: the picture itself, also as a data URI."
    )
    key: str = Field("", description="Where a picture is an object: the key of its path or content (`bytes` of a Parquet picture works).")
    folder: str = Field("", description="Folder below the data set's, to which paths are relative.")


class OptionsMapping(Section):
    """Where the options of a choice stand: exactly one of its ways."""

    column: str = Field("", description="One column with all of them: a list, letters with texts, JSON of these, or lines `A. ...`.")
    columns: tuple[str, ...] = Field((), description="A column each, in order; empty ones at the end are left out.")
    fixed: tuple[str, ...] = Field((), description="The same for every question, for example [Yes, No].")
    right: str = Field("", description="Column of the right one, where the wrong ones stand apart (`wrong`).")
    wrong: tuple[str, ...] = Field(
        (), description="Columns of the wrong ones; `*` stands for any letters. The order is made from a digest, the same in every run."
    )

    missing: tuple[str, ...] = Field((), description="Texts that stand for an option that is not there, for example `N/A`.")
    pictures: PictureForm | None = Field(
        None,
        description="The options of `column` or `columns` are pictures; each is shown under its letter (`Option A`), whatever `label_policy` says.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [bool(self.column), bool(self.columns), bool(self.fixed), bool(self.right or self.wrong)]
        if sum(ways) != 1 or bool(self.right) != bool(self.wrong):
            message = "set one of `column`, `columns`, `fixed`, or `right` together with `wrong`"
            raise ValueError(message)
        if self.pictures and not (self.column or self.columns):
            message = "options that are pictures stand in `column` or `columns`"
            raise ValueError(message)
        return self


class AnswerMapping(Section):
    """Where the right answer stands."""

    column: str = Field(description="Its column. A question whose cell is empty has no answer.")
    form: Literal["letter", "number_from_0", "number_from_1", "text"] = Field(
        "letter",
        description="How it is written: the letter of an option (or its text), its number, its text; `text` too for open answers.",
    )
    aliases: str = Field("", description="Column with other names that are as right: a list, JSON of one, or text separated by `;`.")


class ImagesMapping(PictureForm):
    """Where the pictures of a question stand."""

    columns: tuple[str, ...] = Field(min_length=1, description="Columns with a picture or a list of pictures each, in order.")
    label_key: str = Field("", description="Where a picture is an object: the key of the name by which the question speaks of it.")
    label: str = Field("", description="Put before that name, for example `Figure`.")
    required: bool = Field(True, description="Whether a question without a picture is refused.")


class MappingConfig(Section):
    """`config/mappings/<name>.yaml`: a data set that `nmb benchmark import` reads by its columns."""

    title: str = Field(description="Name shown in the report.")
    home: str = Field(description="Where it is to be had.")
    licence: str = Field(description="As its authors state it.")
    axis: Axis = Field(description="`depth`, `breadth` or `control`.")
    expected: int = Field(0, ge=0, description="Questions of the published set; 0: not known.")
    files: tuple[str, ...] = Field(
        min_length=1,
        description="Patterns of its tables below the folder (`*.parquet`, `data/*/test.jsonl`); the first that fits any file counts, and"
        " all files that fit it are read. CSV, TSV, JSON, JSON lines and Parquet.",
    )
    under: str = Field("", description="Key of a JSON file below which its list of rows stands.")
    each: str = Field(
        "",
        description="Column with a list of objects, each a question: their keys are columns then, beside those of the row; `_place` is the"
        " number within the row.",
    )
    runner: Literal["choice", "open"] = Field(description="How it is asked: with options, or openly.")
    family: Family = Field(Family.QUESTION_ANSWERING, description="Task family; decides prompt and grading of open answers.")
    id: tuple[str, ...] = Field(
        (),
        description="Columns that together name a question; `_file` and `_folder` are the names of its table and of the folder of that."
        " Absent: `_file` and the number of the row.",
    )
    case: str = Field("", description="Column that names the case; questions of one case are one patient. Absent: every question is one.")
    question: str = Field("", description="Column of the question.")
    ask: str = Field("", description="The question where the set has none, or what is asked beside it.")
    case_in_question: bool = Field(
        False,
        description="The question tells the case first, as in an examination: what stands before the sentence that asks becomes text of the case"
        " (behind `text`), so that the text budget and the arms reach it.",
    )
    text: tuple[str, ...] = Field((), description="Columns of what is told of the case, in order.")
    options: OptionsMapping | None = Field(None, description="Options; needed by the runner `choice`.")
    answer: AnswerMapping | None = Field(None, description="The right answer; absent: the set has none, or it is `options.right`.")
    images: ImagesMapping | None = Field(None, description="Pictures; absent: the set has none.")
    tags: tuple[str, ...] = Field((), description="Columns by which tables may group: each becomes a tag `<column>:<value>`.")
    date: str = Field("", description="Column of the day of a question (`YYYY-MM-DD...`).")
    language: str = Field("en", pattern=r"^[a-z]{2}$", description="Language (ISO 639-1).")
    language_column: str = Field("", description="Column of the language, where it differs.")
    established: str = Field("label of the data set", description="How the answers are known.")
    label_policy: Literal["full", "none"] = Field("full", description="`none` where modality, sequence or plane are answers.")
    samples: int = Field(1, ge=1, le=100, description="Answers per request; 5 is usual for open answers.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.question and not self.ask:
            message = "set `question` (its column), `ask` (fixed words), or both"
            raise ValueError(message)
        if self.case_in_question and not self.question:
            message = "`case_in_question` needs `question`, the column that holds both"
            raise ValueError(message)
        if (self.runner == "choice") != (self.options is not None):
            message = "the runner choice needs `options`, the runner open has none"
            raise ValueError(message)
        if self.answer and self.options and self.options.right:
            message = "`options.right` is the answer; leave `answer` out"
            raise ValueError(message)
        if self.answer and self.runner == "open" and self.answer.form != "text":
            message = "open answers need `form: text`"
            raise ValueError(message)
        return self


def load_mappings(config: Path) -> dict[str, MappingConfig]:
    """Read all mappings of `<config>/mappings/`, sorted by name.

    Raises
    ------
    ConfigError
        If a name cannot be one, or a file does not fit; as in `config.load`.
    """
    paths = sorted((config / FOLDER).glob("*.yaml"))
    return {wildcard(path.stem): check(MappingConfig, read_yaml(path), path.as_posix()) for path in paths}
