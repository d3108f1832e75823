"""Keys of `config/cards/`: what is asked about every benchmark (`forms/`), and what is known of one (`<benchmark>.yaml`)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.checklists import BLOCK, Answer
from neuralmedbench.config.section import Name, Section

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
