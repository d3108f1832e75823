"""Keys of `config/mappings/<name>.yaml` (which columns of a data set make a question) and of `config/curation.yaml` (which questions stay)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from neuralmedbench.config.load import check, read_yaml, wildcard
from neuralmedbench.config.section import Name, Section
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.items import Axis, Family

FOLDER = "mappings"
Stage = Literal["completeness", "experts", "ground_truth", "challenge"]
Need = Literal["text", "images", "answer"]
Part = Literal["answer", "differentials", "findings", "lesion", "findings_or_lesion", "rationale", "turn_leaders"]
RuleName = Literal[
    "number", "whole_number", "index", "date", "weeks_and_days", "interval", "letter", "letters", "label", "box", "keywords", "words"
]
"""Names of `records.value_rules.RULES`; a test compares them."""
FieldName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""Key of a value in an answer."""

FUNCTION = "write `question(row)` in a Python file of the same name beside the mapping (docs/benchmarks.md, Odd data)"
"""What replaces the keys that described odd data."""
BY_FUNCTION = (
    "beside", "boxes_in_question", "conversation", "drop", "each", "exclude", "index", "join", "language_column", "only_rows", "pair", "parts",
    "rounds", "rounds_in", "skip_blank", "skip_rows", "variants",
)  # fmt: skip
REMOVED = dict.fromkeys(BY_FUNCTION, FUNCTION) | {
    "one_file": "name the one file in `files`",
    "limit": "make a smaller table, or limit the run with `nmb run try --limit`",
    "findings": "findings are part of cases of your own (docs/own-scans.md)",
    "must_not": "give the statement negative points in `rubric`",
}
"""Former keys, with what to write instead."""
FORMER_OBJECTS = {
    "options": "write `options: column`, `options: [A, B]`, `fixed_options: [...]` or `distractors: [...]`, and `keep_repeated: true`",
    "answer": "write `answer: column`, and `first_number: 0` or `first_number: 1` for numbers, and `aliases: column`",
    "rubric": "write `rubric: column`",
    "patient": f"write `patient: column`; for a part of a cell {FUNCTION}",
}
"""Keys that were objects, with what to write instead."""


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


class FieldMapping(Section):
    """A value of a structured answer, compared with its reference by a rule, without a grader."""

    column: str = Field(description="Column of the reference; the value is not scored in a row where it is empty.")
    rule: RuleName = Field(
        description="`number` (needs `within`), `whole_number` (equal after rounding), `index`, `date` (MM/DD/YYYY), `weeks_and_days`, `interval`,"
        " `letter` (one of those of the reference), `letters` (all of them), `label`, `box` (intersection over union), `keywords`, `words`."
    )
    words: str = Field("", description="What the prompt says of it; absent: the words of the rule.")
    within: float | None = Field(None, ge=0, lt=1, description="Limits of a `number` as a share of the reference: 0.05 is 5 %.")

    @model_validator(mode="after")
    def _has_limits(self) -> Self:
        if (self.rule == "number") != (self.within is not None):
            message = "a number needs `within`, and nothing else has it; limits in columns: " + FUNCTION
            raise ValueError(message)
        return self


