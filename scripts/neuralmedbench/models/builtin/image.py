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
from neuralmedbench.models.builtin.features import Findings, read_pictures
from neuralmedbench.models.builtin.measure import Frame, measure
from neuralmedbench.models.builtin.opinion import Opinion
from neuralmedbench.models.protocol import Message, MessageImage
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.vocabulary import Vocabulary

SHOWN = 0.4
"""A feature above this is named in an answer."""


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
            return Opinion(None, "No picture was shown that could be measured.", lambda _: "There is nothing to go by.")
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
            modality=("CT" if one.sequence in {Kind.CT, Kind.CE_CT} else "MRI") if one else None,
            sequence=one.sequence if one else None,
            plane=one.plane if one else None,
        )

    def _reason(self, found: Findings, key: str) -> str:
        name = self.vocabulary.diagnoses[key].name
        added = contributions(found.features, key)
        best = sorted((feature for feature in added if added[feature] > 0.3), key=lambda feature: -added[feature])[:3]
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


def _sentence(found: Findings) -> str:
    shown = sorted(
        (name for name, value in found.features.items() if value > SHOWN and name in WORDS), key=lambda name: -found.features[name]
    )
    where = (
        f" The main lesion lies in the {place(found.lesion)} ({side(found.lesion)})." if found.lesion and shown != ["unremarkable"] else ""
    )
    words = "; ".join(WORDS[name] for name in shown[:5]) or "no feature stands out"
    return f"Measured on {len(found.frames)} pictures: {words}.{where}"
