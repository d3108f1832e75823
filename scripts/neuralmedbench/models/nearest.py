"""Why a call is not in the ledger: what differs from the answer of the same item that comes nearest to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.places import without_places
from neuralmedbench.models.conversation import PromptMessage, next_messages
from neuralmedbench.models.keys import KEY_VERSION, request_key, sent_schema
from neuralmedbench.models.ledgers.earlier import model_of_entry
from neuralmedbench.models.ledgers.ledger import SAMPLING, LedgerEntry
from neuralmedbench.models.ledgers.sent import prompt_changes
from neuralmedbench.records.requests import Request

SHORT, DIGEST = 12, 64


def nearest_entry(entries: Iterable[LedgerEntry], request: Request, repeat: int, turn: int) -> LedgerEntry | None:
    """Find the answer that was asked for what comes nearest to a call.

    Parameters
    ----------
    entries : iterable of LedgerEntry
        The ledger, in the order in which the answers came.
    request : Request
        What is asked.
    repeat, turn : int
        Which sample, and which call of it, from 0.

    Returns
    -------
    LedgerEntry or None
        Of the same item: first of all for the same arm and strategy, then the same call and sample, then the latest. None when no
        answer to the item was ever kept.
    """

    def nearness(placed: tuple[int, LedgerEntry]) -> tuple[bool, bool, bool, bool, int]:
        place, entry = placed
        return entry.arm == request.arm, entry.strategy == request.strategy, entry.turn == turn, entry.repeat == repeat, place

    of_item = [(place, entry) for place, entry in enumerate(entries) if entry.item_id == request.item_id]
    return max(of_item, key=nearness)[1] if of_item else None


def differences(
    entry: LedgerEntry, request: Request, model: ModelConfig, messages: Sequence[PromptMessage], *, repeat: int, turn: int, code: str
) -> list[str]:
    """Say what differs between a call and an answer in the ledger.

    Parameters
    ----------
    entry : LedgerEntry
        The answer.
    request : Request
        What is asked now.
    model : ModelConfig
        The model as it is asked now.
    messages : sequence of PromptMessage
        What is sent with the call.
    repeat, turn : int
        Which sample, and which call of it, from 0.
    code : str
        As in `models.keys.call_key`.

    Returns
    -------
    list of str
        In words, what was then and what is now; never what was said.
    """
    now: dict[str, object] = {"model id": without_places(model.id), "revision": model.revision}
    now |= {name: getattr(model, name) for name in SAMPLING}
    then: dict[str, object] = {"model id": entry.model, "revision": entry.revision} | {name: getattr(entry, name) for name in SAMPLING}
    if not entry.revision:  # a line that was written before these were kept
        then = dict(now)
    now |= {"arm": request.arm, "strategy": request.strategy, "sample": repeat, "call": turn + 1, "key version": KEY_VERSION}
    then |= {"arm": entry.arm, "strategy": entry.strategy, "sample": entry.repeat, "call": entry.turn + 1, "key version": entry.key_version}
    found = [f"{name} {_shown(then[name])} then, {_shown(now[name])} now" for name in now if then[name] != now[name]]
    if entry.code != code:
        found.append("the code or vocabulary of the built-in model has changed")
    if (entry.arm, entry.strategy, entry.turn) == (request.arm, request.strategy, turn):
        found += _what_was_sent(entry, request, model, messages)
    return found


def _what_was_sent(entry: LedgerEntry, request: Request, model: ModelConfig, messages: Sequence[PromptMessage]) -> list[str]:
    """Ask the present request with the settings of then: a key that is not that of the answer says that something else was sent."""
    then = model_of_entry(entry, model) if entry.revision else model
    if request_key(request, then, messages, entry.repeat, code=entry.code) == entry.key:
        return []
    pictures = sum(len(turn.images) for turn in request.turns) if entry.turn == 0 else -1
    for budget in (None, *range(pictures + 1)):
        if _first_key(request, then.model_copy(update={"max_images": budget}), entry) == entry.key:
            return [f"max_images {_shown(budget)} then (or as many pictures), {_shown(model.max_images)} now"]
    if entry.words:
        return prompt_changes(entry, messages) or [f"{_what_is_left(request, model, messages)} changed"]
    if entry.turn > 0:  # a later call of a dialogue holds the answers before it
        return ["the words or pictures, or the answers given before in the dialogue, are others"]
    return ["the words or the pictures that are sent have changed"]


def _what_is_left(request: Request, model: ModelConfig, messages: Sequence[PromptMessage]) -> str:
    """Name what is in a key and not kept with an answer, as far as this call has it."""
    parts = {
        "the labels of the pictures": any(message.images for message in messages),
        "the schema of the answer": bool(sent_schema(request, model)),
        "the place of the weights": without_places(model.id) != model.id,
    }
    return " or ".join(part for part, there in parts.items() if there) or "something that is not kept with it"


def _first_key(request: Request, model: ModelConfig, entry: LedgerEntry) -> str:
    return request_key(request, model, next_messages(request, [], model.max_images) or (), entry.repeat, code=entry.code)


def _shown(value: object) -> str:
    if value is None or value in ({}, ""):
        return "not set"
    words = str(value)
    return words[:SHORT] if len(words) == DIGEST else words  # the strategy of a grade is the digest of the graded text
