"""From log scores to a ranked answer: the Gumbel trick draws a whole ranking at once, by seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuralmedbench.models.builtin.opinion import normalised
from neuralmedbench.models.protocol import Message
from neuralmedbench.records.vocabulary import Vocabulary

LONGEST = 5
"""Diagnoses in a differential."""


def generator(messages: Sequence[Message], seed: int, name: str) -> np.random.Generator:
    """Random numbers of one call: equal words and pictures with an equal seed draw equally, other ones independently.

    Parameters
    ----------
    messages : sequence of Message
        The conversation; the order of its pictures does not matter.
    seed : int
        Seed of the call.
    name : str
        Name of the model.

    Returns
    -------
    Generator
        Seeded with all of it.
    """
    digest = hashlib.sha256(f"{name}\n{seed}".encode())
    for message in messages:
        digest.update(f"\n{message.role}\n{message.text}\n".encode("utf-8", "replace"))
    for picture in sorted(image.sha256 for message in messages for image in message.images):
        digest.update(picture.encode("utf-8", "replace"))
    return np.random.default_rng(int.from_bytes(digest.digest()[:16], "big"))


def ranking(
    scores: npt.NDArray[np.float64], keys: tuple[str, ...], vocabulary: Vocabulary, random: np.random.Generator, temperature: float
) -> tuple[list[str], float]:
    """Draw a differential.

    Parameters
    ----------
    scores : ndarray of float64, shape (len(keys),)
        Log scores.
    keys : tuple of str
        The candidates.
    vocabulary : Vocabulary
        Wider and narrower terms of one diagnosis do not stand beside each other.
    random : Generator
        Source of the draw.
    temperature : float
        0 ranks by score; 1 draws each rank by its probability; more is flatter.

    Returns
    -------
    list of str
        At most five keys, the most likely one first.
    float
        Probability of the first one at temperature 1.
    """
    log_p = normalised(scores)
    drawn = log_p / temperature + random.gumbel(size=len(log_p)) if temperature > 0 else log_p
    ranked: list[str] = []
    for index in np.argsort(-drawn, kind="stable"):
        key = keys[int(index)]
        related = {entry.key for entry in vocabulary.ancestors(key)}
        if not any(other in related or key in {entry.key for entry in vocabulary.ancestors(other)} for other in ranked):
            ranked.append(key)
        if len(ranked) == LONGEST:
            break
    return ranked, float(np.exp(log_p[keys.index(ranked[0])]))
