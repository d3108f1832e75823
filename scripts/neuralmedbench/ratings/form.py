"""The form of a rating round and the settings of its draw: `config/rating.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from neuralmedbench.config.load import check, read_yaml
from neuralmedbench.config.section import Section
from neuralmedbench.records.items import Family
from neuralmedbench.records.taxonomy import ERRORS, unknown_errors


class AdjudicationSettings(Section):
    """By axis: the difference in points, or the bound between values, that makes a disagreement."""

    apart: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    across: dict[str, int] = Field(default_factory=dict)


class AnswerSettings(Section):
    """Settings of reader rounds: the section `answers` of `config/rating.yaml`, which documents each key."""

    items: int = Field(40, ge=1)
    readers: int = Field(2, ge=1, le=50)
    once_per_case: bool = True
    families: tuple[Family, ...] = tuple(Family)
    seed: int = 1


class RatingAxis(Section):
    """One axis of the form: whole numbers from `lowest` to `highest`."""

    question: str
    lowest: int
    highest: int
    anchors: tuple[str, str]


class RoundSettings(Section):
    """Settings of the draw and the page: the section `rounds` of `config/rating.yaml`, which documents each key."""

    responses: int = Field(60, ge=1)
    raters: int = Field(2, ge=1, le=50)
    raters_per_response: int = Field(2, ge=1)
    repeats: float = Field(0.15, ge=0, le=0.5)
    controls: int = Field(2, ge=0, le=20)
    families: tuple[Family, ...] = (Family.DIFFERENTIAL_DIAGNOSIS, Family.LESION_RECOGNITION, Family.RATIONALE_GENERATION)
    seed: int = 1
    reference: Literal["never", "after_first_judgement"] = "never"
    first_judgement: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> RoundSettings:
        if self.raters_per_response > self.raters:
            message = f"raters_per_response is {self.raters_per_response}, there are {self.raters} raters"
            raise ValueError(message)
        # one setting without the other has no effect
        if (self.reference == "never") == bool(self.first_judgement):
            message = "first_judgement names the axes that are rated before the reference is shown: give both, or neither"
            raise ValueError(message)
        return self


class PassRule(Section):
    """Definition of a pass by clinicians: at least `from_` (`from` in the file) on one axis; the mean if several rated an answer."""

    axis: str
    from_: int = Field(alias="from")


class RatingForm(Section):
    """`config/rating.yaml`: version of the rubric, axes, errors that may be marked, and settings of both kinds of round."""

    rubric: str
    axes: dict[str, RatingAxis] = Field(min_length=1)
    errors: tuple[str, ...] = ()
    passes: PassRule | None = None
    adjudication: AdjudicationSettings = AdjudicationSettings()
    rounds: RoundSettings = RoundSettings()
    answers: AnswerSettings = AnswerSettings()

    @model_validator(mode="after")
    def _knows_its_errors(self) -> RatingForm:
        if unknown := unknown_errors(self.errors):
            message = f"errors names codes that the taxonomy does not have: {', '.join(unknown)}; it has {', '.join(ERRORS)}"
            raise ValueError(message)
        if len(set(self.errors)) != len(self.errors):
            message = "errors names a code twice"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _knows_its_axes(self) -> RatingForm:
        if unknown := sorted(set(self.rounds.first_judgement) - set(self.axes)):
            message = f"rounds.first_judgement names axes that the form does not have: {', '.join(unknown)}"
            raise ValueError(message)
        if unknown := sorted({*self.adjudication.apart, *self.adjudication.across} - set(self.axes)):
            message = f"adjudication names axes that the form does not have: {', '.join(unknown)}"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _passes_on_its_axes(self) -> RatingForm:
        if self.passes is None:
            return self
        if self.passes.axis not in self.axes:
            message = f"passes.axis is {self.passes.axis}, an axis that the form does not have; it has {', '.join(self.axes)}"
            raise ValueError(message)
        axis = self.axes[self.passes.axis]
        # a bound at the lowest value would pass every answer
        if not axis.lowest < self.passes.from_ <= axis.highest:
            message = f"passes.from is {self.passes.from_}, expected {axis.lowest + 1} to {axis.highest}: all would pass, or none"
            raise ValueError(message)
        return self


def read_form(path: Path) -> RatingForm:
    """Read `config/rating.yaml`; ConfigError if it is missing or invalid."""
    return check(RatingForm, read_yaml(path), path.as_posix())
