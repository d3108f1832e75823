"""A benchmark's card: its questions and settings, and the card with the answers filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.checklists import BLOCK, Answer, ChecklistConfig, ChecklistItem
from neuralmedbench.config.load import check, load_benchmark, nearest, read_yaml
from neuralmedbench.config.section import Name, Section
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.items import Axis

Rai = Literal[
    "dataCollection",
    "dataCollectionMissingData",
    "dataPreprocessingProtocol",
    "dataAnnotationProtocol",
    "dataAnnotationAnalysis",
    "annotationsPerItem",
    "annotatorDemographics",
    "dataReleaseMaintenancePlan",
    "personalSensitiveInformation",
    "dataSocialImpact",
    "dataBiases",
    "dataLimitations",
    "dataUseCases",
]
"""Properties of the Croissant RAI specification 1.0 that are free text and that a question of a card answers."""


class CardQuestion(Section):
    """One question of a form."""

    id: Name = Field(description="Short name; cards answer by it.")
    part: str = Field(description="Part of the form.")
    about: str = Field(min_length=1, description="What it asks, in short words of our own.")
    rai: Rai | None = Field(None, description="Property of a Croissant description (`rai:`) that takes the answer over.")


class CardForm(Section):
    """`config/cards/forms/<form>.yaml`: what is asked about every benchmark."""

    title: str = Field(description="Name of the form.")
    source: str = Field(description="Where its questions come from.")
    missing: str = Field("", description="What of the published questions is not here, and why.")
    questions: tuple[CardQuestion, ...] = Field(min_length=1, description="Its questions in order.")


class CardAnswer(Section):
    """One answer of a card."""

    answer: Answer = Field(description="`yes`, `no`, `not applicable` or `study team`; whatever nobody answered is left to the study team.")
    text: str = Field("", description="The answer in words.")
    where: str = Field("", pattern=BLOCK, description="Block of the report that answers it or helps to, as `#block`.")

    @model_validator(mode="after")
    def _says_something(self) -> CardAnswer:
        if self.answer != "study team" and not (self.text or self.where):
            message = f"is answered `{self.answer}` and says neither where nor how; write a text, or leave it to the study team"
            raise ValueError(message)
        return self


class Creator(Section):
    """Who made a data set."""

    name: str = Field(min_length=1, description="Name.")
    kind: Literal["person", "organization"] = Field(description="`person` or `organization`.")


class CroissantConfig(Section):
    """What a Croissant description says that no run can know; what is not given is left out of it."""

    url: str | None = Field(None, pattern="^https?://", description="Web page of the data set.")
    files_url: str | None = Field(
        None,
        pattern="^https?://",
        description="Address below which its files are published; absent: paths count from the project's folder.",
    )
    license: str | None = Field(None, description="Address of the data's licence, as in https://spdx.org/licenses/CC-BY-4.0.html.")
    creators: tuple[Creator, ...] = Field((), description="The people or organisations who made it.")
    cite_as: str | None = Field(None, description="How to cite it, best as BibTeX.")
    version: str | None = Field(None, pattern=r"^\d+\.\d+\.\d+$", description="Version of the data, as in 1.0.0.")
    date_published: str | None = Field(None, pattern=r"^\d{4}-\d{2}-\d{2}$", description="Day on which it was published.")
    keywords: tuple[str, ...] = Field((), description="Words by which it is found.")


class CardConfig(Section):
    """`config/cards/<benchmark>.yaml`: what is known of a benchmark."""

    like: Name | None = Field(None, description="Another benchmark whose answers hold here too; what stands here goes before them.")
    answers: dict[Name, dict[Name, CardAnswer]] = Field(
        default_factory=dict, description="Answers by form (`benchmark-card`, `datasheet`) and question."
    )
    croissant: CroissantConfig = Field(default_factory=CroissantConfig, description="What its Croissant description says beside.")


AXES = {
    Axis.DEPTH: "Depth: few hard cases, where the reasoning counts.",
    Axis.BREADTH: "Breadth: many short questions.",
    Axis.CONTROL: "Control: questions that show what a score means, and that are no measure of ability.",
}
SUBJECTS = {
    "phantom": "Phantoms. No patient is in it.",
    "public": "People, as others have published them.",
    "patient": "Patients of the site.",
}


@dataclass(frozen=True, kw_only=True)
class BenchmarkCard:
    """Everything that is known of a benchmark.

    Attributes
    ----------
    forms : list of ChecklistConfig
        The forms in the order of their file names, every question answered or left to the study team.
    croissant : CroissantConfig
        What a Croissant description says beside.
    rai : dict of str to list of str
        Texts of the answers that a Croissant description takes over, by property and in order; only what is known.
    """

    forms: list[ChecklistConfig]
    croissant: CroissantConfig
    rai: dict[Rai, list[str]]


def read_card(folder: Path, benchmark: str) -> BenchmarkCard:
    """Fill in the forms for a benchmark.

    Parameters
    ----------
    folder : Path
        Folder of the configuration.
    benchmark : str
        Its name. A benchmark without a card, or without a yaml of its own, has its questions left to the study team.

    Returns
    -------
    FilledCard
        The forms and what a Croissant description takes over.

    Raises
    ------
    ConfigError
        As in `read_yaml` and `check`, or if a card answers what no form asks, or is like one that is like another.
    """
    card = _card(folder, benchmark)
    yaml = folder / "benchmarks" / f"{benchmark}.yaml"
    known = facts(load_benchmark(folder, benchmark)) if yaml.is_file() else {}
    forms = {path.stem: check(CardForm, read_yaml(path), path.as_posix()) for path in sorted((folder / "cards" / "forms").glob("*.yaml"))}
    for name, answers in card.answers.items():
        _check_answers(f"{folder.as_posix()}/cards/{benchmark}.yaml", name, answers, forms)
    given = {name: {**known.get(name, {}), **card.answers.get(name, {})} for name in forms}
    rai: dict[Rai, list[str]] = {}
    for name, form in forms.items():
        for question in form.questions:
            answer = given[name].get(question.id)
            if question.rai and answer and answer.text and answer.answer in ("yes", "no"):
                rai.setdefault(question.rai, []).append(answer.text)
    return BenchmarkCard(forms=[_filled(form, given[name]) for name, form in forms.items()], croissant=card.croissant, rai=rai)


def facts(benchmark: BenchmarkConfig) -> dict[str, dict[str, CardAnswer]]:
    """Answer the questions of the benchmark card that the benchmark's own yaml answers."""
    reached = ["this machine" if place == "local" else place for place in benchmark.allowed_destinations]
    asked = (
        f"Arms: {', '.join(benchmark.arms)}. Strategies: {', '.join(benchmark.strategies)}. {benchmark.samples} answers to each request."
    )
    seen = "Where questions have dates, those before and after a model's documented cut-off are contrasted; the rest is for its makers to tell."
    said = {
        "axis": CardAnswer(answer="yes", text=f"{AXES[benchmark.axis]} It is made of {benchmark.kind}.", where="#axes"),
        "asked": CardAnswer(answer="yes", text=asked, where="#arms"),
        "contamination": CardAnswer(answer="study team", text=seen, where="#contamination"),
        "subjects": CardAnswer(answer="yes", text=SUBJECTS[benchmark.subjects], where="#privacy"),
        "deidentification": CardAnswer(
            answer="yes", text=f"Profile {benchmark.profile}; the audit counts what was done.", where="#privacy"
        ),
        "destinations": CardAnswer(answer="yes", text=f"Allowed: {', '.join(reached) or 'nowhere'}.", where="#left"),
    }
    return {"benchmark-card": said}


