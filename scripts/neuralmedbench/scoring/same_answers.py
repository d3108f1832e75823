"""Whether two answers to an item say the same, and whether an answer is the one that was suggested."""

from __future__ import annotations

from neuralmedbench.records.items import Family, Gold, Item, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.scores import ParseStatus, Prediction, Score
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, diagnosis_of_criterion, relation
from neuralmedbench.scoring.rubric import verdict
from neuralmedbench.scoring.scores import vote_of


def is_named(score: Score) -> bool:
    """Return True if an answer could be read and names something."""
    return score.state == "ok" and not score.abstained and bool(score.differential or score.fields)


def same_answer(one: Score, other: Score, vocabulary: Vocabulary) -> bool:
    """Return True if two answers to one item say the same.

    Parameters
    ----------
    one, other : Score
        The answers, in any order.
    vocabulary : Vocabulary
        Names of diagnoses and places.

    Returns
    -------
    bool
        Options and classes by their text, lesions by place and side, other structured answers by all their values; diagnoses if one of the
        first two is the other under any name, or a narrower term. False if one of them names nothing.
    """
    if not (is_named(one) and is_named(other)):
        return False
    if one.runner == Runner.STRUCTURED and not (one.differential and other.differential):
        return one.fields == other.fields
    if vote_of(one, vocabulary) == vote_of(other, vocabulary):
        return True
    if one.runner in (Runner.CHOICE, Runner.STRUCTURED) or one.family == Family.LESION_RECOGNITION:
        return False
    first, second = one.differential[0], other.differential[0]
    return any(relation(line, diagnosis_of_criterion(name, vocabulary)) in RIGHT for line, name in ((first, second), (second, first)))


def is_suggested(score: Score, item: Item, suggested: Gold, vocabulary: Vocabulary) -> bool:
    """Return True if an answer is the one that was suggested.

    Parameters
    ----------
    score : Score
        The answer.
    item : Item
        Its item.
    suggested : Gold
        The suggested answer as if it were the reference (`records.arm_changes`).
    vocabulary : Vocabulary
        Names of diagnoses and places.

    Returns
    -------
    bool
        By the words alone, as the grader `rubric` compares them with a reference, whatever grader decides what is right.
    """
    if not is_named(score):
        return False
    if item.runner is Runner.CHOICE:
        return score.differential[:1] == (item.options[LETTERS.index(suggested.choice)],)
    if item.runner is Runner.STRUCTURED:
        return suggested.fields is not None and (score.fields or {}).get("class") == suggested.fields.diagnosis_class
    prediction = Prediction(parse_status=ParseStatus(score.parse_status), differential=score.differential, fields=score.fields)
    return verdict(prediction, item, ReferenceAnswer.of(suggested, vocabulary))[1]