class ImagesMapping(Section):
    """The pictures of a question: paths in the folder, base64, or bytes."""

    columns: tuple[str, ...] = Field(
        min_length=1, description="Columns with a picture or a list of pictures, in order; of an object its key (`image.bytes`)."
    )
    folder: str = Field("", description="Subfolder of the paths, in the data set's folder or in that of the table; absent: these two.")
    roles: tuple[Literal["picture", "prior", "current", "part"], ...] = Field(
        (),
        description="Role of the pictures of each column: `prior` and `current` are shown in this order as `Earlier image` and `Present image`,"
        " `part` as `Image 1`, `Image 2`... A model that takes fewer pictures than these is not asked. Absent: `picture`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _former_keys(cls, value: Any) -> Any:
        return _without_former(
            value,
            {
                "form": "leave it out, the form is read from the cell",
                "key": "name it in `columns`, as in `image.bytes`",
                "required": "name the columns in `optional`",
                "suffix": FUNCTION,
                "label": FUNCTION,
                "label_key": FUNCTION,
                "same_as": FUNCTION,
            },
        )

    @model_validator(mode="after")
    def _one_role_each(self) -> Self:
        if self.roles and len(self.roles) != len(self.columns):
            message = f"{len(self.columns)} columns and {len(self.roles)} roles; give each column of `columns` its role, in the same order"
            raise ValueError(message)
        return self


class MappingConfig(Section):
    """`config/mappings/<name>.yaml`: a data set that `nmb benchmark import` reads by its columns, or by `question(row)` of `<name>.py`."""

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
    optional: tuple[str, ...] = Field((), description="Columns that a row may lack; they are empty there.")
    runner: Literal["choice", "open", "structured", "dialogue"] = Field(
        description="How it is asked: with options, openly, for a JSON object with `fields`, or in rounds."
    )
    family: Family = Field(Family.QUESTION_ANSWERING, description="Task family; determines prompt and grading of open answers.")
    persona: str = Field(
        "",
        description="Who the model is, the first sentence of the system prompt, for example `You are a physician.` Absent: a neurologist.",
    )
    id: tuple[str, ...] = Field(
        (),
        description="Columns that together identify a question. Every row also has `_file` and `_folder` (names of its table and of the table's"
        " folder), `_path`, `_row` (its number over all tables) and in JSON objects of objects `_key`. Absent: `_file` and the number in it.",
    )
    case: str = Field("", description="Column with the case; questions of one case are one patient. Absent: each question is its own case.")
    patient: str = Field("", description="Column with the patient, where several cases have one.")
    text: tuple[str, ...] = Field((), description="Columns with the text of the case, in order; lists are joined by line ends.")
    headings: bool = Field(False, description="Whether each column of `text` is headed by its name.")
    question: str = Field("", description="Column of the question.")
    ask: str = Field("", description="The question if the set has none, or an addition to it.")
    case_in_question: bool = Field(
        False,
        description="The question begins with the case, as in an examination: everything before the lead-in becomes text of the case (after"
        " `text`), so that the text budget and the arms apply to it.",
    )
    facts: str = Field(
        "",
        description="Column with the list of facts after `text`, which the strategy `ask` reveals one by one: of a dialogue of one round, or of a"
        " question with options, whose `text` is then the start.",
    )
    options: str | tuple[str, ...] = Field(
        "",
        description="Options of a choice: one column with all of them (a list, letters with texts, lines `A. ...`), or a list of columns.",
    )
    fixed_options: tuple[str, ...] = Field(
        (), description='The same options for every question, for example `["Yes", "No"]` (YAML reads bare ones as true and false).'
    )
    distractors: tuple[str, ...] = Field(
        (),
        description="Columns of the wrong options, if `answer` is the text of the right one; a digest orders them, the same in every run.",
    )
    keep_repeated: bool = Field(
        False,
        description="Whether a question with two equal options is asked as published: only the letter or number of the answer counts.",
    )
    answer: str = Field(
        "", description="Column of the answer: letter, number or text of an option, or the answer in words. Empty cells have no answer."
    )
    first_number: Literal[0, 1] | None = Field(None, description="Number of the first option, if answers are numbers.")
    aliases: str = Field("", description="Column of equally right names: a list, or text separated by `;`. It may be that of `answer`.")
    fields: dict[FieldName, FieldMapping] = Field({}, description="Values of a structured answer, by key; it passes if all are right.")
    rubric: str = Field(
        "", description="Column with the criteria of an open answer: statements of one point, or objects (`criterion`, `points`, `cap`)."
    )
    reasons: str = Field("", description="Column with the reasons for the answer: a list, or numbered statements.")
    images: ImagesMapping | None = Field(None, description="Pictures; absent: the set has none.")
    tags: tuple[str, ...] = Field((), description="Columns by which tables may group: each becomes a tag `<column>:<value>`.")
    date: str = Field("", description="Column of the day of a question (`YYYY-MM-DD...`).")
    language: str = Field(
        "en",
        pattern=r"^([a-z]{2}|script)$",
        description="Language (ISO 639-1); `script`: Japanese, Korean or Chinese by the letters of case and question, else English.",
    )
    established: str = Field("label of the data set", description="How the answers are known.")
    label_policy: Literal["full", "none"] = Field("full", description="`none` where modality, sequence or plane are answers.")
    samples: int = Field(1, ge=1, le=100, description="Answers per request; 5 is usual for open answers.")

    @model_validator(mode="before")
    @classmethod
    def _former_keys(cls, value: Any) -> Any:
        """Refuse a former key, or a former form of one, with what to write instead."""
        entries = value if isinstance(value, dict) else {}
        former = {key: text for key, text in FORMER_OBJECTS.items() if isinstance(entries.get(key), dict)}
        if any(isinstance(column, dict) for column in entries.get("text") or ()):
            former["text"] = f"{FUNCTION}; `object_text(value)` writes an object as text"
        return _without_former(value, REMOVED | former)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for problem in (self._problem_of_options(), self._problem_of_answer(), self._problem_of_case()):
            if problem:
                raise ValueError(problem)
        return self

    def columns(self) -> dict[str, str]:
        """Return the key that names each column which every row needs."""
        options = (self.options,) if isinstance(self.options, str) else self.options[:2]
        named = {
            "case": (self.case,),
            "question": (self.question,),
            "text": self.text,
            "facts": (self.facts,),
            "date": (self.date,),
            "tags": self.tags,
            "id": self.id,
            "patient": (self.patient,),
            "options": options,
            "distractors": self.distractors,
            "answer": (self.answer,),
            "aliases": (self.aliases,),
            "rubric": (self.rubric,),
            "reasons": (self.reasons,),
            "images": self.images.columns if self.images else (),
            **{f"fields.{name}": (field.column,) for name, field in self.fields.items()},
        }
        return {column: key for key, columns in named.items() for column in columns if column and column not in self.optional}

    def problem_without_function(self) -> str:
        """Return what is missing if no Python function makes the questions; empty if nothing is."""
        needed = {
            "choice": bool(self.options or self.fixed_options or self.distractors),
            "structured": bool(self.fields),
            "dialogue": bool(self.facts),
        }
        if not needed.get(self.runner, True):
            key = {"choice": "options", "structured": "fields", "dialogue": "facts"}[self.runner]
            return f"the runner {self.runner} needs `{key}`, or a function: {FUNCTION}"
        return "" if self.question or self.ask else "set `question` (its column), `ask` (fixed words), or both"

    def _problem_of_options(self) -> str:
        ways = sum(map(bool, (self.options, self.fixed_options, self.distractors)))
        if ways > 1:
            return "set one of `options`, `fixed_options` and `distractors`"
        asks_diagnosis = self.runner == "open" and self.family is Family.DIFFERENTIAL_DIAGNOSIS
        if ways and self.runner != "choice" and not asks_diagnosis:
            return "options are for the runner choice, or for open questions of the family differential_diagnosis"
        return "`distractors` need `answer`, the column of the right option" if self.distractors and not self.answer else ""

    def _problem_of_answer(self) -> str:
        if self.fields and (self.runner != "structured" or self.answer):
            return "`fields` are for the runner structured, without `answer`"
        if reserved := {"confidence", "reasoning"} & self.fields.keys():
            return f"every answer has a key {min(reserved)}; give the field another name"
        if self.runner == "structured" and self.family is not Family.QUESTION_ANSWERING:
            return "values are asked for by the family question_answering"
        if (self.rubric or self.reasons) and self.runner not in {"open", "dialogue"}:
            return "`rubric` and `reasons` are for open answers and dialogues"
        return ""

    def _problem_of_case(self) -> str:
        if self.case_in_question and not self.question:
            return "`case_in_question` needs `question`, the column that holds both"
        if self.facts and not (self.runner == "dialogue" or (self.runner == "choice" and self.text)):
            return "`facts` are for the runner dialogue, or for options with `text`, with which the case starts"
        if self.runner == "dialogue" and self.family is not Family.DIFFERENTIAL_DIAGNOSIS:
            return "a dialogue ends in a diagnosis; set `family: differential_diagnosis`"
        references = (self.answer, self.aliases, self.rubric, self.reasons, *(field.column for field in self.fields.values()))
        for column in (*self.text, self.question):
            for reference in references:
                if column and reference and f"{reference}.".startswith(f"{column}."):
                    return f"the text {column!r} shows {reference!r}, by which answers are scored; name other columns"
        return ""


def _without_former(value: Any, former: dict[str, str]) -> Any:
    """Refuse former keys; those with the same remedy stand together."""
    keys: dict[str, list[str]] = {}
    for key in former.keys() & value.keys() if isinstance(value, dict) else ():
        keys.setdefault(former[key], []).append(f"`{key}`")
    if keys:
        remedies = (f"{', '.join(sorted(names))}: {remedy}" for remedy, names in keys.items())
        message = f"former keys; {'; '.join(sorted(remedies))}"
        raise ValueError(message)
    return value


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
    mappings = {}
    for path in sorted((config / FOLDER).glob("*.yaml")):
        try:
            mappings[wildcard(path.stem)] = _load_mapping(path)
        except ConfigError:
            if wanted in {"", path.stem}:
                raise
    return mappings


def _load_mapping(path: Path) -> MappingConfig:
    mapping = check(MappingConfig, read_yaml(path), path.as_posix())
    problem = "" if path.with_suffix(".py").exists() else mapping.problem_without_function()
    if problem:
        message = f"{path.as_posix()}: {problem}"
        raise ConfigError(message)
    return mapping


def load_curation(path: Path) -> CurationConfig:
    """Read the settings of a curation; ConfigError as in `config.load`."""
    return check(CurationConfig, read_yaml(path), path.as_posix())
