"""Lines of a ledger that are new: whose answer it is, and with what the model was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.places import without_places
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.keys import KEY_VERSION
from neuralmedbench.models.ledgers.ledger import SAMPLING, LedgerEntry
from neuralmedbench.models.ledgers.sent import picture_digests, text_digests
from neuralmedbench.records.requests import Request


def new_entry(request: Request, model: ModelConfig, messages: Sequence[PromptMessage], **answer: Any) -> LedgerEntry:
    """Make the entry of an answer.

    Parameters
    ----------
    request : Request
        For whom it was asked.
    model : ModelConfig
        The model as it was asked.
    messages : sequence of PromptMessage
        What was sent.
    **answer
        What else an `LedgerEntry` holds: key, state and text, repeat and turn, what came with the answer.

    Returns
    -------
    LedgerEntry
        With everything by which the answers of a revision are found again, and what was sent as digests.
    """
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
