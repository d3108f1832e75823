"""From an opinion to an answer: drawn by seed, written in the form that the prompt asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuralmedbench.models.builtin import format as forms
from neuralmedbench.models.builtin.choice import read_choice, without_examples
from neuralmedbench.models.builtin.opinion import NOTHING, Opinion, Reader, normalised
from neuralmedbench.models.builtin.sampling import generator, ranking
from neuralmedbench.models.protocol import Message
from neuralmedbench.records.items import NO_LESION
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.vocabulary import Diagnosis

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

COLD = 1e-9
"""Temperature at which only options that weigh alike are left to the draw."""

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
        messages = without_examples(messages)
        form = forms.wanted(messages)
        if form is forms.Form.CHOICE:
            return self._choice(messages, generator(messages, seed, self._reader.name), temperature)
        if form is forms.Form.ANSWER:
            return forms.short(forms.UNDETERMINED, 0.0)  # free words are not what these models have
        opinion = self._reader.read(messages)
        if opinion.scores is None:
            return _abstain(form, opinion)
        random = generator(messages, seed, self._reader.name)
        if form is forms.Form.FIELDS:
            return self._fields(opinion, opinion.scores, random, temperature)
        ranked, confidence = ranking(opinion.scores, self._reader.keys, self._reader.vocabulary, random, temperature)
        entries = [self._reader.vocabulary.diagnoses[key] for key in ranked]
        return _written(form, entries, opinion, confidence)

    def _choice(self, messages: Sequence[Message], random: np.random.Generator, temperature: float) -> str:
        """Choose an option; options that weigh alike are drawn by the seed at every temperature."""
        choice = read_choice(next(message.text for message in reversed(messages) if message.role == "user"))
        if not choice.options:
            return forms.short(forms.UNDETERMINED, 0.0)
        log_p = normalised(self._reader.weigh(choice))
        chosen = int(np.argmax(log_p / max(temperature, COLD) + random.gumbel(size=len(log_p))))
        return forms.short(LETTERS[chosen], float(np.exp(log_p[chosen])))

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


def _written(form: forms.Form, entries: Sequence[Diagnosis], opinion: Opinion, confidence: float) -> str:
    """Write ranked diagnoses in the form that is asked for."""
    if form is forms.Form.CHECKLIST:
        return forms.checklist([_candidate(entry, opinion) for entry in entries], _review(entries[0], opinion), confidence)
    if form is forms.Form.LESION_CHECKLIST:
        candidate = replace(_candidate(entries[0], opinion), name=_lesion_name(entries[0]))
        return forms.lesion_checklist(candidate, _review(entries[0], opinion), confidence)
    if form is forms.Form.LESION:
        return forms.lesion(_lesion_name(entries[0]), *_place(entries[0], opinion), opinion.findings, confidence)
    return forms.differential([entry.name for entry in entries], opinion.findings, opinion.reason(entries[0].key), confidence)


def _place(entry: Diagnosis, opinion: Opinion) -> tuple[str, str]:
    """Give location and side of what a diagnosis shows."""
    if entry.classes == NORMAL:
        return "none", "none"
    location, side = opinion.location, opinion.side
    if entry.key in DIFFUSE_PLACES and (not location or location == "lateral ventricles" or not side):
        location, side = DIFFUSE_PLACES[entry.key], "bilateral"
    return location or forms.UNDETERMINED, side or "none"


def _lesion_name(entry: Diagnosis) -> str:
    return NO_LESION if entry.classes == NORMAL else entry.name


def _candidate(entry: Diagnosis, opinion: Opinion) -> forms.Candidate:
    return forms.Candidate(entry.name, *opinion.evidence(entry.key))


def _review(entry: Diagnosis | None, opinion: Opinion) -> forms.Review:
    """Give what stands in a checklist beside the candidates; without a diagnosis the model abstains."""
    location, side = _place(entry, opinion) if entry else (forms.UNDETERMINED, "none")
    return forms.Review(
        seen=opinion.seen,
        location=location,
        side=side,
        findings=opinion.findings,
        missing=", ".join(opinion.missing) or NOTHING,
        rationale=opinion.reason(entry.key if entry else ""),
    )


def _abstain(form: forms.Form, opinion: Opinion) -> str:
    """Say that there is nothing to go by: an honest model does not guess from prevalence."""
    if form is forms.Form.FIELDS:
        return forms.fields(modality=None, kind=None, plane=None, diagnosis_class=None, subtype=None, confidence=None)
    nobody = forms.Candidate(forms.UNDETERMINED, NOTHING, NOTHING)
    if form is forms.Form.LESION_CHECKLIST:
        return forms.lesion_checklist(nobody, _review(None, opinion), 0.0)
    if form is forms.Form.CHECKLIST:
        return forms.checklist([nobody], _review(None, opinion), 0.0)
    if form is forms.Form.LESION:
        return forms.lesion(forms.UNDETERMINED, forms.UNDETERMINED, "none", opinion.findings, 0.0)
    return forms.differential([forms.UNDETERMINED], opinion.findings, opinion.reason(""), 0.0)