def _card(folder: Path, benchmark: str) -> CardConfig:
    path = folder / "cards" / f"{benchmark}.yaml"
    if not path.is_file():
        return CardConfig()
    card = check(CardConfig, read_yaml(path), path.as_posix())
    if card.like is None:
        return card
    other = folder / "cards" / f"{card.like}.yaml"
    base = check(CardConfig, read_yaml(other), other.as_posix())
    if base.like:
        message = f"{path.as_posix()}: like: {card.like} is itself like {base.like}; name that one"
        raise ConfigError(message)
    answers = {name: {**base.answers.get(name, {}), **card.answers.get(name, {})} for name in (*base.answers, *card.answers)}
    own = {name: getattr(card.croissant, name) for name in card.croissant.model_fields_set}
    return CardConfig(answers=answers, croissant=base.croissant.model_copy(update=own))


def _check_answers(path: str, name: str, answers: Mapping[str, CardAnswer], forms: Mapping[str, CardForm]) -> None:
    if name not in forms:
        message = f"{path}: answers: there is no form {name!r}{nearest(name, sorted(forms))}"
        raise ConfigError(message)
    asked = [question.id for question in forms[name].questions]
    if unknown := sorted(set(answers) - set(asked)):
        message = f"{path}: answers.{name}: nobody asks {unknown[0]!r}{nearest(unknown[0], asked)}"
        raise ConfigError(message)


def _filled(form: CardForm, answers: Mapping[str, CardAnswer]) -> ChecklistConfig:
    left = CardAnswer(answer="study team")
    items = []
    for question in form.questions:
        said = answers.get(question.id, left)
        items.append(
            ChecklistItem(id=question.id, part=question.part, about=question.about, answer=said.answer, where=said.where, note=said.text)
        )
    return ChecklistConfig(title=form.title, source=form.source, missing=form.missing, items=tuple(items))
