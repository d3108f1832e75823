"""Say how an answer was read, or why nothing was read from it, also while answers come in; no score depends on it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from neuralmedbench.files.tables import read_by_item
from neuralmedbench.records.arm_changes import as_asked
from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.thoughts import ThoughtEnd, split_thoughts
from neuralmedbench.scoring.parse import REFUSAL, parse_answer, plain_text
from neuralmedbench.scoring.places import describe_place

COPIED = re.compile(
    r"<(?:(?:most likely|next) diagnosis|your whole answer|the letter of one option|anatomical region|one paragraph)[^<>\n]*>"
)
ONLY_THOUGHTS = "is nothing but thoughts; if the answer is among them, the server's reasoning parser put it there: start it without one, or ask without thinking"
LOOP = 60
"""An answer whose last characters, this many, stand in it three times repeats itself."""


def why_unread(text: str, item: Item) -> str:
    """Say why nothing was read from an answer.

    Parameters
    ----------
    text : str
        The model's answer.
    item : Item
        The question.

    Returns
    -------
    str
        A few words without any of the answer's own; empty if it was read.
    """
    if parse_answer(text, item).parse_status is not ParseStatus.FAILED:
        return ""
    plain = plain_text(text).strip()
    reasons = (
        (not text.strip(), "is empty"),
        (not plain and split_thoughts(text).end is ThoughtEnd.NEVER, "never closed its thinking, so that no answer follows"),
        (not plain, ONLY_THOUGHTS),
        (REFUSAL.search(plain) is not None, "refuses"),
        (COPIED.search(plain) is not None, "copies the form without filling it in"),
        (_loops(plain), "repeats itself until its end, without an answer"),
        (item.runner is Runner.CHOICE, "names no option in a form or language that is read, more than one, or one that is not offered"),
        (item.runner is Runner.STRUCTURED, "has no JSON object with one of the fields, or no value that its rule reads"),
        (item.family is Family.LESION_RECOGNITION, "has no LESION, in lines or in JSON"),
        (item.family is Family.QUESTION_ANSWERING, "has no ANSWER and is too long to be one"),
    )
    nothing = "calls nothing the diagnosis: no section, label, sentence, list or JSON does"
    return next((words for holds, words in reasons if holds), nothing)


def _loops(text: str) -> bool:
    """Return True if a text repeats itself until its end, whether or not it numbers the repetitions."""
    plain = re.sub(r"\d+", "", text)
    return len(plain) > 3 * LOOP and plain.count(plain[-LOOP:]) > 2


READ = {
    ParseStatus.STRICT: "in the form that was asked for",
    ParseStatus.REPAIRED: "in another usual form, which counts",
    ParseStatus.CONTRADICTED: "the letter, which counts, stands before the words of another option",
}
UNGRADED = "it has no grade, so it is missing, neither right nor wrong"


def describe_reading(text: str, item: Item, score: Score | None = None) -> str:
    """Say what was read from an answer, or why nothing was.

    Parameters
    ----------
    text : str
        The model's answer.
    item : Item
        The question.
    score : Score or None
        Its score, if there is one: an answer without a verdict is missing, whether it could be read or not.

    Returns
    -------
    str
        How it was read, and the option, the fields or the diagnoses by rank; what it counts as if nothing was read or nobody graded it.
    """
    ungraded = score is not None and score.scored and not score.missing and score.passed is None
    if reason := why_unread(text, item):
        return f"not read: the answer {reason}; {UNGRADED if ungraded else 'it counts as wrong'}"
    found = parse_answer(text, item)
    fields = "; ".join(f"{name} {value}" for name, value in (found.fields or {}).items() if value)
    what = "declines to answer" if found.abstained else found.choice or fields or "; ".join(found.differential)
    what += describe_place(found.place) if found.place else ""
    return f"{READ[found.parse_status]}: {what}{f'; {UNGRADED}' if ungraded else ''}"


def early_check(items: Path) -> Callable[[Response], str]:
    """Return a function that says why nothing can be read from an answer.

    Parameters
    ----------
    items : Path
        Table of the items that are asked.

    Returns
    -------
    callable
        Takes a response; returns a few words without any of the answer's own, empty if it is read (`why_unread`).

    Raises
    ------
    DataError
        If the table is absent or has another schema.
    """
    by_id = read_by_item(items, Item)

    def reason(response: Response) -> str:
        # a warning must not end a run that is paid for: an answer to an unknown item is not checked
        return why_unread(response.text, as_asked(by_id[response.item_id], response.arm)) if response.item_id in by_id else ""

    return reason
