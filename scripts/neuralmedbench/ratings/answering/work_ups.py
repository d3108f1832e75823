"""Work-ups on a reader's page: what may be asked for and what comes of it, and the reader's messages in the format of the prompt.

A page holds no matcher. It offers the same requests for every case, and what each of them releases was looked up when the page was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from neuralmedbench.ratings.exports import StrictModel
from neuralmedbench.records.examinations.matching import match_request, offered_requests
from neuralmedbench.records.requests import MOST_CANDIDATES, Inquiry, RequestTurn

LARGEST_SUM = 1.001
"""Most that the probabilities of a message may add up to; more than 1 only by rounding."""


class StatedDiagnosis(StrictModel):
    """A diagnosis, and the reader's probability of it."""

    name: str = Field(min_length=1, max_length=300)
    probability: float = Field(ge=0, le=1)


class AskedExamination(StrictModel):
    """A request, and the place of the examination that the page showed for it; None if the case does not hold it."""

    request: str = Field(min_length=1, max_length=300)
    released: int | None = Field(None, ge=0)


def work_up_data(inquiry: Inquiry) -> dict[str, Any]:
    """Return what a page needs to play the case: its sentences, its examinations, and the place of the one that each offered request releases."""
    held = inquiry.held
    return {
        "most": inquiry.max_questions,
        "facts": [{"text": fact.text, "pictures": [[image.sha256, image.label] for image in fact.images]} for fact in inquiry.facts],
        "released": [match_request(request, held).place for request in offered_requests()],
        "unknown": inquiry.unknown,
        "again": inquiry.again,
        "left": inquiry.left,
        "closing": inquiry.closing,
    }


def released_by(inquiry: Inquiry, request: str) -> int | None:
    """Return the place of the examination that a request releases, as for a model; None if there is none."""
    return match_request(request, inquiry.held).place


def turns_of(inquiry: Inquiry) -> Iterator[RequestTurn]:
    """Yield the examinations as messages, whose pictures a page may show."""
    yield from (RequestTurn(text=fact.text, images=fact.images) for fact in inquiry.facts)


def problem_of_asking(inquiry: Inquiry, asked: Sequence[AskedExamination | None]) -> str:
    """Return the first problem of the requests of a work-up, of which only the last message may have none; empty if they are valid."""
    if len(asked) > inquiry.max_questions + 1:
        return f"{len(asked)} messages, the work-up ends after {inquiry.max_questions + 1}"
    for number, one in enumerate(asked, start=1):
        last = number == len(asked)
        if (one is None) is not last:
            return f"message {number} is {'a request, and no message follows it' if last else 'no request, although a message follows it'}"
        if one is not None and one.released != released_by(inquiry, one.request):
            return f"message {number}: the page showed another examination than this request releases now; make a new round"
    return ""


def problem_of_stated(stated: Sequence[StatedDiagnosis], *, needed: bool) -> str:
    """Return the first problem of the diagnoses of a message, without quoting them; empty if they are valid."""
    if needed and not stated:
        return "no diagnosis with a probability"
    if len(stated) > MOST_CANDIDATES:
        return f"{len(stated)} diagnoses with probabilities, at most {MOST_CANDIDATES} are asked for"
    if not all(any(letter.isalpha() for letter in one.name) for one in stated):
        return "a probability without a diagnosis"
    if sum(one.probability for one in stated) > LARGEST_SUM:
        return "the probabilities add up to more than 1"
    return ""


def candidates_text(stated: Sequence[tuple[str, float]]) -> str:
    """Return named diagnoses and probabilities in the format of the prompt; empty without any."""
    lines = [f"{rank}. {name} | {probability:.4f}" for rank, (name, probability) in enumerate(stated, start=1)]
    return "\n".join(["CANDIDATES:", *lines]) if lines else ""
