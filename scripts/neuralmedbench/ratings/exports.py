"""The files of a rating round: what a rater's form exports, the key that stays here, and the form itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from neuralmedbench.config.load import check, read_yaml
from neuralmedbench.config.section import Section
from neuralmedbench.errors import RatingError

M = TypeVar("M", bound=BaseModel)

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pseudonym = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,40}$")]


class Axis(Section):
    """One axis of the form: whole numbers from `lowest` to `highest`."""

    question: str
    lowest: int
    highest: int
    anchors: tuple[str, str]


class Form(Section):
    """`config/rating.yaml`: the version of the rubric, its axes and the errors that may be marked."""

    rubric: str
    axes: dict[str, Axis] = Field(min_length=1)
    errors: tuple[str, ...] = ()


class Strict(BaseModel):
    """A part of a file from outside: an unknown key is an error, and no type is guessed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MarkedError(Strict):
    """An error that a rater marked."""

    code: str
    significant: bool


class RatedItem(Strict):
    """One response as one rater saw it."""

    item_id: str
    position: int = Field(ge=1)
    status: Literal["rated", "cannot_judge", "not_rated"]
    scores: dict[str, int] = Field(default_factory=dict)
    errors: list[MarkedError] = Field(default_factory=list)
    seconds_active: float | None = Field(None, ge=0, le=86_400)
    revisions: int = Field(0, ge=0)
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
    """The response behind an opaque id: its key and the digest of the text that was shown."""

    item_id: str
    arm: str
    strategy: str
    model: str
    revision: str
    repeat: int
    text_sha256: Digest


class PacketKey(Strict):
    """`key.json` of a round: never leaves this place, never goes to a rater."""

    schema_name: Literal["neuralmedbench.rating_key/1"] = Field(alias="schema")
    packet_id: str
    packet_sha256: Digest
    rubric: str
    items: dict[str, RatedResponse]


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
