"""The files of a rating round: what a rater's form exports, the key that stays here, and the form itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from neuralmedbench.config.load import check, read_yaml
from neuralmedbench.config.section import Section
from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.adjudicating.settings import AdjudicationSettings
from neuralmedbench.ratings.answering.settings import AnswerSettings
from neuralmedbench.records.items import Family
from neuralmedbench.records.scores import RatingPart
from neuralmedbench.records.taxonomy import ERRORS, unknown_errors

M = TypeVar("M", bound=BaseModel)

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pseudonym = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,40}$")]


class Axis(Section):
    """One axis of the form: whole numbers from `lowest` to `highest`."""

    question: str
    lowest: int
    highest: int
    anchors: tuple[str, str]


class RoundSettings(Section):
    """How a round is drawn and shown: the section `rounds` of `config/rating.yaml`; what each key means stands there."""

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
        if (self.reference == "never") == bool(self.first_judgement):
            message = "first_judgement names the axes that are answered before the reference is shown: give both, or neither"
            raise ValueError(message)
        return self


class Passes(Section):
    """What a clinician's pass is: a value of `from_` (in the file `from`) or more on one axis, the mean where several rated an answer."""

    axis: str
    from_: int = Field(alias="from")


class Form(Section):
    """`config/rating.yaml`: the version of the rubric, its axes, the errors that may be marked, and how rounds of either kind are made."""

    rubric: str
    axes: dict[str, Axis] = Field(min_length=1)
    errors: tuple[str, ...] = ()
    passes: Passes | None = None
    adjudication: AdjudicationSettings = AdjudicationSettings()
    rounds: RoundSettings = RoundSettings()
    answers: AnswerSettings = AnswerSettings()

    @model_validator(mode="after")
    def _knows_its_errors(self) -> Form:
        if unknown := unknown_errors(self.errors):
            message = f"errors names codes that the taxonomy does not have: {', '.join(unknown)}; it has {', '.join(ERRORS)}"
            raise ValueError(message)
        if len(set(self.errors)) != len(self.errors):
            message = "errors names a code twice"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _knows_its_axes(self) -> Form:
        if unknown := sorted(set(self.rounds.first_judgement) - set(self.axes)):
            message = f"rounds.first_judgement names axes that the form does not have: {', '.join(unknown)}"
            raise ValueError(message)
        if unknown := sorted({*self.adjudication.apart, *self.adjudication.across} - set(self.axes)):
            message = f"adjudication names axes that the form does not have: {', '.join(unknown)}"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _passes_on_its_axes(self) -> Form:
        if self.passes is None:
            return self
        if self.passes.axis not in self.axes:
            message = f"passes.axis is {self.passes.axis}, an axis that the form does not have; it has {', '.join(self.axes)}"
            raise ValueError(message)
        axis = self.axes[self.passes.axis]
        if not axis.lowest < self.passes.from_ <= axis.highest:
            message = f"passes.from is {self.passes.from_}, expected {axis.lowest + 1} to {axis.highest}: all would pass, or none"
            raise ValueError(message)
        return self


class Strict(BaseModel):
    """A part of a file from outside: an unknown key is an error, and no type is guessed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MarkedError(Strict):
    """An error that a rater marked."""

    code: str
    significant: bool


class RatedItem(Strict):
    """One response as one rater saw it.

    `cannot_judge` names single axes, the status of that name means all of them. `reference_shown`: the reference was opened here, after
    the first judgement; `reference_seen`: it stood open before that, at another answer to the same case.
    """

    item_id: str
    position: int = Field(ge=1)
    status: Literal["rated", "cannot_judge", "not_rated"]
    scores: dict[str, int] = Field(default_factory=dict)
    cannot_judge: list[str] = Field(default_factory=list)
    errors: list[MarkedError] = Field(default_factory=list)
    seconds_active: float | None = Field(None, ge=0, le=86_400)
    revisions: int = Field(0, ge=0)
    reference_shown: bool = False
    reference_seen: bool = False
    comment: str = ""


class Rater(Strict):
    """Who rated, by pseudonym; `simulated` when a program filled the form in to exercise it."""

    id: Pseudonym
    role: str = ""
    years: float | None = None
    simulated: bool = False


class Export(Strict):
    """One export of the form."""

    schema_name: Literal["neuralmedbench.rating/1"] = Field(alias="schema")
    packet_id: str
    packet_sha256: Digest
    rubric: str
    rater: Rater
    started: str
    exported: str
    complete: bool
    items: list[RatedItem]


class RatedResponse(Strict):
    """What stands behind an opaque id: the key of a response and the digest of its text, or of a control's.

    `probability` is that of the draw, in its `stratum`; `again_of` is the opaque id of the first showing; `masked` counts the names of
    models that were hidden in the text.
    """

    item_id: str
    arm: str
    strategy: str
    model: str
    revision: str
    repeat: int
    text_sha256: Digest
    part: RatingPart = RatingPart.SAMPLE
    stratum: str = ""
    probability: float | None = Field(None, gt=0, le=1)
    again_of: str = ""
    masked: int = Field(0, ge=0)


class PacketKey(Strict):
    """One rater's packet; `packet_sha256` is the digest of everything that it shows, `order` is that in which it does."""

    packet_id: str
    packet_sha256: Digest
    rater: Pseudonym
    items: dict[str, RatedResponse]
    order: list[str] = Field(default_factory=list)


class StratumKey(Strict):
    """How many responses a stratum had and how many of them were drawn, each with the same probability."""

    frame: int = Field(ge=1)
    drawn: int = Field(ge=1)
    probability: float = Field(gt=0, le=1)


class RoundKey(Strict):
    """`key.json` of a round: never leaves this place, never goes to a rater.

    `seed` is that of the draw, opaque ids and orders come from `secret`; `first_judgement` names the axes that were answered before the
    reference was shown, none where it never was.
    """

    schema_name: Literal["neuralmedbench.rating_key/2"] = Field(alias="schema")
    round_id: str
    rubric: str
    seed: int
    secret: str
    first_judgement: list[str]
    strata: dict[str, StratumKey]
    packets: list[PacketKey]


def read_form(path: Path) -> Form:
    """Read `config/rating.yaml`; ConfigError when it is absent or does not fit."""
    return check(Form, read_yaml(path), path.as_posix())


def read_file(path: Path, model: type[M]) -> M:
    """Read an export or a key.

    Raises
    ------
    RatingError
        If it is absent, is not JSON or does not fit; the message names the place, never what a rater wrote.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        message = f"{path.name}: the file is not there; put it back into the folder of its round"
        raise RatingError(message) from None
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        message = f"{path.name}: refused at {where}: {first['type']}; ask the rater to export again"
        raise RatingError(message) from None
