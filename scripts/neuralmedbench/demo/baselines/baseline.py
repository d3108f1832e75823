"""The three baselines (text, image, fusion): an opinion becomes an answer, sampled with a seed and written in the form that the prompt requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt

from neuralmedbench.demo.baselines import forms
from neuralmedbench.demo.baselines.forms import ChoiceQuestion, MessageInput, WorkUpState, read_choice, without_examples
from neuralmedbench.demo.baselines.image import ImageReader
from neuralmedbench.demo.baselines.opinion import (
    NO_PICTURES,
    NO_WORDS,
    NOT_WEIGHED,
    NOTHING,
    BaselineReader,
    Opinion,
    generator,
    normalised,
    ranking,
)
from neuralmedbench.demo.baselines.text import SentenceEncoder, TextReader
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.items import NO_LESION
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import MOST_CANDIDATES
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary

NORMAL = "normal"
"""Class of a diagnosis without a lesion."""

DIFFUSE_PLACES = {
    "normal-pressure-hydrocephalus": "lateral ventricles",
    "obstructive-hydrocephalus": "lateral ventricles",
    "alzheimer": "medial temporal lobe",
    "small-vessel-disease": "periventricular white matter",
    "multiple-sclerosis": "periventricular white matter",
}
"""Location of diseases of the whole brain when no focal patch was found; the side is bilateral."""

COLD = 1e-9
"""Temperature at which only ties are decided by the random draw."""

SURE = 0.9
"""Probability of the first diagnosis at which a work-up ends."""

SURE_OF_CLASS = 0.35
"""Below this probability the class of a single picture is left open."""


class Baseline:
    """A built-in model: a reader that forms opinions, with the sampling and writing common to all.

    Parameters
    ----------
    reader : BaselineReader
        Forms the opinion.
    """

    def __init__(self, reader: BaselineReader) -> None:
        self._reader = reader

    def answer(self, messages: Sequence[MessageInput], *, seed: int, temperature: float) -> str:
        """Answer a conversation.

        Parameters
        ----------
        messages : sequence of MessageInput
            System message first; pictures in the order shown.
        seed : int
            Seed of this call, the same for all items of a run. Equal conversations with equal seeds give equal answers.
        temperature : float
            0 gives the most probable answer.

        Returns
        -------
        str
            The answer in the form that the last user message requests.
        """
        messages = without_examples(messages)
        random, state = generator(messages, seed, self._reader.name), forms.work_up_state(messages)
        if case := forms.asked_case(messages):
            questions = [question for question in self._reader.questions if question not in case.asked]
            return f"QUESTION: {questions[0]}" if case.may_ask and questions else self._answer((case.told,), random, temperature)
        return self._work_up(messages, state, random, temperature) if state else self._answer(messages, random, temperature)

    def _answer(self, messages: Sequence[MessageInput], random: np.random.Generator, temperature: float) -> str:
        form = forms.requested_form(messages)
        if form is forms.BaselineForm.CHOICE:
            return self._choice(messages, random, temperature)
        if form is forms.BaselineForm.ANSWER:
            return forms.short(forms.UNDETERMINED, 0.0)  # these models cannot answer in free text
        if form is forms.BaselineForm.FIELDS and (nothing := forms.no_values(messages)):
            return nothing  # nor give numbers, dates and the like
        # a reader without evidence abstains; otherwise draw a ranking and write it
        opinion = self._reader.read(messages)
        place = forms.stated_place(messages, opinion.mark)
        if opinion.scores is None:
            return _abstain(form, opinion, place)
        if form is forms.BaselineForm.FIELDS:
            return self._fields(opinion, opinion.scores, random, temperature)
        ranked, confidence = ranking(opinion.scores, self._reader.keys, self._reader.vocabulary, random, temperature)
        entries = [self._reader.vocabulary.diagnoses[key] for key in ranked]
        return _written(form, entries, opinion, confidence, place)

    def _work_up(self, messages: Sequence[MessageInput], state: WorkUpState, random: np.random.Generator, temperature: float) -> str:
        """State candidates by what was released so far; ask for what was not asked for yet, until one of them is likely enough."""
        opinion = self._reader.read(state.messages)
        stated: list[tuple[str, float]] = []
        if opinion.scores is not None:
            log_p = normalised(opinion.scores)
            keys, _ = ranking(opinion.scores, self._reader.keys, self._reader.vocabulary, random, 0)
            names = [self._reader.vocabulary.diagnoses[key].name for key in keys]
            stated = [(name, float(np.exp(log_p[self._reader.keys.index(key)]))) for name, key in zip(names, keys, strict=True)][
                :MOST_CANDIDATES
            ]
        wishes = [wish for wish in self._reader.wishes if wish not in state.asked]
        sure = bool(stated) and stated[0][1] >= SURE and not state.fixed
        if state.may_ask and wishes and not sure:
            return f"{forms.candidates(stated)}\nREQUEST: {wishes[0]}"
        form, place = forms.requested_form(messages), forms.stated_place(messages, opinion.mark)
        if opinion.scores is None:
            return f"{forms.candidates(stated)}\n{_abstain(form, opinion, place)}"
        ranked, confidence = ranking(opinion.scores, self._reader.keys, self._reader.vocabulary, random, temperature)
        entries = [self._reader.vocabulary.diagnoses[key] for key in ranked]
        return f"{forms.candidates(stated)}\n{_written(form, entries, opinion, confidence, place)}"

    def _choice(self, messages: Sequence[MessageInput], random: np.random.Generator, temperature: float) -> str:
        """Choose an option: diagnoses as in an open question, other options by their words. Ties are drawn by the seed at every temperature."""
        choice = read_choice(next(message.words for message in reversed(messages) if message.role == "user"))
        if not choice.options:
            return forms.short(forms.UNDETERMINED, 0.0)
        named = self._named(choice)
        opinion = self._reader.read(messages) if named else None
        if opinion is None or opinion.scores is None:
            scores = self._reader.weigh(choice)
        else:
            scores = np.array([np.logaddexp.reduce(opinion.scores[indices]) for indices in named])
        log_p = normalised(scores)
        # Gumbel noise on log probabilities samples an option in proportion to its probability
        chosen = int(np.argmax(log_p / max(temperature, COLD) + random.gumbel(size=len(log_p))))
        return forms.short(LETTERS[chosen], float(np.exp(log_p[chosen])))

    def _named(self, choice: ChoiceQuestion) -> list[list[int]]:
        """Return the candidates that each option names, a wide name all that it covers; empty if an option names none."""
        vocabulary = self._reader.vocabulary
        entries = [vocabulary.find(option) for option in choice.options]
        lines = [vocabulary.lineage(key) for key in self._reader.keys] if all(entries) else []
        named = [[index for index, line in enumerate(lines) if entry and entry.key in line] for entry in entries]
        return named if all(named) else []

    def _fields(self, opinion: Opinion, scores: npt.NDArray[np.float64], random: np.random.Generator, temperature: float) -> str:
        """Sum the probabilities of the diagnoses of each class; draw the class, and take its most probable subtype."""
        # probability of each class, and of each subtype within it
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
        # an uncertain class is left open
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


def _written(form: forms.BaselineForm, entries: Sequence[Diagnosis], opinion: Opinion, confidence: float, place: dict[str, str]) -> str:
    """Write ranked diagnoses in the requested form; `place` holds picture and box, if they are asked for."""
    if entries[0].classes == NORMAL:
        place = dict.fromkeys(place, "none")
    if form is forms.BaselineForm.CHECKLIST:
        return forms.checklist([_candidate(entry, opinion) for entry in entries], _review(entries[0], opinion, place), confidence)
    if form is forms.BaselineForm.LESION_CHECKLIST:
        candidate = replace(_candidate(entries[0], opinion), name=_lesion_name(entries[0]))
        return forms.lesion_checklist(candidate, _review(entries[0], opinion, place), confidence)
    if form is forms.BaselineForm.LESION:
        return forms.lesion(_lesion_name(entries[0]), *_place(entries[0], opinion), opinion.findings, confidence)
    return forms.differential([entry.name for entry in entries], opinion.findings, opinion.reason(entries[0].key), confidence)


def _place(entry: Diagnosis, opinion: Opinion) -> tuple[str, str]:
    """Return location and side of the lesion under a diagnosis."""
    if entry.classes == NORMAL:
        return "none", "none"
    location, side = opinion.location, opinion.side
    if entry.key in DIFFUSE_PLACES and (not location or location == "lateral ventricles" or not side):
        location, side = DIFFUSE_PLACES[entry.key], "bilateral"
    return location or forms.UNDETERMINED, side or "none"


def _lesion_name(entry: Diagnosis) -> str:
    return NO_LESION if entry.classes == NORMAL else entry.name


def _candidate(entry: Diagnosis, opinion: Opinion) -> forms.BaselineCandidate:
    return forms.BaselineCandidate(entry.name, *opinion.evidence(entry.key))


def _review(entry: Diagnosis | None, opinion: Opinion, place: dict[str, str]) -> forms.ChecklistReview:
    """Return the sections of a checklist other than its candidates; without a diagnosis the model abstains."""
    location, side = _place(entry, opinion) if entry else (forms.UNDETERMINED, "none")
    return forms.ChecklistReview(
        seen=opinion.seen,
        location=location,
        side=side,
        findings=opinion.findings,
        missing=", ".join(opinion.missing) or NOTHING,
        rationale=opinion.reason(entry.key if entry else ""),
        **place,
    )


def _abstain(form: forms.BaselineForm, opinion: Opinion, place: dict[str, str]) -> str:
    """Write an abstention: without evidence the model does not guess from prevalence."""
    if form is forms.BaselineForm.FIELDS:
        return forms.fields(modality=None, kind=None, plane=None, diagnosis_class=None, subtype=None, confidence=None)
    candidate = forms.BaselineCandidate(forms.UNDETERMINED, NOTHING, NOTHING)
    if form is forms.BaselineForm.LESION_CHECKLIST:
        return forms.lesion_checklist(candidate, _review(None, opinion, place), 0.0)
    if form is forms.BaselineForm.CHECKLIST:
        return forms.checklist([candidate], _review(None, opinion, place), 0.0)
    if form is forms.BaselineForm.LESION:
        return forms.lesion(forms.UNDETERMINED, forms.UNDETERMINED, "none", opinion.findings, 0.0)
    return forms.differential([forms.UNDETERMINED], opinion.findings, opinion.reason(""), 0.0)


class FusionReader:
    """Adds the normalised log scores of both readers; a reader that abstains is ignored.

    Parameters
    ----------
    text, image : TextReader, ImageReader
        The two readers, with the same vocabulary.
    """

    name = "fusion"
    wishes: tuple[str, ...] = (
        "neurological examination: findings",
        "MRI: FLAIR",
        "MRI: DWI",
        "MRI: ADC map",
        "MRI: T1 with contrast",
        "history: further history",
    )
    questions = (*ImageReader.questions, *TextReader.questions)

    def __init__(self, text: TextReader, image: ImageReader) -> None:
        self.text, self.image = text, image
        self.vocabulary, self.keys = image.vocabulary, image.keys

    def read(self, messages: Sequence[MessageInput]) -> Opinion:
        """Form an opinion from all user messages so far."""
        # if only one reader has an opinion, it is the answer
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
            missing=tuple(name for name in (*image.missing, *text.missing) if name not in {NO_WORDS, NO_PICTURES}),
            mark=image.mark,
        )

    def weigh(self, choice: ChoiceQuestion) -> npt.NDArray[np.float64]:
        """Weigh options as the text reader does: the image reader reads no words."""
        return self.text.weigh(choice)


def _both(seen: str, read: str) -> str:
    return "; ".join(part for part in (seen, read) if part not in {NOTHING, NOT_WEIGHED}) or NOTHING


encoder = cache(SentenceEncoder)
"""The encoder, shared in the process; its weights are loaded when the first text is read."""

READERS: dict[str, Callable[[Vocabulary], BaselineReader]] = {
    "text": lambda vocabulary: TextReader(vocabulary, encoder()),
    "image": ImageReader,
    "fusion": lambda vocabulary: FusionReader(TextReader(vocabulary, encoder()), ImageReader(vocabulary)),
}


def build(model_id: str, vocabulary: Vocabulary) -> Baseline:
    """Build a baseline model.

    Parameters
    ----------
    model_id : str
        `text`, `image` or `fusion`.
    vocabulary : Vocabulary
        Diagnoses that it may name, with their descriptions.

    Returns
    -------
    Baseline
        It caches what it has read and measured, so one instance should answer all requests of a job.

    Raises
    ------
    ConfigError
        If there is no model of this name.
    """
    if model_id not in READERS:
        message = f"there is no built-in model {model_id!r}; choose one of {', '.join(READERS)}"
        raise ConfigError(message)
    return Baseline(READERS[model_id](vocabulary))
