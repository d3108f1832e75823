"""What is sent, before it is bytes: pictures stand as digests until a call is really made."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.models.picture_budget import within_budget
from neuralmedbench.models.protocol import Message, MessageImage
from neuralmedbench.records.requests import Fact, Inquiry, Request, RequestImage, RequestTurn
from neuralmedbench.records.vocabulary import normal_form

NO_WORDS = "(no answer)"
"""What stands in the history of a dialogue for an empty answer; providers refuse empty messages."""


@dataclass(frozen=True)
class PromptMessage:
    """One message of a conversation, pictures by path and digest."""

    role: str
    text: str
    images: tuple[RequestImage, ...] = ()


def next_messages(request: Request, answers: Sequence[str], max_images: int | None) -> tuple[PromptMessage, ...] | None:
    """Give the messages of the next call of a sample.

    Parameters
    ----------
    request : Request
        What is asked.
    answers : sequence of str
        What the model has answered so far.
    max_images : int or None
        The model's picture budget.

    Returns
    -------
    tuple of PromptMessage or None
        System message (when there is one), user and assistant in turn, then the next user message; None when the last answer is the final
        one.
    """
    turns = within_budget(request.turns, max_images)
    if request.inquiry is not None:
        turns = _with_replies(turns, request.inquiry, answers, max_images)
    if len(answers) >= len(turns):
        return None
    messages = [PromptMessage("system", request.system)] if request.system else []
    for turn, answer in zip(turns, answers, strict=False):
        messages += [PromptMessage("user", turn.text, turn.images), PromptMessage("assistant", answer or NO_WORDS)]
    following = turns[len(answers)]
    return (*messages, PromptMessage("user", following.text, following.images))


def _with_replies(
    turns: tuple[RequestTurn, ...], inquiry: Inquiry, answers: Sequence[str], max_images: int | None
) -> tuple[RequestTurn, ...]:
    """Give the messages of a dialogue in which the model asks: the first one, and the reply to each of its questions."""
    for asked, answer in enumerate(answers, start=1):
        question = question_of(answer)
        if not question or asked > inquiry.max_questions:
            break
        turns = (*turns, *within_budget([respond(inquiry, question, asked)], max_images))
    return turns


def load_messages(messages: Sequence[PromptMessage], root: Path) -> tuple[Message, ...]:
    """Read the pictures of a conversation.

    Returns
    -------
    tuple of Message
        The messages with the bytes of their pictures.
    """
    return tuple(Message(entry.role, entry.text, tuple(_picture(image, root) for image in entry.images)) for entry in messages)


def _picture(image: RequestImage, root: Path) -> MessageImage:
    try:
        png = (root / image.path).read_bytes()
    except OSError as error:
        fault = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        message = f"{image.path}: the picture {fault}; run slices again"
        raise DataError(message) from None
    if hashlib.sha256(png).hexdigest() != image.sha256:
        message = f"{image.path}: not the picture that the prompt was made with; run slices, items and prompts again"
        raise DataError(message)
    return MessageImage(image.label, png, image.sha256)


QUESTION = re.compile(r"^[\s>*_#-]*QUESTION[*_]*\s*:[*_]*\s*(.+)$", re.IGNORECASE | re.MULTILINE)

FINAL = re.compile(r"^[\s>*_#-]*DIFFERENTIAL(?: DIAGNOS[IE]S)?[*_]*\s*:", re.IGNORECASE | re.MULTILINE)

MOST_FACTS = 3
"""Facts that one question brings at most."""

NEARLY = 0.6
"""Share of the best fact's weight from which another one answers the question too."""

SHORTEST_STEM = 4

STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "by",
        "can",
        "case",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "him",
        "his",
        "history",
        "how",
        "i",
        "if",
        "in",
        "is",
        "it",
        "its",
        "know",
        "like",
        "me",
        "my",
        "no",
        "not",
        "of",
        "on",
        "or",
        "out",
        "patient",
        "patients",
        "please",
        "she",
        "show",
        "tell",
        "that",
        "the",
        "their",
        "them",
        "there",
        "they",
        "this",
        "to",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)


def question_of(answer: str) -> str:
    """Give what a model asks; empty when it asks nothing more: it gave its differential, or kept to no form."""
    found = QUESTION.findall(answer)
    return "" if FINAL.search(answer) or not found else found[-1].strip()


def respond(inquiry: Inquiry, question: str, asked: int) -> RequestTurn:
    """Answer a question from the case."""
    facts = matching_facts(question, inquiry.facts)
    told = "\n".join(fact.text for fact in facts) or inquiry.unknown
    left = inquiry.max_questions - asked
    closing = inquiry.closing if left <= 0 else inquiry.left.replace("{left}", str(left))
    return RequestTurn(text=f"{told}\n\n{closing}", images=tuple(image for fact in facts for image in fact.images))


def matching_facts(question: str, facts: Sequence[Fact]) -> list[Fact]:
    """Find the facts that answer a question.

    Notes
    -----
    A word of the question weighs log(1 + facts / facts that hold it), the inverse document frequency over this one case; a fact weighs
    the sum of the words that it shares. Two words are one when the shorter one, of at least four letters, begins the longer one.
    """
    words = [_words(f"{fact.text} {fact.asked_by}") for fact in facts]
    held = {word: [place for place, own in enumerate(words) if _holds(own, word)] for word in _words(question)}
    weights: dict[int, float] = defaultdict(float)
    for places in held.values():
        for place in places:
            weights[place] += math.log1p(len(facts) / len(places))
    if not weights:
        return []
    best = max(weights.values())
    chosen = [place for place, weight in sorted(weights.items(), key=lambda one: (-one[1], one[0])) if weight >= NEARLY * best]
    return [facts[place] for place in sorted(chosen[:MOST_FACTS])]


def _words(text: str) -> set[str]:
    return {word for word in normal_form(text).split() if word not in STOP_WORDS and len(word) > 1}


def _holds(words: set[str], word: str) -> bool:
    return any(
        own == word or (min(len(own), len(word)) >= SHORTEST_STEM and (own.startswith(word) or word.startswith(own))) for own in words
    )
