"""A benchmark's card: the forms with their questions, and the card with the answers filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.checklists import PLACES, Answer, AnswerSheet, ChecklistItem
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
"""Free-text properties of the Croissant RAI specification 1.0 that cards can answer."""


class CardQuestion(Section):
    """One question of a form."""

    id: Name = Field(description="Short name, by which cards answer it.")
    part: str = Field(description="Part of the form.")
    about: str = Field(min_length=1, description="The question, in short words of our own.")
    rai: Rai | None = Field(None, description="Property of the Croissant description (`rai:`) that gets the answer.")


class CardForm(Section):
    """`config/cards/forms/<form>.yaml`: questions about every benchmark."""

    title: str = Field(description="Name of the form.")
    source: str = Field(description="Source of its questions.")
    missing: str = Field("", description="Published questions that are missing here, and why.")
    questions: tuple[CardQuestion, ...] = Field(min_length=1, description="Its questions in order.")


class CardAnswer(Section):
    """One answer of a card."""

    answer: Answer = Field(
        description="`yes`, `partly`, `no`, `not applicable` or `study team`; unanswered questions are left to the study team."
    )
    text: str = Field("", description="The answer in words.")
    where: str = Field("", pattern=PLACES, description="Elements of the page that answer it, as in a checklist.")

    @model_validator(mode="after")
    def _says_something(self) -> CardAnswer:
        if self.answer != "study team" and not (self.text or "." in self.where):
            message = (
                f"is answered `{self.answer}` without `text`, and `where` names no element of the page (`#block.element`); "
                "write a text, or leave it to the study team"
            )
            raise ValueError(message)
        return self


class Creator(Section):
    """A creator of a data set."""

    name: str = Field(min_length=1, description="Name.")
    kind: Literal["person", "organization"] = Field(description="`person` or `organization`.")


class CroissantConfig(Section):
    """Content of a Croissant description that no run can know; missing keys are left out of it."""

    url: str | None = Field(None, pattern="^https?://", description="Web page of the data set.")
    files_url: str | None = Field(
        None,
        pattern="^https?://",
        description="Base address of its published files; absent: paths are relative to the project folder.",
    )
    license: str | None = Field(None, description="Address of the data's licence, for example https://spdx.org/licenses/CC-BY-4.0.html.")
    creators: tuple[Creator, ...] = Field((), description="People or organisations that created it.")
    cite_as: str | None = Field(None, description="Citation, preferably in BibTeX.")
    version: str | None = Field(None, pattern=r"^\d+\.\d+\.\d+$", description="Version of the data, for example 1.0.0.")
    date_published: str | None = Field(None, pattern=r"^\d{4}-\d{2}-\d{2}$", description="Publication date.")
    keywords: tuple[str, ...] = Field((), description="Keywords for search.")


class CardConfig(Section):
    """`config/cards/<benchmark>.yaml`: the card of a benchmark."""

    like: Name | None = Field(None, description="Another benchmark whose answers also apply here; answers here take precedence.")
    answers: dict[Name, dict[Name, CardAnswer]] = Field(
        default_factory=dict, description="Answers by form (`benchmark-card`, `datasheet`) and question."
    )
    croissant: CroissantConfig = Field(default_factory=CroissantConfig, description="Further content of its Croissant description.")


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
    """The filled-in card of a benchmark.

    Attributes
    ----------
    forms : list of AnswerSheet
        The forms in the order of their file names, with every question answered or left to the study team.
    croissant : CroissantConfig
        Further content of the Croissant description.
    rai : dict of str to list of str
        Answer texts for the Croissant description, by property, in order; answered questions only.
    """

    forms: list[AnswerSheet]
    croissant: CroissantConfig
    rai: dict[Rai, list[str]]


def read_card(folder: Path, benchmark: str) -> BenchmarkCard:
    """Fill in the forms for a benchmark.

    Parameters
    ----------
    folder : Path
        Folder of the configuration.
    benchmark : str
        Its name. Without a card or a YAML file of its own, its questions are left to the study team.

    Returns
    -------
    BenchmarkCard
        The filled-in forms and the content of the Croissant description.

    Raises
    ------
    ConfigError
        As in `read_yaml` and `check`, or if a card answers a question of no form, or chains `like`.
    """
    card = _card(folder, benchmark)
    yaml = folder / "benchmarks" / f"{benchmark}.yaml"
    # answers that follow from the benchmark's YAML; the card's own answers take precedence
    known = facts(load_benchmark(folder, benchmark)) if yaml.is_file() else {}
    forms = {path.stem: check(CardForm, read_yaml(path), path.as_posix()) for path in sorted((folder / "cards" / "forms").glob("*.yaml"))}
    for name, answers in card.answers.items():
        _check_answers(f"{folder.as_posix()}/cards/{benchmark}.yaml", name, answers, forms)
    given = {name: {**known.get(name, {}), **card.answers.get(name, {})} for name in forms}
    # only answered questions enter the Croissant description
    rai: dict[Rai, list[str]] = {}
    for name, form in forms.items():
        for question in form.questions:
            answer = given[name].get(question.id)
            if question.rai and answer and answer.text and answer.answer in ("yes", "partly", "no"):
                rai.setdefault(question.rai, []).append(answer.text)
    return BenchmarkCard(forms=[_filled(form, given[name]) for name, form in forms.items()], croissant=card.croissant, rai=rai)


def facts(benchmark: BenchmarkConfig) -> dict[str, dict[str, CardAnswer]]:
    """Answer the questions of the benchmark card, by form and question, that the benchmark's YAML answers."""
    reached = ["this machine" if place == "local" else place for place in benchmark.allowed_destinations]
    asked = (
        f"Arms: {', '.join(benchmark.arms)}. Strategies: {', '.join(benchmark.strategies)}. {benchmark.samples} answers to each request."
    )
    seen = "Where questions have dates, those before and after a model's documented cut-off are contrasted; the rest is for its makers to tell."
    answers = {
        "axis": CardAnswer(answer="yes", text=f"{AXES[benchmark.axis]} It is made of {benchmark.kind}.", where="#matrix"),
        "asked": CardAnswer(answer="yes", text=asked, where="#arms"),
        "contamination": CardAnswer(answer="study team", text=seen, where="#contamination"),
        "subjects": CardAnswer(answer="yes", text=SUBJECTS[benchmark.subjects], where="#privacy"),
        "deidentification": CardAnswer(
            answer="yes", text=f"Profile {benchmark.profile}; the audit counts what was done.", where="#privacy"
        ),
        "destinations": CardAnswer(answer="yes", text=f"Allowed: {', '.join(reached) or 'nowhere'}.", where="#left"),
    }
    return {"benchmark-card": answers}


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
        message = f"{path.as_posix()}: like: {card.like} is itself like {base.like}; name {base.like} instead"
        raise ConfigError(message)
    # own answers take precedence over those of the other card
    answers = {name: {**base.answers.get(name, {}), **card.answers.get(name, {})} for name in (*base.answers, *card.answers)}
    overrides = {name: getattr(card.croissant, name) for name in card.croissant.model_fields_set}
    return CardConfig(answers=answers, croissant=base.croissant.model_copy(update=overrides))


def _check_answers(path: str, name: str, answers: Mapping[str, CardAnswer], forms: Mapping[str, CardForm]) -> None:
    if name not in forms:
        message = f"{path}: answers: there is no form {name!r}{nearest(name, sorted(forms))}"
        raise ConfigError(message)
    asked = [question.id for question in forms[name].questions]
    if unknown := sorted(set(answers) - set(asked)):
        message = f"{path}: answers.{name}: there is no question {unknown[0]!r}{nearest(unknown[0], asked)}"
        raise ConfigError(message)


def _filled(form: CardForm, answers: Mapping[str, CardAnswer]) -> AnswerSheet:
    left = CardAnswer(answer="study team")
    items = []
    for question in form.questions:
        given = answers.get(question.id, left)
        items.append(
            ChecklistItem(id=question.id, part=question.part, about=question.about, answer=given.answer, where=given.where, note=given.text)
        )
    return AnswerSheet(title=form.title, source=form.source, missing=form.missing, items=tuple(items))
