"""The files of a round of answers: what a reader's page exports, and the key that stays here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from neuralmedbench.ratings.exports import Digest, Pseudonym, Rater, StratumKey, Strict

LONGEST = 10_000
"""Characters of one field."""


class FilledCandidate(Strict):
    """A diagnosis or a type of lesion with its evidence."""

    name: str = Field(min_length=1, max_length=300)
    speaks_for: str = Field("", alias="for", max_length=LONGEST)
    against: str = Field("", max_length=LONGEST)


class FilledForm(Strict):
    """What stands in a form: by section its words and its candidates, or the letter of an option, or the labels of fields."""

    texts: dict[str, str] = Field(default_factory=dict)
    candidates: list[FilledCandidate] = Field(default_factory=list)
    choice: str = ""
    fields: dict[str, str | None] = Field(default_factory=dict)
    confidence: float | None = Field(None, ge=0, le=1)


class FilledTurn(Strict):
    """The answer to one message. `locked`: a later message, or a later question on the case, was seen after it."""

    status: Literal["open", "answered", "cannot_tell"]
    locked: bool
    answer: FilledForm
    seconds_active: float = Field(ge=0, le=86_400)


class AnsweredItem(Strict):
    """One question as one reader answered it, by its opaque id."""

    item_id: str
    position: int = Field(ge=1)
    turns: list[FilledTurn] = Field(min_length=1)


class AnswerExport(Strict):
    """One export of a reader's page."""

    schema_name: Literal["neuralmedbench.answers/1"] = Field(alias="schema")
    packet_id: str
    packet_sha256: Digest
    rater: Rater
    started: str
    exported: str
    complete: bool
    items: list[AnsweredItem]


class AskedItem(Strict):
    """What stands behind an opaque id: the item, the prompt as it was shown, and with which probability it was drawn from its stratum."""

    item_id: str
    benchmark: str
    request_id: Digest
    stratum: str
    probability: float = Field(gt=0, le=1)


class ReaderKey(Strict):
    """One reader's packet; `packet_sha256` is the digest of everything that it shows, `order` is that in which it does."""

    packet_id: str
    packet_sha256: Digest
    rater: Pseudonym
    items: dict[str, AskedItem]
    order: list[str]


class AnswerRoundKey(Strict):
    """`key.json` of a round of answers: never leaves this place, never goes to a reader."""

    schema_name: Literal["neuralmedbench.answers_key/1"] = Field(alias="schema")
    round_id: str
    seed: int
    secret: str
    strata: dict[str, StratumKey]
    packets: list[ReaderKey]
