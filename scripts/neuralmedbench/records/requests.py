"""What a model is sent."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 3


@dataclass(frozen=True, kw_only=True)
class RequestImage:
    """A picture in a request: the very bytes of the PNG, known by their digest, and the words shown before it.

    `example` marks the pictures of answered examples of other patients, `option` those that are options of a choice: no picture budget cuts them.
    `volume_sha256` is the scan that the picture shows (of a benchmark of pictures: the picture itself), which a passed audit has to cover.
    """

    path: str
    sha256: str
    label: str
    example: bool = False
    option: bool = False
    volume_sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class RequestTurn:
    """One user message: text, then its pictures, each after its label.

    The first `example_characters` of the text are answered examples of other patients.
    """

    text: str
    images: tuple[RequestImage, ...] = ()
    example_characters: int = 0


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that a case tells when it is asked for; `asked_by` are words that ask for it and do not stand in it."""

    text: str
    asked_by: str = ""
    images: tuple[RequestImage, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """A dialogue in which the model asks (strategy `ask`).

    Attributes
    ----------
    facts : tuple of Fact
        Everything that the case tells, in its order.
    max_questions : int
        After so many questions the final answer is asked for.
    unknown, left, closing : str
        The sentence for a question that the case does not answer; that tells how many questions are left (`{left}`); that asks for the
        final answer.
    """

    facts: tuple[Fact, ...]
    max_questions: int
    unknown: str
    left: str
    closing: str


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
        JSON schema of the answer, of a dialogue that of its last answer; or empty. An open item is asked for the same fields in words.
    samples : int
        How many answers are asked for; `repeat` counts from 0.
    words_cut : int
        Words of the case that the benchmark's text budget cut away.
    inquiry : Inquiry or None
        Under the strategy `ask`: what the case answers. `turns` is then the first message alone.
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
    words_cut: int = 0
    inquiry: Inquiry | None = None
