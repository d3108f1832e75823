"""What is sent, before it is bytes: pictures stand as digests until a call is really made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.models.protocol import Message, MessageImage
from neuralmedbench.records.requests import Request, RequestImage, RequestTurn

NO_WORDS = "(no answer)"
"""What stands in the history of a dialogue for an empty answer; providers refuse empty messages."""


@dataclass(frozen=True)
class Said:
    """One message of a conversation, pictures by path and digest."""

    role: str
    text: str
    images: tuple[RequestImage, ...] = ()


def within_budget(turns: Sequence[RequestTurn], max_images: int | None) -> tuple[RequestTurn, ...]:
    """Keep at most so many pictures of a request, spread evenly over all of them.

    Parameters
    ----------
    turns : sequence of RequestTurn
        The user messages.
    max_images : int or None
        The model's picture budget; None keeps all.

    Returns
    -------
    tuple of RequestTurn
        The messages with the pictures that are kept, first and last among them when the budget is 2 or more.
    """
    total = sum(len(turn.images) for turn in turns)
    if max_images is None or total <= max_images:
        return tuple(turns)
    gap = (total - 1) / (max_images - 1) if max_images > 1 else 0.0
    kept = {round(place * gap) for place in range(max_images)} if max_images != 1 else {total // 2}
    shortened, before = [], 0
    for turn in turns:
        images = tuple(image for number, image in enumerate(turn.images, start=before) if number in kept)
        shortened.append(replace(turn, images=images))
        before += len(turn.images)
    return tuple(shortened)


def conversation(request: Request, turns: Sequence[RequestTurn], answers: Sequence[str]) -> tuple[Said, ...]:
    """Give the messages of the next call.

    Parameters
    ----------
    request : Request
        For its system message.
    turns : sequence of RequestTurn
        Its user messages after the picture budget.
    answers : sequence of str
        What the model has answered to the first of them.

    Returns
    -------
    tuple of Said
        System message (when there is one), user and assistant in turn, then the next user message.
    """
    said = [Said("system", request.system)] if request.system else []
    for turn, answer in zip(turns, answers, strict=False):
        said += [Said("user", turn.text, turn.images), Said("assistant", answer or NO_WORDS)]
    following = turns[len(answers)]
    return (*said, Said("user", following.text, following.images))


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
