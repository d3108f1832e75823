"""The protocol `ask`: the model asks, and a matcher that knows nothing but the case answers.

The matcher compares words and nothing else, so that the same question always gets the same reply, on every machine, and a whole
conversation can be put together again from the answers alone.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence

from neuralmedbench.records.requests import Fact, Inquiry, RequestTurn
from neuralmedbench.records.vocabulary import normal_form

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
