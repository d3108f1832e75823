"""From an opinion to an answer: drawn by seed, written in the form that the prompt asks for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuralmedbench.models.builtin import format as forms
from neuralmedbench.models.builtin.opinion import Opinion, Reader, normalised
from neuralmedbench.models.builtin.sampling import generator, ranking
from neuralmedbench.models.protocol import Message
from neuralmedbench.records.items import NO_LESION

NORMAL = "normal"
"""Class of a diagnosis without a lesion."""

DIFFUSE_PLACES = {
    "normal-pressure-hydrocephalus": "lateral ventricles",
    "obstructive-hydrocephalus": "lateral ventricles",
    "alzheimer": "medial temporal lobe",
    "small-vessel-disease": "periventricular white matter",
    "multiple-sclerosis": "periventricular white matter",
}
"""Where a disease of the whole brain shows, when no patch was found: both sides."""

SURE_OF_CLASS = 0.35
"""Below this the class of a single picture is left open."""


class Answerer:
    """A built-in model: a reader, and the sampling and writing that all of them share.

    Parameters
    ----------
    reader : Reader
        Forms the opinion.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def answer(self, messages: Sequence[Message], *, seed: int, temperature: float) -> str:
        """Answer a conversation, see :class:`neuralmedbench.models.protocol.BuiltinModel`."""
        opinion = self._reader.read(messages)
        form = forms.wanted(messages)
        if opinion.scores is None:
            return _abstain(form, opinion)
        random = generator(messages, seed, self._reader.name)
        if form is forms.Form.FIELDS:
            return self._fields(opinion, opinion.scores, random, temperature)
        ranked, confidence = ranking(opinion.scores, self._reader.keys, self._reader.vocabulary, random, temperature)
        entries = [self._reader.vocabulary.diagnoses[key] for key in ranked]
        if form is forms.Form.DIFFERENTIAL:
            return forms.differential([entry.name for entry in entries], opinion.findings, opinion.reason(ranked[0]), confidence)
        if entries[0].classes == NORMAL:
            return forms.lesion(NO_LESION, "none", "none", opinion.findings, confidence)
        location, side = opinion.location, opinion.side
        if entries[0].key in DIFFUSE_PLACES and (not location or location == "lateral ventricles" or not side):
            location, side = DIFFUSE_PLACES[entries[0].key], "bilateral"
        return forms.lesion(entries[0].name, location or forms.UNDETERMINED, side or "none", opinion.findings, confidence)

    def _fields(self, opinion: Opinion, scores: npt.NDArray[np.float64], random: np.random.Generator, temperature: float) -> str:
        """Sum the probabilities of the diagnoses of a class; a text alone says nothing of a single picture's kind."""
        chances: dict[str, float] = {}
        parts: dict[str, dict[str, float]] = {}
        for key, chance in zip(self._reader.keys, np.exp(normalised(scores)), strict=True):
            entry = self._reader.vocabulary.diagnoses[key]
            if entry.classes:
                chances[entry.classes] = chances.get(entry.classes, 0.0) + float(chance)
                part = parts.setdefault(entry.classes, {})
                part[entry.subtype] = part.get(entry.subtype, 0.0) + float(chance)
        names = sorted(chances)
        log_p = normalised(np.log([max(chances[name], 1e-12) for name in names]))
        drawn = log_p / temperature + random.gumbel(size=len(names)) if temperature > 0 else log_p
        chosen = int(np.argmax(drawn))
        sure = float(np.exp(log_p.max())) >= SURE_OF_CLASS
        subtypes = parts[names[chosen]]
        return forms.fields(
            modality=opinion.modality,
            kind=opinion.sequence,
            plane=opinion.plane,
            diagnosis_class=names[chosen] if sure else None,
            subtype=(max(subtypes, key=lambda name: (subtypes[name], name)) or None) if sure else None,
            confidence=float(np.exp(log_p[chosen])) if sure else None,
        )


def _abstain(form: forms.Form, opinion: Opinion) -> str:
    """Say that there is nothing to go by: an honest model does not guess from prevalence."""
    if form is forms.Form.FIELDS:
        return forms.fields(modality=None, kind=None, plane=None, diagnosis_class=None, subtype=None, confidence=None)
    if form is forms.Form.LESION:
        return forms.lesion(forms.UNDETERMINED, forms.UNDETERMINED, "none", opinion.findings, 0.0)
    return forms.differential([forms.UNDETERMINED], opinion.findings, opinion.reason(""), 0.0)
