"""One sample, followed through the answers that are kept: those that are there, and the call that is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.conversation import Said, next_messages
from neuralmedbench.models.keys import request_key
from neuralmedbench.models.ledgers.ledger import Entry
from neuralmedbench.records.requests import Request


class Kept(Protocol):
    """Where answers are looked up: a ledger, or its entries by key."""

    def get(self, key: str, /) -> Entry | None:
        """Give the answer of a key; None when it is not there."""
        ...


@dataclass(frozen=True)
class Followed:
    """How far a sample is answered.

    Attributes
    ----------
    entries : tuple of Entry
        The answers to its calls, in order, up to the first that is not there.
    said : tuple of Said
        The conversation of the call that is due, or of the last one when all are there.
    key : str
        Key of the call that is due; empty when all are there.
    """

    entries: tuple[Entry, ...]
    said: tuple[Said, ...]
    key: str

    @property
    def complete(self) -> bool:
        """Whether every call of the sample is answered."""
        return not self.key


def follow(request: Request, model: ModelConfig, kept: Kept, repeat: int, *, code: str = "") -> Followed:
    """Follow one sample.

    Parameters
    ----------
    request : Request
        What is asked.
    model : ModelConfig
        The model as it is asked.
    kept : Kept
        The answers.
    repeat : int
        Number of the sample.
    code : str
        As in `models.keys.call_key`.

    Returns
    -------
    Followed
        What is there and what is due; a call is made of the answers before it.
    """
    entries: list[Entry] = []
    said: tuple[Said, ...] = ()
    while (due := next_messages(request, [entry.text for entry in entries], model.max_images)) is not None:
        said, key = due, request_key(request, model, due, repeat, code=code)
        entry = kept.get(key)
        if entry is None:
            return Followed(tuple(entries), said, key)
        entries.append(entry)
    return Followed(tuple(entries), said, "")
