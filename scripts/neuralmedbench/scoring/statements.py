"""Does a text say what a statement says? Words in common, with the same side and the same negation."""

from __future__ import annotations

import re
from itertools import pairwise

from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.denial import NEGATION
from neuralmedbench.scoring.terms import sides

SHARE = 0.6
"""Share of a statement's words that one or two neighbouring sentences must hold. Our choice; labelled so in the report."""

STEM = 6
WORDS_WITHOUT_CONTENT = (
    "a an the of in on at to for with and or is are was were be been has have as by from that this it its which than there"
)
SMALL_WORDS = frozenset(WORDS_WITHOUT_CONTENT.split())
SAME = {
    "bright": "hyperintense",
    "dark": "hypointense",
    "hyperintensity": "hyperintense",
    "hyperintensities": "hyperintense",
    "hypointensity": "hypointense",
    "dense": "hyperdense",
    "shrinkage": "atrophy",
    "enlarged": "wide",
    "dilated": "wide",
    "enlargement": "wide",
    "tumor": "mass",
    "both": "bilateral",
}
"""Words for one sign, folded before they are compared."""


def says(text: str, statement: str) -> bool:
    """Whether a text holds a statement.

    Parameters
    ----------
    text : str
        Findings and rationale of an answer.
    statement : str
        For example `No restricted diffusion in the left insula.`

    Returns
    -------
    bool
        Whether one sentence, or two neighbouring ones, hold at least `SHARE` of the statement's content words, each
        negated where the statement negates it, and do not state only the other side.

    Notes
    -----
    A rough measure: it knows no synonyms beyond a few signs, and a paraphrase in other words is missed.
    """
    wanted = _words(statement)
    if not wanted:
        return False
    sentences = [part for part in re.split(r"(?<=[.!?;])\s+|\n", text) if part.strip()]
    windows = [*sentences, *(f"{first} {second}" for first, second in pairwise(sentences))]
    return any(len(wanted & _words(window)) >= SHARE * len(wanted) and not _other_side(window, statement) for window in windows)


def _words(text: str) -> set[tuple[str, bool]]:
    """Stems of the content words, each with whether it stands in a clause behind a negation."""
    found = set()
    for clause in re.split(r"[,.;:!?]|\bbut\b|\bhowever\b", text, flags=re.IGNORECASE):
        negated = False
        for word in normal_form(clause).split():
            if NEGATION.fullmatch(word):
                negated = True
            elif word not in SMALL_WORDS:
                found.add((SAME.get(word, word)[:STEM], negated))
    return found


def _other_side(text: str, statement: str) -> bool:
    wanted = sides(statement) & {"left", "right"}
    stated = sides(text) & {"left", "right"}
    return len(wanted) == 1 and bool(stated) and not wanted & stated
