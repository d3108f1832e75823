"""The facts of a case that answer a question in free words; by words, without a model, in English."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence

from neuralmedbench.records.requests import Fact
from neuralmedbench.records.vocabulary import normal_form

MOST_FACTS = 3
"""Most facts in one reply."""

NEARLY = 0.6
"""A fact with at least this share of the best fact's weight is part of the reply."""

SHORTEST_STEM = 4

STOP_WORD_LIST = (
    "a an and any are as at be been by can case could did do does for from had has have he her him his history how i if in "
    "is it its know like me my no not of on or out patient patients please she show tell that the their them there they "
    "this to was were what when where which who whom why will with would you your"
)
STOP_WORDS = frozenset(STOP_WORD_LIST.split())
"""Words that say nothing about what a question asks for."""


def matching_facts(question: str, facts: Sequence[Fact]) -> list[Fact]:
    """Find the facts that answer a question.

    Notes
    -----
    A word of the question weighs log(1 + facts / facts that contain it), its inverse document frequency within the case; a fact weighs the
    sum of its shared words. Two words match if they are equal or the shorter one, of at least four letters, begins the longer one.
    """
    words = [_words(f"{fact.text} {fact.asked_by}") for fact in facts]
    matches = {word: [place for place, of_fact in enumerate(words) if _contains(of_fact, word)] for word in _words(question)}
    weights: dict[int, float] = defaultdict(float)
    for places in matches.values():
        for place in places:
            weights[place] += math.log1p(len(facts) / len(places))
    if not weights:
        return []
    best = max(weights.values())
    # heaviest first, ties in the order of the case; the reply itself keeps the order of the case
    chosen = [place for place, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])) if weight >= NEARLY * best]
    return [facts[place] for place in sorted(chosen[:MOST_FACTS])]


GENERAL = STOP_WORDS | frozenset(
    [
        "affected",
        "after",
        "also",
        "anything",
        "appear",
        "appearance",
        "been",
        "before",
        "body",
        "condition",
        "conditions",
        "current",
        "currently",
        "describe",
        "developed",
        "during",
        "else",
        "exam",
        "examination",
        "experience",
        "experienced",
        "experiencing",
        "feel",
        "felt",
        "finding",
        "findings",
        "first",
        "further",
        "gained",
        "get",
        "happened",
        "history",
        "information",
        "known",
        "lost",
        "made",
        "medical",
        "more",
        "much",
        "new",
        "notice",
        "noticed",
        "now",
        "other",
        "past",
        "physical",
        "present",
        "problem",
        "problems",
        "recent",
        "recently",
        "result",
        "results",
        "reveal",
        "revealed",
        "some",
        "something",
        "start",
        "started",
        "symptom",
        "symptoms",
        "take",
        "takes",
        "taking",
        "test",
        "than",
        "then",
        "these",
        "those",
        "time",
        "type",
        "use",
        "used",
        "you",
        "there",
    ]
)
"""Words that do not tell one short statement from another."""

SUBJECTS: tuple[tuple[str, str], ...] = (
    (
        "family|familial|relatives?|siblings?|parents?|hereditary|inherited",
        r"family|familial|mother|father|sisters?|brothers?|parents?|aunts?|uncles?|grand\w*|siblings?|cousins?",
    ),
    (r"medications?|medicines?|drugs?|pills?|prescri\w*", r"medications?|medicines?|drugs?|pills?|prescri\w*|taking|takes|mg"),
    (r"treat\w*|therap\w*|tried|remed\w*", r"treat\w*|therap\w*|tried|remed\w*"),
    (r"travel\w*|abroad|trips?", r"travel\w*|abroad|trips?|visited|immigrated|returned from"),
    (r"where|locat\w*|(?:which|what) parts?|distribution", r"locat\w*|localized|scattered|distribut\w*"),
    ("when|how long|duration|onset", r"ago|began|begins?|started|first|persist\w*|since|earlier|(?:days?|weeks?|months?)"),
    (
        r"medical (?:history|problems?|conditions?)|past history|comorbid\w*|chronic (?:illness\w*|diseases?|conditions?)|health problems?",
        r"medical (?:history|problems?|conditions?)|history of|comorbid\w*|otherwise healthy",
    ),
    (r"physical exam\w*|examination|looks? like", "exam|examination"),
)
"""Words by which a question names a subject, and words of the statements on it."""


ALTERNATIVES = re.compile(r"\b(?:or|and)\b|[,;?.]", re.IGNORECASE)


def matching_statements(question: str, facts: Sequence[Fact]) -> list[Fact]:
    """Find the statements that answer a question (choice items, whose cases are lists of short statements).

    Notes
    -----
    Stricter than `matching_facts`: a wrong statement is worse than none. Each part of a question (`fever, chills or a cough`) is looked for by
    itself. A part on a subject (`SUBJECTS`), or after such a part, is answered from the statements on it that share a word with the rest of the part, or, if there is
    no such rest, from all of them. Any other part needs a statement that shares more than half of its words, or half and at least two. Of these
    statements, those that share most words are told, at most `MOST_FACTS`; none if more than that share as many and no subject was named.
    """
    statements = [normal_form(fact.text) for fact in facts]
    found: set[int] = set()
    subjects: Sequence[tuple[str, str]] = ()
    for part in map(normal_form, ALTERNATIVES.split(question)):
        subjects = [subject for subject in SUBJECTS if _has(subject[0], part)] or subjects
        found.update(_places_of_part(part, subjects, statements))
    return [facts[place] for place in sorted(found)[:MOST_FACTS]]


def _places_of_part(part: str, named: Sequence[tuple[str, str]], statements: Sequence[str]) -> list[int]:
    if not _words(part):
        return []
    for asked, _ in named:
        part = re.sub(rf"\b(?:{asked})\b", " ", part)
    words = {_singular(word) for word in _words(part) - GENERAL}
    shared = {
        place: sum(_contains({_singular(one) for one in _words(statement)}, word) for word in words)
        for place, statement in enumerate(statements)
        if not named or any(_has(told, statement) for _, told in named)
    }
    enough = (1 if words else 0) if named else max(1, len(words) // 2 + 1 if len(words) < 4 else (len(words) + 1) // 2)
    most = max(shared.values(), default=0)
    places = [place for place, common in shared.items() if common == most >= enough]
    return places if named or len(places) <= MOST_FACTS else []


def _has(words: str, text: str) -> bool:
    return re.search(rf"\b(?:{words})\b", text) is not None


def _singular(word: str) -> str:
    return word[:-1] if len(word) > SHORTEST_STEM and word.endswith("s") else word


def _words(text: str) -> set[str]:
    return {word for word in normal_form(text).split() if word not in STOP_WORDS and len(word) > 1}


def _contains(words: set[str], word: str) -> bool:
    return any(
        other == word or (min(len(other), len(word)) >= SHORTEST_STEM and (other.startswith(word) or word.startswith(other)))
        for other in words
    )
