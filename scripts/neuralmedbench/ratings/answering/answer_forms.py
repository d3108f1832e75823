"""The form in which a question is answered, what a reader's page exports, and the key that stays here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.exports import Digest, Pseudonym, Rater, StratumKey, StrictModel
from neuralmedbench.records.checklist import SECTIONS
from neuralmedbench.records.items import DIAGNOSES, Family, Item, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import Request

CONFIDENCE = "CONFIDENCE"
SHORT_DIFFERENTIAL = ("DIFFERENTIAL", "FINDINGS", "RATIONALE", CONFIDENCE)
SHORT_LESION = ("LESION", "LOCATION", "SIDE", "FINDINGS", CONFIDENCE)
ANSWER = ("ANSWER", CONFIDENCE)

NAMING = frozenset({"DIFFERENTIAL", "LESION", "ANSWER"})
"""Sections that name what is found: one of them has to be filled in, or the reader cannot tell."""

CANDIDATES = {"DIFFERENTIAL": 5, "LESION": 1}
"""Sections of candidates, and how many each takes."""

SIDES = ("left", "right", "bilateral", "midline", "none")

LONGEST = 10_000
"""Characters of one field."""


@dataclass(frozen=True, kw_only=True)
class AnswerForm:
    """The form of one answer: its sections in order or the labels of its fields, its options, and whether candidates need evidence.

    None among the labels of a field is "cannot tell"; `confidence` has no labels, it is a number.
    """

    sections: tuple[str, ...] = ()
    evidence: bool = False
    options: tuple[str, ...] = ()
    fields: dict[str, tuple[str | None, ...]] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """Give the form as the page reads it."""
        return {
            "sections": list(self.sections),
            "evidence": self.evidence,
            "options": [[letter, text] for letter, text in zip(LETTERS, self.options, strict=False)],
            "fields": [[name, list(labels)] for name, labels in self.fields.items()],
        }


class FilledCandidate(StrictModel):
    """A diagnosis or a type of lesion with its evidence."""

    name: str = Field(min_length=1, max_length=300)
    speaks_for: str = Field("", alias="for", max_length=LONGEST)
    against: str = Field("", max_length=LONGEST)


class FilledForm(StrictModel):
    """What stands in a form: by section its words and its candidates, or the letter of an option, or the labels of fields."""

    texts: dict[str, str] = Field(default_factory=dict)
    candidates: list[FilledCandidate] = Field(default_factory=list)
    choice: str = ""
    fields: dict[str, str | None] = Field(default_factory=dict)
    confidence: float | None = Field(None, ge=0, le=1)


class FilledTurn(StrictModel):
    """The answer to one message. `locked`: a later message, or a later question on the case, was seen after it."""

    status: Literal["open", "answered", "cannot_tell"]
    locked: bool
    answer: FilledForm
    seconds_active: float = Field(ge=0, le=86_400)


class AnsweredItem(StrictModel):
    """One question as one reader answered it, by its opaque id."""

    item_id: str
    position: int = Field(ge=1)
    turns: list[FilledTurn] = Field(min_length=1)


class AnswerExport(StrictModel):
    """One export of a reader's page."""

    schema_name: Literal["neuralmedbench.answers/1"] = Field(alias="schema")
    packet_id: str
    packet_sha256: Digest
    rater: Rater
    started: str
    exported: str
    complete: bool
    items: list[AnsweredItem]


class AskedItem(StrictModel):
    """What stands behind an opaque id: the item, the prompt as it was shown, and with which probability it was drawn from its stratum."""

    item_id: str
    benchmark: str
    request_id: Digest
    stratum: str
    probability: float = Field(gt=0, le=1)


class ReaderKey(StrictModel):
    """One reader's packet; `packet_sha256` is the digest of everything that it shows, `order` is that in which it does."""

    packet_id: str
    packet_sha256: Digest
    rater: Pseudonym
    items: dict[str, AskedItem]
    order: list[str]


class AnswerRoundKey(StrictModel):
    """`key.json` of a round of answers: never leaves this place, never goes to a reader."""

    schema_name: Literal["neuralmedbench.answers_key/1"] = Field(alias="schema")
    round_id: str
    seed: int
    secret: str
    strata: dict[str, StratumKey]
    packets: list[ReaderKey]


def forms_of(item: Item, request: Request) -> tuple[AnswerForm, ...]:
    """Say in which form each message of a request is answered.

    Parameters
    ----------
    item : Item
        The question.
    request : Request
        As it is sent under the arm full and the strategy direct.

    Returns
    -------
    tuple of AnswerForm
        One a message.

    Raises
    ------
    RatingError
        If the words of the prompt ask for other sections, or for others in another order: what a reader fills in would be an answer to
        another prompt.
    """
    last = _form(item, request.answer_schema)
    rounds = len(request.turns) - 1
    forms = (*(AnswerForm(sections=SHORT_DIFFERENTIAL) for _ in range(rounds)), last)
    for form, turn in zip(forms, request.turns, strict=True):
        asked = [turn.text.rfind(f"\n{name}:") for name in form.sections]
        asked += [turn.text.rfind(f'\n"{name}":') for name in form.fields]
        if -1 in asked or asked != sorted(asked):
            message = (
                f"{request.item_id}: its prompt does not ask for the form {', '.join((*form.sections, *form.fields))}; a page cannot ask it"
            )
            raise RatingError(message)
    return forms


def _form(item: Item, schema: str) -> AnswerForm:
    """Give the form of the only answer, or of the last one of a dialogue."""
    if item.runner is Runner.CHOICE:
        return AnswerForm(sections=ANSWER, options=item.options)
    if item.runner is Runner.STRUCTURED:
        fields = {name: tuple(rule.get("enum", ())) for name, rule in json.loads(schema)["properties"].items()}
        if odd := [name for name, labels in fields.items() if not labels and name != CONFIDENCE.lower()]:
            message = f"{item.item_id}: the field {odd[0]} of its schema has no list of labels; a page cannot ask it"
            raise RatingError(message)
        return AnswerForm(fields=fields)
    if sections := _checklist(schema):
        return AnswerForm(sections=sections, evidence=True)
    if item.runner is Runner.DIALOGUE or item.family in DIAGNOSES:
        return AnswerForm(sections=SHORT_DIFFERENTIAL)
    return AnswerForm(sections=SHORT_LESION if item.family is Family.LESION_RECOGNITION else ANSWER)


def _checklist(schema: str) -> tuple[str, ...]:
    keys = tuple(name.upper() for name in json.loads(schema)["properties"]) if schema else ()
    return keys if keys in SECTIONS.values() else ()
