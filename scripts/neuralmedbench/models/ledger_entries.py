"""New lines of the ledger: whose answer it is, how the model was asked, and short digests of what was sent."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from neuralmedbench.config.load import without_places
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.call_keys import KEY_VERSION
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.ledger import SAMPLING, LedgerEntry
from neuralmedbench.records.requests import Request

DIGITS = 32
"""Hex digits that are kept of a SHA-256: half of them, which makes a request of 20 pictures 0.7 kB. 128 bits name one text and one picture
among all that there will ever be; the key, with all 64, decides what is served. Search for planted strings knows digests of this length."""
SHOWN, SHOWN_DIGITS = 5, 12
ROLES = {"system": "the system message", "user": "message {number}", "assistant": "answer {number} of the dialogue"}


def text_digests(messages: Sequence[PromptMessage]) -> tuple[str, ...]:
    """Give the role of each message and the beginning of the SHA-256 of its words (UTF-8), with a space between them."""
    return tuple(f"{message.role} {_digest(message.text)}" for message in messages)


def picture_digests(messages: Sequence[PromptMessage]) -> tuple[str, ...]:
    """Give the beginnings of the pictures' SHA-256, of all messages in the order in which they are sent."""
    return tuple(image.sha256[:DIGITS] for message in messages for image in message.images)


def prompt_changes(entry: LedgerEntry, messages: Sequence[PromptMessage]) -> list[str]:
    """Say what is not as it was sent then."""
    then, now = _by_message(entry.words), _by_message(text_digests(messages))
    names = [name for name in dict.fromkeys([*now, *then]) if then.get(name) != now.get(name)]
    return ([f"the words of {', '.join(names)} have changed"] if names else []) + _pictures(entry.pictures, picture_digests(messages))


def _pictures(then: Sequence[str], now: Sequence[str]) -> list[str]:
    if tuple(then) == tuple(now):
        return []
    gone, new = _not_in(then, now), _not_in(now, then)
    if not gone and not new:
        return ["the same pictures are sent in another order, or in another number"]
    parts = [f"{len(then)} pictures then, {len(now)} now"]
    parts += [f"not sent any more: {_list(gone)}"] if gone else []
    return ["; ".join([*parts, *([f"new: {_list(new)}"] if new else [])])]


def _not_in(digests: Sequence[str], others: Sequence[str]) -> list[str]:
    return [f"{place} ({digest[:SHOWN_DIGITS]})" for place, digest in enumerate(digests, start=1) if digest not in others]


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _by_message(words: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    seen = Counter[str]()
    for role, _, digest in (word.partition(" ") for word in words):
        seen[role] += 1
        found[ROLES.get(role, role + " {number}").format(number=seen[role])] = digest
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def new_entry(request: Request, model: ModelConfig, messages: Sequence[PromptMessage], **answer: Any) -> LedgerEntry:
    """Make the entry of an answer."""
    return LedgerEntry(
        item_id=request.item_id,
        arm=request.arm,
        strategy=request.strategy,
        key_version=KEY_VERSION,
        model=without_places(model.id),
        revision=model.revision,
        words=text_digests(messages),
        pictures=picture_digests(messages),
        **{name: getattr(model, name) for name in SAMPLING},
        **answer,
    )
