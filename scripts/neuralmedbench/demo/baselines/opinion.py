"""What a baseline knows and thinks: textbook odds of features and diseases, its opinion of one conversation, and how a ranking is drawn from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import yaml

from neuralmedbench.demo.baselines.forms import ChoiceQuestion, MessageInput
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


class BaselineReader(Protocol):
    """One of the baselines: it forms an opinion from the messages and from nothing else."""

    name: str
    vocabulary: Vocabulary
    keys: tuple[str, ...]

    def read(self, messages: Sequence[MessageInput]) -> Opinion:
        """Form an opinion from all user messages so far."""
        ...

    def weigh(self, choice: ChoiceQuestion) -> npt.NDArray[np.float64]:
        """Weigh the options of a question: log scores, up to a constant, of shape (options,); between equal ones the lot decides."""
        ...


def normalised(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Log probabilities of log scores: the softmax, without overflow."""
    shifted = scores - scores.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


LONGEST = 5
"""Diagnoses in a differential."""


def generator(messages: Sequence[MessageInput], seed: int, name: str) -> np.random.Generator:
    """Random numbers of one call: equal words and pictures with an equal seed draw equally, other ones independently."""
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


_TABLE: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("knowledge.yaml").read_text(encoding="utf-8"))
BACKGROUND: Mapping[str, float] = _TABLE["background"]
WORDS: Mapping[str, str] = _TABLE["words"]
COMMON: Mapping[str, float] = _TABLE["common"]
EVIDENCE: Mapping[str, Mapping[str, float]] = {
    key: {feature: _TABLE["levels"].get(chance, chance) for feature, chance in features.items()}
    for key, features in _TABLE["evidence"].items()
}
"""Probabilities of features and diagnoses; `knowledge.yaml` explains them."""

RARE, UNDESCRIBED = 0.006, 0.0015
"""The same for a diagnosis of `EVIDENCE` that is not among them, and for one of which the table knows nothing."""


def nameable(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Diagnoses that a model may name: all but the umbrella terms, under which others stand and which nothing is confused with."""
    umbrellas = {entry.parent for entry in vocabulary.diagnoses.values() if entry.parent}
    return tuple(key for key, entry in vocabulary.diagnoses.items() if key not in umbrellas or entry.confusable)


def contributions(features: Mapping[str, float], key: str) -> dict[str, float]:
    """Log-odds that each feature adds to a diagnosis."""
    added = {}
    for feature, seen in EVIDENCE.get(key, {}).items():
        if feature in features:
            chance, value = BACKGROUND[feature], features[feature]
            added[feature] = float(value * np.log(seen / chance) + (1 - value) * np.log((1 - seen) / (1 - chance)))
    return added


def log_scores(features: Mapping[str, float], keys: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Log of prevalence times likelihood, up to a constant.

    Returns
    -------
    ndarray of float64, shape (len(keys),)
        One score a candidate.
    """
    prior = [COMMON.get(key, RARE if key in EVIDENCE else UNDESCRIBED) for key in keys]
    return np.log(prior) + np.array([sum(contributions(features, key).values()) for key in keys])
