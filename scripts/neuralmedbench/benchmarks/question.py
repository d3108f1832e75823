"""What `question(row)` of `config/mappings/<name>.py` returns: a question of a data set in the words of the set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture of a question.

    Attributes
    ----------
    file : str or bytes
        Its path in the data set's folder or beside the table, its bytes, or base64.
    role : str
        `picture`; `prior` and `current` of two examinations; `part` of a sequence; `option`, which is an option of the question.
    """

    file: str | bytes
    role: str = "picture"


@dataclass(frozen=True, kw_only=True)
class Value:
    """A value of a structured answer.

    Attributes
    ----------
    name : str
        Its key in the answer.
    rule : str
        How it is compared: a rule of `records.value_rules`.
    reference : object
        The right value: a text, a number, or a list (boxes, keywords). None: it is asked for and not scored. An empty text of the rule
        `words` expects nothing.
    words : str
        What the prompt says of it; empty: the words of the rule.
    low, high : float or None
        Limits of the rule `number`.
    at_least : float or None
        Share of agreement from which it is right; None: that of the rule.
    """

    name: str
    rule: str
    reference: Any = None
    words: str = ""
    low: float | None = None
    high: float | None = None
    at_least: float | None = None


@dataclass(frozen=True, kw_only=True)
class QuestionRound:
    """A round of a conversation.

    Attributes
    ----------
    question : str
        What is asked.
    text : str
        What is revealed before.
    values : tuple of Value
        What a structured question asks for in this round.
    pictures : tuple of Picture
        Pictures of this round.
    stage : str
        Rung of a ladder, which counts only if the rungs before it are right; empty: asked beside the ladder.
    retry : bool
        True for a rung of the guided retry, which follows the ladder.
    """

    question: str
    text: str = ""
    values: tuple[Value, ...] = ()
    pictures: tuple[Picture, ...] = ()
    stage: str = ""
    retry: bool = False


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question of a data set; the mapping adds runner, family, persona and fixed words.

    Attributes
    ----------
    id : str
        Its id in the set; empty: the name of its table and the number of its row.
    case, patient, pair : str
        Its case, the patient of the case, and the pair to which it belongs (which counts as one patient); empty if the set has none.
    question : str
        What is asked; `ask` of the mapping is added.
    text : str
        The case.
    facts : tuple of str
        What a model may ask for after `text`.
    options : tuple of str or mapping
        Options of a choice in their order, or by letter.
    distractors : tuple of str
        Wrong options without an order, in place of `options`: a digest orders them with the answer.
    answer : str
        Letter or text of an option, or the answer in words; empty if the set has none.
    aliases : tuple of str
        Equally right answers.
    pictures : tuple of Picture
        Its pictures, in order.
    values : tuple of Value
        What a structured answer has, if it is asked at once.
    rounds : tuple of QuestionRound
        Rounds of a dialogue, or of a structured question; `text` and `pictures` belong to the first.
    rubric : tuple
        Criteria: statements of one point, or mappings with `criterion`, `points` and `cap` (true: harmful, leaves no points).
    reasons : tuple of str
        Reasons for the answer.
    tags : tuple of str
        `<name>:<value>`, by which tables may group.
    date, language : str
        Its day, and its language (empty: that of the mapping).
    """

    id: str = ""
    case: str = ""
    patient: str = ""
    pair: str = ""
    question: str = ""
    text: str = ""
    facts: tuple[str, ...] = ()
    options: tuple[str, ...] | Mapping[str, Any] = ()
    distractors: tuple[str, ...] = ()
    answer: str = ""
    aliases: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    values: tuple[Value, ...] = ()
    rounds: tuple[QuestionRound, ...] = ()
    rubric: tuple[str | Mapping[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    date: str = ""
    language: str = ""
