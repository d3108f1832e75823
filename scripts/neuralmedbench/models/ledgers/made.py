"""Lines of a ledger that are new: whose answer it is, and with what the model was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.places import without_places
from neuralmedbench.models.conversation import Said
from neuralmedbench.models.keys import KEY_VERSION
from neuralmedbench.models.ledgers.ledger import SAMPLING, Entry
from neuralmedbench.models.ledgers.sent import pictures_of, words_of
from neuralmedbench.records.requests import Request


def made_entry(request: Request, model: ModelConfig, said: Sequence[Said], **answer: Any) -> Entry:
    """Make the entry of an answer.

    Parameters
    ----------
    request : Request
        For whom it was asked.
    model : ModelConfig
        The model as it was asked.
    said : sequence of Said
        What was sent.
    **answer
        What else an `Entry` holds: key, state and text, repeat and turn, what came with the answer.

    Returns
    -------
    Entry
        With everything by which the answers of a revision are found again, and what was sent as digests.
    """
    return Entry(
        item_id=request.item_id,
        arm=request.arm,
        strategy=request.strategy,
        key_version=KEY_VERSION,
        model=without_places(model.id),
        revision=model.revision,
        words=words_of(said),
        pictures=pictures_of(said),
        **{name: getattr(model, name) for name in SAMPLING},
        **answer,
    )
