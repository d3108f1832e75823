"""One sample, followed through the answers that are kept: those that are there, and the call that is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.models.conversation import PromptMessage, next_messages
from neuralmedbench.models.keys import request_key
from neuralmedbench.models.ledgers.ledger import LedgerEntry
from neuralmedbench.records.requests import Request


class AnswerStore(Protocol):
    """Where answers are looked up: a ledger, or its entries by key."""

    def get(self, key: str, /) -> LedgerEntry | None:
        """Give the answer of a key; None when it is not there."""
        ...


def item_key(key: str, request: Request) -> str:
    """Give the key of an imported answer where another answer stands under the call's key.

    Parameters
    ----------
    key : str
        As `request_key` gives it: items with the same prompt, and arms and strategies that send the same, have it in common.
    request : Request
        Whose answer it is.

    Returns
    -------
    str
        64 hex digits, for this item, arm and strategy alone.
    """
    return sha256_of_value({"call_key": key, "item_id": request.item_id, "arm": request.arm, "strategy": request.strategy})


def stored_answer(kept: AnswerStore, request: Request, model: ModelConfig, key: str) -> LedgerEntry | None:
    """Look up the answer to a call.

    A model that is asked answers one prompt once, for all items that share it. Somebody else's run answered each item: its answer is
    never taken for another item.

    Parameters
    ----------
    kept : AnswerStore
        The answers.
    request : Request
        What is asked.
    model : ModelConfig
        The model.
    key : str
        Key of the call.

    Returns
    -------
    LedgerEntry or None
        The answer; None when it is not there.
    """
    entry = kept.get(key)
    if model.backend != "imported":
        return entry
    return kept.get(item_key(key, request)) or (entry if entry and entry.item_id in ("", request.item_id) else None)


@dataclass(frozen=True)
class SampleProgress:
    """How far a sample is answered.

    Attributes
    ----------
    entries : tuple of LedgerEntry
        The answers to its calls, in order, up to the first that is not there.
    messages : tuple of PromptMessage
        The conversation of the call that is due, or of the last one when all are there.
    key : str
        Key of the call that is due; empty when all are there.
    """

    entries: tuple[LedgerEntry, ...]
    messages: tuple[PromptMessage, ...]
    key: str

    @property
    def complete(self) -> bool:
        """Whether every call of the sample is answered."""
        return not self.key


def resume_sample(request: Request, model: ModelConfig, kept: AnswerStore, repeat: int, *, code: str = "") -> SampleProgress:
    """Follow one sample.

    Parameters
    ----------
    request : Request
        What is asked.
    model : ModelConfig
        The model as it is asked.
    kept : AnswerStore
        The answers.
    repeat : int
        Number of the sample.
    code : str
        As in `models.keys.call_key`.

    Returns
    -------
    SampleProgress
        What is there and what is due; a call is made of the answers before it.
    """
    entries: list[LedgerEntry] = []
    messages: tuple[PromptMessage, ...] = ()
    while (due := next_messages(request, [entry.text for entry in entries], model.max_images)) is not None:
        messages, key = due, request_key(request, model, due, repeat, code=code)
        entry = stored_answer(kept, request, model, key)
        if entry is None:
            return SampleProgress(tuple(entries), messages, key)
        entries.append(entry)
    return SampleProgress(tuple(entries), messages, "")
