"""What a baseline thinks of one conversation, before it is sampled and written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neuralmedbench.models.builtin.choice import Choice
from neuralmedbench.models.protocol import Message
from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.vocabulary import Vocabulary

NOTHING, NOT_WEIGHED = "nothing", "not weighed by this model"
"""What stands for evidence where there is none, and where a reader does not look for any."""
NO_WORDS, NO_PICTURES = "words about the patient", "pictures of the head"
"""What a reader lacks that does not read words, or sees no pictures."""


@dataclass(frozen=True)
class Opinion:
    """What a baseline thinks.

    Attributes
    ----------
    scores : ndarray of float64, shape (candidates,), or None
        Log score of each candidate, up to a constant; None when the model has nothing to go by and abstains.
    findings : str
        What it read or measured, in a sentence or two.
    reason : callable
        From the key of a diagnosis to why it could be that one.
    location, side : str
        Where the main lesion lies; empty when it does not know.
    modality : str or None
        `MRI` or `CT`, of a single picture; None when there is none.
    sequence, plane : Sequence or None, Plane or None
        What a single picture is; None when unsure.
    seen : str
        What it was shown, as a checklist tells it: modality; sequences; planes.
    evidence : callable
        From the key of a diagnosis to what speaks for it and what against it.
    missing : tuple of str
        What it did not have.
    """

    scores: npt.NDArray[np.float64] | None
    findings: str
    reason: Callable[[str], str]
    location: str = ""
    side: str = ""
    modality: str | None = None
    sequence: Kind | None = None
    plane: Plane | None = None
    seen: str = NOTHING
    evidence: Callable[[str], tuple[str, str]] = lambda _: (NOTHING, NOTHING)
    missing: tuple[str, ...] = ()


class Reader(Protocol):
    """One of the baselines: it forms an opinion from the messages and from nothing else."""

    name: str
    vocabulary: Vocabulary
    keys: tuple[str, ...]

    def read(self, messages: Sequence[Message]) -> Opinion:
        """Form an opinion from all user messages so far."""
        ...

    def weigh(self, choice: Choice) -> npt.NDArray[np.float64]:
        """Weigh the options of a question: log scores, up to a constant, of shape (options,); between equal ones the lot decides."""
        ...


def normalised(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Log probabilities of log scores: the softmax, without overflow."""
    shifted = scores - scores.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))
