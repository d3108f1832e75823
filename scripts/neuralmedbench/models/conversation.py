"""What is sent, before it is bytes: pictures stand as digests until a call is really made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.models.case_responder import question_of, respond
from neuralmedbench.models.picture_budget import within_budget
from neuralmedbench.models.protocol import Message, MessageImage
from neuralmedbench.records.requests import Inquiry, Request, RequestImage, RequestTurn

NO_WORDS = "(no answer)"
"""What stands in the history of a dialogue for an empty answer; providers refuse empty messages."""


@dataclass(frozen=True)
class PromptMessage:
    """One message of a conversation, pictures by path and digest."""

    role: str
    text: str
    images: tuple[RequestImage, ...] = ()


def next_messages(request: Request, answers: Sequence[str], max_images: int | None) -> tuple[PromptMessage, ...] | None:
    """Give the messages of the next call of a sample.

    Parameters
    ----------
    request : Request
        What is asked.
    answers : sequence of str
        What the model has answered so far.
    max_images : int or None
        The model's picture budget.

    Returns
    -------
    tuple of PromptMessage or None
        System message (when there is one), user and assistant in turn, then the next user message; None when the last answer is the final
        one.
    """
    turns = within_budget(request.turns, max_images)
    if request.inquiry is not None:
        turns = _with_replies(turns, request.inquiry, answers, max_images)
    if len(answers) >= len(turns):
        return None
    messages = [PromptMessage("system", request.system)] if request.system else []
    for turn, answer in zip(turns, answers, strict=False):
        messages += [PromptMessage("user", turn.text, turn.images), PromptMessage("assistant", answer or NO_WORDS)]
    following = turns[len(answers)]
    return (*messages, PromptMessage("user", following.text, following.images))


def _with_replies(
    turns: tuple[RequestTurn, ...], inquiry: Inquiry, answers: Sequence[str], max_images: int | None
) -> tuple[RequestTurn, ...]:
    """Give the messages of a dialogue in which the model asks: the first one, and the reply to each of its questions."""
    for asked, answer in enumerate(answers, start=1):
        question = question_of(answer)
        if not question or asked > inquiry.max_questions:
            break
        turns = (*turns, *within_budget([respond(inquiry, question, asked)], max_images))
    return turns


def load_messages(messages: Sequence[PromptMessage], root: Path) -> tuple[Message, ...]:
    """Read the pictures of a conversation.

    Returns
    -------
    tuple of Message
        The messages with the bytes of their pictures.
    """
    return tuple(Message(entry.role, entry.text, tuple(_picture(image, root) for image in entry.images)) for entry in messages)


def _picture(image: RequestImage, root: Path) -> MessageImage:
    try:
        png = (root / image.path).read_bytes()
    except OSError as error:
        fault = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        message = f"{image.path}: the picture {fault}; run slices again"
        raise DataError(message) from None
    if hashlib.sha256(png).hexdigest() != image.sha256:
        message = f"{image.path}: not the picture that the prompt was made with; run slices, items and prompts again"
        raise DataError(message)
    return MessageImage(image.label, png, image.sha256)
