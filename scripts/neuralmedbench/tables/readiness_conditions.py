"""What an intended use is judged by, patient by patient: right answers and errors that could harm, by disease group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from neuralmedbench.config.readiness import DiseaseGroup, ReadinessConfig
from neuralmedbench.records.items import DIAGNOSES, Family, Gold, Item
from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, ParseStatus, Score
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.matching import resolve, says_no_lesion, side_right, sides
from neuralmedbench.tables.groups import is_normal
from neuralmedbench.tables.outcomes import DIRECT, FULL

SURE = 0.8
"""Stated confidence from which an answer counts as sure. (Our rule.)"""
HALLUCINATION = "error.hallucinated_finding"


@dataclass(frozen=True, kw_only=True)
class ModelAnswers:
    """One model's answers on one benchmark with what is needed to judge them; missing ones are left out.

    Attributes
    ----------
    scores : list of Score
        Arm full, strategy direct.
    items, gold : mapping
        By item id.
    hallucinated : mapping of response key to bool
        What a grader said of invented findings, where one was asked.
    """

    scores: list[Score]
    items: Mapping[str, Item]
    gold: Mapping[str, Gold]
    hallucinated: Mapping[Key, bool]
    vocabulary: Vocabulary


Judge = Callable[[Score, ModelAnswers], bool | None]
"""Whether an answer has the property; None where the question does not arise."""


def patient_rates(answers: ModelAnswers, judge: Judge) -> dict[str, float]:
    """Share of a patient's answers that have a property, by patient; patients of whom no answer can be judged are left out."""
    found: dict[str, list[bool]] = defaultdict(list)
    for score in answers.scores:
        said = judge(score, answers)
        if said is not None:
            found[score.patient_id].append(said)
    return {patient: sum(values) / len(values) for patient, values in sorted(found.items())}


def accurate(score: Score, answers: ModelAnswers) -> bool | None:
    """Whether an answer passes."""
    return score.passed


def covered(score: Score, answers: ModelAnswers) -> bool | None:
    """Whether an answer says something that can be used: it came, could be read, and does not abstain."""
    return score.state == "ok" and score.parse_status != ParseStatus.FAILED and not score.abstained


def false_alarm(score: Score, answers: ModelAnswers) -> bool | None:
    """Whether an answer names a disease in a patient who has none."""
    if not is_normal(answers.gold[score.item_id].answer, answers.vocabulary) or score.passed is None:
        return None
    return covered(score, answers) and not score.passed


def missed_lesion(score: Score, answers: ModelAnswers) -> bool | None:
    """Whether an answer to a question for the lesion says that there is none, where one was shown."""
    item, gold = answers.items[score.item_id], answers.gold[score.item_id]
    if item.family is not Family.LESION_RECOGNITION or gold.lesion is None or not item.lesion_shown:
        return None
    return says_no_lesion((score.fields or {}).get("lesion", ""), answers.vocabulary)


def wrong_side(score: Score, answers: ModelAnswers) -> bool | None:
    """Whether an answer puts a lesion of a known side on another side; an answer without a side is not wrong about it."""
    lesion = answers.gold[score.item_id].lesion
    if lesion is None or not lesion.side or score.fields is None or "side" not in score.fields:
        return None
    return bool(sides(score.fields["side"])) and not side_right(score.fields["side"], lesion)


def hallucinated(score: Score, answers: ModelAnswers) -> bool | None:
    """Whether a grader found an invented finding; asked only where all findings are known."""
    return answers.hallucinated.get(response_key(score)) if answers.gold[score.item_id].findings_complete else None


def confident_error(score: Score, answers: ModelAnswers) -> bool | None:
    """Whether an answer is wrong and was stated with much confidence; None without a stated confidence."""
    return None if score.confidence is None or score.passed is None else score.confidence >= SURE and not score.passed


def right_when_sure(score: Score, answers: ModelAnswers) -> bool | None:
    """Whether an answer that was stated with much confidence is right; None for the others."""
    return None if score.confidence is None or score.confidence < SURE or score.passed is None else score.passed


JUDGES: dict[str, Judge] = {
    "min_accuracy": accurate,
    "max_hallucinated_findings": hallucinated,
    "max_missed_lesions": missed_lesion,
    "max_false_alarms": false_alarm,
    "max_wrong_side": wrong_side,
    "min_coverage": covered,
    "max_confident_errors": confident_error,
    "min_right_when_sure": right_when_sure,
}
"""By condition."""


def hallucination_grades(grades: Iterable[Iterable[Grade]]) -> dict[Key, bool]:
    """Gather what graders said of invented findings; of several the first in the run list that said something counts."""
    found: dict[Key, bool] = {}
    for rows in grades:
        for grade in rows:
            if grade.criterion == HALLUCINATION and grade.value is not None:
                found.setdefault(response_key(grade), grade.value > 0)
    return found


def belongs(diagnosis: str, keys: Iterable[str], vocabulary: Vocabulary) -> bool:
    """Whether a diagnosis is one of the given ones or narrower."""
    entry = resolve(diagnosis, vocabulary)
    return entry is not None and not {entry.key, *(wider.key for wider in vocabulary.ancestors(entry.key))}.isdisjoint(keys)


BEFORE, SAME_DAY, AFTER, NOT_KNOWN = "before the answers", "on the day of the first answer", "after the first answer", "not known"


Member = Callable[[str], bool]
"""Whether a diagnosis belongs to a disease group."""


def member_of(group: DiseaseGroup, vocabulary: Vocabulary) -> Member:
    """Tell of a diagnosis whether it belongs to a group; to one without diagnoses all do. Thousands of answers name the same few."""
    return cache(lambda diagnosis: not group.diagnoses or belongs(diagnosis, group.diagnoses, vocabulary))


@dataclass(frozen=True)
class Group:
    """One disease group's answers of one model, and by condition the share of each patient's answers that have the property."""

    answers: ModelAnswers
    shares: dict[str, dict[str, float]]

    @property
    def patients(self) -> int:
        """Patients with an answer."""
        return len({row.patient_id for row in self.answers.scores})


def group_of(answers: ModelAnswers, member: Member) -> Group:
    """Take the answers about the patients of a disease group."""
    kept = {name for name, gold in answers.gold.items() if member(gold.answer)}
    part = replace(answers, scores=[row for row in answers.scores if row.item_id in kept])
    return Group(part, {condition: patient_rates(part, judge) for condition, judge in JUDGES.items()})


def named_rates(answers: ModelAnswers, member: Member, *, inside: bool) -> dict[str, float]:
    """Share of each patient's answers that name a disease of the group first, for patients of the group or for all others.

    Answers to questions that ask for no diagnosis are left out: they cannot name one. An answer that names nothing does not name it.
    """

    def names(score: Score, part: ModelAnswers) -> bool | None:
        asked = part.items[score.item_id].family in DIAGNOSES and member(part.gold[score.item_id].answer) is inside
        return bool(score.differential) and member(score.differential[0]) if asked else None

    return patient_rates(answers, names)


def when_stated(config: ReadinessConfig, responses: Iterable[Response]) -> str:
    """Say whether the conditions were written down before a model was first asked what counts here (arm full, strategy direct)."""
    days = sorted({row.called_on for row in responses if (row.arm, row.strategy) == (FULL, DIRECT)} - {""})
    if not days or config.stated_on is None:
        return NOT_KNOWN
    day = config.stated_on.isoformat()
    return BEFORE if day < days[0] else SAME_DAY if day == days[0] else AFTER
