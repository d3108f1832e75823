"""The files of a rating round: what a rater's page exports, and the key that stays here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from neuralmedbench.errors import RatingError
from neuralmedbench.records.scores import RatingPart

M = TypeVar("M", bound=BaseModel)

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pseudonym = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,40}$")]


class StrictModel(BaseModel):
    """A part of a file from outside: an unknown key is an error, and no type is guessed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MarkedError(StrictModel):
    """An error that a rater marked."""

    code: str
    significant: bool


class RatedItem(StrictModel):
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


class Rater(StrictModel):
    """Who rated, by pseudonym; `simulated` when a program filled the form in to exercise it."""

    id: Pseudonym
    role: str = ""
    years: float | None = None
    simulated: bool = False


class RatingExport(StrictModel):
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


class RatedResponse(StrictModel):
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


class PacketKey(StrictModel):
    """One rater's packet; `packet_sha256` is the digest of everything that it shows, `order` is that in which it does."""

    packet_id: str
    packet_sha256: Digest
    rater: Pseudonym
    items: dict[str, RatedResponse]
    order: list[str] = Field(default_factory=list)


class StratumKey(StrictModel):
    """How many responses a stratum had and how many of them were drawn, each with the same probability."""

    frame: int = Field(ge=1)
    drawn: int = Field(ge=1)
    probability: float = Field(gt=0, le=1)


class RoundKey(StrictModel):
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
