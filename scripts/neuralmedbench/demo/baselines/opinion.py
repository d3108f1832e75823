"""Knowledge and opinion of a baseline: textbook odds of features and diseases, its opinion of one conversation, and the ranking drawn from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import yaml

from neuralmedbench.demo.baselines.forms import ChoiceQuestion, LesionMark, MessageInput
from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.vocabulary import Vocabulary

NOTHING, NOT_WEIGHED = "nothing", "not weighed by this model"
"""Evidence where there is none, and where a reader does not look for any."""
NO_WORDS, NO_PICTURES = "words about the patient", "pictures of the head"
"""Missing input of a reader that reads no words, or sees no pictures."""


@dataclass(frozen=True)
class Opinion:
    """A baseline's opinion of one conversation.

    Attributes
    ----------
    scores : ndarray of float64, shape (candidates,), or None
        Log score of each candidate, up to a constant; None if the model has no evidence and abstains.
    findings : str
        What it read or measured, in one or two sentences.
    reason : callable
        Maps the key of a diagnosis to the reason for it.
    location, side : str
        Location of the main lesion; empty if unknown.
    modality : str or None
        `MRI` or `CT` of a single picture; None if there is not exactly one.
    sequence, plane : Sequence or None, Plane or None
        Of a single picture; None if uncertain.
    seen : str
        What it was shown, as in a checklist: modality; sequences; planes.
    evidence : callable
        Maps the key of a diagnosis to the evidence for and against it.
    missing : tuple of str
        Inputs that it did not have.
    mark : LesionMark or None
        The main lesion on the picture that shows most of it.
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
    mark: LesionMark | None = None


class BaselineReader(Protocol):
    """A baseline: forms an opinion from the messages alone."""

    name: str
    vocabulary: Vocabulary
    keys: tuple[str, ...]
    wishes: tuple[str, ...]
    """What it asks for in a work-up, one after another."""
    questions: tuple[str, ...]
    """What it asks under the strategy `ask`, one after another; by rule, whatever the case."""

    def read(self, messages: Sequence[MessageInput]) -> Opinion:
        """Form an opinion from all user messages so far."""
        ...

    def weigh(self, choice: ChoiceQuestion) -> npt.NDArray[np.float64]:
        """Return log scores of the options of a question, up to a constant, shape (options,); ties are drawn."""
        ...


def normalised(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Convert log scores to log probabilities (log-softmax, without overflow)."""
    shifted = scores - scores.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


LONGEST = 5
"""Most diagnoses in a differential."""


def generator(messages: Sequence[MessageInput], seed: int, name: str) -> np.random.Generator:
    """Seed the random numbers of one call with model, seed, text and pictures; the order of the pictures does not matter."""
    digest = hashlib.sha256(f"{name}\n{seed}".encode())
    for message in messages:
        digest.update(f"\n{message.role}\n{message.words}\n".encode("utf-8", "replace"))
    for picture in sorted(image.sha256 for message in messages for image in message.images):
        digest.update(picture.encode("utf-8", "replace"))
    return np.random.default_rng(int.from_bytes(digest.digest()[:16], "big"))


def ranking(
    scores: npt.NDArray[np.float64], keys: tuple[str, ...], vocabulary: Vocabulary, random: np.random.Generator, temperature: float
) -> tuple[list[str], float]:
    """Draw a differential of at most five diagnoses.

    Parameters
    ----------
    scores : ndarray of float64, shape (len(keys),)
        Log scores.
    keys : tuple of str
        The candidates.
    vocabulary : Vocabulary
        Its hierarchy keeps wider and narrower terms of one diagnosis from being listed together.
    random : Generator
        Random numbers.
    temperature : float
        0 ranks by score; 1 draws each rank by its probability; higher is flatter.

    Returns
    -------
    list of str
        Keys of the diagnoses, the most likely one first.
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


_TABLE: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("knowledge.yaml").read_text(encoding="utf-8"))
BACKGROUND: Mapping[str, float] = _TABLE["background"]
WORDS: Mapping[str, str] = _TABLE["words"]
COMMON: Mapping[str, float] = _TABLE["common"]
EVIDENCE: Mapping[str, Mapping[str, float]] = {
    key: {feature: _TABLE["levels"].get(chance, chance) for feature, chance in features.items()}
    for key, features in _TABLE["evidence"].items()
}
"""Probabilities of features and diagnoses, explained in `knowledge.yaml`."""

RARE, UNDESCRIBED = 0.006, 0.0015
"""Prevalence of a diagnosis of `EVIDENCE` that is not in `COMMON`, and of one that is in neither."""


def nameable(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the diagnoses that a model may name: all except umbrella terms (parents that are not confusable with anything)."""
    umbrellas = {entry.parent for entry in vocabulary.diagnoses.values() if entry.parent}
    return tuple(key for key, entry in vocabulary.diagnoses.items() if key not in umbrellas or entry.confusable)


def contributions(features: Mapping[str, float], key: str) -> dict[str, float]:
    """Return the log-odds that each feature (0 absent to 1 present) adds to a diagnosis."""
    added = {}
    for feature, seen in EVIDENCE.get(key, {}).items():
        if feature in features:
            chance, value = BACKGROUND[feature], features[feature]
            added[feature] = float(value * np.log(seen / chance) + (1 - value) * np.log((1 - seen) / (1 - chance)))
    return added


def log_scores(features: Mapping[str, float], keys: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return the log of prevalence times likelihood, up to a constant.

    Returns
    -------
    ndarray of float64, shape (len(keys),)
        One score per candidate.
    """
    prior = [COMMON.get(key, RARE if key in EVIDENCE else UNDESCRIBED) for key in keys]
    return np.log(prior) + np.array([sum(contributions(features, key).values()) for key in keys])
