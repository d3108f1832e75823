"""The name of a call in the ledger. Changing this recipe means paying for everything again."""

from __future__ import annotations

from collections.abc import Sequence

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.io.files import sha256_of_value
from neuralmedbench.models.conversation import Said

KEY_VERSION = 1


def call_key(model: ModelConfig, said: Sequence[Said], repeat: int, *, code: str = "") -> str:
    """Digest of everything on which an answer depends.

    Parameters
    ----------
    model : ModelConfig
        Its id, revision and sampling count; titles, prices, deadlines and addresses do not.
    said : sequence of Said
        What is sent, after the picture budget; in a dialogue with the answers that were really given.
    repeat : int
        Which of the samples; without it n samples would be one.
    code : str
        Digest of the code that answers, for models that are part of this repository; empty for all others.

    Returns
    -------
    str
        64 hex digits.
    """
    return sha256_of_value(
        {
            "key_version": KEY_VERSION,
            "model": model.id,
            "revision": model.revision,
            "code": code,
            "sampling": {
                "temperature": model.temperature,
                "top_p": model.top_p,
                "seed": model.seed,
                "max_tokens": model.max_tokens,
            },
            "repeat": repeat,
            "messages": [
                {"role": entry.role, "text": entry.text, "images": [[image.label, image.sha256] for image in entry.images]}
                for entry in said
            ],
        }
    )
