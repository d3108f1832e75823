"""The fusion baseline: words and pictures, each as sure as it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuralmedbench.models.builtin.choice import Choice
from neuralmedbench.models.builtin.image import ImageReader
from neuralmedbench.models.builtin.opinion import NO_PICTURES, NO_WORDS, NOT_WEIGHED, NOTHING, Opinion, normalised
from neuralmedbench.models.builtin.text import TextReader
from neuralmedbench.models.protocol import Message


class FusionReader:
    """Adds the normalised log scores of both readers; one that abstains says nothing.

    Parameters
    ----------
    text, image : TextReader, ImageReader
        The two readers, over one vocabulary.
    """

    name = "fusion"

    def __init__(self, text: TextReader, image: ImageReader) -> None:
        self.text, self.image = text, image
        self.vocabulary, self.keys = image.vocabulary, image.keys

    def read(self, messages: Sequence[Message]) -> Opinion:
        """Form an opinion from all user messages so far."""
        text, image = self.text.read(messages), self.image.read(messages)
        if text.scores is None or image.scores is None:
            return text if image.scores is None else image

        def reason(key: str) -> str:
            return f"{image.reason(key)} {text.reason(key)}"

        def evidence(key: str) -> tuple[str, str]:
            (seen_for, seen_against), (read_for, read_against) = image.evidence(key), text.evidence(key)
            return _both(seen_for, read_for), _both(seen_against, read_against)

        return Opinion(
            scores=normalised(text.scores) + normalised(image.scores),
            findings=image.findings,
            reason=reason,
            location=image.location or text.location,
            side=image.side,
            modality=image.modality,
            sequence=image.sequence,
            plane=image.plane,
            seen=image.seen,
            evidence=evidence,
            missing=tuple(what for what in (*image.missing, *text.missing) if what not in {NO_WORDS, NO_PICTURES}),
        )

    def weigh(self, choice: Choice) -> npt.NDArray[np.float64]:
        """Weigh options as the text reader does: the pictures say nothing about words."""
        return self.text.weigh(choice)


def _both(seen: str, read: str) -> str:
    return "; ".join(part for part in (seen, read) if part not in {NOTHING, NOT_WEIGHED}) or NOTHING
