"""A disease group's answers of one model, and how many of its patients have which property."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from neuralmedbench.config.readiness import DiseaseGroup, ReadinessConfig
from neuralmedbench.records.items import DIAGNOSES
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Score
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.readiness.judges import JUDGES, Answers, belongs, patient_rates

BEFORE, SAME_DAY, AFTER, NOT_KNOWN = "before the answers", "on the day of the first answer", "after the first answer", "not known"


Member = Callable[[str], bool]
"""Whether a diagnosis belongs to a disease group."""


def member_of(group: DiseaseGroup, vocabulary: Vocabulary) -> Member:
    """Tell of a diagnosis whether it belongs to a group; to one without diagnoses all do. Thousands of answers name the same few."""
    return cache(lambda diagnosis: not group.diagnoses or belongs(diagnosis, group.diagnoses, vocabulary))


@dataclass(frozen=True)
class Group:
    """One disease group's answers of one model, and by condition the share of each patient's answers that have the property."""

    answers: Answers
    shares: dict[str, dict[str, float]]

    @property
    def patients(self) -> int:
        """Patients with an answer."""
        return len({row.patient_id for row in self.answers.scores})


def group_of(answers: Answers, member: Member) -> Group:
    """Take the answers about the patients of a disease group."""
    kept = {name for name, gold in answers.gold.items() if member(gold.answer)}
    part = replace(answers, scores=[row for row in answers.scores if row.item_id in kept])
    return Group(part, {condition: patient_rates(part, judge) for condition, judge in JUDGES.items()})


def named_rates(answers: Answers, member: Member, *, inside: bool) -> dict[str, float]:
    """Share of each patient's answers that name a disease of the group first, for patients of the group or for all others.

    Answers to questions that ask for no diagnosis are left out: they cannot name one. An answer that names nothing does not name it.
    """

    def names(score: Score, part: Answers) -> bool | None:
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
