"""The answer form that a prompt requests, the options it offers, and how answers are written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, TypeVar, cast

from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.checklist import SECTIONS, with_places
from neuralmedbench.records.items import Family
from neuralmedbench.records.questions import LETTERS


class PictureInput(Protocol):
    """What a baseline needs of a picture."""

    @property
    def label(self) -> str:
        """Text shown before it; may be empty."""

    @property
    def png(self) -> bytes:
        """Its bytes."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes."""


class MessageInput(Protocol):
    """What a baseline needs of a message."""

    @property
    def role(self) -> str:
        """`system`, `user` or `assistant`."""

    @property
    def text(self) -> str:
        """The text before the pictures."""

    @property
    def words(self) -> str:
        """All its text."""

    @property
    def images(self) -> Sequence[PictureInput]:
        """Pictures, in the order shown."""


M = TypeVar("M", bound=MessageInput)

UNDETERMINED = "undetermined"
"""Diagnosis of an answer that abstains."""

SEQUENCE_NAMES = {
    Kind.T1W: "T1",
    Kind.CE_T1W: "T1C+",
    Kind.T2W: "T2",
    Kind.FLAIR: "FLAIR",
    Kind.DWI: "DWI",
    Kind.ADC: "ADC",
    Kind.SWI: "SWI",
}
"""Sequences as single-picture benchmarks spell them."""


class BaselineForm(StrEnum):
    """Answer form that a prompt requests."""

    CHECKLIST = "checklist"
    LESION_CHECKLIST = "lesion_checklist"
    DIFFERENTIAL = "differential"
    LESION = "lesion"
    FIELDS = "fields"
    CHOICE = "choice"
    ANSWER = "answer"


FORM_MARKS = {
    BaselineForm.CHECKLIST: re.compile(r"^[ \t]*DIFFERENTIAL:[ \t]*\n.*\| for: <", re.MULTILINE),
    BaselineForm.LESION_CHECKLIST: re.compile(r"^[ \t]*LESION: .*\| for: <", re.MULTILINE),
    BaselineForm.DIFFERENTIAL: re.compile(r"^\s*DIFFERENTIAL:", re.MULTILINE),
    BaselineForm.LESION: re.compile(r"^\s*LESION:", re.MULTILINE),
    BaselineForm.FIELDS: re.compile(r"\bJSON\b"),
    BaselineForm.CHOICE: re.compile(r"^\s*ANSWER: <the letter", re.MULTILINE),
    BaselineForm.ANSWER: re.compile(r"^\s*ANSWER: <your whole", re.MULTILINE),
}
"""If two patterns match at one position the first counts: a checklist also has the headers of the short form."""


KEYS = re.compile(r'^"(\w+)": ', re.MULTILINE)
"""A key of the requested JSON object, with the words that say what is asked."""

LABELS_OF_A_PICTURE = frozenset({"reasoning", "modality", "sequence", "plane", "class", "subtype", "confidence"})


@dataclass(frozen=True)
class BaselineCandidate:
    """A hypothesis with the evidence for and against it."""

    name: str
    speaks_for: str
    against: str


@dataclass(frozen=True, kw_only=True)
class ChecklistReview:
    """Sections of a checklist other than its candidates, by field name."""

    seen: str
    location: str
    side: str
    findings: str
    missing: str
    rationale: str = ""
    picture: str = ""
    box: str = ""


@dataclass(frozen=True)
class LesionMark:
    """The main lesion on a picture: digest and label of the picture (without its number), and a box in fractions of width and height."""

    sha256: str
    label: str
    box: tuple[float, float, float, float]


ASKS_FOR_PLACES = re.compile(r"^PICTURE: <number.*\nBOX: <(\[x1, y1, x2, y2\].* thousandths \(0 to 1000\))?", re.MULTILINE)
NUMBER = re.compile(r"\d+")


def stated_place(messages: Sequence[MessageInput], mark: LesionMark | None) -> dict[str, str]:
    """Write picture and box of a mark by the name of their section, if the latest message asks for them; `none` in another unit than thousandths."""
    asked = ASKS_FOR_PLACES.search(next(message.words for message in reversed(messages) if message.role == "user"))
    if asked is None:
        return {}
    labels = [image.label.partition(":") for message in messages for image in message.images if mark and image.sha256 == mark.sha256]
    named = next((NUMBER.search(name) for name, _, rest in labels if mark and rest == mark.label), None)
    if mark is None or named is None or not asked[1]:
        return {"picture": "none", "box": "none"}
    return {"picture": named[0], "box": f"[{', '.join(str(round(1000 * value)) for value in mark.box)}]"}


def requested_form(messages: Sequence[MessageInput]) -> BaselineForm:
    """Find the form that the latest instruction requests; a differential if there is none."""
    # the last match in a message counts: the instruction comes after quoted notes of a patient
    asked = [message for message in reversed(messages) if message.role == "user"]
    for message in (*asked, *(message for message in messages if message.role == "system")):
        places = {form: max((match.start() for match in mark.finditer(message.words)), default=-1) for form, mark in FORM_MARKS.items()}
        form = max(places, key=lambda key: places[key])
        if places[form] >= 0:
            return form
    return BaselineForm.DIFFERENTIAL


