"""The form of an answer: which one the prompt asks for, and how it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from neuralmedbench.models.protocol import Message
from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.checklist import SECTIONS
from neuralmedbench.records.items import Family

UNDETERMINED = "undetermined"
"""What stands for a diagnosis in an answer that abstains."""

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


class Form(StrEnum):
    """What a prompt asks for."""

    CHECKLIST = "checklist"
    LESION_CHECKLIST = "lesion_checklist"
    DIFFERENTIAL = "differential"
    LESION = "lesion"
    FIELDS = "fields"
    CHOICE = "choice"
    ANSWER = "answer"


FORM_MARKS = {
    Form.CHECKLIST: re.compile(r"^[ \t]*DIFFERENTIAL:[ \t]*\n.*\| for: <", re.MULTILINE),
    Form.LESION_CHECKLIST: re.compile(r"^[ \t]*LESION: .*\| for: <", re.MULTILINE),
    Form.DIFFERENTIAL: re.compile(r"^\s*DIFFERENTIAL:", re.MULTILINE),
    Form.LESION: re.compile(r"^\s*LESION:", re.MULTILINE),
    Form.FIELDS: re.compile(r"\bJSON\b"),
    Form.CHOICE: re.compile(r"^\s*ANSWER: <the letter", re.MULTILINE),
    Form.ANSWER: re.compile(r"^\s*ANSWER: <your whole", re.MULTILINE),
}
"""Where two marks stand at one place the first of them counts: a checklist has the headers of the short form too."""


@dataclass(frozen=True)
class Candidate:
    """A hypothesis, what speaks for it and what against it."""

    name: str
    speaks_for: str
    against: str


@dataclass(frozen=True, kw_only=True)
class Review:
    """What stands in a checklist beside its candidates; every field is the section of this name."""

    seen: str
    location: str
    side: str
    findings: str
    missing: str
    rationale: str = ""


def wanted(messages: Sequence[Message]) -> Form:
    """Find out which form the conversation asks for.

    Parameters
    ----------
    messages : sequence of Message
        The latest user message that names a form decides; within a message the last mark does, because the instruction
        stands below what is quoted from a patient's notes.

    Returns
    -------
    Form
        A differential when no message names a form.
    """
    asked = [message for message in reversed(messages) if message.role == "user"]
    for message in (*asked, *(message for message in messages if message.role == "system")):
        places = {form: max((match.start() for match in mark.finditer(message.text)), default=-1) for form, mark in FORM_MARKS.items()}
        form = max(places, key=lambda key: places[key])
        if places[form] >= 0:
            return form
    return Form.DIFFERENTIAL


def differential(names: Sequence[str], findings: str, rationale: str, confidence: float) -> str:
    """Write a differential of at most five names."""
    lines = "\n".join(f"{rank}. {name}" for rank, name in enumerate(names, start=1))
    return f"DIFFERENTIAL:\n{lines}\nFINDINGS: {paragraph(findings)}\nRATIONALE: {paragraph(rationale)}\nCONFIDENCE: {_number(confidence)}"


def lesion(name: str, location: str, side: str, findings: str, confidence: float) -> str:
    """Write a lesion, its place and its side."""
    return f"LESION: {name}\nLOCATION: {location}\nSIDE: {side}\nFINDINGS: {paragraph(findings)}\nCONFIDENCE: {_number(confidence)}"


def checklist(candidates: Sequence[Candidate], review: Review, confidence: float) -> str:
    """Write a checklist with a differential of at most five names."""
    lines = "".join(f"\n{rank}. {_line(candidate)}" for rank, candidate in enumerate(candidates, start=1))
    return _sections(Family.DIFFERENTIAL_DIAGNOSIS, review, {"DIFFERENTIAL": lines}, confidence)


def lesion_checklist(candidate: Candidate, review: Review, confidence: float) -> str:
    """Write a checklist on a lesion."""
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
    """Write the fields of a single picture as one JSON object; None abstains."""
    answer = {
        "modality": modality,
        "sequence": SEQUENCE_NAMES.get(kind) if kind else None,
        "plane": plane.value if plane else None,
        "class": diagnosis_class,
        "subtype": subtype,
        "confidence": None if confidence is None else round(confidence, 3),
    }
    return json.dumps(answer)


def paragraph(text: str) -> str:
    """One paragraph that cannot be taken for another part of the answer, even when it quotes a prompt."""
    flat = " ".join(text.split())
    return re.sub(r"\b([A-Z]{4,}):", lambda found: f"{found.group(1).lower()} -", flat) or "None."


def _sections(family: Family, review: Review, named: dict[str, str], confidence: float) -> str:
    words = {name.upper(): f" {paragraph(text)}" for name, text in vars(review).items()}
    words |= {"LOCATION": f" {review.location}", "SIDE": f" {review.side}", "CONFIDENCE": f" {_number(confidence)}", **named}
    return "\n".join(f"{name}:{words[name]}" for name in SECTIONS[family])


def _line(candidate: Candidate) -> str:
    return f"{candidate.name} | for: {_evidence(candidate.speaks_for)} | against: {_evidence(candidate.against)}"


def _evidence(text: str) -> str:
    """Words that cannot be taken for another candidate or another part of its line."""
    return re.sub(r"\b(for|against):", r"\1 -", paragraph(text).replace("|", "/"), flags=re.IGNORECASE)


def _number(confidence: float) -> str:
    return f"{min(1.0, max(0.0, confidence)):.3f}"
