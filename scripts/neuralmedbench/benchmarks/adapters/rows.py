"""What the adapters share: ids, answers of choice, refusals."""

from __future__ import annotations

import hashlib
import re

from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Gold
from neuralmedbench.records.questions import LETTERS, Question, Refusal

MAX_ID = 100
ODD = re.compile(r"[^A-Za-z0-9._-]+")


def plain_id(text: str) -> str:
    """Make an id of letters, digits, `.`, `-` and `_` out of a data set's own; what changes by it gets a digest, so that two stay two.

    Examples
    --------
    >>> plain_id("case_7"), plain_id("Fälle/7")
    ('case_7', 'F-lle-7-63c363de')
    """
    plain = ODD.sub("-", text.strip()).strip("-._")[:MAX_ID]
    if plain == text.strip() and plain:
        return plain
    return f"{plain or 'row'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def choice_gold(question: Question, letter: str, *, established: str) -> Gold:
    """Give the answer of a question of choice by its letter.

    Raises
    ------
    DataError
        If the letter is none of the options'; the message does not repeat it.
    """
    place = LETTERS.find(letter) if letter else -1
    if not 0 <= place < len(question.options):
        message = f"the right letter is none of {LETTERS[0]} to {LETTERS[max(len(question.options) - 1, 0)]}"
        raise DataError(message)
    return Gold(item_id=question.question_id, answer=question.options[place], choice=letter, established=established)


def refused(where: str, error: DataError) -> Refusal:
    """Turn the error of one row into its refusal."""
    return Refusal(where=where, reason=str(error))