def differential(names: Sequence[str], findings: str, rationale: str, confidence: float) -> str:
    """Write a differential of at most five names."""
    lines = "\n".join(f"{rank}. {name}" for rank, name in enumerate(names, start=1))
    return f"DIFFERENTIAL:\n{lines}\nFINDINGS: {paragraph(findings)}\nRATIONALE: {paragraph(rationale)}\nCONFIDENCE: {_number(confidence)}"


def lesion(name: str, location: str, side: str, findings: str, confidence: float) -> str:
    """Write a lesion with its location and side."""
    return f"LESION: {name}\nLOCATION: {location}\nSIDE: {side}\nFINDINGS: {paragraph(findings)}\nCONFIDENCE: {_number(confidence)}"


def checklist(candidates: Sequence[BaselineCandidate], review: ChecklistReview, confidence: float) -> str:
    """Write a checklist with a differential of at most five names."""
    lines = "".join(f"\n{rank}. {_line(candidate)}" for rank, candidate in enumerate(candidates, start=1))
    return _sections(Family.DIFFERENTIAL_DIAGNOSIS, review, {"DIFFERENTIAL": lines}, confidence)


def lesion_checklist(candidate: BaselineCandidate, review: ChecklistReview, confidence: float) -> str:
    """Write a checklist for one lesion."""
    return _sections(Family.LESION_RECOGNITION, review, {"LESION": f" {_line(candidate)}"}, confidence)


def short(answer: str, confidence: float) -> str:
    """Write the letter of an option, or a free answer."""
    return f"ANSWER: {paragraph(answer)}\nCONFIDENCE: {_number(confidence)}"


def fields(
    *,
    modality: str | None,
    kind: Kind | None,
    plane: Plane | None,
    diagnosis_class: str | None,
    subtype: str | None,
    confidence: float | None,
) -> str:
    """Write the fields of a single picture as a JSON object; None abstains."""
    answer = {
        "modality": modality,
        "sequence": SEQUENCE_NAMES.get(kind) if kind else None,
        "plane": plane.value if plane else None,
        "class": diagnosis_class,
        "subtype": subtype,
        "confidence": None if confidence is None else round(confidence, 3),
    }
    return json.dumps(answer)


def no_values(messages: Sequence[MessageInput]) -> str:
    """Write null for every key of the JSON object that the last user message requests; empty if they are the keys of a picture's labels."""
    asked = next(message.words for message in reversed(messages) if message.role == "user")
    names = KEYS.findall(asked[asked.rfind("JSON") :])
    return json.dumps(dict.fromkeys(names)) if set(names) - LABELS_OF_A_PICTURE else ""


def paragraph(text: str) -> str:
    """Write one paragraph that a parser cannot mistake for another section, even if it quotes a prompt."""
    flat = " ".join(text.split())
    return re.sub(r"\b([A-Z]{4,}):", lambda found: f"{found.group(1).lower()} -", flat) or "None."


def _sections(family: Family, review: ChecklistReview, named: dict[str, str], confidence: float) -> str:
    words = {name.upper(): f" {paragraph(text)}" for name, text in vars(review).items()}
    words |= {"LOCATION": f" {review.location}", "SIDE": f" {review.side}", "CONFIDENCE": f" {_number(confidence)}", **named}
    sections = with_places(SECTIONS[family]) if review.picture else SECTIONS[family]
    return "\n".join(f"{name}:{words[name]}" for name in sections)


def _line(candidate: BaselineCandidate) -> str:
    return f"{candidate.name} | for: {_evidence(candidate.speaks_for)} | against: {_evidence(candidate.against)}"


def _evidence(text: str) -> str:
    """Write evidence that a parser cannot mistake for another candidate or part of its line."""
    return re.sub(r"\b(for|against):", r"\1 -", paragraph(text).replace("|", "/"), flags=re.IGNORECASE)


def _number(confidence: float) -> str:
    return f"{min(1.0, max(0.0, confidence)):.3f}"


@dataclass(frozen=True)
class WorkUpState:
    """Where a work-up stands.

    Attributes
    ----------
    messages : tuple of MessageInput
        What was told of the patient, without instructions and answer forms.
    asked : tuple of str
        What the model has asked for.
    may_ask : bool
        True if the latest message takes a request.
    fixed : bool
        True if what is shown does not depend on it.
    """

    messages: tuple[MessageInput, ...]
    asked: tuple[str, ...]
    may_ask: bool
    fixed: bool


ASKS_FOR_CANDIDATES = re.compile(r"^CANDIDATES:\n1\. <", re.MULTILINE)
TAKES_REQUEST = re.compile(r"^(?:REQUEST: <|Requests left: \d)", re.MULTILINE)
ASKED_FOR = re.compile(r"^REQUEST: (.+)$", re.MULTILINE)
OF_THE_FORM = re.compile(
    r"^(?:You (?:may ask for up to|get) \d+ examinations|Requests left: \d|(?:There are no requests left\. )?Give your final answer in this form:).*",
    re.MULTILINE | re.DOTALL,
)
NOTHING_TOLD = re.compile(
    r"^(?:[^\n:]{1,60}:|This case does not have that examination\.|That was given already\.|That names no examination\..*)$", re.MULTILINE
)
"""Headings, and replies that release nothing."""


