"""Files of a rating round: the export of a rater's page, and the key of the round."""

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
    """Part of an external file: unknown keys are errors, and types are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MarkedError(StrictModel):
    """An error that a rater marked."""

    code: str
    significant: bool


class RatedItem(StrictModel):
    """One response as one rater saw it.

    `cannot_judge` names single axes; the status of that name means all of them. `reference_shown`: the reference was opened at this answer,
    after the first judgement; `reference_seen`: it was opened earlier, at another answer to the same case.
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
    """A rater, by pseudonym; `simulated` if a program filled the form in for the demo."""

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
    """The answer of an opaque id: the key of a response and the digest of its text, or of the text of a control.

    `probability` is that of the draw within its `stratum`; `again_of` is the opaque id of the first showing; `masked` counts the model names
    hidden in the text.
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
    """One rater's packet; `packet_sha256` is the digest of its content, `order` the order of the answers."""

    packet_id: str
    packet_sha256: Digest
    rater: Pseudonym
    items: dict[str, RatedResponse]
    order: list[str] = Field(default_factory=list)


class StratumKey(StrictModel):
    """Size of a stratum and number of draws from it; all its members have the same probability."""

    frame: int = Field(ge=1)
    drawn: int = Field(ge=1)
    probability: float = Field(gt=0, le=1)


class RoundKey(StrictModel):
    """`key.json` of a round: it never leaves this machine and never goes to a rater.

    `seed` is that of the draw; opaque ids and orders are derived from `secret`; `first_judgement` names the axes that are rated before the
    reference is shown, and is empty if it is never shown.
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
        If it is missing, is not JSON or is invalid; the message names the key, never what a rater wrote.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        message = f"{path.name}: the file is missing; put it back into the folder of its round"
        raise RatingError(message) from None
    except ValidationError as error:
        # `include_input=False` keeps the text of raters out of the message
        first = error.errors(include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        message = f"{path.name}: refused at {where}: {first['type']}; ask the rater to export again"
        raise RatingError(message) from None
