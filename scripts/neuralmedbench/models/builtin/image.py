"""The image baseline: measurements on the pictures of the prompt, weighed by a table of textbook knowledge.

It reads no word about the patient; of the text it uses only the labels of the pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuralmedbench.models.builtin.anatomy import place, side
from neuralmedbench.models.builtin.choice import Choice
from neuralmedbench.models.builtin.evidence import WORDS, candidates, contributions, log_scores
from neuralmedbench.models.builtin.features import CT_KINDS, Findings, read_pictures
from neuralmedbench.models.builtin.format import SEQUENCE_NAMES
from neuralmedbench.models.builtin.measure import Frame, measure
from neuralmedbench.models.builtin.opinion import NO_PICTURES, NO_WORDS, NOTHING, Opinion
from neuralmedbench.models.protocol import Message, MessageImage
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.vocabulary import Vocabulary

SHOWN = 0.4
"""A feature above this is named in an answer."""

SPEAKS, MOST_NAMED = 0.3, 2
"""Log-odds from which a feature speaks for or against a diagnosis, and how many of them are named as evidence."""

USUAL = (Kind.T1W, Kind.CE_T1W, Kind.T2W, Kind.FLAIR, Kind.DWI, Kind.ADC, Kind.SWI)
"""Sequences of a usual examination of the head."""


class ImageReader:
    """Measures pictures; a picture is measured once.

    Parameters
    ----------
    vocabulary : Vocabulary
        Diagnoses that may be named.
    """

    name = "image"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.keys = candidates(vocabulary)
        self._frames: dict[tuple[str, str], Frame | None] = {}
        self._seen: dict[tuple[tuple[str, str], ...], Opinion] = {}

    def read(self, messages: Sequence[Message]) -> Opinion:
        """Form an opinion from the pictures of all user messages so far, in whatever order they stand."""
        images = {_key(image): image for message in messages if message.role == "user" for image in message.images}
        known = tuple(sorted(images))
        if known not in self._seen:
            self._seen[known] = self._opinion([self._frame(images[key]) for key in known])
        return self._seen[known]

    def weigh(self, choice: Choice) -> npt.NDArray[np.float64]:
        """Weigh all options alike: this model reads no words, so its choice is **chance**, drawn uniformly by the seed."""
        return np.zeros(len(choice.options))

    def _frame(self, image: MessageImage) -> Frame | None:
        key = _key(image)
        if key not in self._frames:
            self._frames[key] = measure(image)
        return self._frames[key]

    def _opinion(self, frames: Sequence[Frame | None]) -> Opinion:
        usable = [frame for frame in frames if frame is not None]
        if not usable:
            return Opinion(
                None,
                "No picture was shown that could be measured.",
                lambda _: "There is nothing to go by.",
                missing=(NO_PICTURES, NO_WORDS),
            )
        found = read_pictures(usable)
        one = usable[0] if len(usable) == 1 else None

        def reason(key: str) -> str:
            return self._reason(found, key)

        return Opinion(
            scores=log_scores(found.features, self.keys),
            findings=_sentence(found),
            reason=reason,
            location=place(found.lesion),
            side=side(found.lesion),
            modality=_modality(one) if one else None,
            sequence=one.sequence if one else None,
            plane=one.plane if one else None,
            seen=_seen(usable),
            evidence=lambda key: _evidence(found, key),
            missing=(NO_WORDS, *_not_shown(usable)),
        )

    def _reason(self, found: Findings, key: str) -> str:
        name = self.vocabulary.diagnoses[key].name
        added = contributions(found.features, key)
        best = sorted((feature for feature in added if added[feature] > SPEAKS), key=lambda feature: -added[feature])[:3]
        shown = [WORDS[feature] for feature in best if found.features[feature] > SHOWN]
        missing = [WORDS[feature] for feature in best if found.features[feature] <= SHOWN]
        if not best:
            return f"Nothing that was measured speaks for {name}; it is common."
        parts = ([f"{'; '.join(shown)} speaks for {name}"] if shown else []) + (
            [f"so does the lack of {'; '.join(missing)}"] if missing else []
        )
        text = ", ".join(parts) if shown else f"The lack of {'; '.join(missing)} speaks for {name}"
        return text[0].upper() + text[1:] + "."


def _key(image: MessageImage) -> tuple[str, str]:
    """Bytes and what is said of them; the number of a picture in its label does not matter."""
    return image.sha256, image.label.partition(":")[2]


def _modality(frame: Frame) -> str:
    return "CT" if frame.sequence in CT_KINDS else "MRI"


def _seen(frames: Sequence[Frame]) -> str:
    """Modality; sequences; planes: those that the labels say or that were guessed from the pictures."""
    kinds = {frame.sequence for frame in frames if frame.sequence and frame.sequence not in CT_KINDS}
    sequences = sorted(SEQUENCE_NAMES.get(kind, str(kind)) for kind in kinds)
    planes = sorted({str(frame.plane) for frame in frames if frame.plane})
    parts = (sorted({_modality(frame) for frame in frames}), sequences, planes)
    return "; ".join(", ".join(part) or "unknown" for part in parts)


def _not_shown(frames: Sequence[Frame]) -> list[str]:
    """Name the usual kinds of pictures that were not among them."""
    shown = {frame.sequence for frame in frames}
    kinds = [SEQUENCE_NAMES[kind] for kind in USUAL if kind not in shown]
    return kinds if shown & set(CT_KINDS) else [*kinds, "CT"]


def _evidence(found: Findings, key: str) -> tuple[str, str]:
    """Say which measurements speak most for a diagnosis, and which against it."""
    added = contributions(found.features, key)
    speak_for = sorted((name for name in added if added[name] > SPEAKS), key=lambda name: -added[name])[:MOST_NAMED]
    against = sorted((name for name in added if added[name] < -SPEAKS), key=lambda name: added[name])[:MOST_NAMED]
    return _named(found, speak_for), _named(found, against)


def _named(found: Findings, features: Sequence[str]) -> str:
    return "; ".join(WORDS[name] if found.features[name] > SHOWN else f"lack of {WORDS[name]}" for name in features) or NOTHING


def _sentence(found: Findings) -> str:
    shown = sorted(
        (name for name, value in found.features.items() if value > SHOWN and name in WORDS), key=lambda name: -found.features[name]
    )
    where = (
        f" The main lesion lies in the {place(found.lesion)} ({side(found.lesion)})." if found.lesion and shown != ["unremarkable"] else ""
    )
    words = "; ".join(WORDS[name] for name in shown[:5]) or "no feature stands out"
    return f"Measured on {len(found.frames)} pictures: {words}.{where}"