def work_up_state(messages: Sequence[M]) -> WorkUpState | None:
    """Read where a work-up stands; None in any other conversation."""
    told = [message for message in messages if message.role == "user"]
    if not any(ASKS_FOR_CANDIDATES.search(message.words) for message in told):
        return None
    kept = [
        replace(cast("Any", message), text=NOTHING_TOLD.sub("", OF_THE_FORM.sub("", message.text)).strip(), after="") for message in told
    ]
    asked = [found[1] for message in messages if message.role == "assistant" if (found := ASKED_FOR.search(message.words))]
    return WorkUpState(
        messages=tuple(kept),
        asked=tuple(asked),
        may_ask=bool(TAKES_REQUEST.search(told[-1].words)),
        fixed="in an order that you do not choose" in told[0].words,
    )


ASKS_BACK = re.compile(r"^You may ask up to \d+ questions about .*", re.MULTILINE | re.DOTALL)
QUESTIONS_LEFT = re.compile(r"\n\n(?:Questions left: \d+\.|There are no questions left\..*)\Z", re.DOTALL)
ASKED_QUESTION = re.compile(r"^QUESTION: (.+)$", re.MULTILINE)
NOT_SAID = "The case does not say."
PRESENTED, AT_ONCE = "A patient is presented to you:", "\n\nAnswer in this form:\n"


@dataclass(frozen=True)
class AskedCase:
    """A case whose facts are asked for: one message that gives what was told at once, the model's questions, and if another one may follow."""

    told: MessageInput
    asked: tuple[str, ...]
    may_ask: bool


def asked_case(messages: Sequence[M]) -> AskedCase | None:
    """Read where the questions of a model stand (strategy `ask`); None in any other conversation."""
    first, *replies = [message for message in messages if message.role == "user"]
    if not (offer := ASKS_BACK.search(first.words)):
        return None
    ends = [QUESTIONS_LEFT.search(reply.words) for reply in replies]
    facts = [reply.words[: end.start()] if end else reply.words for reply, end in zip(replies, ends, strict=True)]
    case, _, question = first.words[: offer.start()].strip().removeprefix(PRESENTED).partition("\n\nQuestion: ")
    known = "\n".join([case.strip(), *(fact for fact in facts if fact != NOT_SAID)])
    form = offer[0].rpartition("form:\n")[2]
    told = replace(
        cast("Any", first),
        text=f"{known}\n\nQuestion: {question or 'What is the diagnosis?'}{AT_ONCE}{form}",
        images=tuple(image for message in (first, *replies) for image in message.images),
        after="",
    )
    asked = [found[1] for message in messages if message.role == "assistant" if (found := ASKED_QUESTION.search(message.words))]
    return AskedCase(told, tuple(asked), may_ask=not (ends and ends[-1] and "no questions left" in ends[-1][0]))


def candidates(stated: Sequence[tuple[str, float]]) -> str:
    """Write diagnoses with their probabilities."""
    lines = "".join(f"\n{rank}. {name} | {_number(value)}" for rank, (name, value) in enumerate(stated, start=1))
    return f"CANDIDATES:{lines}"


END_OF_EXAMPLES = "The examples end here. Now comes what you answer."
EXAMPLE = re.compile(r"Example \d+, ")


@dataclass(frozen=True)
class ChoiceQuestion:
    """A question with options.

    Attributes
    ----------
    case, question : str
        Text before the question (with headings), and the question.
    options : tuple of str
        In letter order.
    """

    case: str
    question: str
    options: tuple[str, ...]


def read_choice(text: str) -> ChoiceQuestion:
    """Read question and options of a prompt (the last list, which follows any quoted text); without options if it offers none."""
    # a prompt ends with case, question, options and answer form, in this order
    head, form, _ = f"\n{text}".rpartition("\n\nAnswer in this form:")
    before, offer, block = head.rpartition("\nOptions:\n")
    if not (form and offer):
        return ChoiceQuestion("", "", ())
    case, _, question = before.rpartition("\nQuestion: ")
    options: list[str] = []
    for line in block.split("\n"):
        letter = LETTERS[len(options) : len(options) + 1]
        if letter and line.startswith(f"{letter}. "):
            options.append(line[3:])
        elif options:
            options[-1] += f"\n{line}"
    return ChoiceQuestion(case.strip(), question.strip(), tuple(options))


def without_examples(messages: Sequence[M]) -> tuple[M, ...]:
    """Remove few-shot examples of other patients from a conversation: the baselines cannot learn from them."""
    return tuple(
        replace(
            cast("Any", message),  # a dataclass, which the protocol does not state
            text=message.text.rpartition(END_OF_EXAMPLES)[2].lstrip() if END_OF_EXAMPLES in message.text else message.text,
            images=tuple(image for image in message.images if not EXAMPLE.match(image.label)),
        )
        for message in messages
    )
