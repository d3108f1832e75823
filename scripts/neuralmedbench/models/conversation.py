"""What is sent, before it is bytes: pictures stand as digests until a call is really made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.models.inquiry import question_of, reply
from neuralmedbench.models.protocol import Message, MessageImage
from neuralmedbench.records.requests import Inquiry, Request, RequestImage, RequestTurn

NO_WORDS = "(no answer)"
"""What stands in the history of a dialogue for an empty answer; providers refuse empty messages."""


@dataclass(frozen=True)
class Said:
    """One message of a conversation, pictures by path and digest."""

    role: str
    text: str
    images: tuple[RequestImage, ...] = ()


def within_budget(turns: Sequence[RequestTurn], max_images: int | None) -> tuple[RequestTurn, ...]:
    """Keep at most so many pictures of a request, spread evenly over all of them; answered examples lose theirs before the item does.

    Parameters
    ----------
    turns : sequence of RequestTurn
        The user messages.
    max_images : int or None
        The model's picture budget; None keeps all.

    Returns
    -------
    tuple of RequestTurn
        The messages with the pictures that are kept: as many of the item's own as the budget allows, first and last among them when it is
        2 or more; what is then left of it is spread over the pictures of the examples. `Response.images_sent` counts them.
    """
    own = [not image.example for turn in turns for image in turn.images]
    if max_images is None or len(own) <= max_images:
        return tuple(turns)
    of_item = _spread([place for place, is_own in enumerate(own) if is_own], max_images)
    of_examples = _spread([place for place, is_own in enumerate(own) if not is_own], max_images - len(of_item))
    kept = {*of_item, *of_examples}
    shortened, before = [], 0
    for turn in turns:
        images = tuple(image for number, image in enumerate(turn.images, start=before) if number in kept)
        shortened.append(replace(turn, images=images))
        before += len(turn.images)
    return tuple(shortened)


def _spread(places: Sequence[int], most: int) -> list[int]:
    """Choose at most so many places, evenly spread; of more than one the first and the last, of one the one in the middle."""
    if len(places) <= most:
        return list(places)
    if most < 2:
        return [places[len(places) // 2]] * most
    gap = (len(places) - 1) / (most - 1)
    return [places[round(number * gap)] for number in range(most)]


def next_messages(request: Request, answers: Sequence[str], max_images: int | None) -> tuple[Said, ...] | None:
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
    tuple of Said or None
        System message (when there is one), user and assistant in turn, then the next user message; None when the last answer is the final
        one.
    """
    turns = within_budget(request.turns, max_images)
    if request.inquiry is not None:
        turns = _with_replies(turns, request.inquiry, answers, max_images)
    if len(answers) >= len(turns):
        return None
    said = [Said("system", request.system)] if request.system else []
    for turn, answer in zip(turns, answers, strict=False):
        said += [Said("user", turn.text, turn.images), Said("assistant", answer or NO_WORDS)]
    following = turns[len(answers)]
    return (*said, Said("user", following.text, following.images))


def _with_replies(
    turns: tuple[RequestTurn, ...], inquiry: Inquiry, answers: Sequence[str], max_images: int | None
) -> tuple[RequestTurn, ...]:
    """Give the messages of a dialogue in which the model asks: the first one, and the reply to each of its questions."""
    for asked, answer in enumerate(answers, start=1):
        question = question_of(answer)
        if not question or asked > inquiry.max_questions:
            break
        turns = (*turns, *within_budget([reply(inquiry, question, asked)], max_images))
    return turns


def load(said: Sequence[Said], root: Path) -> tuple[Message, ...]:
    """Read the pictures of a conversation.

    Parameters
    ----------
    said : sequence of Said
        The messages.
    root : Path
        Folder to which the paths of pictures are relative.

    Returns
    -------
    tuple of Message
        The messages with the bytes of their pictures.

    Raises
    ------
    DataError
        If a picture is absent or is not the one that the audit covered.
    """
    return tuple(Message(entry.role, entry.text, tuple(_picture(image, root) for image in entry.images)) for entry in said)


def _picture(image: RequestImage, root: Path) -> MessageImage:
    try:
        png = (root / image.path).read_bytes()
    except FileNotFoundError:
        message = f"{image.path}: the picture is not there; run slices again"
        raise DataError(message) from None
    if hashlib.sha256(png).hexdigest() != image.sha256:
        message = f"{image.path}: not the picture that the prompt was made with; run slices, items and prompts again"
        raise DataError(message)
    return MessageImage(image.label, png, image.sha256)
