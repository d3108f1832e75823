"""What a model is sent."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class RequestImage:
    """A picture in a request: the very bytes of the PNG, known by their digest, and the words shown before it."""

    path: str
    sha256: str
    label: str


@dataclass(frozen=True, kw_only=True)
class RequestTurn:
    """One user message: text, then its pictures, each after its label."""

    text: str
    images: tuple[RequestImage, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Request:
    """One rendered prompt.

    Attributes
    ----------
    item_id, case_id, patient_id, benchmark : str
        Whose.
    arm : str
        `full`, `no_image`, `no_text`, `shuffled_image`, `findings_disclosed`...
    strategy : str
        `direct`, `cot`, `few_shot`...
    request_id : str
        SHA-256 over the rendered system text, turns (pictures by digest) and answer schema; not unique per row.
    runner : str
        How the answer will be parsed.
    system : str
        System message.
    turns : tuple of RequestTurn
        One message, or the messages of a dialogue that are sent one after the other, each after the answer before.
    answer_schema : str
        JSON schema of the answer, or empty.
    samples : int
        How many answers are asked for; `repeat` counts from 0.
    """

    item_id: str
    case_id: str
    patient_id: str
    benchmark: str
    arm: str
    strategy: str
    request_id: str
    runner: str
    system: str
    turns: tuple[RequestTurn, ...]
    answer_schema: str
    samples: int
